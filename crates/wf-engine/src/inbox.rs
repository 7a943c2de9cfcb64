//! What other partitions have sent: each row is executed once, as a command of the engine's own, and deleted by the turn that
//! executes it. And the way back: an answer whose command sent something is held until that was taken, so that a client reads
//! its own writes on every partition. Next: `wf_core::crossing`, what such commands do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wf_core::command::Quarantined;
use wf_core::rows::Text;
use wf_core::{Command, ids};
use wf_store::codec::command_from_json;
use wf_store::{Batch, InboxId, Sent, Store};

use crate::actor::{Actor, Standing};
use crate::engine::stopping;
use crate::envelope::{Asked, Own, Reply};
use crate::hub::Hub;
use crate::request::Refusal;

/// Rows that are looked at in one turn.
const ROWS_MAX: usize = 256;
/// Other nodes may not be heard: so often an engine looks by itself.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// So often a held answer asks whether its rows were taken, where nobody tells.
const ASK_EVERY: Duration = Duration::from_millis(25);

/// The actor's side of it.
pub struct Inbox {
    pub(crate) filled: Arc<Notify>,
    /// Taken by turns that are not committed yet: the store still shows them.
    in_hand: BTreeSet<InboxId>,
    has_mail: bool,
    next_look: Instant,
    held: JoinSet<()>,
    closing: watch::Sender<bool>,
}

impl Inbox {
    pub fn new(hub: &Hub, partition: u16) -> Inbox {
        Inbox {
            filled: hub.inbox(partition),
            in_hand: BTreeSet::new(),
            has_mail: true,
            next_look: Instant::now(),
            held: JoinSet::new(),
            closing: watch::Sender::new(false),
        }
    }

    pub fn tell_filled(&mut self) {
        self.has_mail = true;
    }

    /// Nothing is known to wait, or on its way.
    pub fn is_quiet(&self) -> bool {
        !self.has_mail && self.in_hand.is_empty()
    }

    fn is_time(&self, now: Instant) -> bool {
        self.has_mail || now >= self.next_look
    }

    pub fn next_look(&self) -> Instant {
        if self.has_mail { Instant::now() } else { self.next_look }
    }

    /// What a failed turn had taken waits again.
    pub fn forget(&mut self) {
        self.in_hand.clear();
        self.has_mail = true;
    }

    pub fn settle(&mut self, batch: &Batch) {
        self.in_hand.retain(|id| !batch.taken.contains(id));
    }

    /// Held answers leave at once; this returns when they have.
    pub async fn close(&mut self) {
        self.closing.send_replace(true);
        while self.held.join_next().await.is_some() {}
    }
}

impl Actor {
    pub(crate) async fn take_inbox(&mut self) {
        let now = Instant::now();
        let is_alone = self.partition.partitions.is_one() || self.is_closing || self.standing != Standing::Open;
        if is_alone || !self.has_room() || !self.inbox.is_time(now) || now < self.retry_from {
            return;
        }
        self.inbox.has_mail = false;
        self.inbox.next_look = now + LOOK_EVERY;
        let limit = ROWS_MAX + self.inbox.in_hand.len();
        match self.shared.store.inbox(self.partition.id, limit).await {
            Ok(rows) => {
                self.inbox.has_mail = rows.len() >= limit;
                self.take_rows(rows).await;
            }
            Err(error) => {
                tracing::warn!(%error, "failed to read what other partitions sent");
                self.retry_from = Instant::now() + self.pause();
            }
        }
    }

    /// All that other partitions have sent until now; whether there was something. `Err`: that cannot be seen now, or not any
    /// more.
    pub(crate) async fn take_all_mail(&mut self) -> Result<bool, Refusal> {
        if self.is_closing {
            return Err(stopping());
        }
        let before = self.turn.taken.len();
        loop {
            let taken = self.turn.taken.len();
            self.inbox.has_mail = true;
            self.take_inbox().await;
            if Instant::now() < self.retry_from {
                return Err(Refusal::Unavailable { reason: "what other partitions sent cannot be read".to_owned() });
            }
            if !self.inbox.has_mail || self.turn.taken.len() == taken {
                return Ok(self.turn.taken.len() > before);
            }
        }
    }

    /// In their order: where one has to wait, so do those behind it.
    async fn take_rows(&mut self, rows: Vec<Sent>) {
        for row in rows {
            if self.inbox.in_hand.contains(&row.id) {
                continue;
            }
            if !self.has_room() || self.take_row(&row).await.is_err() {
                self.inbox.has_mail = true;
                return;
            }
        }
    }

    async fn take_row(&mut self, row: &Sent) -> Result<(), Refusal> {
        let own = match read(row) {
            Ok(command) => Own { command, id: command_id(row), may_be_known: false, from: Some(row.id) },
            Err(reason) => return self.put_unreadable_aside(row, &reason).await,
        };
        self.take_own(own).await.map(drop)
    }

    /// It is dealt with in the turn at hand, which deletes its row.
    pub(crate) fn take_out(&mut self, from: Option<InboxId>) {
        if let Some(id) = from {
            self.turn.taken.push(id);
            self.inbox.in_hand.insert(id);
        }
    }

    /// One that cannot be executed must not stop those behind it: whom it concerns is told, and its row goes. If even that
    /// fails it stays where it is until the next start.
    pub(crate) async fn put_sent_aside(&mut self, own: &Own, from: InboxId, reason: &Text) -> Result<bool, Refusal> {
        tracing::error!(?from, %reason, "what a partition sent is put aside");
        let what = match &own.command {
            Command::Correlate { subscription, message, .. }
            | Command::SettleCorrelation { subscription, message, .. } => {
                Quarantined::Handover { subscription: *subscription, message: *message }
            }
            Command::OpenSubscription { copy } => Quarantined::Copy(copy.key),
            _ => sent_by(from),
        };
        let is_done = self.quarantine(what, reason, Some(from)).await?
            || self.quarantine(sent_by(from), reason, Some(from)).await?;
        if !is_done {
            self.give_up(own.id);
        }
        Ok(is_done)
    }

    async fn put_unreadable_aside(&mut self, row: &Sent, reason: &str) -> Result<(), Refusal> {
        tracing::error!(from = ?row.id, reason, payload = row.payload, "what a partition sent cannot be read");
        metrics::counter!("wf_commands_quarantined_total", "type" => "inbox").increment(1);
        let reason = format!("sent by partition {}: {reason}", row.id.source).into();
        self.quarantine(sent_by(row.id), &reason, Some(row.id)).await.map(drop)
    }

    /// After a commit: the others hear of it, and answers are held whose commands have sent something.
    pub(crate) fn tell_others(&mut self, batch: &Batch, held: Vec<Held>) {
        self.inbox.settle(batch);
        let targets: BTreeSet<u16> = batch.sent.iter().map(|sent| sent.target).collect();
        targets.into_iter().for_each(|target| self.options.hub.tell_sent(target));
        if !batch.taken.is_empty() {
            self.options.hub.tell_taken();
        }
        if !held.is_empty() {
            let limit = Duration::from_millis(self.options.delivered_wait_ms);
            let waiting = Waiting {
                store: self.shared.store.clone(),
                hub: self.options.hub.clone(),
                partition: self.partition.id,
                held: held.into_iter().fold(BTreeMap::new(), |mut by_position, held| {
                    by_position.entry(held.position).or_insert_with(Vec::new).push(held);
                    by_position
                }),
            };
            let closing = self.inbox.closing.subscribe();
            self.inbox.held.spawn(waiting.run(Instant::now() + limit, closing));
            while self.inbox.held.try_join_next().is_some() {}
        }
    }
}

fn sent_by(from: InboxId) -> Quarantined {
    Quarantined::Sent(from.source, from.position, from.n)
}

/// The same in every turn that executes it.
fn command_id(row: &Sent) -> [u8; 16] {
    let InboxId { source, position, n } = row.id;
    ids::command_id(row.time, &[b"inbox", &source.to_be_bytes(), &position.to_be_bytes(), &n.to_be_bytes()])
}

fn read(row: &Sent) -> Result<Command, String> {
    let mut command = command_from_json(&row.payload).map_err(|error| error.to_string())?;
    let is_told = matches!(command, Command::Quarantine { what: Quarantined::Subscription(_), .. });
    if !command.is_crossing() && !is_told {
        return Err(format!("{} is nothing that partitions send", command.verb()));
    }
    crate::loader::compile_adopted(&mut command)?;
    Ok(command)
}

/// An answer that waits until what its command sent was taken.
pub struct Held {
    pub position: u64,
    pub asked: Box<Asked>,
    pub reply: Reply,
}

struct Waiting {
    store: Arc<dyn Store>,
    hub: Hub,
    partition: u16,
    held: BTreeMap<u64, Vec<Held>>,
}

impl Waiting {
    async fn run(mut self, until: Instant, mut closing: watch::Receiver<bool>) {
        while !self.held.is_empty() && Instant::now() < until && !*closing.borrow() {
            let hub = self.hub.clone();
            let taken = hub.taken().notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            let positions = self.held.keys().copied().collect();
            match self.store.undelivered(self.partition, positions).await {
                Ok(waiting) => self.answer_all_but(&waiting),
                // Whether it was taken is a courtesy: the answer is durable.
                Err(_) => break,
            }
            if self.held.is_empty() {
                return;
            }
            tokio::select! {
                () = &mut taken => (),
                () = tokio::time::sleep(ASK_EVERY) => (),
                _ = closing.changed() => (),
            }
        }
        self.answer_all_but(&[]);
    }

    fn answer_all_but(&mut self, waiting: &[u64]) {
        let positions: Vec<u64> = self.held.keys().copied().filter(|position| !waiting.contains(position)).collect();
        for held in positions.iter().filter_map(|position| self.held.remove(position)).flatten() {
            held.asked.answer(held.reply);
        }
    }
}
