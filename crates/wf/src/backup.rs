//! `wf backup` and `wf restore`: the store's file, without a server. What a restore means: docs/operations.md.
//! The work is the store's: `wf_store_sqlite::backup`.

use std::path::{Path, PathBuf};

use serde_json::json;
use wf_core::text::rfc3339;
use wf_store_sqlite::{Contents, PAUSED_FILE};

use crate::cli::{BackupArgs, NodeArgs, Output, RestoreArgs, StoreArgs};
use crate::config;
use crate::node::now_ms;
use crate::output::{self, Done, Failure};

pub fn backup(args: &BackupArgs) -> Done {
    let data = folder(&args.store)?;
    let contents = wf_store_sqlite::backup(&data, &args.to).map_err(failed)?;
    show(args.store.output, &args.to, &contents)
}

pub fn restore(args: &RestoreArgs) -> Done {
    let data = folder(&args.store)?;
    let contents = wf_store_sqlite::restore(&args.from, &data).map_err(failed)?;
    if now_ms() < contents.last_time {
        // Ids are lifted by the clock.
        output::say("warning: this machine's clock is behind the backup's last command; set it right before you start");
    }
    output::say(&format!("nothing is shipped until you remove {}", data.join(PAUSED_FILE).display()));
    show(args.store.output, &data, &contents)
}

/// Where the server would look for it.
fn folder(store: &StoreArgs) -> Result<PathBuf, Failure> {
    let args = NodeArgs { data: store.data.clone(), config: store.config.clone(), ..NodeArgs::default() };
    Ok(config::load(&args).map_err(Failure::usage)?.data)
}

fn failed(error: wf_store_sqlite::CopyError) -> Failure {
    Failure::work(format!("failed to {error}"))
}

fn show(output: Output, path: &Path, contents: &Contents) -> Done {
    let last_command_at = rfc3339(contents.last_time);
    let value = json!({
        "path": path,
        "lastPosition": contents.last_position.to_string(),
        "lastCommandAt": last_command_at,
        "unshipped": contents.unshipped,
        "bytes": contents.bytes,
        "schema": contents.schema,
    });
    let numbers = [contents.last_position.to_string(), contents.unshipped.to_string(), contents.bytes.to_string()];
    let [last_position, unshipped, bytes] = numbers;
    let row = vec![path.display().to_string(), last_command_at, last_position, unshipped, bytes];
    output::show(output, &value, &["written", "last command", "last position", "not shipped", "bytes"], vec![row])
}
