//! How attempts end, and what is kept of them.

use super::{Claim, object, refresh, title};
use crate::Store;
use crate::body::{Scope, Tx, first};
use crate::error::Error;
use crate::events::note;
use crate::observations::{Of, take_in};
use crate::sealed::{SealError, SealedRow};
use crate::{Actor, claims, logs, paces, sealed};
use model::observed::Observation;
use model::sealed::KeyId;
use model::task::{Kind, State};
use model::time::Timestamp;
use std::time::Duration;

/// How long a lost attempt rests when nobody could see what it left behind.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Why an attempt was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Something was sealed with a key that is not in use any more: seal it again with the
    /// current one, and record again.
    #[error("the data key {key} is no longer in use")]
    KeyGone {
        /// Which key.
        key: KeyId,
        /// The claim, for the next time.
        claim: Box<Claim>,
    },
    /// The database is away, and nothing was recorded: the same claim is good until the lease
    /// ends.
    #[error("{error}")]
    Away {
        /// Why.
        error: Error,
        /// The claim, for the next time.
        claim: Box<Claim>,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The world is as the task asked.
    Done,
    /// It may work later.
    Retry {
        /// How it ended.
        error: String,
        /// When the next attempt is due.
        not_before: Timestamp,
    },
    /// It will not work until something changes.
    Stuck {
        /// How it ended, with what it waits for.
        error: String,
    },
    /// The worker gives the task back unfinished; it is due at once.
    Yield,
}

impl Ended {
    /// A word for metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry { .. } => "retry",
            Self::Stuck { .. } => "stuck",
            Self::Yield => "yield",
        }
    }
}

/// Whether an attempt could still be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "after a lost lease somebody else may be at work"]
pub enum Recorded {
    /// It was.
    Yes,
    /// The lease was lost before; nothing was recorded.
    LeaseLost,
}

impl Store {
    /// Records how an attempt ended, with what was seen, sealed and written on the way: all
    /// of it, or nothing.
    pub async fn record(
        &self,
        claim: Claim,
        ended: Ended,
        observations: Vec<Observation>,
        sealed: Vec<SealedRow>,
        log: Vec<(Timestamp, String)>,
        now: Timestamp,
    ) -> Result<Recorded, RecordError> {
        let scope = Scope::Cluster(claim.task.cluster);
        // What could not be recorded now may be recorded later, with the same claim.
        let kept = Box::new(claim.again());
        let question = move |tx: &mut dyn Tx| {
            sealed::check_keys(tx, sealed.iter().map(|row| row.sealed.key))?;
            let recorded = record(tx, &claim, &ended, &observations, &log, now)?;
            if recorded == Recorded::Yes {
                let task = object(claim.task.id);
                let actor = Actor::new(&claim.worker, task);
                sealed::store_outputs(tx, &sealed, &actor, now)?;
            }
            Ok(recorded)
        };
        let recorded = self.runner.write(scope, question).await;
        recorded.map_err(|error| match (error, kept) {
            (SealError::KeyGone { key }, claim) => RecordError::KeyGone { key, claim },
            (SealError::Store(error), claim) if error.is_passing() => {
                RecordError::Away { error, claim }
            }
            (SealError::Store(error), _) => error.into(),
            (SealError::NoProject { .. } | SealError::TooMany { .. }, _) => {
                Error::unanswered().into()
            }
        })
    }

    /// Adds lines to the log of an attempt that goes on.
    pub async fn append_log(
        &self,
        claim: &Claim,
        lines: Vec<(Timestamp, String)>,
    ) -> Result<Recorded, Error> {
        let (task, attempt, fence) = (claim.task.id, claim.attempt, claim.fence);
        let question = move |tx: &mut dyn Tx| {
            let held = first(
                tx,
                "SELECT 1 FROM tasks WHERE id = $1 AND fence = $2 AND state = 'running' FOR UPDATE",
                &[task.into(), fence.into()],
            )?;
            if held.is_none() {
                return Ok(Recorded::LeaseLost);
            }
            logs::append(tx, task, attempt, &lines)?;
            Ok(Recorded::Yes)
        };
        self.runner.write(Scope::Rows, question).await
    }
}

fn record(
    tx: &mut dyn Tx,
    claim: &Claim,
    ended: &Ended,
    observations: &[Observation],
    log: &[(Timestamp, String)],
    now: Timestamp,
) -> Result<Recorded, Error> {
    // Who gives a task back without having seen anything knows no more than before of what
    // a lost attempt left behind; looking again at once would see nothing again.
    let blind = claim.lost && *ended == Ended::Yield && observations.is_empty();
    let (state, not_before, error) = match ended {
        Ended::Done => (State::Done, Some(now), None),
        Ended::Retry { error, not_before } => (State::Waiting, Some(*not_before), Some(error)),
        // It stays due since before the attempt: who corrects something meanwhile is not missed.
        Ended::Stuck { error } => (State::Stuck, None, Some(error)),
        Ended::Yield if blind => (State::Waiting, Some(now.plus(LOOK_AGAIN_AFTER)), None),
        Ended::Yield => (State::Waiting, Some(now), None),
    };
    let changed = tx.execute(
        "UPDATE tasks SET state = $4, not_before = COALESCE($5, not_before), error = $6, lease_until = NULL, worker = NULL,
                          lost = $7, updated_at = $8
         WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running'",
        &[
            claim.task.id.into(),
            claim.fence.into(),
            (&claim.worker).into(),
            state.as_str().into(),
            not_before.into(),
            error.map(|error| logs::shortened(error.clone())).into(),
            blind.into(),
            now.into(),
        ],
    )?;
    if changed == 0 {
        return Ok(Recorded::LeaseLost);
    }
    let task = &claim.task;
    refresh(tx, task.cluster);
    logs::append(tx, task.id, claim.attempt, log)?;
    let of = Of {
        cluster: task.cluster,
        project: &task.project,
        name: &task.cluster_name,
    };
    take_in(tx, of, observations, now)?;
    if *ended == Ended::Done {
        tx.outbox().done.push((task.id, now));
        paces::note(tx, claim, now)?;
    }
    // Nothing else sets free what a machine holds.
    let frees = matches!(
        task.action.kind(),
        Kind::Delete | Kind::Release | Kind::Name
    );
    if *ended == Ended::Done && frees {
        claims::settle(tx, task.cluster, now);
    }
    let (kind, message) = match ended {
        Ended::Done => ("task.done", title(task)),
        Ended::Retry { error, .. } => ("task.retry", format!("{} failed: {error}", title(task))),
        Ended::Stuck { error } => ("task.stuck", format!("{} is stuck: {error}", title(task))),
        Ended::Yield => ("task.yielded", format!("{} was given back", title(task))),
    };
    note(
        tx,
        (&task.project, now),
        kind,
        object(task.id),
        logs::shortened(message),
    );
    Ok(Recorded::Yes)
}
