//! How strings, numbers and instants are written wherever they stand in text: in values, stored forms, answers, events.
//! It knows no shape and reads nothing. Each piece is appended to what the caller has, so that hot paths allocate once.

use crate::ids::Millis;
use crate::rows::Json;

const DAY_MS: i64 = 86_400_000;
/// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for a year. A saturated deadline shows as this.
const LAST_MS: i64 = 253_402_300_799_999;

/// A JSON string literal.
pub fn json_string(text: &str) -> Json {
    let mut literal = String::with_capacity(text.len() + 2);
    push_json_string(&mut literal, text);
    literal.into()
}

pub fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        push_escape(out, special.bytes().next().unwrap_or_default());
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

fn push_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        _ => {
            out.push_str("\\u00");
            push_hex(out, &[byte]);
        }
    }
}

/// Two lower-case digits per byte.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

pub fn push_int(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push_digits(out, number.unsigned_abs());
}

/// Decimal, as long as the number is.
pub fn push_digits(out: &mut String, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    push_ascii(out, &digits[at..]);
}

/// `2026-11-29T23:16:32.123Z`.
pub fn rfc3339(ms: Millis) -> String {
    let mut text = String::with_capacity(24);
    push_rfc3339(&mut text, ms);
    text
}

pub fn push_rfc3339(out: &mut String, ms: Millis) {
    let ms = ms.clamp(0, LAST_MS);
    let (year, month, day) = civil(ms / DAY_MS);
    let rest = ms % DAY_MS;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    put(&mut text[0..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], rest / 3_600_000);
    put(&mut text[14..16], rest / 60_000 % 60);
    put(&mut text[17..19], rest / 1000 % 60);
    put(&mut text[20..23], rest % 1000);
    push_ascii(out, &text);
}

fn put(digits: &mut [u8], number: i64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// In one piece: a `char` at a time is several times slower.
fn push_ascii(out: &mut String, bytes: &[u8]) {
    out.push_str(std::str::from_utf8(bytes).unwrap_or_default());
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that the leap day comes last:
/// then 400 years are one period of 146,097 days and months alternate evenly.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    match month < 10 {
        true => (era * 400 + year_of_era, month + 3, day),
        false => (era * 400 + year_of_era + 1, month - 9, day),
    }
}
