//! A node of the real binary: a folder of its own and a store, started on them, killed, stopped and started again. Which
//! store that is, no case asks. Knows the one line that a node prints when it listens. Next: the tests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::api::Api;
use crate::database::Database;
use crate::{Process, wf_binary};

/// How nodes on one store are started. Clones share the store.
#[derive(Clone, Debug)]
pub struct Setup {
    pub folder: Arc<TempDir>,
    store: Store,
    /// Where several nodes share the store: one that comes back under its name takes its own back at once.
    name: String,
    /// Below the folder.
    data: String,
    config: String,
    env: Vec<(String, String)>,
    flags: Vec<String>,
    listen: String,
    binary: PathBuf,
    /// What starts the binary, where it is not the test itself: `setpriv …`.
    before: Vec<String>,
}

#[derive(Clone)]
enum Store {
    Sqlite,
    /// By its URL; the database goes with its last user.
    Postgres(String, #[expect(dead_code, reason = "kept, not used")] Option<Arc<servers::Database>>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Store::Sqlite => f.write_str("SQLite"),
            Store::Postgres(url, _) => f.write_str(url),
        }
    }
}

/// A running node. Dropped, it is killed.
#[derive(Debug)]
pub struct Node {
    pub process: Process,
    pub api: Api,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    /// The store outlives the node, whoever let go of it before.
    _setup: Option<Setup>,
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
    /// On SQLite.
    pub fn new() -> Setup {
        Setup::on(Store::Sqlite)
    }

    /// On a fresh database of PostgreSQL.
    pub fn postgres() -> Setup {
        let database = Arc::new(servers::Database::create());
        Setup::on(Store::Postgres(database.url().to_owned(), Some(database)))
    }

    /// On that database.
    pub fn at(url: &str) -> Setup {
        Setup::on(Store::Postgres(url.to_owned(), None))
    }

    fn on(store: Store) -> Setup {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let (listen, binary) = ("127.0.0.1:0".to_owned(), wf_binary());
        Setup {
            folder,
            store,
            name: "one".to_owned(),
            data: "wf-data".to_owned(),
            config: String::new(),
            env: vec![],
            flags: vec![],
            listen,
            binary,
            before: vec![],
        }
    }

    /// What the node keeps in files lies there, below the folder.
    pub fn data_in(mut self, path: &str) -> Setup {
        self.data = path.to_owned();
        self
    }

    /// Another node on the same store: its name, its files.
    pub fn named(mut self, name: &str) -> Setup {
        self.data = format!("wf-data-{name}");
        self.name = name.to_owned();
        self
    }

    /// The same database by another way: through a bad line, say.
    pub fn by(mut self, url: &str) -> Setup {
        let Store::Postgres(own, _) = &mut self.store else { panic!("SQLite has no URL") };
        *own = url.to_owned();
        self
    }

    /// Where other nodes would reach it.
    pub fn advertise(self, url: &str) -> Setup {
        if self.has_nodes() { self.flag("--advertise").flag(url) } else { self }
    }

    /// What counts hits of failpoints, or asks for an order that holds in one partition, has one. SQLite always has.
    pub fn one_partition(self) -> Setup {
        match self.store {
            Store::Sqlite => self,
            Store::Postgres(..) => self.config("[postgres]\npartitions = 1"),
        }
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
        self.folder.path().join(&self.data)
    }

    /// SQLite's.
    pub fn file(&self) -> PathBuf {
        self.data().join("wf.db")
    }

    pub fn database(&self) -> Database {
        match &self.store {
            Store::Sqlite => Database::File(self.file()),
            Store::Postgres(url, _) => Database::Server(url.clone()),
        }
    }

    /// What tells another command of the binary where the store is.
    pub fn store_words(&self) -> Vec<String> {
        match &self.store {
            Store::Sqlite => vec!["--data".to_owned(), self.data().to_string_lossy().into_owned()],
            Store::Postgres(url, _) => vec!["--store".to_owned(), url.clone()],
        }
    }

    pub fn has_nodes(&self) -> bool {
        matches!(self.store, Store::Postgres(..))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What all nodes on this store have written to stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The folder stays when everybody has let go of it: somebody has to look at it. A database goes with its server, so its
    /// logs are written down.
    pub fn keep(&self) -> PathBuf {
        std::mem::forget(self.folder.clone());
        if self.has_nodes() {
            for table in ["partition", "command_log", "audit_log"] {
                let rows = self.database().try_rows(&format!("SELECT * FROM {table} ORDER BY 1, 2"));
                let lines: Vec<String> = rows.unwrap_or_default().iter().map(|row| row.join("\t")).collect();
                let _ = std::fs::write(self.folder.path().join(table), lines.join("\n"));
            }
        }
        self.folder.path().to_owned()
    }

    /// Listens when this returns.
    #[track_caller]
    pub fn start(&self) -> Node {
        self.try_start().unwrap_or_else(|ended| panic!("the node did not start: {ended:?}"))
    }

    /// Dies at the first hit of this failpoint after it is ready.
    #[track_caller]
    pub fn start_armed(&self, failpoint: &str) -> Node {
        self.start_armed_later(failpoint, 0)
    }

    /// At the first hit after so many others.
    #[track_caller]
    pub fn start_armed_later(&self, failpoint: &str, later: usize) -> Node {
        self.clone().env("WF_FAILPOINT", &format!("{failpoint}:+{}", 1 + later)).start()
    }

    pub fn try_start(&self) -> Result<Node, Ended> {
        let config = self.folder.path().join(self.config_name());
        std::fs::write(config, &self.config).expect("wf.toml");
        let said_before = self.log().len();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).expect("the log");
        let mut process = Process::start(self.command().stdout(Stdio::piped()).stderr(log));
        let mut stdout = BufReader::new(process.stdout().expect("a pipe"));
        match read_until(&mut stdout, READY) {
            Ok(said) => Ok(Node { _setup: Some(self.clone()), ..Node::at(process, &said) }),
            Err(stdout) => {
                let stderr = self.log().split_off(said_before);
                Err(Ended { status: process.ends(), stdout, stderr })
            }
        }
    }

    /// Nodes that share a folder may be told different things.
    fn config_name(&self) -> String {
        if self.name == "one" { "wf.toml".to_owned() } else { format!("wf-{}.toml", self.name) }
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
        command
            .arg("server")
            .args(["--listen", &self.listen, "--config", &self.config_name(), "--data"])
            .arg(self.data());
        if let Store::Postgres(url, _) = &self.store {
            command.args(["--store", url, "--node-name", &self.name]);
        }
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
        Node { process, api: Api::at(&url), url, _setup: None }
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
