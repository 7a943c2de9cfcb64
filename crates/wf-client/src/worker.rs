//! A worker: long polls for jobs, runs a handler for each, keeps the lease while it runs, reports what came of it.
//! It promises at-least-once to the handler: use `Task::job.idempotency_key` or `Task::step` for calls to the outside.
//! The calls themselves and their repeats: `routes.rs`, `client.rs`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::error::ClientError;
use crate::fresh_key;
use crate::types::*;

/// What a stop waits for a poll's answer, beyond the time that the server may hold it back.
const STOP_GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct WorkerOptions {
    pub job_type: String,
    /// Shown in lists; unique by default, because workers that share a name are told apart by their leases alone.
    pub worker: String,
    /// Jobs handled at the same time.
    pub concurrency: u32,
    pub lease_ms: u64,
    /// One long poll.
    pub wait_ms: u64,
    /// Stop after this many jobs.
    pub jobs_max: Option<u64>,
    /// Before a failed job is tried again.
    pub backoff_ms: u64,
    pub fetch_variables: Vec<String>,
}

impl WorkerOptions {
    pub fn of(job_type: impl Into<String>) -> WorkerOptions {
        let job_type = job_type.into();
        WorkerOptions {
            worker: format!("{job_type}-{}", &fresh_key()[..8]),
            job_type,
            concurrency: 8,
            lease_ms: 30_000,
            wait_ms: 5_000,
            jobs_max: None,
            backoff_ms: 1_000,
            fetch_variables: Vec::new(),
        }
    }
}

/// A job in a handler's hands.
#[derive(Clone, Debug)]
pub struct Task {
    pub job: Job,
    client: Client,
    holder: Holder,
}

/// What a handler made of its job.
#[derive(Clone, Debug)]
pub enum Outcome {
    Complete(Variables),
    Fail(FailJob),
    /// A BPMN error, caught by a boundary event with its code.
    Error(ThrowError),
}

pub trait Handler: Send + Sync + 'static {
    fn handle(&self, task: Task) -> impl Future<Output = Outcome> + Send;
}

impl<F, Fut> Handler for F
where
    F: Fn(Task) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    fn handle(&self, task: Task) -> impl Future<Output = Outcome> + Send {
        self(task)
    }
}

/// How a worker's jobs ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub completed: u64,
    pub failed: u64,
    pub errors: u64,
    /// Another worker had taken over: its report counts, not ours.
    pub lost: u64,
}

pub struct Worker<H> {
    client: Client,
    options: WorkerOptions,
    handler: Arc<H>,
}

impl<H: Handler> Worker<H> {
    pub fn new(client: Client, options: WorkerOptions, handler: H) -> Worker<H> {
        Worker { client, options, handler: Arc::new(handler) }
    }

    /// Works until `stop` resolves or `jobs_max` is reached, then finishes the jobs it holds. Fails only where no
    /// repeat would help (a wrong key, a wrong type's name).
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Summary, ClientError> {
        tokio::pin!(stop);
        let (mut running, mut summary) = (JoinSet::new(), Summary::default());
        let (mut taken, mut stopped) = (0_u64, false);
        while !stopped {
            let free = u64::from(self.options.concurrency.max(1)).saturating_sub(running.len() as u64);
            let wanted = self.options.jobs_max.map_or(free, |max| free.min(max.saturating_sub(taken)));
            if wanted == 0 && free > 0 {
                break;
            }
            if wanted == 0 {
                tokio::select! {
                    () = &mut stop => stopped = true,
                    Some(ended) = running.join_next() => summary.add(ended.ok()),
                }
                continue;
            }
            let jobs = self.poll(wanted, &mut stop, &mut stopped).await?;
            taken += jobs.len() as u64;
            for job in jobs {
                running.spawn(self.work(job));
            }
            while let Some(ended) = running.try_join_next() {
                summary.add(ended.ok());
            }
        }
        while let Some(ended) = running.join_next().await {
            summary.add(ended.ok());
        }
        Ok(summary)
    }

    /// One poll under one key, repeated until the server answers: an answer lost on its way leaves no job leased to
    /// nobody. A stop waits for the poll's end for the same reason.
    async fn poll(
        &self,
        wanted: u64,
        stop: &mut (impl Future<Output = ()> + Unpin),
        stopped: &mut bool,
    ) -> Result<Vec<Job>, ClientError> {
        let poll = ActivateJobs {
            job_type: self.options.job_type.clone(),
            worker: self.options.worker.clone(),
            max_jobs: u32::try_from(wanted).unwrap_or(u32::MAX).min(1000),
            lease_ms: self.options.lease_ms,
            wait_ms: self.options.wait_ms,
            fetch_variables: self.options.fetch_variables.clone(),
        };
        let key = fresh_key();
        loop {
            let call = self.client.activate(&poll).key(&key).send();
            tokio::pin!(call);
            let answer = tokio::select! {
                answer = &mut call => answer,
                () = &mut *stop, if !*stopped => {
                    *stopped = true;
                    // A server that does not answer any more leases nothing either, or its leases end by themselves.
                    let grace = Duration::from_millis(self.options.wait_ms) + STOP_GRACE;
                    match tokio::time::timeout(grace, call).await {
                        Ok(answer) => answer,
                        Err(_) => return Ok(Vec::new()),
                    }
                }
            };
            match answer {
                Ok(reply) => return Ok(reply.value.jobs),
                Err(error @ ClientError::NoAnswer { .. }) if !*stopped => {
                    tracing::warn!(%error, "the server cannot be reached; trying again");
                }
                Err(ClientError::NoAnswer { .. }) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Handler and lease keeper side by side. A handler whose lease is lost is dropped: from then on another worker
    /// may be doing the same.
    fn work(&self, job: Job) -> impl Future<Output = Done> + Send + 'static {
        let (client, handler, lease_ms) = (self.client.clone(), self.handler.clone(), self.options.lease_ms);
        let holder = Holder { worker: self.options.worker.clone(), lease: Some(job.lease.clone()) };
        let backoff_ms = self.options.backoff_ms;
        async move {
            let key = job.key.clone();
            let task = Task { job, client: client.clone(), holder: holder.clone() };
            let outcome = tokio::select! {
                outcome = handler.handle(task) => outcome,
                () = keep_lease(&client, &key, &holder, lease_ms) => {
                    tracing::warn!(job = key, "the lease was lost while the handler ran");
                    return Done::Lost;
                }
            };
            match report(&client, &key, &holder, outcome, backoff_ms).await {
                Ok(done) => done,
                Err(error) if error.is_lease_lost() => {
                    tracing::warn!(job = key, %error, "another worker owns the job; not repeated");
                    Done::Lost
                }
                Err(error) => {
                    tracing::error!(job = key, %error, "the outcome could not be reported; its lease will expire");
                    Done::Lost
                }
            }
        }
    }
}

/// Resolves when the lease is lost for certain. An answer that never came proves nothing: the next beat tells.
async fn keep_lease(client: &Client, job: &str, holder: &Holder, lease_ms: u64) {
    let beat = Duration::from_millis((lease_ms / 3).max(1));
    loop {
        tokio::time::sleep(beat).await;
        match client.extend(job, holder, lease_ms).await {
            Err(error) if error.is_lease_lost() || error.code() == "job-not-found" => return,
            Err(error) => tracing::warn!(job, %error, "the lease could not be extended"),
            Ok(_) => (),
        }
    }
}

#[derive(Clone, Copy)]
enum Done {
    Completed,
    Failed,
    Error,
    Lost,
}

async fn report(
    client: &Client,
    job: &str,
    holder: &Holder,
    outcome: Outcome,
    backoff_ms: u64,
) -> Result<Done, ClientError> {
    match outcome {
        Outcome::Complete(variables) => {
            client.complete(job, holder, &variables).await?;
            Ok(Done::Completed)
        }
        Outcome::Fail(mut failure) => {
            failure.backoff_ms = failure.backoff_ms.or(Some(backoff_ms));
            client.fail(job, holder, &failure).await?;
            Ok(Done::Failed)
        }
        Outcome::Error(error) => {
            client.throw_error(job, holder, &error).await?;
            Ok(Done::Error)
        }
    }
}

impl Summary {
    /// A handler that panicked counts as lost: its job comes back when the lease expires.
    fn add(&mut self, done: Option<Done>) {
        match done {
            Some(Done::Completed) => self.completed += 1,
            Some(Done::Failed) => self.failed += 1,
            Some(Done::Error) => self.errors += 1,
            Some(Done::Lost) | None => self.lost += 1,
        }
    }

    pub fn jobs(&self) -> u64 {
        self.completed + self.failed + self.errors + self.lost
    }
}

impl Task {
    /// A step of the job's journal: done once, recorded, and skipped by every later attempt of the same job. The
    /// window between `action` and the record stays: give `action` the job's idempotency key as well.
    pub async fn step<Fut, E>(&self, name: &str, action: impl FnOnce() -> Fut) -> Result<Value, StepError<E>>
    where
        Fut: Future<Output = Result<Value, E>>,
    {
        if let Some(result) = self.job.step(name) {
            return Ok(result.clone());
        }
        let result = action().await.map_err(StepError::Action)?;
        let step = self.client.record_step(&self.job.key, name, &self.holder, &result).await;
        step.map(|step| step.result).map_err(StepError::Record)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    #[error("the step failed")]
    Action(E),
    #[error("the step's result could not be recorded: {0}")]
    Record(ClientError),
}
