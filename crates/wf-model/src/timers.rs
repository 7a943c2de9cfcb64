//! Timer definitions, and the literals in them: ISO 8601 durations, `R[n]/duration` cycles, dates with an offset.
//! It knows no clock: when a timer is due is the engine's arithmetic, with the same functions of `wf-feel`.
//! An expression is checked when it is evaluated.

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
        TimerKind::Duration => match length_ms(literal) {
            Some(0..) => Ok(()),
            _ => Err("a duration is written as in ISO 8601, such as PT15M or P1DT12H"),
        },
        TimerKind::Date if is_date(literal) => Ok(()),
        TimerKind::Date => Err("a date is written with time and offset, such as 2030-01-31T12:00:00Z"),
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
    if !times.is_empty() && !times.parse::<i32>().is_ok_and(|times| times > 0) {
        return Err(RULE);
    }
    match length_ms(interval).ok_or(RULE)? {
        1.. => Ok(()),
        _ => Err("a cycle's duration must be at least a millisecond"), // Else it would fire without end at one instant.
    }
}

/// Also none where it is too long to be added to any instant.
fn length_ms(duration: &str) -> Option<i64> {
    wf_feel::add_duration_ms(0, duration)
}

/// FEEL takes a date without an offset for UTC; whoever writes one into a model may well think of another place.
pub(crate) fn is_date(text: &str) -> bool {
    let has_zone = text.split_once('T').is_some_and(|(_, time)| time.contains(['Z', '+', '-', '@', '[']));
    has_zone && wf_feel::parse_instant_ms(text).is_some()
}
