//! How fast the engine may go, and how long it waits.

use std::time::Duration;

/// Limits and intervals of one engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How this worker signs its leases.
    pub worker: String,
    /// How long a worker may stay silent before its tasks are given to others.
    pub lease: Duration,
    /// The most attempts under way at once. Attempts mostly wait, and cost little while
    /// they do; the bound keeps memory bounded when a provider hangs.
    pub running_max: u32,
    /// The most attempts under way for one cluster, so that none takes all the room.
    pub per_cluster_max: u32,
    /// How old an observation may get before somebody looks again.
    pub probe_every: Duration,
    /// How often what is past its time is cleared away.
    pub sweep_every: Duration,
    /// The first pause after a failed attempt; it doubles with each further failure.
    pub backoff_first: Duration,
    /// The longest pause between attempts.
    pub backoff_max: Duration,
    /// The longest an attempt may take.
    pub attempt_max: Duration,
    /// How long attempts have to end when the program is told to.
    pub grace: Duration,
    /// Whether no other engine can work on the same store; then every lease found at the
    /// start belongs to the dead.
    pub alone: bool,
    /// Whether what a task touches is looked at before it begins and when it is done, to tell what
    /// came out otherwise than plans say.
    pub second_look: bool,
    /// Where the jitter comes from.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            worker: "worker".to_owned(),
            lease: Duration::from_secs(30),
            running_max: 8_192,
            per_cluster_max: 256,
            probe_every: Duration::from_mins(1),
            sweep_every: Duration::from_mins(5),
            backoff_first: Duration::from_secs(2),
            backoff_max: Duration::from_mins(5),
            attempt_max: Duration::from_hours(1),
            grace: Duration::from_secs(10),
            alone: true,
            second_look: false,
            seed: 0,
        }
    }
}

impl Settings {
    /// The pause before the attempt that follows attempt number `attempt`.
    ///
    /// Doubles from the first to the longest, less up to a quarter of jitter: many tasks
    /// that failed together shall not come back together.
    pub(crate) fn backoff(&self, attempt: u32, random: &mut fastrand::Rng) -> Duration {
        let doubled = self
            .backoff_first
            .saturating_mul(1 << attempt.saturating_sub(1).min(16));
        doubled
            .min(self.backoff_max)
            .mul_f64(1.0 - random.f64() / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_with_a_quarter_of_jitter() {
        let settings = Settings::default();
        let mut random = fastrand::Rng::with_seed(7);
        for (attempt, longest) in [(1, 2), (2, 4), (3, 8), (8, 256), (9, 300), (500, 300)] {
            let pause = settings.backoff(attempt, &mut random).as_secs_f64();
            let longest = f64::from(longest);
            assert!(
                pause <= longest && pause >= longest * 0.75,
                "attempt {attempt}: {pause}"
            );
        }
    }
}
