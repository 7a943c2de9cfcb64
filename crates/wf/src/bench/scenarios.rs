//! What the clients do: starts, whole instances, repeats, a mix. Each scenario is one client's loop.
//! Nothing is measured here beyond `Client::count`. The loops' frame: `load.rs`.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::output::{self, Failure};

use super::Bench;
use super::http::texts;
use super::load::{self, Client, Tally, Window};
use super::report::Measured;

pub const ONE_TASK: &str = include_str!("one-task.bpmn");
pub const WAITING: &str = include_str!("waiting.bpmn");

pub const START: &str = "/api/v1/instances";
pub const START_BODY: &[u8] =
    br#"{"processDefinitionId":"bench-one-task","variables":{"orderId":"o-1","amount":12.50}}"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    OneClient,
    Starts,
    Whole,
    WholeBatched,
    Duplicates,
    Mix,
}

impl Scenario {
    const ALL: [Scenario; 6] = [
        Scenario::OneClient,
        Scenario::Starts,
        Scenario::Whole,
        Scenario::WholeBatched,
        Scenario::Duplicates,
        Scenario::Mix,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scenario::OneClient => "one-client",
            Scenario::Starts => "starts",
            Scenario::Whole => "whole",
            Scenario::WholeBatched => "whole-batched",
            Scenario::Duplicates => "duplicates",
            Scenario::Mix => "mix",
        }
    }

    pub fn explained(self) -> &'static str {
        match self {
            Scenario::OneClient => "starts by one client",
            Scenario::Starts => "starts",
            Scenario::Whole => "whole instances, completed one by one",
            Scenario::WholeBatched => "whole instances, completed in batches",
            Scenario::Duplicates => "repeats of answered starts",
            Scenario::Mix => "calls of a mix",
        }
    }
}

pub fn chosen(names: &[String]) -> Result<Vec<Scenario>, Failure> {
    let known = || Scenario::ALL.map(Scenario::name).join(", ");
    let find = |name: &String| {
        let found = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
        found.ok_or_else(|| Failure::usage(format!("there is no scenario {name}; there are {}", known())))
    };
    if names.is_empty() { Ok(Scenario::ALL.to_vec()) } else { names.iter().map(find).collect() }
}

/// The models that the scenarios start.
pub async fn prepare(server: &str) -> Result<(), Failure> {
    let client = wf_client::Client::new(server)?;
    for xml in [ONE_TASK, WAITING] {
        client.deploy(xml).await?;
    }
    Ok(())
}

pub async fn run(bench: &Bench, servers: &[String], scenario: Scenario) -> Result<Measured, Failure> {
    let addresses = servers.iter().map(|server| address(server)).collect::<Result<Vec<_>, _>>()?;
    let clients = if scenario == Scenario::OneClient { 1 } else { bench.args.clients };
    let bar = output::progress(bench.args.seconds + 1, scenario.explained());
    let window = Window::of(bench.args.seconds);
    let batch = bench.args.batch;
    let run_seed = fresh_seed();
    let beat = tokio::spawn({
        let bar = bar.clone();
        async move {
            loop {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                bar.inc(1);
            }
        }
    });
    let load = load::run(clients, window, |index| {
        let address = addresses[index as usize % addresses.len()].clone();
        let seed = run_seed.wrapping_add(u64::from(index) << 32);
        async move {
            let client = Client::open(&address, seed, window).await?;
            match scenario {
                Scenario::OneClient | Scenario::Starts => starts(client).await,
                Scenario::Whole => whole(client, index, batch, false).await,
                Scenario::WholeBatched => whole(client, index, batch, true).await,
                Scenario::Duplicates => duplicates(client).await,
                Scenario::Mix => mix(client, index).await,
            }
        }
    })
    .await;
    beat.abort();
    bar.finish_and_clear();
    Ok(Measured::of(scenario, clients, load?))
}

/// `HOST:PORT` of a plain address.
pub fn address(server: &str) -> Result<String, Failure> {
    let rest = server.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    rest.map(str::to_owned).ok_or_else(|| Failure::usage("the bench speaks plain http://HOST:PORT only"))
}

/// Keys of one run must be new to the store of an earlier one.
pub fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

pub async fn starts(mut client: Client) -> std::io::Result<Tally> {
    while !client.is_over() {
        start(&mut client, 1).await?;
    }
    Ok(client.finish())
}

async fn start(client: &mut Client, units: u64) -> std::io::Result<String> {
    let key = client.random.key();
    call(client, START, Some(&key), START_BODY, 201, units).await?;
    Ok(key)
}

/// Starts a batch, takes a batch in one activation, completes each job by a call of its own, or all by one.
async fn whole(mut client: Client, index: u32, batch: u32, batched: bool) -> std::io::Result<Tally> {
    let worker = format!("bench-{index}");
    // Clients that begin out of step do not all start, then all complete.
    let mut starts_now = 1 + index % batch.max(1);
    while !client.is_over() {
        for _ in 0..starts_now {
            start(&mut client, 0).await?;
        }
        starts_now = batch;
        let jobs = activate(&mut client, &worker, batch).await?;
        if batched {
            complete_many(&mut client, &worker, &jobs).await?;
            continue;
        }
        for (key, lease) in jobs {
            let path = format!("/api/v1/jobs/{key}/complete");
            let body = format!(r#"{{"worker":"{worker}","lease":"{lease}","variables":{{"paid":true}}}}"#);
            call(&mut client, &path, None, body.as_bytes(), 200, 1).await?;
        }
    }
    Ok(client.finish())
}

async fn activate(client: &mut Client, worker: &str, batch: u32) -> std::io::Result<Vec<(String, String)>> {
    let body = format!(r#"{{"type":"bench-task","worker":"{worker}","maxJobs":{batch},"leaseMs":60000}}"#);
    let sent = Instant::now();
    let answer = client.connection.post("/api/v1/jobs/activate", None, body.as_bytes()).await?;
    let status = answer.status;
    let (keys, leases) = (texts(answer.body, "key"), texts(answer.body, "lease"));
    let jobs = keys.zip(leases).map(|(key, lease)| (key.to_owned(), lease.to_owned())).collect();
    client.count(sent, 0);
    if status != 200 {
        client.wrong(format!("activate answered {status}"));
    }
    Ok(jobs)
}

async fn complete_many(client: &mut Client, worker: &str, jobs: &[(String, String)]) -> std::io::Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let items: Vec<String> = jobs
        .iter()
        .map(|(key, lease)| format!(r#"{{"key":"{key}","lease":"{lease}","variables":{{"paid":true}}}}"#))
        .collect();
    let body = format!(r#"{{"worker":"{worker}","jobs":[{}]}}"#, items.join(","));
    call(client, "/api/v1/jobs/complete", None, body.as_bytes(), 200, jobs.len() as u64).await
}

/// Each client started some instances; from then on it repeats their requests.
async fn duplicates(mut client: Client) -> std::io::Result<Tally> {
    let mut keys = Vec::new();
    for _ in 0..16 {
        keys.push(start(&mut client, 0).await?);
    }
    let mut turn = 0;
    while !client.is_over() {
        let Some(key) = keys.get(turn % keys.len()) else { break };
        turn += 1;
        let sent = Instant::now();
        let answer = client.connection.post(START, Some(key), START_BODY).await?;
        let (status, replayed) = (answer.status, answer.replayed);
        client.count(sent, 1);
        if status != 201 || !replayed {
            client.wrong(format!("a repeat was answered {status}, replayed: {replayed}"));
        }
    }
    Ok(client.finish())
}

/// Of ten calls: four starts, two repeats, a message that nobody waits for, a look at a list, an activation and what
/// it brings.
async fn mix(mut client: Client, index: u32) -> std::io::Result<Tally> {
    let worker = format!("bench-{index}");
    while !client.is_over() {
        let mut key = String::new();
        for _ in 0..4 {
            key = start(&mut client, 1).await?;
        }
        for _ in 0..2 {
            call(&mut client, START, Some(&key), START_BODY, 201, 1).await?;
        }
        let message = format!(r#"{{"name":"nobody","correlationKey":"k","messageId":"{key}"}}"#);
        call(&mut client, "/api/v1/messages", None, message.as_bytes(), 200, 1).await?;
        let sent = Instant::now();
        client.connection.get("/api/v1/instances?limit=5").await?;
        client.count(sent, 1);
        let jobs = activate(&mut client, &worker, 4).await?;
        complete_many(&mut client, &worker, &jobs).await?;
    }
    Ok(client.finish())
}

pub async fn call(
    client: &mut Client,
    path: &str,
    key: Option<&str>,
    body: &[u8],
    expected: u16,
    units: u64,
) -> std::io::Result<()> {
    let sent = Instant::now();
    let answer = client.connection.post(path, key, body).await?;
    let wrong = (answer.status != expected)
        .then(|| format!("{path} answered {}: {}", answer.status, String::from_utf8_lossy(answer.body)));
    match wrong {
        // A refusal is no work done.
        Some(what) => client.wrong(what),
        None => client.count(sent, units),
    }
    Ok(())
}
