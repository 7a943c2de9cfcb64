//! A JSON number as an exact decimal in one spelling: 1, 1.0 and 10e-1 agree; 2^53 and 2^53+1 do not.
//! Never a double, and never written out: 1e999999999 stays eleven bytes.
//!
//! Form: `-` if negative, the digits without zeros at either end, then `;` if they are the integer itself, else `e` and
//! the exponent as 8 bytes little-endian. Zero has no digits. -0 keeps its sign: some readers see another value in it,
//! and a repeat that is refused does less harm than a wrong replay.

/// More than this and the sum with a length could leave an i64; no sender means such a number.
const EXPONENT_DIGITS_MAX: usize = 18;

/// Appends the normal form of the number at the start of `text`; returns how many bytes it was spelled with.
pub(super) fn normalize(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let spelled = Spelled::read(text)?;
    if spelled.negative {
        out.push(b'-');
    }
    let start = out.len();
    out.extend(spelled.whole.iter().chain(spelled.fraction).copied().skip_while(|&digit| digit == b'0'));
    let end = out[start..].iter().rposition(|&digit| digit != b'0').map_or(start, |last| start + last + 1);
    let zeros_cut = out.len() - end;
    out.truncate(end);
    if start == end {
        out.push(b';');
        return Some(spelled.len);
    }
    match exponent(spelled.exponent)? + zeros_cut as i64 - spelled.fraction.len() as i64 {
        0 => out.push(b';'),
        exponent => {
            out.push(b'e');
            out.extend_from_slice(&exponent.to_le_bytes());
        }
    }
    Some(spelled.len)
}

fn exponent(spelled: &[u8]) -> Option<i64> {
    let (negative, digits) = match spelled {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[zeros..];
    (digits.len() <= EXPONENT_DIGITS_MAX).then_some(())?;
    let size = digits.iter().fold(0, |size, &digit| size * 10 + i64::from(digit - b'0'));
    Some(if negative { -size } else { size })
}

/// The pieces of a number as the grammar of RFC 8259 cuts it.
struct Spelled<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    /// With its sign; empty when there is none.
    exponent: &'a [u8],
    len: usize,
}

impl<'a> Spelled<'a> {
    fn read(text: &'a [u8]) -> Option<Spelled<'a>> {
        let negative = text.first() == Some(&b'-');
        let (whole, rest) = digits(&text[usize::from(negative)..])?;
        if whole.len() > 1 && whole[0] == b'0' {
            return None;
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest)?,
            _ => (&rest[..0], rest),
        };
        let (exponent, rest) = match rest {
            [b'e' | b'E', rest @ ..] => signed_digits(rest)?,
            _ => (&rest[..0], rest),
        };
        Some(Spelled { negative, whole, fraction, exponent, len: text.len() - rest.len() })
    }
}

fn signed_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let (digits, rest) = digits(&text[sign..])?;
    Some((&text[..sign + digits.len()], rest))
}

/// At least one digit, and what follows them.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (len > 0).then(|| text.split_at(len))
}
