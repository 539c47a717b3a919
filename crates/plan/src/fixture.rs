//! The smallest world a planner test can be written in: a picture on one line.

use crate::ledger::{Elsewhere, Slot};
use crate::planner::{Plan, View};
use model::cluster::{Desired, Generation, Machine, Origin, Role};
use model::disruption::Disruption;
use model::id::{self, ClusterId, MachineId, TaskId};
use model::manifest::Provider;
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::secret::SecretRef;
use model::task::{Action, Open, State};
use model::time::Timestamp;
use std::collections::BTreeMap;
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
    pub(crate) now: Timestamp,
}

impl World {
    /// `want` names the machines to stay, `have` what is seen of machines.
    ///
    /// `c1` is a control machine, `w1` a worker; one that is seen and not wanted is to
    /// leave. Behind the name: nothing for a ready node, `.` booting, `~` running and not
    /// joined, `?` unreachable, `!` not ready, `/` cordoned by us, `x` seen to be absent,
    /// `-` never seen, `@35` for its minor version. `have` starts with `*` when a control
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
                network: "10.8.0.0/16".parse().unwrap(),
                machines: wanted,
                leaving: Vec::new(),
                made: BTreeMap::new(),
                tombstone: want.is_empty(),
                disruption: Disruption::default(),
            },
            observed: Observed::default(),
            open: Vec::new(),
            ledger: Vec::new(),
            intents: Vec::new(),
            elsewhere: Vec::new(),
            missing: Vec::new(),
            now: NOW,
        };
        for word in have.split_whitespace() {
            world.see(word);
        }
        world
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
        let name = bare.trim_end_matches(['.', '~', '?', '!', '/', 'x', '-']);
        let machine = machine(name);
        let marked = |mark: char| marks.contains(&mark);
        let reference = || "vm".to_owned();
        let fact = match () {
            () if marked('-') => None,
            () if marked('x') => Some(MachineFact::Absent),
            () if marked('.') => Some(MachineFact::Booting {
                reference: reference(),
            }),
            () if marked('?') => Some(MachineFact::Unreachable {
                reference: reference(),
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
            ready: !marked('!'),
            cordoned: marked('/'),
            version: format!("1.{minor}.0").parse().unwrap(),
        });
        self.observed.initialised |= joined && machine.role == Role::Control;
        let seen = Seen {
            machine: fact.map(|fact| (fact, NOW)),
            node: node.map(|node| (node, NOW)),
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

    /// Adds an unfinished task.
    pub(crate) fn open(
        mut self,
        name: &str,
        action: Action,
        state: State,
        error: Option<&str>,
    ) -> Self {
        let machine = machine(name).id;
        self.open.push(Open {
            id: TaskId::derive(origin(name, 9)),
            machine,
            action,
            secret: None,
            state,
            attempts: 1,
            not_before: NOW,
            error: error.map(str::to_owned),
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
            blocked: &[],
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
        origin: if name.starts_with('s') {
            Origin::Given {
                endpoint: Ipv4Addr::new(203, 0, 113, 5),
                ssh_port: 22,
                username: "root".to_owned(),
                secret: None,
            }
        } else {
            Origin::Made {
                provider: "lab".parse().unwrap(),
                via: Provider::Simulated,
                region: "north".to_owned(),
                zone: None,
                server_type: "small".to_owned(),
                image: "debian-12".to_owned(),
                secret: None,
            }
        },
    }
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

/// A plan as people would draw it.
pub(crate) fn picture(plan: &Plan) -> String {
    let mut told = String::new();
    for task in &plan.tasks {
        writeln!(told, "{:<8} {}", task.action.kind(), task.machine.name).unwrap();
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
