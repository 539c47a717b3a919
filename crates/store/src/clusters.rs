//! Clusters as lists, pages and the planner want to read them.

use crate::Store;
use crate::body::{FORMAT, Row, Scope, Tx, Value, encode, first};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use crate::{claims, commit, desired, events, intents, observations, tasks, uses};
use model::cluster::{Desired, Generation, Machine};
use model::id::{ClusterId, MachineId};
use model::intent::Intent;
use model::name::Name;
use model::observed::{MachineFact, Observed};
use model::sealed::Owner;
use model::secret::SecretRef;
use model::task::{Open, State};
use model::time::Timestamp;
use model::version::Version;
use plan::{Claim, Elsewhere, Held, Phase, Plan, Reason, Slot, Summary, Vain};
use std::collections::{BTreeMap, BTreeSet};

/// Which clusters a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFilter {
    /// Only those of this manifest.
    pub manifest: Option<Name>,
    /// Only those in this phase; without it, all that are not gone.
    pub phase: Option<Phase>,
}

/// What a list shows of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRow {
    /// Which cluster, in which of its lives.
    pub id: ClusterId,
    /// Who owns it.
    pub project: Name,
    /// The manifest that declares it.
    pub manifest: Name,
    /// What people call it.
    pub name: Name,
    /// How many clusters of this name there were before.
    pub incarnation: u32,
    /// Which accepted change it follows.
    pub generation: Generation,
    /// Which Kubernetes its nodes should run.
    pub version: Version,
    /// Where it stands.
    pub summary: Summary,
    /// Work that waits, each with its reason.
    pub held: Vec<Held>,
    /// When it was last looked at as a whole.
    pub probed_at: Option<Timestamp>,
    /// When its summary, its held work or its desired state last changed.
    pub updated_at: Timestamp,
}

/// All that is known of one cluster, of one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// As it should be.
    pub desired: Desired,
    /// As it was last seen.
    pub observed: Observed,
    /// Tasks that are not finished, oldest first.
    pub open: Vec<Open>,
    /// Machines that are out of service because of us.
    pub ledger: Vec<Slot>,
    /// Wishes about it, oldest first.
    pub intents: Vec<Intent>,
    /// How many plans of it were committed, and wishes about it made.
    pub parent: u64,
    /// What people are told of it; absent when a change waits to be planned.
    told: Option<(Summary, Vec<Held>)>,
    /// When it is planned again though nothing may have happened.
    wake: Option<Timestamp>,
    /// What ended well again and again and changed nothing.
    vain: Vec<Vain>,
    /// Machines that the last commit held back because others hold what they need.
    blocked: Vec<Name>,
    /// Of these, those whose need the others keep.
    shut_out: Vec<Name>,
    /// What other clusters have drawn from budgets that this one shares.
    elsewhere: Vec<Elsewhere>,
    /// Secrets that it and its machines name and that nobody has set.
    missing: Vec<SecretRef>,
    /// What it asks for and other clusters have.
    claimed: Vec<Claim>,
}

impl ClusterView {
    /// What the planner is given.
    pub fn view(&self, now: Timestamp) -> plan::View<'_> {
        plan::View {
            desired: &self.desired,
            observed: &self.observed,
            open: &self.open,
            ledger: &self.ledger,
            intents: &self.intents,
            elsewhere: &self.elsewhere,
            missing: &self.missing,
            claimed: &self.claimed,
            vain: &self.vain,
            blocked: &self.blocked,
            shut_out: &self.shut_out,
            parent: self.parent,
            now,
        }
    }

    /// Whether committing `plan` would change nothing, not even what people are told and when it is made again.
    pub fn is_told(&self, plan: &Plan, now: Timestamp) -> bool {
        let told = self
            .told
            .as_ref()
            .is_some_and(|(summary, held)| *summary == plan.summary && *held == plan.held);
        told && !commit::acts(plan) && !commit::sooner(plan, self.wake, now)
    }

    /// Whether nobody has looked at it since it was restored from a backup. What is known of it
    /// is long past then, and no ground to act upon.
    pub fn is_unseen(&self) -> bool {
        let machines = self.desired.all().filter(|machine| !self.is_gone(machine));
        let mut seen = machines
            .filter_map(|machine| self.observed.machines.get(&machine.id))
            .flat_map(|seen| {
                let machine = seen.machine.as_ref().map(|(_, at)| *at);
                let node = seen.node.as_ref().map(|(_, at)| *at);
                machine.into_iter().chain(node)
            })
            .peekable();
        seen.peek().is_some() && seen.all(|at| at == observations::FORGOTTEN)
    }

    /// Whether nobody needs to look at a machine any more: it was to leave, is seen to be
    /// absent, and nothing is under way that could change that.
    pub fn is_gone(&self, machine: &Machine) -> bool {
        let seen = self.observed.machines.get(&machine.id);
        let absent =
            seen.is_some_and(|seen| matches!(seen.machine, Some((MachineFact::Absent, _))));
        absent
            && self
                .desired
                .leaving
                .iter()
                .any(|leaving| leaving.id == machine.id)
            && !self.open.iter().any(|open| open.machine == machine.id)
    }

    /// A cluster about which nothing is known but how it should be.
    pub(crate) fn unseen(desired: Desired) -> Self {
        Self {
            desired,
            observed: Observed::default(),
            open: Vec::new(),
            ledger: Vec::new(),
            intents: Vec::new(),
            parent: 0,
            told: None,
            wake: None,
            vain: Vec::new(),
            blocked: Vec::new(),
            shut_out: Vec::new(),
            elsewhere: Vec::new(),
            missing: Vec::new(),
            claimed: Vec::new(),
        }
    }

    /// Secrets that it and its machines name and that nobody has set.
    pub fn missing(&self) -> &[SecretRef] {
        &self.missing
    }

    /// What `expand` is given.
    pub fn known(&self) -> plan::Known<'_> {
        plan::Known {
            desired: &self.desired,
            observed: &self.observed,
            intents: &self.intents,
            open: &self.open,
        }
    }
}

/// A cluster that stays as it is, whatever a manifest says: what is stored of it cannot be read here.
#[derive(Debug, Clone)]
pub struct Unread {
    /// What people call it.
    pub cluster: Name,
    /// What cannot be read.
    pub why: Error,
}

impl std::fmt::Display for Unread {
    /// What is so, and the way out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cluster, why } = self;
        write!(
            f,
            "cluster {cluster} stays as it is: {why} ({}); `slipway cluster recover {cluster}` sets that aside, \
             then apply the manifest again",
            why.code()
        )
    }
}

/// A cluster that the loops look after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCluster {
    /// Which cluster.
    pub id: ClusterId,
    /// When it was last looked at as a whole.
    pub probed_at: Option<Timestamp>,
}

/// How many there are of what, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that are kept, by state.
    pub tasks: BTreeMap<State, u64>,
    /// Clusters that are not gone, by phase.
    pub clusters: BTreeMap<Phase, u64>,
    /// Machines of those clusters, those to leave included until they are gone.
    pub machines: u64,
}

impl Store {
    /// Clusters of a project by name.
    pub async fn clusters(
        &self,
        project: &Name,
        filter: ClusterFilter,
        page: Page,
    ) -> Result<Listed<ClusterRow>, Error> {
        let project = project.clone();
        self.runner
            .read(move |tx| list(tx, &project, &filter, &page))
            .await
    }

    /// The cluster of that name: the one to stay, else the newest that is not gone yet.
    pub async fn cluster(&self, project: &Name, name: &Name) -> Result<Option<ClusterRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| newest(tx, &project, &name, "AND phase <> 'gone'");
        self.runner.read(question).await
    }

    /// Like [`Store::cluster`], else the newest that is gone: what it was stays readable.
    pub async fn cluster_ever(
        &self,
        project: &Name,
        name: &Name,
    ) -> Result<Option<ClusterRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| newest(tx, &project, &name, "");
        self.runner.read(question).await
    }

    /// All that is known of one cluster; nothing once it is gone.
    pub async fn cluster_view(&self, cluster: ClusterId) -> Result<Option<ClusterView>, Error> {
        self.runner.read(move |tx| view(tx, cluster)).await
    }

    /// Tells people that what is stored of a cluster cannot be read by this program, and that
    /// nothing is done to it.
    pub async fn tell_unreadable(
        &self,
        cluster: ClusterId,
        why: &Error,
        now: Timestamp,
    ) -> Result<(), Error> {
        let why = why.clone();
        self.runner
            .write(Scope::Cluster(cluster), move |tx| {
                tell_unreadable(tx, cluster, &why, now)
            })
            .await
    }

    /// Every cluster that is not gone.
    pub async fn live_clusters(&self) -> Result<Vec<LiveCluster>, Error> {
        let question = |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT id, probed_at FROM clusters WHERE phase <> 'gone' ORDER BY id",
                &[],
            )?;
            let live = |mut row: Row| {
                Ok(LiveCluster {
                    id: row.take()?,
                    probed_at: row.take()?,
                })
            };
            rows.into_iter().map(live).collect()
        };
        self.runner.read(question).await
    }

    /// Clusters whose desired state or wishes changed since a plan was last committed.
    pub async fn unplanned(&self) -> Result<Vec<ClusterId>, Error> {
        let question = |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT id FROM clusters WHERE unplanned = 1 ORDER BY id",
                &[],
            )?;
            rows.into_iter().map(|mut row| row.take()).collect()
        };
        self.runner.read(question).await
    }

    /// How many tasks, clusters and machines there are.
    pub async fn counts(&self) -> Result<Counts, Error> {
        self.runner.read(counts).await
    }
}

pub(crate) const COLUMNS: &str =
    "SELECT id, project, manifest, name, incarnation, generation, version,
    format, summary, format, held, probed_at, updated_at FROM clusters";

pub(crate) fn row(mut row: Row) -> Result<ClusterRow, Error> {
    Ok(ClusterRow {
        id: row.take()?,
        project: row.take()?,
        manifest: row.take()?,
        name: row.take()?,
        incarnation: row.take()?,
        generation: row.take()?,
        version: row.take()?,
        summary: row.readable()?.unwrap_or_else(unread),
        held: row.readable()?.unwrap_or_default(),
        probed_at: row.take()?,
        updated_at: row.take()?,
    })
}

/// What is told of a cluster of which another version of the program told something.
pub(crate) fn unread() -> Summary {
    Summary {
        phase: Phase::Error,
        control: (0, 0),
        compute: (0, 0),
        leaving: 0,
        tasks: 0,
        message: "what is stored of it cannot be read by this program".to_owned(),
    }
}

/// Tells people that nothing is done to a cluster, unless they are told so already.
fn tell_unreadable(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    why: &Error,
    now: Timestamp,
) -> Result<(), Error> {
    let found = first(
        tx,
        "SELECT project, name, format, summary FROM clusters WHERE id = $1 AND phase <> 'gone'
         FOR UPDATE",
        &[cluster.into()],
    )?;
    let Some(mut row) = found else {
        return Ok(());
    };
    let (project, name): (Name, Name) = (row.take()?, row.take()?);
    let before = row.readable::<Summary>()?;
    let mut summary = before.clone().unwrap_or_else(unread);
    summary.phase = Phase::Error;
    summary.message = format!(
        "nothing is done to it: {why} ({}); `slipway cluster recover {name}` sets that aside",
        why.code()
    );
    if before.as_ref() == Some(&summary) {
        return Ok(());
    }
    tx.execute(
        "UPDATE clusters SET phase = $2, format = $3, summary = $4, held = '[]', updated_at = $5
         WHERE id = $1",
        &[
            cluster.into(),
            summary.phase.as_str().into(),
            FORMAT.into(),
            encode(&summary)?,
            now.into(),
        ],
    )?;
    let message = format!("{}: {}", summary.phase.as_str(), summary.message);
    let object = format!("cluster/{name}");
    events::note(tx, (&project, now), "cluster.phase", object, message);
    Ok(())
}

/// Of the lives of one name that a condition lets through, the one that people mean.
fn newest(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    condition: &str,
) -> Result<Option<ClusterRow>, Error> {
    let sql = format!(
        "{COLUMNS} WHERE project = $1 AND name = $2 {condition}
         ORDER BY CASE WHEN phase = 'gone' THEN 1 ELSE 0 END, tombstone, incarnation DESC LIMIT 1"
    );
    first(tx, &sql, &[project.into(), name.into()])?
        .map(row)
        .transpose()
}

fn list(
    tx: &mut dyn Tx,
    project: &Name,
    filter: &ClusterFilter,
    page: &Page,
) -> Result<Listed<ClusterRow>, Error> {
    // Names are never empty, so this start lies before every row.
    let [name, incarnation] = page.after("clusters", ["", "0"])?;
    let incarnation = page.number(incarnation)?;
    let mut params: Vec<Value> = vec![
        project.into(),
        name.into(),
        incarnation.into(),
        page.rows().into(),
    ];
    let mut conditions = vec![
        "project = $1".to_owned(),
        "(name, incarnation) > ($2, $3)".to_owned(),
    ];
    match filter.phase {
        None => conditions.push("phase <> 'gone'".to_owned()),
        Some(phase) => {
            params.push(phase.as_str().into());
            conditions.push(format!("phase = ${}", params.len()));
        }
    }
    if let Some(manifest) = &filter.manifest {
        params.push(manifest.into());
        conditions.push(format!("manifest = ${}", params.len()));
    }
    let conditions = conditions.join(" AND ");
    let sql = format!("{COLUMNS} WHERE {conditions} ORDER BY name, incarnation LIMIT $4");
    let rows: Vec<_> = tx
        .query(&sql, &params)?
        .into_iter()
        .map(row)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(rows, |last| {
        cursor("clusters", &[&last.name, &last.incarnation])
    }))
}

/// All that is known of one cluster that is not gone.
pub(crate) fn view(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Option<ClusterView>, Error> {
    let found = first(
        tx,
        "SELECT generation, plans, unplanned, wake_at, format, summary, format, held FROM clusters
         WHERE id = $1 AND phase <> 'gone'",
        &[cluster.into()],
    )?;
    let Some(mut row) = found else {
        return Ok(None);
    };
    let (generation, parent) = (row.take()?, row.take()?);
    let unplanned: bool = row.take()?;
    let wake = row.take()?;
    // What people were told is made anew with the next plan, so nothing depends on reading it.
    let told: (Option<Summary>, Option<Vec<Held>>) = (row.readable()?, row.readable()?);
    let told = told.0.zip(told.1);
    // What is beyond a quota comes when something has gone, so it must not keep that back.
    let claimed =
        |held: &&Held| matches!(held.reason, Reason::Claimed { .. } | Reason::Quota { .. });
    let kept = |held: &&Held| matches!(held.reason, Reason::Claimed { goes: false, .. });
    let held = || told.iter().flat_map(|(_, held)| held);
    let named = |held: &Held| held.machine.clone();
    let blocked = held().filter(claimed).map(named).collect();
    let shut_out = held().filter(kept).map(named).collect();
    let Some(desired) = desired::at(tx, cluster, generation)? else {
        return Ok(None);
    };
    let (observed, changed_at) = observations::with_change(tx, cluster)?;
    let mut view = ClusterView {
        desired,
        observed,
        vain: tasks::vain(tx, cluster, changed_at)?,
        open: tasks::open(tx, cluster)?,
        ledger: ledger(tx, cluster)?,
        intents: intents::of_cluster(tx, cluster)?,
        parent,
        told: told.filter(|_| !unplanned),
        wake,
        blocked,
        shut_out,
        elsewhere: Vec::new(),
        missing: Vec::new(),
        claimed: Vec::new(),
    };
    let desired = view.desired.clone();
    view.look_around(tx, &desired, &BTreeSet::new())?;
    Ok(Some(view))
}

impl ClusterView {
    /// Takes in what a cluster of this shape shares with others: groups, secrets,
    /// addresses and names.
    pub(crate) fn look_around(
        &mut self,
        tx: &mut dyn Tx,
        desired: &Desired,
        going: &BTreeSet<MachineId>,
    ) -> Result<(), Error> {
        self.elsewhere.clear();
        for group in desired.disruption.groups.keys() {
            let of = (&desired.project, desired.cluster);
            self.elsewhere.extend(elsewhere(tx, of, group)?);
        }
        self.missing.clear();
        for secret in uses::secrets(desired) {
            if !is_set(tx, &desired.project, &secret)? {
                self.missing.push(secret);
            }
        }
        let wanted = Claim::wanted(desired, &self.observed);
        self.claimed = claims::elsewhere(tx, wanted, (&desired.project, desired.cluster), going)?;
        Ok(())
    }
}

/// What other clusters of the project have drawn from the budget of a group.
pub(crate) fn elsewhere(
    tx: &mut dyn Tx,
    (project, cluster): (&Name, ClusterId),
    group: &Name,
) -> Result<Vec<Elsewhere>, Error> {
    let rows = tx.query(
        "SELECT cluster_name, name FROM ledger
         WHERE project = $1 AND disruption_group = $2 AND cluster <> $3 ORDER BY since, machine",
        &[project.into(), group.into(), cluster.into()],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Elsewhere {
                cluster: row.take()?,
                machine: row.take()?,
                group: group.clone(),
            })
        })
        .collect()
}

fn is_set(tx: &mut dyn Tx, project: &Name, secret: &SecretRef) -> Result<bool, Error> {
    let owner = Owner::Secret(secret.name.clone()).to_string();
    let found = match &secret.key {
        Some(key) => first(
            tx,
            "SELECT 1 FROM sealed WHERE project = $1 AND owner = $2 AND entry = $3",
            &[project.into(), owner.into(), key.as_str().into()],
        )?,
        None => first(
            tx,
            "SELECT 1 FROM sealed WHERE project = $1 AND owner = $2 LIMIT 1",
            &[project.into(), owner.into()],
        )?,
    };
    Ok(found.is_some())
}

/// The living clusters of a manifest, those with a tombstone not included; and those that this program
/// cannot read, which keep none of the others.
pub(crate) fn of_manifest(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Name,
) -> Result<(Vec<ClusterView>, Vec<Unread>), Error> {
    let rows = tx.query(
        "SELECT id, name FROM clusters WHERE project = $1 AND manifest = $2 AND tombstone = 0 ORDER BY name",
        &[project.into(), manifest.into()],
    )?;
    let (mut views, mut unread) = (Vec::with_capacity(rows.len()), Vec::new());
    for mut row in rows {
        let (id, cluster) = (row.take()?, row.take()?);
        match view(tx, id) {
            Ok(known) => views.extend(known),
            Err(why) if why.is_unreadable() => unread.push(Unread { cluster, why }),
            Err(error) => return Err(error),
        }
    }
    Ok((views, unread))
}

/// Notes that somebody changed what a plan is made from: plans made before it are stale.
pub(crate) fn unplan(tx: &mut dyn Tx, cluster: ClusterId) -> Result<(), Error> {
    tx.execute(
        "UPDATE clusters SET plans = plans + 1, unplanned = 1 WHERE id = $1",
        &[cluster.into()],
    )?;
    Ok(())
}

/// Has clusters of a project, all but `who`, planned again that wait for something of one of
/// these kinds; each kind is the word of its reason, and what its clusters are told.
///
/// Rare, so those that wait are found by looking at all.
pub(crate) fn unplan_waiting_for(
    tx: &mut dyn Tx,
    project: &Name,
    who: Option<ClusterId>,
    kinds: &[(&str, &str)],
    now: Timestamp,
) -> Result<(), Error> {
    let rows = tx.query(
        "SELECT id, name, format, held FROM clusters WHERE project = $1 AND phase <> 'gone' AND held <> '[]' ORDER BY id",
        &[project.into()],
    )?;
    let mut waiting = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (cluster, name): (ClusterId, Name) = (row.take()?, row.take()?);
        let held: Vec<Held> = row.readable()?.unwrap_or_default();
        if who != Some(cluster) {
            waiting.push((cluster, name, held));
        }
    }
    for (word, message) in kinds {
        let of_kind = |held: &Held| held.reason.word() == *word;
        for (cluster, name, held) in &waiting {
            if held.iter().any(of_kind) {
                unplan(tx, *cluster)?;
                let (object, message) = (format!("cluster/{name}"), (*message).to_owned());
                events::note(tx, (project, now), "cluster.woken", object, message);
            }
        }
    }
    Ok(())
}

/// Has clusters planned again whose time has come; answers which.
pub(crate) fn wake(tx: &mut dyn Tx, now: Timestamp) -> Result<Vec<ClusterId>, Error> {
    let rows = tx.query(
        "UPDATE clusters SET wake_at = NULL, plans = plans + 1, unplanned = 1 WHERE wake_at <= $1 RETURNING id",
        &[now.into()],
    )?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// The rows of the disruption ledger that a cluster holds.
pub(crate) fn ledger(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Vec<Slot>, Error> {
    let rows = tx.query(
        "SELECT machine, name, pool, disruption_group FROM ledger WHERE cluster = $1 ORDER BY since, machine",
        &[cluster.into()],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Slot {
                machine: row.take()?,
                name: row.take()?,
                pool: row.take()?,
                group: row.take()?,
            })
        })
        .collect()
}

fn counts(tx: &mut dyn Tx) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for mut row in tx.query("SELECT state, COUNT(*) FROM tasks GROUP BY state", &[])? {
        counts.tasks.insert(row.take()?, row.take()?);
    }
    let clusters = "SELECT phase, COUNT(*) FROM clusters WHERE phase <> 'gone' GROUP BY phase";
    for mut row in tx.query(clusters, &[])? {
        counts.clusters.insert(row.take()?, row.take()?);
    }
    if let Some(mut row) = first(
        tx,
        "SELECT COUNT(*) FROM machines WHERE NOT (leaving = 1 AND absent = 1)",
        &[],
    )? {
        counts.machines = row.take()?;
    }
    Ok(counts)
}
