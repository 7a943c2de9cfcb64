//! What proofs over the store found, as clients read it: one line of JSON per step of progress, one with the report.
//! It proves nothing itself. Next: `wf_engine::proof`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wf_core::ids::{hash16, hex};
use wf_core::text::rfc3339;
use wf_core::{Row, RowId};
use wf_engine::proof::{AuditReport, Difference, Divergence, Progress, ReplayReport, TablesReport, Verdict};

/// Values in a difference are cut to this.
const VALUE_CHARS_MAX: usize = 200;

/// One line of a proof's answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProofLine {
    Progress(ProgressOut),
    Replay(ReplayOut),
    Tables(TablesOut),
    Audit(AuditProofOut),
    /// There is no verdict: the proof itself failed.
    Failed(String),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressOut {
    /// Commands, or rows where tables are read.
    pub done: u64,
    /// About so many in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayOut {
    pub identical: bool,
    pub commands: u64,
    /// Those of them that lie in the range asked for.
    pub compared: u64,
    /// 0, or the position of the checkpoint at which the replay began.
    pub base: String,
    pub position: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divergence: Option<DivergenceOut>,
    /// Where the partition stands, if the log ends before it (its last commands were removed) or behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesOut>,
    /// Rows that differ between the replay's end and the tables; the first are listed.
    pub rows_that_differ: u64,
    pub differences: Vec<DifferenceOut>,
}

/// The first command that did not do again what it did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DivergenceOut {
    pub position: String,
    pub time: String,
    pub tenant: String,
    pub verb: String,
    pub reason: String,
    pub command: String,
    /// The events it told then and those it tells now, as JSON arrays.
    pub told: String,
    pub tells: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceOut {
    pub row: String,
    pub fields: Vec<FieldOut>,
}

/// A field that differs; a dash where the row does not stand.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldOut {
    pub field: String,
    pub stored: String,
    pub replayed: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TablesOut {
    pub agree: bool,
    pub position: String,
    pub rows: u64,
    pub sum: String,
    pub digest: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditProofOut {
    pub complete: bool,
    pub commands: u64,
    pub events: u64,
    pub position: String,
    /// The chain's head at that position: kept somewhere else, it proves later that nothing before it was rewritten.
    pub chain: String,
    /// Where the command log begins; commands before it are in an archive.
    pub log_from: String,
    /// Rows up to this position have left the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl From<Progress> for ProgressOut {
    fn from(progress: Progress) -> ProgressOut {
        ProgressOut { done: progress.done, of: progress.of }
    }
}

impl From<&ReplayReport> for ReplayOut {
    fn from(report: &ReplayReport) -> ReplayOut {
        let (divergence, differences, rows_that_differ) = match &report.verdict {
            Verdict::Identical | Verdict::CutOff { .. } => (None, Vec::new(), 0),
            Verdict::Diverged { first, differences, rows } => (
                first.as_deref().map(DivergenceOut::from),
                differences.iter().map(DifferenceOut::from).collect(),
                *rows,
            ),
        };
        let cut_off = match &report.verdict {
            Verdict::CutOff { stands } => Some(stands.to_string()),
            _ => None,
        };
        ReplayOut {
            cut_off,
            identical: report.is_identical(),
            commands: report.commands,
            compared: report.compared,
            base: report.base.to_string(),
            position: report.position.to_string(),
            divergence,
            tables: report.tables.as_ref().map(TablesOut::from),
            rows_that_differ,
            differences,
        }
    }
}

impl From<&Divergence> for DivergenceOut {
    fn from(found: &Divergence) -> DivergenceOut {
        DivergenceOut {
            position: found.position.to_string(),
            time: rfc3339(found.time),
            tenant: found.tenant.to_string(),
            verb: found.verb.to_string(),
            reason: found.mismatch.to_string(),
            command: found.payload.clone(),
            told: found.told.clone(),
            tells: found.tells.clone(),
        }
    }
}

impl From<&TablesReport> for TablesOut {
    fn from(report: &TablesReport) -> TablesOut {
        TablesOut {
            agree: report.agrees(),
            position: report.position.to_string(),
            rows: report.rows,
            sum: format!("{:032x}", report.sum),
            digest: format!("{:032x}", report.digest),
        }
    }
}

impl From<&AuditReport> for AuditProofOut {
    fn from(report: &AuditReport) -> AuditProofOut {
        AuditProofOut {
            complete: report.fault.is_none(),
            commands: report.commands,
            events: report.events,
            position: report.position.to_string(),
            chain: hex(&report.chain).to_string(),
            log_from: report.log_from.to_string(),
            archived: Some(report.archived).filter(|position| *position > 0).map(|position| position.to_string()),
            fault: report.fault.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Difference> for DifferenceOut {
    fn from(difference: &Difference) -> DifferenceOut {
        let (stored, replayed) = (fields(difference.stored.as_ref()), fields(difference.replayed.as_ref()));
        let names = stored.iter().chain(&replayed).map(|(name, _)| name.clone());
        let names: std::collections::BTreeSet<String> = names.collect();
        let value = |fields: &[(String, String)], name: &str| {
            fields.iter().find(|(other, _)| other == name).map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
        };
        let field =
            |name: String| FieldOut { stored: value(&stored, &name), replayed: value(&replayed, &name), field: name };
        let fields = names.into_iter().map(field).filter(|field| field.stored != field.replayed);
        DifferenceOut { row: row_name(&difference.id), fields: fields.collect() }
    }
}

fn row_name(id: &RowId) -> String {
    format!("{id:?}").replace('"', "")
}

/// A row's fields by their names, as a developer reads them. The pretty form has one field per line at its second level.
fn fields(row: Option<&Row>) -> Vec<(String, String)> {
    let Some(row) = row else { return Vec::new() };
    let text = format!("{row:#?}");
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        match (depth, line.trim().split_once(": ")) {
            (8, Some((name, value))) => fields.push((name.to_owned(), value.trim_end_matches(',').to_owned())),
            (8, None) | (12.., _) => {
                if let Some((_, value)) = fields.last_mut()
                    && value.len() < VALUE_CHARS_MAX
                {
                    value.push_str(line.trim().trim_end_matches(','));
                    value.push(' ');
                }
            }
            _ => (),
        }
    }
    // Two long files may begin alike.
    if let Row::Definition(definition) = row
        && let Some((_, value)) = fields.iter_mut().find(|(name, _)| name == "xml")
    {
        *value = format!("{} bytes, {}", definition.xml.len(), hex(&hash16(&[&definition.xml])));
    }
    fields.iter_mut().for_each(|(_, value)| *value = value.chars().take(VALUE_CHARS_MAX).collect());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use wf_core::rows::{Definition, Timer};

    #[test]
    fn l2_3_a_changed_file_differs_however_it_begins() {
        let definition = |end: &str| {
            let xml = ["<a/>".repeat(1_000).as_bytes(), end.as_bytes()].concat();
            let (tenant, process_id, resource) = ("t".into(), "p".into(), "p.bpmn".into());
            let checksum = [0; 16];
            let xml = xml.into();
            Row::Definition(
                Definition { key: 7, tenant, process_id, version: 1, resource, checksum, xml, deployed_at: 0 }.into(),
            )
        };
        let (stored, replayed) = (Some(definition("a")), Some(definition("b")));
        let out = DifferenceOut::from(&Difference { id: RowId::Definition(7), stored, replayed });
        assert_eq!(out.fields.iter().map(|field| &*field.field).collect::<Vec<_>>(), ["xml"]);
    }

    #[test]
    fn l2_3_a_difference_names_the_fields() {
        let timer = |due| {
            let interval = "PT1S".into();
            Row::Timer(Timer { key: 7, host: 1, scope: 2, root: 3, target: 4, due, repeats: 0, interval }.into())
        };
        let shown = |stored, replayed| {
            let out = DifferenceOut::from(&Difference { id: RowId::Timer(7), stored, replayed });
            let fields = out.fields.iter().map(|field| format!("{} {} {}", field.field, field.stored, field.replayed));
            (out.row.clone(), fields.collect::<Vec<_>>())
        };
        assert_eq!(shown(Some(timer(1)), Some(timer(2))), ("Timer(7)".to_owned(), vec!["due 1 2".to_owned()]));
        let (_, fields) = shown(None, Some(timer(2)));
        assert_eq!((fields.len(), fields[0].as_str()), (8, "due - 2"));
    }
}
