//! Dates, times and durations as FEEL sees them: their texts, properties and zones.
//! It knows no clock; operators on them are in `arithmetic`.
//! Next: `functions::temporal`.

use std::cmp::Ordering;
use std::fmt::Write;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use crate::iso;
use crate::number::Number;
use crate::value::Value;

/// A time of day, with or without a zone.
#[derive(Clone, Debug)]
pub enum FeelTime {
    Local(Time),
    Zoned(Time, TimeZone),
}

/// A date and time, with or without a zone.
#[derive(Clone, Debug, PartialEq)]
pub enum FeelDateTime {
    Local(DateTime),
    Zoned(ZonedDateTime),
}

impl FeelTime {
    pub fn parse(text: &str) -> Option<FeelTime> {
        let (time, zone) = iso::time(text.strip_prefix('T').unwrap_or(text))?;
        Some(match zone {
            Some(zone) => FeelTime::Zoned(time, zone),
            None => FeelTime::Local(time),
        })
    }

    pub fn time(&self) -> Time {
        match self {
            FeelTime::Local(time) | FeelTime::Zoned(time, _) => *time,
        }
    }

    pub(crate) fn with_time(&self, time: Time) -> FeelTime {
        match self {
            FeelTime::Local(_) => FeelTime::Local(time),
            FeelTime::Zoned(_, zone) => FeelTime::Zoned(time, zone.clone()),
        }
    }

    fn zone(&self) -> Option<&TimeZone> {
        match self {
            FeelTime::Local(_) => None,
            FeelTime::Zoned(_, zone) => Some(zone),
        }
    }

    /// Since midnight UTC. A named zone counts with the offset that it has in winter of the north.
    pub(crate) fn since_midnight(&self) -> SignedDuration {
        let local = self.time().duration_since(Time::midnight());
        let offset = self.zone().map_or(0, offset_seconds);
        local.saturating_sub(SignedDuration::from_secs(offset))
    }

    /// `None` when one has a zone and the other has not.
    pub(crate) fn compare(&self, other: &FeelTime) -> Option<Ordering> {
        let same_kind = self.zone().is_some() == other.zone().is_some();
        same_kind.then(|| self.since_midnight().cmp(&other.since_midnight()))
    }
}

impl PartialEq for FeelTime {
    fn eq(&self, other: &FeelTime) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }
}

impl FeelDateTime {
    /// A date-time; a date alone is not one here.
    pub fn parse(text: &str) -> Option<FeelDateTime> {
        let (date, time, zone) = iso::date_time(text)?;
        FeelDateTime::of(date, time, zone)
    }

    pub(crate) fn of(date: Date, time: Time, zone: Option<TimeZone>) -> Option<FeelDateTime> {
        let local = DateTime::from_parts(date, time);
        Some(match zone {
            Some(zone) => FeelDateTime::Zoned(zone.to_ambiguous_zoned_datetime(local).compatible().ok()?),
            None => FeelDateTime::Local(local),
        })
    }

    pub(crate) fn from_ms(ms: i64) -> Option<FeelDateTime> {
        let timestamp = Timestamp::from_millisecond(ms).ok()?;
        Some(FeelDateTime::Zoned(timestamp.to_zoned_datetime(TimeZone::UTC)))
    }

    /// Date and time of day as the zone's clocks show them.
    pub fn local(&self) -> DateTime {
        match self {
            FeelDateTime::Local(local) => *local,
            FeelDateTime::Zoned(zoned) => zoned.datetime(),
        }
    }

    pub(crate) fn zone(&self) -> Option<&TimeZone> {
        match self {
            FeelDateTime::Local(_) => None,
            FeelDateTime::Zoned(zoned) => Some(zoned.time_zone()),
        }
    }

    /// `None` when one has a zone and the other has not.
    pub(crate) fn compare(&self, other: &FeelDateTime) -> Option<Ordering> {
        match (self, other) {
            (FeelDateTime::Local(a), FeelDateTime::Local(b)) => Some(a.cmp(b)),
            (FeelDateTime::Zoned(a), FeelDateTime::Zoned(b)) => Some(a.timestamp().cmp(&b.timestamp())),
            _ => None,
        }
    }
}

/// The text of `@"…"`: a date, date-time, time or duration, whichever it is.
pub(crate) fn literal(text: &str) -> Option<Value> {
    iso::date(text)
        .map(Value::Date)
        .or_else(|| FeelDateTime::parse(text).map(Value::DateTime))
        .or_else(|| FeelTime::parse(text).map(Value::Time))
        .or_else(|| duration(text))
}

/// A duration of either kind; `None` for one that mixes months and days.
pub(crate) fn duration(text: &str) -> Option<Value> {
    let parsed = iso::duration(text)?;
    match (parsed.has_months, parsed.has_time) {
        (true, false) => Some(Value::YearsDuration(parsed.months)),
        (false, true) => Some(Value::DaysDuration(parsed.duration)),
        _ => None,
    }
}

/// A property such as `year`, `time offset` or `hours`. `None` if the value has no such property.
pub(crate) fn property(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Date(date) => date_property(*date, name),
        Value::Time(time) => time_property(time.time(), name).or_else(|| zone_property(time.zone(), None, name)),
        Value::DateTime(date_time) => {
            let offset = match date_time {
                FeelDateTime::Zoned(zoned) => Some(i64::from(zoned.offset().seconds())),
                FeelDateTime::Local(_) => None,
            };
            date_property(date_time.local().date(), name)
                .or_else(|| time_property(date_time.local().time(), name))
                .or_else(|| zone_property(date_time.zone(), offset, name))
        }
        Value::DaysDuration(duration) => days_property(duration.as_secs(), name),
        Value::YearsDuration(months) => match name {
            "years" => Some((months / 12).into()),
            "months" => Some((months % 12).into()),
            _ => None,
        },
        _ => None,
    }
}

fn date_property(date: Date, name: &str) -> Option<Value> {
    let number = match name {
        "year" => i64::from(date.year()),
        "month" => i64::from(date.month()),
        "day" => i64::from(date.day()),
        "weekday" => i64::from(date.weekday().to_monday_one_offset()),
        _ => return None,
    };
    Some(number.into())
}

fn time_property(time: Time, name: &str) -> Option<Value> {
    let number = match name {
        "hour" => time.hour(),
        "minute" => time.minute(),
        "second" => time.second(),
        _ => return None,
    };
    Some(i64::from(number).into())
}

fn zone_property(zone: Option<&TimeZone>, offset: Option<i64>, name: &str) -> Option<Value> {
    match (name, zone) {
        ("time offset", Some(zone)) => {
            let seconds = offset.unwrap_or_else(|| offset_seconds(zone));
            Some(Value::DaysDuration(SignedDuration::from_secs(seconds)))
        }
        ("timezone", Some(zone)) => Some(zone_name(zone).map_or(Value::Null, Value::from)),
        ("time offset" | "timezone", None) => Some(Value::Null),
        _ => None,
    }
}

fn days_property(seconds: i64, name: &str) -> Option<Value> {
    let number = match name {
        "days" => seconds / 86_400,
        "hours" => seconds / 3600 % 24,
        "minutes" => seconds / 60 % 60,
        "seconds" => seconds % 60,
        _ => return None,
    };
    Some(number.into())
}

/// The name of a zone with rules; a fixed offset (UTC counts as one) has none.
fn zone_name(zone: &TimeZone) -> Option<&str> {
    if zone.to_fixed_offset().is_ok() { None } else { zone.iana_name() }
}

fn offset_seconds(zone: &TimeZone) -> i64 {
    let winter = Timestamp::from_second(1_704_067_200).unwrap_or(Timestamp::UNIX_EPOCH);
    i64::from(zone.to_offset(winter).seconds())
}

/// The text of a temporal value. A named zone is written `@Area/City` as FEEL reads it back; `iso` writes
/// `+01:00[Area/City]`, which names the instant. Empty for other values.
pub(crate) fn text(value: &Value, iso: bool) -> String {
    match value {
        Value::Date(date) => date.to_string(),
        Value::Time(time) => format!("{}{}", time.time(), zone_text(time.zone(), None, iso)),
        Value::DateTime(FeelDateTime::Local(local)) => local.to_string(),
        Value::DateTime(FeelDateTime::Zoned(zoned)) => {
            let offset = i64::from(zoned.offset().seconds());
            format!("{}{}", zoned.datetime(), zone_text(Some(zoned.time_zone()), Some(offset), iso))
        }
        Value::DaysDuration(duration) => days_text(*duration),
        Value::YearsDuration(months) => years_text(*months),
        _ => String::new(),
    }
}

fn zone_text(zone: Option<&TimeZone>, offset: Option<i64>, iso: bool) -> String {
    let Some(zone) = zone else { return String::new() };
    let offset = offset_text(offset.unwrap_or_else(|| offset_seconds(zone)));
    match (zone_name(zone), iso) {
        (Some(name), true) => format!("{offset}[{name}]"),
        (Some(name), false) => format!("@{name}"),
        (None, _) => offset,
    }
}

fn offset_text(seconds: i64) -> String {
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let positive = seconds.abs();
    let mut text = format!("{sign}{:02}:{:02}", positive / 3600, positive / 60 % 60);
    if positive % 60 != 0 {
        let _ = write!(text, ":{:02}", positive % 60);
    }
    text
}

fn days_text(duration: SignedDuration) -> String {
    if duration.is_zero() {
        return "P0D".to_owned();
    }
    let sign = if duration.is_negative() { "-" } else { "" };
    let (seconds, nanos) = (duration.as_secs().unsigned_abs(), duration.subsec_nanos().unsigned_abs());
    let mut clock = unit(seconds / 3600 % 24, 'H') + &unit(seconds / 60 % 60, 'M');
    if nanos != 0 {
        let fraction = format!("{nanos:09}");
        let _ = write!(clock, "{}.{}S", seconds % 60, fraction.trim_end_matches('0'));
    } else {
        clock += &unit(seconds % 60, 'S');
    }
    let separator = if clock.is_empty() { "" } else { "T" };
    format!("{sign}P{}{separator}{clock}", unit(seconds / 86_400, 'D'))
}

fn years_text(months: i64) -> String {
    if months == 0 {
        return "P0Y".to_owned();
    }
    let sign = if months < 0 { "-" } else { "" };
    let months = months.unsigned_abs();
    format!("{sign}P{}{}", unit(months / 12, 'Y'), unit(months % 12, 'M'))
}

fn unit(amount: u64, unit: char) -> String {
    if amount == 0 { String::new() } else { format!("{amount}{unit}") }
}

/// Whole milliseconds as a number of the dialect.
pub(crate) fn millis(duration: SignedDuration) -> Number {
    Number::from_coefficient(duration.as_millis(), 0)
}
