//! No state lacks an exit: every state in which a machine, a task, a wish, a wait or a cluster can be
//! is entered, and something leads out of it.
//!
//! What leads out is the planner by itself, or the deed that a wait asks for, and nothing else: who
//! waits for a person is shown to wait for ever without it. A variant that is new does not compile
//! here, and one that nobody enters fails.

use super::disruption::LATER;
use super::judge;
use crate::advance::advance;
use crate::check::{Note, check_advance};
use crate::fixture::{NOW, World, machine, names};
use crate::held::{Ends, Held, Owner, Reason};
use crate::ledger::Slot;
use crate::planner::{Plan, plan};
use crate::predict::predict;
use crate::summary::Phase;
use crate::vain::{VAIN_MAX, Vain};
use model::cluster::{MetalWanted, Origin, Role};
use model::id::{MachineId, TaskId};
use model::intent::Wish;
use model::kubernetes::Cni;
use model::observed::{CertificatesFact, MachineFact, Member, NodeFact, UnresolvedFact, Wellbeing};
use model::provider::{Cloud, Provider};
use model::snapshot::SnapshotId;
use model::task::{Action, Kind, Open, State, Task};
use model::templates::{Commit, Templates};
use model::time::Timestamp;
use model::upkeep::{Failed, Roll};
use std::collections::{BTreeMap, BTreeSet};
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
        let step = plan(&world.view());
        assert_eq!(judge(&world.view(), &step), Vec::new());
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
        let changes = !step.withdraw.is_empty() || !step.release.is_empty();
        if step.tasks.is_empty() && going.is_empty() && !changes {
            match step.held.iter().find_map(|held| comes(&held.reason)) {
                Some(at) => pass(world, at),
                None => return step,
            }
        }
    }
    panic!("work without end");
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

/// Which reason it is, so that all of them can be counted.
const fn number(reason: &Reason) -> usize {
    match reason {
        Reason::Budget { .. } => 0,
        Reason::Quorum { .. } => 1,
        Reason::Additions { .. } => 2,
        Reason::ControlPlane { .. } => 3,
        Reason::Turn { .. } => 4,
        Reason::Backoff { .. } => 5,
        Reason::Stuck { .. } => 6,
        Reason::Cancelled { .. } => 7,
        Reason::Paused { .. } => 8,
        Reason::Stopped { .. } => 9,
        Reason::ControlPlaneLost => 10,
        Reason::Running { .. } => 11,
        Reason::Unreachable => 12,
        Reason::Unusable { .. } => 13,
        Reason::NotReady => 14,
        Reason::Sick { .. } => 15,
        Reason::Unwell { .. } => 16,
        Reason::Claimed { .. } => 17,
        Reason::Window { .. } => 18,
        Reason::Snapshot { .. } => 19,
        Reason::Secret { .. } => 20,
        Reason::SameKey { .. } => 21,
        Reason::Quota { .. } => 22,
        Reason::Repair { .. } => 23,
        Reason::Successor { .. } => 24,
        Reason::TakenBack { .. } => 25,
        Reason::Unnamed { .. } => 26,
        Reason::Unmatched { .. } => 27,
        Reason::Locked { .. } => 28,
        Reason::Modules { .. } => 29,
        Reason::Leftover { .. } => 30,
        Reason::Namesake { .. } => 31,
        Reason::Unable { .. } => 32,
        Reason::Vain { .. } => 33,
        Reason::Data { .. } => 34,
    }
}

const REASONS: usize = 35;

/// What ends a wait besides time and the planner.
type Deed = fn(&mut World);

/// Nobody has to do anything.
fn nothing(_: &mut World) {}

fn sick() -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1!");
    let troubles = BTreeMap::from([("w1".to_owned(), "no disk".to_owned())]);
    let told = Wellbeing {
        troubles,
        ..Wellbeing::default()
    };
    world.observed.wellbeing = Some((told, NOW));
    world
}

fn unusable() -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1?");
    let seen = world.observed.machines.get_mut(&machine("w1").id).unwrap();
    if let Some((MachineFact::Unreachable { because, .. }, _)) = &mut seen.machine {
        *because = Some("another host key".to_owned());
    }
    world
}

fn copied() -> World {
    let world = World::hosts("c1 w2").settled();
    let mut world = world.want("c1 w1 w2").after(2);
    world.host("w1").mesh_key = world.host("w2").mesh_key.clone();
    world
}

/// Nobody has seen it serve for some minutes.
fn ill() -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1!");
    world.observed.sick.insert(machine("w1").id, NOW);
    world
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

fn taken_back() -> World {
    let mut world = rolling("c1 w1", "c1 w1");
    let failed = Failed::again(None, NOW, "no such image".to_owned());
    world.desired.rolls[0].failed = Some(failed);
    world
}

fn unnamed() -> World {
    let mut world = World::hosts("c1 w1 b1").settled();
    world.desired.balancers[0].dns = Some(names(Provider::Cloud(Cloud::Cloudflare), "www"));
    world
}

fn unmatched() -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1");
    world.desired.metal.push(MetalWanted {
        pool: "rack".parse().unwrap(),
        role: Role::Compute,
        balancer: None,
        count: 2,
        selector: BTreeMap::from([("disk".to_owned(), "nvme".to_owned())]),
    });
    world
}

/// A machine that is to be made from a branch, which nobody has seen yet, or could.
fn followed(lasting: bool) -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1");
    let worker = world.desired.machines.last_mut().unwrap();
    if let Origin::Made { hardware, .. } = &mut worker.origin {
        hardware.templates = Some(Templates::Repository {
            repository: "git.example.org/m".to_owned(),
            commit: "main".to_owned(),
            path: None,
            secret: None,
            pinned: None,
        });
    }
    let reference = worker.origin.reference().unwrap();
    let because = "it is not there".to_owned();
    let trouble = UnresolvedFact { because, lasting };
    let seen = world.observed.followed.entry(reference).or_default();
    seen.unresolved = Some((trouble, NOW)).filter(|_| lasting);
    world
}

/// Somebody has seen where branches lead.
fn led(world: &mut World) {
    for followed in world.observed.followed.values_mut() {
        followed.commit = Some((Commit::to_come(), world.now));
    }
}

/// Somebody wants a node to be left alone while the others are upgraded.
fn locked() -> World {
    World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").locked(&["w1"])
}

fn unlocked(world: &mut World) {
    world.observed.wellbeing = None;
}

/// Somebody took out the nodes that were left, or nothing is heard of them any more.
fn cleared(world: &mut World) {
    world.observed.strays = None;
}

/// Etcd tells of its members at last, and none of those that are left is one.
fn told_of_others(world: &mut World) {
    let wellbeing = Wellbeing {
        etcd: vec![Member {
            name: "c1".to_owned(),
            healthy: true,
            learner: false,
        }],
        ..Wellbeing::default()
    };
    world.observed.wellbeing = Some((wellbeing, world.now));
}

fn own_key(world: &mut World) {
    world.host("w1").mesh_key = format!("{:B<43}=", "own").parse().ok();
}

fn cancel() -> World {
    let world = World::new("1.34.0", "c1 w1", "c1 w1~");
    world.wish(Wish::Cancel {
        task: TaskId::derive(crate::fixture::origin("w1", 9)),
        machine: machine("w1").id,
        kind: Kind::Join,
    })
}

/// Somebody says again and again that a machine was made, and it never is.
fn vain() -> World {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1x");
    world.vain.push(Vain {
        machine: machine("w1").id,
        action: Action::Create,
        times: VAIN_MAX,
        last: NOW,
    });
    world
}

/// Somebody wishes a snapshot back.
fn put_back(world: &mut World) {
    let snapshot = SnapshotId::of(NOW, "0a1b2c3d").unwrap();
    let wished = World::new("1.34.0", "c1", "c1").wish(Wish::Restore { snapshot });
    world.intents = wished.intents;
}

fn retire(world: &mut World) {
    world.desired.tombstone = true;
    let machines = std::mem::take(&mut world.desired.machines);
    world.desired.leaving.extend(machines);
}

fn well(world: &mut World) {
    let addons = world.observed.addons.iter_mut();
    for fact in addons.flat_map(|(addons, _)| addons.values_mut()) {
        fact.wrong = None;
    }
}

fn corrected(world: &mut World) {
    for open in &mut world.open {
        open.corrected = true;
    }
}

/// Worlds in which each reason is given, but for those that only others give; who can end the wait,
/// and how.
fn waits() -> Vec<(World, Owner, Deed)> {
    use Owner::{Person, Slipway};
    let new = World::new;
    let created = |state| {
        let world = new("1.34.0", "c1 w1", "c1 w1x");
        world.open("w1", Action::Create, state, Some("no luck"))
    };
    let deleted = new("1.34.0", "c1 w1", "c1 w1~").open("w1", Action::Delete, State::Running, None);
    let secrets = new("1.34.0", "c1 w1", "c1").secrets().missing("compute");
    let addons = new("1.34.0", "c1", "c1").addons(Cni::Routed, "node-exporter", "node-exporter!");
    let windows = new("1.35.0", "c1 w1", "c1@35 w1").allow(LATER);
    let waits: Vec<(World, Owner, Deed)> = vec![
        (new("1.35.0", "c1 w1 w2", "c1@35 w1 w2!"), Slipway, mend),
        (
            new("1.34.0", "c1 c2 c3 w1", "c1 c2! c3! w1~"),
            Slipway,
            mend,
        ),
        (new("1.34.0", "c1 c2 c3 w1", "c1 c2? c3? w1~"), Person, mend),
        (new("1.34.0", "c1 w2", "c1 w1 w2."), Slipway, nothing),
        (
            new("1.34.0", "c1 c2 c3 w1", "c1 c2~ c3~ w1~"),
            Slipway,
            nothing,
        ),
        (created(State::Waiting), Slipway, nothing),
        (created(State::Stuck), Person, corrected),
        (cancel(), Person, |world| world.intents.clear()),
        (
            new("1.34.0", "c1 w1", "c1").wish(Wish::Pause),
            Person,
            |world| world.intents.clear(),
        ),
        (new("1.34.0", "c1 w1", "* c1~ w1"), Person, retire),
        (deleted, Slipway, nothing),
        (new("1.34.0", "c1 w1", "c1 w1?"), Person, mend),
        (unusable(), Person, mend),
        (new("1.34.0", "c1 w1", "c1 w1!"), Slipway, mend),
        (sick(), Slipway, mend),
        (addons, Slipway, well),
        (windows, Slipway, nothing),
        (new("1.35.0", "c1", "c1").unsaved(), Slipway, nothing),
        (secrets, Person, |world| world.missing.clear()),
        (copied(), Person, own_key),
        (ill(), Slipway, nothing),
        (rolling("c1 w1 w2", "c1 w1"), Slipway, nothing),
        (taken_back(), Slipway, nothing),
        (unnamed(), Person, |world| {
            world.desired.balancers[0].dns = None;
        }),
        (unmatched(), Person, |world| world.desired.metal.clear()),
        (locked(), Person, unlocked),
        (vain(), Person, |world| world.vain.clear()),
        (new("1.34.0", "c1 c2 c3", "c1 c2+ c3+"), Person, put_back),
        (followed(false), Slipway, led),
        (followed(true), Person, led),
    ];
    waits.into_iter().chain(waits_for_what_is_left()).collect()
}

/// The same where a node is left of a machine that the cluster does not have.
fn waits_for_what_is_left() -> Vec<(World, Owner, Deed)> {
    use Owner::{Person, Slipway};
    let new = World::new;
    vec![
        (new("1.34.0", "c1", "c1").strays("w9,"), Slipway, nothing),
        (new("1.34.0", "c1", "c1").strays("w9"), Person, cleared),
        (new("1.34.0", "c1", "c1 w9x").strays("w9"), Slipway, cleared),
        (
            new("1.34.0", "c1 w1", "c1 w1~").strays("c9!"),
            Person,
            cleared,
        ),
        (
            new("1.34.0", "c1 w1", "c1 w1~").strays("c9!"),
            Person,
            told_of_others,
        ),
        (
            new("1.34.0", "c1 w1", "c1 w1~").strays("w1'!"),
            Slipway,
            nothing,
        ),
    ]
}

#[test]
fn every_wait_has_an_owner_and_what_they_do_ends_it() {
    let mut met = BTreeSet::new();
    for (mut world, owner, deed) in waits() {
        let first = plan(&world.view());
        let told = format!("{:?}", first.held);
        met.extend(first.held.iter().map(|held| number(&held.reason)));
        for held in &first.held {
            assert!(!held.next_action().is_empty(), "{held}");
        }
        let owners = || first.held.iter().map(|held| held.reason.owner());
        assert!(owners().any(|found| found == owner), "{told}");
        let before = lived(&mut world);
        if owner == Owner::Person {
            // Else the planner says that somebody must act, and nobody has to.
            let waits = |held: &Held| held.reason.owner() == Owner::Person;
            assert!(before.held.iter().any(waits), "{told}");
        }
        deed(&mut world);
        let after = lived(&mut world);
        assert!(arrived(&after), "{told}\nends with {after:#?}");
    }
    met.extend(held_from_outside());
    assert_eq!(met, (0..REASONS).collect(), "every reason has its world");
}

/// What the store, the checker and who knows the hands give as reasons: whoever plans again when that is gone goes on.
fn held_from_outside() -> Vec<usize> {
    let world = || World::new("1.34.0", "c1 w1", "c1");
    let reasons = [
        Reason::Claimed {
            thing: "10.8.0.1".to_owned(),
            by: "west".to_owned(),
            goes: false,
        },
        Reason::Quota {
            what: "machines".to_owned(),
            used: 1,
            limit: 1,
        },
        Reason::Unable {
            because: "nobody makes it".to_owned(),
            next: "make it yourself".to_owned(),
        },
        Reason::Data {
            kept: "volumes".to_owned(),
            modules: "main leads to 2b".to_owned(),
            pool: "edge/compute".to_owned(),
        },
    ];
    let mut met = Vec::new();
    for reason in reasons {
        let mut held = plan(&world().view());
        held.hold_back(machine("w1").id, &reason);
        assert!(held.tasks.is_empty() && !held.held[0].next_action().is_empty());
        assert_ne!(held.summary.phase, Phase::Done);
        met.push(number(&held.held[0].reason));
    }
    let mut stopped = plan(&world().view());
    stopped.stop(&[Note {
        machine: "w1".parse().unwrap(),
        broken: "a rule",
    }]);
    assert_eq!(stopped.held[0].reason.owner(), Owner::Person);
    met.push(number(&stopped.held[0].reason));
    assert!(arrived(&lived(&mut world())), "when it is gone it goes on");
    let mut other = World::new("1.34.0", "c1", "c1");
    assert!(arrived(&lived(&mut other)), "another manifest gets past it");
    met
}

/// Beginnings of journeys on which every kind of work is done.
fn journeys() -> Vec<fn() -> World> {
    vec![
        || World::hosts("c1 c2 c3 w1 s1 b1"),
        || {
            World::hosts("c1 c2 c3 w1 w2 s1 b1")
                .settled()
                .want("c1 w1 b1")
        },
        || World::hosts("c1 w1 s1 b1").settled().want(""),
        || {
            let mut world = World::hosts("c1 w1 b1");
            world.desired.balancers[0].dns = Some(names(Provider::Simulated, "www"));
            world.settled().want("c1 w1 b2")
        },
        || World::hosts("c1 w1 b1").at_cloud("c1"),
        || {
            let mut world = World::hosts("c1 w1 b1").at_cloud("c1").settled();
            let mut former = world.desired.balancers.clone();
            former[0].roles.remove(0);
            world.desired.balancers[0].roles.remove(1);
            world.desired.former = former;
            world
        },
        || World::new("1.35.0", "c1 c2 c3 w1", "c1 c2 c3 w1").unsaved(),
        || {
            let mut world = World::new("1.34.0", "c1 w1", "c1 w1");
            let seen = world.observed.machines.get_mut(&machine("w1").id).unwrap();
            if let Some((NodeFact::Joined { asks, .. }, _)) = &mut seen.node {
                *asks = true;
            }
            world
        },
        || World::new("1.34.0", "c1", "c1").addons(Cni::Routed, "node-exporter", ""),
        || {
            let mut world = World::new("1.34.0", "c1 c2 c3", "c1 c2 c3");
            let seen = world.observed.machines.get_mut(&machine("c2").id).unwrap();
            seen.certificates = Some((CertificatesFact { end: NOW }, NOW));
            world
        },
        || World::new("1.34.0", "c1", "c1").strays("w9!"),
        || {
            let snapshot = SnapshotId::of(NOW, "0a1b2c3d").unwrap();
            let world = World::new("1.34.0", "c1 c2 c3 w1", "c1 c2 c3 w1");
            world.wish(Wish::Restore { snapshot })
        },
    ]
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

fn begun(task: &Task, state: State) -> Open {
    let through = task.around.iter().flat_map(|around| &around.through);
    Open {
        id: task.id,
        machine: task.machine.id,
        action: task.action.clone(),
        origin: task.machine.origin.clone(),
        through: through.map(|member| member.id).collect(),
        state,
        attempts: 1,
        not_before: NOW,
        error: (state == State::Stuck).then(|| "no luck".to_owned()),
        corrected: false,
    }
}

#[test]
fn every_kind_of_work_comes_out_of_every_state_of_its_task() {
    let mut met = BTreeSet::new();
    for start in journeys() {
        for round in 0..100 {
            let tasks = plan(&start().after(round).view()).tasks;
            for task in &tasks {
                if met.insert(task.action.kind()) {
                    leaves_every_state(start, round, task);
                }
            }
            if tasks.is_empty() {
                break;
            }
        }
    }
    let all: BTreeSet<_> = Kind::ALL.into_iter().collect();
    assert_eq!(met, all, "every kind of work is met");
}

fn leaves_every_state(start: fn() -> World, round: usize, task: &Task) {
    for state in STATES.into_iter().filter(|state| is_left(*state)) {
        let mut world = start().after(round);
        let step = plan(&world.view());
        // The row that was drawn for it is there as long as it is.
        let mut rows = step.disturbs.clone();
        rows.retain(|slot| slot.machine == task.machine.id);
        world.ledger.extend(rows);
        world.open.push(begun(task, state));
        let mut last = lived(&mut world);
        if state == State::Stuck && !arrived(&last) {
            let stuck = |held: &Held| number(&held.reason) == 6 && !held.next_action().is_empty();
            assert!(last.held.iter().any(stuck), "{last:#?}");
            corrected(&mut world);
            last = lived(&mut world);
        }
        let kind = task.action.kind();
        assert!(
            arrived(&last),
            "{kind} that is {state:?} ends with {last:#?}"
        );
    }
}

/// What is seen of a machine, so that all of it can be counted; nothing where nobody looked.
const fn sight(fact: Option<&MachineFact>) -> usize {
    match fact {
        None => 0,
        Some(MachineFact::Absent) => 1,
        Some(MachineFact::Booting { .. }) => 2,
        Some(MachineFact::Running { .. }) => 3,
        Some(MachineFact::Unreachable { .. }) => 4,
    }
}

#[test]
fn whatever_is_seen_of_a_machine_it_comes_or_goes() {
    let mut met = BTreeSet::new();
    for name in ["c4", "c2", "w2", "s1"] {
        for marks in ["-", "x", ".", "~", "", "!", "/", "!/", "?", "?!", "?/"] {
            for version in ["1.34.0", "1.35.0"] {
                for stays in [true, false] {
                    let want = format!("c1 c3 c5 w1 {}", if stays { name } else { "" });
                    let have = format!("c1 c3 c5 w1 {name}{marks}");
                    let mut world = World::new(version, &want, &have);
                    let seen = &world.observed.machines[&machine(name).id];
                    met.insert(sight(seen.machine.as_ref().map(|(fact, _)| fact)));
                    let first = lived(&mut world);
                    let told = format!("{want}: {have} at {version}: {:?}", first.held);
                    assert!(arrived(&first) || !first.held.is_empty(), "{told}");
                    mend(&mut world);
                    let last = lived(&mut world);
                    assert!(arrived(&last), "{told}\nends with {last:#?}");
                }
            }
        }
    }
    assert_eq!(met, (0..5).collect(), "everything is seen once");
}

/// Work that may be under way on one that comes in place of another.
fn works() -> [Option<Action>; 6] {
    let version = "1.34.0".parse().unwrap();
    let care = || super::care("w2");
    [
        None,
        Some(Action::Create),
        Some(Action::Join {
            version,
            care: care(),
            gated: false,
        }),
        Some(Action::Tend { care: care() }),
        Some(Action::Drain),
        Some(Action::Uncordon),
    ]
}

#[test]
fn a_roll_comes_out_of_whatever_becomes_of_those_that_come() {
    for marks in ["", "-", "x", ".", "~", "!", "/", "!/", "?", "?!"] {
        for work in works() {
            for state in STATES.into_iter().filter(|state| is_left(*state)) {
                for minutes in [0, 10] {
                    let told = format!("w2{marks} for {minutes} min, {work:?} {state:?}");
                    comes_out(coming(marks, work.clone(), state, minutes), &told);
                }
            }
        }
    }
}

/// A pool that rolls, and one that comes: as it is seen, what is done to it, how that stands, and for
/// how long it has not served.
fn coming(marks: &str, work: Option<Action>, state: State, minutes: i64) -> World {
    let mut world = rolling("c1 w1 w2", &format!("c1 w1 w2{marks}"));
    if let Some(action) = work {
        // The row that was drawn for it is there as long as it is.
        let row = Slot::of(&machine("w2"), &world.desired.disruption);
        let drains = action == Action::Drain && world.ledger.is_empty();
        world.ledger.extend(drains.then_some(row));
        world = world.open("w2", action, state, Some("no luck"));
        world.open[0].origin = world.desired.rolls[0].origin.clone();
        world.open[0].attempts = 5;
    }
    if marks.contains(['!', '?']) {
        let since = Timestamp::from_millis(NOW.as_millis() - minutes * 60_000);
        world.observed.sick.insert(machine("w2").id, since);
    }
    world
}

#[track_caller]
fn comes_out(mut world: World, told: &str) {
    let first = lived(&mut world);
    assert!(arrived(&first) || !first.held.is_empty(), "{told}");
    mend(&mut world);
    corrected(&mut world);
    let last = lived(&mut world);
    let rolls = &world.desired.rolls;
    assert!(arrived(&last) && rolls.is_empty(), "{told}: {last:#?}");
    assert_eq!(world.desired.machines.len(), 2, "{told}");
}

/// Whether a wish may keep the planner from going on until it is withdrawn.
const fn keeps_waiting(wish: &Wish) -> bool {
    match wish {
        Wish::Pause | Wish::Cancel { .. } => true,
        // What is desired follows the first three, and the planner follows that; the others end with
        // what was asked for.
        Wish::Scale { .. }
        | Wish::Replace { .. }
        | Wish::Retire { .. }
        | Wish::Retry { .. }
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => false,
    }
}

#[test]
fn every_wish_is_fulfilled_or_can_be_withdrawn() {
    let id: MachineId = machine("w1").id;
    let task = TaskId::derive(crate::fixture::origin("w1", 9));
    let kind = Kind::Join;
    let wishes = [
        Wish::Scale {
            pool: "compute".parse().unwrap(),
            count: 1,
            was: 1,
        },
        Wish::Replace { machine: id },
        Wish::Retire { machine: id },
        Wish::Retry { task },
        Wish::Cancel {
            task,
            machine: id,
            kind,
        },
        Wish::Pause,
        Wish::Snapshot,
        Wish::Restore {
            snapshot: SnapshotId::of(NOW, "0a1b2c3d").unwrap(),
        },
        Wish::Update {
            pool: "compute".parse().unwrap(),
            commit: Some(Commit::to_come()),
        },
    ];
    for wish in wishes {
        let waits = keeps_waiting(&wish);
        let told = format!("{wish:?}");
        let world = World::new("1.34.0", "c1 w1", "c1 w1~");
        let stuck = matches!(wish, Wish::Retry { .. });
        let mut world = if stuck {
            let care = super::care("w1");
            let join = Action::Join {
                version: world.desired.version,
                care,
                gated: false,
            };
            world.open("w1", join, State::Stuck, Some("no luck"))
        } else {
            world
        }
        .wish(wish);
        let first = lived(&mut world);
        assert_eq!(arrived(&first), !waits, "{told}: {first:#?}");
        world.intents.clear();
        assert!(arrived(&lived(&mut world)), "{told}");
    }
}

/// A world in this phase, where the planner says so and something is left to come.
fn in_phase(phase: Phase) -> Option<World> {
    let new = |want: &str, have: &str| Some(World::new("1.34.0", want, have));
    match phase {
        // The store says so until the first plan.
        Phase::Pending => None,
        Phase::Scheduled => new("c1 w1", "c1"),
        Phase::Error => new("c1 w1", "c1 w1?"),
        Phase::Deleting => new("", "c1 w1"),
        // There they stay until somebody wants something else.
        Phase::Done => new("c1", "c1"),
        Phase::Gone => new("", "c1x"),
    }
}

#[test]
fn every_phase_leads_to_the_end_that_is_wanted() {
    for phase in [
        Phase::Pending,
        Phase::Scheduled,
        Phase::Error,
        Phase::Deleting,
        Phase::Done,
        Phase::Gone,
    ] {
        let Some(mut world) = in_phase(phase) else {
            continue;
        };
        assert_eq!(plan(&world.view()).summary.phase, phase);
        let first = lived(&mut world);
        assert_eq!(arrived(&first), phase != Phase::Error, "{phase:?}");
        mend(&mut world);
        assert!(arrived(&lived(&mut world)), "{phase:?}");
    }
}

#[test]
fn a_member_that_was_drained_and_cannot_be_upgraded_serves_until_it_can() {
    let mut world = World::new("1.35.0", "c1", "c1/ c2");
    let first = plan(&world.view());
    let kinds: Vec<_> = first.tasks.iter().map(|task| task.action.kind()).collect();
    assert_eq!(kinds, [Kind::Uncordon]);
    assert!(arrived(&lived(&mut world)));
}
