//! Everything that is durable, in ordered maps. Rows, ranges, log and audit are each partition's own; records, counts and
//! secrets are the store's. Next: `load.rs`, then `commit.rs`.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::rows::Text;
use wf_core::{Millis, Partitions, RangeId, Row, RowId, SortKey};

use crate::batch::*;
use crate::cluster::{Node, NodeId};
use crate::memory::cluster::Clock;
use crate::memory::outbox::Shipment;
use crate::outbox::OutboxId;
use crate::store::{Opened, StoreError};

#[derive(Clone, Debug)]
pub(super) struct State {
    pub numbers: Partitions,
    /// Those that were ever opened.
    pub partitions: BTreeMap<u16, Partition>,
    /// By partition and position, as the audit.
    pub log: BTreeMap<(u16, u64), LogEntry>,
    pub command_ids: BTreeSet<(u16, [u8; 16])>,
    pub audit: BTreeMap<(u16, u64), AuditEntry>,
    /// By target.
    pub inbox: BTreeMap<(u16, InboxId), Sent>,
    pub outbox: BTreeMap<OutboxId, Shipment>,
    pub records: BTreeMap<RecordId, RecordEntry>,
    pub suppressed: BTreeMap<SuppressedId, Suppressed>,
    pub secrets: BTreeMap<&'static str, [u8; 32]>,
    /// With the end of its lease (exclusive).
    pub nodes: BTreeMap<NodeId, (Node, Millis)>,
    /// How many handles of nodes were ever made.
    pub runs: u64,
    pub lease_ms: Millis,
    pub clock: Clock,
}

type SuppressedId = (Text, [u8; 16], SuppressedKind, Text, i64);

#[derive(Clone, Debug, Default)]
pub(super) struct Partition {
    pub epoch: u64,
    pub position: u64,
    pub head: Head,
    /// Who took it last; gone nodes may stand here.
    pub owner: Option<NodeId>,
    pub tables: Tables,
}

/// The logical state of a partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub rows: BTreeMap<RowId, Row>,
    pub ranges: BTreeMap<RangeId, BTreeSet<SortKey>>,
}

impl Default for State {
    fn default() -> State {
        State {
            numbers: Partitions::ONE,
            partitions: BTreeMap::new(),
            log: BTreeMap::new(),
            command_ids: BTreeSet::new(),
            audit: BTreeMap::new(),
            inbox: BTreeMap::new(),
            outbox: BTreeMap::new(),
            records: BTreeMap::new(),
            suppressed: BTreeMap::new(),
            secrets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            runs: 0,
            lease_ms: 6_000,
            clock: Clock::default(),
        }
    }
}

impl State {
    /// A node is refused what another living one owns.
    pub fn take(&mut self, partition: u16, by: Option<&Node>) -> Result<Opened, StoreError> {
        if !self.has(partition) {
            return Err(StoreError(format!("there is no partition {partition}")));
        }
        if let (Some(me), Some(owner)) = (by, self.living_owner(partition))
            && owner.id != me.id
        {
            return Err(StoreError(format!("partition {partition} is owned by node {}", owner.name)));
        }
        let row = self.partitions.entry(partition).or_default();
        row.epoch += 1;
        row.owner = by.map(|me| me.id);
        Ok(row.standing(partition))
    }

    pub fn has(&self, partition: u16) -> bool {
        self.numbers.contains(partition)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Tables> {
        self.partitions.values().map(|partition| &partition.tables)
    }

    pub fn rows_of(&self, partition: u16) -> Option<&BTreeMap<RowId, Row>> {
        Some(&self.partitions.get(&partition)?.tables.rows)
    }

    /// Under the same id at other partitions.
    pub fn elsewhere<'a>(&'a self, partition: u16, id: &'a RowId) -> impl Iterator<Item = &'a Row> {
        let others = self.partitions.iter().filter(move |(other, _)| **other != partition);
        others.filter_map(|(_, other)| other.tables.rows.get(id))
    }
}

impl Partition {
    pub fn standing(&self, partition: u16) -> Opened {
        let position = self.position;
        let fence = Fence { partition, epoch: self.epoch, old_position: position, new_position: position };
        Opened { fence, head: self.head }
    }
}
