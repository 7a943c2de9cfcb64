//! A node of the real binary: a folder of its own, started on it, killed, stopped and started again.
//! Knows the one line that a node prints when it listens. Next: the tests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::api::Api;
use crate::{Process, wf_binary};

/// How nodes on one store are started. Clones share the store.
#[derive(Clone, Debug)]
pub struct Setup {
    pub folder: Arc<TempDir>,
    /// Below the folder.
    data: &'static str,
    config: String,
    env: Vec<(String, String)>,
    flags: Vec<String>,
    listen: String,
    binary: PathBuf,
    /// What starts the binary, where it is not the test itself: `setpriv …`.
    before: Vec<String>,
}

/// A running node. Dropped, it is killed.
#[derive(Debug)]
pub struct Node {
    pub process: Process,
    pub api: Api,
    /// `http://127.0.0.1:PORT`
    pub url: String,
}

/// How a process came to its end, and what it said.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup::new()
    }
}

impl Setup {
    pub fn new() -> Setup {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let (listen, binary) = ("127.0.0.1:0".to_owned(), wf_binary());
        Setup {
            folder,
            data: "wf-data",
            config: String::new(),
            env: vec![],
            flags: vec![],
            listen,
            binary,
            before: vec![],
        }
    }

    /// The store lies there, below the folder.
    pub fn data_in(mut self, path: &'static str) -> Setup {
        self.data = path;
        self
    }

    /// More lines of `wf.toml`.
    pub fn config(mut self, lines: &str) -> Setup {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Setup {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (&**name, &**value))
    }

    pub fn flag(mut self, flag: &str) -> Setup {
        self.flags.push(flag.to_owned());
        self
    }

    /// Instead of a free port of this machine's own address.
    pub fn listen(mut self, address: &str) -> Setup {
        self.listen = address.to_owned();
        self
    }

    /// A copy of the binary in another place.
    pub fn binary(mut self, path: &Path) -> Setup {
        self.binary = path.to_owned();
        self
    }

    pub fn test_clock(self) -> Setup {
        self.flag("--test-clock")
    }

    pub fn before(mut self, words: &[&str]) -> Setup {
        self.before = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join(self.data)
    }

    pub fn database(&self) -> PathBuf {
        self.data().join("wf.db")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What all nodes on this store have written to stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The folder stays when everybody has let go of it: somebody has to look at it.
    pub fn keep(&self) -> PathBuf {
        std::mem::forget(self.folder.clone());
        self.folder.path().to_owned()
    }

    /// Listens when this returns.
    #[track_caller]
    pub fn start(&self) -> Node {
        self.try_start().unwrap_or_else(|ended| panic!("the node did not start: {ended:?}"))
    }

    /// Dies at the first hit of this failpoint after it listens. What a start itself hits is found by trying.
    #[track_caller]
    pub fn start_armed(&self, failpoint: &str) -> Node {
        self.start_armed_later(failpoint, 0)
    }

    /// At the first hit after so many others.
    #[track_caller]
    pub fn start_armed_later(&self, failpoint: &str, later: usize) -> Node {
        let armed = |hit: usize| self.clone().env("WF_FAILPOINT", &format!("{failpoint}:{hit}"));
        let first = (1..=20).find(|hit| armed(*hit).try_start().is_ok());
        let first = first.unwrap_or_else(|| panic!("{failpoint} is hit again and again before a node listens"));
        armed(first + later).start()
    }

    pub fn try_start(&self) -> Result<Node, Ended> {
        std::fs::write(self.folder.path().join("wf.toml"), &self.config).expect("wf.toml");
        let said_before = self.log().len();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).expect("the log");
        let mut process = Process::start(self.command().stdout(Stdio::piped()).stderr(log));
        let mut stdout = BufReader::new(process.stdout().expect("a pipe"));
        match read_until(&mut stdout, READY) {
            Ok(said) => Ok(Node::at(process, &said)),
            Err(stdout) => {
                let stderr = self.log().split_off(said_before);
                Err(Ended { status: process.ends(), stdout, stderr })
            }
        }
    }

    fn command(&self) -> Command {
        let folder = self.folder.path();
        let mut command = match self.before.split_first() {
            None => clean(Command::new(&self.binary)),
            Some((program, words)) => {
                let mut command = clean(Command::new(program));
                command.args(words).arg(&self.binary);
                command
            }
        };
        command.arg("server").args(["--listen", &self.listen, "--config", "wf.toml", "--data"]).arg(self.data());
        command.args(&self.flags).envs(self.env.iter().map(|(name, value)| (name, value))).current_dir(folder);
        command
    }
}

const READY: &str = "listening on ";

/// What was said up to the end of the first line with this text; an error where no such line came.
pub fn read_until(stdout: &mut impl BufRead, text: &str) -> Result<String, String> {
    let mut said = String::new();
    loop {
        let start = said.len();
        let is_over = stdout.read_line(&mut said).map_or(true, |len| len == 0);
        if said[start..].contains(text) {
            return Ok(said);
        }
        if is_over {
            return Err(said);
        }
    }
}

impl Node {
    /// `said` ends with the line in which the node names its address.
    pub fn at(process: Process, said: &str) -> Node {
        let (_, url) = said.rsplit_once(READY).expect("the ready line");
        let url = url.trim().to_owned();
        Node { process, api: Api::at(&url), url }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// SIGTERM, and the end that comes of it.
    pub fn stop(mut self) -> ExitStatus {
        self.process.signal("TERM");
        self.process.ends()
    }

    /// Waits until it has ended by itself: at a failpoint.
    pub fn dies(mut self) {
        let status = self.process.ends();
        assert!(!status.success(), "it ended in peace: {status}");
    }

    /// A client command against this node.
    pub fn wf(&self, args: &[&str]) -> Command {
        let mut command = wf();
        command.args(args).env("WF_SERVER", &self.url);
        command
    }
}

/// The binary, in an environment that configures nothing.
pub fn wf() -> Command {
    clean(Command::new(wf_binary()))
}

fn clean(mut command: Command) -> Command {
    let ours = std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("WF_") || name == "RUST_LOG");
    ours.for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Runs it to its end.
pub fn run(command: &mut Command) -> Ended {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ended { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

impl Ended {
    /// Fails with what it said unless it ended with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }
}
