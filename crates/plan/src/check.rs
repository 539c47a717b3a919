//! Judges a finished plan without knowing how it was made.
//!
//! The rules here are written against the world, not against the planner: a plan that
//! breaks one is stopped before it is committed, whoever made it.

mod addons;
mod advance;
mod balancers;
mod names;
mod ports;
mod snapshots;
mod strays;
mod tending;
mod versions;

pub use advance::check_advance;

use crate::planner::{Plan, View};
use model::cluster::{Desired, Machine, Role};
use model::gate::Gate;
use model::id::MachineId;
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Seen};
use model::task::{Action, Kind, State, Task};
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Certificates that end within these days are renewed outside of windows, too.
const DAYS: Duration = Duration::from_hours(7 * 24);

/// Something a plan must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which machine, or the cluster where it is about several.
    pub machine: Name,
    /// Which rule is broken.
    pub broken: &'static str,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.machine, self.broken)
    }
}

/// Every rule that `plan` breaks; a plan that breaks none may be committed.
pub fn check(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut touched = BTreeSet::new();
    for task in &plan.tasks {
        let mut note = |broken: &'static str| {
            notes.push(Note {
                machine: task.machine.name.clone(),
                broken,
            });
        };
        if !touched.insert(task.machine.id) || busy(view, plan, task.machine.id) {
            note("one machine, one task at a time");
        }
        for broken in alone(view, task) {
            note(broken);
        }
    }
    notes.extend(together(view, plan));
    notes
}

fn busy(view: &View<'_>, plan: &Plan, machine: MachineId) -> bool {
    view.open.iter().any(|open| {
        open.machine == machine
            && (open.state == State::Running || !plan.withdraw.contains(&open.id))
    })
}

/// What a task breaks of the gates of its cluster.
fn at_gates(desired: &Desired, task: &Task) -> Option<&'static str> {
    let passed: &[Gate] = if let Action::Readmit { gates } = &task.action {
        gates
    } else {
        &[]
    };
    if task.action.kind() == Kind::Uncordon && passed != desired.disruption.gates {
        return Some("a node serves again when its gates have passed");
    }
    let mut rolls = desired.rolls.iter();
    let comes = rolls.any(|roll| roll.coming.contains(&task.machine.id));
    let waits = comes && !desired.disruption.gates.is_empty();
    let wrong = matches!(&task.action, Action::Join { gated, .. } if *gated != waits);
    wrong.then_some("who comes in place of others, and nobody else, has gates to pass")
}

/// What one task breaks by itself.
fn alone(view: &View<'_>, task: &Task) -> Vec<&'static str> {
    let desired = view.desired;
    let wanted = desired
        .machines
        .iter()
        .any(|machine| machine.id == task.machine.id);
    let leaving = desired
        .leaving
        .iter()
        .any(|machine| machine.id == task.machine.id);
    let kind = task.action.kind();
    let mut broken = Vec::new();
    if !wanted && !leaving {
        broken.push("only what desired state names is touched");
    }
    let seen = view.observed.machines.get(&task.machine.id);
    let dead = kind == Kind::Leave && seen.is_some_and(Seen::outlived);
    if matches!(kind, Kind::Leave | Kind::Delete | Kind::Release) && !leaving && !dead {
        broken.push("only what is to leave is removed");
    }
    if matches!(
        kind,
        Kind::Key
            | Kind::Create
            | Kind::Prepare
            | Kind::Equip
            | Kind::Mesh
            | Kind::Init
            | Kind::Join
            | Kind::Install
            | Kind::Upgrade
            | Kind::Renew
            | Kind::Uncordon
            | Kind::Clear
            | Kind::Snapshot
            | Kind::Restore
    ) && !wanted
    {
        broken.push("only what is to stay is built");
    }
    if kind == Kind::Create && task.machine.origin.lacks_commit() {
        broken.push("a machine is made from modules whose commit is known");
    }
    if kind == Kind::Init && (view.observed.initialised || starting(view, task.machine.id)) {
        broken.push("a control plane is started once");
    }
    if kind == Kind::Delete && joined(view, task.machine.id) && !desired.tombstone {
        broken.push("a node leaves its cluster before its machine goes");
    }
    broken.extend(versions::check(view, task));
    broken.extend(at_gates(desired, task));
    broken.extend(host(view, task));
    broken.extend(addons::alone(view, task));
    broken.extend(strays::alone(view, task));
    broken.extend(tending::alone(view, task));
    broken.extend(snapshots::check(view, task));
    broken.extend(names::alone(view, task));
    broken.extend(ports::alone(view, task));
    let mut secrets = task.action.needs(&task.machine.origin);
    if secrets.any(|secret| view.missing.contains(&secret)) {
        broken.push("nothing is begun without the secret that it needs");
    }
    broken
}

/// What a task breaks of the order in which hosts come to serve.
fn host(view: &View<'_>, task: &Task) -> Option<&'static str> {
    let (machine, kind) = (&task.machine, task.action.kind());
    let seen = view.observed.machines.get(&machine.id);
    let seen = seen.and_then(|seen| seen.host.as_ref());
    let connected = seen.is_some_and(|(host, _)| host.mesh.is_some());
    let joins = matches!(kind, Kind::Init | Kind::Join);
    if kind.of_kubernetes() && !machine.role.is_node() {
        Some("a load balancer is no node")
    } else if !machine.origin.is_host() {
        None
    } else if matches!(kind, Kind::Create | Kind::Prepare) && view.observed.access.is_none() {
        Some("a host is taken only when its cluster has a key of its own")
    } else if (joins || kind == Kind::Balance) && !connected {
        Some("a host is part of the mesh before it serves")
    } else {
        None
    }
}

/// What the tasks of a plan break together.
fn together(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    let starts = plan
        .tasks
        .iter()
        .filter(|task| task.action.kind() == Kind::Init);
    if starts.count() > 1 {
        notes.push(Note {
            machine: view.desired.name.clone(),
            broken: "a control plane is started once",
        });
    }
    notes.extend(addons::together(view, plan));
    notes.extend(snapshots::alone(view, plan));
    notes.extend(out_of_service(view, plan));
    notes.extend(several_members(view, plan));
    if !view.desired.tombstone {
        notes.extend(quorum(view, plan));
        notes.extend(balancers::check(view, plan));
        notes.extend(tending::check(view, plan));
        notes.extend(strays::together(view, plan));
    }
    notes
}

/// What the plan breaks by taking machines out of service: budgets, windows, the ledger.
fn out_of_service(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let holds = |id: MachineId| view.ledger.iter().any(|slot| slot.machine == id);
    let draws = |id: MachineId| plan.disturbs.iter().any(|slot| slot.machine == id);
    let row = |id: MachineId| holds(id) && !plan.release.contains(&id) || draws(id);
    // What was begun is finished, whatever has changed since.
    let begun = |id: MachineId| holds(id) && view.open.iter().any(|open| open.machine == id);
    let touched: BTreeSet<_> = changing(view, plan).map(|task| task.machine.id).collect();
    let begins =
        |id: MachineId| draws(id) || touched.contains(&id) && serves(view, id) && !begun(id);
    let out: Vec<_> = view
        .desired
        .all()
        .filter(|machine| joined(view, machine.id))
        .filter(|machine| {
            let missed = !serves(view, machine.id) && !gated(view, machine.id);
            begins(machine.id) || row(machine.id) || missed
        })
        .collect();
    let mut notes = Vec::new();
    for machine in view.desired.all().filter(|machine| begins(machine.id)) {
        let mut broken = over_budget(view, &out, machine);
        let closed = view.desired.disruption.windows.opens(view.now).is_some();
        if closed && !renewed_at_once(view, plan, machine.id) {
            broken.push("machines are taken out of service only within a window");
        }
        notes.extend(broken.into_iter().map(|broken| Note {
            machine: machine.name.clone(),
            broken,
        }));
    }
    notes.extend(disturbs_locked(view, plan));
    for task in changing(view, plan) {
        let id = task.machine.id;
        let kind = task.action.kind();
        let idle = matches!(kind, Kind::Leave | Kind::Equip | Kind::Renew) && !serves(view, id);
        if !idle && !row(id) {
            notes.push(Note {
                machine: task.machine.name.clone(),
                broken: "who is out of service because of us has a row in the ledger",
            });
        }
    }
    notes
}

/// Nodes that somebody locked and that are to be emptied or taken out, though they may still run.
fn disturbs_locked(view: &View<'_>, plan: &Plan) -> impl Iterator<Item = Note> {
    let dead = |id: MachineId| {
        let seen = view.observed.machines.get(&id);
        let fact = seen.and_then(|seen| seen.machine.as_ref());
        matches!(
            fact,
            Some((MachineFact::Absent | MachineFact::Unreachable { .. }, _))
        )
    };
    let disturbs = |kind: Kind| matches!(kind, Kind::Drain | Kind::Leave);
    // What is under way is not left half done.
    let begun = move |id: MachineId| {
        let mut open = view.open.iter();
        open.any(|open| open.machine == id && disturbs(open.action.kind()))
    };
    let tasks = plan.tasks.iter();
    let disturbed = tasks.filter(move |task| {
        disturbs(task.action.kind())
            && !dead(task.machine.id)
            && !begun(task.machine.id)
            && view.observed.lock_of(&task.machine.name).is_some()
    });
    disturbed.map(|task| Note {
        machine: task.machine.name.clone(),
        broken: "a locked node is left alone",
    })
}

/// Whether a plan does no more to a machine than to renew certificates that end within days: no
/// window is waited for, because without them there is no API.
fn renewed_at_once(view: &View<'_>, plan: &Plan, id: MachineId) -> bool {
    let mut tasks = plan.tasks.iter().filter(|task| task.machine.id == id);
    let seen = view.observed.machines.get(&id);
    let end = seen.and_then(|seen| seen.certificates.as_ref());
    tasks.all(|task| task.action.kind() == Kind::Renew)
        && end.is_some_and(|(fact, _)| fact.end <= view.now.plus(DAYS))
}

/// The budgets that are exceeded when `newly` is out of service with all the others in `out`.
fn over_budget(view: &View<'_>, out: &[&Machine], newly: &Machine) -> Vec<&'static str> {
    let budgets = &view.desired.disruption;
    let exceeds =
        |count: usize, budget: u32| u32::try_from(count).is_ok_and(|count| count > budget);
    let mut broken = Vec::new();
    if exceeds(out.len(), budgets.unavailable) {
        broken.push("a cluster keeps to its budget");
    }
    let pool = out.iter().filter(|machine| machine.pool == newly.pool);
    let of_pool = budgets.of_pool(&newly.pool);
    if of_pool.is_some_and(|budget| exceeds(pool.count(), budget)) {
        broken.push("a pool keeps to its budget");
    }
    if let Some(group) = budgets.group(&newly.pool)
        && let Some(budget) = budgets.groups.get(group)
    {
        let here = out
            .iter()
            .filter(|machine| budgets.group(&machine.pool) == Some(group));
        let there = view.elsewhere.iter().filter(|row| row.group == *group);
        if exceeds(here.count() + there.count(), *budget) {
            broken.push("a group keeps to its budget");
        }
    }
    let members = out.iter().filter(|machine| machine.role == Role::Control);
    if newly.role == Role::Control && members.count() > 1 {
        broken.push("one member of the control plane is out of service at a time");
    }
    broken
}

/// Members of the control plane that are changed while another one is.
fn several_members(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let member = |id: MachineId| {
        let mut all = view.desired.all();
        all.any(|machine| machine.id == id && machine.role == Role::Control) && joined(view, id)
    };
    let running = view.open.iter().filter(|open| {
        let kind = open.action.kind();
        open.state == State::Running && (keeps_from_work(kind) || equips(view, open.machine, kind))
    });
    let changed: BTreeSet<_> = changing(view, plan)
        .map(|task| task.machine.id)
        .chain(running.map(|open| open.machine))
        .filter(|id| member(*id))
        .collect();
    changing(view, plan)
        .filter(|task| member(task.machine.id) && changed.len() > 1)
        .map(|task| Note {
            machine: task.machine.name.clone(),
            broken: "one member of the control plane is changed at a time",
        })
        .collect()
}

/// Tasks that keep a node from its work.
fn disturbing(plan: &Plan) -> impl Iterator<Item = &Task> {
    let keeps = |task: &&Task| keeps_from_work(task.action.kind());
    plan.tasks.iter().filter(keeps)
}

/// Tasks that keep a node from its work, or may: what runs its containers is started again.
fn changing<'a>(view: &View<'_>, plan: &'a Plan) -> impl Iterator<Item = &'a Task> {
    plan.tasks.iter().filter(|task| {
        let kind = task.action.kind();
        keeps_from_work(kind) || equips(view, task.machine.id, kind)
    })
}

/// Whether work of this kind equips a node again, and is no part of its coming.
fn equips(view: &View<'_>, id: MachineId, kind: Kind) -> bool {
    let mut all = view.desired.all();
    let Some(machine) = all.find(|machine| machine.id == id && kind == Kind::Equip) else {
        return false;
    };
    let seen = view.observed.machines.get(&id);
    let host = seen.and_then(|seen| seen.host.as_ref());
    let before = view.desired.recipe(machine, false).fingerprint();
    let comes = host.is_some_and(|(host, _)| {
        host.equipped.as_ref() == Some(&before) && host.mesh_key.is_some()
    });
    joined(view, id) && !(comes && view.desired.comes_with_playbooks(machine))
}

const fn keeps_from_work(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Drain | Kind::Upgrade | Kind::Renew | Kind::Leave
    )
}

/// Whether etcd could lose its quorum.
fn quorum(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let disturbed: Vec<_> = disturbing(plan).collect();
    let (votes, counting) = strays::votes(view);
    let mut notes = Vec::new();
    for task in disturbed
        .iter()
        .filter(|task| task.machine.role == Role::Control)
    {
        let members: Vec<_> = view
            .desired
            .all()
            .filter(|machine| machine.role == Role::Control && is_voter(view, machine))
            .collect();
        let left = members.iter().filter(|machine| {
            decides(view, machine) && !disturbed.iter().any(|task| task.machine.id == machine.id)
        });
        let stays = matches!(task.action.kind(), Kind::Upgrade | Kind::Renew);
        let members = members.len() + votes;
        let after = if stays {
            members
        } else {
            members.saturating_sub(1)
        };
        let alone = members == 1 && task.action.kind() != Kind::Leave;
        // One that is not well is none of those that decide.
        let apart = task.action.kind() == Kind::Renew && !decides(view, &task.machine);
        if !alone && !apart && left.count() + counting < after / 2 + 1 {
            notes.push(Note {
                machine: task.machine.name.clone(),
                broken: "etcd keeps its quorum",
            });
        }
    }
    notes
}

/// Whether an attempt to start a control plane is under way on another machine.
fn starting(view: &View<'_>, but: MachineId) -> bool {
    view.open.iter().any(|open| {
        open.machine != but && open.action.kind() == Kind::Init && open.state == State::Running
    })
}

fn node<'a>(view: &View<'a>, machine: MachineId) -> Option<&'a NodeFact> {
    let seen = view.observed.machines.get(&machine)?;
    if matches!(seen.machine, Some((MachineFact::Absent, _))) {
        return None;
    }
    seen.node.as_ref().map(|(fact, _)| fact)
}

fn joined(view: &View<'_>, machine: MachineId) -> bool {
    matches!(node(view, machine), Some(NodeFact::Joined { .. }))
}

/// Whether etcd counts on a machine: it does on the dead until they are taken out, or it says itself
/// that it has no such member. Who is not to stay is counted with what is left of others as soon as
/// anybody could list that.
fn is_voter(view: &View<'_>, machine: &Machine) -> bool {
    let Some(seen) = view.observed.machines.get(&machine.id) else {
        return false;
    };
    let since = |at: Option<Timestamp>, fact: Option<Timestamp>| {
        at.zip(fact).is_some_and(|(at, fact)| at >= fact)
    };
    let (gone_at, node_at) = (seen.machine.as_ref(), seen.node.as_ref());
    let strays = view.observed.strays.as_ref().map(|(_, at)| *at);
    let listed = since(strays, gone_at.map(|(_, at)| *at));
    let told = view.observed.wellbeing.as_ref();
    let told = told.filter(|(told, _)| {
        let mut etcd = told.etcd.iter();
        !told.etcd.is_empty() && etcd.all(|member| member.name != machine.name.as_str())
    });
    let denied = since(told.map(|(_, at)| *at), node_at.map(|(_, at)| *at));
    let stays = view.desired.machines.iter().any(|of| of.id == machine.id);
    seen.is_node() || seen.outlived() && !denied && (stays || !listed)
}

/// Whether a node waits at its gates, and would serve if they let it: nobody misses it yet.
fn gated(view: &View<'_>, machine: MachineId) -> bool {
    let node = node(view, machine);
    ready(view, machine) && matches!(node, Some(NodeFact::Joined { gated: true, .. }))
}

fn ready(view: &View<'_>, machine: MachineId) -> bool {
    let reachable = view
        .observed
        .machines
        .get(&machine)
        .is_none_or(|seen| !matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _))));
    reachable
        && matches!(
            node(view, machine),
            Some(NodeFact::Joined { ready: true, .. })
        )
}

/// Whether its etcd can be counted on: by what etcd says of it, where it says anything. It says
/// nothing of those that joined since.
fn decides(view: &View<'_>, machine: &Machine) -> bool {
    ready(view, machine.id) && votes(view, machine).unwrap_or(true)
}

/// What etcd says of its member there, where it says anything.
fn votes(view: &View<'_>, machine: &Machine) -> Option<bool> {
    let (told, told_at) = view.observed.wellbeing.as_ref()?;
    let mut members = told.etcd.iter();
    let member = members.find(|member| member.name == machine.name.as_str());
    if let Some(member) = member {
        return Some(member.healthy && !member.learner);
    }
    let (_, joined_at) = view.observed.machines.get(&machine.id)?.node.as_ref()?;
    (joined_at < told_at && !told.etcd.is_empty()).then_some(false)
}

fn serves(view: &View<'_>, machine: MachineId) -> bool {
    ready(view, machine)
        && matches!(
            node(view, machine),
            Some(NodeFact::Joined {
                cordoned: false,
                ..
            })
        )
}
