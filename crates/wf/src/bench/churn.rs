//! Jobs made, taken and finished by the million on one store: does it stay as fast, and as small, as it was at the begin?
//! What ends is dropped by retention after a few seconds, so that rows come and go instead of piling up.
//! Next: `report.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::output::{self, Failure};

use super::scenarios::{self, Scenario};
use super::{Bench, postgres};

/// How long ended instances and finished jobs stay here.
pub const FINISHED_MS: u64 = 5_000;

/// One part of the run.
pub struct Part {
    /// Jobs finished from the begin to its end.
    pub done: u64,
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// Of the table of jobs with its indexes, and rows in it that nobody sees any more; PostgreSQL only.
    pub jobs: Option<(u64, u64)>,
}

pub async fn measure(bench: &Bench, servers: &[String], total: u64) -> Result<Vec<Part>, Failure> {
    let (mut parts, mut done) = (Vec::new(), 0);
    while done < total {
        let measured = scenarios::run(bench, servers, Scenario::WholeBatched).await?;
        if let Some(error) = measured.first_error {
            return Err(Failure::work(format!("after {done} jobs: {error}")));
        }
        let finished = (measured.per_second * bench.args.seconds as f64) as u64;
        if finished == 0 {
            return Err(Failure::work(format!("after {done} jobs nothing is finished any more")));
        }
        done += finished;
        let jobs = match bench.postgres() {
            Some(url) => Some(postgres::size_of_jobs(url).await?),
            None => None,
        };
        let part = Part { done, per_second: measured.per_second, p50: measured.p50, p99: measured.p99, jobs };
        output::say(&part.to_line());
        parts.push(part);
    }
    Ok(parts)
}

impl Part {
    fn to_line(&self) -> String {
        let rate = output::grouped(self.per_second, 0);
        format!("{} jobs, {rate}/s{}", output::grouped(self.done as f64, 0), self.size())
    }

    fn size(&self) -> String {
        let size = |(bytes, dead)| format!(", {} MB of jobs with {dead} dead rows", bytes / 1_000_000);
        self.jobs.map(size).unwrap_or_default()
    }

    pub fn to_json(&self) -> Value {
        json!({
            "done": self.done,
            "perSecond": self.per_second,
            "p50Ms": self.p50.as_secs_f64() * 1000.0,
            "p99Ms": self.p99.as_secs_f64() * 1000.0,
            "jobsBytes": self.jobs.map(|(bytes, _)| bytes),
            "jobsDead": self.jobs.map(|(_, dead)| dead),
        })
    }
}

/// The median of the first parts and of the last: what the whole run comes to.
pub fn summary(parts: &[Part]) -> Option<(f64, f64)> {
    let third = (parts.len() / 3).max(1);
    let median = |parts: &[Part]| {
        let mut rates: Vec<f64> = parts.iter().map(|part| part.per_second).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    };
    Some((median(parts.get(..third)?)?, median(parts.get(parts.len() - third..)?)?))
}
