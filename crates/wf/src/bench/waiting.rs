//! Many waiting instances: what they cost in memory, what they do to the rate of starts, and how long a restart takes.

use std::time::{Duration, Instant};

use crate::output::{self, Failure};
use crate::process::Node;

use super::load::{self, Client, Tally, Window};
use super::scenarios::{self, Scenario};
use super::{Bench, report};

const BODY: &[u8] = br#"{"processDefinitionId":"bench-waiting","variables":{"orderId":"o-1"}}"#;

pub struct Waiting {
    pub count: u64,
    pub made_per_second: f64,
    /// Resident memory of the server, after making them and after a restart with them.
    pub resident_bytes: Option<u64>,
    pub resident_after_restart: Option<u64>,
    pub starts_before: report::Measured,
    pub starts_with: report::Measured,
    /// From the start of the process until it answers.
    pub restart: Duration,
}

pub async fn measure(bench: &Bench, node: Node, count: u64) -> Result<(Waiting, Node), Failure> {
    let starts_before = scenarios::run(bench, std::slice::from_ref(&node.url), Scenario::Starts).await?;
    let began = Instant::now();
    make(bench, &node.url, count).await?;
    let made_per_second = count as f64 / began.elapsed().as_secs_f64();
    let resident_bytes = node.resident_bytes();
    let starts_with = scenarios::run(bench, std::slice::from_ref(&node.url), Scenario::Starts).await?;
    node.stop().await?;
    let began = Instant::now();
    let node = bench.node().await?;
    while !wf_client::Client::new(&node.url)?.is_ready().await {}
    let restart = began.elapsed();
    let resident_after_restart = node.resident_bytes();
    let waiting =
        Waiting { count, made_per_second, resident_bytes, resident_after_restart, starts_before, starts_with, restart };
    Ok((waiting, node))
}

async fn make(bench: &Bench, server: &str, count: u64) -> Result<(), Failure> {
    let address = scenarios::address(server)?;
    let bar = output::progress(count, "waiting instances");
    let clients = u64::from(bench.args.clients);
    let (window, seed) = (Window::of(3600), scenarios::fresh_seed());
    let load = load::run(bench.args.clients, window, |index| {
        let share = count / clients + u64::from(u64::from(index) < count % clients);
        let (address, bar) = (address.clone(), bar.clone());
        async move {
            let client = Client::open(&address, seed.wrapping_add(u64::from(index) << 32), window).await?;
            share_of(client, share, bar).await
        }
    })
    .await?;
    bar.finish_and_clear();
    match load.tally.first_error {
        None => Ok(()),
        Some(error) => Err(Failure::work(error)),
    }
}

async fn share_of(mut client: Client, share: u64, bar: indicatif::ProgressBar) -> std::io::Result<Tally> {
    for made in 0..share {
        let key = client.random.key();
        scenarios::call(&mut client, scenarios::START, Some(&key), BODY, 201, 1).await?;
        if made % 64 == 63 {
            bar.inc(64);
        }
    }
    Ok(client.finish())
}
