//! The verbs of clients and of the engine, short enough for tables.

use std::sync::Arc;

use wf_core::command::{CompleteItem, Holder, Resource, UniqueOn};
use wf_core::outcome::{Activated, Deployed, Started};
use wf_core::ranges::{Due, SortKey, due_at};
use wf_core::rows::{Incident, Job, JobState, Scope, ScopeState, Variables};
use wf_core::{Command, Key, Outcome, RangeId, Rejection, Row, RowId, ids};

use super::{World, model, object, vars};

pub const LEASE_MS: i64 = 30_000;
pub const DEDUP_MS: i64 = 86_400_000;
const WATCHED: [Due; 4] = [Due::Timers, Due::Leases, Due::Backoffs, Due::Messages];

impl World {
    pub fn deploy(&mut self, xml: &str) -> Result<Vec<Deployed>, Rejection> {
        self.deploy_all(&[("model.bpmn", xml)])
    }

    pub fn deploy_model(&mut self, process_id: &str, lines: &str) -> Deployed {
        self.deploy(&model::xml(process_id, lines)).unwrap().remove(0)
    }

    pub fn deploy_all(&mut self, files: &[(&str, &str)]) -> Result<Vec<Deployed>, Rejection> {
        let resources = files.iter().map(|(name, xml)| {
            let processes = wf_model::compile(xml.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}\n{xml}"));
            Resource {
                name: (*name).into(),
                xml: xml.as_bytes().into(),
                processes: processes.into_iter().map(Arc::new).collect(),
            }
        });
        match self.run(Command::Deploy { resources: resources.collect() })? {
            Outcome::Deployed(deployed) => Ok(deployed),
            other => panic!("{other:?}"),
        }
    }

    pub fn start(&mut self, process_id: &str, variables: &str) -> Key {
        self.start_with(process_id, None, variables, None).unwrap().key
    }

    pub fn start_unique(&mut self, process_id: &str, variables: &str, variable: &str) -> Result<Started, Rejection> {
        let value = vars(variables).iter().find(|(name, _)| **name == *variable).unwrap().1.clone();
        let unique = UniqueOn { variable: variable.into(), value: ids::hash16(&[value.as_bytes()]) };
        self.start_with(process_id, None, variables, Some(unique))
    }

    pub fn start_with(
        &mut self,
        process_id: &str,
        version: Option<u32>,
        variables: &str,
        unique: Option<UniqueOn>,
    ) -> Result<Started, Rejection> {
        let variables = vars(variables);
        match self.run(Command::StartInstance { process_id: process_id.into(), version, variables, unique })? {
            Outcome::Started(started) => Ok(started),
            other => panic!("{other:?}"),
        }
    }

    pub fn cancel(&mut self, instance: Key) -> Result<Outcome, Rejection> {
        self.run(Command::CancelInstance { instance })
    }

    pub fn set(&mut self, instance: Key, scope: Option<Key>, variables: &str) -> Result<Outcome, Rejection> {
        self.run(Command::SetVariables { instance, scope, variables: vars(variables) })
    }

    /// Leases the next job of a type for worker `w`.
    pub fn job(&mut self, job_type: &str) -> Activated {
        let mut jobs = self.activate(job_type, "w", 1);
        assert_eq!(jobs.len(), 1, "no job of type {job_type}");
        jobs.remove(0)
    }

    pub fn activate(&mut self, job_type: &str, worker: &str, jobs_max: u32) -> Vec<Activated> {
        self.activate_for(job_type, worker, jobs_max, LEASE_MS)
    }

    pub fn activate_for(&mut self, job_type: &str, worker: &str, jobs_max: u32, lease_ms: i64) -> Vec<Activated> {
        let (job_type, worker) = (job_type.into(), worker.into());
        match self.run(Command::ActivateJobs { job_type, worker, jobs_max, lease_ms, fetch: None }) {
            Ok(Outcome::Activated(jobs)) => jobs,
            other => panic!("{other:?}"),
        }
    }

    /// Leases the next job of a type and completes it.
    pub fn work(&mut self, job_type: &str, variables: &str) {
        let job = self.job(job_type);
        assert_eq!(self.complete(&job.job, variables), Ok(Outcome::Completed { duplicate: false }));
    }

    pub fn complete(&mut self, job: &Job, variables: &str) -> Result<Outcome, Rejection> {
        self.run(Command::CompleteJob { holder: holder(job), variables: vars(variables) })
    }

    pub fn complete_many(&mut self, jobs: &[Activated]) -> Result<Outcome, Rejection> {
        let item = |job: &Activated| CompleteItem { job: job.job.key, lease: Some(job.job.lease), variables: vars("") };
        self.run(Command::CompleteJobs { worker: "w".into(), items: jobs.iter().map(item).collect() })
    }

    pub fn fail(&mut self, job: &Job, retries: Option<i32>, backoff_ms: i64) -> Result<Outcome, Rejection> {
        self.fail_with(job, retries, backoff_ms, "")
    }

    pub fn fail_with(
        &mut self,
        job: &Job,
        retries: Option<i32>,
        backoff_ms: i64,
        variables: &str,
    ) -> Result<Outcome, Rejection> {
        let (holder, variables) = (holder(job), vars(variables));
        self.run(Command::FailJob { holder, message: "no luck".into(), retries, backoff_ms, variables })
    }

    pub fn throw(&mut self, job: &Job, code: &str, variables: &str) -> Result<Outcome, Rejection> {
        let (holder, variables) = (holder(job), vars(variables));
        self.run(Command::ThrowError { holder, code: code.into(), message: "".into(), variables })
    }

    pub fn extend(&mut self, job: &Job, lease_ms: i64) -> Result<Outcome, Rejection> {
        self.run(Command::ExtendLease { holder: holder(job), lease_ms })
    }

    pub fn step(&mut self, job: &Job, name: &str, result: &str) -> Result<Outcome, Rejection> {
        self.run(Command::RecordStep { holder: holder(job), name: name.into(), result: result.into() })
    }

    /// Without an id; returns how many instances it reached.
    pub fn publish(&mut self, name: &str, key: &str, ttl_ms: i64, variables: &str) -> usize {
        match self.publish_id(name, key, None, ttl_ms, variables) {
            Outcome::Published { correlated, duplicate: false, .. } => correlated.len(),
            other => panic!("{other:?}"),
        }
    }

    pub fn publish_id(&mut self, name: &str, key: &str, id: Option<&str>, ttl_ms: i64, variables: &str) -> Outcome {
        self.run(Command::PublishMessage {
            name: name.into(),
            correlation_key: key.into(),
            message_id: id.map(Into::into),
            ttl_ms,
            dedup_ms: DEDUP_MS,
            variables: vars(variables),
        })
        .unwrap()
    }

    /// Resolves the only open incident.
    pub fn resolve(&mut self, retries: Option<i32>) -> Result<Outcome, Rejection> {
        let open = self.incidents();
        assert_eq!(open.len(), 1, "{open:?}");
        self.run(Command::ResolveIncident { incident: open[0].key, retries })
    }

    /// Time goes on, and everything that falls due is done, in the engine's order.
    pub fn advance(&mut self, ms: i64) {
        self.now += ms;
        while self.do_due() | self.follow_up() {}
    }

    /// Whether something was due.
    fn do_due(&mut self) -> bool {
        let mut has_done = false;
        for due in WATCHED {
            for sort in self.due_entries(due) {
                let command = self.due_command(due, &sort);
                has_done |= self.own(command);
            }
        }
        has_done
    }

    fn due_entries(&self, due: Due) -> Vec<SortKey> {
        let entries = self.range_of(&RangeId::Due(due)).into_iter().flatten();
        entries.filter(|sort| due_at(sort) <= self.now).cloned().collect()
    }

    fn due_command(&self, due: Due, sort: &SortKey) -> Command {
        match due {
            Due::Timers => Command::FireTimer { timer: sort.key, due: due_at(sort) },
            Due::Leases => Command::ExpireLease { job: sort.key, lease: self.job_row(sort.key).lease },
            Due::Backoffs => Command::EndBackoff { job: sort.key, due: due_at(sort) },
            _ => Command::ExpireMessage { message: sort.key },
        }
    }

    /// One of the engine's own commands: whether it was about something that was still there.
    pub fn own(&mut self, command: Command) -> bool {
        match self.run(command) {
            Ok(Outcome::Done { applied }) => applied,
            other => panic!("{other:?}"),
        }
    }

    /// The oldest follow-up, if there is one.
    pub fn follow_up(&mut self) -> bool {
        let first = self.range_of(&RangeId::FollowUps).and_then(|range| range.first()).map(|sort| sort.key);
        first.is_some_and(|follow_up| self.own(Command::Continue { follow_up }))
    }

    /// All follow-ups, and how many there were.
    pub fn follow_ups(&mut self) -> usize {
        std::iter::repeat_with(|| self.follow_up()).take_while(|did| *did).count()
    }

    pub fn incidents(&self) -> Vec<Arc<Incident>> {
        let incidents = self.rows.values().filter_map(|row| match row {
            Row::Incident(incident) => Some(incident.clone()),
            _ => None,
        });
        incidents.collect()
    }

    pub fn job_row(&self, key: Key) -> Arc<Job> {
        match self.rows.get(&RowId::Job(key)) {
            Some(Row::Job(job)) => job.clone(),
            other => panic!("{key}: {other:?}"),
        }
    }

    pub fn jobs(&self, state: JobState) -> Vec<Arc<Job>> {
        let jobs = self.rows.values().filter_map(|row| match row {
            Row::Job(job) if job.state == state => Some(job.clone()),
            _ => None,
        });
        jobs.collect()
    }

    pub fn scope(&self, key: Key) -> Arc<Scope> {
        match self.rows.get(&RowId::Scope(key)) {
            Some(Row::Scope(scope)) => scope.clone(),
            other => panic!("{key}: {other:?}"),
        }
    }

    pub fn state(&self, instance: Key) -> ScopeState {
        self.scope(instance).state
    }

    /// Sub-processes that are active, in the order in which they were entered.
    pub fn sub_scopes(&self) -> Vec<Key> {
        let scopes = self.rows.values().filter_map(|row| match row {
            Row::Scope(scope) if scope.parent != 0 => Some(scope.key),
            _ => None,
        });
        scopes.collect()
    }

    /// `{name:value,…}` of exactly this scope or element.
    pub fn variables(&self, scope: Key) -> String {
        let variables: Variables = self
            .rows
            .values()
            .filter_map(|row| match row {
                Row::Variable(row) if row.scope == scope => Some((row.name.clone(), row.value.clone())),
                _ => None,
            })
            .collect();
        object(&variables)
    }

    pub fn count(&self, is_wanted: impl Fn(&Row) -> bool) -> usize {
        self.rows.values().filter(|row| is_wanted(row)).count()
    }
}

pub fn holder(job: &Job) -> Holder {
    Holder { job: job.key, worker: job.worker.clone(), lease: Some(job.lease) }
}
