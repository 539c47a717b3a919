//! Small things that all pages show: states, bars, points in time.

use api::{Ready, Time, time::brief};
use model::balancer::BalanceFact;
use model::observed::{MachineFact, NodeFact};
use model::task::State;
use model::time::Timestamp;
use plan::Phase;

/// A state: a mark and a word, so that no colour is needed to tell it.
pub(super) struct Sign {
    pub(super) mark: &'static str,
    pub(super) word: &'static str,
    /// How the style colours it: `ok`, `busy`, `warn`, `bad` or `calm`.
    pub(super) tone: &'static str,
}

impl From<Phase> for Sign {
    fn from(phase: Phase) -> Self {
        let (mark, tone) = match phase {
            Phase::Pending => ("○", "calm"),
            Phase::Scheduled => ("◐", "busy"),
            Phase::Done => ("✓", "ok"),
            Phase::Error => ("▲", "bad"),
            Phase::Deleting => ("▽", "warn"),
            Phase::Gone => ("×", "calm"),
        };
        Self {
            mark,
            word: phase.as_str(),
            tone,
        }
    }
}

impl From<State> for Sign {
    fn from(state: State) -> Self {
        let (mark, tone) = match state {
            State::Waiting => ("○", "calm"),
            State::Running => ("◐", "busy"),
            State::Stuck => ("▲", "bad"),
            State::Done => ("✓", "ok"),
            State::Withdrawn => ("×", "calm"),
        };
        Self {
            mark,
            word: state.as_str(),
            tone,
        }
    }
}

impl From<Option<&MachineFact>> for Sign {
    fn from(fact: Option<&MachineFact>) -> Self {
        let (mark, word, tone) = match fact {
            None => ("·", "unseen", "calm"),
            Some(MachineFact::Absent) => ("×", "absent", "calm"),
            Some(MachineFact::Booting { .. }) => ("◐", "booting", "busy"),
            Some(MachineFact::Running { .. }) => ("✓", "running", "ok"),
            Some(MachineFact::Unreachable { .. }) => ("▲", "unreachable", "bad"),
        };
        Self { mark, word, tone }
    }
}

impl From<Option<&NodeFact>> for Sign {
    fn from(fact: Option<&NodeFact>) -> Self {
        let (mark, word, tone) = match fact {
            None => ("·", "unseen", "calm"),
            Some(NodeFact::Absent) => ("×", "absent", "calm"),
            Some(NodeFact::Joined { ready: false, .. }) => ("▲", "not ready", "bad"),
            Some(NodeFact::Joined { cordoned: true, .. }) => ("▽", "cordoned", "warn"),
            Some(NodeFact::Joined { .. }) => ("✓", "ready", "ok"),
        };
        Self { mark, word, tone }
    }
}

impl From<Option<&BalanceFact>> for Sign {
    fn from(fact: Option<&BalanceFact>) -> Self {
        let (mark, word, tone) = match fact {
            None => ("·", "unseen", "calm"),
            Some(_) => ("✓", "balances", "ok"),
        };
        Self { mark, word, tone }
    }
}

/// Ready of wanted.
#[derive(Clone, Copy, Default)]
pub(super) struct Bar {
    pub(super) ready: u32,
    pub(super) wanted: u32,
}

impl Bar {
    /// The length of the bar; one that wants nothing is full of nothing.
    pub(super) fn max(self) -> u32 {
        self.wanted.max(1)
    }

    /// Whether all are ready.
    pub(super) fn full(self) -> bool {
        self.ready >= self.wanted
    }
}

impl From<(u32, u32)> for Bar {
    fn from(pair: (u32, u32)) -> Self {
        let Ready { ready, wanted } = pair.into();
        Self { ready, wanted }
    }
}

/// A point in time: exactly, as an age, and as a clock shows it.
pub(super) struct Stamp {
    pub(super) exact: String,
    pub(super) age: String,
    pub(super) clock: String,
}

impl Stamp {
    pub(super) fn new(at: Timestamp, now: Timestamp) -> Self {
        let exact = Time::from(at).to_string();
        let clock = exact
            .split_once('T')
            .map_or("", |(_, clock)| clock)
            .get(..8)
            .unwrap_or_default()
            .to_owned();
        Self {
            exact,
            age: format!("{} ago", brief(now.since(at))),
            clock,
        }
    }
}

/// A point in time as people write it: 2026-03-01 12:30:00 UTC.
pub(super) fn to_the_second(at: Timestamp) -> String {
    let exact = Time::from(at).to_string();
    let second = exact.split(['.', 'Z']).next().unwrap_or_default();
    format!("{} UTC", second.replace('T', " "))
}
