//! How results and failures reach the user: tables or JSON on stdout, one message on stderr, an exit code.
//! It knows no command. Used by all of them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::Output;

/// Why a command ends with a code other than 0.
#[derive(Debug)]
pub enum Failure {
    /// 1: the work failed.
    Work(String),
    /// 2: what was asked for cannot be.
    Usage(String),
}

impl Failure {
    pub fn work(message: impl std::fmt::Display) -> Failure {
        Failure::Work(message.to_string())
    }

    pub fn usage(message: impl std::fmt::Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    pub fn code(&self) -> u8 {
        match self {
            Failure::Work(_) => 1,
            Failure::Usage(_) => 2,
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Failure::Work(message) | Failure::Usage(message) => message,
        }
    }
}

impl From<wf_client::ClientError> for Failure {
    fn from(error: wf_client::ClientError) -> Failure {
        match &error {
            wf_client::ClientError::Address { .. } => Failure::usage(error),
            _ => Failure::work(error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::work(error)
    }
}

pub type Done = Result<(), Failure>;

/// One answer: its JSON as it is, or rows under headings.
pub fn show<T: Serialize>(output: Output, value: &T, headings: &[&str], rows: Vec<Vec<String>>) -> Done {
    match output {
        Output::Json => print(&json(value)),
        Output::Table => print(&table(headings, rows)),
    }
}

pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

/// Columns of numbers stand to the right.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "(none)".to_owned();
    }
    let is_number = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || b"-.,%".contains(&byte));
    let numbers: Vec<bool> =
        (0..headings.len()).map(|column| rows.iter().all(|row| row.get(column).is_none_or(is_number))).collect();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(headings.to_vec());
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        let cells = row.into_iter().zip(&numbers).map(|(text, number)| {
            let side = if *number { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        });
        table.add_row(cells.collect::<Vec<_>>());
    }
    table.to_string()
}

/// A narrow terminal wraps cells, not lines; what goes into a pipe or a file keeps its natural width.
fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// A closed pipe (`wf jobs | head -1`) is no failure.
pub fn print(text: &str) -> Done {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// A word to the user beside the result. Nobody may be listening any more.
pub fn say(text: &str) {
    echo(&format!("wf: {text}"));
}

/// Somebody else's words, as they are.
pub fn echo(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// An absent value in a table.
pub fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

/// Long values would break a table's lines.
pub fn short(text: &str, chars_max: usize) -> String {
    let line = text.replace(['\n', '\r', '\t'], " ");
    match line.char_indices().nth(chars_max) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// `12,345.6`
pub fn grouped(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && digit.is_ascii_digit() && (whole.len() - index).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    if rest.is_empty() { out } else { format!("{out}.{rest}") }
}

/// Shown on a terminal only; silent in a pipe.
pub fn progress(steps: u64, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> =
            [(0.0, 0), (999.0, 0), (1000.0, 0), (1234567.89, 1), (-1234.0, 0)].map(|(n, d)| grouped(n, d)).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567.9", "-1,234"]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(short("äöü\nx", 2), "äö…");
        assert_eq!(short("äöü", 3), "äöü");
    }
}
