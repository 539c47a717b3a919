//! What must never be, judged by the world alone: etcd without a quorum, something removed that was
//! not ours to remove, an address that two have.

use crate::besides::{left, stranger};
use crate::seen::joined;
use model::cluster::{Desired, Machine, Origin, Role};
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::task::{Action, Kind, State, Task};
use plan::{Plan, View};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

fn fact<'a>(observed: &'a Observed, machine: &Machine) -> Option<&'a MachineFact> {
    let seen = observed.machines.get(&machine.id)?;
    seen.machine.as_ref().map(|(fact, _)| fact)
}

/// Whether its member of etcd has a vote and can use it.
fn votes(observed: &Observed, machine: &Machine) -> bool {
    let seen = observed.machines.get(&machine.id);
    let node = seen.and_then(|seen| seen.node.as_ref());
    let ready = matches!(node, Some((NodeFact::Joined { ready: true, .. }, _)));
    let silent = matches!(
        fact(observed, machine),
        Some(MachineFact::Unreachable { .. })
    );
    let told = observed.wellbeing.as_ref();
    let told = told.filter(|(told, _)| !told.etcd.is_empty());
    let well = told.is_none_or(|(told, told_at)| {
        let mut members = told.etcd.iter();
        let own = members.find(|member| member.name == machine.name.as_str());
        let newer = node.is_some_and(|(_, at)| at >= told_at);
        own.map_or(newer, |own| own.healthy && !own.learner)
    });
    ready && !silent && well
}

/// Whether etcd has no such member, and said so when its node was last listed, or since.
fn denied(observed: &Observed, machine: &Machine) -> bool {
    let seen = observed.machines.get(&machine.id);
    let listed_at = seen.and_then(|seen| seen.node.as_ref()).map(|(_, at)| *at);
    observed.wellbeing.as_ref().is_some_and(|(told, at)| {
        let mut members = told.etcd.iter();
        let has = members.any(|member| member.name == machine.name.as_str());
        !told.etcd.is_empty() && !has && Some(*at) >= listed_at
    })
}

/// A step during which etcd could not decide, though it can before, or that needs its decision and
/// will not get it.
pub(crate) fn undecided(view: &View<'_>, step: &Plan) -> Option<String> {
    let (desired, observed) = (view.desired, view.observed);
    // Etcd counts on the dead until they are taken out: it says so itself where it was asked.
    let member = |machine: &&Machine| {
        let gone = matches!(fact(observed, machine), Some(MachineFact::Absent));
        let dead = desired.machines.contains(machine) && !denied(observed, machine);
        let counts = !gone || dead;
        machine.role == Role::Control && joined(observed, machine) && counts
    };
    let members: Vec<_> = desired.all().filter(member).collect();
    let begun = step
        .tasks
        .iter()
        .map(|task| (task.machine.id, task.action.kind()));
    let running = view.open.iter().filter(|open| open.state == State::Running);
    let running = running.map(|open| (open.machine, open.action.kind()));
    let work: Vec<_> = begun.clone().chain(running).collect();
    let done = |machine: &Machine, kinds: &[Kind]| {
        let mut work = work.iter();
        work.any(|(id, kind)| *id == machine.id && kinds.contains(kind))
    };
    let most = |of: usize| of / 2 + 1;
    let voters = members.iter().filter(|machine| votes(observed, machine));
    let voters: Vec<_> = voters.collect();
    let decides = voters.len() >= most(members.len());
    let changed = [Kind::Upgrade, Kind::Renew, Kind::Leave];
    let left = voters.iter().filter(|machine| !done(machine, &changed));
    let left = left.count();
    let gone = members
        .iter()
        .filter(|machine| done(machine, &[Kind::Leave]));
    let rest = members.len() - gone.count();
    for (id, kind) in begun.filter(|(_, kind)| changed.contains(kind)) {
        let Some(machine) = members.iter().find(|machine| machine.id == id) else {
            continue;
        };
        // Whoever changes the only one changes all there is; nobody is left to decide anyway.
        let alone = members.len() == 1 && kind != Kind::Leave;
        let needs = kind != Kind::Renew || votes(observed, machine);
        if needs && !alone && (!decides || left < most(rest)) && !desired.tombstone {
            let name = &machine.name;
            let (all, can) = (members.len(), voters.len());
            return Some(format!(
                "{kind} {name}: {can} of {all} vote, {left} of {rest} after"
            ));
        }
    }
    None
}

/// Something that is removed, or touched at all, and is not ours to remove or to touch.
pub(crate) fn robbed(view: &View<'_>, step: &Plan) -> Option<String> {
    let wrong = |task: &&Task| {
        let among = |machines: &[Machine]| machines.contains(&task.machine);
        let goes = among(&view.desired.leaving) && !among(&view.desired.machines);
        let given = matches!(task.machine.origin, Origin::Given { .. });
        let seen = view.observed.machines.get(&task.machine.id);
        let allowed = match task.action.kind() {
            Kind::Delete => goes && !given,
            Kind::Release => goes && given,
            Kind::Leave => goes || seen.is_some_and(Seen::outlived),
            Kind::Create => !given,
            Kind::Prepare => given,
            Kind::Key
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
            | Kind::Drain
            | Kind::Upgrade
            | Kind::Renew
            | Kind::Uncordon
            | Kind::Clear
            | Kind::Snapshot
            | Kind::Restore => goes || among(&view.desired.machines),
        };
        let cleared = matches!(&task.action, Action::Clear { leftovers } if leftovers.iter().any(|one| one.machine != left()));
        let touched = task.touched().iter().any(|one| one.id == stranger());
        !allowed || cleared || touched || taken(view, task)
    };
    let wrong = step.tasks.iter().find(wrong);
    wrong.map(|task| {
        format!(
            "{} {} is not ours to do",
            task.action.kind(),
            task.machine.name
        )
    })
}

/// Whether an add-on is removed that nobody has seen, or that should be there.
fn taken(view: &View<'_>, task: &Task) -> bool {
    let Action::Install { remove, .. } = &task.action else {
        return false;
    };
    let seen = view.observed.addons.as_ref().map(|(seen, _)| seen);
    let mut remove = remove.iter();
    remove.any(|name| {
        let mut wished = view.desired.addons.iter();
        let there = seen.is_some_and(|seen| seen.contains_key(name));
        !there || wished.any(|addon| addon.name == *name)
    })
}

fn endpoint(machine: &Machine) -> Option<Ipv4Addr> {
    match machine.origin {
        Origin::Given { endpoint, .. } => Some(endpoint),
        Origin::Made { .. } => None,
    }
}

/// An identity, a name or an address that two machines of a cluster would have, or a network that two
/// pools would have at one provider.
pub(crate) fn shared(desired: &Desired) -> Option<String> {
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    let (mut addresses, mut endpoints) = (BTreeSet::new(), BTreeSet::new());
    let all = desired.all().find(|machine| {
        !ids.insert(machine.id)
            || !names.insert(machine.name.clone())
            || !addresses.insert(machine.address)
    });
    // One that leaves stands where another waits to be.
    let stays = desired.machines.iter().find(|machine| {
        let endpoint = endpoint(machine);
        endpoint.is_some_and(|endpoint| !endpoints.insert(endpoint))
    });
    if let Some(twice) = all.or(stays) {
        return Some(format!("{} has what another has", twice.name));
    }
    let machines = desired
        .all()
        .map(|of| ((&of.pool, of.role, &of.balancer), &of.origin));
    let rolls = desired.rolls.iter();
    let rolls = rolls.map(|of| ((&of.pool, of.role, &of.balancer), &of.origin));
    let mut networks = BTreeMap::new();
    let twice = machines.chain(rolls).find(|(whose, origin)| {
        let Origin::Made {
            provider,
            region,
            hardware,
            ..
        } = origin
        else {
            return false;
        };
        let place = hardware.subnet.map(|subnet| (provider, region, subnet));
        place.is_some_and(|place| networks.entry(place).or_insert(*whose) != whose)
    });
    let ((pool, ..), _) = twice?;
    Some(format!("pool {pool} has the network of another"))
}

/// A machine that is taken into use at an address where another still is.
pub(crate) fn crowded(view: &View<'_>, step: &Plan) -> Option<String> {
    let mut begun = step.tasks.iter();
    let there = |other: &&Machine| !matches!(fact(view.observed, other), Some(MachineFact::Absent));
    let crowded = begun.find(|task| {
        let taken = matches!(task.action.kind(), Kind::Create | Kind::Prepare);
        let others = view.desired.all().filter(there);
        let mut others = others.filter(|other| other.id != task.machine.id);
        let same = |other: &Machine| {
            let place = endpoint(&task.machine);
            other.address == task.machine.address || place.is_some() && endpoint(other) == place
        };
        taken && others.any(same)
    });
    crowded.map(|task| format!("{} comes where another is", task.machine.name))
}
