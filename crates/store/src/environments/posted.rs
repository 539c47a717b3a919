//! Messages to somebody outside: how they come in, and how people see them.
//!
//! Whoever changes something puts a message with it, in the same transaction ([`post`]): what is
//! told happened, and what happened is told. What a message says is a document that only those read
//! who send its kind.

use crate::Store;
use crate::audit::Actor;
use crate::body::{FORMAT, Row, Scope, Tx, Value, first};
use crate::error::Error;
use crate::events::note;
use crate::page::{Listed, Page, cursor};
use model::environment::EnvironmentName;
use model::environment::delivery::State;
use model::id::{DeliveryId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;

/// A message on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryDraft {
    /// Which: the same is taken once, however often it is given.
    pub id: DeliveryId,
    /// Whose.
    pub project: Name,
    /// Who sends it: `webhook`, `slack`, `script`.
    pub kind: String,
    /// Who is told. Those of one kind and target are sent one after the other.
    pub target: String,
    /// Of which environment, where it is about one.
    pub environment: Option<(EnvironmentId, EnvironmentName)>,
    /// What it is about, in a word.
    pub occasion: String,
    /// What it says: a document of its kind.
    pub document: String,
}

/// A message, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Which.
    pub id: DeliveryId,
    /// How it is sent.
    pub kind: String,
    /// Who is told.
    pub target: String,
    /// Of which environment.
    pub environment: Option<EnvironmentName>,
    /// What it is about.
    pub occasion: String,
    /// How far it has come.
    pub state: State,
    /// How often it was sent.
    pub tries: u32,
    /// When it is sent next.
    pub due: Timestamp,
    /// What was answered last, or why nobody did.
    pub said: Option<String>,
    /// When it came.
    pub created_at: Timestamp,
    /// When it arrived, or was given up.
    pub ended_at: Option<Timestamp>,
}

/// Which messages a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only those that have come so far.
    pub state: Option<State>,
    /// Only those to this target.
    pub target: Option<String>,
    /// Only those about this environment, in this life of it.
    pub environment: Option<EnvironmentId>,
}

/// Why a message is not sent again.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// There is none.
    #[error("there is no delivery {delivery}")]
    NotFound {
        /// Which one.
        delivery: DeliveryId,
    },
    /// It has arrived.
    #[error("delivery {delivery} has arrived already")]
    Delivered {
        /// Which one.
        delivery: DeliveryId,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Takes a message that nothing else is stored with; answers whether it is new.
    pub async fn post_delivery(&self, draft: DeliveryDraft, now: Timestamp) -> Result<bool, Error> {
        self.runner
            .write(Scope::Rows, move |tx| {
                let new = post(tx, &draft, now)?;
                if new {
                    let message = format!("a message to {} waits", draft.target);
                    let object = format!("delivery/{}", draft.id);
                    note(
                        tx,
                        (&draft.project, now),
                        "delivery.waiting",
                        object,
                        message,
                    );
                }
                Ok(new)
            })
            .await
    }

    /// Messages of a project, newest first.
    pub async fn deliveries(
        &self,
        project: &Name,
        filter: DeliveryFilter,
        page: Page,
    ) -> Result<Listed<DeliveryRow>, Error> {
        let project = project.clone();
        self.runner
            .read(move |tx| list(tx, &project, &filter, &page))
            .await
    }

    /// One message of a project.
    pub async fn delivery(
        &self,
        project: &Name,
        delivery: DeliveryId,
    ) -> Result<Option<DeliveryRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let sql = format!("{COLUMNS} WHERE id = $1 AND project = $2");
            let row = first(tx, &sql, &[delivery.into(), (&project).into()])?;
            row.map(read).transpose().map(|row| row.map(|(_, row)| row))
        };
        self.runner.read(question).await
    }

    /// Has a message that has not arrived be sent now, with all the patience there is.
    pub async fn retry_delivery(
        &self,
        project: &Name,
        delivery: DeliveryId,
        actor: Actor,
        now: Timestamp,
    ) -> Result<(), DeliveryError> {
        let project = project.clone();
        self.runner
            .write(Scope::Rows, move |tx| {
                retry(tx, &project, delivery, &actor, now)
            })
            .await
    }
}

/// Puts a message with what it tells of; answers whether it is new.
pub(crate) fn post(tx: &mut dyn Tx, draft: &DeliveryDraft, now: Timestamp) -> Result<bool, Error> {
    let DeliveryDraft {
        id,
        project,
        kind,
        target,
        environment,
        occasion,
        document,
    } = draft;
    let environment = environment.as_ref();
    let stored = tx.execute(
        "INSERT INTO environment_deliveries (id, project, lane, kind, target, environment, name, occasion,
             state, tries, due, since, fence, created_at, format, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', 0, $9, $9, 0, $9, $10, $11)
         ON CONFLICT (id) DO NOTHING",
        &[
            (*id).into(),
            project.into(),
            format!("{project}/{kind}/{target}").into(),
            kind.into(),
            target.into(),
            environment.map(|(id, _)| *id).into(),
            environment.map(|(_, name)| name).into(),
            occasion.into(),
            now.into(),
            FORMAT.into(),
            document.into(),
        ],
    )?;
    Ok(stored > 0)
}

const COLUMNS: &str =
    "SELECT seq, id, kind, target, name, occasion, state, tries, due, said, created_at, ended_at
     FROM environment_deliveries";

fn read(mut row: Row) -> Result<(u64, DeliveryRow), Error> {
    let seq = row.take()?;
    let delivery = DeliveryRow {
        id: row.take()?,
        kind: row.take()?,
        target: row.take()?,
        environment: row.take()?,
        occasion: row.take()?,
        state: row.take()?,
        tries: row.take()?,
        due: row.take()?,
        said: row.take()?,
        created_at: row.take()?,
        ended_at: row.take()?,
    };
    Ok((seq, delivery))
}

fn list(
    tx: &mut dyn Tx,
    project: &Name,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<Listed<DeliveryRow>, Error> {
    let before = page.after_number("deliveries", u64::MAX)?;
    let mut params: Vec<Value> = vec![project.into(), before.into(), page.rows().into()];
    let mut conditions = String::new();
    let wanted: [(&str, Option<Value>); 3] = [
        ("state", filter.state.map(Into::into)),
        ("target", filter.target.as_ref().map(Into::into)),
        ("environment", filter.environment.map(Into::into)),
    ];
    for (column, value) in wanted {
        if let Some(value) = value {
            params.push(value);
            conditions.push_str(&format!(" AND {column} = ${}", params.len()));
        }
    }
    let sql =
        format!("{COLUMNS} WHERE project = $1 AND seq < $2{conditions} ORDER BY seq DESC LIMIT $3");
    let rows = tx.query(&sql, &params)?.into_iter().map(read);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let listed = page.cut(rows, |(seq, _)| cursor("deliveries", &[seq]));
    Ok(Listed {
        items: listed.items.into_iter().map(|(_, row)| row).collect(),
        next: listed.next,
    })
}

fn retry(
    tx: &mut dyn Tx,
    project: &Name,
    delivery: DeliveryId,
    actor: &Actor,
    now: Timestamp,
) -> Result<(), DeliveryError> {
    let row = first(
        tx,
        "SELECT state, target FROM environment_deliveries WHERE id = $1 AND project = $2 FOR UPDATE",
        &[delivery.into(), project.into()],
    )?;
    let Some(mut row) = row else {
        return Err(DeliveryError::NotFound { delivery });
    };
    let (state, target): (State, String) = (row.take()?, row.take()?);
    match state {
        State::Delivered => return Err(DeliveryError::Delivered { delivery }),
        // Somebody is at it.
        State::Sending => return Ok(()),
        State::Waiting | State::GivenUp => {}
    }
    tx.execute(
        "UPDATE environment_deliveries SET state = 'waiting', tries = 0, due = $2, since = $2, ended_at = NULL
         WHERE id = $1",
        &[delivery.into(), now.into()],
    )?;
    let message = format!("{} has the message to {target} sent again", actor.name);
    let object = format!("delivery/{delivery}");
    note(tx, (project, now), "delivery.waiting", object, message);
    Ok(())
}
