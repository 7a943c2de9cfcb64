//! What other nodes have sent and taken, heard at once: a transaction of turns that touches inboxes says so with NOTIFY, and
//! each node listens on a connection of its own. Only hints, lost with the connection: inboxes are looked at anyway. Not
//! behind PgBouncer, where no session is ours. Next: `wf_cluster`'s supervisor, which passes them on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Socket};
use wf_store::{Batch, Heard, NodeId};

use crate::connect::{ConnectError, Connector};
use crate::connection::Values;

/// Hints that wait for a node that is busy; more than that are dropped.
const WAITING_MAX: usize = 1_024;
/// Between two attempts to listen.
const AGAIN: Duration = Duration::from_secs(1);

pub struct Ear {
    heard: Mutex<mpsc::Receiver<Heard>>,
    task: Option<AbortHandle>,
}

impl Ear {
    /// Of a store that is reached through PgBouncer.
    pub fn deaf() -> Ear {
        Ear { heard: Mutex::new(mpsc::channel(1).1), task: None }
    }

    pub fn listen(connector: Arc<Connector>, channel: &str, me: NodeId) -> Ear {
        let (hints, heard) = mpsc::channel(WAITING_MAX);
        let listen = format!("LISTEN {channel}");
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = hear(&connector, &listen, &me, &hints).await {
                    tracing::debug!(%error, "nothing is heard of other nodes for a moment: inboxes are polled");
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        Ear { heard: Mutex::new(heard), task: Some(task.abort_handle()) }
    }

    /// Safe to be dropped while it waits.
    pub async fn next(&self) -> Heard {
        match self.heard.lock().await.recv().await {
            Some(heard) => heard,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// Until the connection ends.
async fn hear(
    connector: &Connector,
    listen: &str,
    me: &NodeId,
    hints: &mpsc::Sender<Heard>,
) -> Result<(), ConnectError> {
    let (client, mut messages) = connector.listener().await?;
    let listening = client.batch_execute(listen);
    tokio::pin!(listening);
    let mut is_listening = false;
    loop {
        tokio::select! {
            listens = &mut listening, if !is_listening => {
                listens?;
                is_listening = true;
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    for heard in read(note.payload(), me) {
                        let _ = hints.try_send(heard);
                    }
                }
                Some(Ok(_)) => (),
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
        }
    }
}

/// A connection's messages, in order.
pub struct Messages<S>(pub tokio_postgres::Connection<Socket, S>);

impl<S: tokio_postgres::tls::TlsStream + Unpin> Messages<S> {
    async fn next(&mut self) -> Option<Result<AsyncMessage, tokio_postgres::Error>> {
        std::future::poll_fn(|context| self.0.poll_message(context)).await
    }
}

/// What a transaction of these turns tells the other nodes, as `notify` takes it; `None`: nothing.
pub fn note<'a>(channel: &'a str, me: &NodeId, batches: &[&Batch]) -> Option<Values<'a>> {
    let mut words = vec![hex(me)];
    let mut targets: Vec<u16> = batches.iter().flat_map(|batch| &batch.sent).map(|sent| sent.target).collect();
    targets.sort_unstable();
    targets.dedup();
    words.extend(targets.iter().map(u16::to_string));
    if batches.iter().any(|batch| !batch.taken.is_empty()) {
        words.push(TAKEN.to_owned());
    }
    (words.len() > 1).then(|| Values::none().with(channel).with(words.join(" ")))
}

const TAKEN: &str = "taken";

/// Of another node's note; one's own is known already, and what cannot be read is no hint.
fn read(payload: &str, me: &NodeId) -> Vec<Heard> {
    let mut words = payload.split(' ');
    if words.next() == Some(hex(me).as_str()) {
        return Vec::new();
    }
    let heard = |word: &str| match word {
        TAKEN => Some(Heard::Taken),
        word => word.parse().ok().map(Heard::Sent),
    };
    words.filter_map(heard).collect()
}

fn hex(id: &NodeId) -> String {
    wf_core::ids::hex(id).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_another_node_is_read_and_ones_own_is_not() {
        let note = format!("{} 3 12 taken", hex(&[7; 16]));
        assert_eq!(read(&note, &[8; 16]), [Heard::Sent(3), Heard::Sent(12), Heard::Taken]);
        assert_eq!(read(&note, &[7; 16]), []);
        assert_eq!(read("", &[7; 16]), []);
        assert_eq!(read("ab 70000 -1 x taken", &[7; 16]), [Heard::Taken]);
    }
}
