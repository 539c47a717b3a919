//! Decides about one environment: what may be done to it, and what follows from what was seen.
//!
//! A status is entered when an action begins; scripts never decide it by how they end, looks do.
//! An action that failed leaves a mark ([`Standing::failed`]), so that an environment which runs
//! on as it was before is not taken for one that became what was asked.
//!
//! **Invariant:** every standing has an exit: something that a person may do, and, while it is
//! pending, something that happens by itself. The tests walk all of them.

pub mod git;

use model::disruption::Windows;
use model::environment::settings::{Deploy, Patience};
use model::environment::status::{Deed, Failure, Look, Seen, Sleep, Status};
use model::time::Timestamp;
use std::time::Duration;

/// How an environment stands: all that decisions about it depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// How it is.
    pub status: Status,
    /// Since when.
    pub since: Timestamp,
    /// What is being done to it.
    pub busy: Option<Deed>,
    /// Whether the last thing that was done to it failed.
    pub failed: bool,
    /// Whether somebody wants it to stay.
    pub protected: bool,
    /// Why it rests, where nobody asked for it.
    pub asleep: Option<Sleep>,
}

/// Why something may not be done to an environment now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Something else is being done to it.
    #[error("it is busy: {deed} is under way")]
    Busy {
        /// What.
        deed: Deed,
    },
    /// It is not in a status for that.
    #[error("{deed} is not possible while it is {status}")]
    Status {
        /// What was asked.
        deed: Deed,
        /// How it is.
        status: Status,
    },
    /// Somebody wants it to stay.
    #[error("it is protected, and {deed} would end it")]
    Protected {
        /// What was asked.
        deed: Deed,
    },
}

/// What a person can do about an environment now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// End what is being done to it.
    Cancel,
    /// Do this.
    Do(Deed),
    /// Do this and say that it is meant, because something is lost by it.
    Force(Deed),
}

impl Standing {
    /// Whether this may be done to it now. Whoever forces it takes what may be lost.
    pub fn permit(&self, deed: Deed, force: bool) -> Result<(), Refusal> {
        if let Some(deed) = self.busy {
            return Err(Refusal::Busy { deed });
        }
        let ends = matches!(deed, Deed::Archive | Deed::Cleanup | Deed::Delete);
        if self.protected && ends && !force {
            return Err(Refusal::Protected { deed });
        }
        let fits = match deed {
            Deed::Create => false,
            Deed::Update => self.status.is_up() && self.status != Status::ArchivePending,
            // Whoever archives one that sleeps wants it to stay where it is.
            Deed::Archive => self.status.is_up() || self.sleeps(),
            // Whoever changes their mind need not wait until it rests.
            Deed::Restore => matches!(self.status, Status::Archived | Status::ArchivePending),
            Deed::Cleanup => force || !self.status.is_up(),
            Deed::Delete => force || self.status == Status::CleanupFailed,
        };
        if fits {
            return Ok(());
        }
        let status = self.status;
        Err(Refusal::Status { deed, status })
    }

    /// Whether it is at rest though nobody asked for it: it may be woken.
    pub fn sleeps(&self) -> bool {
        self.status == Status::Archived && self.asleep.is_some()
    }

    /// All that a person can do about it now.
    pub fn exits(&self) -> Vec<Exit> {
        if self.busy.is_some() {
            return vec![Exit::Cancel];
        }
        let way = |deed| match (self.permit(deed, false), self.permit(deed, true)) {
            (Ok(()), _) => Some(Exit::Do(deed)),
            (Err(_), Ok(())) => Some(Exit::Force(deed)),
            (Err(_), Err(_)) => None,
        };
        Deed::ALL.into_iter().filter_map(way).collect()
    }

    /// Which look tells more about it, where one does.
    pub const fn look(&self) -> Option<Look> {
        match self.status {
            // While a script changes it, whatever is seen is half of the truth.
            _ if self.busy.is_some() => None,
            Status::CreatePending
            | Status::UpdatePending
            | Status::Running
            | Status::Failure(_) => Some(Look::Up),
            Status::ArchivePending | Status::Archived => Some(Look::Down),
            Status::CleanupFailed => None,
        }
    }

    /// How it is after a look; a pending one is given time.
    pub fn after(&self, seen: Seen, patience: &Patience, now: Timestamp) -> Status {
        let late = self.failed || now.since(self.since) > patience.pending;
        match (self.status, seen) {
            (
                Status::CreatePending
                | Status::UpdatePending
                | Status::Running
                | Status::Failure(_),
                Seen::Good,
            ) => Status::Running,
            (Status::CreatePending | Status::UpdatePending, Seen::Bad(how)) if late => {
                Status::Failure(how)
            }
            (Status::Running | Status::Failure(_), Seen::Bad(how)) => Status::Failure(how),
            (Status::ArchivePending, Seen::Good) => Status::Archived,
            (Status::ArchivePending, Seen::Bad(_)) if late => Status::Failure(Failure::Generic),
            // That something runs which should rest is told, and is no reason to wake it.
            (
                Status::CreatePending
                | Status::UpdatePending
                | Status::ArchivePending
                | Status::Archived
                | Status::CleanupFailed,
                Seen::Good | Seen::Bad(_),
            ) => self.status,
        }
    }

    /// How it is when nobody could look. That is no reason to think ill of it, unless it should
    /// have become another by now.
    pub fn unseen(&self, patience: &Patience, now: Timestamp) -> Status {
        if self.status.is_pending() {
            return self.after(Seen::Bad(Failure::Generic), patience, now);
        }
        self.status
    }

    /// What is done to it because of its age, though nobody asks, and why.
    pub fn outlived(&self, span: &Span<'_>, now: Timestamp) -> Option<(Deed, Cause)> {
        let past = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
        let ended = past(span.expires_at);
        let (deed, cause) = match self.status {
            Status::Archived if span.asleep == Some(Sleep::Hours) && !ended => {
                // However long it sleeps, it is not removed for it.
                let awake = span.hours.opens(now).is_none();
                awake.then_some((Deed::Restore, Cause::Hours))?
            }
            Status::Archived => {
                let rested = span.archived_at.map(|since| since.plus(span.retention));
                past(rested).then_some((Deed::Cleanup, Cause::Rested))?
            }
            Status::CreatePending
            | Status::UpdatePending
            | Status::Running
            | Status::Failure(_) => (Deed::Archive, span.tires(ended, now)?),
            // It is on its way, or waits for somebody.
            Status::ArchivePending | Status::CleanupFailed => return None,
        };
        let permitted = self.permit(deed, false).is_ok();
        permitted.then_some((deed, cause))
    }
}

/// How long an environment may be what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// Since when it rests.
    pub archived_at: Option<Timestamp>,
    /// How long it may.
    pub retention: Duration,
    /// Until when it may be up.
    pub expires_at: Option<Timestamp>,
    /// Why it sleeps, where nobody asked for it.
    pub asleep: Option<Sleep>,
    /// When somebody last wanted something of it.
    pub used_at: Timestamp,
    /// How long ago that may be.
    pub idle: Option<Duration>,
    /// When it is up.
    pub hours: &'a Windows,
}

/// Why something is done to an environment though nobody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It was to be up until now.
    Ended,
    /// Nobody used it.
    Idle,
    /// It is the time of day, or of the week.
    Hours,
    /// It has rested for long enough.
    Rested,
}

impl Cause {
    /// As one clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "its time is over",
            Self::Idle => "nobody used it",
            Self::Hours => "of the hour",
            Self::Rested => "it has rested for long enough",
        }
    }

    /// Why an environment sleeps that was archived for this.
    pub const fn sleep(self) -> Option<Sleep> {
        match self {
            Self::Idle => Some(Sleep::Idle),
            Self::Hours => Some(Sleep::Hours),
            Self::Ended | Self::Rested => None,
        }
    }
}

impl Span<'_> {
    /// Why one that is up is to rest, where there is a reason.
    fn tires(&self, ended: bool, now: Timestamp) -> Option<Cause> {
        let idle = self.idle.is_some_and(|idle| self.used_at.plus(idle) <= now);
        // Whoever brings one up when others sleep has it until the hours end again.
        let late = self
            .hours
            .shut(now)
            .is_some_and(|shut| self.used_at <= shut);
        match (ended, idle, late) {
            (true, _, _) => Some(Cause::Ended),
            (false, true, _) => Some(Cause::Idle),
            (false, false, true) => Some(Cause::Hours),
            (false, false, false) => None,
        }
    }
}

/// How many of these places one project may have while others have so many of them: half of what those
/// leave, so that there is always one for whoever comes next.
pub const fn share(most: u32, others: u32) -> u32 {
    match (most.saturating_sub(others) / 2, others) {
        (0, 0) => most,
        (half, _) => half,
    }
}

/// How long age waits before it asks for something again that did not come about: it failed, could not
/// be begun, or somebody called it off.
pub const AGAIN_AFTER: Duration = Duration::from_hours(1);

/// When the hours next begin or end, if that is soon: they do so on the minute.
pub fn turns(hours: &Windows, now: Timestamp, soon: Duration) -> Option<Timestamp> {
    const MINUTE: i64 = 60_000;
    let is_open = |at: Timestamp| hours.opens(at).is_none();
    let until = now.plus(soon).as_millis() / MINUTE;
    let minutes = now.as_millis() / MINUTE + 1..=until;
    let mut minutes = minutes.map(|minute| Timestamp::from_millis(minute * MINUTE));
    minutes.find(|at| is_open(*at) != is_open(now))
}

/// The status that an environment enters when this begins, where that is another.
pub const fn entered(deed: Deed) -> Option<Status> {
    match deed {
        Deed::Create | Deed::Restore => Some(Status::CreatePending),
        Deed::Update => Some(Status::UpdatePending),
        Deed::Archive => Some(Status::ArchivePending),
        Deed::Cleanup | Deed::Delete => None,
    }
}

/// Whether an environment is told what it was last deployed with when this is done to it. What goes
/// becomes nothing else, and Helm brings back what it had scaled down; scripts are told all there is,
/// and may bring it back as that.
pub const fn as_deployed(deed: Deed, by: &Deploy) -> bool {
    match deed {
        Deed::Archive | Deed::Cleanup => true,
        Deed::Restore => matches!(by, Deploy::Helm(_)),
        Deed::Create | Deed::Update | Deed::Delete => false,
    }
}

/// Until when an environment may be up that this is begun with. What has come to its end and is
/// brought back has as much time as it was given before: it would go again at once otherwise.
pub fn lasts(
    deed: Deed,
    end: Option<Timestamp>,
    given: Duration,
    now: Timestamp,
) -> Option<Timestamp> {
    let end = end?;
    let anew = deed == Deed::Restore && end <= now;
    Some(if anew { now.plus(given) } else { end })
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its script says that it did what it should.
    Done,
    /// It says otherwise, or could not say anything.
    Failed,
    /// It was never begun.
    Unbegun,
}

/// What becomes of an environment when an action at it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It is so, until the next look.
    Is(Status),
    /// It is no more.
    Gone,
}

/// What becomes of an environment of this status when this has ended.
pub const fn ended(status: Status, deed: Deed, how: Ended) -> Became {
    match (deed, how) {
        (Deed::Cleanup | Deed::Delete, Ended::Done) => Became::Gone,
        // Of one that was up something may run on: it counts, and looks find out.
        (Deed::Cleanup | Deed::Delete, Ended::Failed) if status.is_up() => Became::Is(status),
        (Deed::Cleanup | Deed::Delete, Ended::Failed) => Became::Is(Status::CleanupFailed),
        // Looks find out, and nobody has touched what was not begun.
        (
            Deed::Create | Deed::Update | Deed::Archive | Deed::Restore,
            Ended::Done | Ended::Failed,
        )
        | (_, Ended::Unbegun) => Became::Is(status),
    }
}

/// Whether an environment is as it was before when this was never begun. Where nobody called it off,
/// what an update brings, and that one is to come, is still wanted.
pub const fn falls_back(deed: Deed, called_off: bool) -> bool {
    called_off || matches!(deed, Deed::Archive | Deed::Restore)
}

/// What becomes of an environment when something is called off that was never begun, by how it was
/// before that was asked. One that was to be created never was.
pub const fn withdrawn(before: Option<Status>) -> Became {
    match before {
        Some(status) => Became::Is(status),
        None => Became::Gone,
    }
}

/// Which look tells whether something was done of which nobody knows how it ended. What has been
/// removed cannot be seen, nor whether all of it was.
pub const fn proof(deed: Deed) -> Option<Look> {
    match deed {
        Deed::Create | Deed::Update | Deed::Restore => Some(Look::Up),
        Deed::Archive => Some(Look::Down),
        Deed::Cleanup | Deed::Delete => None,
    }
}

/// How something ended of which nobody knows, by what its [`proof`] showed. Doing it once more is
/// for people to decide: it is somebody's script, and may not bear it.
pub const fn verified(seen: Option<Seen>) -> Ended {
    match seen {
        Some(Seen::Good) => Ended::Done,
        Some(Seen::Bad(_)) | None => Ended::Failed,
    }
}

#[cfg(test)]
mod tests;
