//! Who does what to environments, and for how long.
//!
//! A claim is a lease with a fence, as with tasks. Whoever has one says where a script is begun before
//! it is: what was begun there is found there alone, so others leave it alone until it must have
//! ended. Until then nothing has begun, and whoever calls it off need not wait for anybody.

use super::{Order, look_next, note_action, output, settings};
use crate::Store;
use crate::body::{Row, Scope, Tx, Value, first};
use crate::error::Error;
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::Setting;
use model::environment::settings::Settings;
use model::environment::status::Deed;
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::share;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long after its deadline something that was begun elsewhere has certainly ended: whoever
/// watches over it there kills it at its deadline, and is given a moment for that.
const ENDED_AFTER: Duration = Duration::from_mins(1);

/// How long an action that this program cannot read is left alone.
const ASIDE_FOR: Duration = Duration::from_mins(10);

/// The right to do something to an environment until the lease runs out.
#[derive(Debug)]
#[must_use = "a claim dropped unrecorded blocks its environment until the lease runs out"]
pub struct ActionClaim {
    /// Which action.
    pub action: ActionId,
    /// Which environment.
    pub environment: EnvironmentId,
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// What is done.
    pub deed: Deed,
    /// Where it may have been begun before.
    pub begun_at: Option<String>,
    /// Whether somebody called it off.
    pub cancel: bool,
    /// How many lines of either stream are stored: what it printed, and what it complained about.
    pub lines: (u64, u64),
    /// What its project said when it was asked.
    pub settings: Settings,
    /// What the application is given.
    pub application: Vec<Setting>,
    /// How it is deployed.
    pub deployment: Vec<Setting>,
    /// Who asked.
    pub author: String,
    pub(super) fence: u64,
    pub(super) worker: String,
}

impl ActionClaim {
    /// Grows with every claim of the action.
    pub const fn fence(&self) -> u64 {
        self.fence
    }
}

/// What became of leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionBeat {
    /// Those that still hold, each an action and its fence.
    pub held: BTreeSet<(ActionId, u64)>,
    /// Those of them that somebody called off.
    pub cancelled: BTreeSet<(ActionId, u64)>,
}

impl Store {
    /// Claims actions that are due, at most `room`, the oldest first; of several projects the one
    /// of which the fewest run, and of none more than its share of what this worker has room for.
    pub async fn claim_actions(
        &self,
        (worker, place): (&str, &str),
        room: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<ActionClaim>, Error> {
        let nobody = (BTreeSet::new(), "");
        self.claim_actions_but(nobody, (worker, place), room, lease, now)
            .await
    }

    /// The same without what is not begun yet of some projects, which is told why it waits.
    pub async fn claim_actions_but(
        &self,
        (early, why): (BTreeSet<Name>, &'static str),
        (worker, place): (&str, &str),
        room: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<ActionClaim>, Error> {
        let (worker, place) = (worker.to_owned(), place.to_owned());
        let question = move |tx: &mut dyn Tx| {
            for project in &early {
                tx.execute(
                    "UPDATE environment_actions SET error = $2
                     WHERE project = $1 AND state = 'waiting' AND begun_at IS NULL AND error IS NULL",
                    &[project.into(), why.into()],
                )?;
            }
            if early.is_empty() && !why.is_empty() {
                tx.execute(
                    "UPDATE environment_actions SET error = NULL
                     WHERE state = 'waiting' AND begun_at IS NULL AND error = $1",
                    &[why.into()],
                )?;
            }
            let by = (worker.as_str(), place.as_str());
            claim(tx, by, (&early, room), now.plus(lease), now)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Says of an action that it waits, and for what, before it is begun.
    pub async fn delay_action(
        &self,
        claim: &ActionClaim,
        why: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (action, fence, worker) = (claim.action, claim.fence, claim.worker.clone());
        let (project, name, deed) = (claim.project.clone(), claim.name.clone(), claim.deed);
        let why = why.to_owned();
        let question = move |tx: &mut dyn Tx| {
            let delayed = tx.execute(
                "UPDATE environment_actions SET error = $4 WHERE id = $1 AND fence = $2 AND worker = $3
                 AND state = 'running'",
                &[action.into(), fence.into(), (&worker).into(), (&why).into()],
            )?;
            if delayed > 0 {
                let of = (action, deed, &name);
                note_action(tx, &project, of, (State::Running, &why), now);
            }
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Says where an action is begun, before it is; answers when it is ended, whether or not it is
    /// done. None where it is not this claim's any more: somebody called it off, or has it instead.
    pub async fn set_out_action(
        &self,
        claim: &ActionClaim,
        place: &str,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let (action, fence, worker) = (claim.action, claim.fence, claim.worker.clone());
        // It counts from the first time on: whoever takes it up again has no more time for it.
        let deadline = now.plus(claim.settings.patience.action);
        let place = place.to_owned();
        let question = move |tx: &mut dyn Tx| {
            let row = first(
                tx,
                "UPDATE environment_actions SET begun_at = COALESCE(begun_at, $4),
                     deadline = COALESCE(deadline, $5), error = NULL
                 WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running' RETURNING deadline",
                &[
                    action.into(),
                    fence.into(),
                    (&worker).into(),
                    (&place).into(),
                    deadline.into(),
                ],
            )?;
            row.map(|mut row| row.take()).transpose()
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Extends leases, each of an action and its fence.
    pub async fn beat_actions(
        &self,
        worker: &str,
        actions: BTreeSet<(ActionId, u64)>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<ActionBeat, Error> {
        let worker = worker.to_owned();
        let question = move |tx: &mut dyn Tx| beat(tx, &worker, &actions, now.plus(lease));
        self.runner.write(Scope::Rows, question).await
    }

    /// Gives an action back that goes on without anybody who follows it, until somebody does
    /// again, at that time at the earliest.
    pub async fn release_action(
        &self,
        claim: &ActionClaim,
        not_before: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (action, fence, worker) = (claim.action, claim.fence, claim.worker.clone());
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                &format!(
                    "{GIVE_BACK}, not_before = $1 WHERE id = $2 AND fence = $3 AND worker = $4
                     AND state = 'running' {RETURNED}"
                ),
                &[
                    not_before.into(),
                    action.into(),
                    fence.into(),
                    (&worker).into(),
                ],
            )?;
            told(tx, rows, "it was given back", now)?;
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Has those actions taken up by others whose workers fell silent; answers how many.
    pub async fn expire_actions(&self, now: Timestamp) -> Result<u32, Error> {
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                &format!(
                    "{GIVE_BACK}, not_before = $1 WHERE state = 'running' AND lease_until <= $1 {RETURNED}"
                ),
                &[now.into()],
            )?;
            told(tx, rows, "the worker fell silent", now)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Ends every lease of an action: for the start of a process that knows to be the only one.
    pub async fn void_actions(&self, now: Timestamp) -> Result<u32, Error> {
        self.runner
            .write(Scope::Rows, move |tx| void(tx, now))
            .await
    }

    /// When the next action is due, or its lease ends; in the past where one is due that nobody has
    /// room for, or that only another place may take up.
    pub async fn next_action(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let mut next: Option<Timestamp> = None;
            for sql in [
                "SELECT MIN(not_before) FROM environment_actions WHERE state = 'waiting'",
                "SELECT MIN(lease_until) FROM environment_actions WHERE state = 'running'",
            ] {
                let found = first(tx, sql, &[])?.map(|mut row| row.take::<Option<Timestamp>>());
                next = next.into_iter().chain(found.transpose()?.flatten()).min();
            }
            Ok(next)
        };
        self.runner.read(question).await
    }
}

/// What is begun is found by whoever began it, or judged by others in the end.
const GIVE_BACK: &str =
    "UPDATE environment_actions SET state = 'waiting', lease_until = NULL, worker = NULL,
     error = CASE WHEN begun_at IS NOT NULL THEN 'it waits for the server that began it: its script goes on there, \
     and is followed again when that server is back, or judged by a look when its time is over; `cancel` by force has \
     it judged now' END";

const RETURNED: &str = "RETURNING id, project, name, deed";

/// Tells of actions that wait again; answers how many.
fn told(tx: &mut dyn Tx, rows: Vec<Row>, why: &str, now: Timestamp) -> Result<u32, Error> {
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    for mut row in rows {
        let (id, project): (ActionId, Name) = (row.take()?, row.take()?);
        let (name, deed): (EnvironmentName, Deed) = (row.take()?, row.take()?);
        note_action(tx, &project, (id, deed, &name), (State::Waiting, why), now);
    }
    Ok(count)
}

fn void(tx: &mut dyn Tx, now: Timestamp) -> Result<u32, Error> {
    let rows = tx.query(
        &format!("{GIVE_BACK}, not_before = $1 WHERE state = 'running' {RETURNED}"),
        &[now.into()],
    )?;
    told(tx, rows, "the last run ended in the middle of it", now)
}

/// Doubts every action that has not ended: it may have been begun, somewhere, by somebody who
/// could not tell us. Nobody begins it again; what came of it is looked at.
pub(crate) fn doubt(tx: &mut dyn Tx, now: Timestamp) -> Result<(), Error> {
    void(tx, now)?;
    tx.execute(
        "UPDATE environment_actions SET begun_at = 'before the backup',
             started_at = COALESCE(started_at, $1), deadline = $2 WHERE state = 'waiting'",
        &[now.into(), now.minus(ENDED_AFTER).into()],
    )?;
    // What was seen is long past; what is not busy is looked at again.
    tx.execute(
        "UPDATE environment_checks SET due = $1 WHERE due IS NOT NULL",
        &[now.into()],
    )?;
    Ok(())
}

/// Waits no longer for whoever began an action, once nobody follows it: it counts as ended, nobody knows how.
pub(super) fn give_up(tx: &mut dyn Tx, action: ActionId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE environment_actions SET deadline = $2, not_before = $3
         WHERE id = $1 AND begun_at IS NOT NULL AND deadline > $2",
        &[action.into(), now.minus(ENDED_AFTER).into(), now.into()],
    )?;
    Ok(())
}

fn beat(
    tx: &mut dyn Tx,
    worker: &str,
    actions: &BTreeSet<(ActionId, u64)>,
    until: Timestamp,
) -> Result<ActionBeat, Error> {
    let sets: Vec<Vec<Value>> = actions
        .iter()
        .map(|(action, fence)| {
            vec![
                (*action).into(),
                (*fence).into(),
                worker.into(),
                until.into(),
            ]
        })
        .collect();
    let extended = tx.queries(
        "UPDATE environment_actions SET lease_until = $4
         WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running' RETURNING cancel",
        &sets,
    )?;
    let mut beat = ActionBeat::default();
    for (action, rows) in actions.iter().zip(extended) {
        for mut row in rows {
            beat.held.insert(*action);
            if row.take()? {
                beat.cancelled.insert(*action);
            }
        }
    }
    Ok(beat)
}

fn claim(
    tx: &mut dyn Tx,
    by: (&str, &str),
    room: (&BTreeSet<Name>, u32),
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<ActionClaim>, Error> {
    let mut claimed = Vec::new();
    for seq in fair(tx, by, room, now)? {
        claimed.extend(take(tx, seq, by.0, until, now)?);
    }
    Ok(claimed)
}

/// What somebody at this place may take up. What was begun elsewhere is not ours before it must
/// have ended.
const DUE: &str = "state = 'waiting' AND not_before <= $1
     AND (begun_at IS NULL OR begun_at = $2 OR deadline <= $3)";

/// What is done for one project, and what waits.
#[derive(Default)]
struct Lane {
    /// By everybody.
    running: u64,
    /// By this worker.
    own: u32,
    waiting: std::vec::IntoIter<u64>,
}

/// Which actions come next: as if each went to the project of which the fewest run then.
fn fair(
    tx: &mut dyn Tx,
    (worker, place): (&str, &str),
    (early, room): (&BTreeSet<Name>, u32),
    now: Timestamp,
) -> Result<Vec<u64>, Error> {
    let ended: Value = now.minus(ENDED_AFTER).into();
    let due: [Value; 3] = [now.into(), place.into(), ended];
    let sql = format!("SELECT DISTINCT project FROM environment_actions WHERE {DUE}");
    let projects = tx.query(&sql, &due)?;
    let mut lanes: BTreeMap<Name, Lane> = BTreeMap::new();
    for mut row in projects {
        let project: Name = row.take()?;
        let begun = if early.contains(&project) {
            "AND begun_at IS NOT NULL"
        } else {
            ""
        };
        let sql = format!(
            "SELECT seq FROM environment_actions WHERE {DUE} {begun} AND project = $4 ORDER BY seq LIMIT $5
             FOR UPDATE SKIP LOCKED"
        );
        let more: [Value; 2] = [(&project).into(), room.into()];
        let waiting = tx.query(&sql, &[due.as_slice(), &more].concat())?;
        let waiting = waiting.into_iter().map(|mut row| row.take());
        let waiting = waiting.collect::<Result<Vec<u64>, _>>()?;
        let waiting = waiting.into_iter();
        let lane = Lane {
            waiting,
            ..Lane::default()
        };
        lanes.insert(project, lane);
    }
    let mut taken = 0;
    let running = "SELECT project, COUNT(*), SUM(CASE WHEN worker = $1 THEN 1 ELSE 0 END)
         FROM environment_actions WHERE state = 'running' GROUP BY project";
    for mut row in tx.query(running, &[worker.into()])? {
        let (project, running, own): (Name, u64, u32) = (row.take()?, row.take()?, row.take()?);
        taken += own;
        if let Some(lane) = lanes.get_mut(&project) {
            (lane.running, lane.own) = (running, own);
        }
    }
    let several = settings::are_several(tx)?;
    let most = taken.saturating_add(room);
    let mut chosen = Vec::new();
    while taken < most {
        let least = lanes
            .values_mut()
            .filter(|lane| lane.waiting.len() > 0)
            .filter(|lane| !several || lane.own < share(most, taken - lane.own))
            .min_by_key(|lane| (lane.running, lane.waiting.as_slice().first().copied()));
        let Some(lane) = least else {
            break;
        };
        lane.running += 1;
        lane.own += 1;
        taken += 1;
        chosen.extend(lane.waiting.next());
    }
    Ok(chosen)
}

fn take(
    tx: &mut dyn Tx,
    seq: u64,
    worker: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<Option<ActionClaim>, Error> {
    let row = first(
        tx,
        "SELECT id, environment, project, name, deed, begun_at, cancel, author, fence, deadline, format, body
         FROM environment_actions WHERE seq = $1",
        &[seq.into()],
    )?;
    let Some(mut row) = row else {
        return Ok(None);
    };
    let (action, environment) = (row.take()?, row.take()?);
    let (project, name, deed): (Name, EnvironmentName, Deed) =
        (row.take()?, row.take()?, row.take()?);
    let begun_at: Option<String> = row.take()?;
    let (cancel, author, fence) = (row.take()?, row.take()?, row.take::<u64>()?);
    let deadline: Option<Timestamp> = row.take()?;
    let over = deadline.is_some_and(|deadline| deadline <= now.minus(ENDED_AFTER));
    let order: Order = match row.document() {
        Err(error) if error.is_unreadable() && cancel && over => {
            let of = (action, deed, &name);
            abandon(tx, (&project, environment), of, now)?;
            return Ok(None);
        }
        Err(error) if error.is_unreadable() => {
            set_aside(tx, action, &error, now)?;
            return Ok(None);
        }
        read => read?,
    };
    tx.execute(
        "UPDATE environment_actions SET state = 'running', fence = $2, worker = $3, lease_until = $4,
             started_at = COALESCE(started_at, $5), error = NULL WHERE seq = $1",
        &[
            seq.into(),
            (fence + 1).into(),
            worker.into(),
            until.into(),
            now.into(),
        ],
    )?;
    let of = (action, deed, &name);
    note_action(tx, &project, of, (State::Running, ""), now);
    Ok(Some(ActionClaim {
        action,
        environment,
        lines: output::lengths(tx, action)?,
        project,
        name,
        deed,
        begun_at,
        cancel,
        settings: order.settings,
        application: order.application,
        deployment: order.deployment,
        author,
        fence: fence + 1,
        worker: worker.to_owned(),
    }))
}

/// Ends an action that another version of the program wrote and somebody called off: nobody here can
/// follow it, and looks tell what came of it.
fn abandon(
    tx: &mut dyn Tx,
    (project, environment): (&Name, EnvironmentId),
    (action, deed, name): (ActionId, Deed, &EnvironmentName),
    now: Timestamp,
) -> Result<(), Error> {
    const TOLD: &str = "it was called off, and this version of the program cannot read what it was";
    tx.execute(
        "UPDATE environment_actions SET state = 'lost', ended_at = $2, error = $3 WHERE id = $1",
        &[action.into(), now.into(), TOLD.into()],
    )?;
    note_action(tx, project, (action, deed, name), (State::Lost, TOLD), now);
    look_next(tx, environment, Some(now))
}

/// Lets an action wait that another version of the program wrote, and says so: others go on.
fn set_aside(tx: &mut dyn Tx, id: ActionId, error: &Error, now: Timestamp) -> Result<(), Error> {
    let told = format!("{error} ({}); {}", error.code(), error.hint());
    tracing::error!(action = %id, error.code = error.code(), "{id} is set aside: {told}");
    tx.execute(
        "UPDATE environment_actions SET not_before = $2, error = $3 WHERE id = $1",
        &[id.into(), now.plus(ASIDE_FOR).into(), told.into()],
    )?;
    Ok(())
}
