//! The smallest world a planner test can be written in: a picture on one line.

use crate::claims::Claim;
use crate::ledger::{Elsewhere, Slot};
use crate::planner::{Plan, View};
use crate::predict::predict;
use crate::vain::Vain;
use model::addon::{self, AddonFact};
use model::balancer::{Listener, Protocol};
use model::cluster::{Balancer, Desired, Forward, Generation, Machine, Origin, Role};
use model::disruption::Disruption;
use model::dns::Names;
use model::host::Playbooks;
use model::id::{self, ClusterId, MachineId, TaskId};
use model::kubernetes::{Cni, Kubernetes};
use model::name::Name;
use model::observed::{
    HostFact, MachineFact, Member, NodeFact, Observed, PortFact, Seen, Wellbeing,
};
use model::provider::{Cloud, Provider};
use model::secret::SecretRef;
use model::snapshot::{EtcdBackup, Snapshot, SnapshotId, SnapshotsFact};
use model::stray::Stray;
use model::task::{Action, Open, State};
use model::time::Timestamp;
use model::upkeep::Repair;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// A cluster, and what was seen of it.
pub(crate) struct World {
    pub(crate) desired: Desired,
    pub(crate) observed: Observed,
    pub(crate) open: Vec<Open>,
    pub(crate) ledger: Vec<Slot>,
    pub(crate) intents: Vec<model::intent::Intent>,
    pub(crate) elsewhere: Vec<Elsewhere>,
    pub(crate) missing: Vec<SecretRef>,
    pub(crate) claimed: Vec<Claim>,
    pub(crate) blocked: Vec<Name>,
    pub(crate) shut_out: Vec<Name>,
    /// How many machines the project may have, where that is limited.
    pub(crate) quota: Option<u32>,
    pub(crate) vain: Vec<Vain>,
    pub(crate) now: Timestamp,
}

impl World {
    /// `want` names the machines to stay, `have` what is seen of machines.
    ///
    /// `c1` is a control machine, `w1` a worker; one that is seen and not wanted is to
    /// leave. Behind the name: nothing for a ready node, `.` booting, `~` running and not
    /// joined, `?` unreachable, `!` not ready, `/` cordoned by us, `|` waiting at its gates, `x` seen
    /// to be absent, `+` the same though its node is still known, `-` never seen, `@35` or `@35.8` for its version. `have` starts with `*` when a control
    /// plane was once started though no member is left.
    pub(crate) fn new(version: &str, want: &str, have: &str) -> Self {
        let wanted: Vec<_> = want.split_whitespace().map(machine).collect();
        let mut world = Self {
            desired: Desired {
                cluster: ClusterId::derive(origin("c", 0)),
                project: Name::default_project(),
                manifest: "m".parse().unwrap(),
                name: "edge".parse().unwrap(),
                incarnation: 0,
                generation: Generation(7),
                version: version.parse().unwrap(),
                stone: None,
                network: "10.8.0.0/16".parse().unwrap(),
                machines: wanted,
                leaving: Vec::new(),
                kubernetes: Kubernetes::default(),
                made: BTreeMap::new(),
                balancers: Vec::new(),
                former: Vec::new(),
                proxy: None,
                playbooks: Playbooks::default(),
                addons: Vec::new(),
                marks: BTreeMap::new(),
                metal: Vec::new(),
                autoscalers: BTreeMap::new(),
                disks: BTreeSet::new(),
                replacing: BTreeSet::new(),
                etcd_backup: Some(EtcdBackup::default()),
                tombstone: want.is_empty(),
                protected: false,
                disruption: Disruption::default(),
                rolls: Vec::new(),
                repair: Repair::default(),
                repaired: BTreeMap::new(),
            },
            observed: Observed::default(),
            open: Vec::new(),
            ledger: Vec::new(),
            intents: Vec::new(),
            elsewhere: Vec::new(),
            missing: Vec::new(),
            claimed: Vec::new(),
            blocked: Vec::new(),
            shut_out: Vec::new(),
            quota: None,
            vain: Vec::new(),
            now: NOW,
        };
        for word in have.split_whitespace() {
            world.see(word);
        }
        world.tend();
        // Most pictures are of something else.
        world.saved(0, Some("1.35.0".parse().unwrap()))
    }

    /// Every node was told what it should be.
    fn tend(&mut self) {
        let Self {
            desired, observed, ..
        } = self;
        let ready = |machine: &&Machine| {
            let seen = observed.machines.get(&machine.id);
            let node = seen.and_then(|seen| seen.node.as_ref());
            let silent = seen.is_some_and(|seen| {
                matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _)))
            });
            let ready = matches!(node, Some((NodeFact::Joined { ready: true, .. }, _)));
            machine.role == Role::Control && ready && !silent
        };
        let api: Vec<_> = desired
            .all()
            .find(ready)
            .map(|at| at.address)
            .into_iter()
            .collect();
        for machine in desired.all() {
            let api = if machine.role == Role::Control {
                &[]
            } else {
                &api[..]
            };
            let seen = observed.machines.get_mut(&machine.id);
            if let Some((NodeFact::Joined { care, .. }, _)) =
                seen.and_then(|seen| seen.node.as_mut())
            {
                *care = Some(crate::care::care(desired, machine, api).fingerprint());
            }
        }
    }

    fn see(&mut self, word: &str) {
        if word == "*" {
            self.observed.initialised = true;
            return;
        }
        let (bare, minor) = word.split_once('@').unwrap_or((word, "34"));
        let marks: Vec<char> = bare
            .chars()
            .filter(|c| !c.is_ascii_alphanumeric() || *c == 'x')
            .collect();
        let name = bare.trim_end_matches(['.', '~', '?', '!', '/', '|', 'x', '+', '-']);
        let machine = machine(name);
        let marked = |mark: char| marks.contains(&mark);
        let reference = || "vm".to_owned();
        let fact = match () {
            () if marked('-') => None,
            () if marked('x') || marked('+') => Some(MachineFact::Absent),
            () if marked('.') => Some(MachineFact::Booting {
                reference: reference(),
            }),
            () if marked('?') => Some(MachineFact::Unreachable {
                reference: reference(),
                because: None,
            }),
            () => Some(MachineFact::Running {
                reference: reference(),
                address: IpAddr::V4(machine.address),
            }),
        };
        let joined = !marks
            .iter()
            .any(|mark| matches!(mark, '-' | 'x' | '.' | '~'));
        let node = joined.then(|| NodeFact::Joined {
            ready: !marked('!') && !marked('+'),
            cordoned: marked('/') || marked('|'),
            version: version(minor),
            care: None,
            asks: false,
            gated: marked('|'),
        });
        self.observed.initialised |= joined && machine.role == Role::Control;
        let seen = Seen {
            machine: fact.map(|fact| (fact, NOW)),
            node: node.map(|node| (node, NOW)),
            host: None,
            certificates: None,
            names: None,
            port: None,
        };
        self.observed.machines.insert(machine.id, seen);
        if marked('/') {
            self.ledger
                .push(Slot::of(&machine, &self.desired.disruption));
        }
        if !self
            .desired
            .machines
            .iter()
            .any(|wanted| wanted.id == machine.id)
        {
            self.desired.leaving.push(machine);
        }
    }

    /// Has etcd tell of its members, of whom those that are named are not well.
    pub(crate) fn etcd(mut self, sick: &[&str]) -> Self {
        let seen = &self.observed.machines;
        let joined = |machine: &&Machine| {
            seen.get(&machine.id)
                .is_some_and(|seen| seen.node.is_some())
        };
        let members = self
            .desired
            .all()
            .filter(|machine| machine.role == Role::Control);
        let etcd = members.filter(joined).map(|machine| Member {
            name: machine.name.to_string(),
            healthy: !sick.contains(&machine.name.as_str()),
            learner: false,
        });
        let wellbeing = Wellbeing {
            etcd: etcd.collect(),
            ..Wellbeing::default()
        };
        self.observed.wellbeing = Some((wellbeing, NOW));
        self
    }

    /// Somebody locked these nodes.
    pub(crate) fn locked(mut self, names: &[&str]) -> Self {
        let lock = |name: &&str| ((*name).to_owned(), "slipway.dev/upgrade-lock".to_owned());
        let wellbeing = Wellbeing {
            locks: names.iter().map(lock).collect(),
            ..Wellbeing::default()
        };
        self.observed.wellbeing = Some((wellbeing, NOW));
        self
    }

    /// Adds a snapshot that was taken so many hours ago.
    pub(crate) fn saved(mut self, hours: u64, before: Option<Version>) -> Self {
        let none = || (SnapshotsFact::none_since(NOW), NOW);
        let (fact, _) = self.observed.snapshots.get_or_insert_with(none);
        let hours = i64::try_from(hours).unwrap() * 3_600_000;
        let at = Timestamp::from_millis(NOW.as_millis() - hours);
        fact.kept.push(Snapshot {
            id: SnapshotId::of(at, "0a1b2c3d").unwrap(),
            size: 1,
            version: "1.34.0".parse().unwrap(),
            before,
        });
        self
    }

    /// Lists nodes that are none of those that were looked for: `w9` is left of the machine of that
    /// name and ready, `w9!` not for long, `w9,` not since a moment ago; `w9'` is left of another
    /// machine of that name, and `z9` is somebody else's.
    pub(crate) fn strays(mut self, nodes: &str) -> Self {
        let nodes = nodes.split_whitespace().map(|word| {
            let name = word.trim_end_matches(['!', ',', '\'']);
            let another = u64::from(word.contains('\''));
            let unready_since = match () {
                () if word.contains('!') => Some(Timestamp::from_millis(0)),
                () if word.contains(',') => Some(NOW),
                () => None,
            };
            let stray = Stray {
                machine: (!name.starts_with('z')).then(|| MachineId::derive(origin(name, another))),
                control: name.starts_with('c'),
                unready_since,
            };
            (name.to_owned(), stray)
        });
        self.observed.strays = Some((nodes.collect(), NOW));
        self
    }

    /// Forgets all snapshots.
    pub(crate) fn unsaved(mut self) -> Self {
        self.observed.snapshots = None;
        self
    }

    /// Adds an unfinished task.
    pub(crate) fn open(
        mut self,
        name: &str,
        action: Action,
        state: State,
        error: Option<&str>,
    ) -> Self {
        let machine = machine(name);
        self.open.push(Open {
            id: TaskId::derive(origin(name, 9)),
            machine: machine.id,
            action,
            origin: machine.origin,
            state,
            attempts: 1,
            not_before: NOW,
            error: error.map(str::to_owned),
            corrected: false,
            through: Vec::new(),
        });
        self
    }

    /// Adds a wish by `ann`.
    pub(crate) fn wish(mut self, wish: model::intent::Wish) -> Self {
        self.intents.push(model::intent::Intent {
            id: id::IntentId::derive(origin("i", 1)),
            project: Name::default_project(),
            cluster: self.desired.name.clone(),
            wish,
            author: "ann".to_owned(),
            reason: "because".to_owned(),
            created_at: NOW,
            expires_at: None,
        });
        self
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            desired: &self.desired,
            observed: &self.observed,
            open: &self.open,
            ledger: &self.ledger,
            elsewhere: &self.elsewhere,
            intents: &self.intents,
            blocked: &self.blocked,
            shut_out: &self.shut_out,
            claimed: &self.claimed,
            vain: &self.vain,
            missing: &self.missing,
            parent: 0,
            now: self.now,
        }
    }

    /// Declares budgets and windows, as they are stored.
    pub(crate) fn allow(mut self, budgets: &str) -> Self {
        self.desired.disruption = serde_json::from_str(budgets).unwrap();
        self
    }

    /// Adds machines of cluster `west` that are out of service, in a group.
    pub(crate) fn elsewhere(mut self, group: &str, machines: &str) -> Self {
        let rows = machines.split_whitespace().map(|machine| Elsewhere {
            cluster: "west".parse().unwrap(),
            machine: machine.parse().unwrap(),
            group: group.parse().unwrap(),
        });
        self.elsewhere.extend(rows);
        self
    }

    /// Wishes these add-ons, and sees those: `node-exporter`, with `=v1` for another version, `!` for
    /// one that does not do its work, `~` for half of one.
    pub(crate) fn addons(mut self, cni: Cni, wished: &str, seen: &str) -> Self {
        let version = self.desired.version;
        self.desired.kubernetes.cni = cni;
        let named = |word: &str| {
            let (name, version) = word.split_once('=').unzip();
            addon::Named {
                name: name.unwrap_or(word).parse().unwrap(),
                version: version.map(str::to_owned),
                values: BTreeMap::new(),
            }
        };
        let wished: Vec<_> = wished.split_whitespace().map(named).collect();
        self.desired.addons = addon::decided(cni, &wished, version);
        let seen = seen.split_whitespace().map(|word| {
            let addon = named(word.trim_end_matches(['!', '~'])).decided(version);
            let fact = AddonFact {
                whole: !word.ends_with('~'),
                wrong: word.ends_with('!').then(|| "0 of 1 pods serve".to_owned()),
                ..addon.installed()
            };
            (addon.name, fact)
        });
        self.observed.addons = Some((seen.collect(), NOW));
        self
    }

    /// Lets every machine name a secret of its pool's name.
    pub(crate) fn secrets(mut self) -> Self {
        let desired = &mut self.desired;
        for machine in desired.machines.iter_mut().chain(&mut desired.leaving) {
            let secret = secret(machine.pool.as_str());
            machine.origin = machine.origin.clone().with_secret(Some(secret));
        }
        self
    }

    /// Lets a pool's secret be set by nobody.
    pub(crate) fn missing(mut self, name: &str) -> Self {
        self.missing.push(secret(name));
        self
    }
}

pub(crate) fn origin(name: &str, incarnation: u64) -> id::Origin<'_> {
    id::Origin {
        parent: "test",
        name,
        ordinal: 0,
        incarnation,
    }
}

/// `c12` is the twelfth control machine, `w3` the third worker, `s1` a given worker.
pub(crate) fn machine(name: &str) -> Machine {
    let ordinal: u32 = name[1..].parse().unwrap();
    let role = if name.starts_with('c') {
        Role::Control
    } else {
        Role::Compute
    };
    let pool = match &name[..1] {
        "c" => "control",
        "s" => "attic",
        _ => "compute",
    };
    Machine {
        id: MachineId::derive(origin(name, 0)),
        name: name.parse().unwrap(),
        pool: pool.parse().unwrap(),
        role,
        ordinal,
        incarnation: 0,
        address: Ipv4Addr::from(0x0a08_0000 + ordinal),
        balancer: None,
        origin: if name.starts_with('s') {
            Origin::Given {
                endpoint: Ipv4Addr::new(203, 0, 113, 5),
                ssh_port: 22,
                username: "root".to_owned(),
                secret: None,
                jump: None,
            }
        } else {
            Origin::Made {
                provider: "lab".parse().unwrap(),
                via: Provider::Simulated,
                region: "north".to_owned(),
                zone: None,
                server_type: "small".to_owned(),
                image: "debian-12".to_owned(),
                hardware: model::hardware::Hardware::default(),
                secret: None,
            }
        },
    }
}

/// The version of that minor, and of that patch where there is one behind it.
fn version(minor: &str) -> Version {
    let patch = if minor.contains('.') { "" } else { ".0" };
    format!("1.{minor}{patch}").parse().unwrap()
}

/// The secret of that name, or its one entry behind a slash.
pub(crate) fn secret(name: &str) -> SecretRef {
    let (name, key) = name
        .split_once('/')
        .map_or((name, None), |(name, key)| (name, Some(key)));
    SecretRef {
        name: name.parse().unwrap(),
        key: key.map(|key| key.parse().unwrap()),
    }
}

/// Real machines.
impl World {
    /// A cluster of hosts of which nothing is seen yet: `c1` and `w1` as ever, `s1` a given
    /// worker that is a real machine, `b1` one of the load balancer `front`, `d1` one of `back`,
    /// which no world has from the start.
    pub(crate) fn hosts(want: &str) -> Self {
        let mut world = Self::new("1.34.0", "", "");
        world.desired.tombstone = false;
        world.desired.machines = want.split_whitespace().map(host).collect();
        let forward = |name: &str, port: u16, target_port: u16, pools: &[&str]| Forward {
            name: name.parse().unwrap(),
            protocol: Protocol::Tcp,
            port,
            target_port,
            target_pools: pools.iter().map(|pool| pool.parse().unwrap()).collect(),
            proxy_protocol: false,
            sticky: false,
        };
        world.desired.balancers = vec![Balancer {
            dns: None,
            name: "front".parse().unwrap(),
            roles: vec![
                forward("web", 443, 30_443, &["compute", "attic"]),
                forward("api", 6_443, 6_443, &["control"]),
            ],
        }];
        world
    }

    /// Other machines are wanted; those that are not any more are to leave.
    pub(crate) fn want(mut self, want: &str) -> Self {
        let wanted: Vec<_> = want.split_whitespace().map(host).collect();
        let desired = &mut self.desired;
        let before = std::mem::replace(&mut desired.machines, wanted);
        let stays = |machine: &Machine| desired.machines.iter().any(|kept| kept.id == machine.id);
        let leaves = before.into_iter().filter(|machine| !stays(machine));
        desired.leaving.extend(leaves);
        desired.tombstone = want.is_empty();
        self
    }

    /// Lets a cloud lend these machines.
    pub(crate) fn at_cloud(mut self, names: &str) -> Self {
        let named = |machine: &Machine| {
            let mut names = names.split_whitespace();
            names.any(|name| name == machine.name.as_str())
        };
        let desired = &mut self.desired;
        let machines = desired.machines.iter_mut().chain(&mut desired.leaving);
        for machine in machines.filter(|machine| named(machine)) {
            if let Origin::Made { via, .. } = &mut machine.origin {
                *via = Provider::Cloud(Cloud::Hetzner);
            }
        }
        self
    }

    /// What the firewall before a machine says from now on.
    pub(crate) fn port(mut self, name: &str, open: Option<bool>) -> Self {
        let seen = self.observed.machines.entry(host(name).id).or_default();
        seen.port = open.map(|open| (PortFact { open }, NOW));
        self
    }

    /// Does what a plan says, and it goes well. Open tasks are left as they are.
    pub(crate) fn follow(&mut self, plan: &Plan) {
        let release = |slot: &Slot| plan.release.contains(&slot.machine);
        self.ledger.retain(|slot| !release(slot));
        self.ledger.extend(plan.disturbs.iter().cloned());
        self.open.retain(|open| !plan.withdraw.contains(&open.id));
        for task in &plan.tasks {
            predict(&mut self.observed, &task.machine, &task.action, NOW);
        }
    }

    /// Everything that can be done is done, and goes well.
    pub(crate) fn settled(mut self) -> Self {
        for _ in 0..100 {
            let plan = crate::plan(&self.view());
            if plan.tasks.is_empty() {
                return self;
            }
            self.follow(&plan);
        }
        panic!("work without end");
    }

    /// So far, and no further: rounds of work that go well.
    pub(crate) fn after(mut self, rounds: usize) -> Self {
        for _ in 0..rounds {
            let plan = crate::plan(&self.view());
            self.follow(&plan);
        }
        self
    }

    /// What a host says of itself, to be changed.
    pub(crate) fn host(&mut self, name: &str) -> &mut HostFact {
        let seen = self.observed.machines.get_mut(&host(name).id).unwrap();
        &mut seen.host.as_mut().unwrap().0
    }

    /// A node is not ready any more.
    pub(crate) fn not_ready(&mut self, name: &str) {
        let seen = self.observed.machines.get_mut(&host(name).id).unwrap();
        if let Some((NodeFact::Joined { ready, .. }, _)) = &mut seen.node {
            *ready = false;
        }
    }

    /// What is seen of a machine from now on, by the marks of [`World::new`].
    pub(crate) fn seen(mut self, name: &str, mark: char) -> Self {
        let seen = self.observed.machines.entry(host(name).id).or_default();
        let reference = || "vm".to_owned();
        let fact = match mark {
            'x' => MachineFact::Absent,
            '.' => MachineFact::Booting {
                reference: reference(),
            },
            '?' => MachineFact::Unreachable {
                reference: reference(),
                because: None,
            },
            _ => MachineFact::Running {
                reference: reference(),
                address: IpAddr::V4(host(name).address),
            },
        };
        seen.machine = Some((fact, NOW));
        self
    }
}

/// A name in a zone that this provider answers for.
pub(crate) fn names(via: Provider, hostname: &str) -> Names {
    Names {
        zone: "example.org".parse().unwrap(),
        provider: "zones".parse().unwrap(),
        via,
        secret: None,
        hostname: hostname.parse().unwrap(),
        endpoint: format!("{hostname}.example.org").parse().unwrap(),
        alternatives: Vec::new(),
    }
}

/// The machine of that name as a host; each has an address of its own.
pub(crate) fn host(name: &str) -> Machine {
    let mut machine = machine(name);
    let (block, balancer) = match &name[..1] {
        "c" => (0, None),
        "w" => (1, None),
        "s" => (2, None),
        "d" => (4, Some(("gate", "back"))),
        _ => (3, Some(("door", "front"))),
    };
    machine.address = Ipv4Addr::from(0x0a08_0000 + 0x1000 * block + machine.ordinal);
    if let Some((pool, balancer)) = balancer {
        machine.role = Role::Balancer;
        machine.pool = pool.parse().unwrap();
        machine.balancer = Some(balancer.parse().unwrap());
    }
    match &mut machine.origin {
        Origin::Made { via, .. } => *via = Provider::Sandbox,
        Origin::Given { endpoint, .. } => {
            *endpoint = Ipv4Addr::from(0xc0a8_0000 + machine.ordinal);
        }
    }
    machine
}

/// What of a task its kind does not tell.
fn details(action: &Action) -> String {
    if let Action::Mesh { mesh } = action {
        let name = |id: &MachineId| {
            let mut members = mesh.members.iter();
            let told = members.find(|member| member.machine.id == *id).unwrap();
            told.machine.name.to_string()
        };
        let to: Vec<_> = mesh.to.iter().map(name).collect();
        format!(" ({} members, to {})", mesh.members.len(), to.join(" "))
    } else if let Action::Install { addons, remove } = action {
        let comes = addons.iter().map(|addon| format!("+{addon}"));
        let goes = remove.iter().map(|name| format!("-{name}"));
        let all: Vec<_> = comes.chain(goes).collect();
        format!(" ({})", all.join(", "))
    } else if let Action::Clear { leftovers } = action {
        let all: Vec<_> = leftovers.iter().map(|left| &left.node[..]).collect();
        format!(" ({})", all.join(" "))
    } else if let Action::Balance { balance } = action {
        let listener = |listener: &Listener| {
            let targets = listener.targets.iter().map(ToString::to_string);
            let targets = targets.collect::<Vec<_>>().join(" ");
            format!(" ({} > {targets})", listener.port)
        };
        balance.listeners.iter().map(listener).collect()
    } else if let Action::Name { naming } = action {
        let names: Vec<_> = naming.names.iter().map(|of| of.name.as_str()).collect();
        format!(" ({})", names.join(" "))
    } else if let Action::Tend { care } = action {
        let api: Vec<_> = care.api.iter().map(ToString::to_string).collect();
        format!(" (api > {})", api.join(" "))
    } else if *action == Action::CreateExposed {
        " (port open)".to_owned()
    } else if let Action::Readmit { gates } = action {
        let gates: Vec<_> = gates.iter().map(|gate| gate.name.as_str()).collect();
        format!(" (gates {})", gates.join(" "))
    } else {
        String::new()
    }
}

/// A plan as people would draw it.
pub(crate) fn picture(plan: &Plan) -> String {
    let mut told = String::new();
    for task in &plan.tasks {
        let details = details(&task.action);
        let (kind, name) = (task.action.kind(), &task.machine.name);
        writeln!(told, "{kind:<8} {name}{details}").unwrap();
    }
    if !plan.withdraw.is_empty() {
        writeln!(told, "withdraw {}", plan.withdraw.len()).unwrap();
    }
    if !plan.reopen.is_empty() {
        writeln!(told, "reopen {}", plan.reopen.len()).unwrap();
    }
    if !plan.release.is_empty() {
        writeln!(told, "release {}", plan.release.len()).unwrap();
    }
    for held in &plan.held {
        writeln!(told, "held     {held}").unwrap();
    }
    writeln!(told, "{}", plan.summary.phase.as_str()).unwrap();
    told
}
