//! Environments that are taken over from elsewhere as they are: nothing is run for it.
//!
//! What was taken remembers which one it was there, and how far its log was taken: the same again
//! changes nothing, and what broke off goes on. Also what is gone since is not brought back.

use super::output::{self, OutputStream, Printed};
use super::{Body, EnvironmentError, Order, TakenFrom, enter, object, settings};
use crate::Store;
use crate::audit::{self, Actor};
use crate::body::{FORMAT, Scope, Tx, Value, encode, first, for_each, insert};
use crate::error::Error;
use crate::events::note;
use crate::projects;
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::settings::Settings;
use model::environment::status::Status;
use model::environment::taken::{Taken, TakenAction};
use model::id::{ActionId, EnvironmentId, Origin};
use model::name::Name;
use model::time::Timestamp;
use std::collections::BTreeMap;

/// What became of an environment that was to be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TookOver {
    /// What it is called.
    pub name: EnvironmentName,
    /// What became of it.
    pub outcome: TakeOutcome,
    /// How many actions of its log were taken now.
    pub actions: u32,
}

/// What became of an environment that was to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOutcome {
    /// It is here now.
    Taken,
    /// It was taken before, and stays as it has become since.
    Known,
    /// There is another of that name.
    Exists {
        /// How that one is.
        status: Status,
    },
    /// It was taken before, and was removed since.
    Gone,
    /// There would be more than there may be.
    Quota {
        /// How many there may be.
        limit: u32,
    },
}

impl Store {
    /// Takes environments over as they are elsewhere, all of them or, where that fails, none;
    /// each tells what became of it. With `dry`, nothing is taken.
    ///
    /// How many may be up counts for nobody here: they are up already.
    pub async fn take_environments(
        &self,
        project: &Name,
        taken: Vec<Taken>,
        dry: bool,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Vec<TookOver>, EnvironmentError> {
        let project = project.clone();
        if dry {
            let question = move |tx: &mut dyn Tx| judge(tx, &project, &taken);
            return self.runner.read(question).await;
        }
        let question = move |tx: &mut dyn Tx| take(tx, &project, &taken, &actor, now);
        self.runner.write(Scope::Whole, question).await
    }
}

/// The bearers of one name, through all its lives.
#[derive(Default)]
struct Lives {
    /// How many there were.
    count: u64,
    /// The one that is there.
    alive: Option<Alive>,
    /// Where those came from that are gone.
    gone: Vec<String>,
}

/// An environment that is there.
struct Alive {
    id: EnvironmentId,
    generation: u64,
    status: Status,
    body: Option<Body>,
}

/// What may become of each, before anything does.
struct Judging {
    settings: Settings,
    lives: BTreeMap<EnvironmentName, Lives>,
    /// How many more there may be.
    room: Option<(u32, u32)>,
}

impl Judging {
    fn new(
        tx: &mut dyn Tx,
        project: &Name,
        taken: &[Taken],
        lock: &str,
    ) -> Result<Self, EnvironmentError> {
        let no_project = || EnvironmentError::NoProject {
            project: project.clone(),
        };
        let quota = projects::quota(tx, project)?.ok_or_else(no_project)?;
        let no_settings = || EnvironmentError::NoSettings {
            project: project.clone(),
        };
        let settings = settings::of_project(tx, project)?.ok_or_else(no_settings)?;
        let room = match quota.environments {
            None => None,
            Some(limit) => {
                let all = "SELECT COUNT(*) FROM environments WHERE project = $1 AND gone = 0";
                let used = first(tx, all, &[project.into()])?;
                let used = used.map_or(Ok(0), |mut row| row.take::<u32>())?;
                Some((limit.saturating_sub(used), limit))
            }
        };
        Ok(Self {
            settings,
            lives: lives(tx, project, taken, lock)?,
            room,
        })
    }

    /// What becomes of one; counts it where it comes.
    fn outcome(&mut self, one: &Taken) -> TakeOutcome {
        let lives = self.lives.get(&one.name);
        if let Some(alive) = lives.and_then(|lives| lives.alive.as_ref()) {
            return if from(alive.body.as_ref()) == Some(&one.origin) {
                TakeOutcome::Known
            } else {
                let status = alive.status;
                TakeOutcome::Exists { status }
            };
        }
        if lives.is_some_and(|lives| lives.gone.contains(&one.origin)) {
            return TakeOutcome::Gone;
        }
        match &mut self.room {
            Some((0, limit)) => TakeOutcome::Quota { limit: *limit },
            Some((left, _)) => {
                *left -= 1;
                TakeOutcome::Taken
            }
            None => TakeOutcome::Taken,
        }
    }

    /// How far the log of one was taken before.
    fn upto(&self, one: &Taken) -> Option<u64> {
        let body = self.lives.get(&one.name)?.alive.as_ref()?.body.as_ref()?;
        body.taken.as_ref().map(|taken| taken.upto)
    }
}

/// Which one an environment was elsewhere.
fn from(body: Option<&Body>) -> Option<&String> {
    body?.taken.as_ref().map(|taken| &taken.origin)
}

fn lives(
    tx: &mut dyn Tx,
    project: &Name,
    taken: &[Taken],
    lock: &str,
) -> Result<BTreeMap<EnvironmentName, Lives>, Error> {
    let names: Vec<Value> = taken.iter().map(|one| (&one.name).into()).collect();
    let sql = format!(
        "SELECT name, id, generation, status, gone, format, body FROM environments
         WHERE project = $1 AND name IN ({{}}) {lock}"
    );
    let rows = for_each(tx, sql.trim_end(), &[project.into()], &names)?;
    let mut lives: BTreeMap<_, Lives> = BTreeMap::new();
    for mut row in rows {
        let name: EnvironmentName = row.take()?;
        let (id, generation, status) = (row.take()?, row.take()?, row.take()?);
        let gone: bool = row.take()?;
        // What another version wrote keeps its name, and is nobody's that is known.
        let body: Option<Body> = row.readable()?;
        let of = lives.entry(name).or_default();
        of.count += 1;
        if gone {
            of.gone.extend(from(body.as_ref()).cloned());
        } else {
            of.alive = Some(Alive {
                id,
                generation,
                status,
                body,
            });
        }
    }
    Ok(lives)
}

fn judge(
    tx: &mut dyn Tx,
    project: &Name,
    taken: &[Taken],
) -> Result<Vec<TookOver>, EnvironmentError> {
    let mut judging = Judging::new(tx, project, taken, "")?;
    let judged = taken.iter().map(|one| {
        let outcome = judging.outcome(one);
        let upto = match outcome {
            TakeOutcome::Taken => Some(0),
            TakeOutcome::Known => judging.upto(one),
            TakeOutcome::Exists { .. } | TakeOutcome::Gone | TakeOutcome::Quota { .. } => None,
        };
        TookOver {
            name: one.name.clone(),
            outcome,
            actions: upto.map_or(0, |upto| count(&newer(&one.actions, upto))),
        }
    });
    Ok(judged.collect())
}

/// Actions that were not taken before.
fn newer(actions: &[TakenAction], upto: u64) -> Vec<&TakenAction> {
    actions
        .iter()
        .filter(|action| action.number > upto)
        .collect()
}

fn count(actions: &[&TakenAction]) -> u32 {
    u32::try_from(actions.len()).unwrap_or(u32::MAX)
}

/// Whose request it is, and when.
struct Asked<'a> {
    project: &'a Name,
    settings: Settings,
    actor: &'a Actor,
    now: Timestamp,
}

fn take(
    tx: &mut dyn Tx,
    project: &Name,
    taken: &[Taken],
    actor: &Actor,
    now: Timestamp,
) -> Result<Vec<TookOver>, EnvironmentError> {
    let mut judging = Judging::new(tx, project, taken, "FOR UPDATE")?;
    let asked = Asked {
        project,
        settings: judging.settings.clone(),
        actor,
        now,
    };
    let mut became = Vec::with_capacity(taken.len());
    for (place, one) in taken.iter().enumerate() {
        let outcome = judging.outcome(one);
        let lives = judging.lives.entry(one.name.clone()).or_default();
        let actions = match (outcome, &mut lives.alive) {
            (TakeOutcome::Taken, alive) => {
                // Nobody is to look at all of them at once.
                let part = u32::try_from(place % 64).unwrap_or(0) + 1;
                let due = now.plus(asked.settings.patience.every * part / 64);
                let come = come(tx, &asked, one, lives.count, due)?;
                // Twice in one request is as good as twice.
                *alive = Some(come);
                one.actions.len()
            }
            (TakeOutcome::Known, Some(alive)) => go_on(tx, &asked, one, alive)?,
            (_, _) => 0,
        };
        became.push(TookOver {
            name: one.name.clone(),
            outcome,
            actions: u32::try_from(actions).unwrap_or(u32::MAX),
        });
    }
    Ok(became)
}

/// Has an environment be here.
fn come(
    tx: &mut dyn Tx,
    asked: &Asked<'_>,
    one: &Taken,
    incarnation: u64,
    due: Timestamp,
) -> Result<Alive, Error> {
    let (project, name, now) = (asked.project, &one.name, asked.now);
    let id = super::creating::identity(project, name, incarnation);
    let body = Body {
        edits: one.edits.clone(),
        links: one.links.clone(),
        taken: Some(TakenFrom {
            origin: one.origin.clone(),
            upto: one
                .actions
                .iter()
                .map(|action| action.number)
                .max()
                .unwrap_or(0),
        }),
        ..Body::default()
    };
    tx.execute(
        "INSERT INTO environments (id, project, name, incarnation, generation, status, status_since, failed,
             protected, gone, owner, created_at, updated_at, archived_at, expires_at, used_at, asleep,
             format, body)
         VALUES ($1, $2, $3, $4, 1, $5, $6, $7, 0, 0, '', $8, $9, $10, NULL, $11, NULL, $12, $13)",
        &[
            id.into(),
            project.into(),
            name.into(),
            incarnation.into(),
            one.status.into(),
            one.since.into(),
            failed(&one.actions).unwrap_or(false).into(),
            one.created_at.into(),
            one.updated_at.into(),
            one.archived_at.into(),
            // Whoever takes it over uses it: nothing sleeps because it came.
            now.into(),
            FORMAT.into(),
            encode(&body)?,
        ],
    )?;
    let due = (one.status != Status::CleanupFailed).then_some(due);
    tx.execute(
        "INSERT INTO environment_checks (environment, due) VALUES ($1, $2)",
        &[id.into(), due.into()],
    )?;
    let because = audit::kept(format!("taken over from {}", one.origin));
    tx.execute(
        "INSERT INTO environment_changes (environment, at, was, became, because) VALUES ($1, $2, NULL, $3, $4)",
        &[id.into(), one.since.into(), one.status.into(), (&because).into()],
    )?;
    let message = format!("{}: {because}", one.status);
    note(
        tx,
        (project, now),
        "environment.imported",
        object(name),
        audit::kept(message),
    );
    let by = (asked.actor, "environment.import");
    enter(tx, (project, name), by, (None, Some(1)), because, now);
    let all: Vec<_> = one.actions.iter().collect();
    store_actions(tx, asked, (id, name), &all)?;
    Ok(Alive {
        id,
        generation: 1,
        status: one.status,
        body: Some(body),
    })
}

/// Adds what of the log of an environment was not taken yet.
fn go_on(
    tx: &mut dyn Tx,
    asked: &Asked<'_>,
    one: &Taken,
    alive: &mut Alive,
) -> Result<usize, Error> {
    let Some(body) = &mut alive.body else {
        return Ok(0);
    };
    let Some(taken) = &mut body.taken else {
        return Ok(0);
    };
    let new = newer(&one.actions, taken.upto);
    let Some(last) = new.iter().map(|action| action.number).max() else {
        return Ok(0);
    };
    taken.upto = last;
    super::store_body(tx, alive.id, body)?;
    if let (1, Some(failed)) = (alive.generation, failed(&one.actions)) {
        // Nobody has done anything to it here.
        tx.execute(
            "UPDATE environments SET failed = $2 WHERE id = $1",
            &[alive.id.into(), failed.into()],
        )?;
    }
    store_actions(tx, asked, (alive.id, &one.name), &new)?;
    Ok(new.len())
}

/// Whether the last of them failed.
fn failed(actions: &[TakenAction]) -> Option<bool> {
    actions.last().map(|action| action.exit != 0)
}

fn store_actions(
    tx: &mut dyn Tx,
    asked: &Asked<'_>,
    (environment, name): (EnvironmentId, &EnvironmentName),
    actions: &[&TakenAction],
) -> Result<(), Error> {
    let mut rows: Vec<Vec<Value>> = Vec::with_capacity(actions.len());
    for action in actions {
        let order = Order {
            settings: asked.settings.clone(),
            edits: action.edits.clone(),
            // Nobody wrote down what the defaults were then.
            application: Vec::new(),
            deployment: Vec::new(),
            forced: false,
            before: None,
            taken: true,
        };
        let (state, error) = match action.exit {
            0 => (State::Done, None),
            exit => (
                State::Failed,
                Some(format!("its script exited with status {exit}")),
            ),
        };
        let started = action.ended_at.minus(action.took);
        rows.push(vec![
            id_of(environment, action).into(),
            asked.project.into(),
            environment.into(),
            name.into(),
            action.deed.into(),
            state.into(),
            0_u32.into(),
            // Retention counts from when it came, not from when it was.
            asked.now.into(),
            0_u32.into(),
            i64::from(action.exit).into(),
            error.into(),
            audit::kept(action.author.clone()).into(),
            started.into(),
            started.into(),
            action.ended_at.into(),
            FORMAT.into(),
            encode(&order)?,
        ]);
    }
    let into = "environment_actions (id, project, environment, name, deed, state, cancel, not_before, fence,
         exit_status, error, author, created_at, started_at, ended_at, format, body)";
    insert(tx, into, &rows, "")?;
    for action in actions {
        store_output(tx, id_of(environment, action), action, asked.now)?;
    }
    Ok(())
}

fn id_of(environment: EnvironmentId, action: &TakenAction) -> ActionId {
    ActionId::derive(Origin {
        parent: &environment.to_string(),
        name: "import",
        ordinal: action.number,
        incarnation: 0,
    })
}

fn store_output(
    tx: &mut dyn Tx,
    id: ActionId,
    action: &TakenAction,
    now: Timestamp,
) -> Result<(), Error> {
    let streams = [
        (OutputStream::Out, &action.stdout),
        (OutputStream::Err, &action.stderr),
    ];
    let mut lines = Vec::new();
    let mut places = 1_u64..;
    for (stream, text) in streams {
        let numbered = (1_u64..).zip(text.lines()).zip(&mut places);
        lines.extend(numbered.map(|((number, line), place)| Printed {
            place,
            stream,
            number,
            at: action.ended_at,
            text: line.to_owned(),
        }));
    }
    if lines.is_empty() {
        return Ok(());
    }
    output::append(tx, id, &lines)?;
    tx.execute(
        "UPDATE environment_output_lengths SET at = $2 WHERE action = $1",
        &[id.into(), now.into()],
    )?;
    Ok(())
}
