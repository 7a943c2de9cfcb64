//! A guess whether a key was made from the clock, to warn about it: such a key is new on every retry, or shared by two clicks.
//! Does not refuse anything: a ten-digit order number may look the same.

use super::Key;

/// 2020-01-01 to 2038-01-01: what a clock shows while this code is in use.
const UNIX_SECONDS: std::ops::Range<u64> = 1_577_836_800..2_145_916_800;

/// True when the first or last segment is a Unix time in s, ms, µs or ns, or a date with a time stands anywhere inside.
/// UUIDs are never flagged, also not the versions that contain a time: their random part makes them good keys.
pub fn looks_time_based(key: &Key) -> bool {
    let text = key.as_str();
    ends(text).any(is_unix_time) || has_date_time(text.as_bytes())
}

fn ends(text: &str) -> impl Iterator<Item = &str> {
    let border = |c: char| !c.is_ascii_alphanumeric();
    text.split(border).next().into_iter().chain(text.rsplit(border).next())
}

fn is_unix_time(segment: &str) -> bool {
    let Ok(number) = segment.parse::<u64>() else { return false };
    match segment.len() {
        10 => UNIX_SECONDS.contains(&number),
        13 => UNIX_SECONDS.contains(&(number / 1_000)),
        16 => UNIX_SECONDS.contains(&(number / 1_000_000)),
        19 => UNIX_SECONDS.contains(&(number / 1_000_000_000)),
        _ => false,
    }
}

fn has_date_time(text: &[u8]) -> bool {
    const SHAPES: [&[u8]; 3] = [b"2000-00-00T00:00", b"20000000T0000", b"2000-00-00T00-00"];
    SHAPES.iter().any(|shape| text.windows(shape.len()).any(|window| has_shape(window, shape)))
}

/// `0` stands for any digit and `T` for the three separators in use.
fn has_shape(window: &[u8], shape: &[u8]) -> bool {
    window.iter().zip(shape).all(|(&byte, &wanted)| match wanted {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b'_' | b' '),
        _ => byte == wanted,
    })
}
