//! The answer of a batch completion whose parts were executed apart: put together in the order given, each result byte for
//! byte as its part rendered it. Next: `jobs.rs::render_completed_many`, which renders a part.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use wf_core::Key;
use wf_idempotency::record::Answer;

use crate::answer;
use crate::jobs::write_refused;
use crate::write::Writer;

/// What became of a part.
#[derive(Clone, Debug)]
pub enum Part {
    /// The body of its answer.
    Done(Bytes),
    /// A problem, as JSON: that of each of its items.
    Refused(String),
}

#[derive(Deserialize)]
struct Results<'a> {
    #[serde(borrow)]
    results: Vec<&'a RawValue>,
}

/// `places`: where a part's items stood in the batch. `None`: the parts are no answers, or not of this batch.
pub fn merge_completed_many(keys: &[Key], parts: &[(Vec<usize>, Part)]) -> Option<Answer> {
    let mut results: Vec<Option<String>> = vec![None; keys.len()];
    for (places, part) in parts {
        let texts = texts_of(keys, places, part)?;
        for (place, text) in places.iter().zip(texts) {
            *results.get_mut(*place)? = Some(text);
        }
    }
    let results = results.into_iter().collect::<Option<Vec<String>>>()?;
    let mut out = Writer::new(16 + results.iter().map(|text| text.len() + 1).sum::<usize>());
    out.raw("{\"results\":");
    crate::write::list(&mut out, &results, |out, text| {
        out.raw(text);
    });
    out.raw("}");
    Some(answer::ok(out.finish()))
}

fn texts_of(keys: &[Key], places: &[usize], part: &Part) -> Option<Vec<String>> {
    match part {
        Part::Done(body) => {
            let Results { results } = serde_json::from_slice(body).ok()?;
            let texts = results.into_iter().map(|result| result.get().to_owned());
            Some(texts.collect()).filter(|texts: &Vec<String>| texts.len() == places.len())
        }
        Part::Refused(problem) => {
            let refused = |place: &usize| {
                let mut out = Writer::new(problem.len() + 48);
                write_refused(&mut out, *keys.get(*place)?, problem);
                Some(out.into_text())
            };
            places.iter().map(refused).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::render_completed_many;
    use wf_core::outcome::{Noun, Outcome, Rejection};

    fn rendered(results: Vec<(Key, Result<bool, Rejection>)>) -> Bytes {
        render_completed_many(&Outcome::CompletedMany(results)).body
    }

    /// Merged parts are the bytes of the whole.
    #[test]
    fn parts_are_put_together_in_the_order_given() {
        let missing = || Err(Rejection::NotFound(Noun::Job));
        let whole = rendered(vec![(1, Ok(false)), (2, missing()), (3, Ok(true))]);
        let parts = [
            (vec![1], Part::Done(rendered(vec![(2, missing())]))),
            (vec![0, 2], Part::Done(rendered(vec![(1, Ok(false)), (3, Ok(true))]))),
        ];
        assert_eq!(merge_completed_many(&[1, 2, 3], &parts).unwrap().body, whole);
        let refused = [parts[1].clone(), (vec![1], Part::Refused("{\"code\":\"x\"}".to_owned()))];
        let text = String::from_utf8(merge_completed_many(&[1, 2, 3], &refused).unwrap().body.to_vec()).unwrap();
        assert!(text.contains(r#"{"key":"2","problem":{"code":"x"}}"#), "{text}");
        for broken in [&parts[..1], &[(vec![0], parts[1].1.clone())], &[(vec![7], parts[0].1.clone())]] {
            assert!(merge_completed_many(&[1, 2, 3], broken).is_none());
        }
    }
}
