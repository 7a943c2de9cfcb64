//! What end-to-end tests share: the programs under test, started on private ports and in folders of their own.
//! It promises nothing about what they answer; that stands in the tests. Next: `node.rs` starts the binary, `api.rs` and
//! `http.rs` speak to it, `nats.rs` and `stream.rs` are a broker of one's own, `provider.rs` a payment provider, `receiver.rs`
//! a webhook's other end, `proxy.rs` a bad line between a client and a node, `models.rs` what is deployed; `crash.rs` is the
//! crash matrix, `power.rs` takes the power away.

pub mod api;
pub mod crash;
pub mod database;
pub mod http;
pub mod models;
pub mod nats;
pub mod node;
pub mod power;
pub mod provider;
pub mod proxy;
pub mod receiver;
pub mod stream;

use std::io::Read;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to answer for the first time. Far above what it needs: a busy machine is no failure.
const START_MAX: Duration = Duration::from_secs(30);
/// The same for everything else that is waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The release build of `wf`, as users get it.
pub fn wf_binary() -> PathBuf {
    program("WF_BINARY")
}

/// A missing program fails the test that needs it and is named; no test is skipped.
fn program(variable: &str) -> PathBuf {
    match std::env::var_os(variable).map(PathBuf::from) {
        Some(path) if path.is_file() => path,
        Some(path) => panic!("{variable} names {}, which is no file; run `cargo xtask test`", path.display()),
        None => panic!("{variable} is not set: run the end-to-end tests by `cargo xtask test`"),
    }
}

/// What the variable names, else the installed one: Debian keeps servers out of every user's PATH.
fn installed(variable: &str, name: &str) -> PathBuf {
    if std::env::var_os(variable).is_some() {
        return program(variable);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = places.map(|place| place.join(name)).find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: install it, or set {variable} to its path"))
}

/// A program that ends with its owner: killed by its id, without a word.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let shown = format!("{command:?}");
        let child = command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        Process { child }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its output, where that goes into a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// A signal by its name, without `SIG`.
    pub fn signal(&self, name: &str) {
        // The shell's own: not every machine has it as a program.
        let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.id())).status();
        assert!(status.is_ok_and(|status| status.success()), "SIG{name} was not sent");
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub fn ends(&mut self) -> ExitStatus {
        until("the end of the process", || self.child.try_wait().ok().flatten())
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks again and again until there is an answer; fails at once when the program has ended.
    pub fn wait_for<T>(&mut self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("ended ({status}) before {what}");
            }
            assert!(start.elapsed() < START_MAX, "no {what} within {START_MAX:?}");
            pause();
        }
    }
}

/// Asks until there is an answer. The limit only keeps a test that waits in vain from hanging.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < WAIT_MAX, "no {what} within {WAIT_MAX:?}");
        pause();
    }
}

/// A panic elsewhere is reported there.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same figures in every run (xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Neighbouring seeds begin far apart.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The upper bits: the lowest ones repeat too soon.
        (self.0 >> 16) % bound.max(1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Between two questions, not instead of one.
pub fn pause() {
    std::thread::park_timeout(Duration::from_millis(10));
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first bytes a server says by itself, if it listens.
fn greeting(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut bytes = [0; 64];
    let len = stream.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
}
