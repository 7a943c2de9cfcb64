//! An answer's headers in one column: `name: value` by lines. No header has a line's end in it. Next: back to the stores.

use std::fmt::Write;
use std::sync::Arc;

type Headers = [(Arc<str>, Arc<str>)];

pub fn to_lines(headers: &Headers) -> String {
    headers.iter().fold(String::new(), |mut lines, (name, value)| {
        let _ = writeln!(lines, "{name}: {value}");
        lines
    })
}

/// `None`: these are not ours.
pub fn from_lines(lines: &str) -> Option<Vec<(Arc<str>, Arc<str>)>> {
    // Not `lines`, which takes a carriage return for a part of the line's end.
    let lines = lines.split_terminator('\n');
    lines.map(|line| line.split_once(": ").map(|(name, value)| (name.into(), value.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let headers: Vec<(Arc<str>, Arc<str>)> =
            [("link", "<a>; rel=x"), ("link", ""), ("x-a", ": b: "), ("etag", "\u{e9}")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        assert_eq!(from_lines(&to_lines(&headers)).unwrap(), headers);
        assert_eq!((from_lines(""), from_lines("x")), (Some(vec![]), None));
    }
}
