//! No state lacks an exit: every state in which a machine, a task, a wish, a wait or a cluster can be
//! is entered, and something leads out of it.
//!
//! What leads out is the planner by itself, or the deed that a wait asks for, and nothing else: who
//! waits for a person is shown to wait for ever without it. A variant that is new does not compile
//! here, and one that nobody enters fails.

mod rolls;
mod sights;
mod tasks;
mod waits;
mod wishes;

use super::disruption::LATER;
use super::judge;
use crate::advance::advance;
use crate::check::check_advance;
use crate::claims::hold_claimed;
use crate::fixture::{NOW, World, machine, names};
use crate::held::{Ends, Held, Owner, Reason};
use crate::ledger::Slot;
use crate::planner::{Plan, plan};
use crate::predict::predict;
use crate::summary::Phase;
use model::cluster::Origin;
use model::id::TaskId;
use model::intent::Wish;
use model::kubernetes::Cni;
use model::observed::{MachineFact, NodeFact};
use model::provider::{Cloud, Provider};
use model::snapshot::SnapshotId;
use model::task::{Action, Kind, Open, State, Task};
use model::templates::Commit;
use model::time::Timestamp;
use model::upkeep::Roll;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Everything that can be done is done and goes well, and time passes where that is enough; answers
/// the plan when nothing is left to do.
#[track_caller]
fn lived(world: &mut World) -> Plan {
    for _ in 0..200 {
        if let Some(step) = advance(&world.view()) {
            assert_eq!(check_advance(&world.view(), &step), Vec::new());
            world.desired = step.desired;
            continue;
        }
        let blocked = world.blocked.clone();
        let step = planned(world);
        world.follow(&step);
        for open in &mut world.open {
            if step.reopen.contains(&open.id) {
                open.state = State::Waiting;
            }
        }
        let going = |open: &Open| open.state != State::Stuck;
        let (going, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut world.open).into_iter().partition(going);
        world.open = stay;
        let all: Vec<_> = world.desired.all().cloned().collect();
        for open in &going {
            let machine = all.iter().find(|machine| machine.id == open.machine);
            predict(&mut world.observed, machine.unwrap(), &open.action, NOW);
        }
        let told = world.blocked != blocked;
        let changes = told || !step.withdraw.is_empty() || !step.release.is_empty();
        if step.tasks.is_empty() && going.is_empty() && !changes {
            match step.held.iter().find_map(|held| comes(&held.reason)) {
                Some(at) => pass(world, at),
                None => return step,
            }
        }
    }
    panic!("work without end");
}

/// The next step, without what the commit refuses: that is told, and the step after it knows.
#[track_caller]
fn planned(world: &mut World) -> Plan {
    let mut step = plan(&world.view());
    assert_eq!(judge(&world.view(), &step), Vec::new());
    hold_claimed(&mut step, &world.claimed);
    hold_beyond(&mut step, world);
    let of = |which: fn(&Reason) -> bool| {
        let held = step.held.iter().filter(|held| which(&held.reason));
        held.map(|held| held.machine.clone()).collect()
    };
    world.blocked = of(|reason| matches!(reason, Reason::Claimed { .. } | Reason::Quota { .. }));
    world.shut_out = of(|reason| matches!(reason, Reason::Claimed { goes: false, .. }));
    step
}

/// Holds back machines that the project may not have.
fn hold_beyond(step: &mut Plan, world: &World) {
    let Some(limit) = world.quota else { return };
    let there = world.observed.machines.values();
    let there = there.filter(|seen| {
        let fact = seen.machine.as_ref().map(|(fact, _)| fact);
        fact.is_some_and(|fact| *fact != MachineFact::Absent)
    });
    let used = u32::try_from(there.count()).unwrap();
    let made = step.tasks.iter();
    let made = made.filter(|task| matches!(task.action.kind(), Kind::Create | Kind::Prepare));
    let room = usize::try_from(limit.saturating_sub(used)).unwrap();
    let beyond: Vec<_> = made.skip(room).map(|task| task.machine.id).collect();
    for machine in beyond {
        let what = "machines".to_owned();
        step.hold_back(machine, &Reason::Quota { what, used, limit });
    }
}

/// When a wait ends by itself.
const fn comes(reason: &Reason) -> Option<Timestamp> {
    if let Reason::Window { opens: at }
    | Reason::Repair { due: at, .. }
    | Reason::Leftover {
        ends: Ends::Due(at),
        ..
    }
    | Reason::TakenBack { due: at, .. } = reason
    {
        Some(*at)
    } else {
        None
    }
}

/// Time passes, and everybody is looked at all the while.
fn pass(world: &mut World, until: Timestamp) {
    world.now = until;
    for seen in world.observed.machines.values_mut() {
        seen.machine.iter_mut().for_each(|(_, at)| *at = until);
        seen.node.iter_mut().for_each(|(_, at)| *at = until);
    }
}

fn arrived(plan: &Plan) -> bool {
    matches!(plan.summary.phase, Phase::Done | Phase::Gone) && plan.held.is_empty()
}

/// A machine answers, and its node is ready: whoever had to do something about it did.
fn mend(world: &mut World) {
    let all: Vec<_> = world.desired.all().cloned().collect();
    for machine in all {
        let Some(seen) = world.observed.machines.get_mut(&machine.id) else {
            continue;
        };
        if let Some((fact @ MachineFact::Unreachable { .. }, _)) = &mut seen.machine {
            *fact = MachineFact::Running {
                reference: "vm".to_owned(),
                address: IpAddr::V4(machine.address),
            };
        }
        if let Some((NodeFact::Joined { ready, .. }, _)) = &mut seen.node {
            *ready = true;
        }
    }
    world.observed.wellbeing = None;
}

/// Whoever had to correct something did, and what was stuck is tried again.
fn corrected(world: &mut World) {
    for open in &mut world.open {
        open.corrected = true;
    }
}

/// A pool on its way to another image.
fn rolling(want: &str, have: &str) -> World {
    let mut world = World::new("1.34.0", want, have);
    let mut origin = machine("w1").origin;
    if let Origin::Made { image, .. } = &mut origin {
        *image = "debian-13".to_owned();
    }
    let mut coming = Vec::new();
    for machine in world
        .desired
        .machines
        .iter_mut()
        .filter(|of| of.name.as_str() == "w2")
    {
        machine.origin = origin.clone();
        coming.push(machine.id);
    }
    let w1 = machine("w1");
    world.desired.rolls.push(Roll {
        pool: w1.pool,
        role: w1.role,
        balancer: None,
        origin,
        surge: 1,
        coming,
        failed: None,
    });
    world
}

/// Where a task may stand and still has to leave.
const fn is_left(state: State) -> bool {
    match state {
        State::Waiting | State::Running | State::Stuck => true,
        // Nobody works at these any more, and nothing waits for them.
        State::Done | State::Withdrawn => false,
    }
}

const STATES: [State; 5] = [
    State::Waiting,
    State::Running,
    State::Stuck,
    State::Done,
    State::Withdrawn,
];
