//! Decides who is told what of an environment, and whether a message is sent again.
//!
//! A message follows from one change that was stored, so what did not change is told to nobody,
//! and what changed and changed back within one look never was. [`next`] has growing pauses, and
//! an end: somebody who cannot be told for a day is given up, and people are told of that.

use model::environment::delivery::Answer;
use model::environment::notify::Occasion;
use model::environment::settings::{Deploy, Settings};
use model::environment::status::Status;
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The kind of message that a control script is run for.
pub const SCRIPT: &str = "script";

/// How often something is sent that is refused by whoever it is for. Most refuse for good; some are
/// set up a moment later than we are.
const REFUSALS_MAX: u32 = 3;

/// How often something is sent at all: with the pauses below that takes longer than [`AGE_MAX`],
/// so that it only counts where whoever it is for asks for short ones.
const TRIES_MAX: u32 = 60;

/// How old a message may become: what happened yesterday is no news.
const AGE_MAX: Duration = Duration::from_hours(24);

/// The pause after the first try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_secs(5);

/// The longest pause, also where somebody asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_hours(1);

/// How much of a pause chance takes away, so that many do not come back together.
const JITTER: f64 = 0.25;

/// How long before its end an environment is told of, at most.
const SOON: Duration = Duration::from_hours(24);

/// Which part of its time must be over by then: one that was made for an hour is not about to end.
const SOON_PART: u32 = 4;

/// Something that happened to an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// It became another.
    Became {
        /// How it was; none where it was not.
        was: Option<Status>,
        /// How it is; none where it is no more.
        became: Option<Status>,
    },
    /// What was done to it failed, and it is as it was.
    ActionFailed,
    /// It will not be up for much longer.
    ExpiresSoon,
}

impl Happening {
    /// What a message about it is about.
    pub const fn occasion(self) -> Occasion {
        match self {
            Self::Became { became, .. } => Occasion::of(became),
            Self::ActionFailed => Occasion::ActionFailed,
            Self::ExpiresSoon => Occasion::ExpiresSoon,
        }
    }
}

/// Somebody who is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    /// How.
    pub kind: &'static str,
    /// What people call them.
    pub target: &'a str,
}

/// Who is told of something that happened to an environment with these labels.
///
/// The project's script is told of every status that became another, as it always was: neither of
/// the first nor of the end.
pub fn told<'a>(
    settings: &'a Settings,
    labels: &BTreeMap<String, String>,
    happening: Happening,
) -> Vec<Told<'a>> {
    let both = |was: Option<Status>, became: Option<Status>| was.is_some() && became.is_some();
    let script = match (&settings.deploy, happening) {
        (_, Happening::Became { was, became }) if was == became => return Vec::new(),
        (Deploy::Scripts, Happening::Became { was, became }) => both(was, became),
        (Deploy::Scripts, Happening::ActionFailed | Happening::ExpiresSoon)
        | (Deploy::Helm(_), _) => false,
    };
    let script = script.then_some(Told {
        kind: SCRIPT,
        target: "notifications",
    });
    let occasion = happening.occasion();
    let targets = settings.notify.iter();
    let targets = targets.filter(|target| target.wants(occasion, labels));
    let targets = targets.map(|target| Told {
        kind: target.way.as_str(),
        target: target.name.as_str(),
    });
    script.into_iter().chain(targets).collect()
}

/// Whether an environment that somebody last wanted something of then is about to end.
pub fn expires_soon(expires_at: Timestamp, used_at: Timestamp, now: Timestamp) -> bool {
    let left = expires_at.since(now);
    let part = expires_at.since(used_at) / SOON_PART;
    now < expires_at && left <= SOON && left <= part
}

/// The latest end of an environment that may be about to end now.
pub fn expires_by(now: Timestamp) -> Timestamp {
    now.plus(SOON)
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has arrived.
    Delivered,
    /// It is sent again after a pause.
    Again(Duration),
    /// It is not.
    GiveUp,
    /// It never was one.
    Forget,
}

/// Whether a message about this is sent once: whoever tries whether messages arrive looks at what
/// comes of it, and tries again.
pub fn is_sent_once(occasion: &str) -> bool {
    occasion == Occasion::Test.as_str()
}

/// What becomes of a message after it was sent for the n-th time. `chance` is between 0 and 1.
pub fn next(answer: Answer, tries: u32, age: Duration, chance: f64) -> Next {
    let asked = match answer {
        Answer::Taken => return Next::Delivered,
        Answer::Nobody => return Next::Forget,
        Answer::Never => return Next::GiveUp,
        Answer::Refused if tries >= REFUSALS_MAX => return Next::GiveUp,
        Answer::Refused => None,
        Answer::Later(asked) => asked,
    };
    let doubled = PAUSE_FIRST.saturating_mul(
        1_u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX),
    );
    let pause = doubled
        .min(PAUSE_MAX)
        .mul_f64(1.0 - JITTER * chance.clamp(0.0, 1.0));
    // Who says when is not asked earlier.
    let pause = pause.max(asked.unwrap_or_default().min(PAUSE_MAX));
    if tries >= TRIES_MAX || age.saturating_add(pause) > AGE_MAX {
        return Next::GiveUp;
    }
    Next::Again(pause)
}

#[cfg(test)]
mod tests;
