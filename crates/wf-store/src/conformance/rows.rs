//! Rows come back as they went, whatever their values. Next: `ranges.rs`.

use std::collections::BTreeMap;

use wf_core::{Need, Row, RowId};

use crate::conformance::samples::*;
use crate::conformance::world::*;

/// Insert, every update, delete; the same id again afterwards.
pub async fn every_row_comes_back_exactly(mut world: World) -> Result<(), Failed> {
    for values in odd_rows() {
        let ids: Vec<RowId> = values.iter().map(Row::id).take(1).collect();
        world.check_rows(ids.clone()).await?;
        for value in values.iter().chain(values.first()) {
            world.put([value.clone()]).await?;
            world.check_rows(ids.clone()).await?;
            world.check_ranges([]).await?;
        }
        world.delete(ids.clone()).await?;
        world.check_rows(ids).await?;
    }
    Ok(())
}

/// All tables in one turn, and no row answers for another one of its table.
pub async fn one_turn_inserts_updates_and_deletes(mut world: World) -> Result<(), Failed> {
    let tables = odd_rows();
    let firsts = || tables.iter().filter_map(|values| values.first().cloned());
    world.put(firsts()).await?;
    world.check_rows(firsts().map(|row| row.id())).await?;
    let mut batch = world.batch();
    for (at, values) in tables.iter().enumerate() {
        let Some(last) = values.last() else { continue };
        let new = (at % 2 == 0).then(|| last.clone());
        batch.rows.push(world.change(last.id(), new));
    }
    let others = [row(variable(1, "x", "1")), row(job(1)), row(element(1, 1)), row(root(1)), row(timer(1, 1))];
    batch.rows.extend(others.iter().map(|row| world.change(row.id(), Some(row.clone()))));
    world.commit(batch).await?;
    let absent = [RowId::Job(2), RowId::Variable { scope: 1, name: "X".into() }, RowId::Element { scope: 2, key: 1 }];
    let ids = firsts().chain(others).map(|row| row.id()).chain(absent);
    world.check_rows(ids).await?;
    world.check_ranges([]).await
}

pub async fn a_need_of_a_process_is_its_definition(mut world: World) -> Result<(), Failed> {
    let known = row(definition(7, "order", 1));
    world.put([known.clone(), row(root(8))]).await?;
    let loaded = world.load([Need::Process(7), Need::Process(8)]).await?;
    let got: BTreeMap<RowId, Option<Row>> = loaded.rows.into_iter().collect();
    let want = [(RowId::Definition(7), Some(known)), (RowId::Definition(8), None)];
    same("definitions", got, want.into_iter().collect())
}
