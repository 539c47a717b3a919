//! From a manifest to what each of its clusters should be, down to names and addresses.
//!
//! What a cluster already has is kept: identity, ordinals and addresses never change
//! while a machine lives. What it lacks gets the lowest free ordinal and address; what it
//! has too many of moves to `leaving`, highest ordinal first, and stays there, keeping its
//! address, until it is seen to be gone, or wanted again before anybody has begun to take it out.

mod former;
mod given_back;
pub(crate) mod growing;
mod judged;
mod named;
mod recovered;
mod refused;
mod subnets;
mod taken_back;

use crate::hops;
use crate::loss::{asks_for_disk, data_disk};
use model::addon;
use model::care::Marks;
use model::cluster::{Balancer, Desired, Generation, Machine, Origin, Role};
use model::disruption::Disruption;
use model::fault::{Fault, Faults};
use model::host::Playbooks;
use model::id::{self, ClusterId, MachineId};
use model::intent::Intent;
use model::manifest::{Cluster, Glimpse, Manifest, Pool};
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::scaling::Autoscaler;
use model::task::{Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};

pub use given_back::{GivenBack, give_back};
use growing::{Growing, Stand};
pub use judged::{Judged, judge};
pub use recovered::{Remembered, recovered};
use refused::{
    beside, refuse_beheading, refuse_doubtful, refuse_foreign, refuse_homeless, refuse_impossible,
    refuse_unprotected,
};

/// A living cluster of the manifest, as it should be so far and as it was last seen.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// As it should be so far.
    pub desired: &'a Desired,
    /// As it was last seen.
    pub observed: &'a Observed,
    /// Wishes about it.
    pub intents: &'a [Intent],
    /// Tasks that are not finished.
    pub open: &'a [Open],
}

/// One cluster after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// As it should be from now on.
    pub desired: Desired,
    /// Compared with before.
    pub change: Change,
}

/// How an expansion compares with what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A cluster that was not there.
    New,
    /// Another generation of a living cluster.
    Changed,
    /// Nothing to store.
    Unchanged,
    /// A living cluster that the manifest no longer declares; it now has a tombstone.
    Removed,
}

/// Expands `manifest`: its clusters in their order, then those it no longer declares.
///
/// `known` are the living clusters (no tombstone) of this manifest; `lives` counts, per
/// name, the clusters there ever were, so that a new one gets an incarnation of its own.
pub fn expand(
    project: &Name,
    manifest: &Manifest,
    known: &[Known<'_>],
    lives: &BTreeMap<Name, u32>,
    now: Timestamp,
) -> Result<Vec<Expansion>, Vec<Fault>> {
    let (expansions, faults) = expand_beside(project, manifest, known, &[], lives, now);
    if faults.is_empty() {
        Ok(expansions)
    } else {
        Err(faults)
    }
}

/// The same beside living clusters of the manifest of which nothing is known but their names: they stay as
/// they are, and would otherwise be taken for new ones. What is wrong goes along with what would become of
/// the clusters, so that who knows more can tell what else is.
pub fn expand_beside(
    project: &Name,
    manifest: &Manifest,
    known: &[Known<'_>],
    aside: &[Name],
    lives: &BTreeMap<Name, u32>,
    now: Timestamp,
) -> (Vec<Expansion>, Vec<Fault>) {
    let mut faults = Faults::default();
    let namespace = manifest.namespace.as_ref();
    refuse_foreign(project, namespace, beside(manifest), &mut faults);
    let clusters = manifest.clusters.iter().enumerate();
    let clusters: Vec<_> = clusters.map(|(at, of)| Glimpse::of(at, of)).collect();
    refuse_doubtful(&manifest.doubts, &clusters, known, aside, &mut faults);
    let told = |_: &str| false;
    for (cluster, before) in living(&clusters, known, aside) {
        refuse_impossible(cluster, before, told, &mut faults);
    }
    let mut expansions = Vec::with_capacity(manifest.clusters.len());
    let clusters = manifest.clusters.iter().enumerate();
    for (at, cluster) in clusters.filter(|(_, cluster)| !aside.contains(&cluster.name)) {
        let before = find(known, &cluster.name);
        let of = Of {
            project,
            manifest,
            lives,
            now,
        };
        let grown = grown(&of, (at, cluster), before, &mut faults);
        expansions.push(compare(grown, before.map(|known| known.desired)));
    }
    for gone in known {
        let mut declared = manifest.clusters.iter();
        if !declared.any(|cluster| cluster.name == gone.desired.name) {
            refuse_unprotected(gone.desired, &mut faults);
            expansions.push(Expansion {
                desired: retire(*gone),
                change: Change::Removed,
            });
        }
    }
    (expansions, faults.into_vec())
}

/// What all clusters of a manifest are expanded with.
struct Of<'a> {
    project: &'a Name,
    manifest: &'a Manifest,
    lives: &'a BTreeMap<Name, u32>,
    now: Timestamp,
}

/// A cluster as the manifest would have it, which has a place in its list.
fn grown(
    of: &Of<'_>,
    (at, cluster): (usize, &Cluster),
    before: Option<Known<'_>>,
    faults: &mut Faults,
) -> Desired {
    let empty;
    let start = if let Some(before) = before {
        before.desired
    } else {
        empty = born(of.project, of.manifest, cluster, of.lives);
        &empty
    };
    let grown = grow(of.manifest, cluster, start, before, of.now, faults);
    refuse_homeless(at, &grown, faults);
    if let Some(before) = before {
        refuse_beheading(at, &grown, before, faults);
    }
    grown
}

/// The living cluster of a name.
fn find<'a>(known: &[Known<'a>], name: &Name) -> Option<Known<'a>> {
    let mut known = known.iter();
    known.find(|known| known.desired.name == *name).copied()
}

/// Clusters that live, of whom nobody is set aside.
fn living<'c, 'a>(
    clusters: &'c [Glimpse],
    known: &'c [Known<'a>],
    aside: &'c [Name],
) -> impl Iterator<Item = (&'c Glimpse, Known<'a>)> {
    clusters.iter().filter_map(|cluster| {
        let name = cluster.name.as_ref().filter(|name| !aside.contains(name))?;
        Some((cluster, find(known, name)?))
    })
}

/// The next generation of a cluster that is to be removed as a whole.
pub fn retire(known: Known<'_>) -> Desired {
    let mut desired = known.desired.clone();
    desired.generation = desired.generation.next();
    desired.tombstone = true;
    desired.leaving.retain(|machine| !gone(&known, machine.id));
    desired.leaving.append(&mut desired.machines);
    desired
}

/// A cluster before its first machine.
fn born(
    project: &Name,
    manifest: &Manifest,
    cluster: &Cluster,
    lives: &BTreeMap<Name, u32>,
) -> Desired {
    let incarnation = lives.get(&cluster.name).copied().unwrap_or(0);
    Desired {
        cluster: ClusterId::derive(id::Origin {
            parent: project.as_str(),
            name: cluster.name.as_str(),
            ordinal: 0,
            incarnation: u64::from(incarnation),
        }),
        project: project.clone(),
        manifest: manifest.name.clone(),
        name: cluster.name.clone(),
        incarnation,
        generation: Generation(0),
        version: cluster.version,
        stone: None,
        network: cluster.network,
        kubernetes: cluster.kubernetes.clone(),
        machines: Vec::new(),
        metal: Vec::new(),
        leaving: Vec::new(),
        made: BTreeMap::new(),
        balancers: Vec::new(),
        former: Vec::new(),
        proxy: None,
        playbooks: Playbooks::default(),
        addons: Vec::new(),
        marks: BTreeMap::new(),
        autoscalers: BTreeMap::new(),
        disks: BTreeSet::new(),
        replacing: BTreeSet::new(),
        etcd_backup: cluster.etcd_backup.clone(),
        tombstone: false,
        protected: cluster.protected,
        disruption: Disruption::default(),
        rolls: Vec::new(),
        repair: cluster.repair,
        repaired: BTreeMap::new(),
    }
}

fn compare(mut grown: Desired, before: Option<&Desired>) -> Expansion {
    let change = match before {
        None => Change::New,
        Some(before) if same_but_for_the_gone(&grown, before) => {
            return Expansion {
                desired: before.clone(),
                change: Change::Unchanged,
            };
        }
        Some(_) => Change::Changed,
    };
    grown.generation = grown.generation.next();
    Expansion {
        desired: grown,
        change,
    }
}

/// Whether only machines that are gone were dropped: no reason for a new generation.
fn same_but_for_the_gone(grown: &Desired, before: &Desired) -> bool {
    grown.version == before.version
        && grown.stone == before.stone
        && grown.balancers == before.balancers
        && grown.former.iter().all(|of| before.former.contains(of))
        && grown.proxy == before.proxy
        && grown.playbooks == before.playbooks
        && grown.addons == before.addons
        && grown.marks == before.marks
        && grown.autoscalers == before.autoscalers
        && grown.disks == before.disks
        && grown.replacing == before.replacing
        && grown.etcd_backup == before.etcd_backup
        && grown.protected == before.protected
        && grown.rolls == before.rolls
        && grown.repair == before.repair
        && grown.disruption == before.disruption.only(&pools(grown))
        && grown.machines == before.machines
        && grown.metal == before.metal
        && grown
            .leaving
            .iter()
            .all(|machine| before.leaving.contains(machine))
}

/// The cluster with the machines that the manifest and the wishes ask for.
fn grow<'a>(
    manifest: &Manifest,
    cluster: &'a Cluster,
    start: &Desired,
    before: Option<Known<'a>>,
    now: Timestamp,
    faults: &mut Faults,
) -> Desired {
    let mut growing = Growing::from(start, before, now);
    growing.own = cluster.control.iter().chain(&cluster.compute).collect();
    growing.desired.version = cluster.version;
    let runs: Vec<_> = before.into_iter().flat_map(versions).collect();
    growing.desired.stone = hops::stone(start.stone, cluster.version, &runs);
    growing.desired.proxy.clone_from(&cluster.proxy);
    growing.desired.addons =
        addon::decided(cluster.kubernetes.cni, &cluster.addons, cluster.version);
    growing.desired.playbooks = cluster
        .playbooks
        .declared_after(&start.playbooks, &start.made);
    growing.desired.etcd_backup.clone_from(&cluster.etcd_backup);
    growing.desired.protected = cluster.protected;
    growing.desired.balancers = balancers(manifest, cluster, start);
    growing.desired.autoscalers = autoscalers(manifest, cluster);
    growing.desired.repair = cluster.repair;
    let of_cluster = [
        (Role::Control, &cluster.control),
        (Role::Compute, &cluster.compute),
    ];
    let serving = serving(manifest, cluster);
    let of_balancers =
        serving.map(|balancer| (Some(&balancer.name), Role::Balancer, &balancer.pools));
    let of_cluster = of_cluster.map(|(role, pools)| (None, role, pools));
    for (balancer, role, pools) in of_cluster.into_iter().chain(of_balancers) {
        for name in pools {
            let place = Stand {
                pool: name,
                role,
                balancer,
            };
            match manifest.pools.get(name) {
                Some(Pool::Dynamic(pool)) => {
                    let account = manifest.providers.get(&pool.provider);
                    growing.dynamic(account, place, pool, faults);
                }
                Some(Pool::Static(pool)) => growing.fixed(place, pool),
                Some(Pool::Metal(pool)) => growing.metal(place, pool),
                None => {}
            }
        }
    }
    let mut grown = growing.finish();
    for machine in &mut grown.leaving {
        reopen(machine, manifest);
    }
    grown.former = former::former(start, before, &grown);
    grown.disruption = disruption(manifest, cluster, &grown);
    grown.marks = marks(manifest, &grown);
    grown.disks = disks(manifest, start, &grown);
    grown.replacing = replacing(manifest, &grown);
    grown
}

/// The load balancers that serve a cluster.
fn serving<'a>(
    manifest: &'a Manifest,
    cluster: &'a Cluster,
) -> impl Iterator<Item = &'a model::manifest::Balancer> {
    let balancers = manifest.balancers.iter();
    balancers.filter(|balancer| balancer.cluster == cluster.name)
}

fn balancers(manifest: &Manifest, cluster: &Cluster, start: &Desired) -> Vec<Balancer> {
    let balancer = |declared: &model::manifest::Balancer| Balancer {
        name: declared.name.clone(),
        roles: declared.roles.clone(),
        dns: named::names(manifest, start, declared),
    };
    serving(manifest, cluster).map(balancer).collect()
}

/// The pools of a cluster and of its load balancers that are scaled.
fn autoscalers(manifest: &Manifest, cluster: &Cluster) -> BTreeMap<Name, Autoscaler> {
    let serving = serving(manifest, cluster).flat_map(|balancer| &balancer.pools);
    let named = cluster.compute.iter().chain(serving);
    let scaled = named.filter_map(|name| match manifest.pools.get(name)? {
        Pool::Dynamic(pool) => Some((name.clone(), pool.autoscaler?)),
        Pool::Static(_) | Pool::Metal(_) => None,
    });
    scaled.collect()
}

/// Gives a machine on its way out what opens its provider's account now: whoever corrects the
/// name of a secret wants the old machines to go, too.
fn reopen(machine: &mut Machine, manifest: &Manifest) {
    let Origin::Made {
        provider,
        via,
        hardware,
        secret,
        ..
    } = &mut machine.origin
    else {
        return;
    };
    // Another provider of that name knows nothing of it.
    if let Some(account) = manifest.providers.get(provider)
        && account.via == *via
    {
        *secret = account.secret.as_ref().map(|named| named.secret.clone());
        if let Some(declared) = &account.templates {
            let modules = hardware.templates.take();
            hardware.templates = modules.map(|modules| modules.opened_like(declared));
        }
    }
}

/// What the manifest allows for the machines of the cluster; for those of a pool that it
/// declares no more, what it allowed before.
fn disruption(manifest: &Manifest, cluster: &Cluster, grown: &Desired) -> Disruption {
    let mut allowed = grown.disruption.clone();
    allowed.unavailable = cluster.unavailable;
    allowed.windows = cluster.windows.clone();
    allowed.gates.clone_from(&cluster.gates);
    let serving = serving(manifest, cluster).flat_map(|balancer| &balancer.pools);
    for name in cluster
        .control
        .iter()
        .chain(&cluster.compute)
        .chain(serving)
    {
        if let Some(pool) = manifest.pools.get(name) {
            allowed.pools.insert(name.clone(), pool.budget().clone());
        }
    }
    allowed.groups.extend(manifest.groups.clone());
    allowed.only(&pools(grown))
}

/// What the manifest gives to the nodes of the cluster; to those of a pool that it declares no
/// more, what it gave before.
fn marks(manifest: &Manifest, grown: &Desired) -> BTreeMap<Name, Marks> {
    let nodes = grown.all().filter(|machine| machine.role.is_node());
    let pools: BTreeSet<_> = nodes.map(|machine| &machine.pool).collect();
    let marks = pools.into_iter().filter_map(|pool| {
        let declared = manifest.pools.get(pool).map(Pool::marks);
        let marks = declared.or_else(|| grown.marks.get(pool))?;
        Some((pool.clone(), marks.clone()))
    });
    marks.filter(|(_, marks)| !marks.is_empty()).collect()
}

/// The pools whose data disks somebody asks for, or did and machines of then are left.
fn disks(manifest: &Manifest, start: &Desired, grown: &Desired) -> BTreeSet<Name> {
    let there: BTreeSet<_> = start.all().map(|machine| machine.id).collect();
    let with_disk = grown.all().filter(|machine| data_disk(machine).is_some());
    let asked = with_disk.filter(|machine| {
        let before = there.contains(&machine.id) && start.disks.contains(&machine.pool);
        before || asks_for_disk(manifest, &machine.pool)
    });
    asked.map(|machine| machine.pool.clone()).collect()
}

/// The pools of its machines that say that these are replaced.
fn replacing(manifest: &Manifest, grown: &Desired) -> BTreeSet<Name> {
    let replaces = |pool: &&Name| matches!(manifest.pools.get(*pool), Some(Pool::Dynamic(of)) if of.replace.is_some());
    pools(grown).into_iter().filter(replaces).cloned().collect()
}

/// The pools of its machines.
fn pools(desired: &Desired) -> BTreeSet<&Name> {
    desired.all().map(|machine| &machine.pool).collect()
}

/// What the nodes run that are to stay, or may soon: an attempt has begun. One that was to make a
/// node and failed made none, and the next begins anew: a version that does not exist can be taken
/// back.
fn versions(known: Known<'_>) -> impl Iterator<Item = Version> {
    let begun = known.open.iter().filter(|open| {
        let changes = open.action.kind() == Kind::Upgrade;
        open.attempts > 0 && (changes || open.state == State::Running)
    });
    seen_to_run(known).chain(begun.filter_map(|open| open.action.version()))
}

/// What the nodes that are to stay were last seen to run.
fn seen_to_run(known: Known<'_>) -> impl Iterator<Item = Version> {
    let seen = move |machine: &Machine| known.observed.machines.get(&machine.id)?.node.as_ref();
    let nodes = known.desired.machines.iter().filter_map(seen);
    nodes.filter_map(|(fact, _)| match fact {
        NodeFact::Joined { version, .. } => Some(*version),
        NodeFact::Absent => None,
    })
}

/// Machines that were last seen as nodes of the cluster.
fn nodes(observed: &Observed) -> BTreeSet<MachineId> {
    let machines = observed.machines.iter();
    let nodes = machines.filter(|(_, seen)| seen.is_node());
    nodes.map(|(id, _)| *id).collect()
}

/// Machines that were last seen as nodes of the cluster, or as those of a load balancer that was
/// told its targets.
fn in_service(observed: &Observed) -> BTreeSet<MachineId> {
    let balances = |seen: &Seen| matches!(&seen.host, Some((host, _)) if host.balance.is_some());
    let machines = observed.machines.iter();
    let balancing = machines.filter(|(_, seen)| balances(seen));
    let mut serving = nodes(observed);
    serving.extend(balancing.map(|(id, _)| *id));
    serving
}

/// Whether the machine was seen to be absent; never having been seen is not enough.
///
/// While a task on it is unfinished, absence may have been seen before an attempt made the
/// machine: then nobody knows, and it is not forgotten. Nor is one to which names lead.
fn gone(known: &Known<'_>, machine: MachineId) -> bool {
    let seen = known.observed.machines.get(&machine);
    let fact = seen.and_then(|seen| seen.machine.as_ref());
    matches!(fact, Some((MachineFact::Absent, _)))
        && !seen.is_some_and(Seen::is_named)
        && !known.open.iter().any(|open| open.machine == machine)
}

#[cfg(test)]
mod tests;
