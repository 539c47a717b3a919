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

use crate::{Clock, Context, Driver, Log, NoSecrets, Outcome, Output};
use model::cluster::{Generation, Machine};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::network::Network;
use model::observed::Observation;
use model::task::{Action, Task};
use model::time::Timestamp;
use model::version::Version;
use std::fmt;
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
        }
    }

    /// A whole life: every kind of action, each at a point where it makes sense.
    pub fn life(&self) -> Vec<Task> {
        let (version, network) = (self.version, self.network);
        let upgrade = Action::Upgrade {
            version: self.next_version,
        };
        [
            (&self.control, Action::Create),
            (&self.control, Action::Init { version, network }),
            (&self.compute, Action::Create),
            (&self.compute, Action::Join { version }),
            (&self.given, Action::Prepare),
            (&self.given, Action::Join { version }),
            (&self.control, Action::Drain),
            (&self.control, upgrade.clone()),
            (&self.control, Action::Uncordon),
            (&self.compute, Action::Drain),
            (&self.compute, upgrade),
            (&self.compute, Action::Uncordon),
            (&self.given, Action::Drain),
            (&self.given, Action::Leave),
            (&self.given, Action::Release),
            (&self.compute, Action::Drain),
            (&self.compute, Action::Leave),
            (&self.compute, Action::Delete),
            (&self.control, Action::Delete),
        ]
        .map(|(machine, action)| self.task(machine, action))
        .into()
    }

    /// Every machine of the cast.
    pub fn machines(&self) -> Vec<Machine> {
        vec![
            self.control.clone(),
            self.compute.clone(),
            self.given.clone(),
        ]
    }
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
        Box::pin(rules::apply_twice(fixture)).await,
    );
    report.note(
        "a whole life leaves nothing behind",
        Box::pin(rules::nothing_is_left(fixture)).await,
    );
    report.note(
        "a create that was interrupted after its effect is adopted, not made twice",
        Box::pin(rules::interrupted_create(fixture)).await,
    );
    report.note(
        "removing what is not there is done",
        Box::pin(rules::remove_absent(fixture)).await,
    );
    report.note(
        "looking changes nothing",
        Box::pin(rules::probe_changes_nothing(fixture)).await,
    );
    report.note(
        "looking tells of what was asked for, and of absence only where it is known",
        Box::pin(rules::probe_tells_what_it_knows(fixture)).await,
    );
    report.note(
        "silence is not absence",
        Box::pin(rules::silence_is_not_absence(fixture)).await,
    );
    report.note(
        "what an attempt saw, the next look sees too",
        Box::pin(rules::observations_agree(fixture)).await,
    );
    report.note(
        "an attempt that is cancelled before it starts begins nothing",
        Box::pin(rules::cancelled_begins_nothing(fixture)).await,
    );
    report.note(
        "an attempt that is cancelled in the middle ends soon",
        Box::pin(rules::cancelled_ends_soon(fixture)).await,
    );
    report.note(
        "what came of a task belongs to it, and comes again when it is asked again",
        Box::pin(rules::outputs_come_again(fixture)).await,
    );
    report.note(
        "an attempt writes to its log",
        Box::pin(rules::attempts_are_logged(fixture)).await,
    );
    report.note(
        "what is stuck says what would help",
        Box::pin(rules::stuck_has_a_hint(fixture)).await,
    );
    report
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
    fn new(clock: Clock) -> Self {
        let cancel = CancellationToken::new();
        let lines = Arc::new(Lines::default());
        let log: Arc<dyn Log> = lines.clone();
        let context = Context::new(clock, log, Arc::new(NoSecrets), cancel.clone(), 1);
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
