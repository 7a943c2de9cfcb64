//! Which keys have a record. Every turn asks, mostly about keys that are new, and turns of several partitions ask at the same
//! time: what arrives while one look is under way goes together into the next one. Next: `reads.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use wf_store::{RecordId, StoreError};

use crate::combiner::GONE;
use crate::connection::Values;
use crate::reads::Reader;
use crate::rows;
use crate::sql::Sql;

/// Keys of one statement; a turn alone may ask for more.
const KEYS_MAX: usize = 4_096;
/// After this long a look is made again beside it, and those behind it begin: one session that hangs must not stop every
/// partition.
const SLOW: Duration = Duration::from_millis(250);
/// Under way at once; each may take two of the connections for what turns load.
const LOOKS_MAX: usize = 2;

struct Question {
    keys: Vec<RecordId>,
    answer: oneshot::Sender<Result<Vec<RecordId>, StoreError>>,
}

pub struct KnownKeys {
    asked: mpsc::UnboundedSender<Question>,
    task: AbortHandle,
}

impl KnownKeys {
    pub fn spawn(reader: Reader) -> KnownKeys {
        let (asked, inbox) = mpsc::unbounded_channel();
        KnownKeys { asked, task: tokio::spawn(run(inbox, reader)).abort_handle() }
    }

    /// Those of the keys that have a record, expired or not.
    pub async fn among(&self, keys: Vec<RecordId>) -> Result<Vec<RecordId>, StoreError> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let (answer, found) = oneshot::channel();
        let _ = self.asked.send(Question { keys, answer });
        found.await.unwrap_or_else(|_| Err(StoreError(GONE.to_owned())))
    }
}

impl Drop for KnownKeys {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(mut inbox: mpsc::UnboundedReceiver<Question>, reader: Reader) {
    let places = Arc::new(Semaphore::new(LOOKS_MAX));
    while let Some(first) = inbox.recv().await {
        // It is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let mut keys = first.keys.len();
        let mut together = vec![first];
        while keys < KEYS_MAX
            && let Ok(next) = inbox.try_recv()
        {
            keys += next.keys.len();
            together.push(next);
        }
        let reader = reader.clone();
        let look = tokio::spawn(async move {
            answer(&reader, together).await;
            drop(place);
        });
        // A slow one goes on by itself.
        let _ = tokio::time::timeout(SLOW, look).await;
    }
}

async fn answer(reader: &Reader, together: Vec<Question>) {
    let keys = || together.iter().flat_map(|question| &question.keys);
    let again = async {
        tokio::time::sleep(SLOW).await;
        look(reader, keys()).await
    };
    // On another connection: the one that hangs is thrown away.
    let found = tokio::select! {
        found = look(reader, keys()) => found,
        found = again => found,
    };
    for Question { keys, answer } in together {
        let known = |found: &BTreeSet<RecordId>| keys.into_iter().filter(|key| found.contains(key)).collect();
        let _ = answer.send(found.as_ref().map(known).map_err(StoreError::clone));
    }
}

async fn look<'k>(
    reader: &Reader,
    keys: impl IntoIterator<Item = &'k RecordId>,
) -> Result<BTreeSet<RecordId>, StoreError> {
    reader.query(Sql::KnownKeys, columns(keys)).await?.iter().map(rows::known_key).collect()
}

pub fn columns<'a>(ids: impl IntoIterator<Item = &'a RecordId>) -> Values<'a> {
    let (tenants, keys): (Vec<&str>, Vec<&str>) = ids.into_iter().map(|id| (&*id.tenant, &*id.key)).unzip();
    Values::none().with(tenants).with(keys)
}
