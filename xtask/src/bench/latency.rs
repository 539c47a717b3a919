//! How long many answers took.

use std::time::Duration;

/// The times of many answers, in order.
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(super) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a hundred answers did not exceed; nothing took no time.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        let time = self.0.get(rank.saturating_sub(1));
        time.copied().unwrap_or_default()
    }
}

/// Milliseconds with one digit behind the point.
pub(super) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latencies;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let latencies = Latencies::new(times);
        assert_eq!(latencies.percentile(50), Duration::from_millis(100));
        assert_eq!(latencies.percentile(99), Duration::from_millis(198));
        assert_eq!(latencies.percentile(100), Duration::from_millis(200));
        assert_eq!(Latencies::new(Vec::new()).percentile(99), Duration::ZERO);
    }
}
