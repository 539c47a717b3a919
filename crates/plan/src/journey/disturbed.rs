//! Who is taken out of service on the way.

use crate::ledger::Slot;
use model::cluster::{Desired, Machine, Role};
use model::id::MachineId;
use model::name::Name;
use model::observed::{NodeFact, Observed, Seen};
use model::task::Kind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Machines of one pool that are taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbed {
    /// Which pool.
    pub pool: Name,
    /// How many of its machines.
    pub machines: u32,
    /// How many of them at a time, at most.
    pub at_once: u32,
}

/// As in a sentence: `3 of compute, one at a time`.
impl fmt::Display for Disturbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pool,
            machines,
            at_once,
        } = self;
        write!(f, "{machines} of {pool}")?;
        match at_once {
            _ if machines == at_once && *machines > 1 => f.write_str(", all at once"),
            1 if *machines == 1 => Ok(()),
            1 => f.write_str(", one at a time"),
            many => write!(f, ", {many} at a time"),
        }
    }
}

/// Who was taken out of service so far.
pub(super) struct Taken {
    /// Nodes and load balancers, with their pools, and whether they are of the control plane.
    serving: BTreeMap<MachineId, (Name, bool)>,
    /// All that were, by pool, and how many of them at most in one round.
    pools: BTreeMap<Name, (BTreeSet<MachineId>, usize)>,
}

impl Taken {
    pub(super) fn new(desired: &Desired, observed: &Observed) -> Self {
        let seen = |machine: &&Machine| observed.machines.get(&machine.id).is_some_and(serves);
        let serving = desired.all().filter(seen);
        Self {
            serving: serving
                .map(|machine| (machine.id, place(machine)))
                .collect(),
            pools: BTreeMap::new(),
        }
    }

    /// One more round, in which the ledger has these rows.
    pub(super) fn round(&mut self, tasks: &[(Kind, &Machine)], ledger: &[Slot]) {
        let mut out: BTreeMap<&Name, BTreeSet<MachineId>> = BTreeMap::new();
        for slot in ledger {
            out.entry(&slot.pool).or_default().insert(slot.machine);
        }
        for (kind, machine) in tasks {
            match kind {
                Kind::Drain | Kind::Leave | Kind::Delete | Kind::Release => {
                    if self.serving.contains_key(&machine.id) {
                        out.entry(&machine.pool).or_default().insert(machine.id);
                    }
                }
                // The whole control plane goes back together.
                Kind::Restore => {
                    for (id, (pool, control)) in &self.serving {
                        if *control {
                            out.entry(pool).or_default().insert(*id);
                        }
                    }
                }
                Kind::Key
                | Kind::Create
                | Kind::Prepare
                | Kind::Equip
                | Kind::Mesh
                | Kind::Balance
                | Kind::Name
                | Kind::Expose
                | Kind::Shut
                | Kind::Init
                | Kind::Join
                | Kind::Install
                | Kind::Tend
                | Kind::Upgrade
                | Kind::Renew
                | Kind::Uncordon
                | Kind::Clear
                | Kind::Snapshot => {}
            }
        }
        for (pool, machines) in out {
            let (all, at_once) = self.pools.entry(pool.clone()).or_default();
            *at_once = machines.len().max(*at_once);
            all.extend(machines);
        }
        for (kind, machine) in tasks {
            self.moves(*kind, machine);
        }
    }

    /// A machine serves from now on, or does so no more.
    fn moves(&mut self, kind: Kind, machine: &Machine) {
        if matches!(kind, Kind::Init | Kind::Join | Kind::Balance) {
            self.serving.insert(machine.id, place(machine));
        } else if matches!(kind, Kind::Leave | Kind::Delete | Kind::Release) {
            self.serving.remove(&machine.id);
        }
    }

    /// What is told of them.
    pub(super) fn told(self) -> Vec<Disturbed> {
        let count = |machines: usize| u32::try_from(machines).unwrap_or(u32::MAX);
        let pools = self.pools.into_iter();
        pools
            .map(|(pool, (machines, at_once))| Disturbed {
                pool,
                machines: count(machines.len()),
                at_once: count(at_once),
            })
            .collect()
    }
}

fn place(machine: &Machine) -> (Name, bool) {
    (machine.pool.clone(), machine.role == Role::Control)
}

/// Whether somebody could miss it.
fn serves(seen: &Seen) -> bool {
    let node = seen.node.as_ref();
    let host = seen.host.as_ref();
    node.is_some_and(|(node, _)| matches!(node, NodeFact::Joined { .. }))
        || host.is_some_and(|(host, _)| host.balance.is_some())
}
