//! A private PostgreSQL server: made, started, killed, started again. One folder holds all of it (`data`, the socket, the
//! log), and one guard removes it. The address stays the same over restarts. Next: `backup.rs`, `process.rs`.

use crate::process::{self, Guard};
use crate::{certificate, client, database, ports, programs};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// How a cluster differs from the plain one: any local user without a password, no TLS, settings as PostgreSQL has them
/// (so a commit is on the disk when it is answered).
#[derive(Clone, Default)]
pub struct Options {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) tls: bool,
    pub(crate) password: Option<String>,
}

impl Options {
    /// A setting as in `postgresql.conf`.
    pub fn set(mut self, name: &str, value: &str) -> Options {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Connections over TCP must be encrypted. The certificate is self-signed: `Cluster::certificate`.
    pub fn tls(mut self) -> Options {
        self.tls = true;
        self
    }

    /// Connections over TCP must prove the superuser's password (SCRAM).
    pub fn password(mut self, password: &str) -> Options {
        self.password = Some(password.to_owned());
        self
    }

    pub fn start(self) -> Cluster {
        let cluster = Cluster::prepare(self, None);
        let mut initdb = programs::command(&programs::postgres("initdb"));
        initdb.arg("--pgdata").arg(&cluster.data).args(["--username=postgres", "--auth=trust", "--no-sync"]);
        programs::run(initdb.args(["--locale=C", "--encoding=UTF8", "--no-instructions"]));
        cluster.up();
        if let Some(password) = &cluster.options.password {
            cluster.execute(&format!("ALTER ROLE postgres PASSWORD '{password}'"));
        }
        cluster
    }

    /// On a data folder that exists, a base backup say. The folder is used as it is and left where it is.
    pub fn start_from(self, data: &Path) -> Cluster {
        let cluster = Cluster::prepare(self, Some(data));
        cluster.up();
        cluster
    }
}

/// What keeps a server from starting for a moment.
const PASSING: [&str; 3] = ["shared memory block", "Address already in use", "is another postmaster"];

pub struct Cluster {
    folder: PathBuf,
    data: PathBuf,
    port: u16,
    options: Options,
    server: Mutex<Option<Child>>,
    certificate: Option<String>,
    /// Last: it removes the folder.
    _guard: Guard,
}

impl Cluster {
    pub fn start() -> Cluster {
        Options::default().start()
    }

    pub fn start_from(data: &Path) -> Cluster {
        Options::default().start_from(data)
    }

    fn prepare(options: Options, data: Option<&Path>) -> Cluster {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder").keep();
        let guard = Guard::over(&folder);
        programs::hand_over(&folder);
        let certificate = options.tls.then(|| certificate::write(&folder));
        fs::write(folder.join("hba.conf"), access(&options)).expect("access rules");
        let data = data.map_or_else(|| folder.join("data"), Path::to_owned);
        Cluster { folder, data, port: ports::free(), options, server: Mutex::default(), certificate, _guard: guard }
    }

    /// `HOST:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The superuser's URL of a database.
    pub fn url(&self, database: &str) -> String {
        database::url_of(&self.base_url(), database)
    }

    pub(crate) fn base_url(&self) -> String {
        let password = self.options.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        let query = if self.options.tls { "?sslmode=require" } else { "" };
        format!("postgres://postgres{password}@{}{query}", self.address())
    }

    /// Of an empty database, or of a copy of another one; it lives as long as the cluster.
    pub fn create_database(&self, template: Option<&str>) -> String {
        let name = client::unique("t");
        self.execute(&format!("CREATE DATABASE {name} TEMPLATE {}", template.unwrap_or("template0")));
        self.url(&name)
    }

    /// In the database `postgres`, around passwords and TLS. The rows of all statements as text; a NULL is an empty text.
    pub fn execute(&self, sql: &str) -> Vec<Vec<String>> {
        self.execute_in("postgres", sql)
    }

    pub fn execute_in(&self, database: &str, sql: &str) -> Vec<Vec<String>> {
        client::execute(&self.local(database), sql)
    }

    pub fn pid(&self) -> Option<u32> {
        self.server().as_ref().map(Child::id)
    }

    /// All processes at once, as when the power goes; but what the system has in its cache still reaches the disk.
    pub fn kill9(&self) {
        self.end_with(|pid| {
            let children = process::children(pid);
            process::signal(pid, Signal::KILL);
            children.into_iter().for_each(|child| process::signal(child, Signal::KILL));
        });
    }

    /// Ends sessions and writes a checkpoint.
    pub fn stop_fast(&self) {
        self.end_with(|pid| process::signal(pid, Signal::INT));
    }

    /// After `kill9` or `stop_fast`, or of a running one. Answers when the server does.
    pub fn restart(&self) {
        self.stop_fast();
        self.up();
    }

    /// Nothing moves, connections stay open: a machine that hangs.
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    /// What the clients of a cluster with TLS may trust, as PEM.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// What the server said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// A folder that the server may write to, an archive say, removed with the cluster.
    pub fn writable_folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        programs::own_folder(&folder);
        folder
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    fn local(&self, database: &str) -> String {
        format!("host={} port={} user=postgres dbname={database}", self.folder.display(), self.port)
    }

    /// A server that was killed may leave memory to backends that are about to notice: that start is tried again.
    fn up(&self) {
        let mut server = self.server();
        let what = || format!("PostgreSQL does not start:\n{}", self.log());
        *server = Some(process::until(&what, || {
            let logged = self.log().len();
            let mut child = self.spawn();
            let is_up = process::until(&what, || match child.try_wait().expect("a child's state") {
                Some(_) => Some(false),
                None => client::try_execute(&self.local("postgres"), "SELECT 1").ok().map(|_| true),
            });
            assert!(is_up || PASSING.iter().any(|words| self.log()[logged..].contains(words)), "{}", what());
            is_up.then_some(child)
        }));
    }

    fn spawn(&self) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log")).expect("a log");
        let mut command = programs::command(&programs::postgres("postgres"));
        command.arg("-D").arg(&self.data).arg("-k").arg(&self.folder).args(["-p", &self.port.to_string()]);
        for (name, value) in self.settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("PostgreSQL starts");
        fs::write(self.folder.join("pid"), child.id().to_string()).expect("a pid file");
        child
    }

    fn settings(&self) -> Vec<(String, String)> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        // Compiling queries needs a library of 100 MB and helps none of ours.
        let fixed =
            [("listen_addresses", "127.0.0.1".to_owned()), ("jit", "off".to_owned()), ("hba_file", file("hba.conf"))];
        let files =
            [("ssl_cert_file", file("server.crt")), ("ssl_key_file", file("server.key")), ("ssl", "on".to_owned())];
        let files = files.into_iter().filter(|_| self.options.tls);
        let all = fixed.into_iter().chain(files).map(|(name, value)| (name.to_owned(), value));
        all.chain(self.options.settings.clone()).collect()
    }

    fn end_with(&self, signal: impl FnOnce(u32)) {
        let Some(mut child) = self.server().take() else { return };
        signal(child.id());
        let _ = child.wait();
        // Another one may have taken its place: `shell.rs`.
        let file = self.folder.join("pid");
        if fs::read_to_string(&file).is_ok_and(|pid| pid.trim() == child.id().to_string()) {
            let _ = fs::remove_file(file);
        }
    }

    fn signal_all(&self, signal: Signal) {
        let Some(pid) = self.pid() else { return };
        let children = process::children(pid);
        [pid].into_iter().chain(children).for_each(|pid| process::signal(pid, signal));
    }

    /// A test that panicked meanwhile must still end its server.
    fn server(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.resume();
        self.end_with(|pid| process::signal(pid, Signal::QUIT));
    }
}

/// The socket lies in a folder that only we can enter.
fn access(options: &Options) -> String {
    let kind = if options.tls { "hostssl" } else { "host" };
    let method = if options.password.is_some() { "scram-sha-256" } else { "trust" };
    let over_tcp = |database: &str| format!("{kind} {database} all 127.0.0.1/32 {method}\n");
    format!("local all all trust\nlocal replication all trust\n{}{}", over_tcp("all"), over_tcp("replication"))
}

/// For programs that talk to the server over its socket.
pub(crate) fn over_socket(cluster: &Cluster, program: &str) -> Command {
    let mut command = programs::command(&programs::postgres(program));
    command.arg("--host").arg(cluster.folder()).args(["--port", &cluster.port().to_string(), "--username=postgres"]);
    command
}
