//! Manifests in: expanded, judged and stored with all that follows, or refused whole.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::blast::{Allowed, TooMuch, judge, lost};
use crate::body::{FORMAT, Scope, Tx, encode, first};
use crate::clusters::{self, ClusterView, Unread};
use crate::desired::Cause;
use crate::error::Error;
use crate::events::{count_of, note};
use crate::{desired, intents, keys, manifests, notes, projects, stems, wish};
use model::cluster::{Desired, Generation};
use model::fault::{Code, Fault};
use model::id::{ClusterId, MachineId};
use model::intent::Wish;
use model::manifest::Manifest;
use model::name::Name;
use model::time::Timestamp;
use plan::{Change, Limits, Loss};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A manifest on its way in.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Who shall own it.
    pub project: Name,
    /// What was admitted.
    pub manifest: Manifest,
    /// What was written.
    pub text: String,
    /// Who submits it.
    pub author: Actor,
    /// The generation it replaces; refused unless current. Zero: there must be none yet.
    pub parent: Option<Generation>,
    /// What it may take away.
    pub allow: Allowed,
    /// A repeat with the same key gets the same answer and does nothing.
    pub key: Option<String>,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submitted {
    /// Who owns it.
    pub project: Name,
    /// What people call it.
    pub manifest: Name,
    /// Which generation is current now.
    pub generation: Generation,
    /// Clusters that are new or changed, or are to be removed.
    pub changed: Vec<(ClusterId, Name)>,
    /// How many clusters stay as they are.
    pub unchanged: u32,
    /// What is to be said of clusters that stay as they are because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// What else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Submitted {
    /// That nothing changed so far.
    const fn of(project: Name, manifest: Name, generation: Generation) -> Self {
        Self {
            project,
            manifest,
            generation,
            changed: Vec::new(),
            unchanged: 0,
            unread: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// What a manifest would make of its clusters.
#[derive(Debug, Clone, Default)]
pub struct Previews {
    /// Those that it can change.
    pub clusters: Vec<Preview>,
    /// Those that stay as they are because they cannot be read.
    pub unread: Vec<Unread>,
    /// What else there is to know of them.
    pub notes: Vec<String>,
}

/// One cluster as a manifest would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// As it would be.
    pub desired: Desired,
    /// All that is known of it; for a new cluster, only how it would be.
    pub known: ClusterView,
    /// Compared with before.
    pub change: Change,
}

impl Preview {
    /// What the planner would be given.
    pub fn view(&self, now: Timestamp) -> plan::View<'_> {
        plan::View {
            desired: &self.desired,
            ..self.known.view(now)
        }
    }
}

/// Why a submission was refused; nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The manifest asks of living clusters what cannot be.
    #[error("the manifest cannot be applied to what there is")]
    Faults(Vec<Fault>),
    /// It would remove more machines at once than somebody agreed to.
    #[error("{removed} of the {of} machines of {what} would be removed at once")]
    Blast {
        /// Whose machines: `cluster NAME` or `the fleet`.
        what: String,
        /// How many would go.
        removed: u32,
        /// Of how many.
        of: u32,
        /// The per cent that must be allowed for all of the change.
        percent_needed: u32,
    },
    /// Machines would go together with data that their cluster keeps on them.
    #[error("{0}")]
    DataLoss(Loss),
    /// It was made for another generation than the current one.
    #[error("the manifest is at generation {current}, not at the one this was made for")]
    Conflict {
        /// The current generation; zero when there is no such manifest.
        current: Generation,
    },
    /// Names that other manifests have.
    #[error("{}", all(clashes))]
    Taken {
        /// Each of them.
        clashes: Vec<Clash>,
    },
    /// The key came with another manifest before.
    #[error("idempotency key `{key}` was used for another request")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// It would remove clusters that somebody protected.
    #[error("{} protected from deletion", are(clusters))]
    Protected {
        /// Which.
        clusters: Vec<Name>,
    },
    /// There is no such project.
    #[error("there is no project {project}")]
    NoProject {
        /// What was asked for.
        project: Name,
    },
    /// The project would have more clusters than it may.
    #[error("project {project} has {used} clusters and would get {new} more, it may have {limit}")]
    Quota {
        /// Which project.
        project: Name,
        /// How many clusters it has.
        used: u32,
        /// How many the manifest adds.
        new: u32,
        /// How many it may have.
        limit: u32,
    },
    /// There is no such manifest.
    #[error("there is no manifest {manifest}")]
    NotFound {
        /// What was asked for.
        manifest: Name,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A name that another manifest has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// Another manifest has a cluster of that name.
    #[error("cluster {cluster} belongs to manifest {manifest}")]
    Cluster {
        /// The cluster.
        cluster: Name,
        /// The manifest that declares it.
        manifest: Name,
    },
    /// Machines of another manifest have the names that its machines would get.
    #[error(
        "machines of {owner} and its pool {pool} would be called as those of {other} and its pool \
         {other_pool}, which belong to manifest {manifest}"
    )]
    Machines {
        /// The cluster or the load balancer.
        owner: Name,
        /// Its pool.
        pool: Name,
        /// The other cluster or load balancer.
        other: Name,
        /// Its pool.
        other_pool: Name,
        /// The manifest that declares the other.
        manifest: Name,
    },
}

/// Every name that is taken, in one sentence.
fn all(clashes: &[Clash]) -> String {
    let told: Vec<_> = clashes.iter().map(ToString::to_string).collect();
    told.join("; ")
}

impl From<TooMuch> for SubmitError {
    fn from(
        TooMuch {
            what,
            removed,
            of,
            percent_needed,
        }: TooMuch,
    ) -> Self {
        Self::Blast {
            what,
            removed,
            of,
            percent_needed,
        }
    }
}

impl Store {
    /// Stores a manifest and what its clusters should be from now on.
    pub async fn submit(
        &self,
        submission: Submission,
        now: Timestamp,
    ) -> Result<Submitted, SubmitError> {
        self.runner
            .write(Scope::Whole, move |tx| submit(tx, &submission, now))
            .await
    }

    /// The answer that a submission with the same key got before: whoever repeats one gets it, whatever
    /// would be said of it now.
    pub async fn answered(
        &self,
        submission: &Submission,
    ) -> Result<Option<Submitted>, SubmitError> {
        if submission.key.is_none() {
            return Ok(None);
        }
        let submission = submission.clone();
        self.runner
            .read(move |tx| keys::recall(tx, &submission))
            .await
    }

    /// What a submission would do; nothing is written.
    pub async fn preview(
        &self,
        project: &Name,
        manifest: &Manifest,
        allow: impl Into<Allowed>,
        now: Timestamp,
    ) -> Result<Previews, SubmitError> {
        let (project, manifest, allow) = (project.clone(), manifest.clone(), allow.into());
        self.runner
            .read(move |tx| expand(tx, &project, &manifest, allow, now))
            .await
    }

    /// Puts a tombstone on a manifest and on all its clusters; once more does nothing more.
    pub async fn delete_manifest(
        &self,
        project: &Name,
        name: &Name,
        author: impl Into<Actor>,
        now: Timestamp,
    ) -> Result<Submitted, SubmitError> {
        let (project, name, author) = (project.clone(), name.clone(), author.into());
        self.runner
            .write(Scope::Whole, move |tx| {
                delete(tx, &project, &name, &author, now)
            })
            .await
    }
}

fn submit(
    tx: &mut dyn Tx,
    submission: &Submission,
    now: Timestamp,
) -> Result<Submitted, SubmitError> {
    if let Some(answer) = keys::recall(tx, submission)? {
        return Ok(answer);
    }
    let Submission {
        project,
        manifest,
        text,
        author,
        parent,
        allow,
        key: _,
    } = submission;
    let name = &manifest.name;
    let head = manifests::head(tx, project, name)?;
    let current = head.map_or(Generation(0), |head| head.generation);
    // Also for the same text: whoever names a generation wants to know that it is another
    // one now. A repeat of what was stored carries a key, and was answered above.
    if parent.is_some_and(|parent| parent != current) {
        return Err(SubmitError::Conflict { current });
    }
    let same = match head {
        Some(head) => !head.deleted && manifests::is(tx, project, name, (head.generation, text))?,
        None => false,
    };
    let Previews {
        clusters: previews,
        unread,
        notes,
    } = expand(tx, project, manifest, *allow, now)?;
    let generation = if same { current } else { current.next() };
    if !same {
        let brief = touched(&previews);
        let next = Next {
            project,
            name,
            generation,
            author: &author.name,
            deleted: false,
            brief: &brief,
            now,
        };
        store_manifest(tx, &next, text, manifest)?;
        stems::list(tx, project, manifest)?;
        intents::end_outdated_scales(tx, manifest, &previews, now)?;
    }
    let mut submitted = store_all(tx, submission, generation, &previews, now)?;
    submitted.unread = unread.iter().map(ToString::to_string).collect();
    submitted.notes = notes;
    let unread = u32::try_from(unread.len()).unwrap_or(u32::MAX);
    submitted.unchanged = submitted.unchanged.saturating_add(unread);
    if !same {
        let message = format!(
            "{author} submitted generation {generation}: {} changed, {} unchanged",
            count_of(submitted.changed.len(), "cluster"),
            submitted.unchanged
        );
        let told = Told {
            of: (project, name),
            author,
            generations: (Some(current.0), Some(generation.0)),
            message,
            detail: count_of(submitted.changed.len(), "changed cluster"),
        };
        tell(tx, ("manifest.submitted", "manifest.submit"), told, now);
    }
    keys::remember(tx, submission, &submitted, now)?;
    Ok(submitted)
}

fn store_all(
    tx: &mut dyn Tx,
    submission: &Submission,
    generation: Generation,
    previews: &[Preview],
    now: Timestamp,
) -> Result<Submitted, Error> {
    let (project, name) = (&submission.project, &submission.manifest.name);
    let mut submitted = Submitted::of(project.clone(), name.clone(), generation);
    let because = format!(
        "manifest {}, generation {generation}, was applied",
        submission.manifest.name
    );
    let cause = Cause {
        author: &submission.author.name,
        because: &because,
    };
    for preview in previews {
        let before = match preview.change {
            Change::Unchanged => {
                submitted.unchanged += 1;
                continue;
            }
            Change::New => None,
            Change::Changed | Change::Removed => Some(&preview.known.desired),
        };
        desired::store(tx, &preview.desired, before, cause, now)?;
        intents::end_fulfilled_updates(tx, &preview.desired, &preview.known.intents, now)?;
        submitted
            .changed
            .push((preview.desired.cluster, preview.desired.name.clone()));
    }
    Ok(submitted)
}

/// Expands a manifest against what there is, and judges the result.
fn expand(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Manifest,
    allow: Allowed,
    now: Timestamp,
) -> Result<Previews, SubmitError> {
    let (views, unread) = clusters::of_manifest(tx, project, &manifest.name)?;
    let aside: Vec<_> = unread.iter().map(|unread| unread.cluster.clone()).collect();
    let mut lives = BTreeMap::new();
    let mut clashes = Vec::new();
    for cluster in &manifest.clusters {
        clashes.extend(taken_name(tx, project, &manifest.name, &cluster.name)?);
        lives.insert(cluster.name.clone(), lives_of(tx, project, &cluster.name)?);
    }
    let called = stems::taken(tx, project, manifest)?.into_iter();
    // Whose name is taken has machines whose names are, too.
    let named = |owner: &Name| {
        let mut clashes = clashes.iter();
        clashes.any(|of| matches!(of, Clash::Cluster { cluster, .. } if cluster == owner))
    };
    let besides = |clash: &Clash| !matches!(clash, Clash::Machines { owner, .. } if named(owner));
    let called: Vec<_> = called.filter(besides).collect();
    clashes.extend(called);
    if !clashes.is_empty() {
        return Err(SubmitError::Taken { clashes });
    }
    let known: Vec<_> = views.iter().map(ClusterView::known).collect();
    let expansions = plan::expand_beside(project, manifest, &known, &aside, &lives, now)
        .map_err(SubmitError::Faults)?;
    let mut views: BTreeMap<_, _> = views
        .into_iter()
        .map(|view| (view.desired.cluster, view))
        .collect();
    let mut previews: Vec<_> = expansions
        .into_iter()
        .map(|expansion| {
            let known = views.remove(&expansion.desired.cluster);
            let known = known.unwrap_or_else(|| ClusterView::unseen(expansion.desired.clone()));
            Preview {
                desired: expansion.desired,
                known,
                change: expansion.change,
            }
        })
        .collect();
    let going = previews.iter().flat_map(|preview| &preview.desired.leaving);
    let going: BTreeSet<MachineId> = going.map(|machine| machine.id).collect();
    for Preview { desired, known, .. } in &mut previews {
        known.look_around(tx, desired, &going)?;
    }
    wished_in_reason(manifest, &previews).map_err(SubmitError::Faults)?;
    within_quota(tx, project, &previews)?;
    let changes = || {
        let changes = previews.iter();
        changes.map(|preview| (&preview.known, &preview.desired))
    };
    judge(tx, changes(), Limits::default().allowing(allow.blast))??;
    lost(changes(), manifest, allow.data_loss).map_err(SubmitError::DataLoss)?;
    let notes = notes::of(tx, (project, manifest), &previews, now)?;
    Ok(Previews {
        clusters: previews,
        unread,
        notes,
    })
}

/// Refuses a manifest that is sound, and is not with what was wished besides.
fn wished_in_reason(manifest: &Manifest, previews: &[Preview]) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for preview in previews.iter().filter(|of| !of.desired.tombstone) {
        let scales = preview.known.intents.iter();
        let scale = scales.filter(|intent| matches!(intent.wish, Wish::Scale { .. }));
        let wishes: Vec<_> = scale.map(|intent| intent.id.to_string()).collect();
        let (false, Err(wrong)) = (wishes.is_empty(), wish::sound(&preview.desired)) else {
            continue;
        };
        let mut declared = manifest.clusters.iter();
        let at = declared.position(|cluster| cluster.name == preview.desired.name);
        faults.push(Fault {
            path: format!("spec.kubernetes.clusters[{}].pools", at.unwrap_or_default()),
            code: Code::Range,
            message: format!(
                "{wrong}, with the size that was wished for a pool ({}); take that back with \
                 `slipway intent withdraw`, or declare another",
                wishes.join(", ")
            ),
        });
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Clusters as the subject of a sentence.
fn are(clusters: &[Name]) -> String {
    let names: Vec<_> = clusters.iter().map(Name::as_str).collect();
    match names.as_slice() {
        [one] => format!("cluster {one} is"),
        several => format!("clusters {} are", several.join(", ")),
    }
}

/// Refuses more clusters than the project may have. Those that are there may stay.
fn within_quota(tx: &mut dyn Tx, project: &Name, previews: &[Preview]) -> Result<(), SubmitError> {
    let Some(quota) = projects::quota(tx, project)? else {
        return Err(SubmitError::NoProject {
            project: project.clone(),
        });
    };
    let new = previews
        .iter()
        .filter(|preview| preview.change == Change::New)
        .count();
    let (Some(limit), Ok(new @ 1..)) = (quota.clusters, u32::try_from(new)) else {
        return Ok(());
    };
    let used = first(
        tx,
        "SELECT COUNT(*) FROM clusters WHERE project = $1 AND phase <> 'gone'",
        &[project.into()],
    )?;
    let used = used.map_or(Ok(0), |mut row| row.take::<u32>())?;
    if used.saturating_add(new) > limit {
        return Err(SubmitError::Quota {
            project: project.clone(),
            used,
            new,
            limit,
        });
    }
    Ok(())
}

/// Whether a living cluster of another manifest has the name.
fn taken_name(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Name,
    cluster: &Name,
) -> Result<Option<Clash>, Error> {
    let other = first(
        tx,
        "SELECT manifest FROM clusters WHERE project = $1 AND name = $2 AND manifest <> $3 AND tombstone = 0",
        &[project.into(), cluster.into(), manifest.into()],
    )?;
    let clash = other.map(|mut row| {
        Ok(Clash::Cluster {
            cluster: cluster.clone(),
            manifest: row.take()?,
        })
    });
    clash.transpose()
}

/// How many clusters of a name there ever were.
fn lives_of(tx: &mut dyn Tx, project: &Name, cluster: &Name) -> Result<u32, Error> {
    let row = first(
        tx,
        "SELECT COALESCE(MAX(incarnation) + 1, 0) FROM clusters WHERE project = $1 AND name = $2",
        &[project.into(), cluster.into()],
    )?;
    row.map_or(Ok(0), |mut row| row.take())
}

/// The next generation of a manifest.
struct Next<'a> {
    project: &'a Name,
    name: &'a Name,
    generation: Generation,
    author: &'a str,
    deleted: bool,
    brief: &'a str,
    now: Timestamp,
}

impl Next<'_> {
    /// Which verb it comes of.
    const fn because(&self) -> &'static str {
        if self.deleted { "deleted" } else { "applied" }
    }
}

/// What a manifest changes, in short: its clusters, by what becomes of them.
fn touched(previews: &[Preview]) -> String {
    let of = |change: Change, word: &str| {
        let clusters = previews.iter().filter(|preview| preview.change == change);
        let clusters: Vec<_> = clusters
            .map(|preview| preview.desired.name.as_str())
            .collect();
        match clusters.as_slice() {
            [] => None,
            few if few.len() <= NAMED_MAX => Some(format!("{word} {}", few.join(", "))),
            many => Some(format!("{word} {} clusters", many.len())),
        }
    };
    let told = [
        of(Change::New, "new"),
        of(Change::Changed, "changed"),
        of(Change::Removed, "removed"),
    ];
    let told: Vec<_> = told.into_iter().flatten().collect();
    if told.is_empty() {
        "no cluster changed".to_owned()
    } else {
        told.join("; ")
    }
}

/// Clusters that are named in short before they are only counted.
const NAMED_MAX: usize = 4;

fn store_manifest(
    tx: &mut dyn Tx,
    next: &Next<'_>,
    text: &str,
    manifest: &Manifest,
) -> Result<(), Error> {
    let Next {
        project,
        name,
        generation,
        author,
        deleted,
        brief,
        now,
    } = *next;
    tx.execute(
        "INSERT INTO manifest_generations (project, name, generation, author, created_at, deleted, text, format, body,
                                           because, brief)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &[
            project.into(),
            name.into(),
            generation.into(),
            author.into(),
            now.into(),
            deleted.into(),
            text.into(),
            FORMAT.into(),
            encode(manifest)?,
            next.because().into(),
            brief.into(),
        ],
    )?;
    point(tx, next)
}

/// Stores once more what a manifest said, as the generation that says that it is deleted. Nobody needs to
/// read it for that.
fn bury_manifest(tx: &mut dyn Tx, next: &Next<'_>, last: Generation) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO manifest_generations (project, name, generation, author, created_at, deleted, text, format, body,
                                           because, brief)
         SELECT project, name, $4, $5, $6, $7, text, format, body, $8, $9 FROM manifest_generations
         WHERE project = $1 AND name = $2 AND generation = $3",
        &[
            next.project.into(),
            next.name.into(),
            last.into(),
            next.generation.into(),
            next.author.into(),
            next.now.into(),
            next.deleted.into(),
            next.because().into(),
            next.brief.into(),
        ],
    )?;
    point(tx, next)
}

/// Makes a generation the current one.
fn point(tx: &mut dyn Tx, next: &Next<'_>) -> Result<(), Error> {
    let Next {
        project,
        name,
        generation,
        deleted,
        ..
    } = *next;
    tx.execute(
        "INSERT INTO manifests (project, name, generation, deleted) VALUES ($1, $2, $3, $4)
         ON CONFLICT (project, name) DO UPDATE SET generation = excluded.generation, deleted = excluded.deleted",
        &[project.into(), name.into(), generation.into(), deleted.into()],
    )?;
    Ok(())
}

/// What somebody did to a manifest.
struct Told<'a> {
    of: (&'a Name, &'a Name),
    author: &'a Actor,
    generations: (Option<u64>, Option<u64>),
    message: String,
    detail: String,
}

/// Tells everybody what somebody did to a manifest, and enters it.
fn tell(
    tx: &mut dyn Tx,
    (event, action): (&'static str, &'static str),
    told: Told<'_>,
    now: Timestamp,
) {
    let (project, name) = told.of;
    let object = format!("manifest/{name}");
    note(tx, (project, now), event, object.clone(), told.message);
    let entry = Entry {
        at: now,
        project: Some(project.clone()),
        actor: told.author.clone(),
        action,
        object,
        generations: told.generations,
        detail: told.detail,
    };
    audit::enter(tx, entry);
}

fn delete(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    author: &Actor,
    now: Timestamp,
) -> Result<Submitted, SubmitError> {
    let Some(head) = manifests::head(tx, project, name)? else {
        return Err(SubmitError::NotFound {
            manifest: name.clone(),
        });
    };
    let mut submitted = Submitted::of(project.clone(), name.clone(), head.generation);
    let (views, unread) = clusters::of_manifest(tx, project, name)?;
    submitted.unread = unread.iter().map(ToString::to_string).collect();
    // What could not be read when it was deleted goes when it can be.
    if head.deleted && views.is_empty() {
        return Ok(submitted);
    }
    let protected = views.iter().filter(|view| view.desired.protected);
    let protected: Vec<_> = protected.map(|view| view.desired.name.clone()).collect();
    if !protected.is_empty() {
        return Err(SubmitError::Protected {
            clusters: protected,
        });
    }
    submitted.generation = head.generation.next();
    let next = Next {
        project,
        name,
        generation: submitted.generation,
        author: &author.name,
        deleted: true,
        brief: &format!("removed {}", count_of(views.len(), "cluster")),
        now,
    };
    bury_manifest(tx, &next, head.generation)?;
    stems::forget(tx, project, name)?;
    let because = format!("manifest {name} was deleted");
    let cause = Cause {
        author: &author.name,
        because: &because,
    };
    for view in views {
        let next = plan::retire(view.known());
        desired::store(tx, &next, Some(&view.desired), cause, now)?;
        submitted
            .changed
            .push((view.desired.cluster, view.desired.name));
    }
    let clusters = count_of(submitted.changed.len(), "cluster");
    let message = format!("{author} deleted it, with {clusters}");
    let told = Told {
        of: (project, name),
        author,
        generations: (Some(head.generation.0), Some(submitted.generation.0)),
        message,
        detail: clusters,
    };
    tell(tx, ("manifest.deleted", "manifest.delete"), told, now);
    Ok(submitted)
}
