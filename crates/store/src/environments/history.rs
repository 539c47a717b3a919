//! What was done to environments, and how they became what they are.

use super::{Effective, Order};
use crate::Store;
use crate::body::{Row, Tx, Value, first, for_each};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::Edits;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Status};
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;

/// Something that was, is or will be done to an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRow {
    /// Which.
    pub id: ActionId,
    /// Whose environment.
    pub project: Name,
    /// Which environment, in which of its lives.
    pub environment: EnvironmentId,
    /// What that is called.
    pub name: EnvironmentName,
    /// What is done.
    pub deed: Deed,
    /// How far it has come.
    pub state: State,
    /// Whether somebody called it off.
    pub cancel: bool,
    /// Who did.
    pub cancelled_by: Option<String>,
    /// When they did.
    pub cancelled_at: Option<Timestamp>,
    /// Who asked.
    pub author: String,
    /// Whether they took what may be lost.
    pub forced: bool,
    /// When they asked.
    pub created_at: Timestamp,
    /// When somebody first took it up.
    pub started_at: Option<Timestamp>,
    /// When it is ended, whether or not it is done.
    pub deadline: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The status of its script, where that exited.
    pub exit: Option<i32>,
    /// What went wrong.
    pub error: Option<String>,
    /// What its project said then.
    pub settings: Settings,
    /// What somebody made of the defaults.
    pub edits: Edits,
    /// What came of defaults and edits.
    pub effective: Effective,
    /// Whether it was done elsewhere, where nobody wrote down what came of defaults and edits.
    pub taken: bool,
}

/// That an environment became another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentChange {
    /// Its number: newer ones have greater.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// How it was; none where it was not.
    pub was: Option<Status>,
    /// How it became; none where it is gone.
    pub became: Option<Status>,
    /// Why, as one clause.
    pub because: String,
}

impl Store {
    /// What was done to an environment, newest first.
    pub async fn actions(
        &self,
        environment: EnvironmentId,
        page: Page,
    ) -> Result<Listed<ActionRow>, Error> {
        self.runner
            .read(move |tx| list(tx, environment, &page))
            .await
    }

    /// Which of these are known to have ended.
    pub async fn ended_actions(&self, actions: Vec<ActionId>) -> Result<Vec<ActionId>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let ids: Vec<Value> = actions.iter().map(|id| (*id).into()).collect();
            let sql =
                "SELECT id FROM environment_actions WHERE ended_at IS NOT NULL AND id IN ({})";
            let rows = for_each(tx, sql, &[], &ids)?;
            rows.into_iter().map(|mut row| row.take()).collect()
        };
        self.runner.read(question).await
    }

    /// One action of a project.
    pub async fn action(
        &self,
        project: &Name,
        action: ActionId,
    ) -> Result<Option<ActionRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let sql = format!("SELECT {COLUMNS} WHERE id = $1 AND project = $2");
            let row = first(tx, &sql, &[action.into(), (&project).into()])?;
            row.map(read).transpose()
        };
        self.runner.read(question).await
    }

    /// How an environment became what it is, newest first.
    pub async fn environment_changes(
        &self,
        environment: EnvironmentId,
        page: Page,
    ) -> Result<Listed<EnvironmentChange>, Error> {
        self.runner
            .read(move |tx| changes(tx, environment, &page))
            .await
    }
}

const COLUMNS: &str =
    "id, project, environment, name, deed, state, cancel, author, created_at,
     started_at, deadline, ended_at, exit_status, error, cancelled_by, cancelled_at, format, body FROM environment_actions";

fn read(mut row: Row) -> Result<ActionRow, Error> {
    let (id, project, environment) = (row.take()?, row.take()?, row.take()?);
    let (name, deed, state) = (row.take()?, row.take()?, row.take()?);
    let (cancel, author, created_at) = (row.take()?, row.take()?, row.take()?);
    let (started_at, deadline, ended_at) = (row.take()?, row.take()?, row.take()?);
    let exit = row.take::<Option<i64>>()?;
    let error = row.take()?;
    let (cancelled_by, cancelled_at) = (row.take()?, row.take()?);
    let order: Order = row.document()?;
    Ok(ActionRow {
        id,
        project,
        environment,
        name,
        deed,
        state,
        cancel,
        cancelled_by,
        cancelled_at,
        author,
        forced: order.forced,
        created_at,
        started_at,
        deadline,
        ended_at,
        exit: exit.and_then(|exit| i32::try_from(exit).ok()),
        error,
        settings: order.settings,
        edits: order.edits,
        effective: Effective {
            application: order.application,
            deployment: order.deployment,
        },
        taken: order.taken,
    })
}

fn list(
    tx: &mut dyn Tx,
    environment: EnvironmentId,
    page: &Page,
) -> Result<Listed<ActionRow>, Error> {
    let before = page.after_number("actions", u64::MAX)?;
    let rows = tx.query(
        &format!(
            "SELECT seq, {COLUMNS} WHERE environment = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"
        ),
        &[environment.into(), before.into(), page.rows().into()],
    )?;
    let mut actions = Vec::with_capacity(rows.len());
    for mut row in rows {
        let seq: u64 = row.take()?;
        match read(row) {
            // What another version wrote keeps nobody from the others, nor from those behind it.
            Err(error) if error.is_unreadable() => actions.push((seq, None)),
            read => actions.push((seq, Some(read?))),
        }
    }
    let listed = page.cut(actions, |(seq, _)| cursor("actions", &[seq]));
    Ok(Listed {
        items: listed
            .items
            .into_iter()
            .filter_map(|(_, row)| row)
            .collect(),
        next: listed.next,
    })
}

/// What is to be done exactly, unless another version of the program wrote it.
pub(super) fn action_order(tx: &mut dyn Tx, action: ActionId) -> Result<Option<Order>, Error> {
    let row = first(
        tx,
        "SELECT format, body FROM environment_actions WHERE id = $1",
        &[action.into()],
    )?;
    row.map_or(Ok(None), |mut row| row.readable())
}

fn changes(
    tx: &mut dyn Tx,
    environment: EnvironmentId,
    page: &Page,
) -> Result<Listed<EnvironmentChange>, Error> {
    let before = page.after_number("environment-changes", u64::MAX)?;
    let rows = tx.query(
        "SELECT id, at, was, became, because FROM environment_changes
         WHERE environment = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
        &[environment.into(), before.into(), page.rows().into()],
    )?;
    let change = |mut row: Row| {
        Ok(EnvironmentChange {
            id: row.take()?,
            at: row.take()?,
            was: row.take()?,
            // One that is gone has no status.
            became: row.take::<String>()?.parse().ok(),
            because: row.take()?,
        })
    };
    let rows = rows.into_iter().map(change).collect::<Result<_, Error>>()?;
    Ok(page.cut(rows, |last| cursor("environment-changes", &[&last.id])))
}
