//! What one cluster alone may have: addresses of given machines, names of load balancers.
//!
//! The store gives it to whoever commits a task that needs it first. Who plans sees what others have
//! by then, so that a journey tells what the commit would.

use crate::held::Reason;
use crate::planner::Plan;
use model::cluster::{Desired, Machine, Origin};
use model::dns::{Domain, Names};
use model::id::MachineId;
use model::name::Name;
use model::observed::{MachineFact, Observed};
use model::task::{Action, Kind};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What every name that leads to machines of a load balancer is one of.
const NAME: &str = "dns/";

/// Something that another cluster has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What: `address/203.0.113.5`.
    pub thing: String,
    /// Who has it.
    pub by: String,
    /// Whether that one is going, and gives it back by itself.
    pub goes: bool,
}

impl Claim {
    /// Who has something, where that is nobody of the project that asks: names of others are theirs.
    pub const ELSEWHERE: &'static str = "a machine of another project";

    /// The address at which a given machine stands.
    ///
    /// A machine that we make has its own address; one that was given is named by it, and two
    /// clusters that were given the same must not both install on it.
    pub fn address(endpoint: Ipv4Addr) -> String {
        format!("address/{endpoint}")
    }

    /// A name that leads to machines of a load balancer.
    pub fn name(name: &Domain) -> String {
        format!("{NAME}{name}")
    }

    /// Whether a thing is a name; all machines of a cluster share those.
    pub fn is_name(thing: &str) -> bool {
        thing.starts_with(NAME)
    }

    /// What somebody must have before this is done to a machine.
    pub fn needed(machine: &Machine, action: &Action) -> Vec<String> {
        match (action, &machine.origin) {
            (Action::Name { naming }, _) => {
                naming.names.iter().map(|of| Self::name(&of.name)).collect()
            }
            (action, Origin::Given { endpoint, .. }) if action.kind() == Kind::Prepare => {
                vec![Self::address(*endpoint)]
            }
            (_, Origin::Given { .. } | Origin::Made { .. }) => Vec::new(),
        }
    }

    /// What a cluster will ask for and may not have yet.
    pub fn wanted(desired: &Desired, observed: &Observed) -> BTreeSet<String> {
        let has = |machine: &Machine| {
            let seen = observed.machines.get(&machine.id);
            let fact = seen.and_then(|seen| seen.machine.as_ref());
            matches!(fact, Some((MachineFact::Running { .. }, _)))
        };
        let coming = desired.machines.iter().filter(|machine| !has(machine));
        let addresses = coming.filter_map(|machine| match &machine.origin {
            Origin::Given { endpoint, .. } => Some(Self::address(*endpoint)),
            Origin::Made { .. } => None,
        });
        let names = desired.balancers.iter();
        let names = names.filter_map(|balancer| balancer.dns.as_ref());
        let names = names.flat_map(Names::entries);
        addresses
            .chain(names.map(|of| Self::name(&of.name)))
            .collect()
    }
}

/// Holds back what needs something that others have, as the commit would; answers for which machines, and
/// whether those others go.
pub(crate) fn hold_claimed(plan: &mut Plan, claimed: &[Claim]) -> Vec<(Name, bool)> {
    let refused = |needed: &[String]| claimed.iter().find(|of| needed.contains(&of.thing));
    let mut back: Vec<(MachineId, Name, Reason, bool)> = Vec::new();
    for task in &plan.tasks {
        if let Some(Claim { thing, by, goes }) =
            refused(&Claim::needed(&task.machine, &task.action))
        {
            let (thing, by, goes) = (thing.clone(), by.clone(), *goes);
            let reason = Reason::Claimed { thing, by, goes };
            back.push((task.machine.id, task.machine.name.clone(), reason, goes));
        }
    }
    for (machine, _, reason, _) in &back {
        plan.hold_back(*machine, reason);
    }
    let told = back.into_iter();
    told.map(|(_, name, _, goes)| (name, goes)).collect()
}
