//! Variables: scopes, merges, mappings, scripts, what a failed evaluation leaves. Case #42.

use expect_test::expect;
use wf_core::rows::ScopeState;
use wf_core::{Outcome, Rejection};

use crate::common::{World, vars};

/// A job in a sub-process that has `x`; the root has `x` and `y`.
const SCOPED: &str = "
    start s -> c
    sub c -> after {
    in x = 10
    start s1 -> a
    job a -> b
    MAPPING
    job b
    }
    job after";

/// Case #42: (mappings of job `a`, what it completes with) → what the sub-process and the root have then.
#[test]
fn a_merge_goes_up_and_mappings_keep_it_local() {
    let rows = [
        ("", "x=11; y=3; z=4", "{x:11}", "{x:1,y:3,z:4}"),
        ("in y = 5", "x=11; y=6", "{x:11}", "{x:1,y:2}"),
        ("out z = x + y", "x=11", "{x:10}", "{x:1,y:2,z:13}"),
        ("out x = x * 2", "x=11; y=99", "{x:22}", "{x:1,y:2}"),
        ("in l = x + 1\nout z = [l, r]", "r=7", "{x:10}", "{x:1,y:2,z:[11,7]}"),
        ("out o.p.q = r\nout o.p.n = 1\nout z = o.p.n", "r=7", "{x:10}", "{o:{\"p\":{\"q\":7,\"n\":1}},x:1,y:2,z:1}"),
    ];
    for (mapping, completed_with, inner, root) in rows {
        let mut world = World::with(&[("p", &SCOPED.replace("MAPPING", mapping))]);
        let instance = world.start("p", "x=1; y=2");
        world.work("a", completed_with);
        let scope = world.sub_scopes()[0];
        assert_eq!([world.variables(scope), world.variables(instance)], [inner, root], "{mapping:?}");
        // What is local to the sub-process ends with it.
        world.work("b", "");
        assert_eq!(world.job("after").variables, vars_of(root), "{mapping:?}");
    }
}

fn vars_of(object: &str) -> Vec<(wf_core::rows::Text, wf_core::rows::Json)> {
    let wf_feel::Value::Context(members) = wf_feel::Value::from_json(&quoted(object)).unwrap() else { panic!() };
    members.iter().map(|(name, value)| (name.clone(), value.to_json().unwrap().into())).collect()
}

/// The trace's object has names without quotes.
fn quoted(object: &str) -> String {
    let mut out = String::new();
    let mut previous = ' ';
    for letter in object.chars() {
        let begins = letter.is_ascii_alphabetic() && matches!(previous, '{' | ',');
        let ends = letter == ':' && previous.is_ascii_alphanumeric();
        out.push_str(if begins || ends { "\"" } else { "" });
        out.push(letter);
        previous = letter;
    }
    out
}

/// A nested target keeps the members beside it; what is no object gives way.
#[test]
fn nested_targets() {
    for (before, after) in
        [("{\"n\":1}", "{\"n\":1,\"m\":{\"k\":2}}"), ("5", "{\"m\":{\"k\":2}}"), ("null", "{\"m\":{\"k\":2}}")]
    {
        let mut world = World::with(&[(
            "p",
            "start s -> a
             job a -> b
             out o.m.k = 2
             job b",
        )]);
        let instance = world.start("p", &format!("o={before}"));
        world.work("a", "");
        assert_eq!(world.variables(instance), format!("{{o:{after}}}"));
    }
}

/// A nested input begins empty: what stands around it is not copied into the element.
#[test]
fn nested_inputs() {
    let mut world = World::with(&[(
        "p",
        "start s -> a
         job a -> e
         in o.m = 1
         in o.n = o.m + 1
         end e",
    )]);
    let instance = world.start("p", "o={\"x\":5}");
    assert_eq!(world.activate("a", "w", 1)[0].variables, vec![("o".into(), "{\"m\":1,\"n\":2}".into())]);
    assert_eq!(world.variables(instance), "{o:{\"x\":5}}");
}

/// The worker sees what is visible from its element, the nearest first, or what it asks for.
#[test]
fn what_a_worker_sees() {
    let mut world = World::with(&[("p", &SCOPED.replace("MAPPING", "in l = x + y"))]);
    world.start("p", "x=1; y=2");
    assert_eq!(world.activate("a", "w", 1)[0].variables, vars("l=12; x=10; y=2"));
    world.advance(crate::common::LEASE_MS);
    let fetch = Some(vec!["x".into(), "l".into(), "nothing".into()]);
    let (job_type, worker) = ("a".into(), "w".into());
    let command = wf_core::Command::ActivateJobs { job_type, worker, jobs_max: 1, lease_ms: 1, fetch };
    let Ok(Outcome::Activated(jobs)) = world.run(command) else { panic!() };
    assert_eq!(jobs[0].variables, vars("l=12; x=10"));
}

/// Exactly that scope: the root, a sub-process, a waiting task; a key of something else is refused.
#[test]
fn set_from_outside() {
    let mut world = World::with(&[("p", &SCOPED.replace("MAPPING", ""))]);
    let other = world.start("p", "");
    let instance = world.start("p", "x=1");
    let scope = world.sub_scopes()[1];
    let task = world.activate("a", "w", 9).remove(1).job;
    assert_eq!(world.set(instance, None, "x=2"), Ok(Outcome::VariablesSet { key: instance }));
    assert_eq!(world.set(instance, Some(scope), "x=3; s=1"), Ok(Outcome::VariablesSet { key: scope }));
    assert_eq!(world.set(instance, Some(task.element_key), "x=4"), Ok(Outcome::VariablesSet { key: task.element_key }));
    let shown = [instance, scope, task.element_key].map(|key| world.variables(key));
    assert_eq!(shown, ["{x:2}", "{s:1,x:3}", "{x:4}"]);
    for unknown in [other, 4_711, task.key] {
        let refused = world.set(instance, Some(unknown), "x=5");
        assert!(matches!(refused, Err(Rejection::Invalid { field: "scope", .. })), "{refused:?}");
    }
    world.complete(&task, "x=6").unwrap();
    assert_eq!([instance, scope].map(|key| world.variables(key)), ["{x:2}", "{s:1,x:3}"]);
}

/// A script's result is merged like a worker's.
#[test]
fn scripts() {
    for (mapping, expected) in
        [("", "{n:2,r:4}"), ("in r = 0", "{n:2}"), ("out t = r + 1", "{n:2,t:5}"), ("in m = n\nout t = m", "{n:2,t:2}")]
    {
        let mut world = World::with(&[(
            "p",
            &format!(
                "start s -> c
                 script c expression==n*2 result=r -> w
                 {mapping}
                 job w"
            ),
        )]);
        let instance = world.start("p", "n=2");
        assert_eq!(world.variables(instance), expected, "{mapping:?}");
    }
}

/// What fails parks the element with an incident; nothing is half done, and resolve tries the same step again.
#[test]
fn what_cannot_be_evaluated_waits() {
    let rows = [
        ("job a -> e\nin i = assert(n, n > 0)", "IO_MAPPING_ERROR"),
        ("job a type==kind -> e", "EXTRACT_VALUE_ERROR"),
        ("script a expression==assert(n,n>0) result=r -> e", "EXTRACT_VALUE_ERROR"),
        ("receive a msg=go key==n.m -> e", "MESSAGE_KEY_ERROR"),
        ("catch a timer==wait -> e", "TIMER_ERROR"),
        ("job a -> e\nboundary b on=a timer==wait -> e", "TIMER_ERROR"),
        ("job a -> e\nboundary b on=a msg=go key==n.m -> e", "MESSAGE_KEY_ERROR"),
        ("job a -> e\nboundary b on=a cycle==rounds nonint -> e", "TIMER_ERROR"),
        ("sub a -> e {\nin i = assert(n, n > 0)\nstart s1 -> x\njob x type=a\n}", "IO_MAPPING_ERROR"),
        ("task a -> e\nout i = assert(n, n > 0)", "IO_MAPPING_ERROR"),
    ];
    for (lines, kind) in rows {
        let mut world = World::with(&[("p", &format!("start s -> a\n{lines}\nend e"))]);
        let instance = world.start("p", "n={}; wait=\"soon\"; rounds=\"R0/PT1S\"");
        let incidents = world.incidents();
        assert_eq!(incidents.len(), 1, "{lines}: {}", world.trace());
        assert_eq!((incidents[0].kind.name(), &*incidents[0].element_id), (kind, "a"), "{lines}");
        let rights = "n=1; kind=\"a\"; wait=\"PT1S\"; rounds=\"R2/PT1S\"";
        let rights = if lines.contains("n.m") { "n={\"m\":\"7\"}" } else { rights };
        world.set(instance, None, rights).unwrap();
        world.resolve(None).unwrap();
        assert_eq!(world.incidents(), [], "{lines}");
        if lines.starts_with("job") || lines.starts_with("sub") {
            world.work("a", "");
        }
        world.publish("go", "7", 0, "");
        world.advance(1_000);
        assert_eq!(world.state(instance), ScopeState::Completed, "{lines}");
    }
}

/// An output mapping that fails: the job is done and stays so; what it brought is kept for the next try.
#[test]
fn what_cannot_be_mapped_out_waits() {
    let lines = |element: &str| format!("start s -> a\n{element} -> e\nout r = assert(n + m, m > 0)\nend e");
    type Script = fn(&mut World);
    let rows: [(&str, Script); 5] = [
        ("job a", |world| world.work("a", "n=1")),
        ("receive a msg=go key=k", |world| assert_eq!(world.publish("go", "k", 0, "n=1"), 1)),
        ("catch a msg=go key=k", |world| assert_eq!(world.publish("go", "k", 0, "n=1"), 1)),
        ("job x -> e\nboundary a on=x msg=go key=k", |world| assert_eq!(world.publish("go", "k", 0, "n=1"), 1)),
        ("job x -> e\nboundary a on=x error=bad", |world| {
            let job = world.job("x").job;
            world.throw(&job, "bad", "n=1").unwrap();
        }),
    ];
    for (element, script) in rows {
        let begin = if element.contains("boundary") { "x" } else { "a" };
        let mut world = World::with(&[("p", &lines(element).replace("s -> a", &format!("s -> {begin}")))]);
        let instance = world.start("p", "m=\"\"");
        script(&mut world);
        let incident = world.incidents().remove(0);
        assert_eq!((incident.kind.name(), &*incident.element_id, incident.job), ("IO_MAPPING_ERROR", "a", 0));
        world.set(instance, None, "m=2").unwrap();
        world.resolve(None).unwrap();
        assert_eq!(world.variables(instance), "{m:2,r:3}", "{element}");
        assert_eq!(world.state(instance), ScopeState::Completed, "{element}");
    }
}

/// The same for a sub-process: its content is over, its variables are kept; what waits around it may still end it.
#[test]
fn a_sub_process_that_cannot_be_mapped_out_waits() {
    let lines = "
        start s -> c
        sub c -> e {
        in i = 1
        out r = assert(i + m, m > 0)
        start s1 -> a
        job a
        }
        boundary b on=c timer=PT10S -> late
        job late -> e
        end e";
    let mut resolved = World::with(&[("p", lines)]);
    let instance = resolved.start("p", "m=\"\"");
    resolved.work("a", "");
    expect![[r#"
        instance.started p v1 {m:""}
        element.completed s
        timer.scheduled b +10000
        element.activated c
        element.completed s1
        job.created a a
        job.activated a w
        job.completed a
        incident.created c IO_MAPPING_ERROR: expression 'assert(i + m, m > 0)': the condition is not fulfilled
    "#]]
    .assert_eq(&resolved.trace());
    resolved.set(instance, None, "m=2").unwrap();
    resolved.resolve(None).unwrap();
    assert_eq!((resolved.variables(instance).as_str(), resolved.state(instance)), ("{m:2,r:3}", ScopeState::Completed));

    let mut interrupted = World::with(&[("p", lines)]);
    let instance = interrupted.start("p", "m=\"\"");
    interrupted.work("a", "");
    interrupted.advance(10_000);
    interrupted.work("late", "");
    assert_eq!(interrupted.state(instance), ScopeState::Completed);
}
