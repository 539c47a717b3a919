//! The contract every driver must pass, as rules that can be run against it.
//!
//! A driver comes with a [`Fixture`]: it makes the driver, names machines that nobody has
//! touched yet and looks at the world *from outside*, past the driver. [`contract`] then
//! walks every rule and reports each by name. The simulated driver and the real ones pass
//! the same rules, so that the simulator cannot drift from the world.
//!
//! **Invariant:** a rule reads the world only through the fixture and changes it only
//! through the driver; what a rule finds is returned, never printed.

mod rules;

use crate::{Clock, Context, Driver, Keeping, Log, NoSecrets, Open, Opening, Outcome, Output};
use model::addon::{Addon, AddonName};
use model::balancer::{Balance, Listener, Protocol};
use model::care::{Care, Marks, Taint, TaintEffect};
use model::cluster::{Generation, Machine, Origin, Role};
use model::host::{Proxy, Recipe};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::network::Network;
use model::observed::Observation;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::snapshot::{Destination, Keep, Taking};
use model::stray::Leftover;
use model::task::{Action, Kind, Task};
use model::time::Timestamp;
use model::version::Version;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A driver, and the world it works on as seen from outside.
pub trait Fixture: Sync {
    /// The driver under test.
    type Driver: Driver;

    /// The driver under test.
    fn driver(&self) -> &Self::Driver;

    /// Tells the time to the driver and to the rules.
    fn clock(&self) -> Clock;

    /// A cluster that nobody has touched; another one with every call.
    fn cast(&self) -> Cast;

    /// A task on machines of `cast` that cannot work until a person changes something.
    fn impossible(&self, cast: &Cast) -> Task;

    /// How many machines bear this id, counted from outside.
    fn machines_named(&self, machine: MachineId) -> impl Future<Output = usize> + Send;

    /// All that an outsider sees of the cluster: equal texts mean equal worlds.
    ///
    /// Leaves out what changes by itself, such as ages and counters of probes.
    fn picture(&self, cast: &Cast) -> impl Future<Output = String> + Send;

    /// Takes the power from a machine.
    fn cut_power(&self, machine: &Machine) -> impl Future<Output = ()> + Send;

    /// How long a driver may take to notice that it is to stop.
    fn soon(&self) -> Duration;

    /// How what came of a task, by looks at what it touches before and after it, differs from what
    /// was foreseen.
    fn unforeseen(&self, task: &Task, before: &[Observation], after: &[Observation])
    -> Vec<String>;

    /// The secrets that machines of a cast name; what comes of tasks is kept besides.
    fn secrets(&self) -> Arc<dyn Open> {
        Arc::new(NoSecrets)
    }
}

/// The machines of one fresh cluster, and what is done to them.
#[derive(Debug, Clone)]
pub struct Cast {
    /// Which cluster.
    pub cluster: ClusterId,
    /// What people call it.
    pub name: Name,
    /// Its private network.
    pub network: Network,
    /// The Kubernetes it starts with.
    pub version: Version,
    /// The Kubernetes it is upgraded to.
    pub next_version: Version,
    /// A machine to be made, for the control plane.
    pub control: Machine,
    /// A machine to be made, for workloads.
    pub compute: Machine,
    /// A machine that is there already, for workloads.
    pub given: Machine,
    /// A machine to be made, for a load balancer, where machines are hosts.
    pub balancer: Option<Machine>,
    /// Whether the driver does the work of Kubernetes too.
    pub kubernetes: bool,
}

/// One thing in the life of a cast.
#[derive(Debug, Clone)]
pub enum Beat {
    /// Something is done to a machine.
    Do(Box<Machine>, Action),
    /// These are connected with each other. What they are told depends on the keys that were
    /// born on them.
    Connect(Vec<Machine>),
    /// The newest snapshot of etcd is put back on these. Which one that is depends on what was
    /// saved.
    PutBack(Vec<Machine>),
}

impl Beat {
    /// The kind of its task.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Do(_, action) => action.kind(),
            Self::Connect(_) => Kind::Mesh,
            Self::PutBack(_) => Kind::Restore,
        }
    }
}

impl Cast {
    /// The task that does `action` to `machine`.
    pub fn task(&self, machine: &Machine, action: Action) -> Task {
        Task {
            id: TaskId::derive(id::Origin {
                parent: &machine.id.to_string(),
                name: action.kind().as_str(),
                ordinal: 0,
                incarnation: 0,
            }),
            project: Name::default_project(),
            cluster: self.cluster,
            cluster_name: self.name.clone(),
            generation: Generation(1),
            machine: machine.clone(),
            action,
            around: None,
        }
    }

    /// Whether its machines are hosts: they are equipped and connected before they serve.
    pub const fn hosts(&self) -> bool {
        self.control.origin.is_host()
    }

    /// A whole life: every kind of action that its machines know, each at a point where it
    /// makes sense.
    pub fn life(&self) -> Vec<Beat> {
        let mut life = self.founding();
        life.extend(self.prime());
        life.extend(self.end());
        life.retain(|beat| self.kubernetes || !beat.kind().of_kubernetes());
        life
    }

    /// As far as a control plane and one joined machine.
    fn founding(&self) -> Vec<Beat> {
        let (version, network) = (self.version, self.network);
        let init = Action::Init {
            version,
            network,
            care: self.care(&self.control, 1),
        };
        let join = Action::Join {
            version,
            care: self.care(&self.compute, 1),
            gated: false,
        };
        let (control, compute) = (&self.control, &self.compute);
        if !self.hosts() {
            return vec![
                act(control, Action::Create),
                act(control, init),
                act(compute, Action::Create),
                act(compute, join),
            ];
        }
        vec![
            act(control, Action::Key),
            act(control, Action::Create),
            act(control, equip(control)),
            act(compute, Action::Create),
            act(compute, equip(compute)),
            Beat::Connect(vec![control.clone(), compute.clone()]),
            act(control, init),
            act(compute, join),
        ]
    }

    /// The given machine and the load balancer come, and everything is changed once.
    fn prime(&self) -> Vec<Beat> {
        let join = Action::Join {
            version: self.version,
            care: self.care(&self.given, 1),
            gated: false,
        };
        let upgrade = Action::Upgrade {
            version: self.next_version,
        };
        let (control, compute, given) = (&self.control, &self.compute, &self.given);
        let mut beats = vec![act(given, Action::Prepare)];
        if self.hosts() {
            beats.push(act(given, equip(given)));
            if let Some(balancer) = &self.balancer {
                beats.push(act(balancer, Action::Create));
                beats.push(act(balancer, equip(balancer)));
            }
            beats.push(Beat::Connect(self.machines()));
        }
        beats.push(act(given, join));
        beats.extend(addons().map(|action| act(control, action)));
        if let Some(balancer) = &self.balancer {
            beats.push(act(balancer, balance(balancer, &[compute, given])));
        }
        if self.hosts() {
            beats.push(act(compute, equip_through_proxy(compute)));
        }
        beats.push(act(control, snapshot(self.version, self.next_version)));
        beats.push(Beat::PutBack(vec![control.clone(), compute.clone()]));
        for machine in [control, compute] {
            let care = self.care(machine, 2);
            beats.push(act(machine, Action::Tend { care }));
        }
        for machine in [control, compute] {
            beats.push(act(machine, Action::Drain));
            beats.push(act(machine, upgrade.clone()));
            beats.push(act(machine, Action::Uncordon));
        }
        // Certificates that were made anew since are left alone.
        let end = Timestamp::from_millis(0);
        beats.push(act(control, Action::Renew { end }));
        beats
    }

    /// Everybody goes.
    fn end(&self) -> Vec<Beat> {
        let (control, compute, given) = (&self.control, &self.compute, &self.given);
        let mut beats = Vec::new();
        if let Some(balancer) = &self.balancer {
            beats.push(act(balancer, balance(balancer, &[compute])));
        }
        beats.push(act(given, Action::Drain));
        beats.push(act(given, Action::Leave));
        beats.push(act(given, Action::Release));
        beats.push(act(control, clear(given)));
        if self.hosts() {
            let mut left = self.machines();
            left.retain(|machine| machine.id != given.id);
            beats.push(Beat::Connect(left));
        }
        beats.push(act(compute, Action::Drain));
        beats.push(act(compute, Action::Leave));
        beats.push(act(compute, Action::Delete));
        if let Some(balancer) = &self.balancer {
            beats.push(act(balancer, Action::Delete));
        }
        beats.push(act(control, Action::Delete));
        beats
    }

    /// What a node of the cast carries, in one of its times.
    pub fn care(&self, machine: &Machine, time: u32) -> Care {
        let taint = Taint {
            key: "lab/slow".to_owned(),
            effect: TaintEffect::PreferNoSchedule,
            value: time.to_string(),
        };
        let label = |key: &str, value: String| (key.to_owned(), value);
        let labels = [
            label("lab/stays", "always".to_owned()),
            label("lab/changes", time.to_string()),
            label(&format!("lab/goes-{time}"), String::new()),
        ];
        Care {
            marks: Marks {
                labels: labels.into(),
                annotations: [label("lab/note", format!("it is time {time}"))].into(),
                taints: vec![taint],
            },
            api: match machine.role {
                Role::Control | Role::Balancer => Vec::new(),
                Role::Compute => vec![self.control.address],
            },
        }
    }

    /// Every machine of the cast.
    pub fn machines(&self) -> Vec<Machine> {
        let three = [&self.control, &self.compute, &self.given];
        let all = three.into_iter().chain(&self.balancer);
        all.cloned().collect()
    }
}

/// A machine of a cast, with `last` as the end of its address.
pub fn machine(
    cluster: ClusterId,
    name: &str,
    role: Role,
    last: u8,
    origin: Origin,
) -> Result<Machine, model::name::Error> {
    Ok(Machine {
        id: MachineId::derive(id::Origin {
            parent: &cluster.to_string(),
            name,
            ordinal: 1,
            incarnation: 0,
        }),
        name: name.parse()?,
        pool: "pool".parse()?,
        role,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, last),
        balancer: None,
        origin,
    })
}

fn act(machine: &Machine, action: Action) -> Beat {
    Beat::Do(Box::new(machine.clone()), action)
}

/// What a machine is made ready for, by its role.
pub fn equip(machine: &Machine) -> Action {
    let recipe = Recipe {
        purpose: machine.role.purpose(),
        proxy: None,
        playbooks: Vec::new(),
    };
    Action::Equip { recipe }
}

fn equip_through_proxy(machine: &Machine) -> Action {
    let proxy = Proxy {
        endpoint: "http://127.0.0.1:3128".to_owned(),
        except: vec!["localhost".to_owned()],
    };
    let recipe = Recipe {
        purpose: machine.role.purpose(),
        proxy: Some(proxy),
        playbooks: Vec::new(),
    };
    Action::Equip { recipe }
}

/// An add-on that comes, is changed, and goes.
fn addons() -> [Action; 3] {
    let name = AddonName::NodeExporter;
    let install = |version: &str| Action::Install {
        addons: vec![Addon {
            name,
            version: version.to_owned(),
            values: BTreeMap::new(),
        }],
        remove: Vec::new(),
    };
    let gone = Action::Install {
        addons: Vec::new(),
        remove: vec![name],
    };
    [install("v1.9.1"), install("v1.10.2"), gone]
}

/// Takes out what is left of a machine that has gone: nothing, which is as it should be.
fn clear(gone: &Machine) -> Action {
    let leftovers = vec![Leftover {
        node: gone.name.to_string(),
        machine: gone.id,
        control: false,
    }];
    Action::Clear { leftovers }
}

/// A snapshot before an upgrade.
fn snapshot(version: Version, next: Version) -> Action {
    let taking = Taking {
        version,
        before: Some(next),
        wish: None,
        to: Destination::Directory { name: None },
        keep: Keep::default(),
        guard: Some(next),
    };
    Action::Snapshot { taking }
}

/// Passes on connections and datagrams to the same targets.
pub fn balance(balancer: &Machine, targets: &[&Machine]) -> Action {
    let listener = |role: &Name, protocol| Listener {
        role: role.clone(),
        protocol,
        port: 8_080,
        target_port: 30_080,
        targets: targets.iter().map(|machine| machine.address).collect(),
        proxy_protocol: false,
        sticky: false,
    };
    // A role is named as the machine is: any name will do.
    let listeners = vec![
        listener(&balancer.name, Protocol::Tcp),
        listener(&balancer.pool, Protocol::Udp),
    ];
    let balance = Balance {
        address: balancer.address,
        listeners,
    };
    Action::Balance { balance }
}

/// One rule and what became of it.
#[derive(Debug)]
pub struct Checked {
    /// What the rule demands, in one sentence.
    pub rule: &'static str,
    /// How the driver broke it, if it did.
    pub broken: Option<String>,
}

/// All rules, checked.
#[derive(Debug, Default)]
#[must_use = "a contract nobody reads binds nobody"]
pub struct Report {
    /// Every rule, in the order in which they were checked.
    pub checked: Vec<Checked>,
}

impl Report {
    /// The rules that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(|rule| rule.broken.is_some())
    }

    fn note(&mut self, rule: &'static str, verdict: Verdict) {
        let broken = verdict.err();
        self.checked.push(Checked { rule, broken });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Checked { rule, broken } in &self.checked {
            match broken {
                None => writeln!(f, "kept    {rule}")?,
                Some(how) => writeln!(f, "broken  {rule}: {how}")?,
            }
        }
        let broken = self.broken().count();
        writeln!(f, "{} rules checked, {broken} broken", self.checked.len())
    }
}

/// How a driver broke a rule, if it did.
type Verdict = Result<(), String>;

/// Checks every rule, each on a fresh cluster.
pub async fn contract<F: Fixture>(fixture: &F) -> Report {
    let mut report = Report::default();
    report.note(
        "applying a task twice leaves the same world",
        Box::pin(rules::apply_twice(Play::of(fixture))).await,
    );
    report.note(
        "a whole life leaves nothing behind",
        Box::pin(rules::nothing_is_left(Play::of(fixture))).await,
    );
    report.note(
        "a create that was interrupted after its effect is adopted, not made twice",
        Box::pin(rules::interrupted_create(Play::of(fixture))).await,
    );
    report.note(
        "what was dropped in the middle can be done again",
        Box::pin(rules::dropped_in_the_middle(Play::of(fixture))).await,
    );
    report.note(
        "removing what is not there is done",
        Box::pin(rules::remove_absent(Play::of(fixture))).await,
    );
    report.note(
        "looking changes nothing",
        Box::pin(rules::probe_changes_nothing(Play::of(fixture))).await,
    );
    report.note(
        "looking tells of what was asked for, and of absence only where it is known",
        Box::pin(rules::probe_tells_what_it_knows(Play::of(fixture))).await,
    );
    report.note(
        "silence is not absence",
        Box::pin(rules::silence_is_not_absence(Play::of(fixture))).await,
    );
    report.note(
        "what an attempt saw, the next look sees too",
        Box::pin(rules::observations_agree(Play::of(fixture))).await,
    );
    report.note(
        "a task leads where it is foreseen to lead",
        Box::pin(rules::led_where_foreseen(Play::of(fixture))).await,
    );
    report.note(
        "an attempt that is cancelled before it starts begins nothing",
        Box::pin(rules::cancelled_begins_nothing(Play::of(fixture))).await,
    );
    report.note(
        "an attempt that is cancelled in the middle ends soon",
        Box::pin(rules::cancelled_ends_soon(Play::of(fixture))).await,
    );
    report.note(
        "what came of a task belongs to it, and comes again when it is asked again",
        Box::pin(rules::outputs_come_again(Play::of(fixture))).await,
    );
    report.note(
        "an attempt writes to its log",
        Box::pin(rules::attempts_are_logged(Play::of(fixture))).await,
    );
    report.note(
        "what is stuck says what would help",
        Box::pin(rules::stuck_has_a_hint(Play::of(fixture))).await,
    );
    if fixture.cast().hosts() {
        contract_of_hosts(fixture, &mut report).await;
    }
    report
}

/// The rules for drivers whose machines are hosts.
async fn contract_of_hosts<F: Fixture>(fixture: &F, report: &mut Report) {
    report.note(
        "what a host was told, it tells",
        Box::pin(rules::told_is_told(Play::of(fixture))).await,
    );
    report.note(
        "a host that follows another recipe keeps its key and its tunnels",
        Box::pin(rules::equipped_in_place(Play::of(fixture))).await,
    );
    report.note(
        "a host that is made again is bare, and has another key",
        Box::pin(rules::made_again_is_bare(Play::of(fixture))).await,
    );
    report.note(
        "a mesh that somebody does not hear of names them, and the others hear of it",
        Box::pin(rules::mesh_names_the_silent(Play::of(fixture))).await,
    );
}

/// One rule at work: a fresh cluster, and what came of its tasks so far.
struct Play<'f, F> {
    fixture: &'f F,
    cast: Cast,
    kept: Arc<Kept>,
}

impl<'f, F: Fixture> Play<'f, F> {
    fn of(fixture: &'f F) -> Self {
        let kept = Arc::new(Kept {
            secrets: fixture.secrets(),
            values: Mutex::default(),
        });
        Self {
            fixture,
            cast: fixture.cast(),
            kept,
        }
    }

    /// The means for one attempt.
    fn trial(&self) -> Trial {
        Trial::new(self.fixture.clock(), self.kept.clone())
    }

    /// What the next attempts may open.
    fn keep(&self, outputs: &[Output]) {
        let mut values = self
            .kept
            .values
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for output in outputs {
            let place = (output.owner.clone(), output.entry.clone());
            values.insert(place, Secret::from(output.value.expose().to_vec()));
        }
    }
}

/// Keeps what comes of tasks, as the engine does, and opens it for the tasks that follow.
struct Kept {
    secrets: Arc<dyn Open>,
    values: Mutex<BTreeMap<(Owner, EntryName), Secret>>,
}

impl Open for Kept {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        self.secrets.open(secret)
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = values.get(&(owner.clone(), entry.clone()));
        let kept = kept.map(|value| Secret::from(value.expose().to_vec()));
        Box::pin(std::future::ready(Ok(kept)))
    }
}

/// One attempt as a rule makes it: with a log to read and a way to stop it.
struct Trial {
    context: Context,
    cancel: CancellationToken,
    lines: Arc<Lines>,
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _at: Timestamp, text: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(text.to_owned());
    }
}

impl Trial {
    fn new(clock: Clock, secrets: Arc<dyn Open>) -> Self {
        let cancel = CancellationToken::new();
        let lines = Arc::new(Lines::default());
        let log: Arc<dyn Log> = lines.clone();
        let context = Context::new(clock, log, secrets, cancel.clone(), 1);
        Self {
            context,
            cancel,
            lines,
        }
    }

    fn written(&self) -> usize {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| !line.trim().is_empty()).count()
    }
}

/// Names a task in a sentence.
fn told(task: &Task) -> String {
    format!("{} {}", task.action.kind(), task.machine.name)
}

/// What a task that must work saw, or how it ended instead.
fn done(task: &Task, outcome: Outcome) -> Result<Vec<Observation>, String> {
    finished(task, outcome).map(|(seen, _)| seen)
}

/// What a task that must work saw and produced, or how it ended instead.
fn finished(task: &Task, outcome: Outcome) -> Result<(Vec<Observation>, Vec<Output>), String> {
    match outcome {
        Outcome::Done(seen, outputs) => Ok((seen, outputs)),
        Outcome::Retry(error) => Err(format!("{} asked for a retry: {error}", told(task))),
        Outcome::Stuck(error) => Err(format!("{} got stuck: {error}", told(task))),
    }
}
