//! How many starts one node commits: several partitions, each with batches of starts with all the rows of a small process,
//! durable, one turn after the other, the next batch made while one commits. Then the same instances are activated and
//! completed in batches, and loaded.
//! `cargo run --profile sim -p wf-store-postgres --example turn_rate -- URL [seconds] [partitions] [batch...]`

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use wf_core::rows::*;
use wf_core::{Key, Need, RangeId, Row, RowId, ids};
use wf_idempotency::Fingerprint;
use wf_idempotency::record::{Answer, Record, State};
use wf_store::*;
use wf_store_postgres::{Options, PostgresStore};

const DAY_MS: i64 = 86_400_000;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next().expect("the URL of an empty database");
    let mut number = |or: usize| args.next().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (seconds, partitions) = (number(4), number(8));
    let batches: Vec<usize> = args.filter_map(|text| text.parse().ok()).collect();
    let batches = if batches.is_empty() { vec![1, 4, 16, 64] } else { batches };
    let writers = std::env::var("WRITERS").ok().and_then(|text| text.parse().ok());
    let defaults = Options::at(url);
    let options = Options { partitions: partitions as u16, writers: writers.unwrap_or(defaults.writers), ..defaults };
    let store = Arc::new(PostgresStore::connect(options).await.expect("connect"));
    for size in batches {
        measure(&store, Duration::from_secs(seconds as u64), partitions as u16, size).await;
    }
}

async fn measure(store: &Arc<PostgresStore>, time: Duration, partitions: u16, size: usize) {
    let mut loads = Vec::new();
    for partition in 1..=partitions {
        loads.push((Load::open(store, partition).await, Vec::new()));
    }
    let start = move |load: &mut Load, started: &mut Vec<Started>, _: usize| {
        let (batch, instances) = load.starts(size);
        started.extend(instances);
        Some(batch)
    };
    let loads = report(store, "start", size, time, loads, start).await;
    let loads = report(store, "activate", size, time, loads, move |load, started, turn| {
        started.chunks(size).nth(turn).map(|some| load.activate(some))
    })
    .await;
    let mut loads = report(store, "complete", size, time, loads, move |load, started, turn| {
        started.chunks(size).nth(turn).map(|some| load.complete(some))
    })
    .await;
    if let Some((load, started)) = loads.first_mut() {
        completions(store, load, started, size).await;
    }
}

type Loads = Vec<(Load, Vec<Started>)>;

/// Every partition commits turn after turn; prints turns, instances and rows a second.
async fn report(
    store: &Arc<PostgresStore>,
    what: &str,
    size: usize,
    time: Duration,
    loads: Loads,
    next: impl Fn(&mut Load, &mut Vec<Started>, usize) -> Option<Batch> + Copy + Send + Sync + 'static,
) -> Loads {
    let begin = Instant::now();
    let one = |(mut load, mut started): (Load, Vec<Started>), store: Arc<PostgresStore>| async move {
        let (mut rows, mut commits) = (0, Vec::new());
        let mut ahead = next(&mut load, &mut started, 0);
        while let Some(batch) = ahead.take() {
            rows += rows_of(&batch);
            let at = Instant::now();
            let committed = store.commit(Arc::new(batch));
            if begin.elapsed() < time {
                ahead = next(&mut load, &mut started, commits.len() + 1);
            }
            committed.await.expect("commit");
            commits.push(at.elapsed());
        }
        ((load, started), rows, commits)
    };
    let tasks: Vec<_> = loads.into_iter().map(|load| tokio::spawn(one(load, store.clone()))).collect();
    let (mut loads, mut rows, mut commits) = (Vec::new(), 0, Vec::new());
    for task in tasks {
        let (load, some_rows, some_commits) = task.await.expect("a partition");
        loads.push(load);
        rows += some_rows;
        commits.extend(some_commits);
    }
    let elapsed = begin.elapsed().as_secs_f64();
    commits.sort();
    let percentile = |p: usize| commits.get(commits.len() * p / 1000).map_or(0.0, |at| at.as_secs_f64() * 1e3);
    println!(
        "{what:>9} {} partitions, batch {size:>4}: {:>7.0} instances/s {:>8.0} rows/s {:>6.0} turns/s  p50 {:.2} p99 {:.2} max {:.1} ms",
        loads.len(),
        (commits.len() * size) as f64 / elapsed,
        rows as f64 / elapsed,
        commits.len() as f64 / elapsed,
        percentile(500),
        percentile(990),
        commits.last().map_or(0.0, |at| at.as_secs_f64() * 1e3),
    );
    loads
}

/// With the fence, and the answers' bytes.
fn rows_of(batch: &Batch) -> usize {
    batch.log.len() + batch.rows.len() + batch.audit.len() + 2 * batch.records.len() + batch.outbox.len() + 1
}

/// What completions load where nothing is cached: job, element, scope, variables and the absence of a record each.
async fn completions(store: &PostgresStore, load: &mut Load, started: &[Started], jobs: usize) {
    let (begin, mut loads) = (Instant::now(), 0);
    // Spread over the whole store: no two neighbours.
    let step = (started.len() / jobs).max(1);
    while loads < 200 {
        let mut needs = Needs::of(load.fence.partition);
        for one in started.iter().skip(loads % step).step_by(step).take(jobs) {
            needs.core.insert(Need::Row(RowId::Job(one.job)));
            needs.core.insert(Need::Row(RowId::Element { scope: one.instance, key: one.element }));
            needs.core.insert(Need::Row(RowId::Scope(one.instance)));
            needs.core.insert(Need::Range(RangeId::Variables(one.instance), None));
            needs.records.insert(RecordId { tenant: "default".into(), key: load.uuid().into() });
            needs.commands.insert(ids::command_id(load.now, &[load.uuid().as_bytes()]));
        }
        store.load(needs).await.expect("load");
        loads += 1;
    }
    let micros = begin.elapsed().as_secs_f64() * 1e6 / loads as f64;
    println!("     load batch {jobs:>4}: {micros:>7.0} us a load, {:.1} us a completion", micros / jobs as f64);
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[derive(Clone, Copy)]
struct Started {
    instance: Key,
    element: Key,
    job: Key,
    position: u64,
}

struct Load {
    fence: Fence,
    head: Head,
    now: i64,
    random: u64,
}

impl Load {
    async fn open(store: &PostgresStore, partition: u16) -> Load {
        let opened = store.open(partition).await.expect("open partition");
        let (now, random) = (now(), u64::from(partition) << 48 | opened.fence.epoch << 32);
        Load { fence: opened.fence, head: opened.head, now, random }
    }

    fn batch(&mut self) -> Batch {
        self.fence.old_position = self.fence.new_position;
        self.now += 5;
        Batch { fence: self.fence, ..Batch::default() }
    }

    fn close(&mut self, mut batch: Batch) -> Batch {
        batch.rows.sort_by(|a, b| a.id.cmp(&b.id));
        batch.fence.new_position = self.fence.new_position;
        self.head.last_time = self.now;
        batch.head = self.head;
        batch
    }

    fn starts(&mut self, count: usize) -> (Batch, Vec<Started>) {
        let mut batch = self.batch();
        let started = (0..count).map(|_| self.start(&mut batch)).collect();
        (self.close(batch), started)
    }

    fn start(&mut self, batch: &mut Batch) -> Started {
        let (instance, element, job) = (self.key(), self.key(), self.key());
        let request = self.uuid();
        let position = self.log(batch, "start-instance", &request, START_PAYLOAD, START_EVENTS, 4);
        let lineage = ids::hash16(&[request.as_bytes()]);
        let scope = Scope {
            key: instance,
            root: instance,
            parent: 0,
            definition: 7,
            element: 0,
            state: ScopeState::Active,
            active: 1,
            joins: Vec::new(),
            visits: vec![(2, 1)],
            lineage,
            after: After::Nothing,
            instance: Some(Arc::new(self.instance(position))),
        };
        let task = Element {
            key: element,
            scope: instance,
            root: instance,
            element: 2,
            phase: Phase::Active,
            job,
            incident: 0,
            has_locals: false,
            attached: Vec::new(),
        };
        let variable = |name: &str, value: &str| Variable { scope: instance, name: name.into(), value: value.into() };
        insert(batch, scope);
        insert(batch, task);
        insert(batch, self.job(job, element, instance, JobState::Ready, lineage));
        insert(batch, variable("amount", "129.90"));
        insert(batch, variable("orderId", "\"order-2026-000042\""));
        let record = self.record(instance);
        batch.records.push(RecordEntry {
            key_hash: ids::hash16(&[request.as_bytes()]),
            id: RecordId { tenant: "default".into(), key: request.into() },
            route: "POST /api/v1/instances",
            record,
        });
        Started { instance, element, job, position }
    }

    fn activate(&mut self, some: &[Started]) -> Batch {
        let mut batch = self.batch();
        let request = self.uuid();
        self.log(&mut batch, "activate-jobs", &request, ACTIVATE_PAYLOAD, ACTIVATE_EVENTS, 1);
        for started in some {
            update(&mut batch, self.job(started.job, started.element, started.instance, JobState::Activated, [1; 16]));
        }
        self.close(batch)
    }

    fn complete(&mut self, some: &[Started]) -> Batch {
        let mut batch = self.batch();
        for started in some {
            let request = self.uuid();
            let position = self.log(&mut batch, "complete-job", &request, COMPLETE_PAYLOAD, COMPLETE_EVENTS, 4);
            let ended = Instance { ended_at: self.now, ended_position: position, ..self.instance(started.position) };
            update(
                &mut batch,
                Scope {
                    key: started.instance,
                    root: started.instance,
                    parent: 0,
                    definition: 7,
                    element: 0,
                    state: ScopeState::Completed,
                    active: 0,
                    joins: Vec::new(),
                    visits: vec![(2, 1)],
                    lineage: [1; 16],
                    after: After::Nothing,
                    instance: Some(Arc::new(ended)),
                },
            );
            let id = RowId::Element { scope: started.instance, key: started.element };
            batch.rows.push(Change { id, existed: true, new: None });
            update(&mut batch, self.job(started.job, started.element, started.instance, JobState::Completed, [1; 16]));
        }
        self.close(batch)
    }

    fn log(
        &mut self,
        batch: &mut Batch,
        verb: &'static str,
        request: &str,
        payload: &str,
        events: &str,
        count: u32,
    ) -> u64 {
        self.fence.new_position += 1;
        let (position, tenant): (u64, Text) = (self.fence.new_position, "default".into());
        let id = ids::command_id(self.now, &[request.as_bytes()]);
        let digest = u128::from_be_bytes(ids::hash16(&[&id]));
        let payload = payload.to_owned();
        batch.log.push(LogEntry { position, id, time: self.now, tenant: tenant.clone(), verb, payload, digest });
        let (actor, events): (Text, String) = ("client".into(), events.to_owned());
        batch.audit.push(AuditEntry { position, time: self.now, tenant, actor, events, count, chain: [9; 32] });
        position
    }

    fn instance(&self, position: u64) -> Instance {
        Instance {
            tenant: "default".into(),
            process_id: "order-process".into(),
            version: 1,
            started_at: self.now,
            ended_at: 0,
            started_position: position,
            ended_position: 0,
            unique: None,
            start_correlation: None,
            steps: 2,
        }
    }

    fn job(&self, key: Key, element_key: Key, root: Key, state: JobState, lineage: [u8; 16]) -> Job {
        let is_held = state != JobState::Ready;
        Job {
            key,
            element_key,
            scope: root,
            root,
            tenant: "default".into(),
            definition: 7,
            element: 2,
            job_type: "charge-card".into(),
            state,
            retries: 3,
            priority: 0,
            worker: if is_held { "worker-1".into() } else { "".into() },
            lease: if is_held { self.fence.new_position } else { 0 },
            due: if is_held { self.now + 30_000 } else { 0 },
            headers: "".into(),
            lineage,
            steps: 0,
            completion: (state == JobState::Completed).then_some([2; 16]),
        }
    }

    fn record(&self, instance: Key) -> Arc<Record> {
        let body = format!(
            "{{\"key\":\"{instance}\",\"processDefinitionId\":\"order-process\",\"version\":1,\"state\":\"ACTIVE\",\"existing\":false}}"
        );
        let location = format!("/api/v1/instances/{instance}");
        let headers = [("content-type", "application/json"), ("location", location.as_str())];
        Arc::new(Record {
            fingerprint: Fingerprint([7; 32]),
            mac_key_id: 1,
            created_ms: self.now,
            expires_ms: self.now + DAY_MS,
            state: State::Completed(Answer::new(201, headers, Bytes::from(body))),
        })
    }

    fn key(&mut self) -> Key {
        self.head.next_counter += 1;
        ids::key(self.fence.partition, self.head.next_counter)
    }

    fn uuid(&mut self) -> String {
        let hash = ids::hash16(&[&self.random.to_le_bytes()]);
        self.random += 1;
        let hex = ids::hex(&hash);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

fn insert<T: Stored>(batch: &mut Batch, row: T) {
    push(batch, T::wrap(Arc::new(row)), false);
}

fn update<T: Stored>(batch: &mut Batch, row: T) {
    push(batch, T::wrap(Arc::new(row)), true);
}

fn push(batch: &mut Batch, row: Row, existed: bool) {
    batch.rows.push(Change { id: row.id(), existed, new: Some(row) });
}

const START_PAYLOAD: &str = r#"{"v":1,"origin":"7f1c2c34-5f0a-4a7b-9a51-0c9f4d1c2b3a","processId":"order-process","variables":{"amount":129.90,"orderId":"order-2026-000042"}}"#;
const START_EVENTS: &str = r#"[{"type":"instance.started","resource":"2251799813685248001","root":"2251799813685248001","payload":{"processDefinitionId":"order-process","version":1,"variables":{"amount":129.90,"orderId":"order-2026-000042"}}},{"type":"element.activated","resource":"2251799813685248002","root":"2251799813685248001","payload":{"elementId":"charge"}},{"type":"job.created","resource":"2251799813685248003","root":"2251799813685248001","payload":{"jobType":"charge-card","elementId":"charge"}}]"#;
const ACTIVATE_PAYLOAD: &str = r#"{"v":1,"jobType":"charge-card","worker":"worker-1","jobsMax":64,"leaseMs":30000}"#;
const ACTIVATE_EVENTS: &str = r#"[{"type":"job.activated","resource":"2251799813685248003","root":"2251799813685248001","payload":{"worker":"worker-1","lease":42,"deadline":1790000030000}}]"#;
const COMPLETE_PAYLOAD: &str = r#"{"v":1,"job":"2251799813685248003","worker":"worker-1","lease":"42","variables":{}}"#;
const COMPLETE_EVENTS: &str = r#"[{"type":"job.completed","resource":"2251799813685248003","root":"2251799813685248001","payload":{"jobType":"charge-card","worker":"worker-1"}},{"type":"element.completed","resource":"2251799813685248002","root":"2251799813685248001","payload":{"elementId":"charge"}},{"type":"instance.completed","resource":"2251799813685248001","root":"2251799813685248001","payload":{"processDefinitionId":"order-process","version":1}}]"#;
