//! Whether a task led where `plan::predict` says it leads: people are shown the one and get the
//! other.
//!
//! A rehearsal looks at what a task touches before it begins and when it is done. What was foreseen
//! to change must have become that, and what was not must be as it was, unless others may have
//! changed it meanwhile. What nobody knows before is left out: times, names that providers give,
//! keys that are born.

use super::Simulated;
use crate::world::{Step, World};
use model::balancer::BalanceFact;
use model::host::Fingerprint;
use model::id::{IntentId, MachineId};
use model::observed::{Fact, MachineFact, NodeFact, Observation, Observed, Seen};
use model::task::{Action, Task};
use model::time::Timestamp;
use model::version::Version;
use std::fmt::Debug;
use std::time::Duration;

/// Who has certificates for longer than this has new ones.
const NEW: Duration = Duration::from_hours(300 * 24);

/// What a task touches, as it was before.
pub(super) struct Before {
    observed: Observed,
}

impl Simulated {
    /// What a task touches as it is now; nothing where nobody rehearses, and nothing that says how
    /// it was before where somebody else has begun it already.
    pub(super) fn before(&self, task: &Task, step: &Step) -> Option<Before> {
        self.chronicle.as_ref()?;
        // Who did these before was perhaps told otherwise.
        let once = matches!(
            task.action,
            Action::Snapshot { .. } | Action::Init { .. } | Action::Join { .. }
        );
        let before_us = once && *step == Step::Done;
        if before_us || matches!(step, Step::UnderWay { .. }) {
            return None;
        }
        let mut observed = Observed::default();
        look(&self.world, task, &mut observed)?;
        Some(Before { observed })
    }

    /// Tells the world where a task that is done led elsewhere than was foreseen.
    pub(super) fn compare(&self, before: &Before, task: &Task) {
        let now = self.world.now();
        let mut after = before.observed.clone();
        let Some(seen) = look(&self.world, task, &mut after) else {
            return;
        };
        let mut foreseen = before.observed.clone();
        plan::predict(&mut foreseen, &task.machine, &task.action, now);
        let all = [&before.observed, &foreseen, &after];
        let mut wrong = of_cluster(all);
        wrong.extend(of_mesh(all, &task.action));
        for machine in task.touched() {
            let own = machine.id == task.machine.id;
            let told = of_machine(all, &seen, (machine.id, own), now);
            wrong.extend(
                told.into_iter()
                    .map(|told| format!("{} {told}", machine.name)),
            );
        }
        if !wrong.is_empty() {
            let told = format!("{}: {}", task.action.kind(), wrong.join("; "));
            self.world.unforeseen(task, told);
        }
    }
}

/// Takes in what is seen of what a task touches; answers what that was.
fn look(world: &World, task: &Task, observed: &mut Observed) -> Option<Vec<Fact>> {
    let at = world.now();
    let facts = world.facts(task.cluster, &task.touched()).ok()?;
    for fact in facts.iter().cloned() {
        observed.see(Observation {
            cluster: task.cluster,
            fact,
            at,
        });
    }
    Some(facts)
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
    seen: &[Fact],
    (machine, own): (MachineId, bool),
    now: Timestamp,
) -> Vec<String> {
    let of = all.map(|of| of.machines.get(&machine).cloned().unwrap_or_default());
    let [before, foreseen, after] = &of;
    let off = |seen: &Seen| matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _)));
    // Somebody pulled the plug, or plugged it in again.
    if off(after) != off(foreseen) && off(after) != off(before) {
        return Vec::new();
    }
    let of = [before, foreseen, after];
    let others = !own;
    let mut wrong = vec![differs("machine", of.map(power), others)];
    let told = |of: fn(&Fact) -> bool| {
        let mut told = seen.iter().filter(|fact| fact.machine() == Some(machine));
        told.any(of)
    };
    if foreseen.node.is_some() && told(|fact| matches!(fact, Fact::Node(..))) {
        wrong.push(differs("node", of.map(node), others));
    }
    if told(|fact| matches!(fact, Fact::Certificates(..))) {
        let renewed = |seen: &Seen| {
            let certificates = seen.certificates.as_ref();
            certificates.map(|(certificates, _)| certificates.end > now.plus(NEW))
        };
        wrong.push(differs("certificates", of.map(renewed), others));
    }
    if told(|fact| matches!(fact, Fact::Host(..))) {
        wrong.push(differs("equipped", of.map(equipped), others));
        wrong.push(differs("key", of.map(keyed), others));
        wrong.push(differs("balance", of.map(balance), true));
    }
    wrong.into_iter().flatten().collect()
}

fn power(seen: &Seen) -> Option<MachineFact> {
    let reference = String::new();
    let (fact, _) = seen.machine.as_ref()?;
    Some(match fact {
        MachineFact::Absent => MachineFact::Absent,
        MachineFact::Booting { .. } => MachineFact::Booting { reference },
        MachineFact::Running { address, .. } => MachineFact::Running {
            reference,
            address: *address,
        },
        MachineFact::Unreachable { because, .. } => MachineFact::Unreachable {
            reference,
            because: because.clone(),
        },
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

fn balance(seen: &Seen) -> Option<BalanceFact> {
    seen.host.as_ref()?.0.balance.clone()
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
