//! The simulated driver keeps the contract, and drivers with one bad habit are found out.

use super::Simulated;
use crate::world::{Pace, World};
use ::driver::suite::{Cast, Fixture, contract};
use ::driver::{Clock, Context, Driver, Log, NoSecrets, Open, Opening, Outcome, Target, Unopened};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use model::cluster::{Machine, Origin, Role};
use model::id::{self, ClusterId, MachineId};
use model::manifest::Provider;
use model::name::Name;
use model::observed::{Fact, MachineFact, Observation};
use model::sealed::Owner;
use model::secret::{Secret, SecretRef};
use model::task::{Action, Kind, Task};
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The simulated driver, with one bad habit or with none.
struct Habit {
    driver: Simulated,
    bad: Option<Bad>,
    gave: AtomicBool,
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
    /// Hands out what came of a task every other time.
    Forgetful,
    /// Gives what came of a task to somebody else.
    Generous,
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
            let stop = CancellationToken::new();
            let cx = Context::new(clock, Arc::new(Unheard), Arc::new(NoSecrets), stop, 1);
            self.driver.apply(&cx, task).await
        } else {
            self.driver.apply(cx, task).await
        };
        match outcome {
            Outcome::Stuck(mut error) if self.bad == Some(Bad::Helpless) => {
                error.hint.clear();
                Outcome::Stuck(error)
            }
            Outcome::Done(seen, mut outputs) if self.bad == Some(Bad::Forgetful) => {
                outputs.retain(|_| self.gave.fetch_not(Ordering::Relaxed));
                Outcome::Done(seen, outputs)
            }
            Outcome::Done(seen, mut outputs) if self.bad == Some(Bad::Generous) => {
                for output in &mut outputs {
                    output.owner = Owner::Secret("aws".parse().unwrap());
                }
                Outcome::Done(seen, outputs)
            }
            Outcome::Stuck(_) | Outcome::Retry(_) | Outcome::Done(..) => outcome,
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
            driver: Habit {
                driver,
                bad,
                gave: AtomicBool::new(false),
            },
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
            secret: None,
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
            secret: None,
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
    check(None, &expect!["13 rules checked"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_takes_silence_for_absence_is_found_out() {
    check(
        Some(Bad::Rash),
        &expect![[r#"
        silence is not absence
        13 rules checked"#]],
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
        13 rules checked"#]],
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
            what came of a task belongs to it, and comes again when it is asked again
            what is stuck says what would help
            13 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_knows_no_remedy_is_found_out() {
    check(
        Some(Bad::Helpless),
        &expect![[r#"
        what is stuck says what would help
        13 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_speaks_unasked_is_found_out() {
    check(
        Some(Bad::Chatty),
        &expect![[r#"
        looking tells of what was asked for, and of absence only where it is known
        13 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_keeps_what_came_of_a_task_is_found_out() {
    for bad in [Bad::Forgetful, Bad::Generous] {
        check(
            Some(bad),
            &expect![[r#"
            what came of a task belongs to it, and comes again when it is asked again
            13 rules checked"#]],
        )
        .await;
    }
}

/// One secret for everybody.
struct Same(&'static str);

impl Open for Same {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        let value = Secret::from_text(self.0.to_owned());
        Box::pin(std::future::ready(Ok::<_, Unopened>(value)))
    }
}

/// How the first task on a machine that names a secret ends when the secret is opened so.
async fn with_secret(secrets: Arc<dyn Open>, given: bool) -> String {
    let lab = Lab::new(None);
    let cast = lab.cast();
    let (machine, action) = if given {
        (&cast.given, Action::Prepare)
    } else {
        (&cast.compute, Action::Create)
    };
    let mut task = cast.task(machine, action);
    let named = SecretRef {
        name: "account".parse().unwrap(),
        key: Some("token".parse().unwrap()),
    };
    task.machine.origin = task.machine.origin.with_secret(Some(named));
    let stop = CancellationToken::new();
    let cx = Context::new(lab.clock, Arc::new(Unheard), secrets, stop, 1);
    match lab.driver.apply(&cx, &task).await {
        Outcome::Done(..) => "done".to_owned(),
        Outcome::Retry(error) => format!("retry: {error}"),
        Outcome::Stuck(error) => format!("stuck: {error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_without_a_key_is_not_let_in() {
    for given in [true, false] {
        assert_eq!(with_secret(Arc::new(Same("x")), given).await, "done");
        assert_eq!(
            with_secret(Arc::new(Same("")), given).await,
            "stuck: secret account/token is empty; set it again with `slipway secret set account token`"
        );
        assert_eq!(
            with_secret(Arc::new(NoSecrets), given).await,
            "stuck: could not open secret account/token, there are none here; \
             set it with `slipway secret set account`"
        );
    }
}

/// Other programs read it: it has the shape of what they know, and names this cluster.
#[tokio::test(start_paused = true)]
async fn a_started_control_plane_gives_a_kubeconfig() {
    let lab = Lab::new(None);
    let cast = lab.cast();
    let mut given = Vec::new();
    for task in cast.life().into_iter().take(2) {
        let stop = CancellationToken::new();
        let cx = Context::new(lab.clock, Arc::new(Unheard), Arc::new(NoSecrets), stop, 1);
        let outcome = lab.driver.apply(&cx, &task).await;
        let Outcome::Done(_, outputs) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            format!("{outputs:?}").matches("Output").count(),
            outputs.len()
        );
        given.extend(outputs);
    }
    let [output] = given.as_slice() else {
        panic!("{given:?}");
    };
    assert_eq!(output.owner, Owner::Cluster(cast.cluster));
    assert_eq!(output.entry.as_str(), "kubeconfig");
    let text = output.value.expose_text().unwrap();
    let read = model::source::parse(text).unwrap();
    assert!(text.contains("https://10.8.0.1:6443"), "{read:?}");
    for field in [
        "certificate-authority-data",
        "client-certificate-data",
        "client-key-data",
    ] {
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(field));
        let data = STANDARD
            .decode(line.unwrap().trim_start_matches(": "))
            .unwrap();
        assert!(data.starts_with(b"-----BEGIN "), "{field}");
    }
}
