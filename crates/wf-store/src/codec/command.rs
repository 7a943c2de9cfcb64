//! Commands as the log keeps them: `{"v":1,"verb":"cancel-instance","instance":"7"}`. Members that are absent stand for
//! `None`. Nothing is compiled here: a deployment comes back with its XML, and the caller compiles it again.
//! Every member is named twice, where it is written and where it is read. Next: `event.rs`.

use wf_core::Command;
use wf_core::command::{CompleteItem, Holder, Quarantined, Resource, UniqueOn};
use wf_core::rows::{Text, Variables};

use crate::codec::read::Members;
use crate::codec::write::Writer;
use crate::codec::{CodecError, crossing};

/// A change of what is written under a version is a change of what old programs read: raise it.
const VERSION: u32 = 1;

pub fn command_to_json(command: &Command) -> String {
    logged_to_json(command, "")
}

/// Leaves out the origin, see [`logged_from_json`].
pub fn command_from_json(text: &str) -> Result<Command, CodecError> {
    logged_from_json(text).map(|(command, _)| command)
}

/// A command with `Context::origin`, without which a replay could not make the same lineage keys; empty for none.
pub fn logged_to_json(command: &Command, origin: &str) -> String {
    let mut out = Writer::with_capacity(size_guess(command));
    out.open('{').int("v", i64::from(VERSION)).text("verb", command.verb());
    out.text_if("origin", (!origin.is_empty()).then_some(origin));
    write_members(command, &mut out);
    out.close('}');
    out.finish()
}

/// The command and its origin; a deployment's `processes` are empty.
pub fn logged_from_json(text: &str) -> Result<(Command, Text), CodecError> {
    let mut members = Members::parse(text)?;
    match members.plain("v")? {
        VERSION => (),
        other => return Err(CodecError::Version(other)),
    }
    let verb = members.text("verb")?;
    let origin = members.text_if("origin")?.unwrap_or_else(|| "".into());
    let command = read_members(&verb, &mut members)?;
    members.finish()?;
    Ok((command, origin))
}

/// The origin alone, whatever the command: a deployment's files are not looked at. `None` where there is none.
pub fn logged_origin(text: &str) -> Option<Text> {
    #[derive(serde::Deserialize)]
    struct Logged {
        origin: Option<String>,
    }
    let logged: Logged = serde_json::from_str(text).ok()?;
    logged.origin.map(Text::from)
}

/// Room for the variables and for names around them: one allocation in nearly every case.
fn size_guess(command: &Command) -> usize {
    let size =
        |variables: &Variables| variables.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
    256 + match command {
        Command::Deploy { resources } => resources.iter().map(|resource| resource.xml.len() * 9 / 8).sum(),
        Command::StartInstance { variables, .. }
        | Command::SetVariables { variables, .. }
        | Command::CompleteJob { variables, .. }
        | Command::FailJob { variables, .. }
        | Command::ThrowError { variables, .. }
        | Command::PublishMessage { variables, .. } => size(variables),
        Command::CompleteJobs { items, .. } => items.iter().map(|item| 80 + size(&item.variables)).sum(),
        Command::RecordStep { result, .. } => result.len(),
        _ => 0,
    }
}

fn write_members(command: &Command, out: &mut Writer) {
    match command {
        Command::Deploy { resources } => write_resources(resources, out),
        Command::StartInstance { process_id, version, variables, unique } => {
            out.text("processId", process_id).int_if("version", version.map(i64::from));
            out.name("variables").variables(variables);
            if let Some(unique) = unique {
                out.name("unique").open('{').text("variable", &unique.variable).hex("value", &unique.value).close('}');
            }
        }
        Command::CancelInstance { instance } => {
            out.key("instance", *instance);
        }
        Command::SetVariables { instance, scope, variables } => {
            out.key("instance", *instance).key_if("scope", *scope).name("variables").variables(variables);
        }
        Command::PublishMessage { name, correlation_key, message_id, ttl_ms, dedup_ms, variables } => {
            out.text("name", name).text("correlationKey", correlation_key).text_if("messageId", message_id.as_deref());
            out.int("ttlMs", *ttl_ms).int("dedupMs", *dedup_ms).name("variables").variables(variables);
        }
        Command::ResolveIncident { incident, retries } => {
            out.key("incident", *incident).int_if("retries", retries.map(i64::from));
        }
        Command::ActivateJobs { .. }
        | Command::CompleteJob { .. }
        | Command::CompleteJobs { .. }
        | Command::FailJob { .. }
        | Command::ThrowError { .. }
        | Command::ExtendLease { .. }
        | Command::RecordStep { .. } => write_worker_members(command, out),
        Command::FireTimer { .. }
        | Command::ExpireLease { .. }
        | Command::EndBackoff { .. }
        | Command::ExpireMessage { .. }
        | Command::Continue { .. }
        | Command::Quarantine { .. }
        | Command::Purge { .. }
        | Command::OpenEpoch { .. }
        | Command::SetClock { .. } => write_engine_members(command, out),
        Command::AdoptDefinitions { .. }
        | Command::OpenSubscription { .. }
        | Command::CloseSubscription { .. }
        | Command::Correlate { .. }
        | Command::SettleCorrelation { .. } => crossing::write(command, out),
    }
}

fn write_worker_members(command: &Command, out: &mut Writer) {
    match command {
        Command::ActivateJobs { job_type, worker, jobs_max, lease_ms, fetch } => {
            out.text("jobType", job_type).text("worker", worker);
            out.int("jobsMax", i64::from(*jobs_max)).int("leaseMs", *lease_ms);
            if let Some(fetch) = fetch {
                out.name("fetch").open('[');
                fetch.iter().fold(out, |out, name| out.item_text(name)).close(']');
            }
        }
        Command::CompleteJob { holder, variables } => {
            write_holder(holder, out).name("variables").variables(variables);
        }
        Command::CompleteJobs { worker, items } => {
            out.text("worker", worker).name("items").open('[');
            for item in items {
                out.open('{').key("job", item.job).key_if("lease", item.lease);
                out.name("variables").variables(&item.variables).close('}');
            }
            out.close(']');
        }
        Command::FailJob { holder, message, retries, backoff_ms, variables } => {
            write_holder(holder, out).text("message", message).int_if("retries", retries.map(i64::from));
            out.int("backoffMs", *backoff_ms).name("variables").variables(variables);
        }
        Command::ThrowError { holder, code, message, variables } => {
            write_holder(holder, out).text("code", code).text("message", message);
            out.name("variables").variables(variables);
        }
        Command::ExtendLease { holder, lease_ms } => {
            write_holder(holder, out).int("leaseMs", *lease_ms);
        }
        Command::RecordStep { holder, name, result } => {
            write_holder(holder, out).text("name", name).raw("result", result);
        }
        _ => (),
    }
}

fn write_engine_members(command: &Command, out: &mut Writer) {
    match command {
        Command::FireTimer { timer, due } => out.key("timer", *timer).int("due", *due),
        Command::ExpireLease { job, lease } => out.key("job", *job).key("lease", *lease),
        Command::EndBackoff { job, due } => out.key("job", *job).int("due", *due),
        Command::ExpireMessage { message } => out.key("message", *message),
        Command::Continue { follow_up } => out.key("followUp", *follow_up),
        Command::Quarantine { what, reason } => {
            match what {
                Quarantined::Timer(key) => out.key("timer", *key),
                Quarantined::FollowUp(key) => out.key("followUp", *key),
                Quarantined::Handover { subscription, message } => {
                    out.key("subscription", *subscription).key("message", *message)
                }
                Quarantined::Subscription(key) => out.key("subscription", *key),
                Quarantined::Copy(key) => out.key("copy", *key),
                Quarantined::Sent(source, position, n) => {
                    out.int("source", i64::from(*source)).key("position", *position).int("n", i64::from(*n))
                }
            };
            out.text("reason", reason)
        }
        Command::Purge { before, rows_max } => out.int("before", *before).int("rowsMax", i64::from(*rows_max)),
        Command::OpenEpoch { epoch, previous_position, previous_digest, semantics } => {
            out.key("epoch", *epoch).key("previousPosition", *previous_position);
            out.hex("previousDigest", previous_digest).int("semantics", i64::from(*semantics))
        }
        Command::SetClock { now, frozen } => out.int("now", *now).flag("frozen", *frozen),
        _ => out,
    };
}

fn write_holder<'a>(holder: &Holder, out: &'a mut Writer) -> &'a mut Writer {
    out.key("job", holder.job).text("worker", &holder.worker).key_if("lease", holder.lease)
}

/// XML that is not UTF-8 declares its own encoding: its bytes stay as they are.
fn write_resources(resources: &[Resource], out: &mut Writer) {
    out.name("resources").open('[');
    for resource in resources {
        out.open('{').text("name", &resource.name);
        match std::str::from_utf8(&resource.xml) {
            Ok(xml) => out.text("xml", xml),
            Err(_) => out.hex("xmlHex", &resource.xml),
        };
        out.close('}');
    }
    out.close(']');
}

fn read_members(verb: &str, from: &mut Members<'_>) -> Result<Command, CodecError> {
    Ok(match verb {
        "deploy" => Command::Deploy {
            resources: from.objects("resources")?.into_iter().map(read_resource).collect::<Result<_, _>>()?,
        },
        "start-instance" => Command::StartInstance {
            process_id: from.text("processId")?,
            version: from.plain_if("version")?,
            variables: from.variables("variables")?,
            unique: from.raw_if("unique").map(read_unique).transpose()?,
        },
        "cancel-instance" => Command::CancelInstance { instance: from.key("instance")? },
        "set-variables" => Command::SetVariables {
            instance: from.key("instance")?,
            scope: from.key_if("scope")?,
            variables: from.variables("variables")?,
        },
        "publish-message" => Command::PublishMessage {
            name: from.text("name")?,
            correlation_key: from.text("correlationKey")?,
            message_id: from.text_if("messageId")?,
            ttl_ms: from.plain("ttlMs")?,
            dedup_ms: from.plain("dedupMs")?,
            variables: from.variables("variables")?,
        },
        "resolve-incident" => {
            Command::ResolveIncident { incident: from.key("incident")?, retries: from.plain_if("retries")? }
        }
        "activate-jobs" | "complete-job" | "complete-jobs" | "fail-job" | "throw-error" | "extend-lease"
        | "record-step" => read_worker_members(verb, from)?,
        _ => read_engine_members(verb, from)?,
    })
}

fn read_worker_members(verb: &str, from: &mut Members<'_>) -> Result<Command, CodecError> {
    Ok(match verb {
        "activate-jobs" => Command::ActivateJobs {
            job_type: from.text("jobType")?,
            worker: from.text("worker")?,
            jobs_max: from.plain("jobsMax")?,
            lease_ms: from.plain("leaseMs")?,
            fetch: from.plain_if("fetch")?,
        },
        "complete-job" => Command::CompleteJob { holder: read_holder(from)?, variables: from.variables("variables")? },
        "complete-jobs" => Command::CompleteJobs {
            worker: from.text("worker")?,
            items: from.objects("items")?.into_iter().map(read_item).collect::<Result<_, _>>()?,
        },
        "fail-job" => Command::FailJob {
            holder: read_holder(from)?,
            message: from.text("message")?,
            retries: from.plain_if("retries")?,
            backoff_ms: from.plain("backoffMs")?,
            variables: from.variables("variables")?,
        },
        "throw-error" => Command::ThrowError {
            holder: read_holder(from)?,
            code: from.text("code")?,
            message: from.text("message")?,
            variables: from.variables("variables")?,
        },
        "extend-lease" => Command::ExtendLease { holder: read_holder(from)?, lease_ms: from.plain("leaseMs")? },
        "record-step" => {
            Command::RecordStep { holder: read_holder(from)?, name: from.text("name")?, result: from.json("result")? }
        }
        other => return Err(CodecError::Verb(other.to_owned())),
    })
}

fn read_engine_members(verb: &str, from: &mut Members<'_>) -> Result<Command, CodecError> {
    Ok(match verb {
        "fire-timer" => Command::FireTimer { timer: from.key("timer")?, due: from.plain("due")? },
        "expire-lease" => Command::ExpireLease { job: from.key("job")?, lease: from.key("lease")? },
        "end-backoff" => Command::EndBackoff { job: from.key("job")?, due: from.plain("due")? },
        "expire-message" => Command::ExpireMessage { message: from.key("message")? },
        "continue" => Command::Continue { follow_up: from.key("followUp")? },
        "quarantine" => {
            let what = read_quarantined(from)?;
            Command::Quarantine { what, reason: from.text("reason")? }
        }
        "purge" => Command::Purge { before: from.plain("before")?, rows_max: from.plain("rowsMax")? },
        "open-epoch" => Command::OpenEpoch {
            epoch: from.key("epoch")?,
            previous_position: from.key("previousPosition")?,
            previous_digest: from.hash("previousDigest")?,
            semantics: from.plain("semantics")?,
        },
        "set-clock" => Command::SetClock { now: from.plain("now")?, frozen: from.plain("frozen")? },
        other => crossing::read(other, from)?,
    })
}

fn read_quarantined(from: &mut Members<'_>) -> Result<Quarantined, CodecError> {
    if let Some(timer) = from.key_if("timer")? {
        return Ok(Quarantined::Timer(timer));
    }
    if let Some(source) = from.plain_if("source")? {
        return Ok(Quarantined::Sent(source, from.key("position")?, from.plain("n")?));
    }
    if let Some(copy) = from.key_if("copy")? {
        return Ok(Quarantined::Copy(copy));
    }
    match (from.key_if("subscription")?, from.key_if("message")?) {
        (Some(subscription), Some(message)) => Ok(Quarantined::Handover { subscription, message }),
        (Some(subscription), None) => Ok(Quarantined::Subscription(subscription)),
        _ => Ok(Quarantined::FollowUp(from.key("followUp")?)),
    }
}

fn read_holder(from: &mut Members<'_>) -> Result<Holder, CodecError> {
    Ok(Holder { job: from.key("job")?, worker: from.text("worker")?, lease: from.key_if("lease")? })
}

fn read_item(mut from: Members<'_>) -> Result<CompleteItem, CodecError> {
    let item =
        CompleteItem { job: from.key("job")?, lease: from.key_if("lease")?, variables: from.variables("variables")? };
    from.finish()?;
    Ok(item)
}

fn read_unique(text: &str) -> Result<UniqueOn, CodecError> {
    let mut from = Members::parse(text)?;
    let unique = UniqueOn { variable: from.text("variable")?, value: from.hash("value")? };
    from.finish()?;
    Ok(unique)
}

fn read_resource(mut from: Members<'_>) -> Result<Resource, CodecError> {
    let name = from.text("name")?;
    let xml = crossing::read_xml(&mut from)?;
    from.finish()?;
    Ok(Resource { name, xml, processes: Vec::new() })
}
