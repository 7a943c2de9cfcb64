//! Claims and marks of messages: who may ship what, in which order. They stand beside the turns, and any node ships for any
//! partition. It speaks to no broker. Next: `uses.rs`, the counts of repeats.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use wf_core::rows::Text;
use wf_store::*;

use crate::connection::Values;
use crate::lists::{all_of, limit, read};
use crate::open::PostgresStore;
use crate::reads::Reader;
use crate::rows::{self, OUTBOX_STATES, Result, get, key, number, partition, sql_key, sql_partition, text};
use crate::sql::Sql;

pub fn state_name(state: OutboxState) -> &'static str {
    OUTBOX_STATES.iter().find(|(other, _)| *other == state).map_or("", |(_, name)| name)
}

/// Unsent messages that one statement looks through.
const WINDOW_ROWS: usize = 10_000;
/// Statements of one claim that finds nothing.
const WINDOWS_MAX: usize = 5;

/// Where the unsent messages of each sink are looked through: from the begin, but where a whole window has too few that
/// may go, from behind it on, round and round. So no claim takes long, however many wait behind dead letters.
#[derive(Default)]
pub struct Windows(Mutex<HashMap<Text, Place>>);

/// Partition, position and number; all 0 is the begin.
type Place = (u16, u64, u32);

impl Windows {
    fn of(&self, sink: &Text) -> Place {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(sink).copied().unwrap_or_default()
    }

    fn go_on(&self, sink: &Text, place: Place) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(sink.clone(), place);
    }
}

impl PostgresStore {
    pub(crate) async fn claim(&self, asked: Claim) -> Result<Vec<OutboxRow>> {
        for _ in 0..WINDOWS_MAX {
            let at = self.windows.of(&asked.sink);
            let claimed = claim_of(&self.turns, &asked, at).await?;
            if claimed.len() == asked.limit {
                return Ok(claimed);
            }
            let next = window_end(&self.turns, &asked.sink, at).await?.unwrap_or_default();
            self.windows.go_on(&asked.sink, next);
            let was_all = at == Place::default() && next == at;
            if !claimed.is_empty() || was_all {
                return Ok(claimed);
            }
        }
        Ok(Vec::new())
    }

    pub(crate) async fn mark(&self, marks: Vec<Mark>) -> Result<()> {
        mark(&self.turns, &marks).await
    }

    pub(crate) async fn stats(&self) -> Result<Vec<OutboxStats>> {
        stats(&self.lists).await
    }
}

/// Unsent ones of a sink behind this place, a window of them.
fn window<'a>(sink: &'a Text, (partition, position, n): Place) -> Values<'a> {
    Values::none()
        .with(&**sink)
        .with(sql_partition(partition))
        .with(sql_key(position))
        .with(i64::from(n))
        .with(limit(WINDOW_ROWS))
}

async fn claim_of(reader: &Reader, claim: &Claim, at: Place) -> Result<Vec<OutboxRow>> {
    let values = window(&claim.sink, at)
        .with(claim.dead_pass)
        .with(claim.now)
        .with(limit(claim.limit))
        .with(&claim.owner[..])
        .with(claim.now.saturating_add(claim.lease_ms));
    let claimed = reader.write(vec![(Sql::Claim, values)]).await?.pop().unwrap_or_default();
    let mut claimed = all_of(&claimed, rows::outbox_row)?;
    claimed.sort_by(|one, other| one.entry.id.cmp(&other.entry.id));
    Ok(claimed)
}

async fn window_end(reader: &Reader, sink: &Text, at: Place) -> Result<Option<Place>> {
    let found = read(reader, Sql::WindowEnd, window(sink, at)).await?;
    found.first().map(|row| Ok((partition(row, 0)?, key(row, 1)?, number(row, 2)?))).transpose()
}

/// Each holder's first mark of a message ends its claim: later ones meet no row.
async fn mark(reader: &Reader, marks: &[Mark]) -> Result<()> {
    let mut firsts: BTreeMap<(&OutboxId, &[u8; 16]), &MarkResult> = BTreeMap::new();
    for mark in marks {
        firsts.entry((&mark.id, &mark.owner)).or_insert(&mark.result);
    }
    if firsts.is_empty() {
        return Ok(());
    }
    let ids: Vec<&OutboxId> = firsts.keys().map(|(id, _)| *id).collect();
    let results: Vec<Columns> = firsts.values().map(|result| Columns::of(result)).collect();
    let values = rows::outbox_ids(&ids)
        .with(firsts.keys().map(|(_, owner)| &owner[..]).collect::<Vec<_>>())
        .with(results.iter().map(|result| result.state).collect::<Vec<_>>())
        .with(results.iter().map(|result| result.attempts).collect::<Vec<_>>())
        .with(results.iter().map(|result| result.retry_at).collect::<Vec<_>>())
        .with(results.iter().map(|result| result.shipped_at).collect::<Vec<_>>())
        .with(results.iter().map(|result| result.error).collect::<Vec<_>>());
    failpoint::hit("before-mark");
    reader.write(vec![(Sql::Mark, values)]).await?;
    Ok(())
}

/// What a mark changes; what is `None` stays.
struct Columns<'a> {
    state: &'static str,
    attempts: i64,
    retry_at: Option<i64>,
    shipped_at: Option<i64>,
    error: Option<&'a str>,
}

impl Columns<'_> {
    fn of(result: &MarkResult) -> Columns<'_> {
        let tried = Columns { state: "pending", attempts: 1, retry_at: None, shipped_at: None, error: None };
        match result {
            MarkResult::Shipped { at } => Columns { state: "shipped", shipped_at: Some(*at), ..tried },
            MarkResult::Retry { at, error } => Columns { retry_at: Some(*at), error: Some(error), ..tried },
            MarkResult::Dead { error } => Columns { state: "dead", error: Some(error), ..tried },
            MarkResult::Release => Columns { attempts: 0, ..tried },
        }
    }
}

async fn stats(reader: &Reader) -> Result<Vec<OutboxStats>> {
    all_of(&read(reader, Sql::OutboxStats, Values::none()).await?, |row| {
        Ok(OutboxStats { sink: text(row, 0)?, pending: key(row, 1)?, dead: key(row, 2)?, oldest_pending: get(row, 3)? })
    })
}
