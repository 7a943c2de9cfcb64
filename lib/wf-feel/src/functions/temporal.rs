//! Functions that make dates, times and durations, or ask for the day.
//! It knows no clock but the evaluation's `now`.
//! Next: `conversions`.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use super::Builtin;
use crate::decimal::{self, Rounding};
use crate::eval::{Outcome, Run};
use crate::iso;
use crate::number::Number;
use crate::temporal::{self, FeelDateTime, FeelTime};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("now", &[&[]], now),
    Builtin::new("today", &[&[]], today),
    Builtin::new("date", &[&["from"], &["year", "month", "day"]], date),
    Builtin::new("time", &[&["from"], &["hour", "minute", "second"], &["hour", "minute", "second", "offset"]], time),
    Builtin::new("date and time", &[&["from"], &["date", "time"], &["date", "timezone"]], date_and_time),
    Builtin::new("duration", &[&["from"]], duration),
    Builtin::new("years and months duration", &[&["from", "to"]], years_and_months),
    Builtin::new("day of year", &[&["date"]], |_, arguments| {
        day(arguments, |date| i64::from(date.day_of_year()).into())
    }),
    Builtin::new("day of week", &[&["date"]], |_, arguments| day(arguments, weekday)),
    Builtin::new("month of year", &[&["date"]], |_, arguments| day(arguments, month)),
    Builtin::new("week of year", &[&["date"]], |_, arguments| {
        day(arguments, |date| i64::from(date.iso_week_date().week()).into())
    }),
    Builtin::new("last day of month", &[&["date"]], |_, arguments| {
        day(arguments, |date| Value::Date(date.last_of_month()))
    }),
];

fn now(run: &mut Run<'_>, _arguments: &[Value]) -> Outcome {
    Ok(FeelDateTime::from_ms(run.env.now_ms).map_or(Value::Null, Value::DateTime))
}

fn today(run: &mut Run<'_>, _arguments: &[Value]) -> Outcome {
    Ok(FeelDateTime::from_ms(run.env.now_ms).map_or(Value::Null, |now| Value::Date(now.local().date())))
}

fn date(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let date = match arguments {
        [Value::String(text)] => iso::date(text),
        [value] => date_of(value),
        [Value::Number(year), Value::Number(month), Value::Number(day)] => date_from(year, month, day),
        _ => None,
    };
    Ok(date.map_or(Value::Null, Value::Date))
}

fn date_of(value: &Value) -> Option<Date> {
    match value {
        Value::Date(date) => Some(*date),
        Value::DateTime(date_time) => Some(date_time.local().date()),
        _ => None,
    }
}

fn date_from(year: &Number, month: &Number, day: &Number) -> Option<Date> {
    let year = i16::try_from(decimal::truncate_to_i64(year)?).ok()?;
    Date::new(year, small(month)?, small(day)?).ok()
}

fn small(number: &Number) -> Option<i8> {
    i8::try_from(decimal::truncate_to_i64(number)?).ok()
}

fn time(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let time = match arguments {
        [Value::String(text)] => FeelTime::parse(text),
        [Value::Time(time)] => Some(time.clone()),
        [Value::DateTime(date_time)] => Some(with_zone(date_time.local().time(), date_time.zone())),
        [Value::Date(_)] => Some(FeelTime::Zoned(Time::midnight(), TimeZone::UTC)),
        [Value::Number(hour), Value::Number(minute), Value::Number(second)]
        | [Value::Number(hour), Value::Number(minute), Value::Number(second), Value::Null] => {
            clock(hour, minute, second).map(FeelTime::Local)
        }
        [Value::Number(hour), Value::Number(minute), Value::Number(second), Value::DaysDuration(offset)] => {
            clock(hour, minute, second)
                .zip(iso::fixed_zone(offset.as_secs()))
                .map(|(time, zone)| FeelTime::Zoned(time, zone))
        }
        _ => None,
    };
    Ok(time.map_or(Value::Null, Value::Time))
}

fn with_zone(time: Time, zone: Option<&TimeZone>) -> FeelTime {
    match zone {
        Some(zone) => FeelTime::Zoned(time, zone.clone()),
        None => FeelTime::Local(time),
    }
}

/// Seconds may have up to nine digits after the point.
fn clock(hour: &Number, minute: &Number, second: &Number) -> Option<Time> {
    let nanos = decimal::multiply(second, &Number::from(1_000_000_000))?;
    let nanos = decimal::round(&nanos, 0, Rounding::Down)?.to_i64()?;
    let seconds = i8::try_from(nanos / 1_000_000_000).ok()?;
    Time::new(small(hour)?, small(minute)?, seconds, i32::try_from(nanos % 1_000_000_000).ok()?).ok()
}

fn date_and_time(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let date_time = match arguments {
        [Value::String(text)] => match iso::date(text) {
            Some(date) => FeelDateTime::of(date, Time::midnight(), None),
            None => FeelDateTime::parse(text),
        },
        [value @ Value::DateTime(_)] => return Ok(value.clone()),
        [Value::DateTime(date_time), Value::String(zone)] => iso::named_zone(zone).and_then(|zone| match date_time {
            FeelDateTime::Local(local) => FeelDateTime::of(local.date(), local.time(), Some(zone)),
            FeelDateTime::Zoned(zoned) => Some(FeelDateTime::Zoned(zoned.with_time_zone(zone))),
        }),
        [date, Value::Time(time)] => date_of(date).and_then(|date| match time {
            FeelTime::Local(time) => FeelDateTime::of(date, *time, None),
            FeelTime::Zoned(time, zone) => FeelDateTime::of(date, *time, Some(zone.clone())),
        }),
        _ => None,
    };
    Ok(date_time.map_or(Value::Null, Value::DateTime))
}

fn duration(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::String(text)] => temporal::duration(text).unwrap_or(Value::Null),
        [value @ (Value::DaysDuration(_) | Value::YearsDuration(_))] => value.clone(),
        _ => Value::Null,
    })
}

/// The whole months between two dates.
fn years_and_months(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [from, to] = arguments else {
        return Ok(Value::Null);
    };
    Ok(match (date_of(from), date_of(to)) {
        (Some(from), Some(to)) => Value::YearsDuration(whole_months(from, to)),
        _ => Value::Null,
    })
}

fn whole_months(from: Date, to: Date) -> i64 {
    let index = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month());
    let months = index(to) - index(from);
    match months {
        forward if forward > 0 && to.day() < from.day() => forward - 1,
        back if back < 0 && to.day() > from.day() => back + 1,
        exact => exact,
    }
}

fn day(arguments: &[Value], answer: fn(Date) -> Value) -> Outcome {
    let [value] = arguments else {
        return Ok(Value::Null);
    };
    Ok(date_of(value).map_or(Value::Null, answer))
}

fn weekday(date: Date) -> Value {
    const NAMES: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let at = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or(0);
    NAMES.get(at).map_or(Value::Null, |name| Value::from(*name))
}

fn month(date: Date) -> Value {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let at = usize::try_from(date.month() - 1).unwrap_or(0);
    NAMES.get(at).map_or(Value::Null, |name| Value::from(*name))
}
