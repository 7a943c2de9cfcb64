//! The tables against the digest that the last command left, and against a replay's: the sum over all rows, and where it
//! differs the rows that do. Next: `audit.rs`.

use std::ops::ControlFlow;
use std::sync::Arc;

use wf_core::ids::hash16;
use wf_core::{Row, RowId, canonical};
use wf_store::{Ledger, Opened, StoreError};

use super::{Progress, ProofError, Tell};
use crate::advance::head_of;

/// Differences that are listed; more are only counted.
const LISTED_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesReport {
    pub position: u64,
    pub rows: u64,
    /// The sum over the rows as they stand.
    pub sum: u128,
    /// What it must be: the digest after the last command.
    pub digest: u128,
}

impl TablesReport {
    pub fn agrees(&self) -> bool {
        self.sum == self.digest
    }
}

/// A row that is not the same in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub id: RowId,
    pub replayed: Option<Row>,
    pub stored: Option<Row>,
}

/// Rows between two words about the progress.
const STRIDE: u64 = 10_000;

/// Sums all rows in one frozen state.
pub fn verify_tables(ledger: &mut dyn Ledger, tell: Tell<'_>) -> Result<TablesReport, ProofError> {
    ledger.freeze()?;
    let report = sum(ledger, tell);
    ledger.thaw()?;
    report
}

/// As [`verify_tables`], of a ledger that is frozen.
pub(super) fn sum(ledger: &mut dyn Ledger, tell: Tell<'_>) -> Result<TablesReport, ProofError> {
    let Opened { fence, head } = ledger.standing()?;
    let (mut rows, mut sum) = (0, canonical::digest_of_counters(fence.partition, head.next_counter));
    let mut is_stopped = false;
    ledger.rows(&mut |row| {
        rows += 1;
        sum = sum.wrapping_add(digest_of(row));
        is_stopped = rows % STRIDE == 0 && tell(Progress { done: rows, of: None }).is_break();
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if is_stopped {
        return Err(ProofError::Stopped);
    }
    let digest = head_of(fence.partition, fence.new_position, head).digest;
    Ok(TablesReport { position: fence.new_position, rows, sum, digest })
}

/// A definition counts with the checksum that its file has, not with the one that stands beside it: what is executed is
/// the file.
fn digest_of(mut row: Row) -> u128 {
    if let Row::Definition(definition) = &mut row {
        Arc::make_mut(definition).checksum = hash16(&[&definition.xml]);
    }
    canonical::digest_of(&row)
}

/// The first rows that differ, and how many do.
pub(super) fn differences(
    stored: &mut dyn Ledger,
    replayed: &mut dyn Ledger,
) -> Result<(Vec<Difference>, u64), StoreError> {
    let mut found = Found::default();
    found.pass(stored, replayed, |id, stored, replayed| Difference { id, stored: Some(stored), replayed })?;
    // Rows that stand in both were compared already.
    found.only_missing = true;
    found.pass(replayed, stored, |id, replayed, stored| Difference { id, stored, replayed: Some(replayed) })?;
    Ok((found.listed, found.count))
}

#[derive(Default)]
struct Found {
    listed: Vec<Difference>,
    count: u64,
    only_missing: bool,
}

impl Found {
    fn pass(
        &mut self,
        one: &mut dyn Ledger,
        other: &mut dyn Ledger,
        difference: impl Fn(RowId, Row, Option<Row>) -> Difference,
    ) -> Result<(), StoreError> {
        let mut failed = None;
        one.rows(&mut |row| {
            let id = row.id();
            let twin = match other.row(&id) {
                Ok(twin) => twin,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            let differs = twin.as_ref() != Some(&row) && !(self.only_missing && twin.is_some());
            if differs {
                self.count += 1;
                if self.listed.len() < LISTED_MAX {
                    self.listed.push(difference(id, row, twin));
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(()), Err)
    }
}
