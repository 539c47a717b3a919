//! Random worlds: the planner converges, deterministically, within its budgets.
//!
//! A world is a cluster of any shape, edited once, with work under way, seen in any honest or
//! dishonest state. From each the
//! journey must end, the checker must stay silent at every step, and a plan made twice
//! must be the same twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::admit::admit;
use model::cluster::{Desired, Machine, Origin, Role};
use model::id::TaskId;
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::source;
use model::task::{Action, Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
use plan::{Known, Phase, Slot, View, check, expand, journey, plan, predict, retire};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::IpAddr;

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Given hosts: the name of their pool, and how many of them.
type Hosts = (&'static str, u8);

fn manifest(control: u32, compute: u32, hosts: Hosts, minor: u16) -> model::manifest::Manifest {
    let (pool, count) = hosts;
    let nodes: Vec<_> = (0..count)
        .map(|n| format!("{{endpoint: 203.0.113.{n}}}"))
        .collect();
    let (fixed, name) = if nodes.is_empty() {
        (String::new(), String::new())
    } else {
        let fixed = format!("static: [{{name: {pool}, nodes: [{}]}}]", nodes.join(", "));
        (fixed, format!(", {pool}"))
    };
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: small, image: debian-12}}
    {fixed}
  kubernetes:
    clusters:
      - {{name: edge, version: v1.{minor}.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [muscle{name}]}}}}
"
    );
    admit(&source::parse(&text).unwrap()).unwrap()
}

fn grown(previous: Option<(&Desired, &Observed)>, manifest: &model::manifest::Manifest) -> Desired {
    let known: Vec<_> = previous
        .iter()
        .map(|(desired, observed)| Known {
            desired,
            observed,
            intents: &[],
            open: &[],
        })
        .collect();
    let project = Name::default_project();
    expand(&project, manifest, &known, &BTreeMap::new(), NOW)
        .unwrap()
        .remove(0)
        .desired
}

/// What may be seen of one machine.
#[derive(Debug, Clone, Copy)]
enum Sight {
    Unseen,
    Absent,
    Booting,
    Running,
    Node {
        ready: bool,
        cordoned: bool,
        old: bool,
    },
    Lost,
}

fn sight() -> impl Strategy<Value = Sight> {
    prop_oneof![
        2 => Just(Sight::Unseen),
        1 => Just(Sight::Absent),
        1 => Just(Sight::Booting),
        2 => Just(Sight::Running),
        6 => (prop::bool::weighted(0.9), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(ready, cordoned, old)| Sight::Node { ready, cordoned, old }),
        1 => Just(Sight::Lost),
    ]
}

#[derive(Debug, Clone)]
struct World {
    control: (u32, u32),
    compute: (u32, u32),
    hosts: (Hosts, Hosts),
    upgrade: bool,
    delete: bool,
    sights: Vec<Sight>,
    work: Vec<Option<(Kind, State)>>,
}

fn hosts() -> impl Strategy<Value = Hosts> {
    (prop_oneof![Just("attic"), Just("cellar")], 0..3_u8)
}

/// An unfinished task, or none.
fn work() -> impl Strategy<Value = Option<(Kind, State)>> {
    let state = prop_oneof![
        Just(State::Waiting),
        Just(State::Running),
        Just(State::Stuck)
    ];
    let kind = prop_oneof![
        Just(Kind::Create),
        Just(Kind::Join),
        Just(Kind::Drain),
        Just(Kind::Leave),
        Just(Kind::Delete)
    ];
    prop::option::weighted(0.2, (kind, state))
}

fn world() -> impl Strategy<Value = World> {
    let odd = prop_oneof![Just(1_u32), Just(3), Just(5)];
    (
        odd.clone(),
        odd,
        1..6_u32,
        1..6_u32,
        any::<bool>(),
        prop::bool::weighted(0.1),
        (hosts(), hosts()),
        prop::collection::vec(sight(), 24),
        prop::collection::vec(work(), 24),
    )
        .prop_map(
            |(c1, c2, w1, w2, upgrade, delete, hosts, sights, work)| World {
                control: (c1, c2),
                compute: (w1, w2),
                hosts,
                upgrade,
                delete,
                sights,
                work,
            },
        )
}

/// The desired state after an edit, and what is seen of its machines.
fn made(world: &World) -> (Desired, Observed) {
    let first = grown(
        None,
        &manifest(world.control.0, world.compute.0, world.hosts.0, 34),
    );
    let minor = if world.upgrade { 35 } else { 34 };
    let next = grown(
        Some((&first, &Observed::default())),
        &manifest(world.control.1, world.compute.1, world.hosts.1, minor),
    );
    let mut observed = Observed::default();
    for (machine, sight) in next.all().zip(world.sights.iter().cycle()) {
        let running = MachineFact::Running {
            reference: "vm".to_owned(),
            address: IpAddr::V4(machine.address),
        };
        let (fact, node) = match *sight {
            Sight::Unseen => continue,
            Sight::Absent => (MachineFact::Absent, None),
            Sight::Booting => (
                MachineFact::Booting {
                    reference: "vm".to_owned(),
                },
                None,
            ),
            Sight::Running => (running, None),
            Sight::Lost => (
                MachineFact::Unreachable {
                    reference: "vm".to_owned(),
                },
                None,
            ),
            Sight::Node {
                ready,
                cordoned,
                old,
            } => {
                let version = Version {
                    minor: if old { 34 } else { minor },
                    patch: 0,
                };
                observed.initialised |= machine.role == Role::Control;
                (
                    running,
                    Some(NodeFact::Joined {
                        ready,
                        cordoned,
                        version,
                    }),
                )
            }
        };
        let seen = Seen {
            machine: Some((fact, NOW)),
            node: node.map(|node| (node, NOW)),
        };
        observed.machines.insert(machine.id, seen);
    }
    let desired = if world.delete {
        retire(Known {
            desired: &next,
            observed: &observed,
            intents: &[],
            open: &[],
        })
    } else {
        next
    };
    (desired, observed)
}

/// The unfinished tasks of a world, each as an earlier plan would have made it.
fn under_way(world: &World, desired: &Desired) -> Vec<Open> {
    let version = Version {
        minor: 34,
        patch: 0,
    };
    let given = |machine: &Machine| matches!(machine.origin, Origin::Given { .. });
    let action = |machine: &Machine, kind: Kind| match kind {
        Kind::Create if given(machine) => Action::Prepare,
        Kind::Delete if given(machine) => Action::Release,
        Kind::Join => Action::Join { version },
        Kind::Drain => Action::Drain,
        Kind::Leave => Action::Leave,
        Kind::Delete => Action::Delete,
        Kind::Create
        | Kind::Prepare
        | Kind::Init
        | Kind::Upgrade
        | Kind::Uncordon
        | Kind::Release => Action::Create,
    };
    let placed = desired.all().zip(world.work.iter().cycle());
    placed
        .filter_map(|(machine, work)| {
            let (kind, state) = (*work)?;
            Some(Open {
                id: TaskId::derive(model::id::Origin {
                    parent: "test",
                    name: machine.name.as_str(),
                    ordinal: u64::from(machine.ordinal),
                    incarnation: 0,
                }),
                machine: machine.id,
                action: action(machine, kind),
                state,
                attempts: 1,
                not_before: NOW,
                error: (state == State::Stuck).then(|| "no luck".to_owned()),
            })
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_safe_and_the_journey_ends(world in world()) {
        let (desired, mut observed) = made(&world);
        let mut open = under_way(&world, &desired);
        let mut ledger: Vec<Slot> = Vec::new();
        let mut ended = None;
        for round in 0..200_u64 {
            let view = View { desired: &desired, observed: &observed, open: &open, ledger: &ledger, intents: &[], blocked: &[], parent: round, now: NOW };
            let step = plan(&view);
            prop_assert_eq!(check(&view, &step), Vec::new());
            prop_assert_eq!(format!("{step:?}"), format!("{:?}", plan(&view)));
            ledger.retain(|slot| !step.release.contains(&slot.machine));
            ledger.extend(step.disturbs.iter().cloned());
            prop_assert!(ledger.len() <= 1, "budget exceeded: {:?}", ledger);
            // What is stuck stays so until nobody wants it; everything else ends well.
            open.retain(|open| !step.withdraw.contains(&open.id));
            let (stuck, going): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.state == State::Stuck);
            open = stuck;
            if step.tasks.is_empty() && going.is_empty() {
                ended = Some(step);
                break;
            }
            for open in going {
                let machine = desired.all().find(|machine| machine.id == open.machine).unwrap();
                predict(&mut observed, machine, &open.action, NOW);
            }
            for task in &step.tasks {
                predict(&mut observed, &task.machine, &task.action, NOW);
            }
        }
        let Some(last) = ended else { return Err(TestCaseError::fail("no end after 200 rounds")) };
        match last.summary.phase {
            Phase::Done | Phase::Gone => prop_assert!(last.held.is_empty()),
            Phase::Pending | Phase::Scheduled | Phase::Error | Phase::Deleting => {
                prop_assert!(!last.held.is_empty(), "waits for nothing: {:?}", last.summary);
            }
        }
    }

    #[test]
    fn a_healthy_cluster_reaches_what_is_declared(world in world()) {
        let mut world = world;
        for sight in &mut world.sights {
            *sight = Sight::Unseen;
        }
        let (desired, observed) = made(&world);
        let view = View { desired: &desired, observed: &observed, open: &[], ledger: &[], intents: &[], blocked: &[], parent: 0, now: NOW };
        let told = journey(&view);
        prop_assert_eq!(told.ends, if world.delete { Phase::Gone } else { Phase::Done });
    }
}
