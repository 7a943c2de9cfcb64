//! What the proofs cost over the store that the run has left: commands executed again, rows summed, audit events linked.
//! One core executes, another reads ahead and writes the scratch store. Next: `report.rs`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wf_engine::proof::{self, Progress, Range};
use wf_server::Scratch;
use wf_store::Visit;

use super::Bench;
use crate::output::{self, Failure};
use crate::proofs::{FolderScratch, ledger_of};

pub struct Proofs {
    commands: u64,
    rows: u64,
    events: u64,
    /// Without the sum over the tables at its end.
    replay: Duration,
    tables: Duration,
    audit: Duration,
}

pub async fn measure(bench: &Bench) -> Result<Proofs, Failure> {
    let dir = bench.folder.join("store");
    let (report, whole) = replay(&dir).await?;
    let mut ledger = ledger_of(&dir)?;
    let begun = Instant::now();
    let tables = proof::verify_tables(&mut *ledger, &mut go_on).map_err(Failure::work)?;
    let (tables, rows) = (begun.elapsed(), tables.rows);
    let begun = Instant::now();
    let audit = proof::verify_audit(&mut *ledger, &mut go_on).map_err(Failure::work)?;
    let audited = begun.elapsed();
    if !report.is_identical() || audit.fault.is_some() {
        return Err(Failure::work(format!("the run left a store that is not right: {:?}, {report:?}", audit.fault)));
    }
    Ok(Proofs {
        commands: report.commands,
        rows,
        events: audit.events,
        replay: whole.saturating_sub(tables),
        tables,
        audit: audited,
    })
}

async fn replay(dir: &Path) -> Result<(proof::ReplayReport, Duration), Failure> {
    let ledger = ledger_of(dir)?;
    let scratch = FolderScratch::of(dir).open(1, 0).map_err(Failure::work)?;
    let begun = Instant::now();
    let report = proof::replay(ledger, &*scratch.store, Range::default(), &mut go_on).await.map_err(Failure::work)?;
    Ok((report, begun.elapsed()))
}

fn go_on(_: Progress) -> Visit {
    Visit::Continue(())
}

impl Proofs {
    fn rates(&self) -> [(&'static str, &'static str, u64, f64); 3] {
        let rate = |count: u64, time: Duration| count as f64 / time.as_secs_f64().max(1e-9);
        [
            ("commands", "commands executed again", self.commands, rate(self.commands, self.replay)),
            ("rows", "rows of the tables summed", self.rows, rate(self.rows, self.tables)),
            ("events", "audit events linked again", self.events, rate(self.events, self.audit)),
        ]
    }

    pub fn to_text(&self) -> String {
        let rows = self.rates().map(|(_, what, count, rate)| {
            vec![what.to_owned(), output::grouped(count as f64, 0), output::grouped(rate, 0)]
        });
        output::table(&["", "of this run's store", "per second"], rows.into())
    }

    pub fn to_json(&self) -> Value {
        let rates =
            self.rates().map(|(name, _, count, rate)| (name.to_owned(), json!({"count": count, "perSecond": rate})));
        Value::Object(rates.into_iter().collect())
    }
}
