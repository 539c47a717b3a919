//! What a plan must not do to nodes that are left of machines.

use super::tending::given_up;
use super::{Note, changing, keeps_from_work, node};
use crate::planner::{Plan, View};
use model::cluster::{Machine, Role};
use model::id::MachineId;
use model::observed::{MachineFact, Member, NodeFact};
use model::stray::{Leftover, Stray};
use model::task::{Action, Kind, State, Task};

/// What one task breaks by itself.
pub(super) fn alone(view: &View<'_>, task: &Task) -> Vec<&'static str> {
    let Action::Clear { leftovers } = &task.action else {
        return Vec::new();
    };
    let mut broken = Vec::new();
    if view.desired.tombstone {
        broken.push("a cluster that goes takes its nodes along");
    }
    if !leftovers.iter().all(|left| is_nobodys(view, left.machine)) {
        broken.push("a node whose machine is to stay, or still on its way out, is not cleared");
    }
    if !leftovers.iter().all(|left| is_silent(view, left)) {
        broken.push("only what was seen to be left of a machine, and is not heard, is cleared");
    }
    if !leftovers.iter().all(|left| is_late(view, left)) {
        broken.push("who may come back is given the time that a machine of ours is given");
    }
    broken
}

/// What the tasks of a plan break together: etcd loses one member at a time, and decides on it.
pub(super) fn together(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let etcd = members(view);
    let member = |left: &Leftover| {
        left.control && (etcd.is_empty() || etcd.iter().any(|of| of.name == left.node))
    };
    let loses = |task: &&Task| matches!(&task.action, Action::Clear { leftovers } if leftovers.iter().any(member));
    let Some(task) = plan.tasks.iter().find(loses) else {
        return Vec::new();
    };
    let note = |broken| Note {
        machine: task.machine.name.clone(),
        broken,
    };
    let control = |id: MachineId| {
        let mut all = view.desired.all();
        all.any(|machine| machine.id == id && machine.role == Role::Control)
    };
    let running = |id: MachineId| {
        let mut open = view.open.iter();
        open.any(|open| {
            let works = open.state == State::Running && keeps_from_work(open.action.kind());
            open.machine == id && works
        })
    };
    let mut changed = changing(view, plan).map(|task| task.machine.id);
    let mut others = view.desired.all().map(|machine| machine.id);
    let mut notes = Vec::new();
    if changed.any(control) || others.any(|id| control(id) && running(id)) {
        notes.push(note("one member of the control plane is changed at a time"));
    }
    let members = view
        .desired
        .all()
        .filter(|machine| machine.role == Role::Control && super::is_voter(view, machine));
    let (mut all, mut decide) = votes(view);
    for machine in members {
        all += 1;
        decide += usize::from(super::decides(view, machine));
    }
    if decide < all / 2 + 1 {
        notes.push(note("etcd keeps its quorum"));
    }
    notes
}

/// The members of etcd, where anybody told of them.
fn members<'a>(view: &View<'a>) -> &'a [Member] {
    let told = view.observed.wellbeing.as_ref();
    told.map(|(told, _)| &told.etcd[..]).unwrap_or_default()
}

/// Whether the cluster neither has a machine nor is still about to let it go.
fn is_nobodys(view: &View<'_>, id: MachineId) -> bool {
    let (stay, leave) = (&view.desired.machines, &view.desired.leaving);
    let worked_on = view.open.iter().any(|open| open.machine == id);
    let wanted = stay.iter().any(|machine| machine.id == id);
    let leaves = leave.iter().any(|machine| machine.id == id);
    !wanted && !worked_on && (!leaves || is_lost(view, id))
}

/// Whether a machine is known to be of no use to anybody: it is gone, or somebody gave it up.
fn is_lost(view: &View<'_>, id: MachineId) -> bool {
    let seen = view.observed.machines.get(&id);
    let gone = seen.is_some_and(|seen| matches!(seen.machine, Some((MachineFact::Absent, _))));
    let mut leave = view.desired.leaving.iter();
    leave.any(|machine| machine.id == id) && (gone || given_up(view, id, Kind::Release))
}

/// The node as it was last listed, by our mark and its name.
fn listed<'a>(view: &View<'a>, left: &Leftover) -> Option<&'a Stray> {
    let (nodes, _) = view.observed.strays.as_ref()?;
    let stray = nodes.get(&left.node)?;
    (stray.machine == Some(left.machine)).then_some(stray)
}

fn is_silent(view: &View<'_>, left: &Leftover) -> bool {
    let mut etcd = members(view).iter();
    let speaks = etcd.any(|member| member.name == left.node && member.healthy && !member.learner);
    let silent = match (listed(view, left), node(view, left.machine)) {
        (Some(stray), _) => stray.unready_since.is_some(),
        (None, Some(NodeFact::Joined { ready, .. })) => !ready,
        (None, Some(NodeFact::Absent) | None) => false,
    };
    silent && !(speaks && left.control)
}

fn is_late(view: &View<'_>, left: &Leftover) -> bool {
    let since = listed(view, left).and_then(|stray| stray.unready_since);
    let due = since.zip(view.desired.repair.after);
    is_lost(view, left.machine) || due.is_some_and(|(since, after)| since.plus(after) <= view.now)
}

/// The votes in etcd that are left of machines, and how many of them can be counted on.
pub(super) fn votes(view: &View<'_>) -> (usize, usize) {
    let told = members(view);
    let (mut all, mut decide) = (0, 0);
    for (name, stray) in view.observed.strays() {
        let ours =
            |machine: &Machine| machine.name.as_str() == name && super::joined(view, machine.id);
        let left = stray.machine.is_some_and(|id| is_nobodys(view, id));
        if !stray.control || !left || view.desired.all().any(ours) {
            continue;
        }
        let member = told.iter().find(|member| member.name == name);
        let (votes, counts) = match member {
            Some(member) => (!member.learner, member.healthy),
            None => (told.is_empty(), stray.unready_since.is_none()),
        };
        all += usize::from(votes);
        decide += usize::from(votes && counts);
    }
    (all, decide)
}
