//! What a workflow engine needs of time: durations added to an instant, texts and values as instants.
//! It knows no expression and no clock; all instants are Unix milliseconds, UTC.
//! Next: `iso`, which reads the texts.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use crate::iso;
use crate::temporal::FeelDateTime;
use crate::value::Value;

/// A duration of calendar months and of exact time; either may be zero or negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarDuration {
    pub months: i64,
    pub duration: SignedDuration,
    /// The text named years or months.
    pub(crate) has_months: bool,
    /// The text named weeks, days or smaller units.
    pub(crate) has_time: bool,
}

impl CalendarDuration {
    /// Months are added in the UTC calendar first (31 January + 1 month = 28 or 29 February), then the exact part;
    /// a fraction of a millisecond is cut off downwards. `None` outside of the years -9999 to 9999.
    pub fn add_to_ms(&self, start_ms: i64) -> Option<i64> {
        let start = Timestamp::from_millisecond(start_ms).ok()?;
        let shifted = if self.months == 0 {
            start
        } else {
            let span = Span::new().try_months(self.months).ok()?;
            start.to_zoned_datetime(TimeZone::UTC).checked_add(span).ok()?.timestamp()
        };
        to_ms(shifted.checked_add(self.duration).ok()?)
    }

    pub fn is_negative(&self) -> bool {
        self.months < 0 || (self.months == 0 && self.duration.is_negative())
    }
}

/// Reads an ISO 8601 duration such as `PT15M`, `P1Y2M3DT4H`, `P2W` or `-PT5S`.
pub fn parse_duration(text: &str) -> Option<CalendarDuration> {
    iso::duration(text.trim())
}

/// The instant that lies an ISO 8601 duration after `start_ms`.
pub fn add_duration_ms(start_ms: i64, iso8601: &str) -> Option<i64> {
    parse_duration(iso8601)?.add_to_ms(start_ms)
}

/// Reads a date-time with zone (`2024-06-30T10:00:00Z`, `…+02:00`, `…@Europe/Berlin`, `…+02:00[Europe/Berlin]`); one
/// without a zone, and a date alone (its midnight), is UTC.
pub fn parse_instant_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    match iso::date(text) {
        Some(date) => date_ms(date),
        None => date_time_ms(&FeelDateTime::parse(text)?),
    }
}

impl Value {
    /// A date-time, a date or a string with one, as an instant; what has no zone is UTC.
    pub fn as_instant_ms(&self) -> Option<i64> {
        match self {
            Value::DateTime(date_time) => date_time_ms(date_time),
            Value::Date(date) => date_ms(*date),
            Value::String(text) => parse_instant_ms(text),
            _ => None,
        }
    }

    /// A duration, or a string with one, added to an instant.
    pub fn add_to_ms(&self, start_ms: i64) -> Option<i64> {
        let calendar = match self {
            Value::DaysDuration(duration) => {
                CalendarDuration { months: 0, duration: *duration, has_months: false, has_time: true }
            }
            Value::YearsDuration(months) => {
                CalendarDuration { months: *months, duration: SignedDuration::ZERO, has_months: true, has_time: false }
            }
            Value::String(text) => parse_duration(text)?,
            _ => return None,
        };
        calendar.add_to_ms(start_ms)
    }
}

fn date_ms(date: Date) -> Option<i64> {
    to_ms(TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?)
}

fn date_time_ms(date_time: &FeelDateTime) -> Option<i64> {
    match date_time {
        FeelDateTime::Local(local) => to_ms(TimeZone::UTC.to_timestamp(*local).ok()?),
        FeelDateTime::Zoned(zoned) => to_ms(zoned.timestamp()),
    }
}

fn to_ms(timestamp: Timestamp) -> Option<i64> {
    i64::try_from(timestamp.as_nanosecond().div_euclid(1_000_000)).ok()
}
