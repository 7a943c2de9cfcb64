//! PgBouncer before a cluster, in transaction mode: a session's next transaction may run on another connection, so
//! prepared statements, session settings and session locks do not hold.

use crate::client;
use crate::cluster::Cluster;
use crate::process::{self, Guard};
use crate::{database, ports, programs};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

pub struct PgBouncer {
    folder: PathBuf,
    port: u16,
    base_url: String,
    child: Child,
    _guard: Guard,
}

impl PgBouncer {
    pub fn start(cluster: &Cluster) -> PgBouncer {
        let folder = tempfile::Builder::new().prefix("bouncer").tempdir().expect("a folder").keep();
        let guard = Guard::over(&folder);
        programs::hand_over(&folder);
        let port = ports::free();
        let password = cluster.options().password.clone().unwrap_or_default();
        fs::write(folder.join("users"), format!("\"postgres\" \"{password}\"\n")).expect("a user");
        fs::write(folder.join("ini"), configuration(cluster, port, &folder.display().to_string())).expect("a file");
        let mut command = programs::command(&programs::pgbouncer());
        let log = fs::File::create(folder.join("log")).expect("a log");
        let child =
            command.arg(folder.join("ini")).stdout(Stdio::null()).stderr(log).spawn().expect("PgBouncer starts");
        fs::write(folder.join("pid"), child.id().to_string()).expect("a pid file");
        let colon = if password.is_empty() { "" } else { ":" };
        let base_url = format!("postgres://postgres{colon}{password}@127.0.0.1:{port}");
        let mut bouncer = PgBouncer { folder, port, base_url, child, _guard: guard };
        bouncer.wait();
        bouncer
    }

    /// `HOST:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self, database: &str) -> String {
        database::url_of(&self.base_url, database)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn wait(&mut self) {
        let (url, folder) = (self.url("postgres"), self.folder.clone());
        let what =
            || format!("PgBouncer does not start: {}", fs::read_to_string(folder.join("log")).unwrap_or_default());
        process::until(&what, || {
            let ended = self.child.try_wait().expect("a child's state");
            assert!(ended.is_none(), "{}", what());
            client::try_execute(&url, "SELECT 1").ok()
        });
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        process::signal(self.child.id(), Signal::QUIT);
        let _ = self.child.wait();
        let _ = fs::remove_file(self.folder.join("pid"));
    }
}

fn configuration(cluster: &Cluster, port: u16, folder: &str) -> String {
    let options = cluster.options();
    let login = if options.password.is_some() { "scram-sha-256" } else { "trust" };
    let tls = if options.tls { "require" } else { "disable" };
    format!(
        "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir = {folder}\nauth_type = {login}\nauth_file = {folder}/users\nserver_tls_sslmode = {tls}\n\
         pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 20\n\
         ignore_startup_parameters = extra_float_digits\n",
        cluster.port()
    )
}
