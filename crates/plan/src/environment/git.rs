//! Decides about the environment of a request at a git service: what is done, by how the request
//! is, and how the environment.
//!
//! It goes by how things are and not by what happened, so an event that is missed, told twice or
//! told late changes nothing in the end. What a person decided about an environment stays, until
//! the request gives a reason: somebody pushes to it, or opens it again.

use super::{Refusal, Standing, as_deployed};
use crate::notify::Happening;
use model::environment::EnvironmentName;
use model::environment::git::event::Event;
use model::environment::git::report::{Reported, Verdict};
use model::environment::git::{Origin, Source, Unfit};
use model::environment::link::Link;
use model::environment::settings::Deploy;
use model::environment::status::{Deed, Sleep, Status};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What was last made of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    /// Whether it was to have an environment.
    pub up: bool,
    /// At which commit.
    pub sha: String,
    /// Whether it was only brought back for that commit, and is to be given it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owed: bool,
}

/// The environment of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct There<'a> {
    /// How it stands.
    pub standing: Standing,
    /// The commit that it was last given.
    pub sha: &'a str,
}

/// What is done about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This is done to its environment; one that is created was not there.
    Do(Deed),
    /// Nothing, and this is why.
    Nothing(Idle),
    /// Something is being done to its environment: what is to be done is decided when that has
    /// ended.
    Later(Deed),
    /// Its environment rests, and what is to be done is decided when somebody brings it back.
    Held(Rest),
}

impl Decision {
    /// What is made of a request by this; none leaves what was made of it before.
    pub fn settles(self, event: &Event) -> Option<Settled> {
        let up = match self {
            Self::Do(deed) => deed != Deed::Archive,
            Self::Nothing(Idle::Same | Idle::CalledOff | Idle::Removed) => true,
            Self::Nothing(
                Idle::Closed | Idle::Unfit(_) | Idle::Rests | Idle::Kept | Idle::Protected,
            ) => false,
            Self::Nothing(Idle::NoSource | Idle::Elsewhere | Idle::CleanupFailed)
            | Self::Later(_)
            | Self::Held(_) => return None,
        };
        Some(Settled {
            up,
            sha: event.sha.clone(),
            owed: false,
        })
    }

    /// What is made of a request at first by this, where its environment, which was given another
    /// commit, becomes what it was when that was deployed: more is made of it afterwards.
    pub fn owes(self, event: &Event, by: &Deploy, has: &str) -> Option<Settled> {
        let back = matches!(self, Self::Do(deed @ Deed::Restore) if as_deployed(deed, by));
        (back && has != event.sha).then(|| Settled {
            up: true,
            sha: event.sha.clone(),
            owed: true,
        })
    }
}

/// Why nothing is done about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// The project has no such source any more.
    NoSource,
    /// It is of another repository than the source.
    Elsewhere,
    /// It has no environment, and is not to have one: it is closed.
    Closed,
    /// The same, because of a rule.
    Unfit(Unfit),
    /// Its environment was given that commit already.
    Same,
    /// Its environment was to be given that commit, and somebody called it off.
    CalledOff,
    /// Its environment rests already.
    Rests,
    /// Somebody removed its environment, and nobody has pushed since.
    Removed,
    /// Somebody brought its environment back after it was closed.
    Kept,
    /// Somebody wants its environment to stay.
    Protected,
    /// What its environment has stored could not be removed: that comes first.
    CleanupFailed,
}

impl Idle {
    /// As one clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSource => "the project has no such source any more",
            Self::Elsewhere => "it is of another repository than the source",
            Self::Closed => "it is closed, and has no environment",
            Self::Unfit(unfit) => unfit.as_str(),
            Self::Same => "the environment was given that commit already",
            Self::CalledOff => {
                "somebody called off what was to be done for that commit, and nobody has pushed since"
            }
            Self::Rests => "the environment rests already",
            Self::Removed => "somebody removed the environment, and nobody has pushed since",
            Self::Kept => "somebody brought the environment back after the request was closed",
            Self::Protected => "the environment is protected",
            Self::CleanupFailed => "the environment could not be cleaned up, which comes first",
        }
    }
}

/// Why an environment rests though its request is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It is not the time of day, or of the week.
    Hours,
    /// Somebody archived it, or its time was over.
    Archived,
}

impl Rest {
    /// As one clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hours => "the environment sleeps, and is given the commit when its hours begin",
            Self::Archived => {
                "the environment is archived, and is given the commit when somebody restores it"
            }
        }
    }
}

/// What is done about a request; `there` is the environment that was made for it.
pub fn decide(
    source: Option<&Source>,
    event: &Event,
    settled: Option<&Settled>,
    there: Option<There<'_>>,
) -> Decision {
    let Some(source) = source else {
        return Decision::Nothing(Idle::NoSource);
    };
    if !event.repository.is(&source.repository) {
        return Decision::Nothing(Idle::Elsewhere);
    }
    let fit = source.rules.fit(event);
    match (event.open, fit) {
        (true, Ok(())) => up(event, settled, there),
        (true, Err(unfit)) => down(settled, there, Idle::Unfit(unfit)),
        (false, _) => down(settled, there, Idle::Closed),
    }
}

/// The request is to have an environment.
fn up(event: &Event, settled: Option<&Settled>, there: Option<There<'_>>) -> Decision {
    let was_down = settled.is_some_and(|settled| !settled.up);
    let Some(there) = there else {
        let pushed = settled.is_none_or(|settled| !settled.up || settled.sha != event.sha);
        return if pushed {
            Decision::Do(Deed::Create)
        } else {
            Decision::Nothing(Idle::Removed)
        };
    };
    if let Some(deed) = there.standing.busy {
        return Decision::Later(deed);
    }
    let same = there.sha == event.sha;
    let tried = settled.is_some_and(|settled| settled.up && settled.sha == event.sha);
    let owed = settled.is_some_and(|settled| settled.owed);
    match there.standing.status {
        Status::CleanupFailed => Decision::Nothing(Idle::CleanupFailed),
        // Whoever opens it again wants it back, and so does who pushes to one that fell asleep.
        Status::Archived | Status::ArchivePending if was_down => Decision::Do(Deed::Restore),
        Status::Archived | Status::ArchivePending => match (same, there.standing.asleep) {
            (true, _) => Decision::Nothing(Idle::Same),
            (false, Some(Sleep::Idle)) if tried => Decision::Nothing(Idle::CalledOff),
            (false, Some(Sleep::Idle)) => Decision::Do(Deed::Restore),
            (false, Some(Sleep::Hours)) => Decision::Held(Rest::Hours),
            (false, None) => Decision::Held(Rest::Archived),
        },
        Status::CreatePending | Status::UpdatePending | Status::Running | Status::Failure(_) => {
            if same {
                Decision::Nothing(Idle::Same)
            } else if tried && !owed {
                Decision::Nothing(Idle::CalledOff)
            } else {
                Decision::Do(Deed::Update)
            }
        }
    }
}

/// The request is not to have an environment.
fn down(settled: Option<&Settled>, there: Option<There<'_>>, why: Idle) -> Decision {
    let Some(there) = there else {
        return Decision::Nothing(why);
    };
    let status = there.standing.status;
    let is_back = status.is_up() && status != Status::ArchivePending;
    if settled.is_some_and(|settled| !settled.up) && is_back && there.standing.busy.is_none() {
        return Decision::Nothing(Idle::Kept);
    }
    // One that only sleeps would be woken.
    let goes = status == Status::ArchivePending && there.standing.asleep.is_none();
    match there.standing.permit(Deed::Archive, false) {
        Ok(()) if !goes => Decision::Do(Deed::Archive),
        Err(Refusal::Busy { deed }) => Decision::Later(deed),
        Err(Refusal::Protected { .. }) => Decision::Nothing(Idle::Protected),
        Ok(()) | Err(Refusal::Status { .. }) => Decision::Nothing(Idle::Rests),
    }
}

/// Whether something that is told of a request is older than what is known of it.
///
/// Services tell times to the second; of two in the same one the push before is the older.
pub fn is_older(event: &Event, known: &Event) -> bool {
    let behind = known.before.as_ref() == Some(&event.sha) && known.sha != event.sha;
    event.at < known.at || (event.at == known.at && behind)
}

/// How a request is after something was told of it: what a service tells once counts on.
#[must_use]
pub fn after(event: Event, known: Option<&Event>) -> Event {
    let author = known.and_then(|known| known.author.clone());
    Event {
        author: event.author.or(author),
        ..event
    }
}

/// How long something rests that could not be done, by how often it was tried; none gives it up,
/// after some hours.
pub fn pause(tries: u32) -> Option<Duration> {
    const TRIES_MAX: u32 = 24;
    let seconds = 5_u64.saturating_mul(1 << tries.min(7));
    (tries < TRIES_MAX).then(|| Duration::from_secs(seconds))
}

/// How the last thing ended that was done to an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It did what it should.
    Done,
    /// It did not.
    Failed,
    /// Somebody called it off.
    CalledOff,
}

/// What the service of a request is told of something that happened to its environment. That it
/// rests or goes says nothing of the commit.
pub fn report(
    origin: &Origin,
    name: &EnvironmentName,
    links: &[Link],
    what: Happening,
    last: Last,
) -> Option<Reported> {
    let (verdict, description) = match what {
        Happening::Became { became, .. } => match became? {
            status @ (Status::CreatePending | Status::UpdatePending) => {
                (Verdict::Pending, format!("{name} is {status}"))
            }
            Status::Running => match last {
                Last::Done => (Verdict::Success, format!("{name} is running")),
                // It runs as it was before.
                Last::Failed => (
                    Verdict::Failure,
                    format!("{name} is running, but what was done to it failed"),
                ),
                Last::CalledOff => (
                    Verdict::Failure,
                    format!("{name} is running, but what was done to it was cancelled"),
                ),
            },
            status @ Status::Failure(_) => (Verdict::Failure, format!("{name} is in {status}")),
            Status::ArchivePending | Status::Archived | Status::CleanupFailed => return None,
        },
        Happening::ActionFailed => (Verdict::Failure, format!("what was done to {name} failed")),
        Happening::ExpiresSoon => return None,
    };
    Some(Reported {
        repository: origin.repository.clone(),
        sha: origin.sha.clone(),
        verdict,
        description: Reported::line(&description),
        url: links.first().map(|link| link.url.clone()),
    })
}

/// Whether something that was called off before it began leaves a commit of which only that it is
/// pending was told. `before` is how the environment was, and at which commit; none where there was none.
pub fn is_forsaken(status: Status, sha: &str, before: Option<(Status, &str)>) -> bool {
    let told = matches!(status, Status::CreatePending | Status::UpdatePending);
    // Of the commit that it had, one that is up tells again how it is.
    let again = before.is_some_and(|(before, of)| of == sha && before.is_up());
    told && !again
}

/// What the service is told of such a commit.
pub fn called_off(origin: &Origin, name: &EnvironmentName) -> Reported {
    let description = format!("what was to be done to {name} was cancelled");
    Reported {
        repository: origin.repository.clone(),
        sha: origin.sha.clone(),
        verdict: Verdict::Failure,
        description: Reported::line(&description),
        url: None,
    }
}

#[cfg(test)]
mod tests;
