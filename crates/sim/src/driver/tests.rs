//! The simulated driver keeps the contract, and drivers with one bad habit are found out.

use super::Simulated;
use crate::world::{Pace, World};
use ::driver::suite::{Cast, Fixture, contract};
use ::driver::{Clock, Context, Driver, Log, Outcome, Target};
use expect_test::{Expect, expect};
use model::cluster::{Machine, Origin, Role};
use model::id::{self, ClusterId, MachineId};
use model::manifest::Provider;
use model::name::Name;
use model::observed::{Fact, MachineFact, Observation};
use model::task::{Action, Kind, Task};
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The simulated driver, with one bad habit or with none.
struct Habit {
    driver: Simulated,
    bad: Option<Bad>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bad {
    /// Makes machines without looking.
    Greedy,
    /// Takes silence for absence.
    Rash,
    /// Neither hears that it is to stop nor writes a log.
    Aloof,
    /// Knows no remedy.
    Helpless,
    /// Speaks of what it was not asked for.
    Chatty,
}

struct Unheard;

impl Log for Unheard {
    fn line(&self, _: Timestamp, _: &str) {}
}

impl Habit {
    /// Makes a machine, whatever there is.
    async fn grab(&self, task: &Task) {
        let world = &self.driver.world;
        let begun = world.order(task, 1).expect("orders are always taken");
        tokio::time::sleep(begun.until.since(world.now())).await;
    }
}

impl Driver for Habit {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        if self.bad == Some(Bad::Greedy) && task.action == Action::Create {
            self.grab(task).await;
        }
        let outcome = if self.bad == Some(Bad::Aloof) {
            let clock = Clock::starting_at(cx.now());
            let cx = Context::new(clock, Arc::new(Unheard), CancellationToken::new(), 1);
            self.driver.apply(&cx, task).await
        } else {
            self.driver.apply(cx, task).await
        };
        match outcome {
            Outcome::Stuck(mut error) if self.bad == Some(Bad::Helpless) => {
                error.hint.clear();
                Outcome::Stuck(error)
            }
            Outcome::Stuck(_) | Outcome::Retry(_) | Outcome::Done(_) => outcome,
        }
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let mut seen = self.driver.probe(cx, target).await;
        for observation in &mut seen {
            if let Fact::Machine(machine, MachineFact::Unreachable { .. }) = observation.fact
                && self.bad == Some(Bad::Rash)
            {
                observation.fact = Fact::Machine(machine, MachineFact::Absent);
            }
        }
        if self.bad == Some(Bad::Chatty) {
            let machine = machine(target.cluster, "given", Role::Compute).id;
            let fact = Fact::Machine(machine, MachineFact::Absent);
            seen.push(Observation {
                cluster: target.cluster,
                fact,
                at: cx.now(),
            });
        }
        seen
    }
}

struct Lab {
    world: World,
    driver: Habit,
    clock: Clock,
    casts: AtomicU8,
}

impl Lab {
    fn new(bad: Option<Bad>) -> Self {
        let clock = Clock::starting_at(Timestamp::from_millis(1_000_000));
        let world = World::new(clock, Pace::Realistic, 0);
        let driver = Simulated::new(world.clone());
        Self {
            world,
            driver: Habit { driver, bad },
            clock,
            casts: AtomicU8::new(0),
        }
    }
}

fn machine(cluster: ClusterId, name: &str, role: Role) -> Machine {
    let origin = id::Origin {
        parent: &cluster.to_string(),
        name,
        ordinal: 1,
        incarnation: 0,
    };
    Machine {
        id: MachineId::derive(origin),
        name: name.parse().unwrap(),
        pool: "pool".parse().unwrap(),
        role,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        origin: Origin::Made {
            provider: "lab".parse().unwrap(),
            via: Provider::Simulated,
            region: "north".to_owned(),
            zone: None,
            server_type: "small".to_owned(),
            image: "debian-12".to_owned(),
        },
    }
}

impl Fixture for Lab {
    type Driver = Habit;

    fn driver(&self) -> &Habit {
        &self.driver
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn cast(&self) -> Cast {
        let number = self.casts.fetch_add(1, Ordering::Relaxed);
        let name: Name = format!("cluster-{number}").parse().unwrap();
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: name.as_str(),
            ordinal: 0,
            incarnation: 0,
        });
        let given = Origin::Given {
            endpoint: Ipv4Addr::new(192, 0, 2, number),
            ssh_port: 22,
            username: "root".to_owned(),
        };
        Cast {
            cluster,
            name,
            network: "10.8.0.0/24".parse().unwrap(),
            version: "1.34.0".parse().unwrap(),
            next_version: "1.35.0".parse().unwrap(),
            control: machine(cluster, "control", Role::Control),
            compute: machine(cluster, "compute", Role::Compute),
            given: Machine {
                origin: given,
                ..machine(cluster, "given", Role::Compute)
            },
        }
    }

    fn impossible(&self, cast: &Cast) -> Task {
        let mut task = cast.task(&cast.compute, Action::Create);
        if let Origin::Made { image, .. } = &mut task.machine.origin {
            "windows-3.11".clone_into(image);
        }
        task
    }

    async fn machines_named(&self, machine: MachineId) -> usize {
        self.world.machines_named(machine)
    }

    async fn picture(&self, cast: &Cast) -> String {
        self.world.picture(cast.cluster)
    }

    async fn cut_power(&self, machine: &Machine) {
        self.world.cut_power(machine);
    }

    fn soon(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Names the rules that a driver with this habit breaks.
async fn check(bad: Option<Bad>, expected: &Expect) {
    let report = contract(&Lab::new(bad)).await;
    let mut told: Vec<_> = report.broken().map(|checked| checked.rule).collect();
    let count = format!("{} rules checked", report.checked.len());
    told.push(&count);
    expected.assert_eq(&told.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_whole_life_has_every_kind_of_task() {
    let life = Lab::new(None).cast().life();
    let kinds: BTreeSet<_> = life.iter().map(|task| task.action.kind()).collect();
    assert_eq!(kinds, Kind::ALL.into());
}

#[tokio::test(start_paused = true)]
async fn the_simulated_driver_keeps_every_rule() {
    check(None, &expect!["12 rules checked"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_takes_silence_for_absence_is_found_out() {
    check(
        Some(Bad::Rash),
        &expect![[r#"
        silence is not absence
        12 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_neither_hears_nor_writes_is_found_out() {
    check(
        Some(Bad::Aloof),
        &expect![[r#"
        an attempt that is cancelled before it starts begins nothing
        an attempt that is cancelled in the middle ends soon
        an attempt writes to its log
        12 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_makes_without_looking_is_found_out() {
    check(
        Some(Bad::Greedy),
        &expect![[r#"
        applying a task twice leaves the same world
        a create that was interrupted after its effect is adopted, not made twice
        an attempt that is cancelled before it starts begins nothing
        an attempt that is cancelled in the middle ends soon
        what is stuck says what would help
        12 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_knows_no_remedy_is_found_out() {
    check(
        Some(Bad::Helpless),
        &expect![[r#"
        what is stuck says what would help
        12 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_speaks_unasked_is_found_out() {
    check(
        Some(Bad::Chatty),
        &expect![[r#"
        looking tells of what was asked for, and of absence only where it is known
        12 rules checked"#]],
    )
    .await;
}
