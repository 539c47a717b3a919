//! Looks at environments: who is due, and what was seen.
//!
//! Whoever takes an environment to look at it puts its next look off for as long as that may take,
//! and that time is the proof that nobody looked since and nothing was begun: what is recorded
//! with another is dropped.

use super::configured::Begun;
use super::{Effective, note_change, object, settings};
use crate::Store;
use crate::audit;
use crate::body::{Row, Scope, Tx, Value, first, for_each};
use crate::error::Error;
use crate::events::note;
use model::environment::EnvironmentName;
use model::environment::config::Edits;
use model::environment::settings::Settings;
use model::environment::status::{Look, Seen, Status};
use model::id::EnvironmentId;
use model::name::Name;
use model::time::Timestamp;
use plan::environment::{Standing, share};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long one is left alone that this program cannot look at.
const ASIDE_FOR: Duration = Duration::from_mins(10);

/// What a look may take besides its scripts.
const MARGIN: Duration = Duration::from_secs(30);

/// Scripts that a look may wait for, one after the other: two for defaults, and its own.
const SCRIPTS: u32 = 3;

/// An environment that somebody is to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCheck {
    /// Which.
    pub id: EnvironmentId,
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// As which somebody looks at it.
    pub generation: u64,
    /// How it was so far.
    pub status: Status,
    /// What to look for.
    pub look: Look,
    /// What people made of its defaults.
    pub edits: Edits,
    /// What it was last deployed with; none where nobody wrote that down.
    pub effective: Option<Effective>,
    /// Until when nobody else looks.
    pub held: Timestamp,
}

/// Environments to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueChecks {
    /// They.
    pub checks: Vec<DueCheck>,
    /// What their projects say.
    pub settings: BTreeMap<Name, Settings>,
}

/// Places for looks of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookPlaces {
    /// How many there are.
    pub most: u32,
    /// Which projects have how many of them.
    pub taken: BTreeMap<Name, u32>,
}

impl LookPlaces {
    fn left(&self) -> u32 {
        self.most.saturating_sub(self.taken.values().sum())
    }

    /// Whether one more of a project may be looked at; of several projects each has its share.
    fn has_room(&self, project: &Name, several: bool) -> bool {
        let all: u32 = self.taken.values().sum();
        let own = self.taken.get(project).copied().unwrap_or(0);
        all < self.most && (!several || own < share(self.most, all - own))
    }

    fn take(&mut self, project: &Name, several: bool) -> bool {
        let has_room = self.has_room(project, several);
        if has_room {
            *self.taken.entry(project.clone()).or_default() += 1;
        }
        has_room
    }
}

/// Who may be looked at beside those that are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookRoom {
    /// Places for those who are not apart.
    pub usual: LookPlaces,
    /// Places for those who are.
    pub slow: LookPlaces,
    /// Who is apart: they take no room from others.
    pub apart: BTreeSet<EnvironmentId>,
}

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookRecord {
    /// At which environment.
    pub environment: EnvironmentId,
    /// Until when nobody else did.
    pub held: Timestamp,
    /// What was seen; none where nobody could look.
    pub seen: Option<Seen>,
    /// The end of what the look printed, or why nobody could look.
    pub said: String,
    /// When the next look is due.
    pub due: Timestamp,
}

/// What became of looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LooksRecorded {
    /// Environments that are as they were.
    pub unchanged: usize,
    /// Those that became another.
    pub changed: usize,
    /// Looks that came too late.
    pub dropped: usize,
}

impl Store {
    /// Takes environments to look at, at most so many, the longest due first.
    pub async fn due_checks(&self, limit: u32, now: Timestamp) -> Result<DueChecks, Error> {
        let mut room = LookRoom::default();
        room.usual.most = limit;
        self.due_checks_within(room, now).await
    }

    /// The same, as many as there is room for.
    pub async fn due_checks_within(
        &self,
        room: LookRoom,
        now: Timestamp,
    ) -> Result<DueChecks, Error> {
        // Nobody is kept waiting because somebody looks whether something is due.
        if self.next_check().await?.is_none_or(|due| due > now) {
            return Ok(DueChecks::default());
        }
        self.runner
            .write(Scope::Rows, move |tx| take(tx, room.clone(), now))
            .await
    }

    /// Which of these somebody still looks at, now or later.
    pub async fn looked_after(
        &self,
        environments: BTreeSet<EnvironmentId>,
    ) -> Result<BTreeSet<EnvironmentId>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let ids: Vec<Value> = environments.iter().map(|id| (*id).into()).collect();
            let sql = "SELECT environment FROM environment_checks WHERE environment IN ({})";
            let rows = for_each(tx, sql, &[], &ids)?;
            rows.into_iter().map(|mut row| row.take()).collect()
        };
        self.runner.read(question).await
    }

    /// When the next look is due.
    pub async fn next_check(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let sql = "SELECT MIN(due) FROM environment_checks WHERE due IS NOT NULL";
            let next = first(tx, sql, &[])?.map(|mut row| row.take::<Option<Timestamp>>());
            Ok(next.transpose()?.flatten())
        };
        self.runner.read(question).await
    }

    /// Puts looks off that nobody makes now, each with until when it is held: that says nothing about
    /// what they are at.
    pub async fn put_off_looks(
        &self,
        held: BTreeMap<EnvironmentId, Timestamp>,
        due: Timestamp,
    ) -> Result<(), Error> {
        let params = held
            .into_iter()
            .map(|(id, held)| vec![id.into(), held.into(), due.into()]);
        let params: Vec<Vec<Value>> = params.collect();
        let question = move |tx: &mut dyn Tx| {
            tx.batch(
                "UPDATE environment_checks SET due = $3 WHERE environment = $1 AND due = $2",
                &params,
            )?;
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Has looks be due that somebody held who is no more: for the start of a process that knows to be
    /// the only one. Answers how many.
    pub async fn void_looks(&self, now: Timestamp) -> Result<u32, Error> {
        let question = move |tx: &mut dyn Tx| {
            let mut voided = 0;
            for (project, settings) in settings::of_all(tx)? {
                // Whoever is not held is due before that, and nobody is kept waiting for long who is.
                let held = now.plus(settings.patience.every.saturating_mul(2));
                voided += tx.execute(
                    "UPDATE environment_checks SET due = $1 WHERE due > $2 AND environment IN (
                         SELECT id FROM environments WHERE project = $3 AND gone = 0)",
                    &[now.into(), held.into(), (&project).into()],
                )?;
            }
            Ok(u32::try_from(voided).unwrap_or(u32::MAX))
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Records what was seen, and has environments become what follows from it.
    pub async fn record_looks(
        &self,
        looks: Vec<LookRecord>,
        now: Timestamp,
    ) -> Result<LooksRecorded, Error> {
        self.runner
            .write(Scope::Rows, move |tx| record(tx, &looks, now))
            .await
    }
}

/// Who is due: which, and whose.
const DUE: &str =
    "SELECT environment, (SELECT project FROM environments WHERE id = environment), due
     FROM environment_checks WHERE due <= $1";

/// Who is to be looked at next, and has room.
fn next(tx: &mut dyn Tx, mut room: LookRoom, now: Timestamp) -> Result<Vec<Value>, Error> {
    let several = settings::are_several(tx)?;
    let mut ids = Vec::new();
    for row in usual(tx, &room, several, now)? {
        let (id, project, _) = due(row)?;
        if !room.apart.contains(&id) && room.usual.take(&project, several) {
            ids.push(id.into());
        }
    }
    for (_, id, project) in slow(tx, &room, now)? {
        if room.slow.take(&project, several) {
            ids.push(id.into());
        }
    }
    Ok(ids)
}

fn due(mut row: Row) -> Result<(EnvironmentId, Name, Timestamp), Error> {
    Ok((row.take()?, row.take()?, row.take()?))
}

/// Those who may be none of those apart: projects that have their share keep nobody behind them from
/// being seen.
fn usual(
    tx: &mut dyn Tx,
    room: &LookRoom,
    several: bool,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    let left = room.usual.left();
    if left == 0 {
        return Ok(Vec::new());
    }
    let apart = u32::try_from(room.apart.len()).unwrap_or(u32::MAX);
    let mut params: Vec<Value> = vec![now.into(), left.saturating_add(apart).into()];
    let projects = room.usual.taken.keys();
    let full = projects.filter(|project| !room.usual.has_room(project, several));
    params.extend(full.map(Value::from));
    let but = if params.len() > 2 {
        let places: Vec<_> = (3..=params.len())
            .map(|place| format!("${place}"))
            .collect();
        let whose = "(SELECT project FROM environments WHERE id = environment)";
        format!(" AND {whose} NOT IN ({})", places.join(", "))
    } else {
        String::new()
    };
    let sql = format!("{DUE}{but} ORDER BY due, environment LIMIT $2 FOR UPDATE SKIP LOCKED");
    tx.query(&sql, &params)
}

/// Those of the others who are due, the longest due first.
fn slow(
    tx: &mut dyn Tx,
    room: &LookRoom,
    now: Timestamp,
) -> Result<BTreeSet<(Timestamp, EnvironmentId, Name)>, Error> {
    if room.slow.left() == 0 {
        return Ok(BTreeSet::new());
    }
    let ids: Vec<Value> = room.apart.iter().map(|id| (*id).into()).collect();
    let sql = format!("{DUE} AND environment IN ({{}}) FOR UPDATE SKIP LOCKED");
    let rows = for_each(tx, &sql, &[now.into()], &ids)?.into_iter();
    let slow = rows.map(|row| due(row).map(|(id, project, due)| (due, id, project)));
    slow.collect()
}

fn take(tx: &mut dyn Tx, room: LookRoom, now: Timestamp) -> Result<DueChecks, Error> {
    let ids = next(tx, room, now)?;
    let rows = for_each(
        tx,
        "SELECT id, project, name, generation, status, format, body FROM environments
         WHERE gone = 0 AND id IN ({})",
        &[],
        &ids,
    )?;
    let mut begun = Begun::of(tx, &ids)?;
    let mut due = DueChecks::default();
    let mut held: BTreeMap<Timestamp, Vec<Value>> = BTreeMap::new();
    let mut projects = Projects::default();
    for row in rows {
        let (id, until) = match read(tx, row, &mut projects, now)? {
            Ok(mut check) => {
                check.effective = begun.deployed_with(tx, check.id, &check.edits)?;
                (check.id, Some((check.held, check)))
            }
            Err(id) => (id, None),
        };
        let aside = now.plus(ASIDE_FOR);
        let end = until.as_ref().map_or(aside, |(held, _)| *held);
        held.entry(end).or_default().push(id.into());
        due.checks.extend(until.map(|(_, check)| check));
    }
    for (until, ids) in held {
        let sql = "UPDATE environment_checks SET due = $1 WHERE environment IN ({})";
        for_each(tx, sql, &[until.into()], &ids)?;
    }
    due.settings = projects.known();
    Ok(due)
}

/// What projects say, each read once.
#[derive(Default)]
struct Projects(BTreeMap<Name, Option<Settings>>);

impl Projects {
    fn of(&mut self, tx: &mut dyn Tx, project: &Name) -> Result<Option<&Settings>, Error> {
        if !self.0.contains_key(project) {
            let settings = match settings::of_project(tx, project) {
                Err(error) if error.is_unreadable() => None,
                read => read?,
            };
            self.0.insert(project.clone(), settings);
        }
        Ok(self.0.get(project).and_then(Option::as_ref))
    }

    fn known(self) -> BTreeMap<Name, Settings> {
        let known = self.0.into_iter();
        known
            .filter_map(|(project, settings)| Some((project, settings?)))
            .collect()
    }
}

/// One to look at; only its id where nobody here can.
fn read(
    tx: &mut dyn Tx,
    mut row: Row,
    projects: &mut Projects,
    now: Timestamp,
) -> Result<Result<DueCheck, EnvironmentId>, Error> {
    let id: EnvironmentId = row.take()?;
    let (project, name, generation) = (row.take()?, row.take()?, row.take()?);
    let status: Status = row.take()?;
    let body: Option<super::Body> = row.readable()?;
    let standing = Standing {
        status,
        since: now,
        // Whoever is busy is not due.
        busy: None,
        failed: false,
        protected: false,
        asleep: None,
    };
    let settings = projects.of(tx, &project)?;
    let (Some(body), Some(settings), Some(look)) = (body, settings, standing.look()) else {
        return Ok(Err(id));
    };
    let held = now.plus(settings.patience.check.saturating_mul(SCRIPTS) + MARGIN);
    Ok(Ok(DueCheck {
        id,
        project,
        name,
        generation,
        status,
        look,
        edits: body.edits,
        effective: None,
        held,
    }))
}

/// An environment as it is when a look at it is recorded.
struct Looked {
    project: Name,
    name: EnvironmentName,
    generation: u64,
    standing: Standing,
    due: Option<Timestamp>,
    /// What the last look showed that could look.
    seen: Option<String>,
    /// Since when nobody could.
    unseen: Option<Timestamp>,
    said: Option<String>,
}

fn record(tx: &mut dyn Tx, looks: &[LookRecord], now: Timestamp) -> Result<LooksRecorded, Error> {
    let known = looked_at(tx, looks)?;
    let mut projects = Projects::default();
    let (mut same, mut told, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    let mut recorded = LooksRecorded::default();
    for look in looks {
        let Some(known) = known.get(&look.environment) else {
            continue;
        };
        // What people said of it meanwhile changes nothing of what was seen.
        if known.due != Some(look.held) {
            continue;
        }
        let became = match projects.of(tx, &known.project)? {
            Some(settings) => became(&known.standing, look.seen, settings, now),
            None => known.standing.status,
        };
        let seen = look.seen.map(seen_word);
        // What was seen is known as long as nobody sees anything else.
        let last = seen.or(known.seen.as_deref());
        let unseen = seen.is_none().then(|| known.unseen.unwrap_or(now));
        let said = audit::kept(look.said.clone());
        let mut params: Vec<Value> =
            vec![look.environment.into(), look.held.into(), look.due.into()];
        let as_before = known.seen.as_deref() == last
            && known.unseen == unseen
            && known.said.as_ref() == Some(&said);
        // Before anything of the look is stored: whoever begins something locks in this order.
        if became != known.standing.status {
            if !change(tx, (look, known), became, now)? {
                missed.push(params);
                continue;
            }
            recorded.changed += 1;
        }
        if let Some((what, message)) = news(look, known, seen) {
            let of = (&known.project, now);
            note(tx, of, what, object(&known.name), audit::kept(message));
        }
        params.push(now.into());
        if as_before {
            same.push(params);
        } else {
            params.extend([last.into(), said.into(), unseen.into()]);
            told.push(params);
        }
    }
    // Whoever was changed at this very moment, and is not busy, is looked at again in time.
    tx.batch(
        "UPDATE environment_checks SET due = $3 WHERE environment = $1 AND due = $2",
        &missed,
    )?;
    let looked = [
        tx.batch(
            "UPDATE environment_checks SET due = $3, at = $4 WHERE environment = $1 AND due = $2",
            &same,
        )?,
        tx.batch(
            "UPDATE environment_checks SET due = $3, at = $4, seen = $5, said = $6, unseen_since = $7
             WHERE environment = $1 AND due = $2",
            &told,
        )?,
    ];
    let taken = looked.concat().into_iter().sum::<usize>();
    recorded.unchanged = taken.saturating_sub(recorded.changed);
    recorded.dropped = looks.len() - taken;
    Ok(recorded)
}

/// What a look tells besides the status: that nobody can look, or can again, and that one runs which
/// should rest.
fn news(look: &LookRecord, known: &Looked, seen: Option<&str>) -> Option<(&'static str, String)> {
    match (look.seen, known.unseen) {
        (None, None) => Some(("environment.unseen", because(look))),
        (Some(Seen::Bad(_)), _)
            if known.standing.status == Status::Archived && known.seen.as_deref() != seen =>
        {
            let message = format!("archived, and {}", because(look));
            Some(("environment.not-at-rest", message))
        }
        (Some(_), Some(_)) => Some(("environment.seen", because(look))),
        (None, Some(_)) | (Some(_), None) => None,
    }
}

fn looked_at(
    tx: &mut dyn Tx,
    looks: &[LookRecord],
) -> Result<BTreeMap<EnvironmentId, Looked>, Error> {
    let ids: Vec<Value> = looks.iter().map(|look| look.environment.into()).collect();
    let rows = for_each(
        tx,
        "SELECT e.id, e.project, e.name, e.generation, e.status, e.status_since, e.failed, e.protected,
                c.due, c.seen, c.unseen_since, c.said
         FROM environments e JOIN environment_checks c ON c.environment = e.id
         WHERE e.gone = 0 AND e.id IN ({})",
        &[],
        &ids,
    )?;
    let looked = |mut row: Row| {
        let id = row.take()?;
        let (project, name, generation) = (row.take()?, row.take()?, row.take()?);
        let (status, since) = (row.take()?, row.take()?);
        let standing = Standing {
            status,
            since,
            busy: None,
            failed: row.take()?,
            protected: row.take()?,
            asleep: None,
        };
        let looked = Looked {
            project,
            name,
            generation,
            standing,
            due: row.take()?,
            seen: row.take()?,
            unseen: row.take()?,
            said: row.take()?,
        };
        Ok((id, looked))
    };
    rows.into_iter().map(looked).collect()
}

fn became(standing: &Standing, seen: Option<Seen>, settings: &Settings, now: Timestamp) -> Status {
    match seen {
        Some(seen) => standing.after(seen, &settings.patience, now),
        None => standing.unseen(&settings.patience, now),
    }
}

/// Has an environment become another, unless somebody has begun something with it meanwhile.
fn change(
    tx: &mut dyn Tx,
    (look, known): (&LookRecord, &Looked),
    became: Status,
    now: Timestamp,
) -> Result<bool, Error> {
    let was = known.standing.status;
    let changed = tx.execute(
        "UPDATE environments SET status = $4, status_since = $5, updated_at = $5,
             archived_at = CASE WHEN $4 = 'archived' THEN $5 ELSE archived_at END
         WHERE id = $1 AND generation = $2 AND status = $3
           AND EXISTS (SELECT 1 FROM environment_checks WHERE environment = $1 AND due = $6)",
        &[
            look.environment.into(),
            known.generation.into(),
            was.into(),
            became.into(),
            now.into(),
            look.held.into(),
        ],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    let of = (look.environment, &known.project, &known.name);
    let because = because(look);
    note_change(tx, of, (Some(was), Some(became)), &because, now)?;
    Ok(true)
}

/// Why an environment became another: the last line that the look printed says most.
fn because(look: &LookRecord) -> String {
    let saw = match look.seen {
        Some(Seen::Good) => "a look found it as it should be",
        Some(Seen::Bad(_)) => "a look found it otherwise",
        None => "nobody could look at it",
    };
    let lines = look.said.lines().map(str::trim);
    match lines.rev().find(|line| !line.is_empty()) {
        Some(line) => format!("{saw}: {line}"),
        None => saw.to_owned(),
    }
}

/// What was seen, as a column has it.
pub(super) const fn seen_word(seen: Seen) -> &'static str {
    match seen {
        Seen::Good => "good",
        Seen::Bad(how) => Status::Failure(how).as_str(),
    }
}

/// The same the other way.
pub(super) fn seen_of(word: &str) -> Option<Seen> {
    match word.parse() {
        Ok(Status::Failure(how)) => Some(Seen::Bad(how)),
        Ok(_) => None,
        Err(_) => (word == "good").then_some(Seen::Good),
    }
}
