//! From a manifest to what each of its clusters should be, down to names and addresses.
//!
//! What a cluster already has is kept: identity, ordinals and addresses never change
//! while a machine lives. What it lacks gets the lowest free ordinal and address; what it
//! has too many of moves to `leaving`, highest ordinal first, and stays there, keeping its
//! address, until it is seen to be gone.

use model::cluster::{Balancer, Desired, Generation, Jump, Machine, Origin, Role};
use model::disruption::Disruption;
use model::fault::{Code, Fault, Faults};
use model::host::Playbooks;
use model::id::{self, ClusterId, MachineId};
use model::intent::{Intent, Wish};
use model::manifest::{Cluster, Dynamic, JumpHost, Manifest, Pool, Static};
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::task::Open;
use model::time::Timestamp;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

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
    let mut faults = Faults::default();
    refuse_foreign_secrets(project, manifest, &mut faults);
    let mut expansions = Vec::with_capacity(manifest.clusters.len());
    for (at, cluster) in manifest.clusters.iter().enumerate() {
        let before = known
            .iter()
            .find(|known| known.desired.name == cluster.name)
            .copied();
        if let Some(before) = before {
            refuse_impossible(at, cluster, before, &mut faults);
        }
        let empty;
        let start = if let Some(before) = before {
            before.desired
        } else {
            empty = born(project, manifest, cluster, lives);
            &empty
        };
        let grown = grow(manifest, cluster, start, before, now, &mut faults);
        refuse_homeless(at, &grown, &mut faults);
        if let Some(before) = before {
            refuse_beheading(at, &grown, before, &mut faults);
        }
        expansions.push(compare(grown, before.map(|known| known.desired)));
    }
    for gone in known {
        if !manifest
            .clusters
            .iter()
            .any(|cluster| cluster.name == gone.desired.name)
        {
            expansions.push(Expansion {
                desired: retire(*gone),
                change: Change::Removed,
            });
        }
    }
    if faults.is_empty() {
        Ok(expansions)
    } else {
        Err(faults.into_vec())
    }
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

/// What may not change in the life of a cluster.
fn refuse_impossible(at: usize, cluster: &Cluster, known: Known<'_>, faults: &mut Faults) {
    let before = known.desired;
    let path = |field: &str| format!("spec.kubernetes.clusters[{at}].{field}");
    if cluster.network != before.network {
        faults.note(
            path("network"),
            Code::Immutable,
            format!(
                "found {}, allowed: {}, the network the cluster was made with",
                cluster.network, before.network
            ),
        );
    }
    // What nodes run counts, not what was declared: a wrong version can be taken back.
    let newest = versions(known).max();
    if let Some(newest) = newest.filter(|newest| cluster.version < *newest) {
        faults.note(
            path("version"),
            Code::Immutable,
            format!(
                "found {}, allowed: {newest} or newer, which nodes run; Kubernetes cannot be downgraded",
                cluster.version
            ),
        );
    }
    // A node that is still on an older minor release counts, whatever was declared since.
    let oldest = versions(known).min();
    if let Some(oldest) = oldest.filter(|oldest| cluster.version.minor > oldest.minor + 1) {
        faults.note(
            path("version"),
            Code::Range,
            format!(
                "found {}, allowed: up to v1.{}, because a node runs {oldest}; one minor release at a time",
                cluster.version,
                oldest.minor + 1,
            ),
        );
    }
}

/// Secrets of another project: nobody may use them, whoever names them.
///
/// The files that people have name a namespace beside a secret. Ours is the project.
fn refuse_foreign_secrets(project: &Name, manifest: &Manifest, faults: &mut Faults) {
    let accounts = manifest.providers.values();
    let accounts = accounts.filter_map(|account| account.secret.as_ref());
    let given = manifest.pools.values().filter_map(|pool| match pool {
        Pool::Static(fixed) => Some(fixed),
        Pool::Dynamic(_) => None,
    });
    let jumps = given.clone().filter_map(|pool| pool.jump.as_ref());
    let jumps = jumps.filter_map(|jump| jump.secret.as_ref());
    let hosts = given.flat_map(|pool| &pool.hosts);
    let hosts = hosts.filter_map(|host| host.secret.as_ref());
    for named in accounts.chain(hosts).chain(jumps) {
        if let Some(namespace) = named.namespace.as_ref().filter(|found| *found != project) {
            faults.note(
                format!("{}.namespace", named.path),
                Code::Reference,
                format!(
                    "found `{namespace}`, allowed: {project}, the project of the manifest, or \
                     nothing; a manifest uses the secrets of its own project",
                ),
            );
        }
    }
}

/// A control plane whose last member would have to go before another can come, because the
/// other stands at the same address.
fn refuse_beheading(at: usize, grown: &Desired, known: Known<'_>, faults: &mut Faults) {
    let members = nodes(known.observed);
    let control = |machines: &[Machine]| -> Vec<Machine> {
        let role = |machine: &&Machine| machine.role == Role::Control;
        machines.iter().filter(role).cloned().collect()
    };
    let (stay, leave) = (control(&grown.machines), control(&grown.leaving));
    let left = leave.iter().any(|machine| members.contains(&machine.id));
    let kept = stay.iter().any(|machine| members.contains(&machine.id));
    let can_come = |machine: &Machine| {
        let place = endpoint(machine);
        place.is_none() || leave.iter().all(|other| endpoint(other) != place)
    };
    if left && !kept && !stay.iter().any(can_come) {
        faults.note(
            format!("spec.kubernetes.clusters[{at}].pools.control"),
            Code::Immutable,
            "the last control machine cannot move to another pool: nobody is left to take over; \
             keep its pool, or add another control machine first",
        );
    }
}

/// Machines for which the network has no address left.
///
/// Admission sees to it that the pools fit; machines on their way out and wishes to scale
/// come on top.
fn refuse_homeless(at: usize, grown: &Desired, faults: &mut Faults) {
    let homeless = grown
        .machines
        .iter()
        .filter(|machine| machine.address.is_unspecified())
        .count();
    if homeless > 0 {
        faults.note(
            format!("spec.kubernetes.clusters[{at}].network"),
            Code::Range,
            format!(
                "found {} with {} addresses, allowed: room for {} machines and {} that are leaving; \
                 wait until those are gone, or ask for fewer",
                grown.network,
                grown.network.capacity(),
                grown.machines.len(),
                grown.leaving.len(),
            ),
        );
    }
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
        network: cluster.network,
        machines: Vec::new(),
        leaving: Vec::new(),
        made: BTreeMap::new(),
        balancers: Vec::new(),
        proxy: None,
        playbooks: Playbooks::default(),
        tombstone: false,
        disruption: Disruption::default(),
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
        && grown.balancers == before.balancers
        && grown.proxy == before.proxy
        && grown.playbooks == before.playbooks
        && grown.disruption == before.disruption.only(&pools(grown))
        && grown.machines == before.machines
        && grown
            .leaving
            .iter()
            .all(|machine| before.leaving.contains(machine))
}

/// The cluster with the machines that the manifest and the wishes ask for.
fn grow(
    manifest: &Manifest,
    cluster: &Cluster,
    start: &Desired,
    before: Option<Known<'_>>,
    now: Timestamp,
    faults: &mut Faults,
) -> Desired {
    let mut growing = Growing::from(start, before, now);
    growing.desired.version = cluster.version;
    growing.desired.proxy.clone_from(&cluster.proxy);
    growing.desired.playbooks = cluster
        .playbooks
        .declared_after(&start.playbooks, &start.made);
    growing.desired.balancers = balancers(manifest, cluster);
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
                Some(Pool::Dynamic(pool)) => growing.dynamic(manifest, place, pool, faults),
                Some(Pool::Static(pool)) => growing.fixed(place, pool),
                None => {}
            }
        }
    }
    let mut grown = growing.finish();
    for machine in &mut grown.leaving {
        reopen(machine, manifest);
    }
    grown.disruption = disruption(manifest, cluster, &grown);
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

fn balancers(manifest: &Manifest, cluster: &Cluster) -> Vec<Balancer> {
    let balancer = |declared: &model::manifest::Balancer| Balancer {
        name: declared.name.clone(),
        roles: declared.roles.clone(),
    };
    serving(manifest, cluster).map(balancer).collect()
}

/// Gives a machine on its way out what opens its provider's account now: whoever corrects the
/// name of a secret wants the old machines to go, too.
fn reopen(machine: &mut Machine, manifest: &Manifest) {
    let Origin::Made {
        provider, secret, ..
    } = &mut machine.origin
    else {
        return;
    };
    if let Some(account) = manifest.providers.get(provider) {
        *secret = account.secret.as_ref().map(|named| named.secret.clone());
    }
}

/// What the manifest allows for the machines of the cluster; for those of a pool that it
/// declares no more, what it allowed before.
fn disruption(manifest: &Manifest, cluster: &Cluster, grown: &Desired) -> Disruption {
    let mut allowed = grown.disruption.clone();
    allowed.unavailable = cluster.unavailable;
    allowed.windows = cluster.windows.clone();
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

/// The pools of its machines.
fn pools(desired: &Desired) -> BTreeSet<&Name> {
    desired.all().map(|machine| &machine.pool).collect()
}

/// Where machines stand: their pool, what they do, and for which load balancer.
#[derive(Clone, Copy)]
struct Stand<'a> {
    pool: &'a Name,
    role: Role,
    balancer: Option<&'a Name>,
}

impl Stand<'_> {
    fn holds(&self, machine: &Machine) -> bool {
        machine.pool == *self.pool
            && machine.role == self.role
            && machine.balancer.as_ref() == self.balancer
    }
}

/// A cluster on its way from one generation to the next.
struct Growing<'a> {
    desired: Desired,
    /// Machines of the previous generation that nobody has asked for yet.
    spare: Vec<Machine>,
    replaced: BTreeSet<MachineId>,
    joined: BTreeSet<MachineId>,
    scaled: Vec<(&'a Name, u32, u32)>,
    addresses: BTreeSet<Ipv4Addr>,
    /// Where the search for a free address goes on; those before it are taken.
    next_address: Box<dyn Iterator<Item = Ipv4Addr>>,
}

impl<'a> Growing<'a> {
    fn from(start: &Desired, before: Option<Known<'a>>, now: Timestamp) -> Self {
        let mut desired = start.clone();
        if let Some(before) = before {
            desired.leaving.retain(|machine| !gone(&before, machine.id));
        }
        let spare = std::mem::take(&mut desired.machines);
        let wishes = before.map(|known| known.intents).unwrap_or_default();
        let mut replaced = BTreeSet::new();
        let mut scaled = Vec::new();
        for intent in wishes.iter().filter(|intent| intent.counts(now)) {
            match &intent.wish {
                Wish::Replace { machine } => {
                    replaced.insert(*machine);
                }
                Wish::Scale { pool, count, was } => scaled.push((pool, *count, *was)),
                Wish::Retry { .. } | Wish::Cancel { .. } | Wish::Pause => {}
            }
        }
        let joined = before
            .map(|known| nodes(known.observed))
            .unwrap_or_default();
        let addresses = spare
            .iter()
            .chain(&desired.leaving)
            .map(|machine| machine.address)
            .collect();
        let next_address = Box::new(desired.network.hosts());
        Self {
            desired,
            spare,
            replaced,
            joined,
            scaled,
            addresses,
            next_address,
        }
    }

    /// Keeps the lowest ordinals of a pool, makes what is missing.
    fn dynamic(
        &mut self,
        manifest: &Manifest,
        stand: Stand<'_>,
        pool: &Dynamic,
        faults: &mut Faults,
    ) {
        let wished = self
            .scaled
            .iter()
            .rev()
            .find(|(of, _, was)| *of == stand.pool && *was == pool.count);
        let count = usize::try_from(wished.map_or(pool.count, |(_, count, _)| *count))
            .unwrap_or(usize::MAX);
        let (mut kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.spare)
            .into_iter()
            .partition(|machine| stand.holds(machine) && made(machine));
        self.spare = others;
        let account = manifest.providers.get(&pool.provider);
        let origin = account.map(|account| Origin::Made {
            provider: pool.provider.clone(),
            via: account.via,
            region: pool.region.clone(),
            zone: pool.zone.clone(),
            server_type: pool.server_type.clone(),
            image: pool.image.clone(),
            secret: account.secret.as_ref().map(|named| named.secret.clone()),
        });
        self.outdate(&mut kept, origin.as_ref(), pool, faults);
        kept.sort_by_key(|machine| (self.replaced.contains(&machine.id), machine.ordinal));
        let excess = kept.split_off(kept.len().min(count));
        let replaced = kept
            .iter()
            .position(|machine| self.replaced.contains(&machine.id));
        let replaced = replaced
            .map(|first| kept.split_off(first))
            .unwrap_or_default();
        self.desired.leaving.extend(excess);
        self.desired.leaving.extend(replaced);

        let mut taken = self.ordinals(stand.pool);
        taken.extend(kept.iter().map(|machine| machine.ordinal));
        let mut free = (1..=u32::MAX).filter(|ordinal| !taken.contains(ordinal));
        while kept.len() < count
            && let (Some(origin), Some(ordinal)) = (&origin, free.next())
        {
            kept.push(self.machine(stand, ordinal, origin.clone()));
        }
        kept.sort_by_key(|machine| machine.ordinal);
        self.desired.machines.extend(kept);
    }

    /// Machines made in another way than the pool now says: one that serves may not change,
    /// one that does not is made anew. What opens the provider's account may always change.
    fn outdate(
        &mut self,
        kept: &mut [Machine],
        origin: Option<&Origin>,
        pool: &Dynamic,
        faults: &mut Faults,
    ) {
        let Some(origin) = origin else { return };
        let mut told = false;
        for machine in kept {
            if machine.origin.secret() != origin.secret() {
                let opened = machine.origin.clone();
                machine.origin = opened.with_secret(origin.secret().cloned());
            }
            if machine.origin == *origin {
                continue;
            }
            if !self.joined.contains(&machine.id) {
                self.replaced.insert(machine.id);
            } else if !told {
                told = true;
                faults.note(
                    format!("spec.nodePools.dynamic[{}]", pool.position),
                    Code::Immutable,
                    format!(
                        "found another providerSpec, serverType or image than {} was made with; \
                         declare a pool of another name and use that one instead",
                        machine.name
                    ),
                );
            }
        }
    }

    /// Keeps the given hosts that are still declared, takes in the new ones.
    fn fixed(&mut self, stand: Stand<'_>, pool: &Static) {
        let mut taken = self.ordinals(stand.pool);
        let mut kept = Vec::new();
        for host in &pool.hosts {
            let same = |machine: &Machine| {
                stand.holds(machine) && endpoint(machine) == Some(host.endpoint)
            };
            // One that was to leave and is declared again stays: it stands at that address.
            let known = match self.spare.iter().position(same) {
                Some(at) => Some(self.spare.swap_remove(at)),
                None => self
                    .desired
                    .leaving
                    .iter()
                    .position(same)
                    .map(|at| self.desired.leaving.swap_remove(at)),
            };
            let before = known.as_ref().and_then(|known| known.origin.jump());
            let origin = Origin::Given {
                endpoint: host.endpoint,
                ssh_port: pool.ssh_port,
                username: host.username.clone(),
                secret: host.secret.as_ref().map(|named| named.secret.clone()),
                jump: pool.jump.as_ref().map(|jump| self.jump(jump, before)),
            };
            if let Some(known) = known {
                kept.push(Machine { origin, ..known });
                continue;
            }
            let free = (1..=u32::MAX).find(|ordinal| !taken.contains(ordinal));
            if let Some(ordinal) = free {
                taken.insert(ordinal);
                kept.push(self.machine(stand, ordinal, origin));
            }
        }
        kept.sort_by_key(|machine| machine.ordinal);
        self.desired.machines.extend(kept);
    }

    /// The host in front of a machine: the one that was there before, or another one from now on.
    fn jump(&self, declared: &JumpHost, before: Option<&Jump>) -> Jump {
        let place = |jump: &Jump| (jump.endpoint, jump.ssh_port);
        let same = |before: &&Jump| place(before) == (declared.endpoint, declared.ssh_port);
        let next = self.desired.generation.next();
        Jump {
            endpoint: declared.endpoint,
            ssh_port: declared.ssh_port,
            username: declared.username.clone(),
            secret: declared.secret.as_ref().map(|named| named.secret.clone()),
            since: before.filter(same).map_or(next, |before| before.since),
        }
    }

    /// Ordinals of the pool that somebody bears: in either role, or on the way out.
    fn ordinals(&self, pool: &Name) -> BTreeSet<u32> {
        let bearers = self.desired.all().chain(&self.spare);
        bearers
            .filter(|machine| machine.pool == *pool)
            .map(|machine| machine.ordinal)
            .collect()
    }

    fn machine(&mut self, stand: Stand<'_>, ordinal: u32, origin: Origin) -> Machine {
        let Stand {
            pool,
            role,
            balancer,
        } = stand;
        let made = self.desired.made.entry(pool.clone()).or_insert(0);
        let incarnation = *made;
        *made += 1;
        let taken = &self.addresses;
        let address = self.next_address.find(|address| !taken.contains(address));
        let id = MachineId::derive(id::Origin {
            parent: &self.desired.cluster.to_string(),
            name: pool.as_str(),
            ordinal: u64::from(ordinal),
            incarnation: u64::from(incarnation),
        });
        Machine {
            id,
            name: Name::of_machine(balancer.unwrap_or(&self.desired.name), pool, ordinal),
            pool: pool.clone(),
            role,
            ordinal,
            incarnation,
            // None left: `refuse_homeless` says so.
            address: address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            balancer: balancer.cloned(),
            origin,
        }
    }

    fn finish(mut self) -> Desired {
        self.desired.leaving.append(&mut self.spare);
        self.desired.machines.sort_by(|a, b| key(a).cmp(&key(b)));
        self.desired
    }
}

/// The order of machines: control first, load balancers last.
fn key(machine: &Machine) -> (Role, Option<&Name>, &Name, u32) {
    let balancer = machine.balancer.as_ref();
    (machine.role, balancer, &machine.pool, machine.ordinal)
}

fn made(machine: &Machine) -> bool {
    matches!(machine.origin, Origin::Made { .. })
}

fn endpoint(machine: &Machine) -> Option<Ipv4Addr> {
    match &machine.origin {
        Origin::Given { endpoint, .. } => Some(*endpoint),
        Origin::Made { .. } => None,
    }
}

/// What the nodes run that are to stay, or may soon: an attempt has begun.
fn versions(known: Known<'_>) -> impl Iterator<Item = Version> {
    let seen = move |machine: &Machine| known.observed.machines.get(&machine.id)?.node.as_ref();
    let nodes = known.desired.machines.iter().filter_map(seen);
    let run = nodes.filter_map(|(fact, _)| match fact {
        NodeFact::Joined { version, .. } => Some(*version),
        NodeFact::Absent => None,
    });
    let begun = known.open.iter().filter(|open| open.attempts > 0);
    run.chain(begun.filter_map(|open| open.action.version()))
}

/// Machines that were last seen as nodes of the cluster.
fn nodes(observed: &Observed) -> BTreeSet<MachineId> {
    let joined = |seen: &Seen| matches!(seen.node, Some((NodeFact::Joined { .. }, _)));
    observed
        .machines
        .iter()
        .filter(|(_, seen)| joined(seen))
        .map(|(id, _)| *id)
        .collect()
}

/// Whether the machine was seen to be absent; never having been seen is not enough.
///
/// While a task on it is unfinished, absence may have been seen before an attempt made the
/// machine: then nobody knows, and it is not forgotten.
fn gone(known: &Known<'_>, machine: MachineId) -> bool {
    let seen = known.observed.machines.get(&machine);
    let fact = seen.and_then(|seen| seen.machine.as_ref());
    matches!(fact, Some((MachineFact::Absent, _)))
        && !known.open.iter().any(|open| open.machine == machine)
}

#[cfg(test)]
mod tests;
