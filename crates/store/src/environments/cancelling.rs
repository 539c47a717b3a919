//! Calling off what was asked.

use super::claiming::give_up;
use super::history::action_order;
use super::{
    Before, EnvironmentError, Known, Order, Rest, enter, forget_unnamed, known_by_id, let_go,
    look_next, note_action, note_change, reporting,
};
use crate::Store;
use crate::audit::{self, Actor};
use crate::body::{FORMAT, Scope, Tx, encode, first};
use crate::error::Error;
use crate::events::note;
use model::environment::action::State;
use model::environment::status::{Deed, Status};
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::git::is_forsaken;
use plan::environment::{Became, withdrawn};

/// What becomes of an action that somebody called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun, and never will: the environment is as it was before.
    AtOnce,
    /// It may have begun: whoever is at it ends it.
    Asked,
}

impl Store {
    /// Calls off an action of a project that has not ended.
    ///
    /// What never began leaves the environment with the status, edits and commit that it had before. A
    /// secret value that was replaced stays replaced: nobody has the old one any more.
    pub async fn cancel_action(
        &self,
        project: &Name,
        action: ActionId,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Cancelled, EnvironmentError> {
        let project = project.clone();
        self.runner
            .write(Scope::Rows, move |tx| {
                cancel(tx, &project, action, (&actor, false), now)
            })
            .await
    }
}

pub(super) fn cancel(
    tx: &mut dyn Tx,
    project: &Name,
    action: ActionId,
    (actor, force): (&Actor, bool),
    now: Timestamp,
) -> Result<Cancelled, EnvironmentError> {
    let row = first(
        tx,
        "SELECT environment, deed, state, begun_at FROM environment_actions WHERE id = $1 AND project = $2
         FOR UPDATE",
        &[action.into(), project.into()],
    )?;
    let Some(mut row) = row else {
        return Err(EnvironmentError::NoAction { action });
    };
    let (environment, deed): (EnvironmentId, Deed) = (row.take()?, row.take()?);
    let (state, begun_at): (State, Option<String>) = (row.take()?, row.take()?);
    if state.is_ended() {
        return Err(EnvironmentError::Ended { action, state });
    }
    // Whoever is busy is not gone.
    let Some(known) = known_by_id(tx, environment)? else {
        return Err(EnvironmentError::NoAction { action });
    };
    // Who has claimed it says so before it is begun, and does not begin what is not theirs any more.
    let began = begun_at.is_some();
    if began {
        tx.execute(
            // Of several who call it off the first did.
            "UPDATE environment_actions SET cancel = 1, cancelled_by = COALESCE(cancelled_by, $2),
                 cancelled_at = COALESCE(cancelled_at, $3),
                 not_before = CASE WHEN state = 'waiting' THEN $3 ELSE not_before END WHERE id = $1",
            &[action.into(), (&actor.name).into(), now.into()],
        )?;
        // Whoever is at it is told by its next heartbeat, and makes it soon when there is news.
        let message = format!(
            "{deed} {} is to be ended: {} called it off",
            known.name, actor.name
        );
        if force {
            give_up(tx, action, now)?;
        }
        let object = super::action_object(action);
        note(tx, (project, now), "action.cancelling", object, message);
    } else {
        tx.execute(
            "UPDATE environment_actions SET state = 'cancelled', cancel = 1, ended_at = $2, error = $3,
                 cancelled_by = $4, cancelled_at = $2, lease_until = NULL, worker = NULL WHERE id = $1",
            &[
                action.into(),
                now.into(),
                audit::kept(format!("{} called it off before it began", actor.name)).into(),
                (&actor.name).into(),
            ],
        )?;
        let order = action_order(tx, action)?;
        let because = format!("{} called off {deed} before it began", actor.name);
        fall_back(tx, &known, order, (Unbegun::CalledOff, &because), now)?;
        let of = (action, deed, &known.name);
        let told = format!("{} called it off before it began", actor.name);
        note_action(tx, project, of, (State::Cancelled, &told), now);
    }
    // Whoever calls something off wants it as it is: it is not put to sleep again at once.
    tx.execute(
        "UPDATE environments SET used_at = $2 WHERE id = $1",
        &[known.id.into(), now.into()],
    )?;
    let by = (actor, "environment.cancel");
    let detail = format!("{deed} {action}");
    let generations = (Some(known.generation), None);
    enter(tx, (project, &known.name), by, generations, detail, now);
    Ok(if began {
        Cancelled::Asked
    } else {
        Cancelled::AtOnce
    })
}

/// Has the service of a commit told that this was called off, where nothing else tells it.
fn report_forsaken(
    tx: &mut dyn Tx,
    known: &Known,
    before: Option<&Before>,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(origin) = &known.body.origin else {
        return Ok(());
    };
    let was = before.map(|before| {
        let of = before.origin.as_ref().unwrap_or(origin);
        (before.status, of.sha.as_str())
    });
    if !is_forsaken(known.standing.status, &origin.sha, was) {
        return Ok(());
    }
    reporting::report_called_off(tx, known, origin, now)
}

/// Why something was never begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbegun {
    /// Somebody called it off.
    CalledOff,
    /// It could not be, which those are told who want to know.
    Failed,
}

/// Has an environment be as it was before something was asked that was never begun.
pub(super) fn fall_back(
    tx: &mut dyn Tx,
    known: &Known,
    order: Option<Order>,
    (why, because): (Unbegun, &str),
    now: Timestamp,
) -> Result<(), Error> {
    let Some(order) = order else {
        // Nobody here can read how it was before; looks tell how it is.
        return look_next(tx, known.id, Some(now));
    };
    let before = order.before;
    let failed = why == Unbegun::Failed;
    if !failed {
        report_forsaken(tx, known, before.as_ref(), now)?;
    }
    let status = match withdrawn(before.as_ref().map(|before| before.status)) {
        Became::Gone => return let_go(tx, known, because, now),
        Became::Is(status) => status,
    };
    let Some(before) = before else {
        return Ok(());
    };
    let body = super::Body {
        edits: before.edits,
        origin: before.origin.or_else(|| known.body.origin.clone()),
        ..known.body.clone()
    };
    tx.execute(
        "UPDATE environments SET generation = generation + 1, status = $2, status_since = $3, failed = $4,
             updated_at = $5, format = $6, body = $7 WHERE id = $1",
        &[
            known.id.into(),
            status.into(),
            before.since.into(),
            (before.failed || failed && !status.is_pending()).into(),
            now.into(),
            FORMAT.into(),
            encode(&body)?,
        ],
    )?;
    if let Some(rest) = before.rest {
        rest_again(tx, known, rest, why, now)?;
    }
    forget_unnamed(tx, known, &body.edits)?;
    let due = (status != Status::CleanupFailed).then_some(now);
    look_next(tx, known.id, due)?;
    let was = known.standing.status;
    if status == was {
        return Ok(());
    }
    let of = (known.id, &known.project, &known.name);
    note_change(tx, of, (Some(was), Some(status)), because, now)
}

/// Has an environment rest as it did before, and until then.
fn rest_again(
    tx: &mut dyn Tx,
    known: &Known,
    rest: Rest,
    why: Unbegun,
    now: Timestamp,
) -> Result<(), Error> {
    let extended = known.expires_at != rest.made;
    let expires_at = if extended {
        known.expires_at
    } else {
        rest.expires_at
    };
    let (asleep, from_now) = match why {
        Unbegun::CalledOff => (rest.asleep, rest.woken.is_some()),
        // Nobody has said that it is to rest.
        Unbegun::Failed => (rest.woken.or(rest.asleep), false),
    };
    tx.execute(
        "UPDATE environments SET asleep = $2, expires_at = $3,
             archived_at = CASE WHEN $4 = 1 THEN $5 ELSE archived_at END WHERE id = $1",
        &[
            known.id.into(),
            asleep.into(),
            expires_at.into(),
            from_now.into(),
            now.into(),
        ],
    )?;
    Ok(())
}
