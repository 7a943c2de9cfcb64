//! A line between a client and a server that a test can cut, at once or exactly there where it hurts: after a request
//! has reached the server and before its answer has reached the client. It knows no protocol, only bytes; so it sees
//! nothing inside TLS. Next: the tests.

use crate::process::PATIENCE;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Pass,
    /// Takes what comes and delivers it when the line passes again: a network that is gone without a word.
    BlackHole,
    /// Ends each new connection; those that stand go on.
    Refuse,
}

pub struct Proxy {
    /// `HOST:PORT`
    pub address: String,
    server: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    line: Line,
    trap: Option<Trap>,
    open: Vec<Pair>,
    accepted: usize,
    /// Those up to this number hang.
    hanging: usize,
    trapped: usize,
    is_over: bool,
}

/// A cut that waits for its moment. It falls once, on the connection that brings it.
struct Trap {
    request: Vec<u8>,
    /// Of the server, at which the line is cut; an empty one is in every answer.
    answer: Vec<u8>,
    is_before: bool,
}

struct Pair {
    id: usize,
    client: TcpStream,
    server: TcpStream,
    /// The request has been seen: the line is cut at this answer.
    doom: Option<Vec<u8>>,
}

impl Proxy {
    /// To `HOST:PORT`.
    pub fn to(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = State {
            line: Line::Pass,
            trap: None,
            open: Vec::new(),
            accepted: 0,
            hanging: 0,
            trapped: 0,
            is_over: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (target, accepting) = (server.to_owned(), shared.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.state().is_over {
                    break;
                }
                accepting.accept(client, &target);
            }
        });
        Proxy { address, server: server.to_owned(), shared }
    }

    /// A URL of the server as one that leads through here.
    pub fn through(&self, url: &str) -> String {
        assert!(url.contains(&self.server), "{url} does not lead to {}", self.server);
        url.replacen(&self.server, &self.address, 1)
    }

    pub fn set(&self, line: Line) {
        self.shared.state().line = line;
        self.shared.changed.notify_all();
    }

    /// Nothing passes any more on the connections that stand now. New ones are not touched.
    pub fn hang(&self) {
        let mut state = self.shared.state();
        state.hanging = state.accepted;
    }

    /// All connections that stand, now.
    pub fn cut(&self) {
        self.shared.state().open.iter().for_each(Pair::close);
        self.shared.changed.notify_all();
    }

    /// The next request that contains these bytes reaches the server; its answer reaches nobody. With `COMMIT`: done, and
    /// the client does not know.
    pub fn cut_after(&self, request: &[u8]) {
        self.cut_at_answer(request, b"");
    }

    /// The same at the first answer with these bytes, for requests whose answer comes behind others'.
    pub fn cut_at_answer(&self, request: &[u8], answer: &[u8]) {
        self.lay(Trap { request: request.into(), answer: answer.into(), is_before: false });
    }

    /// The next request that contains these bytes does not reach the server. With `COMMIT`: not done, and the client does
    /// not know.
    pub fn cut_before(&self, request: &[u8]) {
        self.lay(Trap { request: request.into(), answer: Vec::new(), is_before: true });
    }

    fn lay(&self, trap: Trap) {
        self.shared.state().trap = Some(trap);
    }

    /// How often a laid cut has fallen.
    pub fn trapped(&self) -> usize {
        self.shared.state().trapped
    }

    /// Returns when so many laid cuts have fallen.
    pub fn wait_for_trapped(&self, count: usize) {
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, |state| state.trapped < count);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.trapped >= count, "only {} of {count} cuts have fallen", state.trapped);
    }

    pub fn accepted(&self) -> usize {
        self.shared.state().accepted
    }

    pub fn open(&self) -> usize {
        self.shared.state().open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.cut();
        // Wakes the thread that accepts, which then sees that it is over.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, client: TcpStream, target: &str) {
        let mut state = self.state();
        state.accepted += 1;
        if state.line == Line::Refuse {
            return;
        }
        let Ok(server) = TcpStream::connect(target) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let twice = || (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
        let (mine, up, down) = (twice(), twice(), twice());
        let id = state.accepted;
        state.open.push(Pair { id, client: mine.0, server: mine.1, doom: None });
        let (shared, also) = (self.clone(), self.clone());
        thread::spawn(move || shared.requests(id, up.0, up.1));
        thread::spawn(move || also.answers(id, down.1, down.0));
    }

    fn requests(&self, id: usize, mut client: TcpStream, mut server: TcpStream) {
        // What may be the beginning of a trap's bytes.
        let mut seen = Vec::new();
        let mut chunk = [0; 16 * 1024];
        while let Ok(len @ 1..) = client.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..len]);
            let is_last = self.spring(id, &mut seen);
            if is_last || !self.passes(id) || server.write_all(&chunk[..len]).is_err() {
                break;
            }
        }
        if self.is_doomed(id) {
            // The client gave up before its answer: the server still gives one, and that is where the line is cut.
            let _ = server.shutdown(Shutdown::Write);
        } else {
            self.close(id);
        }
    }

    fn answers(&self, id: usize, mut server: TcpStream, mut client: TcpStream) {
        let mut seen = Vec::new();
        let mut chunk = [0; 16 * 1024];
        while let Ok(len @ 1..) = server.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..len]);
            let doom = self.state().doom_of(id);
            if doom.as_ref().is_some_and(|answer| contains(&seen, answer)) {
                self.fall();
                break;
            }
            keep_tail(&mut seen, doom.map_or(0, |answer| answer.len()));
            if !self.passes(id) || client.write_all(&chunk[..len]).is_err() {
                break;
            }
        }
        self.close(id);
    }

    /// Is this the request that a trap waits for? Then the connection is doomed, or, where the request must not arrive,
    /// over.
    fn spring(&self, id: usize, seen: &mut Vec<u8>) -> bool {
        let mut state = self.state();
        let Some(trap) = state.trap.take_if(|trap| contains(seen, &trap.request)) else {
            keep_tail(seen, state.trap.as_ref().map_or(0, |trap| trap.request.len()));
            return false;
        };
        seen.clear();
        if trap.is_before {
            drop(state);
            self.fall();
            return true;
        }
        state.open.iter_mut().filter(|pair| pair.id == id).for_each(|pair| pair.doom = Some(trap.answer.clone()));
        false
    }

    /// Waits while the line is a black hole, or this one hangs. False: the connection is gone.
    fn passes(&self, id: usize) -> bool {
        let is_held = |state: &State| state.line == Line::BlackHole || id <= state.hanging;
        let holds = |state: &mut State| is_held(state) && !state.is_over && state.has(id);
        let state = self.changed.wait_while(self.state(), holds).unwrap_or_else(PoisonError::into_inner);
        state.has(id) && !state.is_over
    }

    fn is_doomed(&self, id: usize) -> bool {
        self.state().doom_of(id).is_some()
    }

    fn fall(&self) {
        self.state().trapped += 1;
        self.changed.notify_all();
    }

    fn close(&self, id: usize) {
        let mut state = self.state();
        state.open.iter().filter(|pair| pair.id == id).for_each(Pair::close);
        state.open.retain(|pair| pair.id != id);
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has(&self, id: usize) -> bool {
        self.open.iter().any(|pair| pair.id == id)
    }

    fn doom_of(&self, id: usize) -> Option<Vec<u8>> {
        self.open.iter().find(|pair| pair.id == id)?.doom.clone()
    }
}

impl Pair {
    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

/// So much as can be the beginning of what is looked for.
fn keep_tail(seen: &mut Vec<u8>, len: usize) {
    seen.drain(..seen.len().saturating_sub(len.saturating_sub(1)));
}
