//! What is counted over all lives, per place of death. It judges nothing.
//! Next: back to `crash.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use powerloss::lose::Loss;
use wf_store::failpoint::PLACES;

/// SIGKILL from outside, at no place in particular.
pub const ANY_MOMENT: usize = PLACES.len();
/// Within the layer that takes the power away.
pub const BETWEEN_WRITES: usize = PLACES.len() + 1;

#[derive(Debug)]
pub struct Counts {
    pub requests: AtomicU64,
    /// Answers that were stored ones, or said that it had been done before.
    pub repeats: AtomicU64,
    pub losses: AtomicU64,
    /// Writes and names that were at stake in them.
    pub unsynced: AtomicU64,
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    kills: AtomicU64,
    cut_off: AtomicU64,
    replays: AtomicU64,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub name: &'static str,
    pub kills: u64,
    /// Requests that were sent and lost their connection.
    pub cut_off: u64,
    /// Of these, the ones whose repeat found that it had been done.
    pub replays: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        let places = (0..=BETWEEN_WRITES).map(|_| Place::default()).collect();
        let zero = || AtomicU64::new(0);
        Counts { requests: zero(), repeats: zero(), losses: zero(), unsynced: zero(), places }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    pub fn sent(&self) {
        add(&self.requests);
    }

    pub fn repeated(&self) {
        add(&self.repeats);
    }

    pub fn killed(&self, place: usize) {
        add(&self.places[place].kills);
    }

    pub fn cut_off(&self, place: usize) {
        add(&self.places[place].cut_off);
    }

    pub fn replayed(&self, place: usize) {
        add(&self.places[place].replays);
    }

    pub fn lost(&self, loss: Loss) {
        add(&self.losses);
        self.unsynced.fetch_add(loss.unsynced as u64, Ordering::Relaxed);
    }

    pub fn kills(&self) -> u64 {
        self.lines().iter().map(|line| line.kills).sum()
    }

    pub fn name(&self, place: usize) -> &'static str {
        match PLACES.get(place) {
            Some(place) => place.name,
            None if place == ANY_MOMENT => "(any moment)",
            None => "(between writes)",
        }
    }

    pub fn lines(&self) -> Vec<Line> {
        let names = (0..=BETWEEN_WRITES).map(|place| self.name(place));
        let figure = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let line = |(name, place): (&'static str, &Place)| Line {
            name,
            kills: figure(&place.kills),
            cut_off: figure(&place.cut_off),
            replays: figure(&place.replays),
        };
        names.zip(&self.places).map(line).collect()
    }

    /// Places of the matrix at which nobody died.
    pub fn spared(&self) -> Vec<&'static str> {
        self.lines()[..=ANY_MOMENT].iter().filter(|line| line.kills == 0).map(|line| line.name).collect()
    }

    pub fn table(&self) -> String {
        let mut text = format!("{:<18} {:>7} {:>10} {:>10}\n", "place", "kills", "in flight", "replays");
        for line in self.lines().iter().filter(|line| line.kills > 0) {
            text += &format!("{:<18} {:>7} {:>10} {:>10}\n", line.name, line.kills, line.cut_off, line.replays);
        }
        text
    }
}
