//! Compiled definitions for lists and details, which show element ids where rows hold positions. A bounded cache:
//! a definition never changes, so nothing in it is ever stale. It executes nothing. Next: `routes/instances.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use wf_core::rows::{Definition, Stored};
use wf_core::{Key, Need, RowId, ids};
use wf_model::Process;
use wf_store::{Needs, Store, StoreError};

const KEPT_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Graphs {
    kept: Mutex<BTreeMap<Key, Arc<Process>>>,
}

impl Graphs {
    /// `None` where the definition is gone or can no longer be compiled: the caller shows less.
    pub async fn of(&self, store: &dyn Store, definition: Key) -> Result<Option<Arc<Process>>, StoreError> {
        if let Some(kept) = self.kept(definition) {
            return Ok(Some(kept));
        }
        let needs = Needs {
            core: BTreeSet::from([Need::Row(RowId::Definition(definition))]),
            ..Needs::of(ids::partition_of(definition))
        };
        let loaded = store.load(needs).await?;
        let row = loaded.rows.into_iter().find_map(|(_, row)| Definition::unwrap(&row?).cloned());
        let Some(row) = row else { return Ok(None) };
        let compiled = tokio::task::spawn_blocking(move || compile(&row)).await;
        let process = compiled.unwrap_or_default();
        if let Some(process) = &process {
            self.keep(definition, process.clone());
        }
        Ok(process)
    }

    /// Those of several definitions, by key.
    pub async fn of_all(
        &self,
        store: &dyn Store,
        definitions: BTreeSet<Key>,
    ) -> Result<BTreeMap<Key, Arc<Process>>, StoreError> {
        let mut found = BTreeMap::new();
        for definition in definitions {
            if let Some(process) = self.of(store, definition).await? {
                found.insert(definition, process);
            }
        }
        Ok(found)
    }

    fn kept(&self, definition: Key) -> Option<Arc<Process>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&definition).cloned()
    }

    /// The oldest definition goes: its instances are the fewest.
    fn keep(&self, definition: Key, process: Arc<Process>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.pop_first();
        }
        kept.insert(definition, process);
    }
}

fn compile(row: &Definition) -> Option<Arc<Process>> {
    let processes = wf_model::compile(&row.xml).ok()?;
    processes.into_iter().find(|process| process.process_id == row.process_id).map(Arc::new)
}
