//! Logs on stderr: for people as text, for machines as JSON; `RUST_LOG` chooses what is said.
//! Stdout belongs to results alone.

use std::io::IsTerminal;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Lines that may wait for a slow reader of stderr; more are dropped rather than holding up requests.
const LINES_MAX: usize = 64 * 1024;

/// These say at `debug` what a statement carries: keys, tokens, variables.
const QUIET: [&str; 1] = ["tokio_postgres=info"];

/// Lines are written by a thread of their own until the guard is dropped, which writes what is left.
pub fn init(format: LogFormat, default: &str) -> WorkerGuard {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let filter = QUIET.iter().fold(filter, |filter, quiet| match quiet.parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    });
    let builder = NonBlockingBuilder::default().buffered_lines_limit(LINES_MAX).thread_name("wf-logs");
    let (writer, guard): (NonBlocking, _) = builder.finish(std::io::stderr());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    // A second initialisation in one process changes nothing.
    let _ = match format {
        LogFormat::Json => logs.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
    guard
}
