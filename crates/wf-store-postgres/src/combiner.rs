//! Takes the turns that wait and writes those of different partitions in one transaction; never two of one partition, and
//! never one of a partition whose last one is still under way. If they fail together because of one of them, each is tried
//! alone, and so is one that waits for a lock: nobody pays for another. It answers only after COMMIT. It does not know what is
//! written. Next: `commit.rs`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinSet};
use wf_store::{Batch, CommitError};

use crate::commit::Committer;

/// Turns of one transaction.
const TURNS_MAX: usize = 64;
/// Connections beside the writers', for turns that are tried alone.
pub const APART_MAX: usize = 4;

pub const GONE: &str = "the store is closed";

pub type Answer = oneshot::Sender<Result<(), CommitError>>;

struct Turn {
    batch: Arc<Batch>,
    answer: Answer,
}

impl Turn {
    fn partition(&self) -> u16 {
        self.batch.fence.partition
    }
}

pub struct Combiner {
    turns: mpsc::UnboundedSender<Turn>,
    task: AbortHandle,
}

impl Combiner {
    /// `writers`: transactions under way at once.
    pub fn spawn(committer: Committer, writers: usize) -> Combiner {
        let (turns, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(inbox, Arc::new(committer), writers.max(1))).abort_handle();
        Combiner { turns, task }
    }

    /// A turn that is dropped unheard answers by its channel's end.
    pub fn send(&self, batch: Arc<Batch>, answer: Answer) {
        let _ = self.turns.send(Turn { batch, answer });
    }
}

impl Drop for Combiner {
    /// What is under way goes on at the server, and nobody waits for it any more.
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(mut inbox: mpsc::UnboundedReceiver<Turn>, committer: Arc<Committer>, writers: usize) {
    let mut waiting = VecDeque::new();
    let mut under_way = UnderWay::default();
    let mut is_open = true;
    while is_open || !waiting.is_empty() || !under_way.tasks.is_empty() {
        while let Ok(turn) = inbox.try_recv() {
            waiting.push_back(turn);
        }
        if under_way.groups() < writers {
            let group = next_group(&mut waiting, &mut under_way.busy);
            if !group.is_empty() {
                under_way.spawn_group(committer.clone(), group);
                continue;
            }
        }
        tokio::select! {
            turn = inbox.recv(), if is_open => match turn {
                Some(turn) => waiting.push_back(turn),
                None => is_open = false,
            },
            Some(apart) = under_way.next() => {
                apart.into_iter().for_each(|turn| under_way.spawn_apart(committer.clone(), turn));
            }
        }
    }
}

/// Transactions under way, and the partitions whose turns they write.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<Vec<Turn>>,
    of: HashMap<Id, Task>,
    busy: BTreeSet<u16>,
}

struct Task {
    /// It counts among those that may be under way at once; one apart does not, as it may wait for long.
    is_group: bool,
    partitions: Vec<u16>,
}

impl UnderWay {
    fn groups(&self) -> usize {
        self.of.values().filter(|task| task.is_group).count()
    }

    fn spawn_group(&mut self, committer: Arc<Committer>, group: Vec<Turn>) {
        let partitions = group.iter().map(Turn::partition).collect();
        let id = self.tasks.spawn(together(committer, group)).id();
        self.of.insert(id, Task { is_group: true, partitions });
    }

    fn spawn_apart(&mut self, committer: Arc<Committer>, turn: Turn) {
        let partitions = vec![turn.partition()];
        self.busy.extend(&partitions);
        let id = self.tasks.spawn(apart(committer, turn)).id();
        self.of.insert(id, Task { is_group: false, partitions });
    }

    /// The turns of the next one that ends which are to be tried alone; the others are answered. One that panicked has
    /// dropped its answers: unknown.
    async fn next(&mut self) -> Option<Vec<Turn>> {
        let (id, apart) = match self.tasks.join_next_with_id().await? {
            Ok(done) => done,
            Err(error) => (error.id(), Vec::new()),
        };
        if let Some(task) = self.of.remove(&id) {
            task.partitions.iter().for_each(|partition| {
                self.busy.remove(partition);
            });
        }
        Some(apart)
    }
}

/// The oldest turn of each partition that has none under way.
fn next_group(waiting: &mut VecDeque<Turn>, busy: &mut BTreeSet<u16>) -> Vec<Turn> {
    let mut group = Vec::new();
    let mut left = VecDeque::with_capacity(waiting.len());
    for turn in waiting.drain(..) {
        if group.len() < TURNS_MAX && busy.insert(turn.partition()) {
            group.push(turn);
        } else {
            left.push_back(turn);
        }
    }
    *waiting = left;
    group
}

/// Those that are to be tried alone.
async fn together(committer: Arc<Committer>, group: Vec<Turn>) -> Vec<Turn> {
    let batches: Vec<&Batch> = group.iter().map(|turn| &*turn.batch).collect();
    match committer.together(&batches).await {
        None => group,
        Some(outcome) => {
            group.into_iter().for_each(|turn| drop(turn.answer.send(outcome.clone())));
            Vec::new()
        }
    }
}

async fn apart(committer: Arc<Committer>, turn: Turn) -> Vec<Turn> {
    let outcome = committer.alone(&turn.batch).await;
    let _ = turn.answer.send(outcome);
    Vec::new()
}
