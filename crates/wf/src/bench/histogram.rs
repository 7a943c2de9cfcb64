//! Latencies in logarithmic buckets: 3 % wide, so that a million of them cost two kilobytes and no allocation.
//! It knows no clock.

use std::time::Duration;

/// Linear steps within each power of two.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Up to 2^40 ns, a quarter of an hour.
const BUCKETS: usize = (41 - STEP_BITS as usize) * STEPS;

#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(nanos)) {
            *count += 1;
            self.total += 1;
        }
    }

    pub fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
    }

    /// The time below which this share of all lies; zero where nothing was recorded.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_bound(index));
            }
        }
        Duration::ZERO
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let exponent = 63 - nanos.leading_zeros();
    let step = (nanos >> (exponent - STEP_BITS)) as usize - STEPS;
    ((exponent - STEP_BITS + 1) as usize * STEPS + step).min(BUCKETS - 1)
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let (power, step) = (bucket / STEPS - 1, bucket % STEPS);
    ((STEPS + step + 1) as u64) << power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_percent() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|micros| histogram.record(Duration::from_micros(micros)));
        for (share, micros) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(share).as_nanos() as f64 / 1000.0;
            assert!((found - micros).abs() / micros < 0.035, "{share}: {found} µs");
        }
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!(histogram.total, 1001);
    }
}
