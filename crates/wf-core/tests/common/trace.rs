//! Events as lines: the stable name, the element, and what a reader wants to know. Keys do not appear.

use std::collections::BTreeMap;

use wf_core::event::What;
use wf_core::{Event, Key};

/// Which element a job, timer, … belongs to, so that later events about it can name it.
#[derive(Clone, Default)]
pub struct Names(BTreeMap<Key, String>);

impl Names {
    pub fn line(&mut self, event: &Event, start: i64) -> String {
        let name = event.what.name();
        let detail = self.detail(event, start);
        format!("{name} {detail}").trim_end().to_owned()
    }

    fn detail(&mut self, event: &Event, start: i64) -> String {
        match &event.what {
            What::DefinitionDeployed { process_id, version, .. } | What::DefinitionAdopted { process_id, version } => {
                format!("{process_id} v{version}")
            }
            What::InstanceStarted { process_id, version, variables } => {
                format!("{process_id} v{version} {}", object(variables))
            }
            What::InstanceCompleted { process_id, .. } | What::InstanceCanceled { process_id, .. } => {
                process_id.to_string()
            }
            What::ElementActivated { element_id }
            | What::ElementCompleted { element_id }
            | What::ElementTerminated { element_id } => element_id.to_string(),
            What::VariablesSet { variables } => {
                let place = if event.resource == event.root { "" } else { " (inner)" };
                format!("{}{place}", object(variables))
            }
            What::JobCreated { job_type, element_id } => {
                self.know(event.resource, element_id);
                format!("{element_id} {job_type}")
            }
            What::JobActivated { worker, .. } => format!("{} {worker}", self.of(event.resource)),
            What::JobFailed { retries, message } => format!("{} {retries} {message}", self.of(event.resource)),
            What::JobErrorThrown { code, caught_by } => {
                let caught = caught_by.as_deref().unwrap_or("nobody");
                format!("{} {code} caught by {caught}", self.of(event.resource))
            }
            What::JobStepRecorded { name } => format!("{} {name}", self.of(event.resource)),
            What::TimerScheduled { element_id, due } => {
                self.know(event.resource, element_id);
                format!("{element_id} +{}", due - start)
            }
            What::SubscriptionOpened { message, correlation_key }
            | What::SubscriptionAnnounced { message, correlation_key } => {
                self.know(event.resource, message);
                format!("{message} '{correlation_key}'")
            }
            What::MessagePublished { name, correlation_key, .. } => format!("{name} '{correlation_key}'"),
            What::MessageHandedOver { name } | What::MessageRejected { name } => name.to_string(),
            What::MessageSettled { accepted } => accepted.to_string(),
            What::MessageCorrelated { name, element_id } => format!("{name} to {element_id}"),
            What::IncidentCreated { kind, element_id, message, .. } => {
                format!("{element_id} {}: {message}", kind.name())
            }
            What::Purged { rows } => rows.to_string(),
            What::JobCompleted { .. }
            | What::JobCanceled
            | What::JobReady
            | What::JobLeaseExpired { .. }
            | What::JobLeaseExtended { .. }
            | What::TimerFired { .. }
            | What::TimerCanceled
            | What::SubscriptionClosed
            | What::SubscriptionWithdrawn => self.of(event.resource),
            _ => String::new(),
        }
    }

    fn know(&mut self, key: Key, name: &str) {
        self.0.insert(key, name.to_owned());
    }

    fn of(&self, key: Key) -> String {
        self.0.get(&key).cloned().unwrap_or_default()
    }
}

pub fn object(variables: &wf_core::rows::Variables) -> String {
    let members: Vec<String> = variables.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}
