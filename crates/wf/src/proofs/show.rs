//! What a proof found, in words: one sentence where it holds, the first fault and its surroundings where it does not.
//! It proves nothing. Next: `export.rs`.

use wf_api::proofs::{AuditProofOut, DifferenceOut, DivergenceOut, ProofLine, ReplayOut, TablesOut};

use super::ends;
use crate::cli::Output;
use crate::output::{self, Done, Failure};

/// Of a store with one partition as of nothing else.
pub fn all(output: Output, reports: &[(u16, ProofLine)]) -> Done {
    match reports {
        [(_, line)] => report(output, line),
        _ => several(output, reports),
    }
}

fn report(output: Output, line: &ProofLine) -> Done {
    match line {
        ProofLine::Replay(report) => ends(output, report, &replay(report), report.identical),
        ProofLine::Tables(report) => ends(output, report, &tables(report), report.agree),
        ProofLine::Audit(report) => ends(output, report, &audit(report), report.complete),
        ProofLine::Failed(reason) => Err(Failure::work(reason)),
        ProofLine::Progress(_) => Err(Failure::work("the proof has no end")),
    }
}

/// Of several partitions; all must hold.
fn several(output: Output, reports: &[(u16, ProofLine)]) -> Done {
    #[derive(serde::Serialize)]
    struct OfPartition<'a> {
        partition: u16,
        #[serde(flatten)]
        report: &'a ProofLine,
    }
    let json: Vec<OfPartition<'_>> =
        reports.iter().map(|(partition, report)| OfPartition { partition: *partition, report }).collect();
    let text = reports.iter().map(|(partition, line)| format!("partition {partition}: {}", words(line)));
    let holds = reports.iter().all(|(_, line)| holds(line));
    ends(output, &json, &text.collect::<Vec<_>>().join("\n"), holds)
}

fn words(line: &ProofLine) -> String {
    match line {
        ProofLine::Replay(report) => replay(report),
        ProofLine::Tables(report) => tables(report),
        ProofLine::Audit(report) => audit(report),
        ProofLine::Failed(reason) => reason.clone(),
        ProofLine::Progress(_) => "the proof has no end".to_owned(),
    }
}

fn holds(line: &ProofLine) -> bool {
    match line {
        ProofLine::Replay(report) => report.identical,
        ProofLine::Tables(report) => report.agree,
        ProofLine::Audit(report) => report.complete,
        ProofLine::Failed(_) | ProofLine::Progress(_) => false,
    }
}

fn replay(report: &ReplayOut) -> String {
    let begin = match report.base.as_str() {
        "0" => "from empty".to_owned(),
        base => format!("from the checkpoint at {base}"),
    };
    let commands = output::grouped(report.commands as f64, 0);
    let mut text = match &report.divergence {
        None if report.identical => format!("identical up to position {}", report.position),
        None => match &report.cut_off {
            Some(stands) => format!(
                "identical up to position {}, where the log ends; the partition stands at {stands}: commands were {}",
                report.position,
                if is_behind(stands, &report.position) { "removed" } else { "added, or its row was set back" }
            ),
            None => format!("every digest up to position {} is right, the tables are not", report.position),
        },
        Some(found) => divergence(found),
    };
    let some = |compared| format!(", {} of them compared", output::grouped(compared as f64, 0));
    let compared = if report.compared == report.commands { String::new() } else { some(report.compared) };
    text.push_str(&format!("\n{commands} commands executed again{compared}, {begin}"));
    match &report.tables {
        None => text.push_str("; not to the log's end, so the tables were not compared"),
        Some(tables) if tables.agree => {
            text.push_str(&format!("; {} rows in the tables agree", output::grouped(tables.rows as f64, 0)));
        }
        Some(tables) => {
            text.push_str(&format!("\nthe tables sum up to {}, the replay to {}", tables.sum, tables.digest))
        }
    }
    if report.rows_that_differ > 0 {
        text.push_str(&format!("\n{} rows differ at the end; the first:\n", report.rows_that_differ));
        text.push_str(&differences(&report.differences));
    }
    text
}

fn is_behind(stands: &str, position: &str) -> bool {
    stands.parse::<u64>().ok() > position.parse().ok()
}

fn divergence(found: &DivergenceOut) -> String {
    let DivergenceOut { position, time, tenant, verb, reason, command, told, tells } = found;
    let mut text = format!(
        "diverged at position {position}: {verb} of tenant {tenant:?} at {time}\n  {reason}\n  command: {}",
        output::short(command, 500)
    );
    match told == tells {
        true => text.push_str("\n  it tells the same events as it told then"),
        false => {
            text.push_str(&format!("\n  told then:  {}", output::or_dash(Some(&output::short(told, 1_000)))));
            text.push_str(&format!("\n  tells now:  {}", output::or_dash(Some(&output::short(tells, 1_000)))));
        }
    }
    text
}

fn differences(differences: &[DifferenceOut]) -> String {
    let lines = differences.iter().flat_map(|difference| {
        difference.fields.iter().map(|field| {
            vec![difference.row.clone(), field.field.clone(), field.stored.clone(), field.replayed.clone()]
        })
    });
    output::table(&["row", "field", "in the tables", "in the replay"], lines.collect())
}

fn tables(report: &TablesOut) -> String {
    let rows = output::grouped(report.rows as f64, 0);
    match report.agree {
        true => format!("{rows} rows sum up to the digest of position {}: {}", report.position, report.digest),
        false => format!(
            "{rows} rows sum up to {}, but the digest of position {} is {}: a row was changed behind the engine's back\n\
             `wf debug replay` names the rows",
            report.sum, report.position, report.digest
        ),
    }
}

fn audit(report: &AuditProofOut) -> String {
    let (events, commands) = (output::grouped(report.events as f64, 0), output::grouped(report.commands as f64, 0));
    match &report.fault {
        None => {
            let behind = report.archived.as_ref().map(|position| format!(" from behind position {position}"));
            format!(
                "complete: {events} events of {commands} commands{}, up to position {}\nhead of the chain: {}",
                behind.unwrap_or_default(),
                report.position,
                report.chain
            )
        }
        Some(fault) => format!("{fault}\n{events} events of {commands} commands before it are right"),
    }
}
