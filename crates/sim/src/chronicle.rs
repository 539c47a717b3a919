//! What happened, in words: one line per thing, with the time on a virtual clock.

use driver::Outcome;
use model::name::Name;
use model::task::{Kind, Task};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What happened in a rehearsal, in its order.
pub(crate) struct Chronicle {
    epoch: Timestamp,
    entries: Mutex<Vec<Entry>>,
    /// Whether attempts that end well are left out.
    brief: AtomicBool,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    at: Timestamp,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Somebody said or showed something.
    Said(String),
    /// An attempt ended.
    Attempt {
        kind: Kind,
        machine: Name,
        ended: Ended,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Done,
    Retry(String),
    Stuck(String),
}

/// What became of all attempts of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) done: u32,
    pub(crate) retried: u32,
    pub(crate) stuck: u32,
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
}

impl Chronicle {
    /// Begins to tell, with the clock at zero.
    pub(crate) fn new(epoch: Timestamp) -> Self {
        Self {
            epoch,
            entries: Mutex::default(),
            brief: AtomicBool::new(false),
        }
    }

    /// Leaves out attempts that end well from now on.
    pub(crate) fn only_failures(&self) {
        self.brief.store(true, Ordering::Relaxed);
    }

    /// Notes what somebody said or showed.
    pub(crate) fn say(&self, at: Timestamp, text: impl Into<String>) {
        let what = What::Said(text.into());
        self.lock().push(Entry { at, what });
    }

    /// Notes how an attempt ended.
    pub(crate) fn attempt(&self, at: Timestamp, task: &Task, outcome: &Outcome) {
        let brief = self.brief.load(Ordering::Relaxed);
        let ended = match outcome {
            Outcome::Done(..) if brief => return,
            Outcome::Done(..) => Ended::Done,
            Outcome::Retry(error) => Ended::Retry(error.to_string()),
            Outcome::Stuck(error) => Ended::Stuck(error.to_string()),
        };
        let what = What::Attempt {
            kind: task.action.kind(),
            machine: task.machine.name.clone(),
            ended,
        };
        self.lock().push(Entry { at, what });
    }

    /// Everything, one line each; what happened to several machines at once is one line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut entries = self.lock().clone();
        // Attempts that end together are told by kind, then by name.
        entries.sort_by_key(|entry| entry.at);
        let mut lines = Vec::new();
        let mut rest = entries.as_slice();
        while let Some((first, behind)) = rest.split_first() {
            let clock = self.clock(first.at);
            match &first.what {
                What::Said(text) => {
                    lines.push(format!("{clock}  {text}"));
                    rest = behind;
                }
                What::Attempt { kind, ended, .. } => {
                    let alike = |entry: &Entry| {
                        entry.at == first.at
                            && matches!(&entry.what, What::Attempt { kind: k, ended: e, .. } if k == kind && e == ended)
                    };
                    let same = rest.iter().take_while(|entry| alike(entry)).count();
                    let (told, behind) = rest.split_at(same);
                    let mut machines: Vec<_> = told.iter().filter_map(machine).collect();
                    machines.sort_unstable();
                    let line = format!("{kind} {} … {}", listed(&machines), ended.told());
                    lines.push(format!("{clock}    {line}"));
                    rest = behind;
                }
            }
        }
        lines
    }

    /// What became of all attempts, by kind.
    pub(crate) fn tallies(&self) -> BTreeMap<Kind, Tally> {
        let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
        for entry in self.lock().iter() {
            let What::Attempt { kind, ended, .. } = &entry.what else {
                continue;
            };
            let tally = tallies.entry(*kind).or_default();
            match ended {
                Ended::Done => tally.done += 1,
                Ended::Retry(_) => tally.retried += 1,
                Ended::Stuck(_) => tally.stuck += 1,
            }
            tally.first = Some(tally.first.map_or(entry.at, |first| first.min(entry.at)));
            tally.last = Some(tally.last.map_or(entry.at, |last| last.max(entry.at)));
        }
        tallies
    }

    /// When the last thing happened.
    pub(crate) fn last(&self) -> Timestamp {
        let entries = self.lock();
        entries
            .iter()
            .map(|entry| entry.at)
            .max()
            .unwrap_or(self.epoch)
    }

    /// The time since the beginning: minutes and seconds, hours only where there are any.
    pub(crate) fn clock(&self, at: Timestamp) -> String {
        clock(at.since(self.epoch))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn machine(entry: &Entry) -> Option<&Name> {
    match &entry.what {
        What::Attempt { machine, .. } => Some(machine),
        What::Said(_) => None,
    }
}

/// `a`, `a and b`, `a, b and 3 more`.
fn listed(machines: &[&Name]) -> String {
    match machines {
        [] => String::new(),
        [one] => one.to_string(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

/// A span as a clock shows it.
fn clock(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

impl Ended {
    fn told(&self) -> String {
        match self {
            Self::Done => "done".to_owned(),
            Self::Retry(error) => format!("failed: {error}"),
            Self::Stuck(error) => format!("stuck: {error}"),
        }
    }
}
