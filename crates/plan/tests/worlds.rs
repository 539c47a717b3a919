//! Random worlds: the planner converges, deterministically, within its budgets.
//!
//! A world is a cluster of any shape, of hosts or of simulated machines, behind a load balancer
//! or not, edited once, with work under way, seen in any honest or
//! dishonest state, under any budgets and windows, with secrets that nobody has set. From
//! each the journey must end, the checker must stay silent at every step, no budget may be
//! exceeded and no window left, and a plan made twice must be the same twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::admit::admit;
use model::balancer::Balance;
use model::cluster::{Desired, Machine, Origin, Role};
use model::host::{Fingerprint, Recipe};
use model::id::{MachineId, TaskId};
use model::mesh::{Member, Mesh};
use model::name::Name;
use model::observed::{HostFact, MachineFact, NodeFact, Observed, Seen};
use model::secret::SecretRef;
use model::source;
use model::task::{Action, Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
use plan::{
    Elsewhere, Known, Phase, Plan, Slot, View, check, expand, journey, minutes, plan, predict,
    retire,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Given hosts: the name of their pool, and how many of them.
type Hosts = (&'static str, u8);

/// How many machines may be out of service at once, and when.
#[derive(Debug, Clone)]
struct Rules {
    cluster: u32,
    pool: Option<u32>,
    group: u32,
    /// The minute of the day, and for how long; every day.
    window: Option<(u32, u32)>,
}

fn rules() -> impl Strategy<Value = Rules> {
    (
        1..4_u32,
        prop::option::of(1..3_u32),
        1..4_u32,
        prop::option::of((0..1_440_u32, 10..120_u32)),
    )
        .prop_map(|(cluster, pool, group, window)| Rules {
            cluster,
            pool,
            group,
            window,
        })
}

/// What stands before a cluster, and how its hosts reach the world.
#[derive(Debug, Clone)]
struct Front {
    /// Whether machines are real hosts, or those of the simulated world.
    real: bool,
    /// How many machines its load balancer has, if it has one.
    door: Option<u32>,
    port: u16,
    proxy: bool,
    /// What is played on nodes before they join, and when they have.
    playbooks: [Option<u8>; 2],
}

impl Front {
    /// As the manifest writes it: the provider, the pool, the proxy and the playbooks, the load
    /// balancer.
    fn written(&self) -> [String; 4] {
        let via = if self.real { "sandbox" } else { "simulated" };
        let proxy = if self.proxy {
            "installationProxy: {mode: on, endpoint: 'http://proxy.example.org'}"
        } else {
            "installationProxy: {mode: off}"
        };
        let playbook = |name: &str, text: Option<u8>| {
            let text = text.map(|text| format!("{{name: {name}, text: '- {{hosts: n{text}}}'}}"));
            text.unwrap_or_default()
        };
        let [before, after] = self.playbooks;
        let (before, after) = (playbook("before", before), playbook("after", after));
        let playbooks = format!("{{beforeJoining: [{before}], afterJoining: [{after}]}}");
        let proxy = format!("{proxy}\n        playbooks: {playbooks}");
        let mut written = [via.to_owned(), String::new(), proxy, String::new()];
        if let Some(count) = self.door {
            let port = self.port;
            written[1] = format!(
                "- {{name: door, providerSpec: {{name: lab, region: n}}, count: {count}, serverType: lite, image: debian-12}}"
            );
            written[3] = format!(
                "
  loadBalancers:
    roles:
      - {{name: web, protocol: tcp, port: {port}, targetPort: 30443, targetPools: [muscle]}}
      - {{name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}}
    clusters: [{{name: front, targetedK8s: edge, pools: [door], roles: [web, api]}}]"
            );
        }
        written
    }
}

fn front() -> impl Strategy<Value = Front> {
    let door = prop::option::of(1..3_u32);
    let playbook = || prop::option::of(1..3_u8);
    let playbooks = [playbook(), playbook()];
    (door, 1..3_u16, any::<bool>(), playbooks).prop_map(|(door, port, proxy, playbooks)| Front {
        real: true,
        door,
        port,
        proxy,
        playbooks,
    })
}

fn manifest(
    control: u32,
    compute: u32,
    hosts: Hosts,
    minor: u16,
    (rules, front): (&Rules, &Front),
) -> model::manifest::Manifest {
    let (pool, count) = hosts;
    let block = if front.real { "192.168.3" } else { "203.0.113" };
    let nodes: Vec<_> = (0..count)
        .map(|n| format!("{{endpoint: {block}.{n}, secretRef: {{name: keys}}}}"))
        .collect();
    let [via, door, proxy, balancers] = front.written();
    let (fixed, name) = if nodes.is_empty() {
        (String::new(), String::new())
    } else {
        let nodes = nodes.join(", ");
        let fixed =
            format!("static: [{{name: {pool}, nodes: [{nodes}], disruption: {{group: rack}}}}]");
        (fixed, format!(", {pool}"))
    };
    let own = rules
        .pool
        .map(|most| format!("unavailable: {most}, "))
        .unwrap_or_default();
    let window = rules.window.map(|(start, open)| {
        format!(
            "{{start: '{:02}:{:02}', duration: {open}m}}",
            start / 60,
            start % 60
        )
    });
    let windows = window.unwrap_or_default();
    let Rules { cluster, group, .. } = rules;
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: {via}, secretRef: {{name: account}}}}]
  disruption: {{groups: [{{name: rack, unavailable: {group}}}]}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: lite, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: lite, image: debian-12, disruption: {{{own}group: rack}}}}
      {door}
    {fixed}
  kubernetes:
    clusters:
      - name: edge
        version: v1.{minor}.0
        network: 10.8.0.0/24
        disruption: {{unavailable: {cluster}, windows: [{windows}]}}
        pools: {{control: [brain], compute: [muscle{name}]}}
        {proxy}{balancers}
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

/// What a host says of itself, and whether that is as it should be.
#[derive(Debug, Clone, Copy)]
enum Kit {
    Unknown,
    Bare,
    Keyed { old: bool },
    Meshed { told: bool, live: bool },
    Whole,
}

fn kit() -> impl Strategy<Value = Kit> {
    prop_oneof![
        1 => Just(Kit::Unknown),
        1 => Just(Kit::Bare),
        2 => any::<bool>().prop_map(|old| Kit::Keyed { old }),
        2 => any::<(bool, bool)>().prop_map(|(told, live)| Kit::Meshed { told, live }),
        6 => Just(Kit::Whole),
    ]
}

#[derive(Debug, Clone)]
struct World {
    front: (Front, Front),
    /// Whether there is a key that opens its machines.
    access: bool,
    kits: Vec<Kit>,
    control: (u32, u32),
    compute: (u32, u32),
    hosts: (Hosts, Hosts),
    upgrade: bool,
    delete: bool,
    sights: Vec<Sight>,
    work: Vec<Option<(Kind, State)>>,
    /// Who holds a row of the ledger, by right or by mistake.
    rows: Vec<bool>,
    rules: (Rules, Rules),
    /// Machines of other clusters of the group that are out of service.
    elsewhere: u8,
    /// Whether the provider's account and the keys of given machines are missing.
    missing: (bool, bool),
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
        Just(Kind::Delete),
        Just(Kind::Key),
        Just(Kind::Equip),
        Just(Kind::Mesh),
        Just(Kind::Balance),
        Just(Kind::Init),
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
        prop::collection::vec(prop::bool::weighted(0.15), 24),
        (
            (rules(), rules()),
            0..2_u8,
            (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
            (any::<bool>(), front(), front()),
            any::<bool>(),
            prop::collection::vec(kit(), 24),
        ),
    )
        .prop_map(
            |(
                c1,
                c2,
                w1,
                w2,
                upgrade,
                delete,
                hosts,
                sights,
                work,
                rows,
                (rules, elsewhere, missing, (real, before, after), access, kits),
            )| {
                let front = |front| Front { real, ..front };
                World {
                    front: (front(before), front(after)),
                    access,
                    kits,
                    control: (c1, c2),
                    compute: (w1, w2),
                    hosts,
                    upgrade,
                    delete,
                    sights,
                    work,
                    rows,
                    rules,
                    elsewhere,
                    missing,
                }
            },
        )
}

/// The desired state after an edit.
fn edited(world: &World, minor: u16) -> Desired {
    let ((c1, c2), (w1, w2)) = (world.control, world.compute);
    let before = manifest(c1, w1, world.hosts.0, 34, (&world.rules.0, &world.front.0));
    let after = manifest(
        c2,
        w2,
        world.hosts.1,
        minor,
        (&world.rules.1, &world.front.1),
    );
    let first = grown(None, &before);
    grown(Some((&first, &Observed::default())), &after)
}

/// The desired state after an edit, and what is seen of its machines.
fn made(world: &World) -> (Desired, Observed) {
    let minor = if world.upgrade { 35 } else { 34 };
    let next = edited(world, minor);
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
                let node = NodeFact::Joined {
                    ready,
                    cordoned,
                    version,
                };
                (running, machine.role.is_node().then_some(node))
            }
        };
        let seen = Seen {
            machine: Some((fact, NOW)),
            node: node.map(|node| (node, NOW)),
            host: None,
        };
        observed.machines.insert(machine.id, seen);
    }
    kitted(world, &next, &mut observed);
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

/// Whether a machine was seen as a node.
fn joined(observed: &Observed, machine: &Machine) -> bool {
    let seen = observed.machines.get(&machine.id);
    let node = seen.and_then(|seen| seen.node.as_ref());
    matches!(node, Some((NodeFact::Joined { .. }, _)))
}

/// What hosts say of themselves.
fn kitted(world: &World, desired: &Desired, observed: &mut Observed) {
    observed.access = world.access.then(|| "ssh-ed25519 AAAA".to_owned());
    let placed = || desired.all().zip(world.kits.iter().cycle());
    for (machine, kit) in placed().filter(|(machine, _)| machine.origin.is_host()) {
        let old = Recipe {
            purpose: machine.role.purpose(),
            proxy: None,
            playbooks: Vec::new(),
        };
        let recipe = match kit {
            Kit::Keyed { old: true } => old,
            Kit::Unknown
            | Kit::Bare
            | Kit::Keyed { old: false }
            | Kit::Meshed { .. }
            | Kit::Whole => desired.recipe(machine, joined(observed, machine)),
        };
        let keyed = !matches!(kit, Kit::Unknown | Kit::Bare);
        let key = format!("{:A<43}=", machine.id.to_string().replace('-', "/"));
        let host = HostFact {
            at: Some(IpAddr::V4(machine.address)),
            equipped: keyed.then(|| recipe.fingerprint()),
            mesh_key: keyed.then(|| key.parse().unwrap()),
            ..HostFact::default()
        };
        if let Some(seen) = observed.machines.get_mut(&machine.id) {
            seen.host = (!matches!(kit, Kit::Unknown)).then_some((host, NOW));
        }
    }
    let mesh = mesh(desired, observed);
    for (machine, kit) in placed() {
        let told = match kit {
            Kit::Whole => Some((true, true)),
            Kit::Meshed { told, live } => Some((*told, *live)),
            Kit::Unknown | Kit::Bare | Kit::Keyed { .. } => None,
        };
        let fact = mesh.tunnel(machine.id).map(|tunnel| tunnel.fact());
        if let (Some((told, live)), Some(mut fact)) = (told, fact)
            && let Some((host, _)) = observed
                .machines
                .get_mut(&machine.id)
                .unwrap()
                .host
                .as_mut()
        {
            let other = || Fingerprint::of_text("something else");
            fact.told = if told { fact.told } else { other() };
            fact.live = if live { fact.live } else { other() };
            host.mesh = Some(fact);
        }
    }
}

/// The mesh of all hosts that have a key.
fn mesh(desired: &Desired, observed: &Observed) -> Mesh {
    let member = |machine: &Machine| {
        let (host, _) = observed.machines.get(&machine.id)?.host.as_ref()?;
        Some(Member {
            machine: machine.clone(),
            key: host.mesh_key.clone()?,
            at: host.at?,
        })
    };
    let mut members: Vec<_> = desired.all().filter_map(member).collect();
    members.sort_by_key(|member| member.machine.address);
    let to = members.iter().map(|member| member.machine.id).collect();
    Mesh {
        network: desired.network,
        members,
        to,
    }
}

/// The unfinished tasks of a world, each as an earlier plan would have made it.
fn under_way(world: &World, desired: &Desired, observed: &Observed) -> Vec<Open> {
    let version = Version {
        minor: 34,
        patch: 0,
    };
    let given = |machine: &Machine| matches!(machine.origin, Origin::Given { .. });
    let mesh = mesh(desired, observed);
    let action = |machine: &Machine, kind: Kind| match kind {
        Kind::Key => Action::Key,
        Kind::Equip => Action::Equip {
            recipe: desired.recipe(machine, joined(observed, machine)),
        },
        Kind::Mesh => Action::Mesh { mesh: mesh.clone() },
        Kind::Balance => Action::Balance {
            balance: Balance {
                address: machine.address,
                listeners: Vec::new(),
            },
        },
        Kind::Init => Action::Init {
            version,
            network: desired.network,
        },
        Kind::Create if given(machine) => Action::Prepare,
        Kind::Delete if given(machine) => Action::Release,
        Kind::Join => Action::Join { version },
        Kind::Drain => Action::Drain,
        Kind::Leave => Action::Leave,
        Kind::Delete => Action::Delete,
        Kind::Create | Kind::Prepare | Kind::Upgrade | Kind::Uncordon | Kind::Release => {
            Action::Create
        }
    };
    let fits = |machine: &Machine, kind: Kind| match kind {
        Kind::Key | Kind::Equip | Kind::Mesh => machine.origin.is_host(),
        Kind::Balance => machine.role == Role::Balancer,
        Kind::Init => machine.role == Role::Control && !observed.initialised,
        Kind::Join | Kind::Drain | Kind::Upgrade | Kind::Uncordon | Kind::Leave => {
            machine.role.is_node()
        }
        Kind::Create | Kind::Prepare | Kind::Delete | Kind::Release => true,
    };
    let placed = desired.all().zip(world.work.iter().cycle());
    let mut once = BTreeSet::new();
    placed
        .filter_map(|(machine, work)| {
            let (kind, state) = (*work)?;
            // Of some there is only ever one.
            let alone = matches!(kind, Kind::Key | Kind::Mesh | Kind::Init);
            if !fits(machine, kind) || alone && !once.insert(kind) {
                return None;
            }
            Some(Open {
                id: TaskId::derive(model::id::Origin {
                    parent: "test",
                    name: machine.name.as_str(),
                    ordinal: u64::from(machine.ordinal),
                    incarnation: 0,
                }),
                machine: machine.id,
                action: action(machine, kind),
                origin: machine.origin.clone(),
                state,
                attempts: 1,
                not_before: NOW,
                error: (state == State::Stuck).then(|| "no luck".to_owned()),
            })
        })
        .collect()
}

/// The rows that other clusters hold, and the secrets that nobody has set.
fn around(world: &World) -> (Vec<Elsewhere>, Vec<SecretRef>) {
    let row = |n| Elsewhere {
        cluster: "west".parse().unwrap(),
        machine: format!("west-{n}").parse().unwrap(),
        group: "rack".parse().unwrap(),
    };
    let secret = |name: &str, key: Option<&str>| SecretRef {
        name: name.parse().unwrap(),
        key: key.map(|key| key.parse().unwrap()),
    };
    let (account, keys) = world.missing;
    let mut missing = Vec::new();
    missing.extend(account.then(|| secret("account", None)));
    missing.extend(keys.then(|| secret("keys", Some("privatekey"))));
    ((0..world.elsewhere).map(row).collect(), missing)
}

/// What the ledger would say after a step, against what may be. `before` are its rows after
/// those that are given back.
fn excess(view: &View<'_>, step: &Plan, before: &[Slot]) -> Option<String> {
    let budgets = &view.desired.disruption;
    let role = |slot: &Slot| {
        let machine = view
            .desired
            .all()
            .find(|machine| machine.id == slot.machine);
        machine.map(|machine| machine.role)
    };
    for new in &step.disturbs {
        let rows = || before.iter().chain(&step.disturbs);
        let count = |among: &dyn Fn(&Slot) -> bool| {
            u32::try_from(rows().filter(|row| among(row)).count()).unwrap()
        };
        if count(&|_| true) > budgets.unavailable {
            return Some(format!("{} exceeds the budget of the cluster", new.name));
        }
        if budgets
            .of_pool(&new.pool)
            .is_some_and(|most| count(&|row| row.pool == new.pool) > most)
        {
            return Some(format!("{} exceeds the budget of its pool", new.name));
        }
        let there = u32::try_from(view.elsewhere.len()).unwrap();
        if let Some(group) = &new.group
            && count(&|row| row.group.as_ref() == Some(group)) + there > budgets.groups[group]
        {
            return Some(format!("{} exceeds the budget of its group", new.name));
        }
        if role(new) == Some(Role::Control) && count(&|row| role(row) == Some(Role::Control)) > 1 {
            return Some(format!("{} is the second control machine", new.name));
        }
        if budgets.windows.opens(view.now).is_some() {
            return Some(format!(
                "{} is taken out of service outside its windows",
                new.name
            ));
        }
    }
    let without = step.tasks.iter().find(|task| {
        let mut secrets = task.machine.origin.secrets_for(task.action.kind());
        secrets.any(|secret| view.missing.contains(secret))
    });
    without.map(|task| format!("{} is begun without its secret", task.machine.name))
}

/// A machine that is to stay and on which a control plane may have been started.
fn starting(desired: &Desired, observed: &Observed, open: &[Open]) -> Option<MachineId> {
    let init = open.iter().find(|open| open.action.kind() == Kind::Init)?;
    let fact = observed.machines.get(&init.machine)?.machine.as_ref()?;
    let there = matches!(
        fact.0,
        MachineFact::Running { .. } | MachineFact::Unreachable { .. }
    );
    let mut wanted = desired.machines.iter();
    let stays = wanted.any(|machine| machine.id == init.machine);
    (there && stays).then_some(init.machine)
}

/// A control plane that would be started beside the one that was begun.
fn second_start(view: &View<'_>, step: &Plan, begun: Option<MachineId>) -> Option<String> {
    let begun = begun.filter(|_| !view.observed.initialised)?;
    let mut starts = step.tasks.iter();
    let second =
        starts.find(|task| task.action.kind() == Kind::Init && task.machine.id != begun)?;
    Some(format!("{} would split the cluster", second.machine.name))
}

/// A machine that does not serve, though all is said to be done.
fn unfinished(desired: &Desired, observed: &Observed) -> Option<String> {
    let lacks = |machine: &&Machine| {
        let Some(seen) = observed.machines.get(&machine.id) else {
            return true;
        };
        let host = seen.host.as_ref().map(|(host, _)| host);
        let joined = matches!(seen.node, Some((NodeFact::Joined { .. }, _)));
        let meshed = host.is_some_and(|host| host.mesh.is_some());
        let balances = host.is_some_and(|host| host.balance.is_some());
        machine.role.is_node() != joined
            || machine.origin.is_host() && !meshed
            || machine.role == Role::Balancer && !balances
    };
    let found = desired.machines.iter().find(lacks)?;
    Some(found.name.to_string())
}

/// The clock after a step.
fn later(now: Timestamp, step: &Plan, going: &[Open]) -> Timestamp {
    let new = step.tasks.iter().map(|task| task.action.kind());
    let longest = new
        .chain(going.iter().map(|open| open.action.kind()))
        .map(minutes)
        .max();
    now.plus(Duration::from_secs(u64::from(longest.unwrap_or(0)) * 60))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_safe_and_the_journey_ends(world in world()) {
        let (desired, mut observed) = made(&world);
        let (mut elsewhere, missing) = around(&world);
        let mut open = under_way(&world, &desired, &observed);
        let rows = desired.all().zip(&world.rows).filter(|(_, row)| **row);
        let mut ledger: Vec<_> = rows.map(|(machine, _)| Slot::of(machine, &desired.disruption)).collect();
        let begun = starting(&desired, &observed, &open);
        let mut ended = None;
        let mut now = NOW;
        for round in 0..400_u64 {
            let view = View { desired: &desired, observed: &observed, open: &open, ledger: &ledger, elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &missing, parent: round, now };
            let step = plan(&view);
            prop_assert_eq!(check(&view, &step), Vec::new());
            prop_assert_eq!(format!("{step:?}"), format!("{:?}", plan(&view)));
            let mut rows = ledger.clone();
            rows.retain(|slot| !step.release.contains(&slot.machine));
            prop_assert_eq!(excess(&view, &step, &rows), None);
            prop_assert_eq!(second_start(&view, &step, begun), None);
            rows.extend(step.disturbs.iter().cloned());
            ledger = rows;
            // What is stuck stays so until nobody wants it; everything else ends well.
            open.retain(|open| !step.withdraw.contains(&open.id));
            let (stuck, going): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.state == State::Stuck);
            open = stuck;
            if step.tasks.is_empty() && going.is_empty() {
                if let Some(opens) = step.wake {
                    prop_assert!(opens > now, "the window that is waited for is open");
                    now = opens;
                } else if elsewhere.is_empty() {
                    ended = Some(step);
                    break;
                }
                // The others give back what they hold, too.
                elsewhere.clear();
                continue;
            }
            now = later(now, &step, &going);
            for open in going {
                let machine = desired.all().find(|machine| machine.id == open.machine).unwrap();
                predict(&mut observed, machine, &open.action, now);
            }
            for task in &step.tasks {
                predict(&mut observed, &task.machine, &task.action, now);
            }
        }
        let Some(last) = ended else { return Err(TestCaseError::fail("no end after 400 rounds")) };
        match last.summary.phase {
            Phase::Done | Phase::Gone => {
                prop_assert!(last.held.is_empty());
                prop_assert_eq!(unfinished(&desired, &observed), None);
            }
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
        let (elsewhere, _) = around(&world);
        let view = View { desired: &desired, observed: &observed, open: &[], ledger: &[], elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &[], parent: 0, now: NOW };
        let told = journey(&view);
        prop_assert_eq!(told.ends, if world.delete { Phase::Gone } else { Phase::Done });
        // Everybody is connected at once. Only who has to wait for somebody's address comes later.
        let steps = || told.blocks.iter().flat_map(|block| block.rounds.iter().flatten());
        let times = |kind: Kind| steps().filter(|step| step.kind == kind).count();
        let real = world.front.1.real && !world.delete;
        prop_assert_eq!(times(Kind::Key), usize::from(real && !world.access), "{}", told);
        prop_assert!(times(Kind::Mesh) <= 2 && (times(Kind::Mesh) > 0) == real, "{}", told);
    }

    #[test]
    fn a_running_cluster_is_upgraded_within_budgets_and_windows(world in world()) {
        let mut world = world;
        world.delete = false;
        world.upgrade = true;
        for sight in &mut world.sights {
            *sight = Sight::Node { ready: true, cordoned: false, old: true };
        }
        let (desired, observed) = made(&world);
        let (elsewhere, _) = around(&world);
        let view = View { desired: &desired, observed: &observed, open: &[], ledger: &[], elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &[], parent: 0, now: NOW };
        let told = journey(&view);
        prop_assert_eq!(told.ends, Phase::Done, "{}", told);
        // Nobody is forgotten, and never are more taken out of service at once than may be.
        for machine in desired.all().filter(|machine| machine.role.is_node()) {
            prop_assert!(told.effects.contains_key(&machine.name), "{}", told);
        }
        let most = desired.disruption.unavailable;
        for step in told.blocks.iter().flat_map(|block| block.rounds.iter().flatten()) {
            prop_assert!(step.kind != Kind::Drain || step.machines <= most, "{}", told);
        }
    }
}
