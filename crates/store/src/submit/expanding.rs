//! What a manifest makes of its clusters, before anything is stored.

use super::{Clash, SubmitError};
use crate::blast::{Allowed, judge, lost};
use crate::body::{Tx, first};
use crate::clusters::{self, ClusterView, Unread};
use crate::error::Error;
use crate::{notes, projects, stems, wish};
use model::cluster::Desired;
use model::fault::{Code, Fault};
use model::id::MachineId;
use model::intent::Wish;
use model::manifest::{Cluster, Manifest, Partial};
use model::name::Name;
use model::time::Timestamp;
use plan::{Change, Expansion, Limits};
use std::collections::{BTreeMap, BTreeSet};

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

/// Expands a manifest against what there is, and judges the result.
pub(super) fn expand(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Manifest,
    allow: Allowed,
    now: Timestamp,
) -> Result<Previews, SubmitError> {
    let (views, unread) = clusters::of_manifest(tx, project, &manifest.name)?;
    let aside: Vec<_> = unread.iter().map(|unread| unread.cluster.clone()).collect();
    let mut lives = BTreeMap::new();
    for cluster in &manifest.clusters {
        lives.insert(cluster.name.clone(), lives_of(tx, project, &cluster.name)?);
    }
    let names = manifest.clusters.iter().map(|cluster| &cluster.name);
    let clashes = clashes(tx, project, manifest, names)?;
    let known: Vec<_> = views.iter().map(ClusterView::known).collect();
    let (expansions, mut faults) =
        plan::expand_beside(project, manifest, &known, &aside, &lives, now);
    let placed = |(at, cluster): (usize, &Cluster)| (cluster.name.clone(), at);
    let places = manifest.clusters.iter().enumerate().map(placed).collect();
    wished_in_reason(&places, &expansions, &views, &mut faults);
    if !faults.is_empty() {
        faults.extend(clashes.iter().map(|clash| taken(clash, &places, manifest)));
        return Err(SubmitError::Faults(faults));
    }
    if !clashes.is_empty() {
        return Err(SubmitError::Taken { clashes });
    }
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
    let changes = || {
        let changes = previews.iter();
        changes.map(|preview| (&preview.known, &preview.desired))
    };
    let limits = Limits::default().allowing(allow.blast);
    judge(tx, changes(), manifest, limits)??;
    lost(changes(), manifest, allow.data_loss).map_err(SubmitError::DataLoss)?;
    let notes = notes::of(tx, (project, manifest), &previews, now)?;
    Ok(Previews {
        clusters: previews,
        unread,
        notes,
    })
}

/// What else is wrong with a manifest that has faults, as far as that can be told from what could be read of it.
pub(super) fn judge_partial(
    tx: &mut dyn Tx,
    project: &Name,
    partial: &Partial,
    now: Timestamp,
) -> Result<Vec<Fault>, Error> {
    let (Some(name), Some(sound)) = (&partial.name, &partial.sound) else {
        return Ok(plan::judge(project, partial, &[], &[], now).faults);
    };
    let (views, unread) = clusters::of_manifest(tx, project, name)?;
    let aside: Vec<_> = unread.into_iter().map(|unread| unread.cluster).collect();
    let known: Vec<_> = views.iter().map(ClusterView::known).collect();
    let plan::Judged {
        mut faults,
        sound: grown,
    } = plan::judge(project, partial, &known, &aside, now);
    let places = partial.clusters.iter();
    let places: Places = places
        .filter_map(|of| Some((of.name.clone()?, of.position)))
        .collect();
    let grown: Vec<_> = grown.into_iter().map(|(_, expansion)| expansion).collect();
    wished_in_reason(&places, &grown, &views, &mut faults);
    let clashes = clashes(tx, project, sound, places.keys())?;
    faults.extend(clashes.iter().map(|clash| taken(clash, &places, sound)));
    Ok(faults)
}

/// Clusters of a manifest, each with its place in the list.
type Places = BTreeMap<Name, usize>;

/// Names that other manifests have: those of clusters, and those of machines.
fn clashes<'a>(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Manifest,
    clusters: impl Iterator<Item = &'a Name>,
) -> Result<Vec<Clash>, Error> {
    let mut clashes = Vec::new();
    for cluster in clusters {
        clashes.extend(taken_name(tx, project, &manifest.name, cluster)?);
    }
    // Whose name is taken has machines whose names are, too.
    let named = |owner: &Name| {
        let mut clashes = clashes.iter();
        clashes.any(|of| matches!(of, Clash::Cluster { cluster, .. } if cluster == owner))
    };
    let besides = |clash: &Clash| !matches!(clash, Clash::Machines { owner, .. } if named(owner));
    let called = stems::taken(tx, project, manifest)?.into_iter();
    let called: Vec<_> = called.filter(besides).collect();
    clashes.extend(called);
    Ok(clashes)
}

/// A name that another manifest has, as one fault among others.
fn taken(clash: &Clash, places: &Places, manifest: &Manifest) -> Fault {
    let owner = match clash {
        Clash::Cluster { cluster, .. } => cluster,
        Clash::Machines { owner, .. } => owner,
    };
    let mut balancers = manifest.balancers.iter();
    let path = match places.get(owner) {
        Some(at) => format!("spec.kubernetes.clusters[{at}].name"),
        None => match balancers.position(|of| of.name == *owner) {
            Some(at) => format!("spec.loadBalancers.clusters[{at}].name"),
            None => "spec".to_owned(),
        },
    };
    Fault {
        path,
        code: Code::Duplicate,
        message: format!("found `{owner}`, allowed: a name that nobody has: {clash}"),
    }
}

/// Refuses clusters that are sound, and are not with what was wished besides. Where something is wrong with one,
/// that comes first.
fn wished_in_reason(
    places: &Places,
    expansions: &[Expansion],
    views: &[ClusterView],
    faults: &mut Vec<Fault>,
) {
    for Expansion { desired, .. } in expansions.iter().filter(|of| !of.desired.tombstone) {
        let mut known = views.iter();
        let known = known.find(|view| view.desired.cluster == desired.cluster);
        let scales = known.iter().flat_map(|view| &view.intents);
        let scale = scales.filter(|intent| matches!(intent.wish, Wish::Scale { .. }));
        let wishes: Vec<_> = scale.map(|intent| intent.id.to_string()).collect();
        let (false, Err(wrong)) = (wishes.is_empty(), wish::sound(desired)) else {
            continue;
        };
        let at = places.get(&desired.name).copied().unwrap_or_default();
        let path = format!("spec.kubernetes.clusters[{at}].pools");
        if faults.iter().any(|fault| fault.path.starts_with(&path)) {
            continue;
        }
        faults.push(Fault {
            path,
            code: Code::Range,
            message: format!(
                "{wrong}, with the size that was wished for a pool ({}); take that back with \
                 `slipway intent withdraw`, or declare another",
                wishes.join(", ")
            ),
        });
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
