//! Puts messages with what they tell of: who is to be told is decided by `plan::notify`.

use super::posted::{DeliveryDraft, post};
use super::{Body, Order, reporting, settings};
use crate::Store;
use crate::audit;
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::{Edit, Given};
use model::environment::notify::{About, Action, Message};
use model::environment::settings::Settings;
use model::environment::status::Status;
use model::id::{DeliveryId, EnvironmentId, Origin};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::git::Last;
use plan::notify::{Happening, Told, expires_by, expires_soon, told};

/// Ends that are told of at once, at most.
const ENDS_MAX: u32 = 1_000;

/// Something that happened to an environment.
pub(super) struct Happened<'a> {
    pub(super) id: EnvironmentId,
    pub(super) project: &'a Name,
    pub(super) name: &'a EnvironmentName,
    /// What.
    pub(super) what: Happening,
    /// What tells it from all else that happened to it.
    pub(super) number: u64,
    /// Why, as one clause.
    pub(super) because: &'a str,
    /// What was done to it, where it is about that.
    pub(super) action: Option<Action>,
}

/// Puts a message for each who is to be told of this.
pub(super) fn tell(tx: &mut dyn Tx, happened: &Happened<'_>, now: Timestamp) -> Result<(), Error> {
    let settings = match settings::of_project(tx, happened.project) {
        // Whoever cannot read it changes it, and tells nobody.
        Err(error) if error.is_unreadable() => None,
        read => read?,
    };
    let Some(settings) = settings else {
        return Ok(());
    };
    let row = first(
        tx,
        "SELECT owner, expires_at, failed, format, body FROM environments WHERE id = $1",
        &[happened.id.into()],
    )?;
    let Some(mut row) = row else {
        return Ok(());
    };
    let (owner, expires_at, failed) = (row.take()?, row.take()?, row.take()?);
    let Some(body) = row.readable::<Body>()? else {
        return Ok(());
    };
    let about = reporting::About {
        project: happened.project,
        environment: (happened.id, happened.name),
        what: happened.what,
        last: last(tx, happened.id, failed)?,
        number: happened.number,
    };
    reporting::report_on(tx, &settings, &body, &about, now)?;
    let told = told(&settings, &body.labels, happened.what);
    if told.is_empty() {
        return Ok(());
    }
    let (before, status) = match happened.what {
        Happening::Became { was, became } => (was, became),
        Happening::ActionFailed | Happening::ExpiresSoon => {
            let status = status(tx, happened.id)?;
            (status, status)
        }
    };
    let occasion = happened.what.occasion();
    let message = Message {
        occasion,
        at: now,
        because: audit::kept(happened.because.to_owned()),
        environment: Some(About {
            id: happened.id,
            name: happened.name.clone(),
            status,
            before,
            tag: tag(tx, happened.id, &settings, &body)?,
            owner,
            labels: body.labels,
            links: body.links,
            expires_at,
        }),
        action: happened.action.clone(),
    };
    put(tx, happened, &told, &message, now)
}

/// How the last thing ended that was begun at an environment.
fn last(tx: &mut dyn Tx, id: EnvironmentId, failed: bool) -> Result<Last, Error> {
    if !failed {
        return Ok(Last::Done);
    }
    let row = first(
        tx,
        "SELECT state FROM environment_actions
         WHERE environment = $1 AND begun_at IS NOT NULL AND ended_at IS NOT NULL ORDER BY seq DESC LIMIT 1",
        &[id.into()],
    )?;
    let state = row.map(|mut row| row.take::<State>()).transpose()?;
    Ok(match state {
        Some(State::Cancelled) => Last::CalledOff,
        Some(_) | None => Last::Failed,
    })
}

/// Puts the same message for each of these.
fn put(
    tx: &mut dyn Tx,
    happened: &Happened<'_>,
    told: &[Told<'_>],
    message: &Message,
    now: Timestamp,
) -> Result<(), Error> {
    let occasion = message.occasion;
    let document = serde_json::to_string(message).map_err(|_| Error::unanswered())?;
    for one in told {
        let draft = DeliveryDraft {
            id: DeliveryId::derive(Origin {
                parent: &happened.id.to_string(),
                name: &format!("{}/{}/{occasion}", one.kind, one.target),
                ordinal: happened.number,
                incarnation: 0,
            }),
            project: happened.project.clone(),
            kind: one.kind.to_owned(),
            target: one.target.to_owned(),
            environment: Some((happened.id, happened.name.clone())),
            occasion: occasion.as_str().to_owned(),
            document: document.clone(),
        };
        post(tx, &draft, now)?;
    }
    Ok(())
}

fn status(tx: &mut dyn Tx, id: EnvironmentId) -> Result<Option<Status>, Error> {
    let sql = "SELECT status FROM environments WHERE id = $1 AND gone = 0";
    let row = first(tx, sql, &[id.into()])?;
    row.map(|mut row| row.take()).transpose()
}

/// Which version of the application an environment has: as somebody edited it, or as the last
/// action was given it. What is secret is not told.
fn tag(
    tx: &mut dyn Tx,
    id: EnvironmentId,
    settings: &Settings,
    body: &Body,
) -> Result<Option<String>, Error> {
    match body.edits.application.get(&settings.tag) {
        Some(Edit::Set(value)) => return Ok(Some(value.as_str().to_owned())),
        Some(Edit::Secret | Edit::Removed) => return Ok(None),
        None => {}
    }
    let row = first(
        tx,
        "SELECT format, body FROM environment_actions WHERE environment = $1 ORDER BY seq DESC LIMIT 1",
        &[id.into()],
    )?;
    let Some(order) = row.map(|mut row| row.readable::<Order>()).transpose()? else {
        return Ok(None);
    };
    let given = order.and_then(|order| {
        let mut application = order.application.into_iter();
        application.find(|setting| setting.key == settings.tag)
    });
    Ok(given.and_then(|setting| match setting.value {
        Given::Plain(value) => Some(value.as_str().to_owned()),
        Given::Secret => None,
    }))
}

/// An environment that is about to end.
struct Ending {
    id: EnvironmentId,
    project: Name,
    name: EnvironmentName,
    expires_at: Timestamp,
    used_at: Timestamp,
}

const ENDING: &str = "SELECT e.id, e.project, e.name, e.expires_at, e.used_at FROM environments e
     LEFT JOIN environment_ends_told t ON t.environment = e.id AND t.expires_at = e.expires_at
     WHERE e.gone = 0 AND e.protected = 0 AND e.expires_at IS NOT NULL AND e.expires_at > $1
       AND e.expires_at <= $2 AND t.environment IS NULL
       AND e.status NOT IN ('archived', 'archive-pending', 'cleanup-failed')
     ORDER BY e.expires_at";

impl Store {
    /// Tells of environments that will not be up for much longer, of each end once; answers of how
    /// many.
    pub async fn tell_of_ends(&self, now: Timestamp) -> Result<usize, Error> {
        let question = move |tx: &mut dyn Tx| ending(tx, now);
        let ending = self.runner.read(question).await?;
        let count = ending.len();
        if count == 0 {
            return Ok(0);
        }
        self.runner
            .write(Scope::Rows, move |tx| tell_of(tx, &ending, now))
            .await?;
        Ok(count)
    }
}

fn ending(tx: &mut dyn Tx, now: Timestamp) -> Result<Vec<Ending>, Error> {
    let rows = tx.query(ENDING, &[now.into(), expires_by(now).into()])?;
    let read = |mut row: Row| {
        Ok(Ending {
            id: row.take()?,
            project: row.take()?,
            name: row.take()?,
            expires_at: row.take()?,
            used_at: row.take()?,
        })
    };
    let mut ending = rows
        .into_iter()
        .map(read)
        .collect::<Result<Vec<_>, Error>>()?;
    ending.retain(|one| expires_soon(one.expires_at, one.used_at, now));
    ending.truncate(usize::try_from(ENDS_MAX).unwrap_or(usize::MAX));
    Ok(ending)
}

fn tell_of(tx: &mut dyn Tx, ending: &[Ending], now: Timestamp) -> Result<(), Error> {
    for one in ending {
        // Somebody else may have told of it, or somebody may have said otherwise.
        let noted = tx.execute(
            "INSERT INTO environment_ends_told (environment, expires_at)
             SELECT id, expires_at FROM environments WHERE id = $1 AND gone = 0 AND expires_at = $2
             ON CONFLICT (environment) DO UPDATE SET expires_at = excluded.expires_at
             WHERE environment_ends_told.expires_at <> excluded.expires_at",
            &[one.id.into(), one.expires_at.into()],
        )?;
        if noted == 0 {
            continue;
        }
        let because = format!("it is archived at {}", one.expires_at.to_rfc3339());
        let happened = Happened {
            id: one.id,
            project: &one.project,
            name: &one.name,
            what: Happening::ExpiresSoon,
            number: u64::try_from(one.expires_at.as_millis()).unwrap_or_default(),
            because: &because,
            action: None,
        };
        tell(tx, &happened, now)?;
    }
    Ok(())
}
