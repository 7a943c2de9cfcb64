//! The log on its way to a replay: read in pages and decoded by a thread of its own, ahead of the one that executes.
//! At the log's end it freezes the ledger, so that the tables can be compared at the very position that was reached.
//! Next: `replay.rs`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use wf_core::Command;
use wf_core::rows::Text;
use wf_store::codec::logged_from_json;
use wf_store::{Ledger, LogRow, StoreError};

use super::ProofError;

const PAGE_ROWS: usize = 1_024;
/// Pages that wait: memory stays bounded however long the log is.
const PAGES_AHEAD: usize = 8;

/// A command as it stands in the log, read back.
pub struct Step {
    pub row: LogRow,
    /// `Err`: why it cannot be read.
    pub command: Result<(Command, Text), String>,
}

pub struct Feed {
    pages: Receiver<Result<Vec<Step>, StoreError>>,
    thread: JoinHandle<Box<dyn Ledger>>,
}

impl Feed {
    /// Positions from `from` to `to`, both inclusive.
    pub fn start(ledger: Box<dyn Ledger>, from: u64, to: u64) -> Result<Feed, ProofError> {
        let (send, pages) = sync_channel(PAGES_AHEAD);
        let thread = std::thread::Builder::new().name("wf-log-feed".to_owned());
        let thread = thread.spawn(move || read(ledger, from, to, &send)).map_err(ProofError::Thread)?;
        Ok(Feed { pages, thread })
    }

    /// `None` at the end.
    pub fn next(&self) -> Result<Option<Vec<Step>>, StoreError> {
        self.pages.recv().ok().transpose()
    }

    /// The ledger, frozen where the feed ended.
    pub fn end(self) -> Result<Box<dyn Ledger>, ProofError> {
        drop(self.pages);
        self.thread.join().map_err(|_| ProofError::Scratch("the thread that reads the log panicked".to_owned()))
    }
}

fn read(
    mut ledger: Box<dyn Ledger>,
    mut from: u64,
    to: u64,
    send: &SyncSender<Result<Vec<Step>, StoreError>>,
) -> Box<dyn Ledger> {
    let mut is_frozen = false;
    loop {
        let page = match ledger.log(from, PAGE_ROWS) {
            Ok(page) => page,
            Err(error) => {
                let _ = send.send(Err(error));
                return ledger;
            }
        };
        let is_last = page.len() < PAGE_ROWS || page.last().is_some_and(|row| row.position >= to);
        from = page.last().map_or(from, |row| row.position + 1);
        let steps: Vec<Step> = page.into_iter().take_while(|row| row.position <= to).map(decode).collect();
        // Nobody listens: the replay has ended early.
        if !steps.is_empty() && send.send(Ok(steps)).is_err() {
            return ledger;
        }
        if is_last && is_frozen {
            return ledger;
        }
        if is_last {
            // What was committed meanwhile is read once more, and nothing comes behind it.
            if let Err(error) = ledger.freeze() {
                let _ = send.send(Err(error));
                return ledger;
            }
            is_frozen = true;
        }
    }
}

fn decode(row: LogRow) -> Step {
    let command = logged_from_json(&row.payload).map_err(|error| error.to_string());
    Step { command: command.and_then(|command| named(command, &row.verb)).and_then(compiled), row }
}

/// The verb beside the payload is what people and views read.
fn named(command: (Command, Text), verb: &str) -> Result<(Command, Text), String> {
    match command.0.verb() {
        own if own == verb => Ok(command),
        own => Err(format!("the row says {verb:?}, the command {own:?}")),
    }
}

/// The log keeps a deployment's XML; its processes are compiled again.
fn compiled((mut command, origin): (Command, Text)) -> Result<(Command, Text), String> {
    crate::loader::compile_adopted(&mut command)?;
    if let Command::Deploy { resources } = &mut command {
        for resource in resources {
            let compiled = wf_model::compile(&resource.xml).map_err(|problems| {
                problems.first().map_or_else(|| "it does not compile".to_owned(), ToString::to_string)
            })?;
            resource.processes = compiled.into_iter().map(Arc::new).collect();
        }
    }
    Ok((command, origin))
}
