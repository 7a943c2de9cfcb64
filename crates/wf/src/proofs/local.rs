//! A store that is read here, without a server: a folder, or a database partition by partition. Whoever runs on it is not
//! disturbed. Next: `scratch.rs`.

use std::path::Path;

use wf_store::Ledger;

use super::FolderScratch;
use crate::cli::Source;
use crate::output::Failure;

pub enum Local<'s> {
    Folder(&'s Path),
    Database(&'s str),
}

impl<'s> Local<'s> {
    /// `None`: a server is asked.
    pub fn of(source: &'s Source) -> Option<Local<'s>> {
        let folder = source.data.as_deref().map(Local::Folder);
        folder.or(source.store.as_deref().map(Local::Database))
    }

    /// A folder has one.
    pub fn partitions(&self) -> Result<Vec<u16>, Failure> {
        match self {
            Local::Folder(_) => Ok(vec![1]),
            Local::Database(_) => Ok(self.ledger(1)?.partitions().map_err(Failure::work)?.iter().collect()),
        }
    }

    pub fn ledger(&self, partition: u16) -> Result<Box<dyn Ledger>, Failure> {
        match self {
            Local::Folder(dir) => ledger_of(dir),
            Local::Database(url) => {
                let ledger = wf_store_postgres::read_only(url, partition);
                Ok(Box::new(ledger.map_err(|error| Failure::work(format!("failed to read the store: {error}")))?))
            }
        }
    }

    /// `archived_in`: where a database's log was archived.
    pub fn scratch(&self, archived_in: Option<&Path>) -> FolderScratch {
        match self {
            Local::Folder(dir) => FolderScratch::of(dir),
            Local::Database(_) => archived_in.map_or_else(FolderScratch::without_checkpoints, FolderScratch::of),
        }
    }
}

pub fn ledger_of(dir: &Path) -> Result<Box<dyn Ledger>, Failure> {
    let ledger = wf_store_sqlite::read_only(dir).map_err(|error| Failure::work(format!("failed to {error}")))?;
    Ok(Box::new(ledger))
}
