//! One instance from its start to its end, by whatever it waits for: a job is done, a message published, and when only
//! timers are left, time is moved to the next. Everything goes through the API, as a user would do it.

use jiff::Timestamp;
use serde_json::Map;
use wf_client::{ActivateJobs, ActiveElement, Client, Holder, Instance, PublishMessage, StartInstance, Waiting};
use wf_model::Process;

use crate::output::Failure;

use super::guess::{self, Guess};

/// A model that loops is left after so many rounds.
const ROUNDS: usize = 60;
/// After so many rounds, and again after as many, workers and messages bring other values: that is how loops end.
const ROUNDS_OF_A_GUESS: usize = 6;
/// Hours: timers that are not shown (those of a scope whose content waits) are found by moving time anyway.
const LEAPS: [u64; 4] = [1, 24, 31 * 24, 366 * 24];
/// Steps that are told; a loop's steps are all alike.
const STEPS_TOLD: usize = 60;
const WORKER: &str = "made-up";

pub struct Walk {
    pub instance: Option<Instance>,
    pub steps: Vec<String>,
    /// Why it went no further, where it did not end.
    pub stuck: String,
}

impl Walk {
    pub fn has_ended(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.ended_at.is_some())
    }

    fn tell(&mut self, step: String) {
        if self.steps.len() < STEPS_TOLD {
            self.steps.push(step);
        }
    }
}

pub async fn walk(client: &Client, process: &Process, guess: &Guess, attempt: usize) -> Result<Walk, Failure> {
    let mut walk = Walk { instance: None, steps: Vec::new(), stuck: String::new() };
    let Some(key) = start(client, process, guess, attempt, &mut walk).await? else {
        walk.stuck = "no instance was started by its message".to_owned();
        return Ok(walk);
    };
    let mut leaps = LEAPS.into_iter();
    let mut helper = Helper { client, process, guess: guess.clone(), brings_all: false };
    for round in 1..=ROUNDS {
        let instance = client.instance(&key).await?;
        let active = instance.active_elements.clone();
        walk.instance = Some(instance);
        if walk.has_ended() {
            return Ok(walk);
        }
        if round % ROUNDS_OF_A_GUESS == 0 {
            helper.guess = Guess::of(process, attempt + round / ROUNDS_OF_A_GUESS);
            helper.brings_all = true;
        }
        if helper.help(&active, &mut walk).await? || next_timer(client, &active, &mut walk).await? {
            continue;
        }
        let Some(hours) = leaps.next() else {
            walk.stuck = "nothing that it waits for can be made up".to_owned();
            return Ok(walk);
        };
        client.advance_clock(hours * 3_600_000).await?;
    }
    walk.stuck = format!("it did not end within {ROUNDS} rounds");
    Ok(walk)
}

async fn start(
    client: &Client,
    process: &Process,
    guess: &Guess,
    attempt: usize,
    walk: &mut Walk,
) -> Result<Option<String>, Failure> {
    let variables = guess.variables().clone();
    let Some(name) = guess::start_message(process, attempt) else {
        let id = process.process_id.to_string();
        let start = StartInstance { process_definition_id: id, variables, ..StartInstance::default() };
        walk.tell("start".to_owned());
        return Ok(Some(client.start(&start).await?.key));
    };
    let message = PublishMessage {
        name: name.to_owned(),
        // Each attempt is an instance of its own: the same key would be taken for the same case.
        correlation_key: format!("demo-{attempt}"),
        message_id: Some(format!("start-{name}-{attempt}")),
        variables,
        ..PublishMessage::default()
    };
    walk.tell(format!("message {name} starts it"));
    let published = client.publish(&message).await?;
    for correlated in published.correlated {
        let key = correlated.process_instance_key;
        // One message may start several processes.
        if client.instance(&key).await?.process_definition_id == *process.process_id {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Workers and senders of messages, made up on the spot.
struct Helper<'w> {
    client: &'w Client,
    process: &'w Process,
    guess: Guess,
    /// Everything is brought, not only what mappings ask for.
    brings_all: bool,
}

impl Helper<'_> {
    /// Does jobs and publishes messages; false where there was nothing of the kind.
    async fn help(&self, active: &[ActiveElement], walk: &mut Walk) -> Result<bool, Failure> {
        let mut helped = false;
        for element in active {
            let Some(waiting) = &element.waiting_for else { continue };
            helped |= match waiting.kind.as_str() {
                "job" => self.job(waiting, walk).await?,
                "message" => self.message(element, waiting, walk).await?,
                _ => false,
            };
        }
        Ok(helped)
    }

    async fn job(&self, waiting: &Waiting, walk: &mut Walk) -> Result<bool, Failure> {
        let Some(job_type) = &waiting.name else { return Ok(false) };
        let poll = ActivateJobs {
            job_type: job_type.clone(),
            worker: WORKER.to_owned(),
            max_jobs: 100,
            lease_ms: 60_000,
            wait_ms: 0,
            fetch_variables: vec![],
        };
        let mut done = false;
        for job in self.client.activate(&poll).await?.jobs {
            let holder = Holder { worker: WORKER.to_owned(), lease: Some(job.lease.clone()) };
            let results = self.guess.results(self.process, &job.element_id, self.brings_all);
            match self.client.complete(&job.key, &holder, &results).await {
                Ok(_) => walk.tell(format!("job {job_type} at {} done{}", job.element_id, with(&results))),
                // The completion of another one may have ended its scope.
                Err(error) if error.is_lease_lost() || error.code() == "job-not-found" => continue,
                Err(error) => return Err(error.into()),
            }
            done = true;
        }
        Ok(done)
    }

    async fn message(&self, element: &ActiveElement, waiting: &Waiting, walk: &mut Walk) -> Result<bool, Failure> {
        let Some(name) = waiting.name.clone() else { return Ok(false) };
        let variables = self.guess.results(self.process, &element.element_id, self.brings_all);
        let correlation_key = waiting.correlation_key.clone().unwrap_or_default();
        let said = format!("message {name} for {correlation_key:?} at {}{}", element.element_id, with(&variables));
        let message = PublishMessage { name, correlation_key, variables, ..PublishMessage::default() };
        let handed = !self.client.publish(&message).await?.correlated.is_empty();
        if handed {
            walk.tell(said);
        }
        Ok(handed)
    }
}

/// Moves the clock to the earliest timer; false where there is none.
async fn next_timer(client: &Client, active: &[ActiveElement], walk: &mut Walk) -> Result<bool, Failure> {
    let due = |element: &ActiveElement| {
        let due = element.waiting_for.as_ref()?.due_at.clone()?;
        Some((due.parse::<Timestamp>().ok()?, due, element.element_id.clone()))
    };
    let Some((_, due, element_id)) = active.iter().filter_map(due).min() else { return Ok(false) };
    walk.tell(format!("time moves to {due}, for {element_id}"));
    client.set_clock(&due).await?;
    Ok(true)
}

fn with(variables: &Map<String, serde_json::Value>) -> String {
    if variables.is_empty() {
        return String::new();
    }
    let text = serde_json::Value::Object(variables.clone()).to_string();
    format!(" with {}", crate::output::short(&text, 120))
}
