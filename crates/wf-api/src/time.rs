//! Instants: milliseconds inside, RFC 3339 in UTC outside. It reads no clock.
//! Next: the nouns.

use serde::{Serialize, Serializer};
use wf_core::Millis;

const DAY_MS: i64 = 86_400_000;
/// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for a year. A saturated deadline shows as this.
const LAST_MS: i64 = 253_402_300_799_999;

/// An instant that serialises as RFC 3339 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant(pub Millis);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = rfc3339(self.0);
        serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// 0 stands for *not yet* in rows.
pub fn unless_zero(ms: Millis) -> Option<Instant> {
    (ms != 0).then_some(Instant(ms))
}

/// `2026-11-29T23:16:32.123Z`.
pub fn rfc3339(ms: Millis) -> [u8; 24] {
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
    text
}

fn put(digits: &mut [u8], number: i64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
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

/// With any offset; finer than a millisecond is cut.
pub fn parse(text: &str) -> Option<Millis> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(instant.as_millisecond())
}
