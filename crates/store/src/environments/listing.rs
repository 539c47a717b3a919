//! Environments as lists and pages want to read them.
//!
//! A list finds what it shows in an index that holds all it filters by, and reads only those rows.

use super::checking::seen_of;
use super::{About, Body, sleep_of};
use crate::Store;
use crate::body::{Row, Tx, Value, first};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::Edits;
use model::environment::git;
use model::environment::link::Link;
use model::environment::status::{Deed, Seen, Sleep, Status};
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::Standing;
use std::collections::{BTreeMap, BTreeSet};

/// Which environments a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentFilter {
    /// Only those that are one of these; none means any.
    pub status: BTreeSet<Status>,
    /// Only those that rest or are about to, or only the others.
    pub archived: Option<bool>,
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those with all of these labels, each with its value or with any.
    pub labels: BTreeMap<String, Option<String>>,
    /// Only those with this in their name or owner.
    pub text: Option<String>,
}

/// In which order a list shows environments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvironmentOrder {
    /// By name.
    #[default]
    Name,
    /// Those that changed last come first.
    Changed,
}

/// What is being done to an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Which action.
    pub action: ActionId,
    /// What.
    pub deed: Deed,
    /// How far that has come.
    pub state: State,
    /// What it waits for, where it waits for something.
    pub waits: Option<String>,
    /// Whether somebody called it off.
    pub cancel: bool,
}

/// That the last thing that was begun at an environment was called off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledOff {
    /// Which action.
    pub action: ActionId,
    /// What it was to do.
    pub deed: Deed,
    /// Who called it off.
    pub by: String,
    /// When they did.
    pub at: Timestamp,
}

/// What the last look at an environment showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// When it was recorded.
    pub at: Timestamp,
    /// What the last one showed that could look, if any could.
    pub seen: Option<Seen>,
    /// Since when nobody could.
    pub unseen_since: Option<Timestamp>,
    /// The end of what the look printed; lists leave it out.
    pub said: String,
}

/// What is known of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentRow {
    /// Which, in which of its lives.
    pub id: EnvironmentId,
    /// Who owns it.
    pub project: Name,
    /// What people call it.
    pub name: EnvironmentName,
    /// Grows whenever somebody changes it or has something done to it.
    pub generation: u64,
    /// How it is.
    pub status: Status,
    /// Since when.
    pub since: Timestamp,
    /// Whether the last thing that was done to it did not do what it should.
    pub failed: bool,
    /// Who called that off, where it ended because of that.
    pub called_off: Option<CalledOff>,
    /// What is being done to it.
    pub busy: Option<Busy>,
    /// What people say of it.
    pub about: About,
    /// What they made of its defaults.
    pub edits: Edits,
    /// Where it is reached.
    pub links: Vec<Link>,
    /// What the last look showed.
    pub checked: Option<Checked>,
    /// When it came.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Since when it rests, or when it last began to.
    pub archived_at: Option<Timestamp>,
    /// When somebody last wanted something of it.
    pub used_at: Timestamp,
    /// Why it rests, or is about to, where nobody asked for it.
    pub asleep: Option<Sleep>,
    /// Which request it is of, or a copy of one that is.
    pub origin: Option<git::Origin>,
}

impl EnvironmentRow {
    /// What decisions about it depend on.
    pub fn standing(&self) -> Standing {
        Standing {
            status: self.status,
            since: self.since,
            busy: self.busy.as_ref().map(|busy| busy.deed),
            failed: self.failed,
            protected: self.about.protected,
            asleep: self.asleep,
        }
    }
}

impl Store {
    /// Environments of a project that are not gone.
    pub async fn environments(
        &self,
        project: &Name,
        filter: EnvironmentFilter,
        order: EnvironmentOrder,
        page: Page,
    ) -> Result<Listed<EnvironmentRow>, Error> {
        let project = project.clone();
        self.runner
            .read(move |tx| list(tx, &project, &filter, order, &page))
            .await
    }

    /// The environment of that name, unless it is gone.
    pub async fn environment(
        &self,
        project: &Name,
        name: &EnvironmentName,
    ) -> Result<Option<EnvironmentRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| {
            let sql = format!(
                "SELECT {COLUMNS}, c.said, e.format, e.body FROM environments e {JOINS}
                 WHERE e.project = $1 AND e.name = $2 AND e.gone = 0"
            );
            let row = first(tx, &sql, &[(&project).into(), (&name).into()])?;
            row.map(|row| read(row, Row::document)).transpose()
        };
        self.runner.read(question).await
    }

    /// The same by its id.
    pub async fn environment_by_id(
        &self,
        id: EnvironmentId,
    ) -> Result<Option<EnvironmentRow>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let sql = format!(
                "SELECT {COLUMNS}, c.said, e.format, e.body FROM environments e {JOINS}
                 WHERE e.id = $1 AND e.gone = 0"
            );
            let row = first(tx, &sql, &[id.into()])?;
            row.map(|row| read(row, Row::document)).transpose()
        };
        self.runner.read(question).await
    }

    /// How many environments of a project, or of all, are how; those that are gone are not counted.
    pub async fn environment_counts(
        &self,
        project: Option<&Name>,
    ) -> Result<BTreeMap<Status, u64>, Error> {
        let project = project.cloned();
        let question = move |tx: &mut dyn Tx| {
            let (of, params): (_, Vec<Value>) = match &project {
                Some(project) => ("project = $1 AND", vec![project.into()]),
                None => ("", Vec::new()),
            };
            let sql = format!(
                "SELECT status, COUNT(*) FROM environments WHERE {of} gone = 0 GROUP BY status"
            );
            let count = |mut row: Row| Ok((row.take()?, row.take()?));
            tx.query(&sql, &params)?.into_iter().map(count).collect()
        };
        self.runner.read(question).await
    }
}

const COLUMNS: &str =
    "e.id, e.project, e.name, e.generation, e.status, e.status_since, e.failed, e.protected,
     e.owner, e.created_at, e.updated_at, e.archived_at, e.expires_at, e.used_at, e.asleep, a.id, a.deed, a.state,
     a.error, a.cancel,
     l.id, l.deed, l.cancelled_by, l.cancelled_at, c.at, c.seen, c.unseen_since";

const JOINS: &str =
    "LEFT JOIN environment_actions a ON a.environment = e.id AND a.state IN ('waiting', 'running')
     LEFT JOIN environment_actions l ON e.failed = 1 AND l.state = 'cancelled' AND l.seq = (
         SELECT MAX(b.seq) FROM environment_actions b
         WHERE b.environment = e.id AND b.begun_at IS NOT NULL AND b.ended_at IS NOT NULL)
     LEFT JOIN environment_checks c ON c.environment = e.id";

/// Told of one that another version of the program wrote, so that it keeps nobody else.
const UNREAD: &str = "what is stored of it cannot be read by this program";

fn read(
    mut row: Row,
    body: impl Fn(&mut Row) -> Result<Body, Error>,
) -> Result<EnvironmentRow, Error> {
    let (id, project, name) = (row.take()?, row.take()?, row.take()?);
    let (generation, status, since) = (row.take()?, row.take()?, row.take()?);
    let (failed, protected, owner) = (row.take()?, row.take()?, row.take()?);
    let (created_at, updated_at) = (row.take()?, row.take()?);
    let (archived_at, expires_at) = (row.take()?, row.take()?);
    let (used_at, asleep) = (row.take()?, sleep_of(row.take()?));
    let busy = busy(&mut row)?;
    let called_off = called_off(&mut row)?;
    let (at, seen): (Option<Timestamp>, Option<String>) = (row.take()?, row.take()?);
    let unseen_since = row.take()?;
    let said: Option<String> = row.take()?;
    let checked = at.map(|at| Checked {
        at,
        seen: seen.and_then(|seen| seen_of(&seen)),
        unseen_since,
        said: said.unwrap_or_default(),
    });
    let body = body(&mut row)?;
    Ok(EnvironmentRow {
        id,
        project,
        name,
        generation,
        status,
        since,
        failed,
        called_off,
        busy,
        about: About {
            owner,
            labels: body.labels,
            notes: body.notes,
            protected,
            expires_at,
        },
        edits: body.edits,
        links: body.links,
        checked,
        created_at,
        updated_at,
        archived_at,
        used_at,
        asleep,
        origin: body.origin,
    })
}

/// What is being done.
fn busy(row: &mut Row) -> Result<Option<Busy>, Error> {
    let (action, deed, state) = (row.take()?, row.take()?, row.take()?);
    let (waits, cancel) = (row.take()?, row.take::<Option<bool>>()?);
    Ok(match (action, deed, state) {
        (Some(action), Some(deed), Some(state)) => Some(Busy {
            action,
            deed,
            state,
            waits,
            cancel: cancel.unwrap_or_default(),
        }),
        (_, _, _) => None,
    })
}

/// Who called off what was last begun. What an older version of the program wrote does not name
/// anybody.
fn called_off(row: &mut Row) -> Result<Option<CalledOff>, Error> {
    let (action, deed) = (row.take()?, row.take()?);
    let (by, at): (Option<String>, Option<Timestamp>) = (row.take()?, row.take()?);
    Ok(match (action, deed) {
        (Some(action), Some(deed)) => Some(CalledOff {
            action,
            deed,
            by: by.unwrap_or_else(|| "somebody".to_owned()),
            at: at.unwrap_or_default(),
        }),
        (_, _) => None,
    })
}

fn readable(row: &mut Row) -> Result<Body, Error> {
    let unread = || Body {
        notes: UNREAD.to_owned(),
        ..Body::default()
    };
    Ok(row.readable()?.unwrap_or_else(unread))
}

fn list(
    tx: &mut dyn Tx,
    project: &Name,
    filter: &EnvironmentFilter,
    order: EnvironmentOrder,
    page: &Page,
) -> Result<Listed<EnvironmentRow>, Error> {
    let mut wanted = Wanted::new(project, page);
    let by = match order {
        EnvironmentOrder::Name => {
            let [after] = page.after("environments", [""])?;
            let after = wanted.param(after);
            wanted.conditions.push(format!("name > {after}"));
            "name"
        }
        EnvironmentOrder::Changed => {
            if page.after.is_some() {
                let [at, id] = page.after("environments-changed", ["", ""])?;
                let at = wanted.param(page.number(at)?);
                let id = wanted.param(id);
                wanted
                    .conditions
                    .push(format!("(updated_at, id) < ({at}, {id})"));
            }
            "updated_at DESC, id DESC"
        }
    };
    wanted.filter(filter);
    let outer = by
        .split(", ")
        .map(|column| format!("e.{column}"))
        .collect::<Vec<_>>();
    let sql = format!(
        "SELECT {COLUMNS}, NULL, e.format, e.body FROM (
             SELECT id FROM environments WHERE {} ORDER BY {by} LIMIT $2) AS listed
         JOIN environments e ON e.id = listed.id {JOINS} ORDER BY {}",
        wanted.conditions.join(" AND "),
        outer.join(", "),
    );
    let rows = tx.query(&sql, &wanted.params)?;
    let rows = rows.into_iter().map(|row| read(row, readable));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(page.cut(rows, |last| match order {
        EnvironmentOrder::Name => cursor("environments", &[&last.name]),
        EnvironmentOrder::Changed => cursor(
            "environments-changed",
            &[&last.updated_at.as_millis(), &last.id],
        ),
    }))
}

/// What a list asks for, as it grows.
struct Wanted {
    conditions: Vec<String>,
    params: Vec<Value>,
}

impl Wanted {
    fn new(project: &Name, page: &Page) -> Self {
        Self {
            conditions: vec!["project = $1".to_owned(), "gone = 0".to_owned()],
            params: vec![project.into(), page.rows().into()],
        }
    }

    /// One more parameter; answers its place.
    fn param(&mut self, value: impl Into<Value>) -> String {
        self.params.push(value.into());
        format!("${}", self.params.len())
    }

    fn filter(&mut self, filter: &EnvironmentFilter) {
        if !filter.status.is_empty() {
            let places: Vec<_> = filter.status.iter().map(|one| self.param(*one)).collect();
            let condition = match places.as_slice() {
                [one] => format!("status = {one}"),
                several => format!("status IN ({})", several.join(", ")),
            };
            self.conditions.push(condition);
        }
        if let Some(archived) = filter.archived {
            let not = if archived { "" } else { "NOT " };
            self.conditions
                .push(format!("status {not}IN ('archived', 'archive-pending')"));
        }
        if let Some(owner) = &filter.owner {
            let owner = self.param(owner);
            self.conditions.push(format!("owner = {owner}"));
        }
        for (label, value) in &filter.labels {
            let label = self.param(label);
            let value = value.as_ref().map(|value| {
                let value = self.param(value);
                format!(" AND value = {value}")
            });
            self.conditions.push(format!(
                "id IN (SELECT environment FROM environment_labels WHERE project = $1 AND label = {label}{})",
                value.unwrap_or_default()
            ));
        }
        if let Some(text) = &filter.text {
            let text = self.param(containing(text));
            self.conditions.push(format!(
                "(name LIKE {text} ESCAPE '!' OR LOWER(owner) LIKE {text} ESCAPE '!')"
            ));
        }
    }
}

/// A pattern of what has this text somewhere in it.
fn containing(text: &str) -> String {
    let text = text.to_lowercase();
    let text = text
        .replace('!', "!!")
        .replace('%', "!%")
        .replace('_', "!_");
    format!("%{text}%")
}
