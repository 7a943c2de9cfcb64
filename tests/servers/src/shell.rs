//! A cluster in the hands of whoever administers it: their shell, and a server that they stop and start by themselves.

use crate::cluster::Cluster;
use crate::programs;
use std::path::Path;

impl Cluster {
    /// From now on the data folder says all that a start needs, so that a plain `pg_ctl start` is the same server.
    pub fn stands_alone(&self) {
        let folder = self.folder().display();
        let settings = [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", self.port().to_string()),
            ("unix_socket_directories", folder.to_string()),
            ("hba_file", format!("{folder}/hba.conf")),
        ];
        for (name, value) in settings {
            self.execute(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        }
    }

    /// Runs commands as the user whom the server runs as, with its programs at hand and the variables that they know.
    /// A server that this starts ends with the cluster.
    pub fn shell(&self, folder: &Path, commands: &str) {
        let bin = programs::postgres("pg_ctl").parent().map(Path::to_owned).expect("a folder");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut bash = programs::command(Path::new("/bin/bash"));
        bash.args(["-euo", "pipefail", "-c", commands]).current_dir(folder);
        bash.env("PATH", path).env("PGDATA", self.data()).env("PGHOST", self.folder());
        bash.env("PGPORT", self.port().to_string()).env("PGUSER", "postgres");
        programs::run(&mut bash);
        self.adopt();
    }

    /// Who runs in the data folder now is the one to end.
    fn adopt(&self) {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(pid) = file.lines().next() {
            std::fs::write(self.folder().join("pid"), pid.trim()).expect("a pid file");
        }
    }
}
