//! The audit against the command log and against its own chain: one row per command, nothing between, each link computed
//! again up to the head in the partition's row. Names the first row that is wrong. Next: back to `mod.rs`.

use std::collections::VecDeque;

use wf_core::Command;
use wf_store::codec::{events_of_json, logged_from_json};
use wf_store::{AuditEntry, Ledger, LogRow, StoreError, event_id};

use super::{Progress, ProofError, Tell, told};
use crate::chain::{begin_row, link};

const PAGE_ROWS: usize = 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    pub commands: u64,
    pub events: u64,
    /// The last position that was looked at, and the chain's head after it.
    pub position: u64,
    pub chain: [u8; 32],
    /// Commands below this position are in an archive: their audit was held against the chain only.
    pub log_from: u64,
    /// Rows up to this position have left the audit: only the chain after them is known.
    pub archived: u64,
    /// The first one, where there is one: nothing behind it was looked at.
    pub fault: Option<AuditFault>,
}

/// What is wrong, and with which row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    #[error("ev-{partition}-{position}: the command is in the log, its audit row is missing")]
    Missing { partition: u16, position: u64 },
    #[error("ev-{partition}-{position}: an audit row without a command in the log")]
    Extra { partition: u16, position: u64 },
    #[error("ev-{partition}-{position}: the row says {claimed}, the command in the log {logged}")]
    Foreign { partition: u16, position: u64, claimed: String, logged: String },
    #[error("ev-{partition}-{position}: its events cannot be read: {reason}")]
    Unreadable { partition: u16, position: u64, reason: String },
    #[error(
        "ev-{partition}-{position}: the row was changed, or one before it removed: its link of the chain does not fit"
    )]
    Broken { partition: u16, position: u64 },
    #[error("the chain ends in {found}, the partition's row says {expected}: the last rows were removed or changed")]
    Head { expected: String, found: String },
    #[error("the audit ends at position {position}, the partition's row stands at {stands}")]
    Standing { position: u64, stands: u64 },
    #[error("position {position} of the command log does not follow {previous}: commands were removed from the log")]
    Gap { position: u64, previous: u64 },
}

/// Reads everything once, in one frozen state.
pub fn verify_audit(ledger: &mut dyn Ledger, tell: Tell<'_>) -> Result<AuditReport, ProofError> {
    ledger.freeze()?;
    let report = Check::new(ledger).map_err(ProofError::from).and_then(|check| check.run(tell));
    ledger.thaw()?;
    report
}

struct Check<'l> {
    ledger: &'l mut dyn Ledger,
    partition: u16,
    head: [u8; 32],
    stands: u64,
    log: VecDeque<LogRow>,
    /// Where the next page of the log begins; `None`: it was read to its end.
    log_next: Option<u64>,
    previous: Option<u64>,
    may_be_bare: bool,
    report: AuditReport,
}

impl<'l> Check<'l> {
    fn new(ledger: &'l mut dyn Ledger) -> Result<Check<'l>, StoreError> {
        let standing = ledger.standing()?;
        let log_from = ledger.log_begin()?.unwrap_or(u64::MAX);
        let (archived, chain) = ledger.audit_begin()?;
        let report = AuditReport { commands: 0, events: 0, position: archived, chain, log_from, archived, fault: None };
        Ok(Check {
            ledger,
            partition: standing.fence.partition,
            head: standing.head.chain,
            stands: standing.fence.new_position,
            log: VecDeque::new(),
            // Commands whose audit rows have gone have nothing to be held against.
            log_next: Some(archived + 1),
            previous: None,
            may_be_bare: true,
            report,
        })
    }

    fn run(mut self, tell: Tell<'_>) -> Result<AuditReport, ProofError> {
        let mut from = self.report.archived + 1;
        let all = self.ledger.count_log(from)?;
        loop {
            let page = self.ledger.audit(from, PAGE_ROWS)?;
            for entry in &page {
                if let Err(fault) = self.row(entry)? {
                    self.report.fault = Some(fault);
                    return Ok(self.report);
                }
            }
            let done = self.report.commands;
            told(tell, Progress { done, of: Some(all.max(done)) })?;
            match page.last() {
                Some(last) if page.len() == PAGE_ROWS => from = last.position + 1,
                _ => break,
            }
        }
        self.report.fault = self.ending()?;
        Ok(self.report)
    }

    fn row(&mut self, entry: &AuditEntry) -> Result<Result<(), AuditFault>, StoreError> {
        let (partition, position) = (self.partition, entry.position);
        if position >= self.report.log_from {
            let command = self.next_command()?;
            if let Err(fault) = self.belongs(entry, command.as_ref()) {
                return Ok(Err(fault));
            }
        }
        let events = match events_of_json(&entry.events) {
            Ok(events) => events,
            Err(error) => {
                return Ok(Err(AuditFault::Unreadable { partition, position, reason: error.to_string() }));
            }
        };
        if !self.fits(entry, &events) {
            return Ok(Err(AuditFault::Broken { partition, position }));
        }
        self.report.events += events.len() as u64;
        self.report.commands += 1;
        self.report.position = position;
        Ok(Ok(()))
    }

    /// Rows of the first format come without their header in the chain; none may follow one that has it.
    fn fits(&mut self, entry: &AuditEntry, events: &[&str]) -> bool {
        let id = |n| event_id(self.partition, entry.position, n);
        let linked = |chain| {
            let events = (1..).zip(events);
            events.fold(chain, |chain, (n, event)| link(&chain, &id(n), event))
        };
        let whole = linked(begin_row(&self.report.chain, &id(1), entry.time, &entry.tenant, &entry.actor));
        let bare = || linked(self.report.chain);
        let is_whole = whole == entry.chain;
        let fits = is_whole || (self.may_be_bare && bare() == entry.chain);
        self.may_be_bare &= !is_whole;
        self.report.chain = entry.chain;
        fits && events.len() == entry.count as usize
    }

    /// The audit row is that of the next command, and no command was taken out before it.
    fn belongs(&mut self, entry: &AuditEntry, command: Option<&LogRow>) -> Result<(), AuditFault> {
        let (partition, position) = (self.partition, entry.position);
        let Some(command) = command else { return Err(AuditFault::Extra { partition, position }) };
        if command.position < position {
            return Err(AuditFault::Missing { partition, position: command.position });
        }
        if command.position > position {
            return Err(AuditFault::Extra { partition, position });
        }
        if let Some(previous) = self.previous
            && !follows(command, previous)
        {
            return Err(AuditFault::Gap { position, previous });
        }
        self.previous = Some(position);
        if (command.time, &command.tenant) != (entry.time, &entry.tenant) {
            let said = |time: i64, tenant: &str| format!("tenant {tenant:?} at {time}");
            let claimed = said(entry.time, &entry.tenant);
            let logged = said(command.time, &command.tenant);
            return Err(AuditFault::Foreign { partition, position, claimed, logged });
        }
        Ok(())
    }

    fn next_command(&mut self) -> Result<Option<LogRow>, StoreError> {
        if self.log.is_empty()
            && let Some(from) = self.log_next
        {
            let page = self.ledger.log(from, PAGE_ROWS)?;
            self.log_next = page.last().filter(|_| page.len() == PAGE_ROWS).map(|row| row.position + 1);
            self.log.extend(page);
        }
        Ok(self.log.pop_front())
    }

    /// What must hold behind the last audit row.
    fn ending(&mut self) -> Result<Option<AuditFault>, StoreError> {
        let partition = self.partition;
        if let Some(command) = self.next_command()? {
            return Ok(Some(AuditFault::Missing { partition, position: command.position }));
        }
        let hex = |chain: &[u8; 32]| wf_core::ids::hex(chain).to_string();
        if self.report.chain != self.head {
            return Ok(Some(AuditFault::Head { expected: hex(&self.head), found: hex(&self.report.chain) }));
        }
        let (position, stands) = (self.report.position, self.stands);
        Ok((position != stands).then_some(AuditFault::Standing { position, stands }))
    }
}

/// A gap in positions is legal only before an epoch's opening that names what precedes it.
pub(super) fn follows(command: &LogRow, previous: u64) -> bool {
    if &*command.verb != "open-epoch" {
        return command.position == previous + 1;
    }
    let opening = logged_from_json(&command.payload);
    matches!(opening, Ok((Command::OpenEpoch { previous_position, .. }, _)) if previous_position == previous)
}
