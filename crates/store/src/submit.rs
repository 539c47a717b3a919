//! Manifests in: expanded, judged and stored with all that follows, or refused whole.

mod expanding;
mod refused;

pub use expanding::{Preview, Previews};
use expanding::{expand, judge_partial};
pub use refused::{Clash, SubmitError};

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::blast::Allowed;
use crate::body::{FORMAT, Scope, Tx, encode};
use crate::clusters::{self};
use crate::desired::Cause;
use crate::error::Error;
use crate::events::{count_of, note};
use crate::keys::Keyed;
use crate::{desired, intents, keys, manifests, stems};
use model::cluster::Generation;
use model::fault::Fault;
use model::id::ClusterId;
use model::manifest::{Manifest, Partial};
use model::name::Name;
use model::time::Timestamp;
use plan::Change;
use serde::{Deserialize, Serialize};

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

impl Submission {
    /// What tells its repeats from others, where it has a key.
    fn keyed(&self) -> Option<Keyed<'_>> {
        let key = self.key.as_deref()?;
        Some(Keyed {
            project: &self.project,
            key,
            manifest: self.manifest.name.as_str(),
            request: &self.text,
        })
    }
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
        let question = move |tx: &mut dyn Tx| match submission.keyed() {
            Some(keyed) => keys::recall(tx, keyed),
            None => Ok(None),
        };
        self.runner.read(question).await
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

    /// What else is wrong with a manifest that has faults, in the light of what there is: told with them, so
    /// that one answer tells everything. In no order.
    pub async fn judge(
        &self,
        project: &Name,
        partial: &Partial,
        now: Timestamp,
    ) -> Result<Vec<Fault>, Error> {
        let (project, partial) = (project.clone(), partial.clone());
        self.runner
            .read(move |tx| judge_partial(tx, &project, &partial, now))
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
    if let Some(keyed) = submission.keyed()
        && let Some(answer) = keys::recall::<_, SubmitError>(tx, keyed)?
    {
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
    if let Some(keyed) = submission.keyed() {
        keys::remember(tx, keyed, &submitted, now)?;
    }
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
