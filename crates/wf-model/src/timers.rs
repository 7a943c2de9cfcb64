//! Timer definitions, and the literals in them: ISO 8601 durations, `R[n]/duration` cycles, dates with an offset.
//! It knows no clock: when a timer is due is the engine's arithmetic. An expression is checked when it is evaluated.

use crate::extensions;
use crate::graph::{Timer, TimerKind};
use crate::problem::Report;
use crate::xml::{self, BPMN, Node};

/// `None` where the definition is refused, which has been reported.
pub(crate) fn timer(definition: Node, allowed: &[TimerKind], report: &mut Report) -> Option<Timer> {
    let mut found = xml::children(definition, BPMN).filter_map(|child| Some((child, kind(xml::tag(child))?)));
    let Some((node, kind)) = found.next() else {
        report.refuse(definition, "the timer needs a timeDuration, timeDate or timeCycle");
        return None;
    };
    if found.next().is_some() {
        report.refuse(definition, "the timer has more than one time");
        return None;
    }
    if !allowed.contains(&kind) {
        report.refuse(node, "a timeCycle repeats: only a non-interrupting boundary event has one");
        return None;
    }
    let literal = xml::text(node);
    if literal.is_empty() {
        report.refuse(node, format!("the {} is empty", xml::tag(node)));
        return None;
    }
    let text = extensions::value(node, "the timer", &literal, report);
    if !literal.starts_with('=')
        && let Err(rule) = check(kind, &literal)
    {
        report.refuse(node, format!("{rule}, not {literal}"));
    }
    Some(Timer { kind, text })
}

fn kind(tag: &str) -> Option<TimerKind> {
    match tag {
        "timeDuration" => Some(TimerKind::Duration),
        "timeDate" => Some(TimerKind::Date),
        "timeCycle" => Some(TimerKind::Cycle),
        _ => None,
    }
}

fn check(kind: TimerKind, literal: &str) -> Result<(), &'static str> {
    match kind {
        TimerKind::Duration => {
            duration(literal).map(drop).ok_or("a duration is written as in ISO 8601, such as PT15M or P1DT12H")
        }
        TimerKind::Date => {
            is_date(literal).then_some(()).ok_or("a date is written with time and offset, such as 2030-01-31T12:00:00Z")
        }
        TimerKind::Cycle => cycle(literal),
    }
}

fn cycle(literal: &str) -> Result<(), &'static str> {
    const RULE: &str = "a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H";
    let Some(repeats) = literal.strip_prefix('R') else {
        return Err("a cycle is written as R[times]/duration (cron is not executed yet)");
    };
    let (times, interval) = repeats.split_once('/').ok_or(RULE)?;
    if interval.contains('/') {
        return Err("a cycle is written as R[times]/duration (a start or end is not executed yet)");
    }
    if !times.is_empty() && !times.parse::<u32>().is_ok_and(|times| times > 0) {
        return Err(RULE);
    }
    match duration(interval) {
        Some(Length::Positive) => Ok(()),
        Some(Length::Zero) => Err("a cycle's duration must be longer than zero"),
        None => Err(RULE),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Length {
    Zero,
    Positive,
}

/// `None` where it is not one.
fn duration(text: &str) -> Option<Length> {
    let period = text.strip_prefix('P')?;
    let (days, time) = match period.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None if period.is_empty() => return None,
        None => (period, ""),
    };
    Some(parts(days, "YMWD")?.max(parts(time, "HMS")?))
}

/// Numbers with a unit each, in the order of `units`. Only seconds have a fraction.
fn parts(mut text: &str, mut units: &str) -> Option<Length> {
    let mut length = Length::Zero;
    while !text.is_empty() {
        let end = text.find(|letter: char| letter.is_ascii_uppercase())?;
        let (number, unit) = (text.get(..end)?, text.get(end..end + 1)?);
        units = units.split_once(unit)?.1;
        text = text.get(end + 1..)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if !is_digits(whole, 9) || !is_digits(fraction, 9) || (number.contains('.') && unit != "S") {
            return None;
        }
        if number.contains(|digit| matches!(digit, '1'..='9')) {
            length = Length::Positive;
        }
    }
    Some(length)
}

/// `2030-01-31T12:00[:00[.123]](Z|+01:00)[[Zone/Name]]`: without an offset it would be another moment on another machine.
pub(crate) fn is_date(text: &str) -> bool {
    let (text, zone) = match text.split_once('[') {
        Some((text, zone)) => (text, zone.strip_suffix(']')),
        None => (text, Some("UTC")),
    };
    let is_zone = zone.is_some_and(|zone| {
        !zone.is_empty() && zone.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_+-".contains(letter))
    });
    is_zone && text.split_once('T').is_some_and(|(date, time)| is_day(date) && is_time_with_offset(time))
}

fn is_day(text: &str) -> bool {
    let fields: Vec<&str> = text.split('-').collect();
    let [year, month, day] = fields.as_slice() else { return false };
    let (Some(year), Some(month)) = (number(year, 4, 9999), number(month, 2, 12)) else { return false };
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    };
    month > 0 && number(day, 2, days).is_some_and(|day| day > 0)
}

fn is_time_with_offset(text: &str) -> bool {
    if let Some(time) = text.strip_suffix('Z') {
        return is_time(time);
    }
    let Some((time, offset)) = text.split_once(['+', '-']) else { return false };
    let is_offset = offset
        .split_once(':')
        .is_some_and(|(hours, minutes)| number(hours, 2, 18).is_some() && number(minutes, 2, 59).is_some());
    is_offset && is_time(time)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fields: Vec<&str> = clock.split(':').collect();
    let is_clock = match fields.as_slice() {
        [hours, minutes] => number(hours, 2, 23).is_some() && number(minutes, 2, 59).is_some() && clock == text,
        [hours, minutes, seconds] => {
            [(hours, 23), (minutes, 59), (seconds, 59)].iter().all(|(field, max)| number(field, 2, *max).is_some())
        }
        _ => false,
    };
    is_clock && is_digits(fraction, 9)
}

fn number(text: &str, width: usize, max: u32) -> Option<u32> {
    let number = text.parse().ok().filter(|number| *number <= max)?;
    (text.len() == width && is_digits(text, width)).then_some(number)
}

fn is_digits(text: &str, width_max: usize) -> bool {
    (1..=width_max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
