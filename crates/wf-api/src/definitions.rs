//! Process definitions: what a deployment answers, what lists show, and why a model is refused.
//! It reads no XML; the door compiles. Next: `wf_core::deploy`.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::Outcome;
use wf_core::outcome;
use wf_core::rows::{Definition, Text};
use wf_idempotency::record::Answer;
use wf_store::DefinitionInfo;

use crate::answer::{self, KeyText};
use crate::time::Instant;
use crate::write::{self, Writer};
use crate::{Code, Problem};

/// A deployment of several files: parts of any name, each with its file name.
#[derive(Debug, ToSchema)]
pub struct Files {
    #[schema(value_type = Vec<String>, format = Binary)]
    pub file: Vec<Arc<[u8]>>,
}

/// A deployed process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionOut {
    #[schema(value_type = String)]
    pub key: KeyText,
    #[schema(value_type = String)]
    pub process_definition_id: Text,
    pub version: u32,
    #[schema(value_type = String)]
    pub resource_name: Text,
    #[schema(value_type = String, format = DateTime)]
    pub deployed_at: Instant,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    pub definitions: Vec<DeployedDefinition>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployedDefinition {
    #[serde(flatten)]
    pub definition: DefinitionOut,
    /// The file's bytes equal those of the latest version: that one stays.
    pub duplicate: bool,
}

pub fn render_deployed(outcome: &Outcome) -> Answer {
    let Outcome::Deployed(deployed) = outcome else { return answer::unexpected(outcome) };
    let status = if deployed.iter().all(|definition| definition.duplicate) { 200 } else { 201 };
    answer::of(status, &Deployed { definitions: deployed.iter().map(deployed_definition).collect() })
}

fn deployed_definition(deployed: &outcome::Deployed) -> DeployedDefinition {
    let definition = DefinitionOut {
        key: KeyText(deployed.key),
        process_definition_id: deployed.process_id.clone(),
        version: deployed.version,
        resource_name: deployed.resource.clone(),
        deployed_at: Instant(deployed.deployed_at),
    };
    DeployedDefinition { definition, duplicate: deployed.duplicate }
}

impl From<DefinitionInfo> for DefinitionOut {
    fn from(info: DefinitionInfo) -> DefinitionOut {
        DefinitionOut {
            key: KeyText(info.key),
            process_definition_id: info.process_id,
            version: info.version,
            resource_name: info.resource,
            deployed_at: Instant(info.deployed_at),
        }
    }
}

impl From<&Definition> for DefinitionOut {
    fn from(row: &Definition) -> DefinitionOut {
        DefinitionOut {
            key: KeyText(row.key),
            process_definition_id: row.process_id.clone(),
            version: row.version,
            resource_name: row.resource.clone(),
            deployed_at: Instant(row.deployed_at),
        }
    }
}

/// Why files cannot be executed: each file's name with its problems.
pub fn invalid(files: &[(Arc<str>, Vec<wf_model::Problem>)]) -> Problem {
    let problems: Vec<(&str, &wf_model::Problem)> =
        files.iter().flat_map(|(name, problems)| problems.iter().map(|problem| (&**name, problem))).collect();
    let mut out = Writer::new(128 * problems.len());
    write::list(&mut out, &problems, |out, (name, problem)| {
        out.raw("{\"elementId\":");
        match &problem.element_id {
            Some(id) => out.text(id),
            None => out.raw("null"),
        };
        out.raw(",\"line\":").digits(u64::from(problem.line)).raw(",\"message\":").text(&problem.message);
        out.raw(",\"resourceName\":").text(name).raw("}");
    });
    let detail = match &problems[..] {
        [(name, problem)] => format!("{name}, {problem}"),
        problems => format!("{} problems", problems.len()),
    };
    Problem::new(Code::DefinitionInvalid, detail).with_raw("errors", out)
}
