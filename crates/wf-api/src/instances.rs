//! Process instances: start, cancel, set variables; what lists and the detail show.
//! It finds no rows and compiles nothing: the door brings the graph. Next: `wf_core::instances`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::command::UniqueOn;
use wf_core::rows::{Attached, AttachedKind, Element, Scope, ScopeState, Text, Variables};
use wf_core::{Command, Key, Outcome};
use wf_idempotency::record::Answer;
use wf_model::Process;
use wf_store::{InstanceDetail, InstanceState};

use crate::Problem;
use crate::answer::{self, KeyText};
use crate::body::{self, Fields, NAME};
use crate::incidents::IncidentOut;
use crate::time::{self, Instant};
use crate::variables::{RawMembers, unique_hash};
use crate::write::Writer;

/// Body of `POST /api/v1/instances`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct StartInstance {
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    pub process_definition_id: Text,
    /// The latest where absent.
    #[schema(minimum = 1)]
    pub version: Option<u32>,
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
    /// Names a variable: while an active instance of this process has the same value, start returns that instance.
    #[schema(value_type = Option<String>)]
    pub uniqueness_key: Option<Text>,
}

pub fn read_start(bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| {
        let process_id = fields.required_text("processDefinitionId", NAME);
        let version = fields.int("version", 1..=i64::from(u32::MAX)).and_then(|version| u32::try_from(version).ok());
        let variables = fields.variables("variables");
        let unique = fields.text("uniquenessKey", NAME).and_then(|name| unique_on(fields, name, &variables));
        if fields.take("awaitMs").is_some() {
            fields.refuse("awaitMs", "is not supported yet: poll GET /api/v1/instances/{key} instead");
        }
        Command::StartInstance { process_id, version, variables, unique }
    })
}

fn unique_on(fields: &mut Fields<'_>, variable: Text, variables: &Variables) -> Option<UniqueOn> {
    match unique_hash(variables, &variable) {
        Ok(value) => Some(UniqueOn { variable, value }),
        Err(message) => {
            fields.refuse("uniquenessKey", message);
            None
        }
    }
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Started {
    pub key: String,
    pub process_definition_id: String,
    pub version: u32,
    /// `ACTIVE`
    pub state: String,
    /// An active twin was found by its `uniquenessKey`.
    pub existing: bool,
}

/// 201, or 200 where a twin lives.
pub fn render_started(outcome: &Outcome) -> Answer {
    let Outcome::Started(started) = outcome else { return answer::unexpected(outcome) };
    let mut out = Writer::new(112 + started.process_id.len());
    out.raw("{\"key\":").key(started.key).raw(",\"processDefinitionId\":").text(&started.process_id);
    out.raw(",\"version\":").digits(u64::from(started.version)).raw(",\"state\":\"ACTIVE\",\"existing\":");
    out.bool(started.existing).raw("}");
    let status = if started.existing { 200 } else { 201 };
    answer::with_location(answer::json(status, out.finish()), format!("/api/v1/instances/{}", started.key))
}

/// Body of requests that need no fields.
#[derive(Debug, ToSchema)]
pub struct NoFields {}

pub fn read_cancel(instance: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |_| Command::CancelInstance { instance })
}

#[derive(Debug, Serialize, ToSchema)]
pub struct KeyAndState {
    #[schema(value_type = String)]
    pub key: KeyText,
    pub state: &'static str,
}

pub fn render_canceled(outcome: &Outcome) -> Answer {
    let Outcome::Canceled { instance } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &KeyAndState { key: KeyText(*instance), state: "CANCELED" })
}

/// Body of `PUT /api/v1/instances/{key}/variables`.
#[derive(Debug, ToSchema)]
pub struct SetVariables {
    #[schema(value_type = Object)]
    pub variables: Variables,
    /// An element of the instance whose own variables are set; the instance's where absent.
    #[schema(value_type = Option<String>)]
    pub scope: Option<Key>,
}

pub fn read_set_variables(instance: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| {
        let variables = fields.required_variables("variables");
        let scope = fields.key("scope");
        Command::SetVariables { instance, scope, variables }
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub struct KeyOnly {
    #[schema(value_type = String)]
    pub key: KeyText,
}

pub fn render_variables_set(outcome: &Outcome) -> Answer {
    let Outcome::VariablesSet { key } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &KeyOnly { key: KeyText(*key) })
}

/// An instance in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceOut {
    #[schema(value_type = String)]
    pub key: KeyText,
    #[schema(value_type = String)]
    pub process_definition_id: Text,
    pub version: u32,
    pub state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Instant,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub ended_at: Option<Instant>,
    /// The instance that called this one.
    #[schema(value_type = Option<String>, required)]
    pub parent_key: Option<KeyText>,
}

/// An instance with what it knows and what it waits for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceDetailOut {
    #[serde(flatten)]
    pub instance: InstanceOut,
    #[schema(value_type = Object)]
    pub variables: RawMembers,
    pub active_elements: Vec<ActiveElement>,
    pub incidents: Vec<IncidentOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveElement {
    #[schema(value_type = String)]
    pub key: KeyText,
    #[schema(value_type = String)]
    pub element_id: Text,
    /// The BPMN tag: `serviceTask`, `intermediateCatchEvent`, …
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub element_type: &'static str,
    pub waiting_for: Option<WaitingFor>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// `job`, `message`, `timer`, `child` or `incident`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    #[schema(value_type = String)]
    pub key: KeyText,
    /// The job's type, or the message's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub correlation_key: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due_at: Option<Instant>,
}

/// `None` for a scope that is no root.
pub fn instance_of(root: &Scope) -> Option<InstanceOut> {
    let instance = root.instance.as_deref()?;
    Some(InstanceOut {
        key: KeyText(root.key),
        process_definition_id: instance.process_id.clone(),
        version: instance.version,
        state: state_name(root.state),
        started_at: Instant(instance.started_at),
        ended_at: time::unless_zero(instance.ended_at),
        parent_key: None,
    })
}

/// One that is being terminated has not ended yet.
fn state_name(state: ScopeState) -> &'static str {
    match state {
        ScopeState::Active | ScopeState::Terminating => "ACTIVE",
        ScopeState::Completed => "COMPLETED",
        ScopeState::Canceled => "CANCELED",
    }
}

pub fn parse_state(text: &str) -> Option<InstanceState> {
    match text {
        "ACTIVE" => Some(InstanceState::Active),
        "COMPLETED" => Some(InstanceState::Completed),
        "CANCELED" => Some(InstanceState::Canceled),
        _ => None,
    }
}

/// Without the graph elements keep their place in the list and lose their names.
pub fn detail_of(detail: &InstanceDetail, process: Option<&Process>) -> Option<InstanceDetailOut> {
    let waits = Waits::of(detail);
    let variables = detail.variables.iter().map(|row| (row.name.clone(), row.value.clone())).collect();
    Some(InstanceDetailOut {
        instance: instance_of(&detail.root)?,
        variables: RawMembers(variables),
        active_elements: detail.elements.iter().map(|element| waits.describe(element, process)).collect(),
        incidents: detail.incidents.iter().map(|incident| IncidentOut::from(&**incident)).collect(),
    })
}

/// What elements of one instance wait for, by key.
struct Waits<'a> {
    detail: &'a InstanceDetail,
    jobs: BTreeMap<Key, &'a wf_core::rows::Job>,
    timers: BTreeMap<Key, &'a wf_core::rows::Timer>,
    subscriptions: BTreeMap<Key, &'a wf_core::rows::Subscription>,
}

impl<'a> Waits<'a> {
    fn of(detail: &'a InstanceDetail) -> Waits<'a> {
        Waits {
            detail,
            jobs: detail.jobs.iter().map(|job| (job.key, &**job)).collect(),
            timers: detail.timers.iter().map(|timer| (timer.key, &**timer)).collect(),
            subscriptions: detail.subscriptions.iter().map(|row| (row.key, &**row)).collect(),
        }
    }

    fn describe(&self, element: &Element, process: Option<&Process>) -> ActiveElement {
        let node = process.and_then(|process| process.element(element.element));
        ActiveElement {
            key: KeyText(element.key),
            element_id: node.map_or_else(|| Text::from(""), |node| Arc::clone(&node.id)),
            element_type: node.map_or("", |node| node.bpmn_type),
            waiting_for: self.waiting_for(element),
        }
    }

    /// An incident stops everything else; a boundary event's timer is not what its host waits for.
    fn waiting_for(&self, element: &Element) -> Option<WaitingFor> {
        if element.incident != 0 {
            return Some(bare("incident", element.incident));
        }
        if let Some(job) = self.jobs.get(&element.job) {
            return Some(WaitingFor { name: Some(job.job_type.clone()), ..bare("job", job.key) });
        }
        if self.detail.scopes.iter().any(|scope| scope.key == element.key && scope.parent != 0) {
            return Some(bare("child", element.key));
        }
        element.attached.iter().find_map(|attached| self.trigger(attached))
    }

    fn trigger(&self, attached: &Attached) -> Option<WaitingFor> {
        match attached.kind {
            AttachedKind::Timer => self
                .timers
                .get(&attached.key)
                .map(|timer| WaitingFor { due_at: Some(Instant(timer.due)), ..bare("timer", timer.key) }),
            AttachedKind::Subscription => self.subscriptions.get(&attached.key).map(|row| WaitingFor {
                name: Some(row.message.clone()),
                correlation_key: Some(row.correlation_key.clone()),
                ..bare("message", row.key)
            }),
        }
    }
}

fn bare(kind: &'static str, key: Key) -> WaitingFor {
    WaitingFor { kind, key: KeyText(key), name: None, correlation_key: None, due_at: None }
}
