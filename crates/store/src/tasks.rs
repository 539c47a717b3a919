//! Tasks as lists and the planner want to read them.

use crate::Store;
use crate::body::{Row, Tx, Value, first};
use crate::error::Error;
use crate::lives;
use crate::page::{Listed, Page, cursor};
use model::id::{ClusterId, MachineId, TaskId};
use model::name::Name;
use model::sealed::Owner;
use model::task::{Around, Open, State, Task};
use model::time::Timestamp;
use plan::{VAIN_MAX, Vain};

/// Which tasks a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only those of clusters of this name, or of the one that has it for its id.
    pub cluster: Option<Name>,
    /// Only those in this state.
    pub state: Option<State>,
}

/// One task and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// What is to be done.
    pub task: Task,
    /// Where it stands.
    pub state: State,
    /// How many attempts were begun.
    pub attempts: u32,
    /// Grows with every claim.
    pub fence: u64,
    /// When the next attempt is due.
    pub not_before: Timestamp,
    /// Until when a worker may be silent.
    pub lease_until: Option<Timestamp>,
    /// Who works on it.
    pub worker: Option<String>,
    /// How the last attempt ended, when it did not end well.
    pub error: Option<String>,
    /// When it was planned.
    pub created_at: Timestamp,
    /// When it last changed its state.
    pub updated_at: Timestamp,
}

impl Store {
    /// Tasks of a project, newest first.
    pub async fn tasks(
        &self,
        project: &Name,
        filter: TaskFilter,
        page: Page,
    ) -> Result<Listed<TaskRow>, Error> {
        let project = project.clone();
        self.runner
            .read(move |tx| list(tx, &project, &filter, &page))
            .await
    }

    /// One task.
    pub async fn task(&self, project: &Name, task: TaskId) -> Result<Option<TaskRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let sql = format!("{COLUMNS} WHERE id = $1 AND project = $2");
            let found = first(tx, &sql, &[task.into(), (&project).into()])?;
            let read = |mut found: Row| {
                found.take::<u64>()?;
                let task = found.document()?;
                standing(task, found)
            };
            found.map(read).transpose()
        };
        self.runner.read(question).await
    }
}

const COLUMNS: &str =
    "SELECT seq, format, body, state, attempts, fence, not_before, lease_until, worker,
    error, created_at, updated_at FROM tasks";

/// One row of a list; no task where that cannot be read, which keeps nobody from the others.
fn listed(mut row: Row) -> Result<(u64, Option<TaskRow>), Error> {
    let (seq, task) = (row.take()?, row.readable()?);
    let row = task.map(|task| standing(task, row)).transpose()?;
    Ok((seq, row))
}

/// A task and, from the other columns, where it stands.
fn standing(task: Task, mut row: Row) -> Result<TaskRow, Error> {
    Ok(TaskRow {
        task,
        state: row.take()?,
        attempts: row.take()?,
        fence: row.take()?,
        not_before: row.take()?,
        lease_until: row.take()?,
        worker: row.take()?,
        error: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    })
}

fn list(
    tx: &mut dyn Tx,
    project: &Name,
    filter: &TaskFilter,
    page: &Page,
) -> Result<Listed<TaskRow>, Error> {
    let before = page.after_number("tasks", u64::MAX)?;
    let mut params: Vec<Value> = vec![project.into(), before.into(), page.rows().into()];
    let mut conditions = vec!["project = $1".to_owned(), "seq < $2".to_owned()];
    if let Some(cluster) = &filter.cluster {
        params.push(cluster.into());
        let place = params.len();
        conditions.push(if lives::is_id(cluster) {
            format!("(cluster_name = ${place} OR cluster = ${place})")
        } else {
            format!("cluster_name = ${place}")
        });
    }
    if let Some(state) = filter.state {
        params.push(state.as_str().into());
        conditions.push(format!("state = ${}", params.len()));
    }
    let conditions = conditions.join(" AND ");
    let sql = format!("{COLUMNS} WHERE {conditions} ORDER BY seq DESC LIMIT $3");
    let rows: Vec<_> = tx
        .query(&sql, &params)?
        .into_iter()
        .map(listed)
        .collect::<Result<_, _>>()?;
    let Listed { items, next } = page.cut(rows, |(seq, _)| cursor("tasks", &[seq]));
    Ok(Listed {
        items: items.into_iter().filter_map(|(_, row)| row).collect(),
        next,
    })
}

/// The unfinished tasks of a cluster, oldest first.
pub(crate) fn open(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Vec<Open>, Error> {
    let rows = tx.query(
        "SELECT format, body, state, attempts, not_before, error FROM tasks
         WHERE cluster = $1 AND state IN ('waiting', 'running', 'stuck') ORDER BY seq",
        &[cluster.into()],
    )?;
    let mut all = Vec::with_capacity(rows.len());
    for mut row in rows {
        let task: Task = row.document()?;
        let mut open = Open {
            id: task.id,
            machine: task.machine.id,
            origin: task.machine.origin,
            action: task.action,
            state: row.take()?,
            attempts: row.take()?,
            not_before: row.take()?,
            error: row.take()?,
            through: through(task.around.as_ref()),
            corrected: false,
        };
        if open.state == State::Stuck {
            open.corrected = corrected(tx, &task.project, &open)?;
        }
        all.push(open);
    }
    Ok(all)
}

/// What ended well again and again at a machine since anything of its cluster was last seen to change,
/// as often as the planner lets it at most.
pub(crate) fn vain(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    changed_at: Timestamp,
) -> Result<Vec<Vain>, Error> {
    // Who is done is due since then.
    let often = tx.query(
        "SELECT machine, MAX(not_before) FROM tasks
         WHERE cluster = $1 AND state = 'done' AND not_before > $2
         GROUP BY machine HAVING COUNT(*) >= $3",
        &[cluster.into(), changed_at.into(), VAIN_MAX.into()],
    )?;
    let mut all = Vec::new();
    for mut row in often {
        let (machine, last): (MachineId, Timestamp) = (row.take()?, row.take()?);
        let rows = tx.query(
            "SELECT format, body FROM tasks
             WHERE cluster = $1 AND state = 'done' AND not_before > $2 AND machine = $3
             ORDER BY seq DESC LIMIT $4",
            &[
                cluster.into(),
                changed_at.into(),
                machine.into(),
                VAIN_MAX.into(),
            ],
        )?;
        let mut tasks = Vec::with_capacity(rows.len());
        for mut row in rows {
            tasks.extend(row.readable::<Task>()?);
        }
        let same = |first: &Task| {
            tasks
                .iter()
                .filter(|task| task.action == first.action)
                .count()
        };
        let times = tasks.first().map_or(0, same);
        if let (Some(first), Ok(times @ VAIN_MAX..)) = (tasks.first(), u32::try_from(times)) {
            all.push(Vain {
                machine,
                action: first.action.clone(),
                times,
                last,
            });
        }
    }
    Ok(all)
}

/// The members of the control plane by which a task reaches the API.
fn through(around: Option<&Around>) -> Vec<MachineId> {
    let through = around.into_iter().flat_map(|around| &around.through);
    through.map(|machine| machine.id).collect()
}

/// Whether a secret that a task or its machine names was set since the task was due.
fn corrected(tx: &mut dyn Tx, project: &Name, open: &Open) -> Result<bool, Error> {
    for secret in open.origin.secrets().chain(open.action.secrets().cloned()) {
        let owner = Owner::Secret(secret.name.clone()).to_string();
        let set = first(
            tx,
            "SELECT 1 FROM sealed WHERE project = $1 AND owner = $2 AND updated_at > $3 LIMIT 1",
            &[project.into(), owner.into(), open.not_before.into()],
        )?;
        if set.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
