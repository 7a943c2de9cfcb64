//! A list in slices: each passes a bounded number of rows in one short statement, so that however long a list takes it
//! holds no old state of the database, and after a bounded number of rows it answers a short page. Next: `lists.rs`.

use tokio_postgres::Row;

use crate::rows::{Result, get};

/// Rows of one statement.
pub const SLICE_ROWS: usize = 8192;
/// Rows that one page may pass; then it ends, however few were wanted.
const SCAN_ROWS_MAX: usize = 2_000_000;

/// A row that a statement of a scan answers: the wanted ones, and the last one of a full slice.
pub struct Passed<C> {
    pub at: C,
    pub is_wanted: bool,
    /// Which of its slice it is, from 1.
    nth: i64,
}

/// The last two columns of such a statement.
pub fn passed<C>(row: &Row, at: C) -> Result<Passed<C>> {
    let columns = row.len();
    Ok(Passed { at, is_wanted: get(row, columns - 2)?, nth: get(row, columns - 1)? })
}

/// What a scan found wanted, and where the next page begins.
pub struct Found<C> {
    pub wanted: Vec<C>,
    pub next: Option<C>,
}

/// Passes rows until one more than `limit` is wanted. The slices grow: most lists end in the first one.
pub async fn scan<C: Clone, F: Future<Output = Result<Vec<Passed<C>>>>>(
    limit: usize,
    start: C,
    slice: impl Fn(C, i64) -> F,
) -> Result<Found<C>> {
    let mut wanted: Vec<C> = Vec::new();
    let mut at = start;
    let mut rows = limit.saturating_add(1).min(SLICE_ROWS);
    let mut rows_passed = 0;
    loop {
        let found = slice(at.clone(), rows as i64).await?;
        let is_full = found.last().is_some_and(|last| last.nth == rows as i64);
        for passed in found {
            if passed.is_wanted && wanted.len() == limit {
                return Ok(Found { next: wanted.last().cloned(), wanted });
            }
            if passed.is_wanted {
                wanted.push(passed.at.clone());
            }
            at = passed.at;
        }
        rows_passed += rows;
        if !is_full || rows_passed >= SCAN_ROWS_MAX {
            return Ok(Found { wanted, next: is_full.then_some(at) });
        }
        rows = (rows * 2).min(SLICE_ROWS);
    }
}

impl<C> Passed<C> {
    /// It was the last one that its statement was to pass.
    pub fn is_last(&self, rows: usize) -> bool {
        self.nth == rows as i64
    }
}
