//! Hosts in the simulated world: what is on them survives what a disk survives, and no more.

use super::super::effect::Change;
use super::super::{Begun, LetGo, Rule, Step};
use super::{Pace, Refusal, World, create};
use ::driver::Clock;
use model::balancer::{Balance, Listener, Protocol};
use model::care::Care;
use model::cluster::{Machine, Origin, Role};
use model::host::{Proxy, Purpose, Recipe};
use model::id::{self, MachineId};
use model::mesh::{Member, Mesh};
use model::observed::{Fact, HostFact, MachineFact, NodeFact};
use model::provider::Provider;
use model::task::{Action, Task};
use model::time::Timestamp;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// A world whose clock stands still until somebody moves it on.
async fn world() -> World {
    let clock = Clock::starting_at(Timestamp::from_millis(1_000_000));
    let world = World::new(clock, Pace::Realistic, 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    world
}

fn machine(name: &str, last: u8) -> Machine {
    let mut machine = create(name).machine;
    machine.id = MachineId::derive(id::Origin {
        parent: "hosts",
        name,
        ordinal: 0,
        incarnation: 0,
    });
    machine.address = Ipv4Addr::new(10, 8, 0, last);
    machine.role = Role::Control;
    if let Origin::Made { via, .. } = &mut machine.origin {
        *via = Provider::Sandbox;
    }
    machine
}

fn given(name: &str, last: u8) -> Machine {
    let origin = Origin::Given {
        endpoint: Ipv4Addr::new(172, 16, 5, last),
        ssh_port: 22,
        username: "root".to_owned(),
        secret: None,
        jump: None,
    };
    Machine {
        origin,
        ..machine(name, last)
    }
}

fn task(machine: &Machine, action: Action) -> Task {
    Task {
        machine: machine.clone(),
        action,
        ..create("anybody")
    }
}

fn equip() -> Action {
    let recipe = Recipe {
        purpose: Purpose::Node,
        proxy: None,
        playbooks: Vec::new(),
    };
    Action::Equip { recipe }
}

fn begin(world: &World, task: &Task) -> Begun {
    match Change::of(task) {
        Some(change) => world.begin(task, &change, 1).unwrap(),
        None if task.action == Action::Key => world.order_key(task, "public", 1).unwrap(),
        None => world.order(task, 1).unwrap(),
    }
}

/// Does it, and waits until it is done.
async fn done(world: &World, machine: &Machine, action: Action) {
    let task = task(machine, action);
    let begun = begin(world, &task);
    tokio::time::advance(begun.until.since(world.now())).await;
    assert_eq!(
        world.step(&task),
        Ok(Step::Done),
        "{:?}",
        task.action.kind()
    );
}

async fn raised(world: &World, machine: &Machine) {
    let first = match machine.origin {
        Origin::Made { .. } => Action::Create,
        Origin::Given { .. } => Action::Prepare,
    };
    done(world, machine, first).await;
    done(world, machine, equip()).await;
}

fn told(world: &World, machine: &Machine) -> Option<HostFact> {
    let cluster = create("anybody").cluster;
    let facts = world.facts(cluster, std::slice::from_ref(machine)).unwrap();
    facts.into_iter().find_map(|fact| match fact {
        Fact::Host(_, host) => Some(host),
        Fact::Machine(..)
        | Fact::Node(..)
        | Fact::ControlPlane(_)
        | Fact::Certificates(..)
        | Fact::Addons(_)
        | Fact::Strays(_)
        | Fact::Silence(_)
        | Fact::Snapshots(_)
        | Fact::Restored(_)
        | Fact::Names(..)
        | Fact::Port(..)
        | Fact::Commit(..)
        | Fact::Unresolved(..)
        | Fact::Access(_) => None,
    })
}

fn mesh(world: &World, machines: &[&Machine]) -> Mesh {
    let member = |machine: &&Machine| Member {
        machine: (*machine).clone(),
        key: told(world, machine).unwrap().mesh_key.unwrap(),
        at: IpAddr::V4(machine.address),
        pods: None,
    };
    Mesh {
        network: "10.8.0.0/24".parse().unwrap(),
        pods: None,
        members: machines.iter().map(member).collect(),
        to: machines.iter().map(|machine| machine.id).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_loses_its_power_keeps_what_its_disk_holds_and_starts_again() {
    let world = world().await;
    let (one, two) = (machine("one", 1), machine("two", 2));
    done(&world, &one, Action::Key).await;
    raised(&world, &one).await;
    raised(&world, &two).await;
    let mesh = mesh(&world, &[&one, &two]);
    done(&world, &one, Action::Mesh { mesh }).await;
    let before = told(&world, &one).unwrap();
    assert!(before.mesh.is_some());
    world.cut_power(&one);
    assert_eq!(told(&world, &one), None, "it does not answer");
    world.restore_power(&one);
    let after = told(&world, &one).unwrap();
    assert_ne!(before.boot, after.boot);
    let boot = before.boot.clone();
    assert_eq!(HostFact { boot, ..after }, before);
    assert_eq!(world.violations(), []);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_made_again_and_a_host_that_is_given_again_have_other_keys() {
    let world = world().await;
    let (made, host) = (machine("made", 1), given("given", 2));
    done(&world, &made, Action::Key).await;
    for (machine, end) in [(&made, Action::Delete), (&host, Action::Release)] {
        raised(&world, machine).await;
        let first = told(&world, machine).unwrap();
        done(&world, machine, end).await;
        assert_eq!(told(&world, machine), None);
        let again = match machine.origin {
            Origin::Made { .. } => Action::Create,
            Origin::Given { .. } => Action::Prepare,
        };
        done(&world, machine, again).await;
        let bare = told(&world, machine).unwrap();
        assert_eq!(
            (bare.equipped, bare.mesh_key, bare.mesh),
            (None, None, None)
        );
        done(&world, machine, equip()).await;
        assert_ne!(told(&world, machine).unwrap().mesh_key, first.mesh_key);
    }
}

#[tokio::test(start_paused = true)]
async fn who_loses_its_power_during_a_mesh_misses_it_and_is_named() {
    let world = world().await;
    let (one, two) = (machine("one", 1), machine("two", 2));
    done(&world, &one, Action::Key).await;
    raised(&world, &one).await;
    raised(&world, &two).await;
    let task = task(
        &one,
        Action::Mesh {
            mesh: mesh(&world, &[&one, &two]),
        },
    );
    let begun = begin(&world, &task);
    assert_eq!(
        world.step(&task),
        Ok(Step::UnderWay { until: begun.until }),
        "a second attempt adopts it"
    );
    world.cut_power(&two);
    tokio::time::advance(begun.until.since(world.now())).await;
    let refused = world.step(&task).expect_err("one of them was not told");
    let Refusal::Later(error) = refused else {
        panic!("may work later: {refused:?}");
    };
    assert!(
        error.attempted.starts_with("two does not answer"),
        "{error}"
    );
    assert!(told(&world, &one).unwrap().mesh.is_some());
    world.restore_power(&two);
    assert_eq!(told(&world, &two).unwrap().mesh, None);
    done(&world, &one, task.action.clone()).await;
    assert!(told(&world, &two).unwrap().mesh.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_stays_half_done() {
    let world = world().await;
    world.when_let_go(LetGo::Stops);
    let (one, two) = (machine("one", 1), machine("two", 2));
    done(&world, &one, Action::Key).await;
    raised(&world, &one).await;
    done(&world, &two, Action::Create).await;
    let task_equip = task(&two, equip());
    let begun = begin(&world, &task_equip);
    world.let_go(begun.operation.unwrap());
    tokio::time::advance(Duration::from_mins(10)).await;
    assert_eq!(told(&world, &two).unwrap().mesh_key, None);
    done(&world, &two, equip()).await;

    let action = Action::Mesh {
        mesh: mesh(&world, &[&one, &two]),
    };
    let begun = begin(&world, &task(&one, action.clone()));
    world.let_go(begun.operation.unwrap());
    tokio::time::advance(Duration::from_mins(10)).await;
    let connected = [&one, &two].map(|machine| told(&world, machine).unwrap().mesh.is_some());
    assert_eq!(
        connected,
        [true, false],
        "the first was told, the second was not"
    );
    done(&world, &one, action).await;
}

#[tokio::test(start_paused = true)]
async fn hosts_that_are_made_or_joined_too_early_are_noticed() {
    let world = world().await;
    let one = machine("one", 1);
    done(&world, &one, Action::Create).await;
    let init = Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/24".parse().unwrap(),
        care: Care::default(),
    };
    done(&world, &one, init).await;
    let broken: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
    assert_eq!(
        broken,
        [Rule::Keyless, Rule::NotEquipped, Rule::NotConnected]
    );
    assert_eq!(
        world.violations()[2].to_string(),
        "one was to become a node before it was part of the mesh"
    );
}

#[tokio::test(start_paused = true)]
async fn machines_of_the_simulated_world_are_no_hosts() {
    let world = world().await;
    let plain = create("plain").machine;
    done(&world, &plain, Action::Create).await;
    assert_eq!(told(&world, &plain), None);
    let refused = world.step(&task(&plain, equip()));
    assert!(matches!(refused, Err(Refusal::Never(_))), "{refused:?}");
}

/// A file as it was written before there were hosts.
const OLD: &str = r#"{"state":{"vms":{"1":{"by":{"machine":"machine-0c5w3k9qj2m4x","name":"edge-brain-01","cluster":"cluster-0c5w3k9qj2m4x"},"address":"10.8.0.1","boots_at":1000,"powered":true,"stopping":false}},"hosts":{"192.0.2.7":{"owner":null,"prepared":false,"powered":true}},"clusters":{},"operations":{},"vm_last":1,"operation_last":0,"made":{},"refused":[],"condemned":[],"violations":[],"watched":false}}
{"effect":[2000,{"order":{"vm":2,"by":{"machine":"machine-0c5w3k9qj2m4y","name":"edge-brain-02","cluster":"cluster-0c5w3k9qj2m4x"},"address":"10.8.0.2","boots_at":3000}}]}
{"effect":[2000,{"begin":{"operation":1,"of":{"by":{"machine":"machine-0c5w3k9qj2m4x","name":"edge-brain-01","cluster":"cluster-0c5w3k9qj2m4x"},"role":"control","on":{"vm":1},"change":{"init":{"version":"v1.34.0"}},"until":2500}}}]}
"#;

/// A cluster of two nodes, and a load balancer that sends to the second.
async fn served(world: &World) -> [Machine; 3] {
    let mut machines = [machine("one", 1), machine("two", 2), machine("door", 3)];
    machines[1].role = Role::Compute;
    machines[2].role = Role::Balancer;
    let [one, two, door] = &machines;
    done(world, one, Action::Key).await;
    for machine in [one, two, door] {
        raised(world, machine).await;
    }
    let mesh = mesh(world, &[one, two, door]);
    done(world, one, Action::Mesh { mesh }).await;
    let version = "1.34.0".parse().unwrap();
    let network = "10.8.0.0/24".parse().unwrap();
    done(
        world,
        one,
        Action::Init {
            version,
            network,
            care: Care::default(),
        },
    )
    .await;
    done(
        world,
        two,
        Action::Join {
            version,
            care: Care::default(),
            gated: false,
        },
    )
    .await;
    let balance = to(door, &[two]);
    done(world, door, Action::Balance { balance }).await;
    machines
}

fn to(door: &Machine, targets: &[&Machine]) -> Balance {
    Balance {
        address: door.address,
        listeners: vec![Listener {
            role: "web".parse().unwrap(),
            protocol: Protocol::Tcp,
            port: 443,
            target_port: 30_443,
            targets: targets.iter().map(|target| target.address).collect(),
            proxy_protocol: false,
            sticky: false,
        }],
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_a_load_balancer_sends_to_it_is_noticed() {
    for (forgotten, expected) in [(true, vec![]), (false, vec![Rule::StillTarget])] {
        let world = world().await;
        let [_, two, door] = served(&world).await;
        done(&world, &two, Action::Drain).await;
        if forgotten {
            let balance = to(&door, &[]);
            done(&world, &door, Action::Balance { balance }).await;
        }
        done(&world, &two, Action::Leave).await;
        let broken: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
        assert_eq!(broken, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_equipped_again_at_once_are_noticed() {
    let world = world().await;
    let [one, two, _] = served(&world).await;
    let through = |endpoint: &str| Action::Equip {
        recipe: Recipe {
            purpose: Purpose::Node,
            proxy: Some(Proxy {
                endpoint: endpoint.to_owned(),
                except: Vec::new(),
            }),
            playbooks: Vec::new(),
        },
    };
    let first = begin(&world, &task(&one, through("http://a")));
    begin(&world, &task(&two, through("http://a")));
    let broken: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
    assert_eq!(broken, [Rule::BudgetExceeded]);
    // One after the other they may.
    tokio::time::advance(first.until.since(world.now())).await;
    begin(&world, &task(&one, through("http://b")));
    assert_eq!(world.violations().len(), 1);
}

#[test]
fn a_file_from_before_there_were_hosts_is_still_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.jsonl");
    std::fs::write(&path, OLD).unwrap();
    let world = World::open(&path, Pace::Demo, 0).unwrap();
    assert_eq!(world.machines(), 2);
    assert_eq!(
        world.whole_picture(),
        "edge-brain-01: running, control node v1.34.0\nedge-brain-02: running\n"
    );
}

#[test]
fn what_is_lent_carries_a_node_until_it_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.jsonl");
    let open = || World::open_watched(&path, Pace::Demo, 0).unwrap();
    let cluster = create("anybody").cluster;
    for machine in [machine("made", 1), given("given", 2)] {
        let world = open();
        for _ in 0..2 {
            world.lend(cluster, &machine).unwrap();
        }
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        world.lend(cluster, &machine).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().lines().count(),
            lines,
            "what is there is not written down again"
        );
        let init = Action::Init {
            version: "1.34.0".parse().unwrap(),
            network: "10.8.0.0/24".parse().unwrap(),
            care: Care::default(),
        };
        let task = task(&machine, init);
        begin(&open(), &task);
        assert_eq!(open().made().len(), 0, "nothing was made here");
        world.condemn(cluster);
        for _ in 0..2 {
            open().take_back(machine.id).unwrap();
        }
        assert_eq!(world.machines() + world.hosts() + world.under_way(), 0);
        assert_eq!(world.violations(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn of_what_is_lent_only_the_node_is_told() {
    let world = world().await;
    let one = machine("one", 1);
    let cluster = create("anybody").cluster;
    world.lend(cluster, &one).unwrap();
    let init = Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/24".parse().unwrap(),
        care: Care::default(),
    };
    done(&world, &one, init).await;
    assert_eq!(told(&world, &one), None, "its host is elsewhere");
    let facts = world
        .node_facts(cluster, std::slice::from_ref(&one))
        .unwrap();
    assert!(
        matches!(
            facts.as_slice(),
            [
                Fact::ControlPlane(_),
                Fact::Snapshots(_),
                Fact::Node(_, NodeFact::Joined { ready: true, .. }),
                Fact::Certificates(..)
            ]
        ),
        "{facts:?}"
    );
    assert_eq!(world.violations(), []);
    world.take_back(one.id).unwrap();
    let rules: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
    assert_eq!(rules, [Rule::NodeDestroyed]);
    let facts = world.facts(cluster, std::slice::from_ref(&one)).unwrap();
    assert_eq!(facts, [Fact::Machine(one.id, MachineFact::Absent)]);
}
