//! Keeps the write-ahead log short, outside the commit path: a thread with a connection of its own copies committed pages
//! into the database while the writer goes on, and asks the writer only for the short rest.
//! It does not know what is written. Next: `load.rs`, the other side of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::oneshot;
use wf_store::failpoint;

use crate::writer::Checkpoints;

/// Frames are pages of 4 KiB. From here on pages are copied: 16 MiB.
const FRAMES_BEGIN: u32 = 4096;
/// So few are left to the writer, who stands still for them: 1 MiB.
const FRAMES_REST: u32 = 256;
/// A log this long is worth a warning: 256 MiB.
const FRAMES_MAX: u32 = 65_536;
const _: () = assert!(FRAMES_REST < FRAMES_BEGIN && FRAMES_BEGIN < FRAMES_MAX);

/// What the log is cut to when it begins anew: reusing a file is twice as fast as growing one.
pub const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

pub enum Message {
    Grown,
    Idle(oneshot::Sender<()>),
    Stop,
}

/// The writer's side: called after each commit with the log's length.
#[derive(Clone)]
pub struct Gauge {
    frames: Arc<AtomicU32>,
    /// The length at which the thread is woken; `u32::MAX` while it works.
    wake_at: Arc<AtomicU32>,
    messages: mpsc::Sender<Message>,
}

impl Gauge {
    pub fn note(&self, frames: u32) {
        self.frames.store(frames, Ordering::Relaxed);
        if frames >= self.wake_at.load(Ordering::Relaxed) {
            self.wake_at.store(u32::MAX, Ordering::Relaxed);
            let _ = self.messages.send(Message::Grown);
        }
    }
}

/// The gauge, and the other end of its channel: the writer's connection needs the first before the thread has the second.
pub fn gauge() -> (Gauge, mpsc::Receiver<Message>) {
    let (messages, inbox) = mpsc::channel();
    (Gauge { frames: Arc::default(), wake_at: Arc::new(AtomicU32::new(FRAMES_BEGIN)), messages }, inbox)
}

pub struct Checkpointer {
    messages: mpsc::Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub fn spawn(
        connection: Connection,
        writer: Checkpoints,
        gauge: Gauge,
        inbox: mpsc::Receiver<Message>,
    ) -> std::io::Result<Checkpointer> {
        let messages = gauge.messages.clone();
        let worker = Worker { connection, writer, gauge };
        let thread = std::thread::Builder::new().name("wf-checkpoint".into()).spawn(move || worker.run(&inbox))?;
        Ok(Checkpointer { messages, thread: Some(thread) })
    }

    /// Everything into the database, the log cut to nothing.
    pub async fn idle(&self) {
        let (done, result) = oneshot::channel();
        let _ = self.messages.send(Message::Idle(done));
        let _ = result.await;
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    connection: Connection,
    writer: Checkpoints,
    gauge: Gauge,
}

impl Worker {
    fn run(&self, inbox: &mpsc::Receiver<Message>) {
        while let Ok(message) = inbox.recv() {
            match message {
                Message::Grown => {
                    failpoint::hit("before-checkpoint");
                    self.catch_up();
                    failpoint::hit("in-checkpoint");
                    let wake_at = self.begin_anew();
                    self.gauge.wake_at.store(wake_at, Ordering::Relaxed);
                }
                Message::Idle(done) => {
                    failpoint::hit("before-checkpoint");
                    self.copy();
                    failpoint::hit("in-checkpoint");
                    self.writer.run(CheckpointMode::TRUNCATE);
                    let _ = done.send(());
                }
                Message::Stop => return,
            }
            failpoint::hit("after-checkpoint");
        }
    }

    /// Copies while the writer writes on, as long as each round leaves less than half of what the last one left: where the
    /// writer is faster than the disk, waiting makes it worse.
    fn catch_up(&self) {
        let mut rest = FRAMES_BEGIN * 2;
        loop {
            let copied = self.copy();
            let left = self.gauge.frames.load(Ordering::Relaxed).saturating_sub(copied);
            if left <= FRAMES_REST || left > rest / 2 {
                return;
            }
            rest = left;
        }
    }

    /// The number of frames that stand in the database now.
    fn copy(&self) -> u32 {
        match self.connection.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), CheckpointMode::PASSIVE) {
            Ok((_, copied)) => u32::try_from(copied).unwrap_or(0),
            Err(error) => {
                tracing::warn!(%error, "checkpoint");
                0
            }
        }
    }

    /// The length of the log at which there is something to do again.
    fn begin_anew(&self) -> u32 {
        if self.writer.run(CheckpointMode::RESTART) {
            return FRAMES_BEGIN;
        }
        // A reader holds an old snapshot, perhaps somebody's shell: trying at every commit would only slow them down.
        let frames = self.gauge.frames.load(Ordering::Relaxed);
        if frames >= FRAMES_MAX {
            tracing::warn!(frames, "a reader keeps the write-ahead log from being reused");
        }
        frames.saturating_add(FRAMES_BEGIN)
    }
}
