//! One request followed through all layers: filters over the maps. Next: `conformance/trace.rs`.

use wf_core::rows::Text;

use crate::batch::RecordId;
use crate::memory::{MemoryStore, State};
use crate::outbox::OutboxRow;
use crate::query::AuditRow;
use crate::store::{Later, StoreError};
use crate::trace::*;

const MINUTE_MS: i64 = 60_000;

impl Trace for MemoryStore {
    fn filed(&self, id: RecordId) -> Later<'_, Result<Option<Filed>, StoreError>> {
        Box::pin(async move { Ok(self.state().records.get(&id).map(filed)) })
    }

    fn filed_at(&self, query: FiledQuery) -> Later<'_, Result<Vec<Filed>, StoreError>> {
        Box::pin(async move { Ok(self.state().filed_at(&query)) })
    }

    fn logged(&self, query: LoggedQuery) -> Later<'_, Result<Vec<Logged>, StoreError>> {
        Box::pin(async move { Ok(self.state().logged(&query)) })
    }

    fn trail(&self, query: TrailQuery) -> Later<'_, Result<Trail, StoreError>> {
        Box::pin(async move { Ok(self.state().trail(&query)) })
    }

    fn outbox_of(
        &self,
        tenant: Text,
        partition: u16,
        positions: Vec<u64>,
    ) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(async move { Ok(self.state().outbox_of(&tenant, partition, &positions)) })
    }

    fn repeats(&self, query: RepeatsQuery) -> Later<'_, Result<Repeats, StoreError>> {
        Box::pin(async move { Ok(self.state().repeats(&query)) })
    }
}

fn filed(entry: &crate::batch::RecordEntry) -> Filed {
    Filed {
        key: entry.id.key.clone(),
        key_hash: entry.key_hash,
        route: entry.route.into(),
        record: entry.record.clone(),
    }
}

impl State {
    fn filed_at(&self, query: &FiledQuery) -> Vec<Filed> {
        let wanted = self.records.values().filter(|entry| {
            entry.id.tenant == query.tenant
                && entry.record.created_ms == query.created_at
                && entry.record.expires_ms == query.expires_at
        });
        wanted.take(query.limit).map(filed).collect()
    }

    fn logged(&self, query: &LoggedQuery) -> Vec<Logged> {
        let limit = if let Which::At { limit, .. } = query.which { limit } else { 1 };
        let wanted = self.log.iter().filter(|((partition, at), entry)| {
            entry.tenant == query.tenant
                && match query.which {
                    Which::Id(id) => entry.id == id,
                    Which::Position { partition: of, position } => (*at, *partition) == (position, of),
                    Which::At { time, verb, .. } => entry.time == time && entry.verb == verb,
                }
        });
        let shown = wanted.map(|((partition, position), entry)| Logged {
            partition: *partition,
            position: *position,
            id: entry.id,
            time: entry.time,
            verb: entry.verb.into(),
            payload: entry.payload.clone(),
        });
        shown.take(limit).collect()
    }

    fn trail(&self, query: &TrailQuery) -> Trail {
        let root = root_member(query.instance);
        let mut trail = Trail::default();
        let range = self.audit.range((query.partition, query.from)..);
        let range = range.take_while(|(at, _)| **at <= (query.partition, query.until));
        for (passed, ((partition, position), entry)) in range.enumerate() {
            let is_wanted = entry.tenant == query.tenant && entry.events.contains(&root);
            if passed == query.passed_max || (is_wanted && trail.rows.len() == query.limit) {
                trail.next = Some(*position);
                break;
            }
            if is_wanted {
                trail.rows.push(AuditRow {
                    partition: *partition,
                    position: *position,
                    time: entry.time,
                    actor: entry.actor.clone(),
                    events: entry.events.clone(),
                });
            }
        }
        trail
    }

    fn outbox_of(&self, tenant: &str, partition: u16, positions: &[u64]) -> Vec<OutboxRow> {
        let rows = self.outbox.values().map(|shipment| &shipment.row);
        let wanted = rows.filter(|row| {
            let id = &row.entry.id;
            &*row.entry.tenant == tenant && id.partition == partition && positions.contains(&id.position)
        });
        wanted.cloned().collect()
    }

    fn repeats(&self, query: &RepeatsQuery) -> Repeats {
        let since = query.since.div_euclid(MINUTE_MS);
        let wanted = self
            .suppressed
            .values()
            .filter(|row| row.minute >= since && row.tenant == query.tenant && query.subjects.contains(&row.key_hash));
        let mut rows: Vec<_> = wanted.cloned().collect();
        rows.sort_by_key(|row| (row.minute, row.key_hash, row.kind.name(), row.route.clone()));
        let is_cut = rows.len() > query.limit;
        rows.truncate(query.limit);
        Repeats { rows, is_cut }
    }
}
