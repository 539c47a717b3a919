//! Manifests in: expanded, judged and stored with all that follows, or refused whole.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::blast::{TooMuch, judge};
use crate::body::{FORMAT, Scope, Tx, encode, first};
use crate::clusters::{self, ClusterView};
use crate::error::Error;
use crate::events::{count_of, note};
use crate::{desired, intents, keys, manifests, projects};
use model::cluster::{Desired, Generation};
use model::fault::Fault;
use model::id::{ClusterId, MachineId};
use model::manifest::Manifest;
use model::name::Name;
use model::time::Timestamp;
use plan::{Change, Limits};
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
    /// The share of machines, in per cent, that it may remove at once.
    pub allow_blast: Option<u8>,
    /// A repeat with the same key gets the same answer and does nothing.
    pub key: Option<String>,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It was made for another generation than the current one.
    #[error("the manifest is at generation {current}, not at the one this was made for")]
    Conflict {
        /// The current generation; zero when there is no such manifest.
        current: Generation,
    },
    /// Another manifest has a cluster of that name.
    #[error("cluster {cluster} belongs to manifest {manifest}")]
    NameTaken {
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
    MachinesTaken {
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

    /// What a submission would do; nothing is written.
    pub async fn preview(
        &self,
        project: &Name,
        manifest: &Manifest,
        allow_blast: Option<u8>,
        now: Timestamp,
    ) -> Result<Vec<Preview>, SubmitError> {
        let (project, manifest) = (project.clone(), manifest.clone());
        self.runner
            .read(move |tx| expand(tx, &project, &manifest, allow_blast, now))
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
        allow_blast,
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
        Some(head) => {
            !head.deleted && manifests::text(tx, project, name, head.generation)? == *text
        }
        None => false,
    };
    let previews = expand(tx, project, manifest, *allow_blast, now)?;
    let generation = if same { current } else { current.next() };
    if !same {
        let next = Next {
            project,
            name,
            generation,
            author: &author.name,
            deleted: false,
            now,
        };
        store_manifest(tx, &next, text, manifest)?;
        intents::end_outdated_scales(tx, manifest, &previews, now)?;
    }
    let submitted = store_all(tx, submission, generation, &previews, now)?;
    if !same {
        let message = format!(
            "{author} submitted generation {generation}: {} changed, {} unchanged",
            count_of(submitted.changed.len(), "cluster"),
            submitted.unchanged
        );
        note(
            tx,
            (project, now),
            "manifest.submitted",
            format!("manifest/{name}"),
            message,
        );
        let generations = (Some(current.0), Some(generation.0));
        audit::enter(
            tx,
            Entry {
                at: now,
                project: Some(project.clone()),
                actor: author.clone(),
                action: "manifest.submit",
                object: format!("manifest/{name}"),
                generations,
                detail: count_of(submitted.changed.len(), "changed cluster"),
            },
        );
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
    let mut submitted = Submitted {
        project: submission.project.clone(),
        manifest: submission.manifest.name.clone(),
        generation,
        changed: Vec::new(),
        unchanged: 0,
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
        desired::store(tx, &preview.desired, before, &submission.author.name, now)?;
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
    allow_blast: Option<u8>,
    now: Timestamp,
) -> Result<Vec<Preview>, SubmitError> {
    let views = clusters::of_manifest(tx, project, &manifest.name)?;
    let mut lives = BTreeMap::new();
    for cluster in &manifest.clusters {
        free_name(tx, project, &manifest.name, &cluster.name)?;
        lives.insert(cluster.name.clone(), lives_of(tx, project, &cluster.name)?);
    }
    free_stems(tx, project, manifest)?;
    let known: Vec<_> = views.iter().map(ClusterView::known).collect();
    let expansions =
        plan::expand(project, manifest, &known, &lives, now).map_err(SubmitError::Faults)?;
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
    within_quota(tx, project, &previews)?;
    let changes = previews
        .iter()
        .map(|preview| (&preview.known, &preview.desired));
    judge(tx, changes, Limits::default().allowing(allow_blast))??;
    Ok(previews)
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

/// Refuses the name of a living cluster of another manifest.
fn free_name(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Name,
    cluster: &Name,
) -> Result<(), SubmitError> {
    let other = first(
        tx,
        "SELECT manifest FROM clusters WHERE project = $1 AND name = $2 AND manifest <> $3 AND tombstone = 0",
        &[project.into(), cluster.into(), manifest.into()],
    )?;
    match other {
        None => Ok(()),
        Some(mut row) => Err(SubmitError::NameTaken {
            cluster: cluster.clone(),
            manifest: row.take()?,
        }),
    }
}

/// Refuses what would call machines as those of another manifest. What it declares already stays: it
/// may be older than this rule.
fn free_stems(tx: &mut dyn Tx, project: &Name, manifest: &Manifest) -> Result<(), SubmitError> {
    let mut stems = manifest.stems();
    let living = manifests::living(tx, project)?;
    let (own, others): (Vec<_>, Vec<_>) = living.iter().partition(|of| of.name == manifest.name);
    for before in own {
        let declared = before.stems();
        stems.retain(|stem, _| !declared.contains_key(stem));
    }
    if stems.is_empty() {
        return Ok(());
    }
    for other in others {
        for (stem, (its, its_pool)) in other.stems() {
            if let Some((owner, pool)) = stems.get(&stem).copied() {
                return Err(SubmitError::MachinesTaken {
                    owner: owner.clone(),
                    pool: pool.clone(),
                    other: its.clone(),
                    other_pool: its_pool.clone(),
                    manifest: other.name.clone(),
                });
            }
        }
    }
    Ok(())
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
    now: Timestamp,
}

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
        now,
    } = *next;
    tx.execute(
        "INSERT INTO manifest_generations (project, name, generation, author, created_at, deleted, text, format, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
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
        ],
    )?;
    tx.execute(
        "INSERT INTO manifests (project, name, generation, deleted) VALUES ($1, $2, $3, $4)
         ON CONFLICT (project, name) DO UPDATE SET generation = excluded.generation, deleted = excluded.deleted",
        &[project.into(), name.into(), generation.into(), deleted.into()],
    )?;
    Ok(())
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
    let mut submitted = Submitted {
        project: project.clone(),
        manifest: name.clone(),
        generation: head.generation,
        changed: Vec::new(),
        unchanged: 0,
    };
    if head.deleted {
        return Ok(submitted);
    }
    let views = clusters::of_manifest(tx, project, name)?;
    let protected = views.iter().filter(|view| view.desired.protected);
    let protected: Vec<_> = protected.map(|view| view.desired.name.clone()).collect();
    if !protected.is_empty() {
        return Err(SubmitError::Protected {
            clusters: protected,
        });
    }
    submitted.generation = head.generation.next();
    let text = manifests::text(tx, project, name, head.generation)?;
    let manifest = manifests::document(tx, project, name, head.generation)?;
    let next = Next {
        project,
        name,
        generation: submitted.generation,
        author: &author.name,
        deleted: true,
        now,
    };
    store_manifest(tx, &next, &text, &manifest)?;
    for view in views {
        desired::store(
            tx,
            &plan::retire(view.known()),
            Some(&view.desired),
            &author.name,
            now,
        )?;
        submitted
            .changed
            .push((view.desired.cluster, view.desired.name));
    }
    let clusters = count_of(submitted.changed.len(), "cluster");
    let message = format!("{author} deleted it, with {clusters}");
    note(
        tx,
        (project, now),
        "manifest.deleted",
        format!("manifest/{name}"),
        message,
    );
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(project.clone()),
            actor: author.clone(),
            action: "manifest.delete",
            object: format!("manifest/{name}"),
            generations: (Some(head.generation.0), Some(submitted.generation.0)),
            detail: clusters,
        },
    );
    Ok(submitted)
}
