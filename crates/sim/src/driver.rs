//! The simulated driver: real manners in a world that is not.
//!
//! It behaves as a driver for a real provider must: it looks before it makes, adopts what
//! a vanished attempt left, checks for cancellation before every effect and leaves out
//! what it cannot see. `driver::suite` holds it to that.

mod foreseen;
mod gates;
mod kubeconfig;
pub(crate) mod ssh_key;

use crate::chronicle::Chronicle;
use crate::faults::{Failure, Faults, INJECTED, Moment, Profile};
use crate::world::{Begun, Change, Refusal, Step, World};
use ::driver::{Context, Driver, Error, Outcome, Output, Target, Unopened};
use model::cluster::Machine;
use model::id::ClusterId;
use model::observed::{Fact, Observation};
use model::provider::Provider;
use model::sealed::Owner;
use model::secret::EntryName;
use model::task::{Action, Kind, Task};
use model::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait at first when another process has the world to itself; then twice as
/// long each time.
const PAUSE_LEAST: Duration = Duration::from_millis(1);

/// The longest of these pauses: about four seconds in all.
const PAUSE_MOST: Duration = Duration::from_millis(2_048);

/// Which value of a cluster opens the door to it.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// Which value of a cluster opens its machines.
pub(crate) const SSH_KEY: &str = "ssh-key";

/// What a secret says that lets nobody in.
pub(crate) const WRONG: &str = "wrong";

/// A driver for the simulated world.
pub struct Simulated {
    world: World,
    reach: Reach,
    faults: Arc<Faults>,
    chronicle: Option<Arc<Chronicle>>,
}

/// How much of the world a driver reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All of it.
    Everything,
    /// Kubernetes alone: another driver makes the machines.
    Kubernetes,
}

/// What a finished task saw, and what came of it.
type Done = (Vec<Observation>, Vec<Output>);

/// Where a machine is that another driver made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lent {
    /// In this world, as far as it should be.
    Here,
    /// With the other driver alone.
    Back,
}

/// Why an attempt ended without success.
enum Failed {
    Later(Error),
    Never(Error),
}

impl From<Unopened> for Failed {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Retry(error) => Self::Later(error),
            Unopened::Stuck(error) => Self::Never(error),
        }
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy(error) | Refusal::Later(error) => Self::Later(error),
            Refusal::Never(error) => Self::Never(error),
        }
    }
}

impl Simulated {
    /// A driver that nothing goes wrong for.
    pub fn new(world: World) -> Self {
        let faults = Arc::new(Faults::by_chance(Profile::None, 0));
        Self {
            world,
            reach: Reach::Everything,
            faults,
            chronicle: None,
        }
    }

    /// A driver that does the work of Kubernetes alone, on machines that another driver makes.
    ///
    /// A machine is lent to the world when it is to become a node, and taken back, with its
    /// node, when it is to be removed: whoever puts the two drivers together gives `delete` and
    /// `release` to this one first, then to the other. Looks tell of nodes alone. That a
    /// machine lost its power is not known here; [`World::cut_power`] says so.
    pub fn kubernetes_only(world: World) -> Self {
        Self {
            reach: Reach::Kubernetes,
            ..Self::new(world)
        }
    }

    /// A driver in a rehearsal: things go wrong, and what happens is told.
    pub(crate) fn rehearsing(world: World, faults: Arc<Faults>, chronicle: Arc<Chronicle>) -> Self {
        Self {
            world,
            reach: Reach::Everything,
            faults,
            chronicle: Some(chronicle),
        }
    }

    async fn attempt(&self, cx: &Context, task: &Task) -> Result<Done, Failed> {
        go_on(cx)?;
        match self.reach {
            Reach::Everything => authorise(cx, task).await?,
            Reach::Kubernetes => {
                if self.borrow(cx, task).await? == Lent::Back {
                    return Ok((self.seen(cx, task).await?, Vec::new()));
                }
            }
        }
        self.reached(task)?;
        self.pass(cx, task).await?;
        let step = self.ask(cx, || self.world.step(task)).await?;
        let before = self.before(task, &step);
        let begun = match step {
            Step::Done => {
                cx.log(&format!("{} is as wished already", task.machine.name));
                None
            }
            Step::UnderWay { until } => {
                cx.log(&format!(
                    "{} of {} is under way already; adopting it",
                    task.action.kind(),
                    task.machine.name
                ));
                Some(Begun {
                    operation: None,
                    until,
                    reference: String::new(),
                })
            }
            Step::Begin(_) => {
                let effect = self.faults.effect();
                self.faults.pass(effect, Moment::Before).await;
                go_on(cx)?;
                let begun = self.begin(cx, task).await?;
                let hand = Hand::on(&self.world, begun.operation);
                self.faults.pass(effect, Moment::During).await;
                self.wait(cx, &begun).await?;
                hand.finish();
                self.faults.pass(effect, Moment::After).await;
                None
            }
        };
        if let Some(begun) = begun {
            self.wait(cx, &begun).await?;
        }
        match self.ask(cx, || self.world.step(task)).await? {
            Step::Done => {
                if let Some(before) = &before {
                    self.compare(before, task);
                }
                Ok((self.seen(cx, task).await?, outputs(task)))
            }
            Step::UnderWay { .. } | Step::Begin(_) => Err(Failed::Later(Error {
                attempted: format!(
                    "{} of {} was interrupted",
                    task.action.kind(),
                    task.machine.name
                ),
                hint: "tries again by itself".to_owned(),
            })),
        }
    }

    /// Takes the machine of a task from the driver that made it, or gives it back.
    async fn borrow(&self, cx: &Context, task: &Task) -> Result<Lent, Failed> {
        let machine = &task.machine;
        match &task.action {
            Action::Init { .. } | Action::Join { .. } => {
                self.ask(cx, || self.world.lend_briefly(task)).await?;
                Ok(Lent::Here)
            }
            Action::Install { .. }
            | Action::Tend { .. }
            | Action::Drain
            | Action::Upgrade { .. }
            | Action::Renew { .. }
            | Action::Uncordon
            | Action::Readmit { .. }
            | Action::Leave
            | Action::Clear { .. }
            | Action::Snapshot { .. }
            | Action::Restore { .. } => Ok(Lent::Here),
            Action::Delete | Action::Release => {
                let back = || self.world.take_back_briefly(machine.id);
                self.ask(cx, back).await?;
                cx.log(&format!(
                    "{} is no machine of Kubernetes any more",
                    machine.name
                ));
                Ok(Lent::Back)
            }
            Action::Key
            | Action::Create
            | Action::CreateExposed
            | Action::Prepare
            | Action::Equip { .. }
            | Action::Mesh { .. }
            | Action::Balance { .. }
            | Action::Name { .. }
            | Action::Expose
            | Action::Shut => Err(Failed::Never(Error {
                attempted: format!(
                    "{} of {} is no work of Kubernetes",
                    task.action.kind(),
                    machine.name
                ),
                hint: "give it to the driver of its hosts".to_owned(),
            })),
        }
    }

    async fn begin(&self, cx: &Context, task: &Task) -> Result<Begun, Failed> {
        let stretch = self.faults.stretch();
        let (kind, name) = (task.action.kind(), &task.machine.name);
        match Change::of(task) {
            None if task.action == Action::Key => {
                let public = ssh_key::public(task.cluster);
                let order = || self.world.order_key(task, &public, stretch);
                let begun = self.ask(cx, order).await?;
                cx.log(&format!("began to make {}", begun.reference));
                Ok(begun)
            }
            None => {
                let order = || self.world.order(task, stretch);
                let begun = self.ask(cx, order).await?;
                cx.log(&format!("ordered {} for {name}", begun.reference));
                Ok(begun)
            }
            Some(change) => {
                let begin = || self.world.begin(task, &change, stretch);
                let begun = self.ask(cx, begin).await?;
                cx.log(&format!("began to {kind} {name} on {}", begun.reference));
                Ok(begun)
            }
        }
    }

    /// Asks the world, and asks again while another process has it to itself. A process that
    /// was stopped in the middle would keep it for good, so there is an end to that.
    async fn ask<T>(
        &self,
        cx: &Context,
        ask: impl Fn() -> Result<T, Refusal>,
    ) -> Result<T, Failed> {
        let mut pause = PAUSE_LEAST;
        loop {
            match ask() {
                Err(Refusal::Busy(_)) if pause <= PAUSE_MOST => {
                    tokio::select! {
                        biased;
                        () = cx.cancelled() => return Err(stopped()),
                        () = sleep(pause) => pause *= 2,
                    }
                }
                answer => return Ok(answer?),
            }
        }
    }

    async fn wait(&self, cx: &Context, begun: &Begun) -> Result<(), Failed> {
        loop {
            let left = begun.until.since(self.world.now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Err(stopped()),
                () = sleep(left) => {}
            }
        }
    }

    /// What is seen of the machine when its task is done.
    async fn seen(&self, cx: &Context, task: &Task) -> Result<Vec<Observation>, Failed> {
        let (at, facts) = self.look(cx, task.cluster, &task.touched()).await?;
        let told = facts.into_iter().filter(|fact| self.concerns(fact, task));
        let told = told.chain(self.cleared(cx, task).await?);
        let seen: Vec<_> = told
            .map(|fact| Observation {
                cluster: task.cluster,
                fact,
                at,
            })
            .collect();
        cx.log(&format!(
            "{} {}: done",
            task.action.kind(),
            task.machine.name
        ));
        Ok(seen)
    }

    /// What is seen of nodes that were left of machines when they were cleared.
    async fn cleared(&self, cx: &Context, task: &Task) -> Result<Vec<Fact>, Failed> {
        let Action::Clear { leftovers } = &task.action else {
            return Ok(Vec::new());
        };
        let look = || self.world.leftovers(task.cluster, leftovers);
        self.ask(cx, look).await
    }

    /// Whether a fact is about what a task did.
    fn concerns(&self, fact: &Fact, task: &Task) -> bool {
        let kind = task.action.kind();
        let machine = match kind {
            Kind::Create | Kind::Prepare | Kind::Delete | Kind::Release => true,
            Kind::Key
            | Kind::Equip
            | Kind::Mesh
            | Kind::Balance
            | Kind::Name
            | Kind::Expose
            | Kind::Shut
            | Kind::Init
            | Kind::Join
            | Kind::Install
            | Kind::Tend
            | Kind::Drain
            | Kind::Upgrade
            | Kind::Renew
            | Kind::Uncordon
            | Kind::Leave
            | Kind::Clear
            | Kind::Snapshot
            | Kind::Restore => false,
        };
        let host = matches!(kind, Kind::Equip | Kind::Mesh | Kind::Balance);
        match fact {
            Fact::Machine(..) => machine,
            Fact::Host(..) => machine || host,
            Fact::Node(..) => {
                let nodes = self.reach == Reach::Kubernetes;
                let others = matches!(
                    kind,
                    Kind::Key | Kind::Name | Kind::Expose | Kind::Shut | Kind::Install
                );
                nodes || !machine && !host && !others
            }
            Fact::ControlPlane(_) => kind == Kind::Init,
            Fact::Snapshots(_) => matches!(kind, Kind::Init | Kind::Snapshot),
            Fact::Restored(_) => kind == Kind::Restore,
            Fact::Names(..) => machine || kind == Kind::Name,
            Fact::Port(..) => machine || matches!(kind, Kind::Expose | Kind::Shut),
            Fact::Certificates(..) => {
                matches!(kind, Kind::Init | Kind::Join | Kind::Upgrade | Kind::Renew)
            }
            Fact::Access(_) => kind == Kind::Key,
            Fact::Addons(_) => kind == Kind::Install,
            Fact::Strays(_) | Fact::Silence(_) | Fact::Commit(..) | Fact::Unresolved(..) => false,
        }
    }

    /// Who answers for names here: in a rehearsal everybody, else those alone whose names are
    /// simulated.
    fn asked(&self) -> Vec<Provider> {
        let rehearses = self.chronicle.is_some();
        let all = Provider::all().filter(|provider| provider.answers());
        all.filter(|provider| rehearses || *provider == Provider::Simulated)
            .collect()
    }

    /// Refuses what nobody here can do.
    fn reached(&self, task: &Task) -> Result<(), Failed> {
        let Action::Name { naming } = &task.action else {
            return Ok(());
        };
        let asked = self.asked();
        let mut names = naming.names.iter().chain(&naming.former);
        match names.find(|entry| !asked.contains(&entry.via)) {
            None => Ok(()),
            Some(entry) => Err(Failed::Never(Error {
                attempted: format!("nobody here makes records with {}", entry.via.as_str()),
                hint: format!("make or remove the record of {} yourself", entry.name),
            })),
        }
    }

    /// What there is to see, and since when at least.
    async fn look(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machines: &[Machine],
    ) -> Result<(Timestamp, Vec<Fact>), Failed> {
        let look = || {
            let at = cx.now();
            let mut facts = match self.reach {
                Reach::Everything => self.world.facts(cluster, machines)?,
                Reach::Kubernetes => self.world.node_facts(cluster, machines)?,
            };
            for fact in &mut facts {
                if let Fact::Names(_, names) = fact {
                    names.asked = self.asked();
                }
            }
            Ok((at, facts))
        };
        self.ask(cx, look).await
    }
}

impl Driver for Simulated {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        let failure = self.faults.attempt(task);
        let ended = match failure {
            Some(Failure::Retry) => Err(Failed::Later(injected())),
            Some(Failure::Stuck) => Err(Failed::Never(injected())),
            Some(Failure::LostAnswer) => match self.attempt(cx, task).await {
                Ok(_) => Err(Failed::Later(injected())),
                Err(failed) => Err(failed),
            },
            None => self.attempt(cx, task).await,
        };
        let outcome = match ended {
            Ok((seen, outputs)) => Outcome::Done(seen, outputs),
            Err(Failed::Later(error)) => Outcome::Retry(error),
            Err(Failed::Never(error)) => Outcome::Stuck(error),
        };
        if let Outcome::Retry(error) | Outcome::Stuck(error) = &outcome {
            cx.log(&error.to_string());
        }
        if let Some(chronicle) = &self.chronicle {
            chronicle.attempt(cx.now(), task, &outcome);
        }
        outcome
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let looked = self.look(cx, target.cluster, &target.machines).await;
        let strays = || self.world.strays(target.cluster, &target.machines);
        let strays = match (&looked, target.whole) {
            (Ok(_), true) => self.ask(cx, strays).await,
            (Ok(_), false) | (Err(_), _) => Ok(None),
        };
        let (at, facts) = match looked.and_then(|seen| Ok((seen, strays?))) {
            Ok(((at, mut facts), strays)) => {
                facts.extend(strays);
                (at, facts)
            }
            Err(Failed::Later(error) | Failed::Never(error)) => {
                if !cx.is_cancelled() {
                    tracing::warn!(cluster = %target.cluster, "could not look: {error}");
                }
                return Vec::new();
            }
        };
        // What opens machines comes with its secret half, from whoever made it: who heard of it
        // from a look would never ask for the rest.
        let facts = facts
            .into_iter()
            .filter(|fact| !matches!(fact, Fact::Access(_)));
        let seen = facts.map(|fact| Observation {
            cluster: target.cluster,
            fact,
            at,
        });
        let (delay, shown) = self.faults.blur(seen.collect());
        let delay = delay + self.world.pace().look();
        if !delay.is_zero() {
            tokio::select! {
                biased;
                () = cx.cancelled() => return Vec::new(),
                () = sleep(delay) => {}
            }
        }
        shown
    }
}

/// Holds on to a change; when it is dropped in the middle, the change is let go.
struct Hand<'a> {
    world: &'a World,
    operation: Option<u64>,
}

impl<'a> Hand<'a> {
    fn on(world: &'a World, operation: Option<u64>) -> Self {
        Self { world, operation }
    }

    fn finish(mut self) {
        self.operation = None;
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation {
            self.world.let_go(operation);
        }
    }
}

/// Opens what the machine is made or entered with, and where snapshots are kept, where the manifest names it. The simulated
/// world would let anybody in; only those are refused who come with nothing, or with what is known to be wrong.
async fn authorise(cx: &Context, task: &Task) -> Result<(), Failed> {
    for secret in task.action.needs(&task.machine.origin) {
        let value = cx.secret(&secret).await?;
        let wrong = match value.expose() {
            b"" => Some("is empty"),
            value if value == WRONG.as_bytes() => Some("is refused"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            let entry = secret.key.as_ref().map_or("KEY", EntryName::as_str);
            return Err(Failed::Never(Error {
                attempted: format!("secret {secret} {wrong}"),
                hint: format!(
                    "set it again with `slipway secret set {} {entry}`",
                    secret.name
                ),
            }));
        }
        cx.log(&format!("opened secret {secret}"));
    }
    Ok(())
}

/// What came of a task: whoever makes a key or starts a control plane gets what opens it.
fn outputs(task: &Task) -> Vec<Output> {
    let (entry, value) = match task.action {
        Action::Init { .. } => (KUBECONFIG, kubeconfig::of(task)),
        Action::Key => (SSH_KEY, ssh_key::private(task.cluster)),
        Action::Create
        | Action::CreateExposed
        | Action::Prepare
        | Action::Equip { .. }
        | Action::Mesh { .. }
        | Action::Balance { .. }
        | Action::Name { .. }
        | Action::Expose
        | Action::Shut
        | Action::Join { .. }
        | Action::Install { .. }
        | Action::Tend { .. }
        | Action::Drain
        | Action::Upgrade { .. }
        | Action::Renew { .. }
        | Action::Uncordon
        | Action::Readmit { .. }
        | Action::Leave
        | Action::Clear { .. }
        | Action::Snapshot { .. }
        | Action::Restore { .. }
        | Action::Delete
        | Action::Release => return Vec::new(),
    };
    let entry: Result<EntryName, _> = entry.parse();
    let output = entry.map(|entry| Output {
        owner: Owner::Cluster(task.cluster),
        entry,
        value,
    });
    output.into_iter().collect()
}

fn go_on(cx: &Context) -> Result<(), Failed> {
    if cx.is_cancelled() {
        Err(stopped())
    } else {
        Ok(())
    }
}

fn stopped() -> Failed {
    Failed::Later(Error {
        attempted: "stopped as told".to_owned(),
        hint: "continues at the next start".to_owned(),
    })
}

fn injected() -> Error {
    Error {
        attempted: INJECTED.to_owned(),
        hint: "try again".to_owned(),
    }
}

#[cfg(test)]
mod tests;
