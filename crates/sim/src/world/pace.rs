//! How long things take in the simulated world.

use model::task::Kind;
use std::time::Duration;

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Minutes, exactly those that journeys foretell: for rehearsals under virtual time.
    Realistic,
    /// Seconds, with jitter from the seed: for a running server that people watch.
    Demo,
}

impl Pace {
    /// How long a change of this kind takes, from beginning to end.
    ///
    /// Never zero, so that what is seen before a change and what is seen after it can be
    /// told apart by their times.
    pub(crate) fn span(self, kind: Kind, random: &mut fastrand::Rng) -> Duration {
        match self {
            Self::Realistic => Duration::from_secs(60 * u64::from(plan::minutes(kind))),
            Self::Demo => {
                let (least, most) = demo_millis(kind);
                Duration::from_millis(random.u64(least..=most))
            }
        }
    }

    /// How long it takes to look at a cluster.
    pub(crate) const fn look(self) -> Duration {
        match self {
            Self::Realistic => Duration::from_secs(2),
            Self::Demo => Duration::ZERO,
        }
    }
}

/// Long enough to be watched, short enough for a thousand clusters in a minute.
const fn demo_millis(kind: Kind) -> (u64, u64) {
    match kind {
        Kind::Create => (1_000, 3_000),
        Kind::Init => (1_800, 2_200),
        Kind::Equip | Kind::Join | Kind::Install | Kind::Drain | Kind::Delete => (800, 1_200),
        Kind::Upgrade | Kind::Restore | Kind::Renew => (1_500, 2_500),
        Kind::Mesh | Kind::Prepare | Kind::Release | Kind::Leave => (400, 600),
        Kind::Key
        | Kind::Balance
        | Kind::Name
        | Kind::Expose
        | Kind::Shut
        | Kind::Tend
        | Kind::Uncordon
        | Kind::Clear
        | Kind::Snapshot => (200, 300),
    }
}
