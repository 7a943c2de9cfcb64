//! Events as the audit keeps them: `{"type":"timer.fired","resource":"9","root":"4","payload":{"elementId":"late"}}`.
//! Payloads are also what sinks publish. They are written only: nothing is rebuilt from events.
//! Next: `write.rs`.

use serde_json::value::RawValue;
use wf_core::Event;
use wf_core::event::What;

use crate::codec::CodecError;
use crate::codec::write::Writer;

/// All events of one command, as a JSON array.
pub fn events_to_json(events: &[Event]) -> String {
    events_to_json_each(events, |_| ())
}

/// The same; `visit` gets each event's own text, in order: what the audit's chain hashes.
pub fn events_to_json_each(events: &[Event], mut visit: impl FnMut(&str)) -> String {
    let mut out = Writer::with_capacity(16 + events.len() * 128);
    out.open('[');
    for event in events {
        let begin = out.item();
        out.open('{').text("type", event.what.name()).key("resource", event.resource);
        out.key_if("root", (event.root != 0).then_some(event.root)).name("payload");
        write_payload(&event.what, &mut out);
        out.close('}');
        visit(out.since(begin));
    }
    out.close(']');
    out.finish()
}

/// The texts of a stored array's events, byte for byte as they stand: what the chain hashed.
pub fn events_of_json(text: &str) -> Result<Vec<&str>, CodecError> {
    let events: Vec<&RawValue> = serde_json::from_str(text)?;
    Ok(events.into_iter().map(RawValue::get).collect())
}

/// One event's payload: an object with the fields of its kind alone.
pub fn event_payload_json(event: &Event) -> String {
    let mut out = Writer::with_capacity(128);
    write_payload(&event.what, &mut out);
    out.finish()
}

fn write_payload(what: &What, out: &mut Writer) {
    out.open('{');
    match what {
        What::JobCreated { .. }
        | What::JobActivated { .. }
        | What::JobCompleted { .. }
        | What::JobFailed { .. }
        | What::JobErrorThrown { .. }
        | What::JobLeaseExpired { .. }
        | What::JobLeaseExtended { .. }
        | What::JobStepRecorded { .. } => write_job(what, out),
        What::SubscriptionOpened { .. }
        | What::SubscriptionAnnounced { .. }
        | What::MessagePublished { .. }
        | What::MessageHandedOver { .. }
        | What::MessageRejected { .. }
        | What::MessageSettled { .. }
        | What::MessageCorrelated { .. } => write_message(what, out),
        What::DefinitionDeployed { .. }
        | What::DefinitionAdopted { .. }
        | What::InstanceStarted { .. }
        | What::InstanceCompleted { .. }
        | What::InstanceCanceled { .. }
        | What::ElementActivated { .. }
        | What::ElementCompleted { .. }
        | What::ElementTerminated { .. }
        | What::VariablesSet { .. }
        | What::TimerScheduled { .. }
        | What::TimerFired { .. }
        | What::IncidentCreated { .. }
        | What::Quarantined { .. }
        | What::Purged { .. }
        | What::EpochOpened { .. }
        | What::ClockSet { .. } => write_other(what, out),
        What::JobCanceled
        | What::JobReady
        | What::TimerCanceled
        | What::SubscriptionClosed
        | What::SubscriptionWithdrawn
        | What::MessageExpired
        | What::IncidentResolved
        | What::FollowUpScheduled
        | What::FollowUpDone => (),
    }
    out.close('}');
}

fn write_job(what: &What, out: &mut Writer) {
    match what {
        What::JobCreated { job_type, element_id } => out.text("jobType", job_type).text("elementId", element_id),
        What::JobActivated { worker, lease, deadline } => {
            out.text("worker", worker).key("lease", *lease).int("deadline", *deadline)
        }
        What::JobCompleted { job_type, worker } => out.text("jobType", job_type).text("worker", worker),
        What::JobFailed { retries, message } => out.int("retries", i64::from(*retries)).text("message", message),
        What::JobErrorThrown { code, caught_by } => out.text("code", code).text_if("caughtBy", caught_by.as_deref()),
        What::JobLeaseExpired { worker } => out.text("worker", worker),
        What::JobLeaseExtended { deadline } => out.int("deadline", *deadline),
        What::JobStepRecorded { name } => out.text("name", name),
        _ => out,
    };
}

fn write_message(what: &What, out: &mut Writer) {
    match what {
        What::SubscriptionOpened { message, correlation_key }
        | What::SubscriptionAnnounced { message, correlation_key } => {
            out.text("message", message).text("correlationKey", correlation_key)
        }
        What::MessagePublished { name, correlation_key, message_id } => {
            out.text("name", name).text("correlationKey", correlation_key);
            out.text_if("messageId", message_id.as_deref())
        }
        What::MessageHandedOver { name } | What::MessageRejected { name } => out.text("name", name),
        What::MessageSettled { accepted } => out.flag("accepted", *accepted),
        What::MessageCorrelated { name, element_id } => out.text("name", name).text("elementId", element_id),
        _ => out,
    };
}

fn write_other(what: &What, out: &mut Writer) {
    match what {
        What::DefinitionDeployed { process_id, version, resource } => {
            write_process(process_id, *version, out).text("resource", resource)
        }
        What::InstanceStarted { process_id, version, variables } => {
            write_process(process_id, *version, out).name("variables").variables(variables)
        }
        What::InstanceCompleted { process_id, version }
        | What::InstanceCanceled { process_id, version }
        | What::DefinitionAdopted { process_id, version } => write_process(process_id, *version, out),
        What::ElementActivated { element_id }
        | What::ElementCompleted { element_id }
        | What::ElementTerminated { element_id }
        | What::TimerFired { element_id } => out.text("elementId", element_id),
        What::VariablesSet { variables } => out.name("variables").variables(variables),
        What::TimerScheduled { element_id, due } => out.text("elementId", element_id).int("due", *due),
        What::IncidentCreated { kind, element_id, message, job } => {
            out.text("kind", kind.name()).text("elementId", element_id).text("message", message);
            out.key_if("job", (*job != 0).then_some(*job))
        }
        What::Quarantined { reason } => out.text("reason", reason),
        What::Purged { rows } => out.int("rows", i64::from(*rows)),
        What::EpochOpened { epoch, previous_position } => {
            out.key("epoch", *epoch).key("previousPosition", *previous_position)
        }
        What::ClockSet { now } => out.int("now", *now),
        _ => out,
    };
}

fn write_process<'a>(process_id: &str, version: u32, out: &'a mut Writer) -> &'a mut Writer {
    out.text("processDefinitionId", process_id).int("version", i64::from(version))
}
