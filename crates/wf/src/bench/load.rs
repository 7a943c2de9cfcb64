//! Clients in a closed loop: each sends its next request when the last was answered. What is finished within the
//! window counts; a warm-up before it does not. It knows no route: `scenarios.rs` gives the loop's body.

use std::time::{Duration, Instant};

use crate::output::Failure;

use super::histogram::Histogram;
use super::http::Connection;

/// The window in which things count.
#[derive(Clone, Copy)]
pub struct Window {
    from: Instant,
    until: Instant,
}

impl Window {
    /// A second of warm-up, or a quarter of a short run.
    pub fn of(seconds: u64) -> Window {
        let length = Duration::from_secs(seconds);
        let from = Instant::now() + (length / 4).min(Duration::from_secs(1));
        Window { from, until: from + length }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn length(&self) -> Duration {
        self.until - self.from
    }
}

/// One client's state while it runs.
pub struct Client {
    pub connection: Connection,
    pub random: Random,
    window: Window,
    tally: Tally,
}

#[derive(Default)]
pub struct Tally {
    pub latencies: Histogram,
    /// Units of work: what the scenario's rate is about.
    pub units: u64,
    pub calls: u64,
    pub errors: u64,
    pub first_error: Option<String>,
}

impl Client {
    pub async fn open(address: &str, seed: u64, window: Window) -> std::io::Result<Client> {
        let connection = Connection::open(address).await?;
        Ok(Client { connection, random: Random(seed), window, tally: Tally::default() })
    }

    pub fn is_over(&self) -> bool {
        self.window.is_over()
    }

    /// A call that ended now and was sent at `sent`; `units` it finished.
    pub fn count(&mut self, sent: Instant, units: u64) {
        let now = Instant::now();
        if now >= self.window.from && now < self.window.until {
            self.tally.latencies.record(now - sent);
            self.tally.calls += 1;
            self.tally.units += units;
        }
    }

    pub fn wrong(&mut self, what: String) {
        self.tally.errors += 1;
        self.tally.first_error.get_or_insert(what);
    }

    pub fn finish(self) -> Tally {
        self.tally
    }
}

/// What all clients together did.
pub struct Load {
    pub tally: Tally,
    pub seconds: f64,
}

impl Load {
    pub fn per_second(&self) -> f64 {
        self.tally.units as f64 / self.seconds
    }
}

/// Runs `client` that many times side by side on this thread.
pub async fn run<F, Fut>(clients: u32, window: Window, client: F) -> Result<Load, Failure>
where
    F: Fn(u32) -> Fut,
    Fut: Future<Output = std::io::Result<Tally>> + Send + 'static,
{
    let tasks: Vec<_> = (0..clients).map(|index| tokio::spawn(client(index))).collect();
    let mut total = Tally::default();
    for task in tasks {
        let tally = task.await.map_err(Failure::work)?.map_err(|error| Failure::work(format!("a client: {error}")))?;
        total.latencies.add(&tally.latencies);
        total.units += tally.units;
        total.calls += tally.calls;
        total.errors += tally.errors;
        total.first_error = total.first_error.or(tally.first_error);
    }
    Ok(Load { tally: total, seconds: window.length().as_secs_f64() })
}

/// Keys must be spread as real ones are; repeatable, so that a run can be looked at again.
pub struct Random(pub u64);

impl Random {
    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// As long as a UUID.
    pub fn key(&mut self) -> String {
        format!("{:016x}-{:016x}", self.next(), self.next())
    }
}
