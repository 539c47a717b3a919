//! A cluster on its way from one generation to the next: which machines it keeps, which it
//! gets, and which have to leave.

use super::{Known, gone, in_service, subnets, taken_back};
use model::cluster::{Desired, Jump, Machine, MetalWanted, Origin, Role};
use model::fault::{Code, Faults};
use model::hardware::{DISK_USUAL, Hardware};
use model::id::{self, MachineId};
use model::intent::Wish;
use model::manifest::{Account, Dynamic, JumpHost, Metal, Static};
use model::name::Name;
use model::network::Network;
use model::provider::Provider;
use model::time::Timestamp;
use model::upkeep::Roll;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Where machines stand: their pool, what they do, and for which load balancer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stand<'a> {
    pub(crate) pool: &'a Name,
    pub(crate) role: Role,
    pub(crate) balancer: Option<&'a Name>,
}

impl<'a> Stand<'a> {
    /// Where a machine stands.
    pub(crate) const fn of(machine: &'a Machine) -> Self {
        Self {
            pool: &machine.pool,
            role: machine.role,
            balancer: machine.balancer.as_ref(),
        }
    }

    /// Where the machines of a pool stand that goes to another kind.
    const fn of_roll(roll: &'a Roll) -> Self {
        Self {
            pool: &roll.pool,
            role: roll.role,
            balancer: roll.balancer.as_ref(),
        }
    }

    pub(crate) fn holds(&self, machine: &Machine) -> bool {
        Stand::of(machine) == *self
    }
}

/// What a machine of a pool is made with. Only those that run workloads have a data disk, and there
/// is one where somebody is paid for it, unless the manifest says otherwise.
fn hardware(
    account: &Account,
    role: Role,
    declared: &Hardware,
    subnet: Option<Network>,
) -> Hardware {
    let usual = match account.via {
        Provider::Simulated | Provider::Sandbox => 0,
        Provider::Cloud(_) => DISK_USUAL,
    };
    let disk = declared.disk.unwrap_or(usual);
    Hardware {
        disk: Some(disk).filter(|disk| role == Role::Compute && *disk > 0),
        templates: account.templates.clone(),
        subnet,
        ..declared.clone()
    }
}

/// Gives new machines what nobody has: names, lives and addresses.
pub(crate) struct Births {
    taken: BTreeSet<Ipv4Addr>,
    /// Where the search for a free address goes on; those before it are taken.
    next: Box<dyn Iterator<Item = Ipv4Addr>>,
}

impl Births {
    /// Addresses that neither the machines of `desired` have nor `others`.
    pub(crate) fn among(desired: &Desired, others: &[Machine]) -> Self {
        let all = desired.all().chain(others);
        Self {
            taken: all.map(|machine| machine.address).collect(),
            next: Box::new(desired.network.hosts()),
        }
    }

    /// One more machine; `desired` counts it among those that its pool ever made.
    pub(crate) fn machine(
        &mut self,
        desired: &mut Desired,
        stand: Stand<'_>,
        ordinal: u32,
        origin: Origin,
    ) -> Machine {
        let Stand {
            pool,
            role,
            balancer,
        } = stand;
        let made = desired.made.entry(pool.clone()).or_insert(0);
        let incarnation = *made;
        *made += 1;
        let taken = &self.taken;
        let address = self.next.find(|address| !taken.contains(address));
        let id = MachineId::derive(id::Origin {
            parent: &desired.cluster.to_string(),
            name: pool.as_str(),
            ordinal: u64::from(ordinal),
            incarnation: u64::from(incarnation),
        });
        Machine {
            id,
            name: Name::of_machine(balancer.unwrap_or(&desired.name), pool, ordinal),
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
}

/// A cluster on its way from one generation to the next.
pub(super) struct Growing<'a> {
    pub(super) desired: Desired,
    /// Machines of the previous generation that nobody has asked for yet.
    spare: Vec<Machine>,
    pub(super) replaced: BTreeSet<MachineId>,
    /// Machines that go without another in their place.
    pub(super) retired: BTreeSet<MachineId>,
    /// Machines that should go, and that nobody has begun to take out.
    pub(super) untouched: BTreeSet<MachineId>,
    /// Machines that do what they are there for, or did when they were last seen.
    serving: BTreeSet<MachineId>,
    scaled: Vec<(&'a Name, u32, u32)>,
    /// Pools of which the cluster itself has machines, besides its load balancers.
    pub(super) own: BTreeSet<&'a Name>,
    /// Pools that were on their way to machines of another kind.
    rolls: Vec<Roll>,
    births: Births,
}

impl<'a> Growing<'a> {
    pub(super) fn from(start: &Desired, before: Option<Known<'a>>, now: Timestamp) -> Self {
        let mut desired = start.clone();
        if let Some(before) = before {
            desired.leaving.retain(|machine| !gone(&before, machine.id));
        }
        let spare = std::mem::take(&mut desired.machines);
        desired.metal.clear();
        let wishes = before.map(|known| known.intents).unwrap_or_default();
        let (mut replaced, mut retired) = (BTreeSet::new(), BTreeSet::new());
        let mut scaled = Vec::new();
        for intent in wishes.iter().filter(|intent| intent.counts(now)) {
            match &intent.wish {
                Wish::Replace { machine } => {
                    replaced.insert(*machine);
                }
                Wish::Retire { machine } => {
                    retired.insert(*machine);
                }
                Wish::Scale { pool, count, was } => scaled.push((pool, *count, *was)),
                Wish::Retry { .. }
                | Wish::Cancel { .. }
                | Wish::Pause
                | Wish::Snapshot
                | Wish::Restore { .. }
                | Wish::Update { .. } => {}
            }
        }
        let serving = before
            .map(|known| in_service(known.observed))
            .unwrap_or_default();
        let untouched = before.as_ref().map(taken_back::untouched);
        let births = Births::among(&desired, &spare);
        let rolls = std::mem::take(&mut desired.rolls);
        Self {
            desired,
            spare,
            replaced,
            retired,
            untouched: untouched.unwrap_or_default(),
            serving,
            scaled,
            own: BTreeSet::new(),
            rolls,
            births,
        }
    }

    /// How many machines a pool has, of which so many are there or on their way.
    ///
    /// One that is scaled stays as it is until somebody wishes otherwise, within what the
    /// manifest allows; so does one that was not scaled before. Who wishes names a pool, and means the
    /// nodes of the cluster: machines of a load balancer only where it has no nodes of that pool.
    fn size(&self, stand: Stand<'_>, pool: &Dynamic, present: usize) -> usize {
        let declared = pool.declared();
        let meant = stand.role.is_node() || !self.own.contains(stand.pool);
        let mut wishes = self.scaled.iter().rev().filter(|_| meant);
        let wished = wishes.find(|(of, _, was)| *of == stand.pool && *was == declared);
        let wished = wished.map(|(_, count, _)| *count);
        let count = match pool.autoscaler {
            Some(range) => {
                let present = || u32::try_from(present).unwrap_or(u32::MAX);
                range.nearest(wished.unwrap_or_else(present))
            }
            None => wished.unwrap_or(pool.count),
        };
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// Keeps the lowest ordinals of a pool, makes what is missing.
    pub(super) fn dynamic(
        &mut self,
        account: Option<&Account>,
        stand: Stand<'_>,
        pool: &Dynamic,
        faults: &mut Faults,
    ) {
        let subnet = account.and_then(|account| self.subnet(stand, account, pool, faults));
        let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.spare)
            .into_iter()
            .partition(|machine| stand.holds(machine) && made(machine));
        self.spare = others;
        let (retired, mut kept): (Vec<_>, Vec<_>) = kept
            .into_iter()
            .partition(|machine| self.retired.contains(&machine.id));
        self.desired.leaving.extend(retired);
        // Those that come in place of others are no more of them.
        let present = kept.iter().filter(|machine| !self.comes(machine)).count();
        let count = self.size(stand, pool, present);
        let origin = account.map(|account| Origin::Made {
            provider: pool.provider.clone(),
            via: account.via,
            region: pool.region.clone(),
            zone: pool.zone.clone(),
            server_type: pool.server_type.clone(),
            image: pool.image.clone(),
            hardware: hardware(account, stand.role, &pool.hardware, subnet),
            secret: account.secret.as_ref().map(|named| named.secret.clone()),
        });
        let origin = origin.map(|origin| self.pinned(stand, origin, &kept));
        self.take_back(stand, origin.as_ref(), (&mut kept, count));
        let mut roll = self.outdate(&mut kept, origin.as_ref(), (stand, pool), faults);
        let (replaced, mut kept): (Vec<_>, Vec<_>) = kept
            .into_iter()
            .partition(|machine| self.replaced.contains(&machine.id));
        let old = |machine: &Machine, roll: Option<&Roll>| {
            roll.is_some_and(|roll| roll.origin != machine.origin)
        };
        kept.sort_by_key(|machine| {
            let old = old(machine, roll.as_ref());
            (old, self.comes(machine), machine.ordinal)
        });
        let size =
            count.saturating_add(roll.as_mut().map_or(0, |roll| surplus(roll, &kept, count)));
        let excess = kept.split_off(kept.len().min(size));
        self.desired.leaving.extend(excess);
        self.desired.leaving.extend(replaced);

        let mut taken = self.ordinals(stand.pool);
        taken.extend(kept.iter().map(|machine| machine.ordinal));
        let mut free = (1..=u32::MAX).filter(|ordinal| !taken.contains(ordinal));
        while kept.len() < size
            && let (Some(origin), Some(ordinal)) = (&origin, free.next())
        {
            kept.push(self.machine(stand, ordinal, origin.clone()));
        }
        kept.sort_by_key(|machine| machine.ordinal);
        let left = kept.iter().any(|machine| old(machine, roll.as_ref()));
        self.desired.rolls.extend(roll.filter(|_| left));
        self.desired.machines.extend(kept);
    }

    /// The network of a pool whose machines a cloud lends.
    fn subnet(
        &self,
        stand: Stand<'_>,
        account: &Account,
        pool: &Dynamic,
        faults: &mut Faults,
    ) -> Option<Network> {
        match account.via {
            Provider::Simulated | Provider::Sandbox => return None,
            Provider::Cloud(_) => {}
        }
        let machines = self.desired.all().chain(&self.spare);
        let machines = machines.map(|machine| (Stand::of(machine), &machine.origin));
        // Nobody of the new kind needs to be there for its network to be taken.
        let rolls = self.desired.rolls.iter().chain(&self.rolls);
        let rolls = rolls.map(|roll| (Stand::of_roll(roll), &roll.origin));
        let place = (&pool.provider, &pool.region[..]);
        let subnet = subnets::of_pool(machines.chain(rolls), stand, place);
        if subnet.is_none() {
            let message = format!(
                "found no free network in {}, allowed: fewer pools with provider {} in region {}",
                Network::AT_CLOUDS,
                pool.provider,
                pool.region
            );
            let path = format!("spec.nodePools.dynamic[{}]", pool.position);
            faults.note(path, Code::Range, message);
        }
        subnet
    }

    /// Whether a machine came in place of others of its pool, who were to go when it serves.
    fn comes(&self, machine: &Machine) -> bool {
        let mut rolls = self.rolls.iter();
        rolls.any(|roll| roll.coming.contains(&machine.id))
    }

    /// What machines of a pool are made like, with the commit that the pool goes to or has: one that
    /// comes later is made from the same modules, whatever their branch leads to by then. Where the
    /// pool has none yet, nobody knows it before somebody has looked.
    fn pinned(&self, stand: Stand<'_>, origin: Origin, kept: &[Machine]) -> Origin {
        let Some(templates) = origin.templates() else {
            return origin;
        };
        let rolls = self.rolls.iter();
        let rolls = rolls.filter(|roll| Stand::of_roll(roll) == stand);
        let rolls = rolls.map(|roll| &roll.origin);
        let mut others = rolls.chain(kept.iter().map(|machine| &machine.origin));
        let same = |other: &Origin| {
            other
                .templates()
                .is_some_and(|of| of.written_like(templates))
        };
        let commit = others.find_map(|other| other.pinned().filter(|_| same(other)));
        origin.at(commit)
    }

    /// Machines made in another way than the pool now says: one that serves may not change unless
    /// the pool says that its machines are replaced, one that does not is made anew. What opens
    /// the provider's account may always change. Where only its branch has moved, a machine stays as
    /// it is until newer modules are taken ([`crate::advance`]), and goes on once they are.
    fn outdate(
        &mut self,
        kept: &mut [Machine],
        origin: Option<&Origin>,
        (stand, pool): (Stand<'_>, &Dynamic),
        faults: &mut Faults,
    ) -> Option<Roll> {
        let origin = origin?;
        let mut rolls = self.rolls.iter();
        let same =
            rolls.find(|roll| Stand::of_roll(roll) == stand && roll.origin.made_like(origin));
        let (mut old, mut behind) = (false, false);
        let path = format!("spec.nodePools.dynamic[{}]", pool.position);
        for machine in kept {
            machine.origin.take_subnet(origin);
            if machine.origin.same_account(origin) {
                machine.origin = machine.origin.clone().opened_like(origin);
            }
            machine.origin.take_modules(origin);
            if machine.origin.lacks_commit() && machine.origin.declared_like(origin) {
                machine.origin = origin.clone();
            }
            if machine.origin == *origin {
                continue;
            }
            if machine.origin.declared_like(origin) {
                behind |= same.is_some();
            } else if !self.serving.contains(&machine.id) {
                self.replaced.insert(machine.id);
            } else if pool.replace.is_some() {
                old = true;
            } else if !faults.tells_of(&path, Code::Immutable) {
                // A pool is one mistake, however many machines and clusters it has.
                let differs = machine.origin.differs(origin);
                let differs: Vec<_> = differs
                    .iter()
                    .map(|of| format!("{} {}, which was {}", of.field, of.there, of.here))
                    .collect();
                faults.note(
                    path.clone(),
                    Code::Immutable,
                    format!(
                        "found {} when {} was made; \
                         say replace: true to have the pool's machines replaced, one after the other",
                        differs.join(", and "),
                        machine.name
                    ),
                );
            }
        }
        let surge = match pool.replace.filter(|_| old) {
            Some(replace) => replace.surge,
            None => same.filter(|_| behind)?.surge,
        };
        Some(Roll {
            pool: stand.pool.clone(),
            role: stand.role,
            balancer: stand.balancer.cloned(),
            origin: origin.clone(),
            surge,
            coming: same.map(|roll| roll.coming.clone()).unwrap_or_default(),
            failed: same.and_then(|roll| roll.failed.clone()),
        })
    }

    /// Keeps the given hosts that are still declared, takes in the new ones.
    pub(super) fn fixed(&mut self, stand: Stand<'_>, pool: &Static) {
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

    /// Asks for machines of those that were discovered.
    pub(super) fn metal(&mut self, stand: Stand<'_>, pool: &Metal) {
        self.desired.metal.push(MetalWanted {
            pool: stand.pool.clone(),
            role: stand.role,
            balancer: stand.balancer.cloned(),
            count: pool.count,
            selector: pool.selector.clone(),
        });
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
        self.births
            .machine(&mut self.desired, stand, ordinal, origin)
    }

    pub(super) fn finish(mut self) -> Desired {
        self.desired.leaving.append(&mut self.spare);
        self.desired.machines.sort_by(|a, b| key(a).cmp(&key(b)));
        let pools: BTreeSet<_> = self.desired.machines.iter().map(|of| &of.pool).collect();
        self.desired.repaired.retain(|pool, _| pools.contains(pool));
        self.desired
    }
}

/// How many machines a pool that rolls has for now beyond its size, of these in the order in which
/// they stay: one for each that comes in place of an old one. Where those of the new kind are enough
/// by themselves, nobody has to come any more.
fn surplus(roll: &mut Roll, kept: &[Machine], count: usize) -> usize {
    let old = kept.iter().filter(|machine| roll.origin != machine.origin);
    let old = old.count();
    let new = kept.len() - old;
    roll.coming
        .retain(|id| kept.iter().any(|machine| machine.id == *id));
    roll.coming.truncate(if new < count { old } else { 0 });
    roll.coming.len()
}

/// The order of machines: control first, load balancers last.
pub(crate) fn key(machine: &Machine) -> (Role, Option<&Name>, &Name, u32) {
    let balancer = machine.balancer.as_ref();
    (machine.role, balancer, &machine.pool, machine.ordinal)
}

pub(super) fn made(machine: &Machine) -> bool {
    matches!(machine.origin, Origin::Made { .. })
}

pub(super) fn endpoint(machine: &Machine) -> Option<Ipv4Addr> {
    match &machine.origin {
        Origin::Given { endpoint, .. } => Some(*endpoint),
        Origin::Made { .. } => None,
    }
}
