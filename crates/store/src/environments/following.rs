//! Requests of git services: how each was last told, and what was made of it.
//!
//! Whoever is told only writes it down; what is done is decided later by those who look at what
//! waits. So a push while something runs waits for its end, and of several only the last counts.
//!
//! **Invariant:** what is told late changes nothing, and what was made of an earlier state of a
//! request is not written down as made of a later one.

use super::{EnvironmentError, reporting};
use crate::Store;
use crate::audit;
use crate::body::{FORMAT, Row, Scope, Tx, Value, encode, first};
use crate::error::Error;
use crate::events::note;
use model::environment::git::Origin;
use model::environment::git::event::Event;
use model::id::EnvironmentId;
use model::name::Name;
use model::time::Timestamp;
use plan::environment::git::{Settled, after, is_older};
use serde::{Deserialize, Serialize};

/// How far somebody has come with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitState {
    /// Something is to be decided about it.
    Waiting,
    /// That is put off until its environment is brought back.
    Held,
    /// It is decided.
    Settled,
}

impl GitState {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Settled => "settled",
        }
    }
}

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// Whose.
    pub project: Name,
    /// Which source told of it.
    pub source: Name,
    /// How far somebody has come with it.
    pub state: GitState,
    /// Grows whenever something is told of it.
    pub version: u64,
    /// How often in a row something could not be done.
    pub tries: u32,
    /// The environment that was made for it, which may be gone.
    pub environment: Option<EnvironmentId>,
    /// When it was last told of.
    pub told_at: Timestamp,
    /// What came of that, for people.
    pub said: String,
    /// How it is.
    pub event: Event,
    /// What was last made of it.
    pub settled: Option<Settled>,
}

/// What is kept of a request as a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<Settled>,
}

/// What is made of a request by what is done to its environment: both are stored, or neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitStep {
    /// Which source told of it.
    pub source: Name,
    /// Its number there.
    pub request: u64,
    /// Which state of it somebody has seen; whatever was told since then is heeded first.
    pub version: u64,
    /// What is made of it.
    pub settled: Settled,
}

impl GitRequest {
    /// That this is made of it, as it is now.
    pub fn step(&self, settled: Settled) -> GitStep {
        GitStep {
            source: self.source.clone(),
            request: self.event.request,
            version: self.version,
            settled,
        }
    }
}

/// What became of something that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenIn {
    /// It is how the request is now.
    New(Box<GitRequest>),
    /// It was told before.
    Repeated,
    /// It is older than what is known.
    Older(Box<GitRequest>),
}

/// What became of a request that waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitEnd {
    /// This was made of it; none leaves what was made of it before.
    Settled(Option<Settled>),
    /// This was made of it at first, and the rest is decided when that has ended.
    Begun(Settled),
    /// It is put off until its environment is brought back.
    Held,
    /// It could not be done, and is tried again then.
    Again(Timestamp),
    /// It could not be done, and is given up until something is told of it.
    Failed,
}

impl Store {
    /// Writes down what a source told, unless it did before, or told something later.
    pub async fn take_in(
        &self,
        (project, source): (&Name, &Name),
        delivery: &str,
        event: Event,
        now: Timestamp,
    ) -> Result<TakenIn, Error> {
        let (project, source) = (project.clone(), source.clone());
        let delivery = delivery.to_owned();
        self.runner
            .write(Scope::Rows, move |tx| {
                take_in(tx, (&project, &source), &delivery, &event, now)
            })
            .await
    }

    /// What is known of one request.
    pub async fn git_request(
        &self,
        (project, source): (&Name, &Name),
        number: u64,
    ) -> Result<Option<GitRequest>, Error> {
        let (project, source) = (project.clone(), source.clone());
        let question = move |tx: &mut dyn Tx| known(tx, (&project, &source), number, "");
        self.runner.read(question).await
    }

    /// Requests about which something is to be decided, at most so many of each project, those that
    /// waited longest first. Those whose environments are busy wait on.
    pub async fn due_git_requests(
        &self,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<GitRequest>, Error> {
        self.runner.read(move |tx| due(tx, limit, now)).await
    }

    /// When the next request is due that is put off.
    pub async fn next_git_request(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let row = first(
                tx,
                "SELECT MIN(not_before) FROM git_requests WHERE state = 'waiting' AND not_before > $1",
                &[now.into()],
            )?;
            row.map_or(Ok(None), |mut row| row.take())
        };
        self.runner.read(question).await
    }

    /// Writes down what was made of a request, unless something was told of it meanwhile. Answers
    /// whether that is so.
    pub async fn settle_git_request(
        &self,
        request: &GitRequest,
        end: GitEnd,
        said: String,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let request = request.clone();
        self.runner
            .write(Scope::Rows, move |tx| {
                settle(tx, &request, &end, &said, now)
            })
            .await
    }
}

fn due(tx: &mut dyn Tx, limit: u32, now: Timestamp) -> Result<Vec<GitRequest>, Error> {
    const DUE: &str = "state = 'waiting' AND not_before <= $1 AND NOT EXISTS (
         SELECT 1 FROM environment_actions a
         WHERE a.environment = r.environment AND a.state IN ('waiting', 'running'))";
    let sql = format!("SELECT DISTINCT project FROM git_requests r WHERE {DUE}");
    let projects = tx.query(&sql, &[now.into()])?;
    let sql =
        format!("{COLUMNS} r WHERE {DUE} AND project = $2 ORDER BY not_before, told_at LIMIT $3");
    let mut all = Vec::new();
    for mut row in projects {
        let project: Name = row.take()?;
        let rows = tx.query(&sql, &[now.into(), (&project).into(), limit.into()])?;
        let rows = rows.into_iter().map(read);
        let read = rows.collect::<Result<Vec<_>, _>>()?;
        all.extend(read.into_iter().flatten());
    }
    all.sort_by_key(|request| request.told_at);
    Ok(all)
}

const COLUMNS: &str =
    "SELECT project, source, state, version, tries, environment, told_at, said, format, body
     FROM git_requests";

/// None where another version of the program wrote it: what is told next is put in its place.
fn read(mut row: Row) -> Result<Option<GitRequest>, Error> {
    let (project, source) = (row.take()?, row.take()?);
    let state: String = row.take()?;
    let (version, tries, environment) = (row.take()?, row.take()?, row.take()?);
    let (told_at, said) = (row.take()?, row.take()?);
    let body: Option<Request> = row.readable()?;
    Ok(body.map(|Request { event, settled }| GitRequest {
        project,
        source,
        state: match state.as_str() {
            "waiting" => GitState::Waiting,
            "held" => GitState::Held,
            _ => GitState::Settled,
        },
        version,
        tries,
        environment,
        told_at,
        said,
        event,
        settled,
    }))
}

fn known(
    tx: &mut dyn Tx,
    (project, source): (&Name, &Name),
    number: u64,
    lock: &str,
) -> Result<Option<GitRequest>, Error> {
    let sql = format!("{COLUMNS} WHERE project = $1 AND source = $2 AND number = $3{lock}");
    let row = first(tx, &sql, &[project.into(), source.into(), number.into()])?;
    row.map_or(Ok(None), read)
}

fn take_in(
    tx: &mut dyn Tx,
    (project, source): (&Name, &Name),
    delivery: &str,
    event: &Event,
    now: Timestamp,
) -> Result<TakenIn, Error> {
    let fresh = tx.execute(
        "INSERT INTO git_deliveries (project, source, delivery, at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (project, source, delivery) DO NOTHING",
        &[project.into(), source.into(), delivery.into(), now.into()],
    )?;
    if fresh == 0 {
        return Ok(TakenIn::Repeated);
    }
    // Two first words about one request would both find nothing.
    tx.hold(&format!("request/{project}/{source}/{}", event.request))?;
    let before = known(tx, (project, source), event.request, " FOR UPDATE")?;
    let before = match before {
        Some(before) if !before.event.repository.is(&event.repository) => {
            // What the source named before has numbers of its own.
            let of = [project.into(), source.into(), event.request.into()];
            tx.execute(
                "UPDATE git_requests SET environment = NULL
                 WHERE project = $1 AND source = $2 AND number = $3",
                &of,
            )?;
            None
        }
        before => before,
    };
    if let Some(before) = &before
        && is_older(event, &before.event)
    {
        return Ok(TakenIn::Older(Box::new(before.clone())));
    }
    let body = Request {
        event: after(event.clone(), before.as_ref().map(|before| &before.event)),
        settled: before.as_ref().and_then(|before| before.settled.clone()),
    };
    tx.execute(
        "INSERT INTO git_requests (project, source, number, state, version, not_before, tries, environment,
             told_at, said, format, body)
         VALUES ($1, $2, $3, 'waiting', 1, $4, 0, NULL, $4, '', $5, $6)
         ON CONFLICT (project, source, number) DO UPDATE SET state = 'waiting',
             version = git_requests.version + 1, not_before = excluded.not_before, tries = 0,
             told_at = excluded.told_at, said = '', format = excluded.format, body = excluded.body",
        &[
            project.into(),
            source.into(),
            event.request.into(),
            now.into(),
            FORMAT.into(),
            encode(&body)?,
        ],
    )?;
    let message = audit::kept(format!("{} {}", event.action, event.url));
    note(
        tx,
        (project, now),
        "git.request",
        object(source, event.request),
        message,
    );
    let now = known(tx, (project, source), event.request, "")?;
    let now = now.ok_or_else(Error::unanswered)?;
    Ok(TakenIn::New(Box::new(now)))
}

/// A request as the object of an event.
fn object(source: &Name, number: u64) -> String {
    format!("request/{source}/{number}")
}

fn settle(
    tx: &mut dyn Tx,
    request: &GitRequest,
    end: &GitEnd,
    said: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let (state, not_before, tries) = match end {
        GitEnd::Settled(_) | GitEnd::Failed => (GitState::Settled, now, 0),
        GitEnd::Begun(_) => (GitState::Waiting, now, 0),
        GitEnd::Held => (GitState::Held, now, 0),
        GitEnd::Again(then) => (GitState::Waiting, *then, request.tries.saturating_add(1)),
    };
    let settled = match end {
        GitEnd::Settled(settled) => settled.clone(),
        GitEnd::Begun(settled) => Some(settled.clone()),
        GitEnd::Held | GitEnd::Again(_) | GitEnd::Failed => None,
    };
    let settled = settled.or_else(|| request.settled.clone());
    let body = Request {
        event: request.event.clone(),
        settled,
    };
    let said = audit::kept(said.to_owned());
    let changed = tx.execute(
        "UPDATE git_requests SET state = $5, not_before = $6, tries = $7, said = $8, format = $9, body = $10
         WHERE project = $1 AND source = $2 AND number = $3 AND version = $4",
        &[
            (&request.project).into(),
            (&request.source).into(),
            request.event.request.into(),
            request.version.into(),
            state.as_str().into(),
            not_before.into(),
            tries.into(),
            (&said).into(),
            FORMAT.into(),
            encode(&body)?,
        ],
    )?;
    if changed > 0 && said != request.said {
        let kind = match end {
            GitEnd::Failed => "git.failed",
            GitEnd::Settled(_) | GitEnd::Begun(_) | GitEnd::Held | GitEnd::Again(_) => {
                "git.request"
            }
        };
        let of = object(&request.source, request.event.request);
        note(tx, (&request.project, now), kind, of, said.clone());
    }
    if changed > 0 && *end == GitEnd::Failed {
        reporting::report_unable(tx, request, &said, now)?;
    }
    Ok(changed > 0)
}

/// Writes down what is made of a request, with what is done to its environment, or with the
/// environment that comes for it.
pub(super) fn stepped(
    tx: &mut dyn Tx,
    project: &Name,
    step: &GitStep,
    made: Option<EnvironmentId>,
) -> Result<(), EnvironmentError> {
    let before = known(tx, (project, &step.source), step.request, " FOR UPDATE")?;
    let before = before.filter(|before| before.version == step.version);
    let before = before.ok_or(EnvironmentError::Overtaken)?;
    let body = Request {
        event: before.event,
        settled: Some(step.settled.clone()),
    };
    let environment = made.or(before.environment);
    tx.execute(
        "UPDATE git_requests SET format = $4, body = $5, environment = $6
         WHERE project = $1 AND source = $2 AND number = $3",
        &[
            project.into(),
            (&step.source).into(),
            step.request.into(),
            FORMAT.into(),
            encode(&body)?,
            environment.into(),
        ],
    )?;
    Ok(())
}

/// Whether an environment is the one that was made for its request: a copy is not.
pub(super) fn follows(
    tx: &mut dyn Tx,
    project: &Name,
    origin: &Origin,
    environment: EnvironmentId,
) -> Result<bool, Error> {
    let row = first(
        tx,
        "SELECT 1 FROM git_requests WHERE project = $1 AND source = $2 AND number = $3 AND environment = $4",
        &[
            project.into(),
            (&origin.source).into(),
            origin.request.into(),
            environment.into(),
        ],
    )?;
    Ok(row.is_some())
}

/// Has what was put off for an environment that rested decided, now that it comes back.
pub(super) fn woken(
    tx: &mut dyn Tx,
    environment: EnvironmentId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE git_requests SET state = 'waiting', not_before = $2 WHERE environment = $1 AND state = 'held'",
        &[environment.into(), now.into()],
    )?;
    Ok(())
}

/// Clears away what was told before a point in time, and requests of which nothing was told since
/// and for which nothing is there.
pub(super) fn sweep(tx: &mut dyn Tx, before: &[Value]) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM git_deliveries WHERE (project, source, delivery) IN (
             SELECT project, source, delivery FROM git_deliveries WHERE at < $1 LIMIT $2)",
        before,
    )?;
    tx.execute(
        "DELETE FROM git_requests WHERE (project, source, number) IN (
             SELECT project, source, number FROM git_requests r WHERE state = 'settled' AND told_at < $1
             AND NOT EXISTS (SELECT 1 FROM environments e WHERE e.id = r.environment AND e.gone = 0) LIMIT $2)",
        before,
    )?;
    Ok(())
}
