//! A database's logs, by whole weeks, which are dropped at once; its nodes go on meanwhile. What of a partition goes ends
//! with the highest position that stands in these weeks. Next: `wf_store_postgres::Archive`.

use wf_core::Millis;
use wf_core::text::rfc3339;
use wf_engine::proof;
use wf_store::Ledger;
use wf_store_postgres::{Archive, End, Log, PostgresLedger, Week};

use super::{Cut, checkpoint, file};
use crate::cli::Kept;
use crate::output::{self, Done, Failure};
use crate::proofs::telling;

pub async fn commands(url: &str, before: &str, kept: &Kept) -> Done {
    let Some(going) = Going::of(url, Log::Commands, before).await? else { return nothing() };
    let _claimed = file::claim(kept.data(), &going.archive.id)?;
    for end in &going.ends {
        let cut = cut(url, Log::Commands, end)?;
        let executed = checkpoint(kept.data(), Box::new(ledger(url, end)?), &cut).await?;
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
    let _claimed = file::claim(kept.data(), &going.archive.id)?;
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

/// Weeks on their way out of a log, the oldest first.
struct Going {
    archive: Archive,
    log: Log,
    weeks: Vec<Week>,
    ends: Vec<End>,
}

impl Going {
    /// `None`: nothing is that old.
    async fn of(url: &str, log: Log, before: &str) -> Result<Option<Going>, Failure> {
        let before = time(before)?;
        let archive = Archive::open(url).await.map_err(Failure::work)?;
        let weeks = archive.weeks(log, before).await.map_err(Failure::work)?;
        let Some(last) = weeks.last() else { return Ok(None) };
        let ends = archive.ends(log, *last).await.map_err(Failure::work)?;
        Ok(Some(Going { archive, log, weeks, ends }))
    }

    /// One after the other: writers wait only for one of them. The first one already notes what all of them come to.
    async fn drop(self) -> Done {
        for (gone, week) in self.weeks.iter().enumerate() {
            let dropped = self.archive.drop(self.log, *week, &self.ends).await;
            dropped.map_err(|error| {
                Failure::work(format!("{error} ({gone} of {} weeks were dropped)", self.weeks.len()))
            })?;
        }
        let weeks =
            if self.weeks.len() == 1 { "1 week was".to_owned() } else { format!("{} weeks were", self.weeks.len()) };
        let begin = self.weeks.last().map(|week| rfc3339(week.end())).unwrap_or_default();
        output::print(&format!("{weeks} dropped: the log begins with {begin}"))
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
    let first = match log {
        Log::Commands => ledger.log_begin(),
        Log::Audit => ledger.audit(0, 1).map(|page| page.first().map(|row| row.position)),
    };
    let first = first.map_err(Failure::work)?.unwrap_or(end.position);
    // Positions have gaps where an epoch begins.
    Ok(Cut { partition: end.partition, first, last: end.position, commands: end.position.saturating_sub(first) + 1 })
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
