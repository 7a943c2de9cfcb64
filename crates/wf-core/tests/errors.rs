//! Errors thrown by workers and by end events: who catches them, and what waits when nobody does.

use expect_test::expect;
use wf_core::Outcome;
use wf_core::rows::{JobState, ScopeState};

use crate::common::World;

/// A worker in two sub-processes; each level catches what it says.
fn nested(on_task: &str, on_inner: &str, on_outer: &str) -> World {
    let catch = |id: &str, host: &str, code: &str, target: &str| match code {
        "" => String::new(),
        code => format!("boundary {id} on={host} error={code} -> {target}\n"),
    };
    let lines = format!(
        "start s -> outer
         sub outer -> e {{
         start s1 -> inner
         sub inner -> e1 {{
         start s2 -> a
         job a -> e2
         {}
         end e2
         }}
         {}
         end e1
         }}
         {}
         end e",
        catch("on_task", "a", on_task, "e2"),
        catch("on_inner", "inner", on_inner, "e1"),
        catch("on_outer", "outer", on_outer, "e"),
    );
    World::with(&[("p", &lines)])
}

/// The nearest level that catches the code; on one level the exact code before a catch-all.
#[test]
fn the_nearest_catches() {
    let rows = [
        (["x", "x", "x"], Some("on_task")),
        (["y", "x", "x"], Some("on_inner")),
        (["", "", "x"], Some("on_outer")),
        (["", "*", "x"], Some("on_inner")),
        (["*", "x", ""], Some("on_task")),
        (["y", "", "y"], None),
    ];
    for ([task, inner, outer], expected) in rows {
        let mut world = nested(task, inner, outer);
        let instance = world.start("p", "");
        let job = world.job("a").job;
        let outcome = world.throw(&job, "x", "").unwrap();
        let Outcome::ErrorThrown { caught_by, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(caught_by.as_deref(), expected, "{task} {inner} {outer}");
        let is_completed = world.state(instance) == ScopeState::Completed;
        assert_eq!(is_completed, expected.is_some());
    }
}

#[test]
fn an_exact_code_before_a_catch_all() {
    let lines = "
        start s -> a
        job a -> e
        boundary any on=a error=* -> e
        boundary exact on=a error=x -> e
        end e";
    for (code, expected) in [("x", "exact"), ("y", "any"), ("", "any")] {
        let mut world = World::with(&[("p", lines)]);
        world.start("p", "");
        let job = world.job("a").job;
        let caught_by = Some(expected.into());
        assert_eq!(world.throw(&job, code, ""), Ok(Outcome::ErrorThrown { state: JobState::Canceled, caught_by }));
    }
}

/// Nobody catches it: an incident; the job can be tried again, and may throw what is caught.
#[test]
fn an_uncaught_error_of_a_worker() {
    let mut world = nested("y", "", "");
    let instance = world.start("p", "");
    let job = world.job("a").job;
    world.trace();
    world.throw(&job, "x", "detail=1").unwrap();
    expect![[r#"
        job.error-thrown a x caught by nobody
        variables.set {detail:1} (inner)
        incident.created a UNHANDLED_ERROR_EVENT: error 'x' is thrown by the worker and nothing catches it
    "#]]
    .assert_eq(&world.trace());
    world.resolve(None).unwrap();
    let again = world.job("a");
    assert_eq!((again.job.key, again.job.retries, again.variables.len()), (job.key, 3, 1));
    world.throw(&again.job, "y", "").unwrap();
    assert_eq!(world.state(instance), ScopeState::Completed);
}

/// An error end event: caught around it, with a computed code; its siblings end.
#[test]
fn an_error_end() {
    let mut world = World::with(&[(
        "p",
        "start s -> c
         sub c -> e {
         start s1 -> g
         and g -> a, b
         job a
         job b -> x
         end x error==code
         }
         boundary caught on=c error=known -> after
         job after -> e
         end e",
    )]);
    let instance = world.start("p", "code=\"unknown\"");
    world.work("b", "");
    expect![[r#"
        instance.started p v1 {code:"unknown"}
        element.completed s
        element.activated c
        element.completed s1
        element.completed g
        job.created a a
        job.created b b
        job.activated b w
        job.completed b
        incident.created x UNHANDLED_ERROR_EVENT: error 'unknown' is thrown here and nothing catches it
    "#]]
    .assert_eq(&world.trace());
    world.set(instance, None, "code=\"known\"").unwrap();
    world.resolve(None).unwrap();
    expect![[r#"
        variables.set {code:"known"}
        incident.resolved
        element.completed x
        job.canceled a
        element.terminated a
        element.terminated c
        element.completed caught
        job.created after after
    "#]]
    .assert_eq(&world.trace());
    world.work("after", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
}

/// What an error brings is written where it is caught, through the event's mappings if it has any; on an activity and
/// on a sub-process alike.
#[test]
fn variables_of_an_error() {
    let lines = |mapping: &str| {
        format!(
            "start s -> c
             sub c -> e {{
             in here = 1
             start s1 -> a
             job a
             }}
             boundary caught on=c error=x -> e
             {mapping}
             boundary also on=c error=y -> e
             end e"
        )
    };
    let run = |mapping: &str| {
        let mut world = World::with(&[("p", &lines(mapping))]);
        let instance = world.start("p", "");
        let job = world.job("a").job;
        world.throw(&job, "x", "a=1; here=2").unwrap();
        assert_eq!(world.state(instance), ScopeState::Completed);
        world.variables(instance)
    };
    assert_eq!(run(""), "{a:1,here:2}");
    assert_eq!(run("out b = a + 1"), "{b:2}");
}
