//! The table of verbs: one command on one draft. Everything that it causes inside the partition happens here and now.
//! It decides and changes rows only; who asked, records and commits are the engine's. Next: the file of the verb's noun, then `walk/`.

use crate::command::{Command, Context};
use crate::draft::{Draft, Run};
use crate::ids::Key;
use crate::outcome::Outcome;
use crate::walk::Walk;
use crate::{deploy, incidents, instances, jobs, messages, upkeep};

/// Runs a command to its end, or says what it needs or why it is refused. Pure: run again, it does the same.
pub fn decide(draft: &mut Draft<'_>, command: &Command, context: &Context) -> Run<Outcome> {
    let mut walk = Walk::new(draft, context);
    let outcome = dispatch(&mut walk, command)?;
    walk.run()?;
    walk.count_steps()?;
    Ok(outcome.resolve(&walk))
}

/// An outcome that is known now, or only after the walk.
pub(crate) enum Pending {
    Known(Outcome),
    /// Messages correlate while the walk goes on; the answer lists whom they reached.
    Published {
        key: Key,
    },
}

impl From<Outcome> for Pending {
    fn from(outcome: Outcome) -> Pending {
        Pending::Known(outcome)
    }
}

impl Pending {
    fn resolve(self, walk: &Walk<'_, '_>) -> Outcome {
        match self {
            Pending::Known(outcome) => outcome,
            Pending::Published { key } => {
                Outcome::Published { key, duplicate: false, misuse: false, correlated: walk.reached_by(key) }
            }
        }
    }
}

fn dispatch(walk: &mut Walk<'_, '_>, command: &Command) -> Run<Pending> {
    match command {
        Command::Deploy { resources } => Ok(deploy::deploy(walk, resources)?.into()),
        Command::StartInstance { process_id, version, variables, unique } => {
            Ok(instances::start(walk, process_id, *version, variables, unique.as_ref())?.into())
        }
        Command::CancelInstance { instance } => Ok(instances::cancel(walk, *instance)?.into()),
        Command::SetVariables { instance, scope, variables } => {
            Ok(instances::set_variables(walk, *instance, *scope, variables)?.into())
        }
        Command::ActivateJobs { job_type, worker, jobs_max, lease_ms, fetch } => {
            Ok(jobs::activate(walk, job_type, worker, *jobs_max, *lease_ms, fetch.as_deref())?.into())
        }
        Command::CompleteJob { holder, variables } => Ok(jobs::complete(walk, holder, variables)?.into()),
        Command::CompleteJobs { worker, items } => Ok(jobs::complete_many(walk, worker, items)?.into()),
        Command::FailJob { holder, message, retries, backoff_ms, variables } => {
            Ok(jobs::fail(walk, holder, message, *retries, *backoff_ms, variables)?.into())
        }
        Command::ThrowError { holder, code, message, variables } => {
            Ok(jobs::throw_error(walk, holder, code, message, variables)?.into())
        }
        Command::ExtendLease { holder, lease_ms } => Ok(jobs::extend(walk, holder, *lease_ms)?.into()),
        Command::RecordStep { holder, name, result } => Ok(jobs::record_step(walk, holder, name, result)?.into()),
        Command::PublishMessage { name, correlation_key, message_id, ttl_ms, dedup_ms, variables } => {
            // An empty id is none: it would make every second message a repeat.
            let message_id = message_id.as_ref().filter(|id| !id.is_empty());
            let publication = messages::Publication { name, correlation_key, message_id, variables };
            messages::publish(walk, &publication, *ttl_ms, *dedup_ms)
        }
        Command::ResolveIncident { incident, retries } => Ok(incidents::resolve(walk, *incident, *retries)?.into()),
        own => Ok(upkeep::own(walk, own)?.into()),
    }
}
