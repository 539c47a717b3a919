//! The contract of every hand: what a driver is given, and what it must answer.
//!
//! Drivers are the only code that touches the world. A driver is told exactly what to
//! do and reports what happened; it never decides, never reads desired state and never
//! writes to the store. [`suite`] is what every driver must pass, the simulated one and
//! the real ones alike, so that the simulator cannot drift from the world.

pub mod deliver;
pub mod deploy;
pub mod kinds;
pub mod suite;

mod clock;
mod context;

pub use clock::Clock;
pub use context::{Context, Keeping, Log, NoSecrets, Open, Opening, Unopened};

use model::cluster::Machine;
use model::id::ClusterId;
use model::observed::{Fact, Observation};
use model::sealed::Owner;
use model::secret::{EntryName, Secret};
use model::task::Task;
use model::time::Timestamp;

/// Carries out tasks against the outside world, and looks at it.
pub trait Driver: Send + Sync + 'static {
    /// Makes one attempt and says how it ended.
    ///
    /// Must be idempotent: a worker may die after the effect and before the record of
    /// it, and the next worker will then ask again. Must end soon after
    /// [`Context::cancelled`] completes, without beginning anything new.
    fn apply(&self, cx: &Context, task: &Task) -> impl Future<Output = Outcome> + Send;

    /// Looks at machines of one cluster without changing them.
    ///
    /// What could not be seen is left out: silence is not absence. Must end soon after
    /// [`Context::cancelled`] completes, with what was seen by then: one machine that
    /// dawdles must not take away what is known of the others.
    fn probe(&self, cx: &Context, target: &Target)
    -> impl Future<Output = Vec<Observation>> + Send;
}

/// What a probe looks at.
#[derive(Debug, Clone)]
pub struct Target {
    /// Which cluster.
    pub cluster: ClusterId,
    /// Which of its machines.
    pub machines: Vec<Machine>,
    /// Whether these are all that it has: whatever else is found there is none of them.
    pub whole: bool,
}

/// What became of one attempt.
#[derive(Debug)]
#[must_use = "an outcome nobody records is work done twice"]
pub enum Outcome {
    /// The world now is as the task asked; this was seen on the way, and this came of it.
    ///
    /// What came of it is lost unless the attempt is recorded. A driver that is asked again
    /// for what is done already therefore gives it again.
    Done(Vec<Observation>, Vec<Output>),
    /// It may work later: a timeout, a rate limit, a lock held by someone else.
    Retry(Error),
    /// It will not work until somebody changes something; the hint says what.
    Stuck(Error),
}

impl Outcome {
    /// Done: this was seen of the task's cluster, each with when the look began.
    pub fn done(task: &Task, seen: Vec<(Timestamp, Fact)>, outputs: Vec<Output>) -> Self {
        let cluster = task.cluster;
        let seen = seen.into_iter();
        let seen = seen.map(|(at, fact)| Observation { cluster, fact, at });
        Self::Done(seen.collect(), outputs)
    }
}

/// Something secret that came of a task: it is sealed and kept with its owner.
pub struct Output {
    /// Whose it is: the task's cluster or its machine.
    pub owner: Owner,
    /// Which of the owner's values.
    pub entry: EntryName,
    /// The value.
    pub value: Secret,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("owner", &self.owner)
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}

/// Why an attempt did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{attempted}; {hint}")]
pub struct Error {
    /// What was attempted and how it ended, as one clause.
    pub attempted: String,
    /// What would help: for a stuck task, the change it waits for.
    pub hint: String,
}

impl Error {
    /// The code of its page, where it is one of the known ways to fail ([`kinds!`]): those end
    /// what was attempted with it, in brackets.
    pub fn code(&self) -> Option<&str> {
        let (_, code) = self.attempted.strip_suffix(')')?.rsplit_once('(')?;
        let (area, number) = code.split_once('-')?;
        let known = area.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 3
            && number.bytes().all(|byte| byte.is_ascii_digit());
        known.then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn an_error_of_a_known_kind_tells_its_code() {
        let code = |attempted: &str| {
            let (attempted, hint) = (attempted.to_owned(), String::new());
            Error { attempted, hint }.code().map(str::to_owned)
        };
        assert_eq!(code("it broke (SCRIPT-006)"), Some("SCRIPT-006".to_owned()));
        assert_eq!(
            code("said (SCRIPT-006) and ended (HELM-004)"),
            Some("HELM-004".to_owned())
        );
        for none in [
            "it broke",
            "it said (SCRIPT-006) and more",
            "(a-001)",
            "(A-1)",
            ")",
        ] {
            assert_eq!(code(none), None, "{none}");
        }
    }
}
