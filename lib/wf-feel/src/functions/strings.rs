//! Functions on strings that need no pattern. Positions count characters from 1, or from the end if negative.
//! It knows no regular expressions.
//! Next: `patterns`.

use super::Builtin;
use crate::decimal;
use crate::eval::{Outcome, Run};
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("substring", &[&["string", "start position"], &["string", "start position", "length"]], substring),
    Builtin::new("string length", &[&["string"]], string_length),
    Builtin::new("upper case", &[&["string"]], upper_case),
    Builtin::new("lower case", &[&["string"]], lower_case),
    Builtin::new("substring before", &[&["string", "match"]], substring_before),
    Builtin::new("substring after", &[&["string", "match"]], substring_after),
    Builtin::new("contains", &[&["string", "match"]], contains),
    Builtin::new("starts with", &[&["string", "match"]], starts_with),
    Builtin::new("ends with", &[&["string", "match"]], ends_with),
    Builtin::new("trim", &[&["string"]], trim),
    Builtin::new("is blank", &[&["string"]], is_blank),
    Builtin::new("uuid", &[&[]], uuid),
];

fn substring(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let (text, start, length) = match arguments {
        [Value::String(text), Value::Number(start)] => (text, start, None),
        [Value::String(text), Value::Number(start), Value::Number(length)] => (text, start, Some(length)),
        _ => return Ok(Value::Null),
    };
    run.step(text.len() / 16)?;
    let characters = text.chars().count();
    let (Some(start), length) = (decimal::truncate_to_i64(start), length.map(decimal::truncate_to_i64)) else {
        return Ok(Value::Null);
    };
    let skipped = match start {
        0 => return Ok(Value::Null),
        positive if positive > 0 => usize::try_from(positive - 1).ok(),
        negative => usize::try_from(negative.unsigned_abs()).ok().and_then(|back| characters.checked_sub(back)),
    };
    let taken = match length {
        None => Some(characters),
        Some(length) => length.and_then(|length| usize::try_from(length).ok()),
    };
    match (skipped, taken) {
        (Some(skipped), Some(taken)) if skipped <= characters => {
            let part: String = text.chars().skip(skipped).take(taken).collect();
            run.string(part)
        }
        _ => Ok(Value::Null),
    }
}

fn string_length(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(text)] => {
            run.step(text.len() / 16)?;
            Ok(Number::from(text.chars().count()).into())
        }
        _ => Ok(Value::Null),
    }
}

fn upper_case(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    map(run, arguments, str::to_uppercase)
}

fn lower_case(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    map(run, arguments, str::to_lowercase)
}

fn trim(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    map(run, arguments, |text| text.trim().to_owned())
}

fn map(run: &mut Run<'_>, arguments: &[Value], change: fn(&str) -> String) -> Outcome {
    match arguments {
        [Value::String(text)] => {
            run.step(text.len() / 16)?;
            run.allocate(text.len())?;
            run.string(change(text))
        }
        _ => Ok(Value::Null),
    }
}

fn is_blank(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::String(text)] => Value::Bool(text.trim().is_empty()),
        _ => Value::Null,
    })
}

/// Empty if the match does not occur.
fn substring_before(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    two(run, arguments, |run, text, found| {
        let before = text.find(found).and_then(|at| text.get(..at)).unwrap_or("");
        run.string(before)
    })
}

/// Empty if the match does not occur.
fn substring_after(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    two(run, arguments, |run, text, found| {
        let after = text.find(found).and_then(|at| text.get(at + found.len()..)).unwrap_or("");
        run.string(after)
    })
}

fn contains(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    two(run, arguments, |_, text, found| Ok(text.contains(found).into()))
}

fn starts_with(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    two(run, arguments, |_, text, found| Ok(text.starts_with(found).into()))
}

fn ends_with(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    two(run, arguments, |_, text, found| Ok(text.ends_with(found).into()))
}

fn two(run: &mut Run<'_>, arguments: &[Value], answer: fn(&mut Run<'_>, &str, &str) -> Outcome) -> Outcome {
    match arguments {
        [Value::String(text), Value::String(found)] => {
            run.step((text.len() + found.len()) / 64)?;
            answer(run, text, found)
        }
        _ => Ok(Value::Null),
    }
}

fn uuid(run: &mut Run<'_>, _arguments: &[Value]) -> Outcome {
    let bits = run.draw();
    // The version and variant bits of a random UUID.
    let marked = (bits & !(0xf << 76) & !(0b11 << 62)) | (4 << 76) | (0b10 << 62);
    let hex = format!("{marked:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or("");
    run.string(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

impl Run<'_> {
    /// The next 128 bits drawn from the seed. Different counters give different bits: each round is a bijection.
    pub(crate) fn draw(&mut self) -> u128 {
        self.drawn += 1;
        let mut bits = u128::from_be_bytes(self.env.seed) ^ (u128::from(self.drawn) << 64 | u128::from(self.drawn));
        for _ in 0..3 {
            bits ^= bits >> 67;
            bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            bits ^= bits >> 59;
            bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9_94d0_49bb_1331_11eb);
        }
        bits ^ (bits >> 64)
    }
}
