//! The simulated driver keeps the contract, and drivers with one bad habit are found out.

use super::Simulated;
use crate::world::{LetGo, Pace, World};
use ::driver::suite::{self, Beat, Cast, Fixture, contract};
use ::driver::{
    Clock, Context, Driver, Keeping, Log, NoSecrets, Open, Opening, Outcome, Target, Unopened,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use model::care::Care;
use model::cluster::{Machine, Origin, Role};
use model::id::{self, ClusterId, MachineId};
use model::name::Name;
use model::observed::{Fact, MachineFact, Observation};
use model::provider::Provider;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
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
    /// Calls a mesh done though somebody did not hear of it.
    Hasty,
    /// Gives every host the same key.
    Lazy,
    /// Does not say what a host has.
    Taciturn,
}

struct Unheard;

impl Log for Unheard {
    fn line(&self, _: Timestamp, _: &str) {}
}

impl Habit {
    /// Says of hosts what this driver says.
    fn tell(&self, seen: &mut [Observation]) {
        for observation in seen {
            if let Fact::Host(_, host) = &mut observation.fact {
                match self.bad {
                    Some(Bad::Lazy) => {
                        let same = || format!("{}=", "A".repeat(43)).parse().unwrap();
                        host.mesh_key = host.mesh_key.take().map(|_| same());
                    }
                    Some(Bad::Taciturn) => host.balance = None,
                    Some(_) | None => {}
                }
            }
        }
    }

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
            Outcome::Retry(_)
                if self.bad == Some(Bad::Hasty) && task.action.kind() == Kind::Mesh =>
            {
                Outcome::Done(Vec::new(), Vec::new())
            }
            Outcome::Done(mut seen, outputs) => {
                self.tell(&mut seen);
                Outcome::Done(seen, outputs)
            }
            Outcome::Stuck(_) | Outcome::Retry(_) => outcome,
        }
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let mut seen = self.driver.probe(cx, target).await;
        self.tell(&mut seen);
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
    hosts: bool,
}

impl Lab {
    fn new(bad: Option<Bad>) -> Self {
        Self::with(bad, false)
    }

    fn with(bad: Option<Bad>, hosts: bool) -> Self {
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
            hosts,
        }
    }
}

fn machine(cluster: ClusterId, name: &str, role: Role) -> Machine {
    let origin = Origin::Made {
        provider: "lab".parse().unwrap(),
        via: Provider::Simulated,
        region: "north".to_owned(),
        zone: None,
        server_type: "small".to_owned(),
        image: "debian-12".to_owned(),
        hardware: model::hardware::Hardware::default(),
        secret: None,
    };
    suite::machine(cluster, name, role, 1, origin).unwrap()
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
        let endpoint = if self.hosts {
            Ipv4Addr::new(172, 16, 5, number)
        } else {
            Ipv4Addr::new(192, 0, 2, number)
        };
        let given = Origin::Given {
            endpoint,
            ssh_port: 22,
            username: "root".to_owned(),
            secret: None,
            jump: None,
        };
        let machine = |name: &str, role, last| {
            let mut made = machine(cluster, name, role);
            if let (Origin::Made { via, .. }, true) = (&mut made.origin, self.hosts) {
                *via = Provider::Sandbox;
                made.address = Ipv4Addr::new(10, 8, 0, last);
            }
            made
        };
        Cast {
            cluster,
            name,
            network: "10.8.0.0/24".parse().unwrap(),
            version: "1.34.0".parse().unwrap(),
            next_version: "1.35.0".parse().unwrap(),
            control: machine("control", Role::Control, 1),
            compute: machine("compute", Role::Compute, 2),
            given: Machine {
                origin: given,
                ..machine("given", Role::Compute, 3)
            },
            balancer: self.hosts.then(|| machine("door", Role::Balancer, 4)),
            kubernetes: true,
        }
    }

    fn impossible(&self, cast: &Cast) -> Task {
        let mut task = cast.task(&cast.compute, Action::Create);
        if let Origin::Made {
            image, server_type, ..
        } = &mut task.machine.origin
        {
            "windows-3.11".clone_into(image);
            "gold".clone_into(server_type);
        }
        self.world.offer("gold", false);
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

    fn unforeseen(
        &self,
        task: &Task,
        before: &[Observation],
        after: &[Observation],
    ) -> Vec<String> {
        plan::unforeseen(
            task,
            &before.iter().cloned().collect(),
            after,
            self.clock.now(),
        )
    }
}

/// Names the rules that a driver with this habit breaks.
async fn check(bad: Option<Bad>, expected: &Expect) {
    judge(&Lab::new(bad), expected).await;
}

/// The same where machines are hosts.
async fn check_hosts(bad: Option<Bad>, expected: &Expect) {
    judge(&Lab::with(bad, true), expected).await;
}

async fn judge(lab: &Lab, expected: &Expect) {
    let report = contract(lab).await;
    let mut told: Vec<_> = report.broken().map(|checked| checked.rule).collect();
    let count = format!("{} rules checked", report.checked.len());
    told.push(&count);
    expected.assert_eq(&told.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_whole_life_has_every_kind_of_task() {
    let kinds = |hosts: bool| -> BTreeSet<_> {
        let life = Lab::with(None, hosts).cast().life();
        life.iter().map(Beat::kind).collect()
    };
    // Names are given by whoever answers for a zone, and ports opened by a cloud, and not by those who
    // work on machines.
    let of_others = [Kind::Name, Kind::Expose, Kind::Shut];
    let on_machines = || {
        let all = Kind::ALL.into_iter();
        all.filter(|kind| !of_others.contains(kind))
    };
    assert_eq!(kinds(true), on_machines().collect());
    let of_hosts = [Kind::Key, Kind::Equip, Kind::Mesh, Kind::Balance];
    let others = on_machines().filter(|kind| !of_hosts.contains(kind));
    assert_eq!(kinds(false), others.collect());
}

#[tokio::test(start_paused = true)]
async fn with_hosts_too_it_keeps_every_rule() {
    check_hosts(None, &expect!["19 rules checked"]).await;
    for let_go in [LetGo::Stops, LetGo::Either] {
        let lab = Lab::with(None, true);
        lab.world.when_let_go(let_go);
        judge(&lab, &expect!["19 rules checked"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_forgets_who_did_not_hear_is_found_out() {
    check_hosts(
        Some(Bad::Hasty),
        &expect![[r#"
        a mesh that somebody does not hear of names them, and the others hear of it
        19 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_gives_everybody_one_key_is_found_out() {
    check_hosts(
        Some(Bad::Lazy),
        &expect![[r#"
        a host that is made again is bare, and has another key
        19 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_does_not_tell_what_a_host_has_is_found_out() {
    check_hosts(
        Some(Bad::Taciturn),
        &expect![[r#"
        a task leads where it is foreseen to lead
        what a host was told, it tells
        19 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_simulated_driver_keeps_every_rule() {
    check(None, &expect!["15 rules checked"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_takes_silence_for_absence_is_found_out() {
    check(
        Some(Bad::Rash),
        &expect![[r#"
            silence is not absence
            15 rules checked"#]],
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
            15 rules checked"#]],
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
            what was dropped in the middle can be done again
            an attempt that is cancelled before it starts begins nothing
            an attempt that is cancelled in the middle ends soon
            what came of a task belongs to it, and comes again when it is asked again
            what is stuck says what would help
            15 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_knows_no_remedy_is_found_out() {
    check(
        Some(Bad::Helpless),
        &expect![[r#"
            what is stuck says what would help
            15 rules checked"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_speaks_unasked_is_found_out() {
    check(
        Some(Bad::Chatty),
        &expect![[r#"
            looking tells of what was asked for, and of absence only where it is known
            a task leads where it is foreseen to lead
            15 rules checked"#]],
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
            15 rules checked"#]],
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

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
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
    let (version, network) = (cast.version, cast.network);
    for action in [
        Action::Create,
        Action::Init {
            version,
            network,
            care: Care::default(),
        },
    ] {
        let task = cast.task(&cast.control, action);
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

/// Another driver makes the machines; this one makes nodes of them.
#[tokio::test(start_paused = true)]
async fn a_driver_for_kubernetes_alone_borrows_machines_and_gives_them_back() {
    let lab = Lab::with(None, true);
    let cast = lab.cast();
    let driver = Simulated::kubernetes_only(lab.world.clone());
    let (version, network) = (cast.version, cast.network);
    let act = async |machine: &Machine, action: Action| {
        let stop = CancellationToken::new();
        let cx = Context::new(lab.clock, Arc::new(Unheard), Arc::new(NoSecrets), stop, 1);
        let outcome = driver.apply(&cx, &cast.task(machine, action)).await;
        match outcome {
            Outcome::Done(seen, outputs) => {
                let node = |seen: &Observation| {
                    matches!(
                        seen.fact,
                        Fact::Node(..)
                            | Fact::ControlPlane(_)
                            | Fact::Certificates(..)
                            | Fact::Snapshots(_)
                    )
                };
                assert!(seen.iter().all(node), "{seen:?}");
                format!("done, {} seen, {} kept", seen.len(), outputs.len())
            }
            Outcome::Retry(error) | Outcome::Stuck(error) => error.attempted,
        }
    };
    let (control, given) = (&cast.control, &cast.given);
    for _ in 0..2 {
        let init = Action::Init {
            version,
            network,
            care: Care::default(),
        };
        assert_eq!(act(control, init).await, "done, 4 seen, 1 kept");
        let join = Action::Join {
            version,
            care: Care::default(),
            gated: false,
        };
        assert_eq!(act(given, join).await, "done, 1 seen, 0 kept");
    }
    assert_eq!((lab.world.machines(), lab.world.hosts()), (1, 1));
    assert_eq!(act(given, Action::Drain).await, "done, 1 seen, 0 kept");
    assert_eq!(act(given, Action::Leave).await, "done, 1 seen, 0 kept");
    for _ in 0..2 {
        assert_eq!(act(given, Action::Release).await, "done, 1 seen, 0 kept");
    }
    assert_eq!(
        act(control, Action::Create).await,
        "create of control is no work of Kubernetes"
    );
    lab.world.condemn(cast.cluster);
    assert_eq!(act(control, Action::Delete).await, "done, 0 seen, 0 kept");
    assert_eq!(lab.world.picture(cast.cluster), "");
    assert_eq!(lab.world.violations(), []);
}

/// Whoever asks again gets the same key, and can tell that it opens nothing real.
#[tokio::test(start_paused = true)]
async fn a_key_comes_again_and_says_that_it_is_simulated() {
    let lab = Lab::with(None, true);
    let cast = lab.cast();
    let mut keys = Vec::new();
    for machine in [&cast.control, &cast.compute] {
        let stop = CancellationToken::new();
        let cx = Context::new(lab.clock, Arc::new(Unheard), Arc::new(NoSecrets), stop, 1);
        let outcome = lab
            .driver
            .apply(&cx, &cast.task(machine, Action::Key))
            .await;
        let Outcome::Done(seen, outputs) = outcome else {
            panic!("{outcome:?}");
        };
        let [
            Observation {
                fact: Fact::Access(access),
                ..
            },
        ] = seen.as_slice()
        else {
            panic!("{seen:?}");
        };
        let [output] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        assert_eq!(output.owner, Owner::Cluster(cast.cluster));
        assert_eq!(output.entry.as_str(), "ssh-key");
        let text = output.value.expose_text().unwrap().to_owned();
        assert!(text.contains("simulated key") && access.public.contains("simulated key"));
        keys.push((text, access.public.clone()));
    }
    assert_eq!(keys[0], keys[1]);
}
