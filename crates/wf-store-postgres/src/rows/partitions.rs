//! Where a partition stands. Next: `columns.rs`.

use tokio_postgres::Row;
use wf_store::{Batch, Fence, Head, Opened, TestClock};

use super::columns::*;
use crate::connection::Values;

/// As `fence` takes them.
pub fn fence_columns<'a>(batches: &[&'a Batch]) -> Values<'a> {
    fn column<'a, V>(batches: &[&'a Batch], value: impl Fn(&'a Batch) -> V) -> Vec<V> {
        batches.iter().map(|batch| value(batch)).collect()
    }
    Values::none()
        .with(column(batches, |batch| sql_partition(batch.fence.partition)))
        .with(column(batches, |batch| batch.fence.epoch as i64))
        .with(column(batches, |batch| batch.fence.old_position as i64))
        .with(column(batches, |batch| batch.fence.new_position as i64))
        .with(column(batches, |batch| batch.head.next_counter as i64))
        .with(column(batches, |batch| batch.head.digest.to_be_bytes().to_vec()))
        .with(column(batches, |batch| &batch.head.chain[..]))
        .with(column(batches, |batch| batch.head.last_time))
        .with(column(batches, |batch| batch.head.clock.map(|clock| clock.now)))
        .with(column(batches, |batch| batch.head.clock.map(|clock| clock.frozen)))
}

/// Columns in the order of `open_partition` and `standing`.
pub fn opened(row: &Row) -> Result<Opened> {
    let position = key(row, 2)?;
    let clock: Option<i64> = get(row, 7)?;
    let frozen: Option<bool> = get(row, 8)?;
    Ok(Opened {
        fence: Fence {
            partition: partition(row, 0)?,
            epoch: key(row, 1)?,
            old_position: position,
            new_position: position,
        },
        head: Head {
            next_counter: key(row, 3)?,
            digest: u128::from_be_bytes(hash(row, 4)?),
            chain: hash(row, 5)?,
            last_time: get(row, 6)?,
            clock: clock.zip(frozen).map(|(now, frozen)| TestClock { now, frozen }),
        },
    })
}
