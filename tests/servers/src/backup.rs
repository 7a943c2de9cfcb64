//! A base backup: a copy of a running cluster, which starts as a cluster of its own.

use crate::cluster::{Cluster, over_socket};
use crate::programs;
use std::path::Path;

impl Cluster {
    /// Into a folder that does not exist yet, or is empty. It holds the log up to its end, so it starts alone.
    pub fn basebackup(&self, into: &Path) {
        programs::own_folder(into);
        let mut backup = over_socket(self, "pg_basebackup");
        programs::run(backup.arg("--pgdata").arg(into).args(["--checkpoint=fast", "--wal-method=stream", "--no-sync"]));
    }
}
