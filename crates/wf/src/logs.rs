//! Logs on stderr: for people as text, for machines as JSON; `RUST_LOG` chooses what is said.
//! Stdout belongs to results alone.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

pub fn init(format: LogFormat, default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second initialisation in one process changes nothing.
    let _ = match format {
        LogFormat::Json => logs.json().flatten_event(true).with_current_span(true).try_init(),
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
    };
}
