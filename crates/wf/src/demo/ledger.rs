//! What the demo did, layer by layer, and whether each figure is what it must be.
//! It knows no engine: the scenes hand it lines.

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::cli::Output;
use crate::output;

/// Lines that the story has; for the progress bar only.
const LINES: u64 = 15;

pub struct Ledger {
    lines: Vec<Line>,
    bar: ProgressBar,
}

/// One thing that was sent, what came of it, and what was kept from happening.
pub struct Line {
    layer: &'static str,
    sent: String,
    happened: String,
    suppressed: String,
    checks: Vec<Check>,
}

struct Check {
    what: &'static str,
    expected: String,
    found: String,
}

impl Check {
    fn is_right(&self) -> bool {
        self.expected == self.found
    }
}

impl Line {
    pub fn new(layer: &'static str, sent: impl Into<String>) -> Line {
        let (happened, suppressed) = (String::new(), "-".to_owned());
        Line { layer, sent: sent.into(), happened, suppressed, checks: Vec::new() }
    }

    pub fn check<T: std::fmt::Display, U: std::fmt::Display>(
        mut self,
        what: &'static str,
        expected: T,
        found: U,
    ) -> Line {
        self.checks.push(Check { what, expected: expected.to_string(), found: found.to_string() });
        self
    }

    pub fn happened(mut self, text: impl Into<String>) -> Line {
        self.happened = text.into();
        self
    }

    pub fn suppressed(mut self, text: impl Into<String>) -> Line {
        self.suppressed = text.into();
        self
    }

    fn is_right(&self) -> bool {
        self.checks.iter().all(Check::is_right)
    }
}

impl Ledger {
    pub fn new(output: Output) -> Ledger {
        let bar = if output == Output::Table { output::progress(LINES, "the story") } else { ProgressBar::hidden() };
        Ledger { lines: Vec::new(), bar }
    }

    pub fn add(&mut self, line: Line) {
        self.bar.inc(1);
        self.bar.set_message(line.sent.clone());
        self.lines.push(line);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub fn wrong(&self) -> usize {
        self.lines.iter().flat_map(|line| &line.checks).filter(|check| !check.is_right()).count()
    }

    /// `is_whole`: the story came to its end.
    pub fn to_text(&self, took: Duration, is_whole: bool) -> String {
        let mut layer = "";
        let rows = self.lines.iter().map(|line| {
            let shown = if line.layer == layer { "" } else { line.layer };
            layer = line.layer;
            let mark = if line.is_right() { "✓" } else { "✗" };
            let texts = [shown, &line.sent, &line.happened, &line.suppressed, mark];
            texts.map(str::to_owned).to_vec()
        });
        let table = output::table(&["layer", "sent", "happened", "suppressed", ""], rows.collect());
        let checks: usize = self.lines.iter().map(|line| line.checks.len()).sum();
        let verdict = match self.wrong() {
            0 if !is_whole => format!("{checks} figures checked, all right so far"),
            0 => format!("{checks} figures checked: every effect happened once"),
            wrong => format!("{wrong} of {checks} figures are wrong:\n{}", self.findings().join("\n")),
        };
        format!("{table}\n{verdict} ({:.1} s)", took.as_secs_f64())
    }

    fn findings(&self) -> Vec<String> {
        let wrong = |line: &Line| {
            let checks = line.checks.iter().filter(|check| !check.is_right());
            let said = checks.map(|check| {
                format!(
                    "  {} · {}: {} must be {}, is {}",
                    line.layer, line.sent, check.what, check.expected, check.found
                )
            });
            said.collect::<Vec<_>>()
        };
        self.lines.iter().flat_map(wrong).collect()
    }

    pub fn to_json(&self) -> Value {
        let check = |check: &Check| json!({ "what": check.what, "expected": check.expected, "found": check.found, "right": check.is_right() });
        let line = |line: &Line| {
            json!({
                "layer": line.layer,
                "sent": line.sent,
                "happened": line.happened,
                "suppressed": line.suppressed,
                "checks": line.checks.iter().map(check).collect::<Vec<_>>(),
            })
        };
        json!({ "lines": self.lines.iter().map(line).collect::<Vec<_>>(), "wrong": self.wrong() })
    }
}
