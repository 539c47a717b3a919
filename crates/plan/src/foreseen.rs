//! Whether a task led where [`predict`] says it leads: people are shown the one and get the other.
//!
//! Whoever carries out tasks to prove something looks at what a task touches before it begins and
//! when it is done. What was foreseen to change must have become that, and what was not must be as it
//! was, unless others may have changed it meanwhile. What nobody knows before is left out: times,
//! names and addresses that providers give, keys that are born, whether targets answer.

use crate::predict::predict;
use model::balancer::BalanceFact;
use model::cluster::{Machine, Origin};
use model::dns::Entry;
use model::host::Fingerprint;
use model::id::{IntentId, MachineId};
use model::name::Name;
use model::observed::{Fact, MachineFact, NodeFact, Observation, Observed, Seen};
use model::task::{Action, Task};
use model::time::Timestamp;
use model::version::Version;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

/// Who has certificates for longer than this has new ones.
const NEW: Duration = Duration::from_hours(300 * 24);

/// How a task that is done at `now` led elsewhere than was foreseen, where this was known before it
/// began and this was seen of what it touches after it.
pub fn unforeseen(
    task: &Task,
    was: &Observed,
    after: &[Observation],
    now: Timestamp,
) -> Vec<String> {
    let mut is = was.clone();
    for seen in after {
        is.see(seen.clone());
    }
    let mut foreseen = was.clone();
    predict(&mut foreseen, &task.machine, &task.action, now);
    let all = [was, &foreseen, &is];
    let mut wrong = of_cluster(all);
    wrong.extend(of_mesh(all, &task.action));
    wrong.extend(of_leftovers(all, &task.action));
    for machine in task.touched() {
        let own = machine.id == task.machine.id;
        let told = of_machine(all, after, (&machine, own), now);
        let told = told.into_iter();
        wrong.extend(told.map(|told| format!("{} {told}", machine.name)));
    }
    wrong
}

/// How something became other than foreseen. What was not to change is `shared` where others may
/// have changed it.
fn differs<T: PartialEq + Debug>(
    what: &str,
    [before, foreseen, after]: [T; 3],
    shared: bool,
) -> Option<String> {
    let judged = foreseen != before || !shared;
    let differs = judged && after != foreseen;
    differs.then(|| format!("{what}: foreseen {foreseen:?}, seen {after:?}"))
}

/// The cluster as a whole: whatever is not this task's is others'.
fn of_cluster(all: [&Observed; 3]) -> Vec<String> {
    let addons = |of: &Observed| of.addons.as_ref().map(|(addons, _)| addons.clone());
    let restored = |of: &Observed| of.restored.as_ref().map(|(restored, _)| restored.clone());
    let wrong = [
        differs("control plane", all.map(|of| of.initialised), true),
        differs("access", all.map(|of| of.access.is_some()), true),
        differs("add-ons", all.map(addons), true),
        differs("snapshots", all.map(snapshots), true),
        differs("restored", all.map(restored), true),
    ];
    wrong.into_iter().flatten().collect()
}

/// Who lacks its end of a mesh. What it tells of the peers that came of that nobody knows before.
fn of_mesh(all: [&Observed; 3], action: &Action) -> Option<String> {
    let Action::Mesh { mesh } = action else {
        return None;
    };
    let wishes = mesh.wishes();
    let lacks = |of: &Observed| -> Vec<MachineId> {
        let fact = |id: &MachineId| of.machines.get(id)?.host.as_ref()?.0.mesh.as_ref();
        let all = mesh.to.iter().copied();
        all.filter(|id| wishes.unmet(*id, fact(id))).collect()
    };
    differs("who lacks the mesh", all.map(lacks), true)
}

/// Nodes that are left of machines, and should not be any more.
fn of_leftovers(all: [&Observed; 3], action: &Action) -> Option<String> {
    let Action::Clear { leftovers } = action else {
        return None;
    };
    let there = |of: &Observed| -> Vec<String> {
        let joined = |id: &MachineId| {
            let seen = of.machines.get(id).and_then(|seen| seen.node.as_ref());
            matches!(seen, Some((NodeFact::Joined { .. }, _)))
        };
        let there = leftovers.iter().filter(|left| joined(&left.machine));
        there.map(|left| left.node.clone()).collect()
    };
    differs("leftovers", all.map(there), true)
}

/// The snapshots that are kept, without what tells them apart.
type Snapshots = (Vec<(Version, Option<Version>)>, Option<IntentId>);

fn snapshots(of: &Observed) -> Option<Snapshots> {
    let (fact, _) = of.snapshots.as_ref()?;
    let kept = fact.kept.iter().map(|kept| (kept.version, kept.before));
    Some((kept.collect(), fact.answered))
}

/// One machine. Where the API, or the machine itself, told nothing, before or after, there is nothing
/// to judge.
fn of_machine(
    all: [&Observed; 3],
    seen: &[Observation],
    (machine, own): (&Machine, bool),
    now: Timestamp,
) -> Vec<String> {
    let id = machine.id;
    let of = all.map(|of| of.machines.get(&id).cloned().unwrap_or_default());
    let [before, foreseen, after] = &of;
    let off = |seen: &Seen| matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _)));
    // Somebody pulled the plug, or plugged it in again.
    if off(after) != off(foreseen) && off(after) != off(before) {
        return Vec::new();
    }
    let of = [before, foreseen, after];
    let others = !own;
    let mut wrong = vec![differs(
        "machine",
        of.map(|seen| power(seen, &machine.origin)),
        others,
    )];
    let told = |of: fn(&Fact) -> bool| {
        let facts = seen.iter().map(|seen| &seen.fact);
        let mut told = facts.filter(|fact| fact.machine() == Some(id));
        told.any(of)
    };
    if foreseen.node.is_some() && told(|fact| matches!(fact, Fact::Node(..))) {
        wrong.push(differs("node", of.map(node), others));
    }
    if foreseen.certificates.is_some() && told(|fact| matches!(fact, Fact::Certificates(..))) {
        let renewed = |seen: &Seen| {
            let certificates = seen.certificates.as_ref();
            certificates.map(|(certificates, _)| certificates.end > now.plus(NEW))
        };
        wrong.push(differs("certificates", of.map(renewed), others));
    }
    if told(|fact| matches!(fact, Fact::Port(..))) {
        let port = |seen: &Seen| seen.port.map(|(port, _)| port);
        wrong.push(differs("port", of.map(port), others));
    }
    if told(|fact| matches!(fact, Fact::Host(..))) {
        wrong.push(differs("equipped", of.map(equipped), others));
        wrong.push(differs("key", of.map(keyed), others));
        wrong.push(differs("balance", of.map(balance), true));
    }
    if told(|fact| matches!(fact, Fact::Names(..))) {
        wrong.push(differs("names", of.map(names), true));
    }
    wrong.into_iter().flatten().collect()
}

/// Where a machine stands that was given is known before; whoever makes one says where it is.
fn power(seen: &Seen, origin: &Origin) -> Option<(&'static str, Option<IpAddr>)> {
    let (fact, _) = seen.machine.as_ref()?;
    Some(match (fact, origin) {
        (MachineFact::Absent, _) => ("absent", None),
        (MachineFact::Booting { .. }, _) => ("booting", None),
        (MachineFact::Running { address, .. }, Origin::Given { .. }) => ("running", Some(*address)),
        (MachineFact::Running { .. }, Origin::Made { .. }) => ("running", None),
        (MachineFact::Unreachable { .. }, _) => ("unreachable", None),
    })
}

fn node(seen: &Seen) -> Option<NodeFact> {
    seen.node.as_ref().map(|(fact, _)| fact.clone())
}

fn equipped(seen: &Seen) -> Option<Fingerprint> {
    seen.host.as_ref()?.0.equipped.clone()
}

fn keyed(seen: &Seen) -> bool {
    let host = seen.host.as_ref();
    host.is_some_and(|(host, _)| host.mesh_key.is_some())
}

/// What a load balancer was told. Whether its targets answer is for them to say.
fn balance(seen: &Seen) -> Option<(Fingerprint, BTreeSet<Name>)> {
    let BalanceFact { told, healthy } = seen.host.as_ref()?.0.balance.as_ref()?;
    Some((told.clone(), healthy.keys().cloned().collect()))
}

/// Where names lead; whoever is asked for them is another matter.
fn names(seen: &Seen) -> Option<(Option<IpAddr>, Vec<Entry>)> {
    let (fact, _) = seen.names.as_ref()?;
    Some((fact.address, fact.names.clone()))
}

#[cfg(test)]
mod tests {
    use super::differs;

    #[test]
    fn what_came_otherwise_than_foreseen_is_told_with_both() {
        let told = Some("version: foreseen 35, seen 34".to_owned());
        assert_eq!(differs("version", [34, 35, 34], true), told);
        assert_eq!(differs("version", [34, 35, 34], false), told);
        assert_eq!(differs("version", [34, 35, 35], false), None);
    }

    #[test]
    fn what_was_not_to_change_may_be_changed_by_others_alone() {
        let told = Some("version: foreseen 34, seen 35".to_owned());
        assert_eq!(differs("version", [34, 34, 35], false), told);
        assert_eq!(differs("version", [34, 34, 35], true), None);
    }
}
