//! Timers: durations, dates, cycles without drift, what comes too late. Numbers are those of the acceptance list.

use wf_core::rows::ScopeState;
use wf_core::{Command, Row};

use crate::common::{START, World};

/// When the event fires, in milliseconds since the start; times that are not computable are in `variables.rs`.
#[test]
fn when_a_timer_is_due() {
    let rows = [
        ("timer=PT1.5S", 1_500),
        ("timer==span", 86_400_000),
        ("timer==duration(\"PT2S\")", 2_000),
        ("timer=PT0S", 0),
        ("date=2027-01-15T08:00:01Z", 1_000),
        ("date=2027-01-15T10:00:01+02:00", 1_000),
        ("date==at", 3_000),
        ("date=2020-01-01T00:00:00Z", 0),
    ];
    assert_eq!(START, 1_800_000_000_000, "2027-01-15T08:00:00Z");
    for (attribute, due_ms) in rows {
        let mut world = World::with(&[("p", &format!("start s -> c\ncatch c {attribute} -> e\nend e"))]);
        let instance = world.start("p", "span=\"P1D\"; at=\"2027-01-15T08:00:03Z\"");
        if due_ms > 0 {
            world.advance(due_ms - 1);
            assert_eq!(world.state(instance), ScopeState::Active, "{attribute}");
            world.advance(1);
        } else {
            world.advance(0);
        }
        assert_eq!(world.state(instance), ScopeState::Completed, "{attribute}");
    }
}

/// Case #35: exactly n firings, each counted from the one before, however late the engine looks.
#[test]
fn a_cycle_does_not_drift() {
    let run = |cycle: &str, looks: &[i64]| {
        let mut world = World::with(&[(
            "p",
            &format!("start s -> a\njob a -> e\nboundary b on=a cycle={cycle} nonint -> side\njob side\nend e"),
        )]);
        world.start("p", "");
        world.trace();
        let mut fired = Vec::new();
        for ms in looks {
            world.advance(*ms);
            fired.push(world.activate_for("side", "w", 99, 1_000_000).len());
        }
        (fired, world.count(|row| matches!(row, Row::Timer(_))), world.trace())
    };
    let (fired, left, trace) = run("R3/PT10S", &[10_000, 9_999, 1, 10_000, 10_000]);
    assert_eq!((fired, left), (vec![1, 0, 1, 1, 0], 0));
    assert!(trace.contains("timer.scheduled b +20000") && trace.contains("timer.scheduled b +30000"), "{trace}");
    // It looks five seconds late: the next one is due at 20 s all the same; and what was missed is made up for.
    assert_eq!(run("R3/PT10S", &[15_000, 5_000, 10_000]).0, [1, 1, 1]);
    assert_eq!(run("R3/PT10S", &[60_000]).0, [3]);
    let (fired, left, _) = run("R/PT10S", &[10_000, 10_000, 30_000]);
    assert_eq!((fired, left), (vec![1, 1, 3], 1));
}

/// Case #36: fired twice, fired under another time, fired before its time.
#[test]
fn what_comes_too_late_or_early() {
    let mut world = World::with(&[(
        "p",
        "start s -> a\njob a -> e\nboundary b on=a cycle=R2/PT10S nonint -> side\njob side\nend e",
    )]);
    world.start("p", "");
    let Some((timer, due)) = world.rows.values().find_map(|row| match row {
        Row::Timer(timer) => Some((timer.key, timer.due)),
        _ => None,
    }) else {
        panic!()
    };
    assert!(!world.own(Command::FireTimer { timer, due }), "before its time");
    world.now += 10_000;
    assert!(!world.own(Command::FireTimer { timer, due: due - 1 }), "another time");
    assert!(world.own(Command::FireTimer { timer, due }));
    assert!(!world.own(Command::FireTimer { timer, due }), "twice");
    world.work("a", "");
    world.now += 10_000;
    assert!(!world.own(Command::FireTimer { timer, due: due + 10_000 }), "its element is gone");
}
