//! The logs and all rows are read in order, and frozen in one state. Next: `lists.rs`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use wf_core::{Row, RowId};

use crate::batch::AuditEntry;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::ledger::{Ledger, LogRow};
use crate::store::Opened;

/// `standing` is what an owner was told, and takes nothing from it.
pub async fn it_tells_where_the_partition_stands(mut world: World) -> Result<(), Failed> {
    world.put([row(timer(1, 1))]).await?;
    let mut ledger = world.store.ledger(PARTITION).await?;
    let at = world.fence.new_position;
    let fence = crate::batch::Fence { old_position: at, new_position: at, ..world.fence };
    same("standing", ledger.standing()?, Opened { fence, head: world.head })?;
    world.put([row(timer(2, 1))]).await?;
    same("the latest", ledger.standing()?.fence.new_position, at + 1)
}

pub async fn logs_are_read_by_position(mut world: World) -> Result<(), Failed> {
    let mut audit = Vec::new();
    for jump in [0, 0, 1 << 40, 0] {
        let mut batch = world.batch();
        batch.fence.new_position += jump;
        let at = batch.fence.new_position;
        batch.log = vec![log_entry(at)];
        batch.audit = vec![audit_entry(at)];
        audit.extend(batch.audit.clone());
        world.commit(batch).await?;
    }
    let want: Vec<LogRow> = audit.iter().map(|entry| logged(entry.position)).collect();
    let mut ledger = world.store.ledger(PARTITION).await?;
    same("the whole log", ledger.log(0, 100)?, want.clone())?;
    same("from a position on", ledger.log(2, 2)?, want[1..3].to_vec())?;
    same("between two", ledger.log(3, 100)?, want[2..].to_vec())?;
    same("how many", (ledger.count_log(0)?, ledger.count_log(3)?), (4, 2))?;
    same("behind the end", ledger.log(u64::MAX >> 1, 100)?, Vec::new())?;
    let shown = |entries: Vec<AuditEntry>| format!("{entries:?}");
    same("the whole audit", shown(ledger.audit(0, 100)?), shown(audit.clone()))?;
    same("a page of it", shown(ledger.audit(2, 1)?), shown(audit[1..2].to_vec()))
}

fn logged(position: u64) -> LogRow {
    let entry = log_entry(position);
    LogRow {
        position,
        id: entry.id,
        time: entry.time,
        tenant: entry.tenant,
        verb: entry.verb.into(),
        payload: entry.payload,
        digest: entry.digest,
    }
}

pub async fn every_row_is_visited_once(mut world: World) -> Result<(), Failed> {
    let tables = odd_rows();
    // The last value of each id wins.
    let rows: BTreeMap<RowId, Row> = tables.iter().flatten().map(|row| (row.id(), row.clone())).collect();
    world.put(rows.values().cloned()).await?;
    let mut ledger = world.store.ledger(PARTITION).await?;
    same("all rows", all_rows(&mut *ledger)?, rows.clone())?;
    for (id, row) in &rows {
        same("one row", ledger.row(id)?, Some(row.clone()))?;
    }
    same("no row", ledger.row(&RowId::Job(u64::MAX >> 2))?, None)?;
    let mut seen = 0;
    ledger.rows(&mut |_| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    same("a visit ends when it is told to", seen, 2)
}

pub async fn a_frozen_ledger_sees_one_state(mut world: World) -> Result<(), Failed> {
    world.put([row(timer(1, 1))]).await?;
    let mut ledger = world.store.ledger(PARTITION).await?;
    ledger.freeze()?;
    let before = (ledger.standing()?, all_rows(&mut *ledger)?, ledger.log(0, 100)?);
    world.put([row(timer(1, 2)), row(timer(2, 1))]).await?;
    same("frozen", (ledger.standing()?, all_rows(&mut *ledger)?, ledger.log(0, 100)?), before)?;
    ledger.thaw()?;
    same("thawed", all_rows(&mut *ledger)?, world.mirror.clone())?;
    same("its position", ledger.standing()?.fence.new_position, world.fence.new_position)
}

fn all_rows(ledger: &mut dyn Ledger) -> Result<BTreeMap<RowId, Row>, Failed> {
    let mut rows = BTreeMap::new();
    let mut twice = None;
    ledger.rows(&mut |row| {
        let id = row.id();
        if rows.insert(id.clone(), row).is_some() {
            twice = Some(id);
        }
        ControlFlow::Continue(())
    })?;
    same("a row that comes twice", twice, None)?;
    Ok(rows)
}
