//! What comes of a row after an attempt, and when the next one is. Pure: the clock and the answer are arguments.
//! Knows no broker and no store. Next: `lane.rs`, which carries it out.

use wf_core::Millis;
use wf_core::ids::hash16;
use wf_core::planted::{self, Bug};
use wf_core::rows::Text;
use wf_store::{MarkResult, OutboxRow};

use crate::config::SinkConfig;
use crate::shipper::SHIP_MAX;
use crate::sink::ShipResult;

const BACKOFF_MIN_MS: i64 = 1_000;
const BACKOFF_MAX_MS: i64 = 5 * 60_000;
/// A pause that somebody asks for is obeyed up to here.
const RETRY_AFTER_MAX_MS: i64 = 24 * 3_600_000;
/// Errors are cut to this: they come from outside.
const ERROR_BYTES_MAX: usize = 1_024;

/// The mark for a row that was sent at `now` and got this answer.
pub fn settle(config: &SinkConfig, row: &OutboxRow, result: &ShipResult, now: Millis) -> MarkResult {
    match result {
        ShipResult::Shipped { .. } => MarkResult::Shipped { at: now },
        ShipResult::Retry { .. } if planted::is(Bug::LostAckIsShipped) => MarkResult::Shipped { at: now },
        ShipResult::Refused { error } => MarkResult::Dead { error: cut(error) },
        ShipResult::Disabled { .. } => MarkResult::Release,
        // The attempt that just ended is not counted in the row yet.
        ShipResult::Retry { error, .. } if row.attempts + 1 >= config.attempts_max => {
            MarkResult::Dead { error: cut(error) }
        }
        ShipResult::Retry { error, retry_after_ms } => {
            let pause = backoff_ms(&row.entry.event_id, row.attempts + 1).max(pause_ms(*retry_after_ms));
            MarkResult::Retry { at: now + pause, error: cut(error) }
        }
    }
}

/// What the other side asked for, within reason; 0 if it asked for nothing.
pub fn pause_ms(retry_after_ms: Option<i64>) -> i64 {
    retry_after_ms.unwrap_or(0).clamp(0, RETRY_AFTER_MAX_MS)
}

/// The pause after `attempts` attempts (from 1): it doubles from 1-2 s to 2.5-5 minutes. Where in that range is a hash of
/// the event and the attempt, so that rows that failed together do not come back together, and a test can compute it.
pub fn backoff_ms(event_id: &str, attempts: u32) -> i64 {
    let ceiling = ceiling_ms(attempts);
    let hash = hash16(&[event_id.as_bytes(), &attempts.to_le_bytes()]);
    let jitter = i64::from(u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]));
    ceiling / 2 + jitter % (ceiling / 2 + 1)
}

/// From the first attempt of a row to the end of its last one, at most: so long a broker must remember dedup ids.
/// Pauses that a receiver asks for and time without a broker come on top.
pub fn span_ms(attempts_max: u32) -> i64 {
    let pauses: i64 = (1..attempts_max).map(ceiling_ms).sum();
    pauses + i64::from(attempts_max) * SHIP_MAX.as_millis() as i64
}

fn ceiling_ms(attempts: u32) -> i64 {
    let doublings = attempts.clamp(1, 20);
    (BACKOFF_MIN_MS << doublings).min(BACKOFF_MAX_MS)
}

fn cut(error: &str) -> Text {
    let end = (0..=ERROR_BYTES_MAX.min(error.len())).rev().find(|end| error.is_char_boundary(*end));
    Text::from(&error[..end.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L5.2: bounds, growth, determinism, and no two rows in step.
    #[test]
    fn the_pause_doubles_within_its_bounds() {
        for (attempts, low, high) in [
            (1, 1_000, 2_000),
            (2, 2_000, 4_000),
            (8, 128_000, 256_000),
            (9, 150_000, 300_000),
            (400, 150_000, 300_000),
        ] {
            let pauses: Vec<i64> = (0..50).map(|n| backoff_ms(&format!("ev-1-{n}"), attempts)).collect();
            assert!(pauses.iter().all(|pause| (low..=high).contains(pause)), "{attempts}: {pauses:?}");
            assert!(pauses.iter().collect::<std::collections::BTreeSet<_>>().len() > 25, "{attempts}: {pauses:?}");
        }
        // Frozen: a change moves the retries of every row that waits.
        assert_eq!(backoff_ms("ev-1-7", 1), backoff_ms("ev-1-7", 1));
        assert_eq!(span_ms(1), 25_000);
        assert_eq!(span_ms(20), 2_000 * 255 + 300_000 * 11 + 20 * 25_000);
    }

    #[test]
    fn an_error_is_cut_between_characters() {
        assert_eq!(cut("ä").len(), 2);
        assert_eq!(cut(&"ä".repeat(600)).len(), 1_024);
        assert_eq!(cut(&format!("x{}", "ä".repeat(600))).len(), 1_023);
    }
}
