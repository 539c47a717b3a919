//! What happens to machines while a cluster lives: pools that become machines of another kind, and
//! machines that are replaced because they do not serve.

use crate::cluster::{Machine, Origin, Role};
use crate::id::MachineId;
use crate::name::Name;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many machines of the new kind come at once, where nobody says otherwise.
pub const SURGE_DEFAULT: u32 = 1;

/// How long a machine may not serve before another takes its place, where nobody says otherwise.
const AFTER_DEFAULT: Duration = Duration::from_mins(10);

/// The shortest pause after something failed. It doubles with every failure.
const PAUSE_MIN: Duration = Duration::from_mins(1);

/// The longest pause: whoever mended the cause and says nothing is not left alone for a day.
const PAUSE_MAX: Duration = Duration::from_hours(1);

/// How long failures are remembered: what fails once a day fails for the first time.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);

/// A pool on its way to machines of another kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roll {
    /// Which pool.
    pub pool: Name,
    /// What its machines do: a pool may have some of each.
    pub role: Role,
    /// The load balancer that they are part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<Name>,
    /// What its machines are made like from now on.
    pub origin: Origin,
    /// How many come at once before as many go.
    pub surge: u32,
    /// Those that have come, or are to, and for which nobody has gone yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coming: Vec<MachineId>,
    /// What went wrong so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
}

impl Roll {
    /// Whether a machine is of the pool that it is about.
    pub fn holds(&self, machine: &Machine) -> bool {
        machine.pool == self.pool && machine.role == self.role && machine.balancer == self.balancer
    }

    /// Whether a machine is of the new kind.
    pub fn is_new(&self, machine: &Machine) -> bool {
        machine.origin.made_like(&self.origin)
    }
}

/// Something that was tried in vain, and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// How often, without a long time between.
    pub times: u32,
    /// When last.
    pub at: Timestamp,
    /// What went wrong then.
    pub because: String,
}

impl Failed {
    /// One failure more than those before.
    pub fn again(before: Option<&Self>, at: Timestamp, because: String) -> Self {
        let remembered = before.filter(|before| at.since(before.at) < FORGOTTEN_AFTER);
        let times = remembered.map_or(0, |before| before.times);
        Self {
            times: times.saturating_add(1),
            at,
            because,
        }
    }

    /// When the next try may begin.
    pub fn due(&self) -> Timestamp {
        let doublings = self.times.saturating_sub(1).min(16);
        let pause = PAUSE_MIN.saturating_mul(1 << doublings);
        self.at.plus(pause.min(PAUSE_MAX))
    }
}

/// What is done about machines that do not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    /// How long one may not serve before another takes its place; nothing where people see to it.
    pub after: Option<Duration>,
}

impl Default for Repair {
    fn default() -> Self {
        Self {
            after: Some(AFTER_DEFAULT),
        }
    }
}

impl Repair {
    /// Whether nobody said anything.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour_and_failures_are_forgotten_after_a_day() {
        let mut failed = None;
        let mut now = Timestamp::from_millis(0);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let next = Failed::again(failed.as_ref(), now, "no such image".to_owned());
            pauses.push(next.due().since(now).as_secs() / 60);
            now = next.due();
            failed = Some(next);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let later = now.plus(FORGOTTEN_AFTER);
        let afresh = Failed::again(failed.as_ref(), later, String::new());
        assert_eq!(afresh.times, 1);
    }
}
