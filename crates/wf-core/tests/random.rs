//! Random commands over five models: wrong holders, repeats, times that are over, operators and cancellations in any
//! order. After each command the invariants are checked and the cold run is compared (see `common`); at the end every
//! instance is ended and nothing of it may be left.

use proptest::prelude::*;
use wf_core::command::{Holder, Quarantined};
use wf_core::rows::{JobState, ScopeState};
use wf_core::{Command, Key, Row};

use crate::common::{World, holder, model};

const MODELS: [(&str, &str); 5] = [
    (
        "scopes",
        "start s -> outer
         sub outer -> e {
         in n = n
         start s1 -> g
         and g -> a, inner
         job a type=t -> j
         boundary tick on=a cycle=R3/PT1S nonint -> tock
         job tock type=u
         sub inner -> j {
         out r = assert(n, n != 1)
         start s2 -> b, c
         job b type=t
         boundary note on=b msg=m key==k nonint -> side
         job side type=u
         receive c msg=o key==k
         }
         boundary stop on=inner msg=m key==k -> j
         out from = \"stop\"
         and j -> x
         end x
         }
         boundary late on=outer timer=PT10S -> e
         boundary bad on=outer error=bad -> e
         out seen = n
         end e",
    ),
    (
        "events",
        "start s -> g
         and g -> w, a
         events w -> m, o, t
         catch m msg=m key==k -> v
         catch o msg=o key==k -> v
         catch t timer==[\"PT2S\",\"soon\"][n+1] -> v
         xor v -> j
         job a type=t -> y
         xor y -> a if n > 1, j if n <= 1
         and j -> k, l
         task k -> i
         task l -> i
         and i -> e
         end e",
    ),
    (
        "started",
        "start s msg=m -> a
         start z -> a
         job a type=t -> r
         receive r msg=m key==k -> e
         boundary late on=r timer=PT3S -> f
         end e type=u
         end f error=bad",
    ),
    (
        "errors",
        "start s -> c
         sub c -> d {
         start s1 -> g
         and g -> a, b, x
         job a type=t -> t
         boundary any on=a error=* -> bad
         end bad error=bad
         job b type=u
         out r = assert(n, n != 1)
         boundary exact on=b error=bad -> q
         script q expression==assert(n,n!=1) result=r
         xor x -> y if n = 1, z if n = 0
         end y error==code
         task z
         end t terminate
         }
         boundary bad1 on=c error=bad -> d
         user d assignee==k -> e
         end e type=v",
    ),
    (
        "loop",
        "start s -> p
         xor p -> a
         job a type=t priority==n retries=2 -> c
         sub c -> p2 {
         start s1 -> b
         script b expression==n result=last -> e1
         end e1
         }
         xor p2 -> p if n > 0, default e
         end e",
    ),
];

const TYPES: [&str; 4] = ["t", "u", "v", "io.camunda.zeebe:userTask"];
const KEYS: [&str; 3] = ["", "k1", "k2"];
const VALUES: [&str; 5] = ["n=0", "n=1", "n=2", "n=null", "n={}"];
const TIMES_MS: [i64; 5] = [0, 999, 1_000, 2_500, 30_000];

#[derive(Clone, Debug)]
enum Op {
    Start {
        model: usize,
        key: usize,
        value: usize,
    },
    Publish {
        name: &'static str,
        key: usize,
        ttl: usize,
        id: Option<u8>,
        value: usize,
    },
    Activate {
        job_type: usize,
        worker: &'static str,
        jobs_max: u32,
        lease: usize,
    },
    Job {
        pick: usize,
        who: u8,
        what: JobOp,
    },
    /// What a good worker does.
    Work {
        job_type: usize,
        value: usize,
    },
    Cancel {
        pick: usize,
    },
    Set {
        pick: usize,
        value: usize,
    },
    Resolve {
        pick: usize,
        retries: Option<i32>,
    },
    Wait {
        time: usize,
        swept: bool,
    },
    FireAnyTimer {
        pick: usize,
    },
    ExpireAnyLease {
        pick: usize,
    },
    Deploy {
        model: usize,
    },
    Quarantine {
        pick: usize,
    },
    Purge,
}

#[derive(Clone, Debug)]
enum JobOp {
    Complete { value: usize },
    Fail { retries: Option<i32>, backoff: usize, value: usize },
    Throw { code: &'static str, value: usize },
    Extend { lease: usize },
    Step { name: &'static str },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..80)
}

fn op() -> impl Strategy<Value = Op> {
    let (key, value, time) = (0..KEYS.len(), 0..VALUES.len(), 0..TIMES_MS.len());
    let name = prop::sample::select(vec!["m", "o"]);
    let worker = prop::sample::select(vec!["w", "v"]);
    prop_oneof![
        4 => (0..MODELS.len(), key.clone(), value.clone()).prop_map(|(model, key, value)| Op::Start { model, key, value }),
        4 => (name, key, time.clone(), prop::option::of(0..3u8), value.clone())
            .prop_map(|(name, key, ttl, id, value)| Op::Publish { name, key, ttl, id, value }),
        6 => (0..TYPES.len(), worker, 1..4u32, time.clone())
            .prop_map(|(job_type, worker, jobs_max, lease)| Op::Activate { job_type, worker, jobs_max, lease }),
        10 => (any::<usize>(), 0..6u8, job_op()).prop_map(|(pick, who, what)| Op::Job { pick, who, what }),
        12 => (0..TYPES.len(), value.clone()).prop_map(|(job_type, value)| Op::Work { job_type, value }),
        1 => any::<usize>().prop_map(|pick| Op::Cancel { pick }),
        2 => (any::<usize>(), value).prop_map(|(pick, value)| Op::Set { pick, value }),
        3 => (any::<usize>(), prop::option::of(0..3)).prop_map(|(pick, retries)| Op::Resolve { pick, retries }),
        4 => (time, any::<bool>()).prop_map(|(time, swept)| Op::Wait { time, swept }),
        1 => any::<usize>().prop_map(|pick| Op::FireAnyTimer { pick }),
        1 => any::<usize>().prop_map(|pick| Op::ExpireAnyLease { pick }),
        1 => (0..MODELS.len()).prop_map(|model| Op::Deploy { model }),
        1 => any::<usize>().prop_map(|pick| Op::Quarantine { pick }),
        1 => Just(Op::Purge),
    ]
}

fn job_op() -> impl Strategy<Value = JobOp> {
    let (value, time) = (0..VALUES.len(), 0..TIMES_MS.len());
    prop_oneof![
        5 => value.clone().prop_map(|value| JobOp::Complete { value }),
        2 => (prop::option::of(-1..3), time.clone(), value.clone())
            .prop_map(|(retries, backoff, value)| JobOp::Fail { retries, backoff, value }),
        2 => (prop::sample::select(vec!["bad", "other"]), value).prop_map(|(code, value)| JobOp::Throw { code, value }),
        1 => time.prop_map(|lease| JobOp::Extend { lease }),
        1 => prop::sample::select(vec!["x", "y"]).prop_map(|name| JobOp::Step { name }),
    ]
}

fn pick<T: Clone>(from: &[T], pick: usize) -> Option<T> {
    from.get(pick % from.len().max(1)).cloned()
}

/// Does it, whatever the answer. Most instances are of one model, so that they come far.
fn run(world: &mut World, focus: usize, op: &Op) {
    match op {
        Op::Start { model, key, value } => {
            let variables = format!("k=\"{}\"; code=\"bad\"; {}", KEYS[*key], VALUES[*value]);
            let process_id = MODELS[if *model > 0 { focus } else { 0 }].0;
            // Most instances have their value to themselves.
            let _ = match *key {
                0 => world.start_unique(process_id, &variables, "k"),
                _ => world.start_with(process_id, None, &variables, None),
            };
        }
        Op::Publish { name, key, ttl, id, value } => {
            let id = id.map(|id| id.to_string());
            world.publish_id(name, KEYS[*key], id.as_deref(), TIMES_MS[*ttl], VALUES[*value]);
        }
        Op::Activate { job_type, worker, jobs_max, lease } => {
            world.activate_for(TYPES[*job_type], worker, *jobs_max, TIMES_MS[*lease]);
        }
        Op::Job { pick: job, who, what } => {
            let jobs: Vec<Key> = keys(world, |row| matches!(row, Row::Job(_)));
            if let Some(job) = pick(&jobs, *job) {
                let command = job_command(world, job, *who, what);
                let _ = world.run(command);
            }
        }
        Op::Work { job_type, value } => {
            for job in world.activate(TYPES[*job_type], "w", 1) {
                world.complete(&job.job, VALUES[*value]).unwrap();
            }
        }
        Op::Cancel { pick: instance } => {
            if let Some(instance) = pick(&roots(world), *instance) {
                let _ = world.cancel(instance);
            }
        }
        Op::Set { pick: place, value } => set(world, *place, VALUES[*value]),
        Op::Resolve { pick: incident, retries } => {
            if let Some(incident) = pick(&world.incidents(), *incident) {
                let _ = world.run(Command::ResolveIncident { incident: incident.key, retries: *retries });
            }
        }
        Op::Wait { time, swept: true } => world.advance(TIMES_MS[*time]),
        Op::Wait { time, swept: false } => world.now += TIMES_MS[*time],
        other => run_own(world, other),
    }
}

fn run_own(world: &mut World, op: &Op) {
    let command = match op {
        Op::FireAnyTimer { pick: timer } => {
            let timers = keys(world, |row| matches!(row, Row::Timer(_)));
            pick(&timers, *timer).map(|timer| Command::FireTimer { timer, due: world.now })
        }
        Op::ExpireAnyLease { pick: job } => pick(&world.jobs(JobState::Activated), *job)
            .map(|job| Command::ExpireLease { job: job.key, lease: job.lease }),
        Op::Quarantine { pick: timer } => {
            let timers = keys(world, |row| matches!(row, Row::Timer(_)));
            let what = pick(&timers, *timer).map(Quarantined::Timer);
            what.map(|what| Command::Quarantine { what, reason: "broken".into() })
        }
        Op::Deploy { model } => {
            let (process_id, lines) = MODELS[*model];
            let version = world.position;
            drop(world.deploy(&model::xml(process_id, &format!("{lines}\ntask unused{version}"))));
            None
        }
        _ => Some(Command::Purge { before: world.now - 1_000, rows_max: 2 }),
    };
    if let Some(command) = command {
        world.own(command);
    }
}

fn job_command(world: &World, job: Key, who: u8, what: &JobOp) -> Command {
    let row = world.job_row(job);
    let holder = match who {
        0..=2 => holder(&row),
        3 => Holder { lease: None, ..holder(&row) },
        4 => Holder { lease: Some(row.lease.wrapping_sub(1)), ..holder(&row) },
        _ => Holder { worker: "u".into(), ..holder(&row) },
    };
    let vars = |value: &usize| crate::common::vars(VALUES[*value]);
    match what {
        JobOp::Complete { value } => Command::CompleteJob { holder, variables: vars(value) },
        JobOp::Fail { retries, backoff, value } => Command::FailJob {
            holder,
            message: "".into(),
            retries: *retries,
            backoff_ms: TIMES_MS[*backoff],
            variables: vars(value),
        },
        JobOp::Throw { code, value } => {
            Command::ThrowError { holder, code: (*code).into(), message: "".into(), variables: vars(value) }
        }
        JobOp::Extend { lease } => Command::ExtendLease { holder, lease_ms: TIMES_MS[*lease] },
        JobOp::Step { name } => Command::RecordStep { holder, name: (*name).into(), result: "1".into() },
    }
}

/// Into the root, a sub-process or an element: whatever is picked, with the instance that it may not belong to.
fn set(world: &mut World, place: usize, variables: &str) {
    let scopes = keys(world, |row| matches!(row, Row::Scope(_) | Row::Element(_)));
    let roots = roots(world);
    if let (Some(instance), Some(scope)) = (pick(&roots, place / 7), pick(&scopes, place)) {
        let _ = world.set(instance, Some(scope), variables);
    }
}

fn keys(world: &World, is_wanted: impl Fn(&Row) -> bool) -> Vec<Key> {
    let wanted = world.rows.values().filter(|row| is_wanted(row));
    let key = |row: &Row| match row {
        Row::Job(row) => row.key,
        Row::Timer(row) => row.key,
        Row::Scope(row) => row.key,
        Row::Element(row) => row.key,
        _ => 0,
    };
    wanted.map(key).collect()
}

fn roots(world: &World) -> Vec<Key> {
    keys(world, |row| matches!(row, Row::Scope(scope) if scope.parent == 0))
}

fn end_all(world: &mut World) {
    for root in roots(world) {
        if world.state(root) == ScopeState::Active {
            world.cancel(root).unwrap();
        }
    }
    world.follow_ups();
    // Buffered messages may have started others.
    while roots(world).iter().any(|root| world.state(*root) == ScopeState::Active) {
        end_all(world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_commands(focus in 0..MODELS.len(), ops in ops()) {
        let mut world = World::with(&MODELS);
        ops.iter().for_each(|op| run(&mut world, focus, op));
        end_all(&mut world);
        world.check();
        let is_left = |row: &Row| matches!(row,
            Row::Element(_) | Row::Timer(_) | Row::Subscription(_) | Row::Incident(_) | Row::FollowUp(_)
            | Row::StartLock(_) | Row::Unique(_));
        prop_assert_eq!(world.count(is_left), 0);
        prop_assert_eq!(world.replayed(), world.digest);
    }
}
