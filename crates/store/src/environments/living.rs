//! Environments that have been what they are for long enough.

use super::settings;
use crate::Store;
use crate::body::{Row, Tx, Value, first};
use crate::error::Error;
use model::environment::EnvironmentName;
use model::environment::config::Edits;
use model::environment::settings::Settings;
use model::environment::status::Deed;
use model::id::EnvironmentId;
use model::name::Name;
use model::time::Timestamp;
use plan::environment::{AGAIN_AFTER, Cause, Span, Standing, turns};
use std::collections::BTreeSet;
use std::time::Duration;

/// An environment whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlived {
    /// Which.
    pub id: EnvironmentId,
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// Its generation.
    pub generation: u64,
    /// What is to be done to it.
    pub deed: Deed,
    /// Why.
    pub cause: Cause,
    /// What people made of its defaults.
    pub edits: Edits,
    /// What its project says.
    pub settings: Settings,
}

impl Store {
    /// Environments that have rested, or been up, for long enough; at most so many of each kind
    /// and project, the longest first.
    pub async fn outlived_environments(
        &self,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Outlived>, Error> {
        self.outlived_environments_but(limit, BTreeSet::new(), now)
            .await
    }

    /// The same without some, who take no room from others.
    pub async fn outlived_environments_but(
        &self,
        limit: u32,
        but: BTreeSet<EnvironmentId>,
        now: Timestamp,
    ) -> Result<Vec<Outlived>, Error> {
        self.runner
            .read(move |tx| outlived(tx, limit, &but, now))
            .await
    }
}

impl Store {
    /// When the next environment has been what it is for long enough, later than `after` and soon,
    /// as far as anybody knows now: somebody is to look then.
    pub async fn next_outlived(
        &self,
        soon: Duration,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        self.runner.read(move |tx| next(tx, soon, after)).await
    }
}

fn next(tx: &mut dyn Tx, soon: Duration, after: Timestamp) -> Result<Option<Timestamp>, Error> {
    let mut all = Vec::new();
    for (project, settings) in settings::of_all(tx)? {
        all.extend(turns(&settings.hours, after, soon));
        let mut ends = vec![
            ("expires_at", UP, Duration::ZERO),
            ("archived_at", "status = 'archived'", settings.retention),
        ];
        ends.extend(settings.idle.map(|idle| ("used_at", UP, idle)));
        for (since, which, span) in ends {
            let sql = format!(
                "SELECT MIN({since}) FROM environments
                 WHERE project = $1 AND gone = 0 AND protected = 0 AND {since} > $2 AND {which}"
            );
            let row = first(tx, &sql, &[(&project).into(), after.minus(span).into()])?;
            let begun = row.map(|mut row| row.take::<Option<Timestamp>>());
            all.extend(begun.transpose()?.flatten().map(|begun| begun.plus(span)));
        }
    }
    all.extend(next_again(tx, after)?);
    Ok(all.into_iter().min())
}

/// When something may first be begun again that did not come about.
fn next_again(tx: &mut dyn Tx, after: Timestamp) -> Result<Option<Timestamp>, Error> {
    let sql = format!(
        "SELECT MIN(c.ended_at) FROM environment_actions c JOIN environments e ON e.id = c.environment
         WHERE c.ended_at > $1 AND e.gone = 0 AND {LAST}
           AND ((c.deed = 'restore' AND e.status = 'archived') OR (e.protected = 0 AND (
             (c.deed = 'archive' AND e.{UP}) OR (c.deed = 'cleanup' AND e.status = 'archived'))))"
    );
    let row = first(tx, &sql, &[after.minus(AGAIN_AFTER).into()])?;
    let ended = row.map(|mut row| row.take::<Option<Timestamp>>());
    Ok(ended
        .transpose()?
        .flatten()
        .map(|ended| ended.plus(AGAIN_AFTER)))
}

/// That nothing was begun since an action.
const LAST: &str = "NOT EXISTS (
    SELECT 1 FROM environment_actions d WHERE d.environment = c.environment AND d.seq > c.seq)";

/// That the last thing that was done to an environment is not this, a moment ago: as long as it is how
/// it was before, it would be begun all the time.
fn rested(deed: Deed, since: &str) -> String {
    let deed = deed.as_str();
    format!(
        "NOT EXISTS (SELECT 1 FROM environment_actions c
             WHERE c.environment = environments.id AND c.deed = '{deed}' AND c.ended_at > {since} AND {LAST})"
    )
}

/// Those that are up.
const UP: &str = "status NOT IN ('archived', 'archive-pending', 'cleanup-failed')";

const COLUMNS: &str =
    "SELECT id, name, generation, status, status_since, failed, protected, archived_at, expires_at,
     used_at, asleep, format, body FROM environments
     WHERE project = $1 AND gone = 0 AND NOT EXISTS (
         SELECT 1 FROM environment_actions a
         WHERE a.environment = environments.id AND a.state IN ('waiting', 'running'))";

fn outlived(
    tx: &mut dyn Tx,
    limit: u32,
    but: &BTreeSet<EnvironmentId>,
    now: Timestamp,
) -> Result<Vec<Outlived>, Error> {
    let room = usize::try_from(limit).unwrap_or(usize::MAX);
    let most = limit.saturating_add(u32::try_from(but.len()).unwrap_or(u32::MAX));
    let mut all = Vec::new();
    for (project, settings) in settings::of_all(tx)? {
        for (which, times) in due(&settings, now) {
            let mut params: Vec<Value> = vec![(&project).into(), most.into()];
            params.extend(times.into_iter().map(Value::from));
            let rows = tx.query(&format!("{COLUMNS} AND {which} LIMIT $2"), &params)?;
            let read = rows
                .into_iter()
                .map(|row| read(row, &project, &settings, now));
            let read = read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
            all.extend(read.filter(|one| !but.contains(&one.id)).take(room));
        }
    }
    Ok(all)
}

/// Who may have outlived something: a condition, and the points in time in it, from `$3` on.
fn due(settings: &Settings, now: Timestamp) -> Vec<(String, Vec<Timestamp>)> {
    let rested = |deed| rested(deed, "$4");
    let again = now.minus(AGAIN_AFTER);
    let mut due = vec![
        (
            format!(
                "status = 'archived' AND protected = 0 AND archived_at <= $3 AND (asleep IS NULL OR asleep <> 'hours'
                 OR expires_at IS NOT NULL) AND {} ORDER BY archived_at",
                rested(Deed::Cleanup)
            ),
            vec![now.minus(settings.retention), again],
        ),
        (
            format!(
                "expires_at IS NOT NULL AND expires_at <= $3 AND protected = 0 AND {UP} AND {} ORDER BY expires_at",
                rested(Deed::Archive)
            ),
            vec![now, again],
        ),
    ];
    if settings.hours.opens(now).is_none() {
        due.push((
            format!(
                "status = 'archived' AND asleep = 'hours' AND archived_at <= $3 AND {} ORDER BY archived_at",
                rested(Deed::Restore)
            ),
            vec![now, again],
        ));
    }
    // Whoever was used after both is awake.
    let idle = settings.idle.map(|idle| now.minus(idle));
    if let Some(end) = idle.max(settings.hours.shut(now)) {
        due.push((
            format!(
                "used_at <= $3 AND protected = 0 AND {UP} AND {} ORDER BY used_at",
                rested(Deed::Archive)
            ),
            vec![end, again],
        ));
    }
    due
}

fn read(
    mut row: Row,
    project: &Name,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Outlived>, Error> {
    let (id, name, generation) = (row.take()?, row.take()?, row.take()?);
    let (status, since, failed, protected) = (row.take()?, row.take()?, row.take()?, row.take()?);
    let (archived_at, expires_at, used_at) = (row.take()?, row.take()?, row.take()?);
    let asleep = super::sleep_of(row.take()?);
    let span = Span {
        archived_at,
        retention: settings.retention,
        expires_at,
        asleep,
        used_at,
        idle: settings.idle,
        hours: &settings.hours,
    };
    let standing = Standing {
        status,
        since,
        busy: None,
        failed,
        protected,
        asleep,
    };
    let body: Option<super::Body> = row.readable()?;
    let (Some((deed, cause)), Some(body)) = (standing.outlived(&span, now), body) else {
        return Ok(None);
    };
    Ok(Some(Outlived {
        id,
        project: project.clone(),
        name,
        generation,
        deed,
        cause,
        edits: body.edits,
        settings: settings.clone(),
    }))
}
