//! The bench's figures as a table and as JSON. It measures nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::output;

use super::churn::{self, Part};
use super::load::Load;
use super::machine::Machine;
use super::postgres::Postgres;
use super::proofs::Proofs;
use super::scenarios::Scenario;
use super::waiting::Waiting;

#[derive(Default)]
pub struct Report {
    pub machine: Machine,
    pub bare: Option<Load>,
    pub scenarios: Vec<Measured>,
    pub waiting: Option<Waiting>,
    pub proofs: Option<Proofs>,
    pub churn: Vec<Part>,
}

/// One scenario's result.
pub struct Measured {
    pub scenario: Scenario,
    pub clients: u32,
    pub per_second: f64,
    pub calls_per_second: f64,
    /// Of all its calls.
    pub p50: Duration,
    pub p99: Duration,
    pub errors: u64,
    pub first_error: Option<String>,
}

/// A result as a multiple of what the machine does by itself.
struct Ratio {
    ratio: f64,
    of: &'static str,
}

impl Ratio {
    fn to_text(&self, scenario: Scenario) -> String {
        match scenario {
            Scenario::OneClient => format!("p50 is {:.1} × {}", self.ratio, self.of),
            _ => format!("{:.0} % of {}", self.ratio * 100.0, self.of),
        }
    }
}

impl Measured {
    pub fn of(scenario: Scenario, clients: u32, load: Load) -> Measured {
        Measured {
            scenario,
            clients,
            per_second: load.per_second(),
            calls_per_second: load.tally.calls as f64 / load.seconds,
            p50: load.tally.latencies.quantile(0.5),
            p99: load.tally.latencies.quantile(0.99),
            errors: load.tally.errors,
            first_error: load.tally.first_error,
        }
    }
}

impl Report {
    pub fn to_text(&self) -> String {
        let mut text =
            output::table(&["", "clients", "per second", "p50 ms", "p99 ms", "of the machine", ""], self.rows());
        text.push_str(&format!("\n\nthe machine, in the same run\n{}", output::table(&["", ""], self.machine_rows())));
        if let Some(waiting) = &self.waiting {
            text.push_str(&format!("\n\nwaiting instances\n{}", output::table(&["", ""], waiting_rows(waiting))));
        }
        if let Some((first, last)) = churn::summary(&self.churn) {
            text.push_str(&format!("\n\nchurn\n{}", output::table(&["", ""], churn_rows(&self.churn, first, last))));
        }
        if let Some(proofs) = &self.proofs {
            text.push_str(&format!("\n\nproofs\n{}", proofs.to_text()));
        }
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |measured: &Measured| {
            vec![
                measured.scenario.explained().to_owned(),
                measured.clients.to_string(),
                output::grouped(measured.per_second, 0),
                millis(measured.p50),
                millis(measured.p99),
                self.ratio(measured).map(|ratio| ratio.to_text(measured.scenario)).unwrap_or_default(),
                problem(measured),
            ]
        };
        self.scenarios.iter().map(row).collect()
    }

    /// What is answered without the disk is measured by HTTP, what is written by the rows that it writes, and what
    /// one client waits for by the disk's own sync.
    fn ratio(&self, measured: &Measured) -> Option<Ratio> {
        let bare = || self.bare.as_ref().map(Load::per_second);
        let (value, machine, of) = match measured.scenario {
            Scenario::OneClient => (ms(measured.p50), ms(self.machine.sync), "fdatasync"),
            Scenario::Starts => (measured.per_second, self.store_alone().0, self.store_alone().2),
            Scenario::Whole | Scenario::WholeBatched => {
                (measured.per_second, self.store_alone().1, self.store_alone().2)
            }
            Scenario::Duplicates | Scenario::Mix => (measured.per_second, bare()?, "bare axum"),
        };
        let ratio = value / machine;
        ratio.is_finite().then_some(Ratio { ratio, of })
    }

    /// Starts and whole instances whose rows the store takes by itself, and what it is.
    fn store_alone(&self) -> (f64, f64, &'static str) {
        match &self.machine.postgres {
            Some(postgres) => (postgres.starts, postgres.whole, "PostgreSQL alone"),
            None => (self.machine.sqlite_starts, self.machine.sqlite_whole, "SQLite alone"),
        }
    }

    fn machine_rows(&self) -> Vec<Vec<String>> {
        let mut rows = vec![
            vec!["fdatasync of 16 KiB, p50".to_owned(), format!("{} ms", millis(self.machine.sync))],
            vec!["fdatasync of 16 KiB, p99".to_owned(), format!("{} ms", millis(self.machine.sync_p99))],
            vec![
                "SQLite alone, rows of a start, 64 per transaction".to_owned(),
                format!("{} starts/s", output::grouped(self.machine.sqlite_starts, 0)),
            ],
        ];
        rows.push(vec![
            "SQLite alone, rows of a whole instance, 64 per transaction".to_owned(),
            format!("{} instances/s", output::grouped(self.machine.sqlite_whole, 0)),
        ]);
        if let Some(postgres) = &self.machine.postgres {
            rows.extend(postgres_rows(postgres));
        }
        if let Some(bare) = &self.bare {
            let rate = output::grouped(bare.per_second(), 0);
            let p50 = millis(bare.tally.latencies.quantile(0.5));
            rows.push(vec!["bare axum, same bytes".to_owned(), format!("{rate}/s, p50 {p50} ms")]);
        }
        rows
    }

    pub fn to_json(&self) -> Value {
        let bare = self
            .bare
            .as_ref()
            .map(|bare| json!({ "perSecond": bare.per_second(), "p50Ms": ms(bare.tally.latencies.quantile(0.5)) }));
        json!({
            "machine": {
                "fdatasyncP50Ms": ms(self.machine.sync),
                "fdatasyncP99Ms": ms(self.machine.sync_p99),
                "sqliteStartsPerSecond": self.machine.sqlite_starts,
                "sqliteWholePerSecond": self.machine.sqlite_whole,
                "postgres": self.machine.postgres.as_ref().map(postgres_json),
                "bareAxum": bare,
            },
            "scenarios": self.scenarios.iter().map(|measured| self.scenario_json(measured)).collect::<Vec<_>>(),
            "waiting": self.waiting.as_ref().map(waiting_json),
            "churn": self.churn.iter().map(Part::to_json).collect::<Vec<_>>(),
            "proofs": self.proofs.as_ref().map(Proofs::to_json),
        })
    }

    fn scenario_json(&self, measured: &Measured) -> Value {
        let ratio = self.ratio(measured).map(|ratio| json!({ "ratio": ratio.ratio, "of": ratio.of }));
        json!({
            "name": measured.scenario.name(),
            "clients": measured.clients,
            "perSecond": measured.per_second,
            "callsPerSecond": measured.calls_per_second,
            "p50Ms": ms(measured.p50),
            "p99Ms": ms(measured.p99),
            "errors": measured.errors,
            "firstError": measured.first_error,
            "ofMachine": ratio,
        })
    }
}

fn postgres_rows(postgres: &Postgres) -> Vec<Vec<String>> {
    let row = |name: &str, rate: f64, of: &str| vec![name.to_owned(), format!("{} {of}", output::grouped(rate, 0))];
    vec![
        row("PostgreSQL alone, commits of one row, as many connections as clients", postgres.commits, "commits/s"),
        row("PostgreSQL alone, rows of a start by unnest, 64 per transaction", postgres.starts, "starts/s"),
        row("PostgreSQL alone, rows of a whole instance, 64 per transaction", postgres.whole, "instances/s"),
    ]
}

fn postgres_json(postgres: &Postgres) -> Value {
    json!({
        "commitsPerSecond": postgres.commits,
        "startsPerSecond": postgres.starts,
        "wholePerSecond": postgres.whole,
    })
}

fn problem(measured: &Measured) -> String {
    match &measured.first_error {
        None => String::new(),
        Some(first) => format!("{} errors, the first: {}", measured.errors, output::short(first, 60)),
    }
}

fn waiting_rows(waiting: &Waiting) -> Vec<Vec<String>> {
    let ratio = waiting.starts_with.per_second / waiting.starts_before.per_second;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    vec![
        row("made", output::grouped(waiting.count as f64, 0)),
        row("made per second", output::grouped(waiting.made_per_second, 0)),
        row("resident memory", megabytes(waiting.resident_bytes)),
        row("resident memory after a restart", megabytes(waiting.resident_after_restart)),
        row("starts before", format!("{}/s", output::grouped(waiting.starts_before.per_second, 0))),
        row(
            "starts with them",
            format!("{}/s ({:.0} %)", output::grouped(waiting.starts_with.per_second, 0), ratio * 100.0),
        ),
        row("ready again after", format!("{} ms", millis(waiting.restart))),
    ]
}

fn churn_rows(parts: &[Part], first: f64, last: f64) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("jobs finished", output::grouped(parts.last().map_or(0.0, |part| part.done as f64), 0)),
        row("per second, first third", output::grouped(first, 0)),
        row("per second, last third", format!("{} ({:.0} %)", output::grouped(last, 0), last / first * 100.0)),
    ];
    let sizes = parts.iter().filter_map(|part| part.jobs).map(|(bytes, _)| bytes);
    if let (Some(least), Some(most)) = (sizes.clone().min(), sizes.max()) {
        let (least, most) = (megabytes(Some(least)), megabytes(Some(most)));
        rows.push(row("table of jobs with its indexes", format!("{least} to {most}")));
    }
    rows
}

fn waiting_json(waiting: &Waiting) -> Value {
    json!({
        "count": waiting.count,
        "madePerSecond": waiting.made_per_second,
        "residentBytes": waiting.resident_bytes,
        "residentBytesAfterRestart": waiting.resident_after_restart,
        "startsBeforePerSecond": waiting.starts_before.per_second,
        "startsWithPerSecond": waiting.starts_with.per_second,
        "readyAgainMs": ms(waiting.restart),
    })
}

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn millis(time: Duration) -> String {
    format!("{:.2}", ms(time))
}
