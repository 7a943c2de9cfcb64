//! `to base64` and `from base64`.
//! It knows the standard alphabet only.
//! Next: `numbers`.

use super::Builtin;
use crate::eval::{Outcome, Run};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] =
    &[Builtin::new("to base64", &[&["value"]], to_base64), Builtin::new("from base64", &[&["value"]], from_base64)];

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(text.len() / 8)?;
    run.allocate(text.len().saturating_mul(2))?;
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or(0);
            let letter = ALPHABET.as_bytes().get(digit).copied().unwrap_or(b'=');
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    run.string(out)
}

/// Null for what is no Base64; bytes that are no UTF-8 become replacement characters.
fn from_base64(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(text.len() / 2)?;
    run.allocate(text.len())?;
    match decode(text) {
        Some(bytes) => run.string(String::from_utf8_lossy(&bytes).into_owned()),
        None => Ok(Value::Null),
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if digits.len() % 4 == 1 || padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for letter in digits.bytes() {
        let digit = u32::try_from(ALPHABET.bytes().position(|known| known == letter)?).ok()?;
        bits = (bits << 6 | digit) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    Some(bytes)
}
