//! Every reason to wait: who can end it, and that what they do does.

use super::*;
use crate::check::Note;
use crate::claims::Claim;
use crate::hands::Unable;
use crate::journey::{Journey, journey, journey_by};
use crate::pace::Paces;
use crate::price::Prices;
use crate::vain::{VAIN_MAX, Vain};
use model::cluster::{Machine, MetalWanted, Role};
use model::observed::{Member, UnresolvedFact, Wellbeing};
use model::templates::{Reference, Templates};
use model::upkeep::Failed;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

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

fn unmatched(want: &str, have: &str) -> World {
    let mut world = World::new("1.34.0", want, have);
    world.desired.metal.push(MetalWanted {
        pool: "rack".parse().unwrap(),
        role: Role::Compute,
        balancer: None,
        count: 2,
        selector: BTreeMap::from([("disk".to_owned(), "nvme".to_owned())]),
    });
    world
}

/// The address of the given machine is that of another cluster, which keeps it or lets it go.
fn among(goes: bool, want: &str, have: &str) -> World {
    let mut world = World::new("1.34.0", want, have);
    world.claimed = vec![Claim {
        thing: Claim::address(Ipv4Addr::new(203, 0, 113, 5)),
        by: "west-attic-01 of cluster west in project default".to_owned(),
        goes,
    }];
    world
}

fn given_back(world: &mut World) {
    world.claimed.clear();
}

/// The project has all the machines that it may have.
fn limited(want: &str, have: &str) -> World {
    let mut world = World::new("1.34.0", want, have);
    world.quota = Some(2);
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
        (unmatched("c1 w1", "c1 w1"), Person, |world| {
            world.desired.metal.clear();
        }),
        (unmatched("c1", "c1 w1"), Person, |world| {
            world.desired.metal.clear();
        }),
        (among(false, "c1 w1 s1", "c1 w1"), Person, given_back),
        (among(true, "c1 w1 s1", "c1 w1"), Slipway, given_back),
        (among(false, "c1 s1", "c1 w1"), Person, given_back),
        (limited("c1 w1 w2", "c1 w1"), Person, |world| {
            world.quota = None;
        }),
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
        let first = planned(&mut world);
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

/// What only a journey tells and what the checker says: whoever plans again when that is gone goes on.
fn held_from_outside() -> Vec<usize> {
    vec![unable(), data(), stopped()]
}

/// What a journey ends with, where that is for a person to act upon.
#[track_caller]
fn told(journey: &Journey) -> usize {
    assert_ne!(journey.ends, Phase::Gone);
    let mut held = journey.held.iter();
    let held = held.find(|held| held.reason.owner() == Owner::Person);
    let held = held.unwrap();
    assert!(!held.next_action().is_empty(), "{held}");
    number(&held.reason)
}

/// Nobody here makes workers.
fn unable() -> usize {
    let hands = |machine: &Machine, kind: Kind| {
        (kind == Kind::Create && machine.role == Role::Compute).then(|| Unable {
            because: "nobody makes it".to_owned(),
            next: "make it yourself".to_owned(),
        })
    };
    let by = |world: &World| journey_by(&world.view(), &Prices::usual(), &Paces::default(), &hands);
    let world = World::new("1.34.0", "c1 w1", "c1");
    let first = by(&world);
    assert_ne!(first.ends, Phase::Done);
    let able = journey(&world.view());
    assert!(able.ends == Phase::Done && able.held.is_empty());
    let other = by(&World::new("1.34.0", "c1", "c1"));
    assert!(other.ends == Phase::Done && other.held.is_empty());
    told(&first)
}

/// A branch has moved, a window is open, and workers keep volumes.
fn data() -> usize {
    const NOW_OPEN: &str = r#"{"windows":[{"days":["thu"],"start":0,"minutes":60,"offset":0}]}"#;
    let commit = |digit: &str| digit.repeat(40).parse::<Commit>().unwrap();
    let world = || {
        let world = World::new("1.34.0", "c1 w1", "c1 w1").allow(NOW_OPEN);
        let mut world = world.addons(Cni::Routed, "local-path", "local-path");
        let worker = world.desired.machines.last_mut().unwrap();
        if let Origin::Made { hardware, .. } = &mut worker.origin {
            hardware.templates = Some(Templates::Repository {
                repository: "git.example.org/m".to_owned(),
                commit: "main".to_owned(),
                path: None,
                secret: None,
                pinned: Some(commit("a")),
            });
        }
        let reference: Reference = worker.origin.reference().unwrap();
        let followed = world.observed.followed.entry(reference).or_default();
        followed.commit = Some((commit("b"), NOW));
        world
    };
    let made_from = |world: &World| world.desired.machines.last().unwrap().origin.pinned();
    let mut stays = world();
    assert!(arrived(&lived(&mut stays)));
    assert_eq!(made_from(&stays), Some(commit("a")));
    let pool = machine("w1").pool;
    let asked = Wish::Update {
        pool: pool.clone(),
        commit: Some(commit("b")),
    };
    let mut agreed = world();
    agreed.desired.replacing.insert(pool);
    for mut taken in [world().wish(asked), agreed] {
        assert!(arrived(&lived(&mut taken)));
        assert_eq!(made_from(&taken), Some(commit("b")));
        assert!(journey(&taken.view()).held.is_empty());
    }
    told(&journey(&stays.view()))
}

/// A plan that was made for another world than that in which it is judged.
fn stopped() -> usize {
    let made = World::new("1.34.0", "c1", "c1 w1~");
    let mut step = plan(&made.view());
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1~");
    let notes: Vec<Note> = judge(&world.view(), &step);
    assert!(!notes.is_empty(), "{step:#?}");
    step.stop(&notes);
    assert!(step.tasks.is_empty() && step.summary.phase == Phase::Error);
    let held = step.held[0].clone();
    assert_eq!(held.reason.owner(), Owner::Person);
    assert!(!held.next_action().is_empty());
    world.follow(&step);
    assert!(arrived(&lived(&mut world)), "the next plan is made anew");
    number(&held.reason)
}

#[test]
fn what_is_beyond_a_quota_comes_when_something_has_gone() {
    let mut world = World::new("1.34.0", "c1 w2", "c1 w1");
    world.quota = Some(2);
    let first = planned(&mut world);
    assert!(first.tasks.is_empty(), "{first:#?}");
    assert!(arrived(&lived(&mut world)));
    assert!(world.desired.machine_named("w2").is_some());
}

#[test]
fn who_serves_goes_when_others_give_back_what_the_next_one_needs() {
    let mut world = among(false, "c1 s1", "c1 w1");
    let held = lived(&mut world);
    let kinds: Vec<_> = held.held.iter().map(|held| held.kind).collect();
    assert_eq!(kinds, [Kind::Drain, Kind::Prepare]);
    let serves = |world: &World| world.observed.machines[&machine("w1").id].is_node();
    assert!(serves(&world));
    world.claimed.clear();
    assert!(arrived(&lived(&mut world)));
    assert!(!serves(&world));
}
