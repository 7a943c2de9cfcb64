//! ISO 8601 texts: dates, times, zones and durations, in the forms that FEEL accepts.
//! It knows no value and no arithmetic.
//! Next: `temporal`, which makes values of them.

use jiff::SignedDuration;
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::timer::CalendarDuration;

/// `2024-06-30`, optionally with a minus sign.
pub(crate) fn date(text: &str) -> Option<Date> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year: i16 = digits(year)?.try_into().ok()?;
    let year = if unsigned.len() == text.len() { year } else { -year };
    Date::new(year, digits(month)?.try_into().ok()?, digits(day)?.try_into().ok()?).ok()
}

/// `10:30`, `10:30:00` or `10:30:00.123`, with whatever follows: `Z`, an offset, `@Area/City`, `+01:00[Area/City]`.
pub(crate) fn time(text: &str) -> Option<(Time, Option<TimeZone>)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(text.len());
    let (clock, rest) = text.split_at_checked(end)?;
    let zone = if rest.is_empty() { None } else { Some(zone(rest)?) };
    Some((clock_time(clock)?, zone))
}

/// A date, `T` and a time.
pub(crate) fn date_time(text: &str) -> Option<(Date, Time, Option<TimeZone>)> {
    let (day, rest) = text.split_once(['T', 't'])?;
    let (time, zone) = time(rest)?;
    Some((date(day)?, time, zone))
}

fn clock_time(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let third = parts.next().unwrap_or("00");
    let (second, fraction) = third.split_once('.').unwrap_or((third, ""));
    if parts.next().is_some() || [hour, minute, second].iter().any(|p| p.len() != 2) || text.ends_with('.') {
        return None;
    }
    let part = |p: &str| digits(p).and_then(|n| i8::try_from(n).ok());
    Time::new(part(hour)?, part(minute)?, part(second)?, nanoseconds(fraction)?).ok()
}

fn nanoseconds(fraction: &str) -> Option<i32> {
    if fraction.is_empty() {
        return Some(0);
    }
    let scale = 9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    i32::try_from(digits(fraction)? * 10_i64.pow(scale)).ok()
}

/// `Z`, `+01:00`, `-0530`, `@Europe/Berlin` or `+01:00[Europe/Berlin]`.
pub(crate) fn zone(text: &str) -> Option<TimeZone> {
    if let Some(name) = text.strip_prefix('@') {
        return named_zone(name);
    }
    if let Some((_, name)) = text.split_once('[') {
        return named_zone(name.strip_suffix(']')?);
    }
    if text.eq_ignore_ascii_case("z") {
        return Some(TimeZone::UTC);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let plain: String = text.get(1..)?.chars().filter(|c| *c != ':').collect();
    let field = |at: usize| plain.get(at..at + 2).map_or(Some(0), digits);
    if !matches!(plain.len(), 2 | 4 | 6) || field(2)? > 59 || field(4)? > 59 {
        return None;
    }
    let seconds = field(0)? * 3600 + field(2)? * 60 + field(4)?;
    fixed_zone(sign * seconds)
}

/// A zone with a fixed offset of at most 18 hours.
pub(crate) fn fixed_zone(seconds: i64) -> Option<TimeZone> {
    let bounded = i32::try_from(seconds).ok().filter(|s| s.abs() <= 18 * 3600)?;
    Some(TimeZone::fixed(Offset::from_seconds(bounded).ok()?))
}

/// A zone of the bundled database, or an offset in place of a name.
pub(crate) fn named_zone(name: &str) -> Option<TimeZone> {
    if name.starts_with(['+', '-', 'Z']) && !name.contains('[') {
        return if name.starts_with('Z') && name.len() > 1 { None } else { zone(name) };
    }
    if name.len() > 64 {
        return None;
    }
    TimeZoneDatabase::bundled().get(name).ok()
}

/// `P1Y2M`, `P3DT4H5M6.5S`, `P2W`, a sign before the `P` or before each number; years to seconds in one text are allowed.
pub(crate) fn duration(text: &str) -> Option<CalendarDuration> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(rest) => (-1_i128, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let body = body.strip_prefix('P')?;
    let (days, clock) = match body.split_once('T') {
        Some((days, clock)) if !clock.is_empty() => (days, clock),
        Some(_) => return None,
        None => (body, ""),
    };
    if days.is_empty() && clock.is_empty() {
        return None;
    }
    let mut months = 0_i128;
    let mut nanos = 0_i128;
    for (amount, unit) in amounts(days, "YMWD")? {
        match unit {
            'Y' => months += whole(amount)? * 12,
            'M' => months += whole(amount)?,
            'W' => nanos += whole(amount)? * 7 * NANOS_DAY,
            _ => nanos += whole(amount)? * NANOS_DAY,
        }
    }
    for (amount, unit) in amounts(clock, "HMS")? {
        match unit {
            'H' => nanos += whole(amount)? * 3600 * NANOS_SECOND,
            'M' => nanos += whole(amount)? * 60 * NANOS_SECOND,
            _ => nanos += seconds(amount)?,
        }
    }
    let duration = SignedDuration::try_from_nanos_i128(sign * nanos)?;
    let has_months = days.contains('Y') || days.contains('M');
    let has_time = !clock.is_empty() || days.contains('W') || days.contains('D');
    Some(CalendarDuration { months: i64::try_from(sign * months).ok()?, duration, has_months, has_time })
}

const NANOS_SECOND: i128 = 1_000_000_000;
const NANOS_DAY: i128 = 86_400 * NANOS_SECOND;

/// Splits `1Y-2M` into amounts with their units, which must come in the order of `units`, each once.
fn amounts<'a>(text: &'a str, units: &str) -> Option<Vec<(&'a str, char)>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut left = units;
    while !rest.is_empty() {
        let at = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (amount, tail) = rest.split_at_checked(at)?;
        let unit = tail.chars().next()?;
        left = left.get(left.find(unit)? + 1..)?;
        found.push((amount, unit));
        rest = tail.get(1..)?;
    }
    Some(found)
}

fn whole(amount: &str) -> Option<i128> {
    let (sign, unsigned) = signed(amount);
    Some(sign * i128::from(digits(unsigned)?))
}

/// An amount of seconds with up to nine digits after the point, in nanoseconds.
fn seconds(amount: &str) -> Option<i128> {
    let (sign, unsigned) = signed(amount);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    Some(sign * (i128::from(digits(whole)?) * NANOS_SECOND + i128::from(nanoseconds(fraction)?)))
}

fn signed(amount: &str) -> (i128, &str) {
    match amount.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, amount.strip_prefix('+').unwrap_or(amount)),
    }
}

/// One to eighteen decimal digits and nothing else.
fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
