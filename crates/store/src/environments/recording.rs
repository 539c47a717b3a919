//! How actions end, and what becomes of environments by that.

use super::cancelling::{Unbegun, fall_back};
use super::history::action_order;
use super::output::{self, Printed};
use super::telling::{Happened, tell};
use super::{
    ActionClaim, Known, forget_unnamed, known_by_id, let_go, look_next, note_action, note_change,
    store_body,
};
use crate::Store;
use crate::audit;
use crate::body::{Scope, Tx, first};
use crate::error::Error;
use crate::events::note;
use crate::queue::Recorded;
use model::environment::action::State;
use model::environment::link::Link;
use model::environment::notify::Action;
use model::environment::status::{Deed, Status};
use model::id::ActionId;
use model::time::Timestamp;
use plan::environment::{Became, Ended, ended, falls_back};
use plan::notify::Happening;

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionEnded {
    /// It did what it should.
    Done,
    /// It did not.
    Failed,
    /// It could not be begun, and was not.
    Unbegun,
    /// Somebody called it off.
    Cancelled,
    /// Somebody called it off before it was begun.
    Withdrawn,
    /// Nobody knows, and this is what it looks like.
    Lost(Ended),
}

impl ActionEnded {
    const fn state(self) -> State {
        match self {
            Self::Done => State::Done,
            Self::Failed | Self::Unbegun => State::Failed,
            Self::Cancelled | Self::Withdrawn => State::Cancelled,
            Self::Lost(_) => State::Lost,
        }
    }

    /// Whether somebody should be told: who called it off knows.
    const fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Unbegun | Self::Lost(Ended::Failed | Ended::Unbegun) => true,
            Self::Done | Self::Cancelled | Self::Withdrawn | Self::Lost(Ended::Done) => false,
        }
    }

    const fn verdict(self) -> Ended {
        match self {
            Self::Done => Ended::Done,
            Self::Failed | Self::Cancelled => Ended::Failed,
            Self::Unbegun | Self::Withdrawn => Ended::Unbegun,
            Self::Lost(how) => how,
        }
    }
}

/// How an action ended, and what there is to record of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    /// How.
    pub ended: ActionEnded,
    /// The status of its script, where that exited.
    pub exit: Option<i32>,
    /// What went wrong, as a sentence.
    pub error: Option<String>,
    /// Where the environment is reached from now on; none leaves that as it is.
    pub links: Option<Vec<Link>>,
    /// When somebody is to look at it.
    pub look_at: Timestamp,
}

impl Store {
    /// Adds what an action printed.
    pub async fn append_output(
        &self,
        claim: &ActionClaim,
        lines: Vec<Printed>,
    ) -> Result<Recorded, Error> {
        let (action, fence) = (claim.action, claim.fence);
        let question = move |tx: &mut dyn Tx| {
            let held = first(
                tx,
                "SELECT 1 FROM environment_actions WHERE id = $1 AND fence = $2 AND state = 'running' FOR UPDATE",
                &[action.into(), fence.into()],
            )?;
            if held.is_none() {
                return Ok(Recorded::LeaseLost);
            }
            output::append(tx, action, &lines)?;
            Ok(Recorded::Yes)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Notes where the environment of an action is reached, before that has ended.
    pub async fn note_links(
        &self,
        claim: &ActionClaim,
        links: Vec<Link>,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        let (action, fence, worker) = (claim.action, claim.fence, claim.worker.clone());
        let environment = claim.environment;
        let question = move |tx: &mut dyn Tx| {
            let held = first(
                tx,
                "SELECT 1 FROM environment_actions
                 WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running' FOR UPDATE",
                &[action.into(), fence.into(), (&worker).into()],
            )?;
            let known = known_by_id(tx, environment)?;
            let (Some(_), Some(mut known)) = (held, known) else {
                return Ok(Recorded::LeaseLost);
            };
            if known.body.links != links {
                known.body.links.clone_from(&links);
                store_body(tx, environment, &known.body)?;
                let message = format!("{} is reached by {} links", known.name, links.len());
                let of = (&known.project, now);
                let object = super::object(&known.name);
                note(tx, of, "environment.links", object, message);
            }
            Ok(Recorded::Yes)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Records how an action ended, with what it printed last: all of it, or nothing.
    ///
    /// Whoever is not sure whether it was recorded records again: twice is once.
    pub async fn end_action(
        &self,
        claim: &ActionClaim,
        end: ActionEnd,
        lines: Vec<Printed>,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        let held = Held {
            action: claim.action,
            fence: claim.fence,
            worker: claim.worker.clone(),
        };
        self.runner
            .write(Scope::Rows, move |tx| record(tx, &held, &end, &lines, now))
            .await
    }
}

/// What proves that somebody may record.
struct Held {
    action: ActionId,
    fence: u64,
    worker: String,
}

fn record(
    tx: &mut dyn Tx,
    held: &Held,
    end: &ActionEnd,
    lines: &[Printed],
    now: Timestamp,
) -> Result<Recorded, Error> {
    let row = first(
        tx,
        "SELECT environment, deed, cancel, cancelled_by FROM environment_actions
         WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running' FOR UPDATE",
        &[held.action.into(), held.fence.into(), (&held.worker).into()],
    )?;
    let Some(mut row) = row else {
        return Ok(Recorded::LeaseLost);
    };
    let (environment, deed) = (row.take()?, row.take()?);
    let (cancel, by): (bool, Option<String>) = (row.take()?, row.take()?);
    let end = &called_off(end, cancel, by);
    let error = end.error.clone().map(audit::kept);
    tx.execute(
        "UPDATE environment_actions SET state = $2, exit_status = $3, error = $4, ended_at = $5,
             lease_until = NULL, worker = NULL WHERE id = $1",
        &[
            held.action.into(),
            end.ended.state().into(),
            end.exit.map(i64::from).into(),
            error.clone().into(),
            now.into(),
        ],
    )?;
    output::append(tx, held.action, lines)?;
    let Some(known) = known_by_id(tx, environment)? else {
        return Ok(Recorded::Yes);
    };
    let error = error.unwrap_or_default();
    let of = (held.action, deed, &known.name);
    let told = (end.ended.state(), error.as_str());
    note_action(tx, &known.project, of, told, now);
    let of = Failed {
        action: held.action,
        deed,
        error: &error,
    };
    if let Some(why) = unbegun(deed, end.ended) {
        undo(tx, &known, (&of, why), now)?;
        return Ok(Recorded::Yes);
    }
    match ended(known.standing.status, deed, end.ended.verdict()) {
        Became::Gone => let_go(tx, &known, &format!("{deed} is done"), now)?,
        Became::Is(status) => {
            let because = match end.ended {
                ActionEnded::Cancelled | ActionEnded::Withdrawn => {
                    format!("{deed} was cancelled: {error}")
                }
                ActionEnded::Done
                | ActionEnded::Failed
                | ActionEnded::Unbegun
                | ActionEnded::Lost(_) => format!("{deed} has ended: {error}"),
            };
            // That it became another says it already.
            if end.ended.is_failure() && status == known.standing.status {
                tell_failed(tx, &known, &of, now)?;
            }
            stay(tx, known, (status, &because), end, now)?;
        }
    }
    Ok(Recorded::Yes)
}

/// Why something was never begun, where the environment is as it was before.
fn unbegun(deed: Deed, how: ActionEnded) -> Option<Unbegun> {
    let why = match how {
        ActionEnded::Withdrawn => Unbegun::CalledOff,
        ActionEnded::Unbegun => Unbegun::Failed,
        ActionEnded::Done | ActionEnded::Failed | ActionEnded::Cancelled | ActionEnded::Lost(_) => {
            return None;
        }
    };
    falls_back(deed, why == Unbegun::CalledOff).then_some(why)
}

/// Has an environment be as it was before something that was never begun, and deploys nothing.
fn undo(
    tx: &mut dyn Tx,
    known: &Known,
    (of, why): (&Failed<'_>, Unbegun),
    now: Timestamp,
) -> Result<(), Error> {
    let order = action_order(tx, of.action)?;
    tx.execute(
        "UPDATE environment_actions SET begun_at = NULL WHERE id = $1",
        &[of.action.into()],
    )?;
    let (deed, error) = (of.deed, of.error);
    let because = match why {
        Unbegun::CalledOff => format!("{deed} was cancelled: {error}"),
        Unbegun::Failed => format!("{deed} could not be begun: {error}"),
    };
    if why == Unbegun::Failed {
        tell_failed(tx, known, of, now)?;
    }
    fall_back(tx, known, order, (why, &because), now)
}

/// What is to be recorded of an end when somebody may have called it off: however that ended which
/// they wanted to end, it has not failed. What did all that it should is done nevertheless.
fn called_off(end: &ActionEnd, cancel: bool, by: Option<String>) -> ActionEnd {
    let cancelled = end.ended.state() == State::Cancelled;
    if !cancelled && (!cancel || end.ended.verdict() == Ended::Done) {
        return end.clone();
    }
    let by = by.unwrap_or_else(|| "somebody".to_owned());
    let rest = end.error.as_ref().filter(|_| !cancelled);
    let rest = rest.map_or_else(String::new, |rest| format!("; {rest}"));
    ActionEnd {
        ended: match end.ended.verdict() {
            Ended::Unbegun => ActionEnded::Withdrawn,
            Ended::Done | Ended::Failed => ActionEnded::Cancelled,
        },
        error: Some(format!("{by} called it off{rest}")),
        ..end.clone()
    }
}

/// An action that did not do what it should.
struct Failed<'a> {
    action: ActionId,
    deed: Deed,
    error: &'a str,
}

/// Tells of it.
fn tell_failed(
    tx: &mut dyn Tx,
    known: &Known,
    failed: &Failed<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let because = format!("{} has failed: {}", failed.deed, failed.error);
    let happened = Happened {
        id: known.id,
        project: &known.project,
        name: &known.name,
        what: Happening::ActionFailed,
        // Each action has a generation of its own.
        number: known.generation,
        because: &because,
        action: Some(Action {
            id: failed.action,
            deed: failed.deed,
            error: failed.error.to_owned(),
        }),
    };
    tell(tx, &happened, now)
}

/// Has an environment be what an action that has ended makes of it, until somebody looks.
fn stay(
    tx: &mut dyn Tx,
    mut known: Known,
    (became, because): (Status, &str),
    end: &ActionEnd,
    now: Timestamp,
) -> Result<(), Error> {
    let was = known.standing.status;
    // Who is on the way is given time from here on.
    let since = if became != was || became.is_pending() {
        now
    } else {
        known.standing.since
    };
    tx.execute(
        "UPDATE environments SET status = $2, status_since = $3, failed = $4, updated_at = $5,
             asleep = CASE WHEN $2 = 'cleanup-failed' THEN NULL ELSE asleep END WHERE id = $1",
        &[
            known.id.into(),
            became.into(),
            since.into(),
            (end.ended.verdict() != Ended::Done).into(),
            now.into(),
        ],
    )?;
    let links = end.links.as_ref();
    if let Some(links) = links.filter(|links| **links != known.body.links) {
        known.body.links.clone_from(links);
        store_body(tx, known.id, &known.body)?;
    }
    forget_unnamed(tx, &known, &known.body.edits)?;
    let due = (became != Status::CleanupFailed).then_some(end.look_at);
    look_next(tx, known.id, due)?;
    if became == was {
        return Ok(());
    }
    let of = (known.id, &known.project, &known.name);
    note_change(tx, of, (Some(was), Some(became)), because, now)
}
