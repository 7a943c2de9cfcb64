//! Jobs: leases, late workers, failures and back-off, steps, headers, lineage. Numbers are those of the acceptance list.

use expect_test::expect;
use wf_core::command::Holder;
use wf_core::outcome::{LeaseLost, Noun};
use wf_core::rows::{Job, JobState, ScopeState};
use wf_core::{Command, Outcome, Rejection};

use crate::common::{LEASE_MS, World, vars};

const TASK: &str = "
    start s -> a
    job a -> e
    end e";

fn world() -> World {
    World::with(&[("p", TASK)])
}

fn lost(reason: LeaseLost) -> Result<Outcome, Rejection> {
    Err(Rejection::LeaseLost(reason))
}

/// What became of the job since worker `w` leased it.
#[derive(Clone, Copy, Debug)]
enum Since {
    /// The lease is over; swept or not.
    Expired {
        swept: bool,
    },
    /// Another activation, by the same worker's name or another one.
    Taken {
        by: &'static str,
    },
    TakenAndCompleted,
    FailedForNow,
    Backoff,
    FailedForGood,
    ErrorThrown,
    ErrorCaught,
    Completed,
    Canceled,
    /// The instance is being canceled in slices.
    Terminating,
}

impl Since {
    fn happen(self, world: &mut World, job: &Job) {
        match self {
            Since::Expired { swept: true } => world.advance(LEASE_MS),
            Since::Expired { swept: false } => world.now += LEASE_MS,
            Since::Taken { by } => {
                world.advance(LEASE_MS);
                assert_eq!(world.activate("a", by, 1).len(), 1);
            }
            Since::TakenAndCompleted => {
                world.advance(LEASE_MS);
                let other = world.activate("a", "v", 1).remove(0);
                world.complete(&other.job, "").unwrap();
            }
            Since::FailedForNow => drop(world.fail(job, None, 0).unwrap()),
            Since::Backoff => drop(world.fail(job, None, 1_000).unwrap()),
            Since::FailedForGood => drop(world.fail(job, Some(0), 0).unwrap()),
            Since::ErrorThrown => drop(world.throw(job, "other", "").unwrap()),
            Since::ErrorCaught => drop(world.throw(job, "known", "").unwrap()),
            Since::Completed => drop(world.complete(job, "x=1").unwrap()),
            Since::Canceled => drop(world.cancel(job.root).unwrap()),
            Since::Terminating => {
                (world.is_cold_too, world.is_checked) = (false, false);
                (0..600).for_each(|_| assert_eq!(world.publish("more", "k", 0, ""), 1));
                world.cancel(job.root).unwrap();
                assert_eq!(world.state(job.root), ScopeState::Terminating);
            }
        }
    }
}

/// Who comes late: the holder, the holder without its lease, another worker, the holder of an older activation.
fn late(job: &Job) -> [Holder; 4] {
    let holder = |worker: &str, lease| Holder { job: job.key, worker: worker.into(), lease };
    [holder("w", Some(job.lease)), holder("w", None), holder("u", None), holder("w", Some(job.lease - 1))]
}

/// L3.3, cases #12 to #15, #19: (state × holder × time) → why the job is lost. The same whatever is asked of it.
#[test]
fn late_workers() {
    use LeaseLost::{Expired, Finished, Taken};
    let rows = [
        (Since::Expired { swept: false }, [Expired, Expired, Taken, Taken]),
        (Since::Expired { swept: true }, [Expired, Expired, Taken, Taken]),
        (Since::Taken { by: "v" }, [Taken; 4]),
        (Since::TakenAndCompleted, [Finished; 4]),
        (Since::FailedForNow, [Taken; 4]),
        (Since::Backoff, [Taken; 4]),
        (Since::FailedForGood, [Taken; 4]),
        (Since::ErrorThrown, [Taken; 4]),
        (Since::ErrorCaught, [Finished; 4]),
        (Since::Completed, [Finished; 4]),
        (Since::Canceled, [Finished; 4]),
        (Since::Terminating, [Finished; 4]),
    ];
    for (since, reasons) in rows {
        let mut world = World::with(&[(
            "p",
            "start s -> a
             job a -> e
             boundary b on=a error=known -> e
             boundary m on=a msg=more key=k nonint -> side
             job side
             end e",
        )]);
        world.start("p", "");
        let job = world.job("a").job;
        since.happen(&mut world, &job);
        world.trace();
        for (holder, reason) in late(&job).into_iter().zip(reasons) {
            for command in asked(&holder) {
                assert_eq!(world.run(command), lost(reason), "{since:?}: {holder:?}");
            }
        }
        assert_eq!(world.trace(), "\n", "{since:?}: a late worker changed something");
    }
}

fn asked(holder: &Holder) -> Vec<Command> {
    let holder = || holder.clone();
    vec![
        Command::CompleteJob { holder: holder(), variables: vars("y=1") },
        Command::FailJob { holder: holder(), message: "".into(), retries: None, backoff_ms: 0, variables: vars("y=1") },
        Command::ThrowError { holder: holder(), code: "known".into(), message: "".into(), variables: vars("") },
        Command::ExtendLease { holder: holder(), lease_ms: 1 },
        Command::RecordStep { holder: holder(), name: "n".into(), result: "1".into() },
    ]
}

/// Workers that share a name must send the lease: without it the current activation answers.
#[test]
fn without_a_lease_the_name_counts() {
    let mut world = world();
    world.start("p", "");
    let old = world.job("a").job;
    Since::Taken { by: "w" }.happen(&mut world, &old);
    let [with_lease, nameless, ..] = late(&old);
    let complete = |holder| Command::CompleteJob { holder, variables: vars("") };
    assert_eq!(world.run(complete(with_lease)), lost(LeaseLost::Taken));
    assert_eq!(world.run(complete(nameless)), Ok(Outcome::Completed { duplicate: false }));
}

/// L3.4, case #12: the holder's own repeat, then the same with other variables, and by anybody else.
#[test]
fn a_completion_is_repeated() {
    let mut world = world();
    let instance = world.start("p", "");
    let job = world.job("a").job;
    Since::Completed.happen(&mut world, &job);
    world.advance(10 * LEASE_MS);
    let complete = |holder, variables| Command::CompleteJob { holder, variables: vars(variables) };
    let [own, nameless, other, stale] = late(&job);
    assert_eq!(world.run(complete(own.clone(), "x=1")), Ok(Outcome::Completed { duplicate: true }));
    assert_eq!(world.run(complete(nameless, "x=1")), Ok(Outcome::Completed { duplicate: true }));
    for (holder, variables) in [(own, "x=2"), (other, "x=1"), (stale, "x=1")] {
        assert_eq!(world.run(complete(holder, variables)), lost(LeaseLost::Finished));
    }
    assert_eq!(world.variables(instance), "{x:1}");
}

/// Also another tenant's: its existence is not revealed.
#[test]
fn unknown_jobs() {
    let mut world = world();
    world.start("p", "");
    let job = world.job("a").job;
    world.tenant = "other".into();
    assert_eq!(world.complete(&job, ""), Err(Rejection::NotFound(Noun::Job)));
    assert_eq!(world.activate("a", "w", 1).len(), 0);
}

/// L3.1: priority descending, key ascending; only as many as asked for, each once.
#[test]
fn the_order_of_activation() {
    let mut world = World::with(&[("p", &TASK.replace("job a", "job a priority==urgency"))]);
    let instances = [1, 5, 1, -3].map(|urgency| world.start("p", &format!("urgency={urgency}")));
    let first = world.activate("a", "w", 3);
    let roots: Vec<u64> = first.iter().map(|job| job.job.root).collect();
    assert_eq!(roots, [instances[1], instances[0], instances[2]]);
    assert_eq!(world.activate("a", "w", 3).len(), 1);
    assert_eq!(world.activate("a", "w", 3).len(), 0);
}

/// L3.2, cases #14 and #16: at the deadline, not before; retries and key stay; another lease.
#[test]
fn many_leases_run_out_at_once() {
    let mut world = world();
    for _ in 0..3 {
        world.start("p", "");
    }
    let first = world.activate("a", "w", 3);
    world.advance(LEASE_MS - 1);
    assert_eq!(world.activate("a", "v", 3).len(), 0);
    world.advance(1);
    let second = world.activate("a", "v", 3);
    let kept = |jobs: &[wf_core::outcome::Activated]| -> Vec<_> {
        jobs.iter().map(|job| (job.job.key, job.job.retries, job.job.lineage)).collect()
    };
    assert_eq!(kept(&first), kept(&second));
    assert!(first[0].job.lease < second[0].job.lease);
}

/// Case #17: from now, longer or shorter; the old end is forgotten.
#[test]
fn leases_are_extended() {
    for (lease_ms, is_live) in [(LEASE_MS, true), (1, false)] {
        let mut world = world();
        world.start("p", "");
        let job = world.job("a").job;
        world.advance(LEASE_MS / 2);
        assert_eq!(world.extend(&job, lease_ms), Ok(Outcome::Extended { deadline: world.now + lease_ms }));
        world.advance(LEASE_MS / 2);
        assert_eq!(world.activate("a", "v", 1).is_empty(), is_live, "{lease_ms}");
    }
}

/// L3.5, case #18: (retries sent, back-off) → state, retries, and when it is ready again.
#[test]
fn failures() {
    let failed = |state, retries| Outcome::Failed { state, retries, incident: None };
    let rows = [
        (None, 0, failed(JobState::Ready, 2), Some(0)),
        (Some(5), 0, failed(JobState::Ready, 5), Some(0)),
        (None, 1_000, failed(JobState::Backoff, 2), Some(1_000)),
    ];
    for (retries, backoff_ms, expected, ready_in) in rows {
        let mut world = world();
        world.start("p", "");
        let job = world.job("a").job;
        assert_eq!(world.fail(&job, retries, backoff_ms), Ok(expected));
        if let Some(ms) = ready_in.filter(|ms| *ms > 0) {
            world.advance(ms - 1);
            assert_eq!(world.activate("a", "w", 1).len(), 0);
            world.advance(1);
        }
        let again = world.job("a");
        assert_eq!(again.job.key, job.key);
        assert!(again.job.lease > job.lease);
    }
}

/// Case #20: no retries are left, so an incident; resolved with retries, else one.
#[test]
fn no_retries_left() {
    for (sent, left) in [(None, 1), (Some(4), 4)] {
        let mut world = world();
        let instance = world.start("p", "");
        let job = world.job("a").job;
        let outcome = world.fail(&job, Some(0), 5_000).unwrap();
        let incident = world.incidents()[0].key;
        assert_eq!(outcome, Outcome::Failed { state: JobState::Failed, retries: 0, incident: Some(incident) });
        world.advance(10_000);
        assert_eq!(world.activate("a", "w", 1).len(), 0);
        let refused = world.resolve(Some(0));
        assert!(matches!(refused, Err(Rejection::Invalid { field: "retries", .. })), "{refused:?}");
        assert_eq!(world.resolve(sent), Ok(Outcome::Resolved { incident }));
        let again = world.job("a");
        assert_eq!((again.job.key, again.job.retries), (job.key, left));
        world.complete(&again.job, "").unwrap();
        assert_eq!(world.state(instance), ScopeState::Completed);
        let resolved = world.run(Command::ResolveIncident { incident, retries: None });
        assert_eq!(resolved, Err(Rejection::NotFound(Noun::Incident)));
    }
}

/// L4.4: the first write wins; the next attempt is told what was recorded.
#[test]
fn the_journal_of_steps() {
    let mut world = world();
    world.start("p", "");
    let first = world.job("a").job;
    let step = |result: &str, recorded| Ok(Outcome::Step { name: "pay".into(), result: result.into(), recorded });
    assert_eq!(world.step(&first, "pay", "1"), step("1", true));
    assert_eq!(world.step(&first, "pay", "2"), step("1", false));
    world.step(&first, "notify", "{}").unwrap();
    world.advance(LEASE_MS);
    let second = world.activate("a", "v", 1).remove(0);
    assert_eq!(second.steps, vars("pay=1; notify={}"));
    assert_eq!(world.step(&second.job, "pay", "3"), step("1", false));
    world.fail(&second.job, Some(0), 0).unwrap();
    world.resolve(None).unwrap();
    let third = world.job("a");
    assert_eq!(third.steps, vars("pay=1; notify={}"));
    world.complete(&third.job, "").unwrap();
}

/// Variables of a failed attempt are the element's own: seen by the next attempt, gone with it.
#[test]
fn what_a_failed_attempt_leaves() {
    let mut world = world();
    let instance = world.start("p", "x=1");
    let job = world.job("a").job;
    world.fail_with(&job, None, 0, "page=3; x=2").unwrap();
    let again = world.job("a");
    assert_eq!(again.variables, vars("page=3; x=2"));
    world.complete(&again.job, "page=4; done=true").unwrap();
    assert_eq!(world.variables(instance), "{done:true,x:1}");
}

/// Both forms of a user task, and headers of the model; what is computed joins what is fixed.
#[test]
fn headers() {
    let mut world = World::with(&[(
        "p",
        "start s -> u
         user u assignee==who groups=a,b header=note:keep -> a
         job a header=q:\"{}\" -> e
         end e",
    )]);
    world.start("p", "who=\"ann\"");
    let task = world.job("io.camunda.zeebe:userTask");
    expect![[
        r#"{"note":"keep","io.camunda.zeebe:assignee":"ann","io.camunda.zeebe:candidateGroups":"[\"a\",\"b\"]"}"#
    ]]
    .assert_eq(&task.headers);
    assert_eq!(task.job.retries, 1);
    world.complete(&task.job, "").unwrap();
    expect![[r#"{"q":"\"{}\""}"#]].assert_eq(&world.job("a").headers);
}

/// Type, retries and priority may be expressions; a whole number is one however it is spelled.
#[test]
fn computed_job_definitions() {
    let mut world = World::with(&[("p", &TASK.replace("job a", "job a type==kind retries==n priority==n*1.0"))]);
    world.start("p", "kind=\"x-1\"; n=2.0");
    let job = world.job("x-1").job;
    assert_eq!((job.retries, job.priority), (2, 2));
    for (variables, reason) in [("n=1", "string"), ("kind=\"\"; n=1", "empty"), ("kind=\"k\"; n=1.5", "integer")] {
        let mut world = World::with(&[("p", &TASK.replace("job a", "job a type==kind retries==n"))]);
        world.start("p", variables);
        assert!(world.incidents()[0].message.contains(reason), "{:?}", world.incidents());
    }
}

/// L4.1: the key is the provider's; the lineage is the same for the same request on a store that gives other keys,
/// and another one for each entry of the element.
#[test]
fn lineage() {
    let run = |counter: u64, origin: &str| {
        let mut world = World::from_counter(counter);
        world.deploy_model(
            "p",
            "start s -> x
             xor x -> a
             job a -> y
             xor y -> x if again, default e
             end e",
        );
        world.origin = origin.into();
        world.start("p", "");
        world.origin = "another request".into();
        let first = world.job("a").job;
        world.complete(&first, "again=true").unwrap();
        let second = world.job("a").job;
        [first, second].map(|job| (job.key, job.lineage))
    };
    let [here, there, other] = [run(1, "k-1"), run(7_000, "k-1"), run(1, "k-2")];
    assert_eq!(here.map(|job| job.1), there.map(|job| job.1));
    assert_ne!(here.map(|job| job.0), there.map(|job| job.0));
    assert_ne!(here[0].1, here[1].1);
    assert!(here.iter().all(|job| other.iter().all(|other| job.1 != other.1)));
}

/// The same message id again after a restore: the same lineage, whatever key the message has.
#[test]
fn lineage_of_a_message() {
    let run = |counter: u64, id: Option<&str>, origin: &str| {
        let mut world = World::from_counter(counter);
        world.deploy_model("p", &TASK.replace("start s", "start s msg=go"));
        world.origin = origin.into();
        world.publish_id("go", "", id, 0, "");
        world.job("a").job.lineage
    };
    assert_eq!(run(1, Some("m"), "k-1"), run(500, Some("m"), "k-2"));
    assert_ne!(run(1, Some("m"), ""), run(1, Some("n"), ""));
    assert_eq!(run(1, None, "k-1"), run(500, None, "k-1"));
    assert_ne!(run(1, None, ""), run(500, None, ""));
}

/// Each item stands alone, in the order given; one may end what the next is about.
#[test]
fn many_at_once() {
    let mut world = World::with(&[(
        "p",
        "start s -> g
         and g -> a, b
         job a type=t -> e
         job b type=t -> f
         end e terminate
         end f",
    )]);
    for _ in 0..2 {
        world.start("p", "");
    }
    let mut jobs = world.activate("t", "w", 3);
    jobs.push(jobs[0].clone());
    let results = match world.complete_many(&jobs).unwrap() {
        Outcome::CompletedMany(results) => results.into_iter().map(|(_, result)| result).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let finished = Err(Rejection::LeaseLost(LeaseLost::Finished));
    assert_eq!(results, [Ok(false), finished, Ok(false), Ok(true)]);
    assert_eq!(world.complete_many(&jobs[..1]), Ok(Outcome::CompletedMany(vec![(jobs[0].job.key, Ok(true))])));
}
