//! Where pages begin, as opaque texts. A malformed one is nobody's. Next: `lists.rs`.

use std::fmt;
use std::str::FromStr;

use wf_core::{Key, Millis};
use wf_store::{OutboxId, Slice};

/// `None` for a malformed text, `Some(None)` for the list's begin.
pub fn cursor<C: FromStr>(slice: &Slice) -> Option<Option<C>> {
    match &slice.after {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}

/// A key or a position of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub partition: u16,
    pub key: i64,
}

impl Place {
    /// Before all others.
    pub const BEGIN: Place = Place { partition: 0, key: -1 };
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.partition, self.key)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let (partition, key) = text.split_once(':').ok_or(())?;
        Ok(Place { partition: small(partition)?, key: key.parse().map_err(drop)? })
    }
}

/// An instance among all: its start first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    pub partition: u16,
    pub started_at: Millis,
    pub key: Key,
}

impl fmt::Display for Started {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.partition, self.started_at, self.key)
    }
}

impl FromStr for Started {
    type Err = ();

    fn from_str(text: &str) -> Result<Started, ()> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(());
        let partition = small(part()?)?;
        Ok(Started { partition, started_at: part()?.parse().map_err(drop)?, key: part()?.parse().map_err(drop)? })
    }
}

#[derive(Clone, Debug)]
pub struct Message(pub OutboxId);

impl fmt::Display for Message {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message(id) = self;
        write!(out, "{}:{}:{}:{}", id.partition, id.position, id.n, id.sink)
    }
}

impl FromStr for Message {
    type Err = ();

    fn from_str(text: &str) -> Result<Message, ()> {
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().ok_or(());
        let partition = small(part()?)?;
        let position = part()?.parse().map_err(drop)?;
        let n = part()?.parse().map_err(drop)?;
        Ok(Message(OutboxId { partition, position, n, sink: part()?.into() }))
    }
}

/// Partitions have 12 bits.
fn small(text: &str) -> Result<u16, ()> {
    text.parse().ok().filter(|partition| *partition < 1 << 12).ok_or(())
}
