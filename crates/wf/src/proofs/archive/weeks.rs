//! A database's logs, by whole weeks, which are dropped at once; its nodes go on meanwhile. What of a partition goes ends
//! with the highest position that stands in these weeks. Next: `wf_store_postgres::Archive`.

use wf_core::Millis;
use wf_core::text::rfc3339;
use wf_engine::proof;
use wf_store::Ledger;
use wf_store_postgres::{Archive, DropError, End, Log, PostgresLedger, Weeks};

use super::{Cut, checkpoint, file};
use crate::cli::Kept;
use crate::output::{self, Done, Failure};
use crate::proofs::telling;

pub async fn commands(url: &str, before: &str, kept: &Kept) -> Done {
    let Some(going) = Going::of(url, Log::Commands, before).await? else { return nothing() };
    for end in &going.ends {
        let cut = cut(url, Log::Commands, end)?;
        let executed = checkpoint(&kept.data, Box::new(ledger(url, end)?), &cut).await?;
        let path = file::commands(&kept.to(), &mut ledger(url, end)?, &cut)?;
        let (partition, position) = (end.partition, end.position);
        let executed = output::grouped(executed as f64, 0);
        output::print(&format!(
            "partition {partition}: commands up to position {position} stand in {}; {executed} executed again, identical",
            path.display()
        ))?;
    }
    going.drop().await
}

pub async fn events(url: &str, before: &str, kept: &Kept) -> Done {
    let Some(going) = Going::of(url, Log::Audit, before).await? else { return nothing() };
    for end in &going.ends {
        verify(url, end)?;
        let path = file::events(&kept.to(), &mut ledger(url, end)?, &cut(url, Log::Audit, end)?)?;
        let (partition, position) = (end.partition, end.position);
        output::print(&format!("partition {partition}: events up to position {position} stand in {}", path.display()))?;
    }
    going.drop().await
}

fn nothing() -> Done {
    output::print("no week of the log is that old (one stays until a day after its end)")
}

/// Weeks on their way out of a log.
struct Going {
    archive: Archive,
    log: Log,
    weeks: Weeks,
    ends: Vec<End>,
}

impl Going {
    async fn of(url: &str, log: Log, before: &str) -> Result<Option<Going>, Failure> {
        let before = time(before)?;
        let archive = Archive::open(url).await.map_err(Failure::work)?;
        let Some(weeks) = archive.weeks(log, before).await.map_err(Failure::work)? else { return Ok(None) };
        let ends = archive.ends(log, weeks).await.map_err(Failure::work)?;
        Ok(Some(Going { archive, log, weeks, ends }))
    }

    async fn drop(self) -> Done {
        let dropped = self.archive.drop(self.log, self.weeks, &self.ends).await.map_err(|error| self.failed(&error))?;
        let weeks = if dropped == 1 { "1 week was".to_owned() } else { format!("{dropped} weeks were") };
        let begin = rfc3339(self.weeks.end());
        output::print(&format!("{weeks} dropped: the log begins with {begin}"))
    }

    /// The files are no loss: the next run writes them again.
    fn failed(&self, error: &DropError) -> Failure {
        Failure::work(format!("{error} ({} weeks up to {})", self.weeks.count, rfc3339(self.weeks.end())))
    }
}

fn time(before: &str) -> Result<Millis, Failure> {
    let bad = || {
        Failure::usage(format!(
            "a database's log goes by whole weeks, and {before:?} is no time such as 2026-01-31T00:00:00Z"
        ))
    };
    wf_api::time::parse(before).ok_or_else(bad)
}

fn ledger(url: &str, end: &End) -> Result<PostgresLedger, Failure> {
    wf_store_postgres::read_only(url, end.partition).map_err(Failure::work)
}

fn cut(url: &str, log: Log, end: &End) -> Result<Cut, Failure> {
    let mut ledger = ledger(url, end)?;
    let (first, commands) = match log {
        Log::Commands => {
            let first = ledger.log_begin().map_err(Failure::work)?.unwrap_or(end.position);
            let count = |ledger: &mut PostgresLedger, from| ledger.count_log(from).map_err(Failure::work);
            (first, count(&mut ledger, first)?.saturating_sub(count(&mut ledger, end.position + 1)?))
        }
        Log::Audit => (ledger.audit_begin().map_err(Failure::work)?.0 + 1, 0),
    };
    Ok(Cut { partition: end.partition, first, last: end.position, commands })
}

/// What goes must be what was told: afterwards only the chain's link after it is left.
fn verify(url: &str, end: &End) -> Done {
    let bar = output::progress(0, "commands");
    let report = proof::verify_audit(&mut ledger(url, end)?, &mut telling(&bar));
    bar.finish_and_clear();
    match report.map_err(Failure::work)?.fault {
        None => Ok(()),
        Some(fault) => Err(Failure::work(format!("{fault}: nothing was archived"))),
    }
}
