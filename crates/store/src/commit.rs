//! Plan → tasks, in one transaction: is the plan still current, is what it needs free?
//!
//! **Invariant:** nothing else creates or withdraws tasks, takes claims or draws from the
//! disruption ledger.

use crate::Store;
use crate::body::{FORMAT, Scope, Tx, Value, encode, first, insert};
use crate::error::Error;
use crate::events::{count_of, note};
use crate::queue::{self, object, title};
use crate::{claims, clusters, intents, sealed, waits};
use model::cluster::Generation;
use model::id::{ClusterId, MachineId, TaskId};
use model::name::Name;
use model::task::{State, Task};
use model::time::Timestamp;
use plan::{Phase, Plan, Reason, spent};
use std::collections::BTreeSet;
use std::time::Duration;

/// Tasks that an event names before it only counts.
const NAMED_MAX: usize = 3;

/// Why a plan was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// What the plan was made from is no longer so; look and plan again.
    #[error("the plan was overtaken")]
    Stale,
    /// What it would do to one machine cannot be begun now.
    #[error("nothing can be begun on {machine} now")]
    Refused {
        /// Which machine.
        machine: MachineId,
        /// Why not now.
        reason: Reason,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Turns a plan into tasks, if it is still current and what it needs is free.
    ///
    /// A plan that changes nothing, not even what people are told, writes nothing.
    pub async fn commit(&self, plan: Plan, now: Timestamp) -> Result<(), CommitError> {
        let scope = Scope::Cluster(plan.cluster);
        self.runner
            .write(scope, move |tx| commit(tx, &plan, now))
            .await
    }
}

/// Whether a plan does more than tell people how things stand.
pub(crate) fn acts(plan: &Plan) -> bool {
    !(plan.tasks.is_empty()
        && plan.disturbs.is_empty()
        && plan.withdraw.is_empty()
        && plan.reopen.is_empty()
        && plan.release.is_empty())
}

/// Whether a plan is to be made again sooner than anybody knows.
pub(crate) fn sooner(plan: &Plan, known: Option<Timestamp>, now: Timestamp) -> bool {
    let wake = plan.wake.filter(|wake| *wake > now);
    wake.is_some_and(|wake| known.is_none_or(|known| wake < known))
}

/// When a cluster is planned again whose time is past already: what is in its way may tell nobody when it ends.
const WAKE_AGAIN: Duration = Duration::from_secs(30);

/// The row of a cluster as a commit finds it.
struct Head {
    project: Name,
    name: Name,
    phase: Phase,
    unplanned: bool,
    told: (String, String),
    wake: Option<Timestamp>,
}

fn commit(tx: &mut dyn Tx, plan: &Plan, now: Timestamp) -> Result<(), CommitError> {
    let head = current(tx, plan)?;
    if acts(plan) {
        for task in &plan.withdraw {
            withdraw(tx, *task, plan.cluster, now)?;
            note(
                tx,
                (&head.project, now),
                "task.withdrawn",
                object(*task),
                "nobody wants it any more".to_owned(),
            );
        }
        for task in &plan.reopen {
            reopen(tx, *task, plan.cluster, now)?;
            note(
                tx,
                (&head.project, now),
                "task.reopened",
                object(*task),
                "somebody asked for another attempt".to_owned(),
            );
        }
        draw(tx, plan, &head, now)?;
        if let Some((machine, reason)) = claims::take(tx, &plan.tasks, now)? {
            return Err(CommitError::Refused { machine, reason });
        }
        add(tx, &plan.tasks, now)?;
        queue::refresh(tx, plan.cluster);
        if !plan.tasks.is_empty() {
            note(
                tx,
                (&head.project, now),
                "plan.committed",
                format!("cluster/{}", head.name),
                begun(&plan.tasks),
            );
        }
    }
    if !waits::are_true(tx, plan, &head.project)? {
        return Err(CommitError::Stale);
    }
    tell(tx, plan, &head, now)?;
    if acts(plan) {
        // After what is told, because the cluster may itself wait for what is freed.
        claims::settle(tx, plan.cluster, now);
    }
    Ok(())
}

/// The row of the cluster, if the plan was made from what is still so.
fn current(tx: &mut dyn Tx, plan: &Plan) -> Result<Head, CommitError> {
    let row = first(
        tx,
        "SELECT project, name, generation, plans, phase, unplanned, summary, held, wake_at FROM clusters WHERE id = $1
         FOR UPDATE",
        &[plan.cluster.into()],
    )?;
    let Some(mut row) = row else {
        return Err(CommitError::Stale);
    };
    let (project, name) = (row.take()?, row.take()?);
    let (generation, plans): (Generation, u64) = (row.take()?, row.take()?);
    let head = Head {
        project,
        name,
        phase: row.take()?,
        unplanned: row.take()?,
        told: (row.take()?, row.take()?),
        wake: row.take()?,
    };
    if generation != plan.generation || plans != plan.parent || head.phase == Phase::Gone {
        return Err(CommitError::Stale);
    }
    Ok(head)
}

/// Withdraws a task that no worker holds; a worker that was quicker makes the plan stale.
fn withdraw(
    tx: &mut dyn Tx,
    task: TaskId,
    cluster: ClusterId,
    now: Timestamp,
) -> Result<(), CommitError> {
    let changed = tx.execute(
        "UPDATE tasks SET state = 'withdrawn', updated_at = $3
         WHERE id = $1 AND cluster = $2 AND state IN ('waiting', 'stuck')",
        &[task.into(), cluster.into(), now.into()],
    )?;
    if changed == 0 {
        return Err(CommitError::Stale);
    }
    Ok(intents::fulfil_retry(tx, task, now)?)
}

/// Makes a task due at once, and its wish fulfilled.
fn reopen(
    tx: &mut dyn Tx,
    task: TaskId,
    cluster: ClusterId,
    now: Timestamp,
) -> Result<(), CommitError> {
    let changed = tx.execute(
        "UPDATE tasks SET state = 'waiting', not_before = $3, error = NULL, updated_at = $3
         WHERE id = $1 AND cluster = $2 AND state IN ('waiting', 'stuck')",
        &[task.into(), cluster.into(), now.into()],
    )?;
    if changed == 0 {
        return Err(CommitError::Stale);
    }
    Ok(intents::fulfil_retry(tx, task, now)?)
}

/// Gives back rows of the disruption ledger and draws new ones, within the budgets.
///
/// A group is shared with other clusters, so it is held while its rows are counted: of two
/// planners that want its last slot one is told who has it.
fn draw(tx: &mut dyn Tx, plan: &Plan, head: &Head, now: Timestamp) -> Result<(), CommitError> {
    let mut shared = BTreeSet::new();
    for machine in &plan.release {
        let rows = tx.query(
            "DELETE FROM ledger WHERE cluster = $1 AND machine = $2 RETURNING disruption_group",
            &[plan.cluster.into(), (*machine).into()],
        )?;
        for mut row in rows {
            shared.extend(row.take::<Option<Name>>()?);
        }
    }
    for group in &shared {
        waits::hold_group(tx, &head.project, group)?;
    }
    if !shared.is_empty() {
        let budget = ("budget", "the budget that it waits for has changed");
        let who = Some(plan.cluster);
        clusters::unplan_waiting_for(tx, &head.project, who, &[budget], now)?;
    }
    for slot in &plan.disturbs {
        let elsewhere = match &slot.group {
            Some(group) => {
                waits::hold_group(tx, &head.project, group)?;
                clusters::elsewhere(tx, (&head.project, plan.cluster), group)?
            }
            None => Vec::new(),
        };
        let taken = clusters::ledger(tx, plan.cluster)?;
        if let Some(reason) = spent(&plan.budgets, &taken, &elsewhere, slot) {
            return Err(CommitError::Refused {
                machine: slot.machine,
                reason,
            });
        }
        tx.execute(
            "INSERT INTO ledger (cluster, machine, name, since, project, cluster_name, pool, disruption_group)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (cluster, machine) DO NOTHING",
            &[
                plan.cluster.into(),
                slot.machine.into(),
                (&slot.name).into(),
                now.into(),
                (&head.project).into(),
                (&head.name).into(),
                (&slot.pool).into(),
                slot.group.as_ref().into(),
            ],
        )?;
    }
    Ok(())
}

/// Adds tasks, unless a machine has an open one: two would work against each other.
fn add(tx: &mut dyn Tx, tasks: &[Task], now: Timestamp) -> Result<(), Error> {
    let row = |task: &Task| {
        Ok(vec![
            task.id.into(),
            (&task.project).into(),
            task.cluster.into(),
            (&task.cluster_name).into(),
            task.machine.id.into(),
            State::Waiting.as_str().into(),
            0_u32.into(),
            0_u32.into(),
            now.into(),
            false.into(),
            now.into(),
            now.into(),
            FORMAT.into(),
            encode(task)?,
        ])
    };
    let rows = tasks.iter().map(row).collect::<Result<Vec<_>, Error>>()?;
    let added = insert(
        tx,
        "tasks (id, project, cluster, cluster_name, machine, state, attempts, fence, not_before, lost,
                created_at, updated_at, format, body)",
        &rows,
        "ON CONFLICT (machine) WHERE state IN ('waiting', 'running', 'stuck') DO NOTHING",
    )?;
    if added < tasks.len() {
        return Err(Error::Other {
            attempted: "begin a second task on a machine that has an open one",
            cause: None,
        });
    }
    Ok(())
}

/// `2 tasks: create edge-control-01, create edge-control-02`.
fn begun(tasks: &[Task]) -> String {
    let named: Vec<_> = tasks.iter().take(NAMED_MAX).map(title).collect();
    let more = tasks.len() - named.len();
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!(
        "{}: {}{more}",
        count_of(tasks.len(), "task"),
        named.join(", ")
    )
}

/// Puts what people are told on the cluster's row, where it differs.
fn tell(tx: &mut dyn Tx, plan: &Plan, head: &Head, now: Timestamp) -> Result<(), Error> {
    let (summary, held) = (encode(&plan.summary)?, encode(&plan.held)?);
    let (told_summary, told_held) = &head.told;
    let told = summary == Value::from(told_summary) && held == Value::from(told_held);
    if told && !head.unplanned && !acts(plan) && !sooner(plan, head.wake, now) {
        return Ok(());
    }
    let later = |at: Timestamp| if at > now { at } else { now.plus(WAKE_AGAIN) };
    let wake = plan.wake.map(later);
    let phase = plan.summary.phase;
    // Also a plan that only tells overtakes those that were made before: what another process
    // has seen earlier must not be told after it.
    tx.execute(
        "UPDATE clusters SET plans = plans + 1, unplanned = 0, phase = $2, format = $3, summary = $4,
                             held = $5, updated_at = $6, wake_at = $7 WHERE id = $1",
        &[
            plan.cluster.into(),
            phase.as_str().into(),
            FORMAT.into(),
            summary,
            held,
            now.into(),
            wake.into(),
        ],
    )?;
    if phase != head.phase {
        let message = format!("{}: {}", phase.as_str(), plan.summary.message);
        note(
            tx,
            (&head.project, now),
            "cluster.phase",
            format!("cluster/{}", head.name),
            message,
        );
    }
    if phase == Phase::Gone {
        forget(tx, plan.cluster, now)?;
    }
    Ok(())
}

/// Clears away what only a cluster that exists can have; its generations stay readable.
pub(crate) fn forget(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<(), Error> {
    sealed::forget_cluster(tx, cluster)?;
    for sql in [
        "DELETE FROM machines WHERE cluster = $1",
        "DELETE FROM ledger WHERE cluster = $1",
        "DELETE FROM lanes WHERE cluster = $1",
        "DELETE FROM observations WHERE cluster = $1",
    ] {
        tx.execute(sql, &[cluster.into()])?;
    }
    claims::free_all(tx, cluster, now)?;
    intents::end_all(tx, cluster, now)
}
