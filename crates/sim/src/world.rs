//! The world in memory: what a provider, given hosts and Kubernetes would be.
//!
//! Making a machine is *not* idempotent: every order gives a new machine with a new
//! reference and the label of whoever ordered it, exactly as a cloud does. Everything
//! else takes time in two steps, begun and done, so that a worker can be killed before,
//! in between and after. The world remembers what must never happen, so that a test can
//! ask for it afterwards.
//!
//! The same world serves two purposes. Under tokio's paused clock it is a rehearsal: hours
//! pass in no time, and nothing is written. Opened on a file it stands for the outside of
//! running servers and workers: any number of processes on one machine share it, and it
//! survives them all.

mod addons;
mod effect;
mod error;
mod furnish;
mod journal;
mod kit;
mod lend;
mod lock;
mod look;
mod modules;
mod names;
mod pace;
mod picture;
mod ports;
mod saved;
mod state;
mod strays;
mod watch;

pub use error::Error;
pub use look::lacks;
pub use pace::Pace;
pub use watch::{Rule, Violation};

pub(crate) use effect::Change;
pub(crate) use look::{Refusal, Step};

use driver::Clock;
use effect::{Bearer, Computer, Effect, Operation, bearer, endpoint};
use journal::{COMPACT_FROM, Journal};
use lock::{Held, Share};
use model::cluster::Machine;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::{Fact, Observed};
use model::snapshot::SnapshotsFact;
use model::stray::Leftover;
use model::task::{Action, Kind, Task};
use model::templates::{Commit, Reference};
use model::time::Timestamp;
use saved::Saved;
use state::{Key, State};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a driver's thread waits for the lock: other work may wait for the thread. The
/// driver asks again later.
const BRIEFLY: Duration = Duration::from_micros(500);

/// How long everybody else waits for the lock.
const PATIENTLY: Duration = Duration::from_secs(10);

/// A handle on the world; clones share it.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    pace: Pace,
    seed: u64,
    kept: Mutex<Kept>,
}

struct Kept {
    state: State,
    journal: Option<Journal>,
    let_go: LetGo,
}

/// What becomes of a change on a machine when the one who drives it vanishes.
///
/// Machines that the provider makes or destroys are never affected: it goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LetGo {
    /// Nobody notices, and it takes effect all the same.
    #[default]
    GoesOn,
    /// It stays half done.
    Stops,
    /// One or the other, by the seed.
    Either,
}

/// A change or an order that was begun.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The number of the change, where it can be let go.
    pub(crate) operation: Option<u64>,
    /// When it takes effect.
    pub(crate) until: Timestamp,
    /// What it happens on, in the provider's words.
    pub(crate) reference: String,
}

impl World {
    /// An empty world in memory, whose rules are watched.
    pub fn new(clock: Clock, pace: Pace, seed: u64) -> Self {
        let mut state = State::default();
        state.watched = true;
        Self::from_parts(clock, pace, seed, state, None)
    }

    /// The world that is kept in a file, in real time; made when there is none.
    ///
    /// Whoever opens the same file, here or in another process, is in the same world. A lock
    /// file lies beside it, with the extension `lock`.
    pub fn open(path: &Path, pace: Pace, seed: u64) -> Result<Self, Error> {
        Self::open_on(Clock::System, path, pace, seed, COMPACT_FROM)
    }

    /// The world that is kept in a file, whose rules are watched from now on, whoever breaks
    /// them: the file says so to everybody.
    pub fn open_watched(path: &Path, pace: Pace, seed: u64) -> Result<Self, Error> {
        let world = Self::open(path, pace, seed)?;
        world.watch()?;
        Ok(world)
    }

    fn watch(&self) -> Result<(), Error> {
        self.act(PATIENTLY, |kept, now| {
            if kept.state.watched {
                return Ok(());
            }
            kept.happen(now, Effect::Watch)
        })
    }

    fn open_on(
        clock: Clock,
        path: &Path,
        pace: Pace,
        seed: u64,
        compact_from: u64,
    ) -> Result<Self, Error> {
        let (journal, state) = Journal::open(path, compact_from, PATIENTLY)?;
        Ok(Self::from_parts(clock, pace, seed, state, Some(journal)))
    }

    fn from_parts(
        clock: Clock,
        pace: Pace,
        seed: u64,
        state: State,
        journal: Option<Journal>,
    ) -> Self {
        let kept = Kept {
            state,
            journal,
            let_go: LetGo::default(),
        };
        let kept = Mutex::new(kept);
        let inner = Inner {
            clock,
            pace,
            seed,
            kept,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Says what becomes of changes whose driver vanishes.
    pub fn when_let_go(&self, let_go: LetGo) {
        self.lock().let_go = let_go;
    }

    /// Takes the power from a machine.
    pub fn cut_power(&self, machine: &Machine) {
        self.power(machine, false);
    }

    /// Gives a machine its power back; it answers at once.
    pub fn restore_power(&self, machine: &Machine) {
        self.power(machine, true);
    }

    /// Somebody destroys the machine that a provider made, by hand.
    pub fn destroy(&self, machine: MachineId) {
        let made = self.seen(|state, _| {
            let made = state.labelled(machine).map(|(number, _)| number);
            made.collect::<Vec<_>>()
        });
        for vm in made {
            self.happen(Effect::Vanish { vm });
        }
    }

    /// A node is there from now on that is left of a machine, or that somebody else has joined.
    pub fn stray(&self, cluster: ClusterId, node: &Name, of: Option<MachineId>) {
        let node = node.clone();
        self.happen(Effect::Stray { cluster, node, of });
    }

    /// Lets the provider stop selling a server type, or sell it again.
    pub fn offer(&self, server_type: &str, offered: bool) {
        let server_type = server_type.to_owned();
        self.happen(Effect::Offer {
            server_type,
            offered,
        });
    }

    /// Lets what a gate asks for fail, or be well again.
    pub fn set_gate(&self, gate: &Name, open: bool) {
        let gate = gate.clone();
        self.happen(Effect::Gate { gate, open });
    }

    /// Lets a tag or a branch of a repository lead to a commit.
    pub fn lead(&self, reference: Reference, commit: Commit) {
        self.happen(Effect::Lead { reference, commit });
    }

    /// Lets a repository answer, or not.
    pub fn set_repository(&self, repository: &str, answers: bool) {
        let repository = repository.to_owned();
        self.happen(Effect::Repository {
            repository,
            answers,
        });
    }

    /// Whether a gate lets nobody pass.
    pub(crate) fn is_shut(&self, gate: &Name) -> Result<bool, Refusal> {
        Ok(self.look(BRIEFLY, |state, _| state.shut.contains(gate))?)
    }

    /// Puts a running computer into the world for a machine that another driver makes, so that
    /// it can carry a node. Does nothing where the machine is there already.
    ///
    /// May wait for another process; drivers use [`crate::Simulated::kubernetes_only`].
    pub fn lend(&self, cluster: ClusterId, machine: &Machine) -> Result<(), Error> {
        self.lend_within(PATIENTLY, cluster, machine)
    }

    /// Removes the computer of such a machine, and its node with it. Does nothing where there
    /// is none, and never to machines of this world.
    pub fn take_back(&self, machine: MachineId) -> Result<(), Error> {
        self.take_back_within(PATIENTLY, machine)
    }

    pub(crate) fn lend_briefly(&self, task: &Task) -> Result<(), Refusal> {
        Ok(self.lend_within(BRIEFLY, task.cluster, &task.machine)?)
    }

    pub(crate) fn take_back_briefly(&self, machine: MachineId) -> Result<(), Refusal> {
        Ok(self.take_back_within(BRIEFLY, machine)?)
    }

    fn lend_within(
        &self,
        patience: Duration,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Result<(), Error> {
        self.act(patience, |kept, now| {
            if kept.state.whose(machine.id).is_some() {
                return Ok(());
            }
            let on = match endpoint(machine) {
                Some(address) => Computer::Host(address),
                None => Computer::Vm(kept.state.vm_last + 1),
            };
            let by = Bearer {
                machine: machine.id,
                name: machine.name.clone(),
                cluster,
            };
            let address = machine.address;
            kept.happen(now, Effect::Lend { on, by, address })
        })
    }

    fn take_back_within(&self, patience: Duration, machine: MachineId) -> Result<(), Error> {
        self.act(patience, |kept, now| {
            if kept.state.lent(machine).is_none() {
                return Ok(());
            }
            kept.happen(now, Effect::TakeBack { machine })
        })
    }

    /// Lets the certificates of a control plane end at this time.
    pub fn age(&self, cluster: ClusterId, end: Timestamp) {
        self.happen(Effect::Age { cluster, end });
    }

    /// Says that a cluster is to go as a whole: its removal breaks no rule.
    pub fn condemn(&self, cluster: ClusterId) {
        self.happen(Effect::Condemn { cluster });
    }

    /// How many machines bear this label.
    pub fn machines_named(&self, machine: MachineId) -> usize {
        self.seen(|state, _| state.labelled(machine).count())
    }

    /// How many machines the provider keeps for anybody.
    pub fn machines(&self) -> usize {
        self.seen(|state, _| state.vms.len())
    }

    /// How many given hosts are in use.
    pub fn hosts(&self) -> usize {
        self.seen(|state, _| {
            let hosts = state.hosts.values();
            hosts.filter(|host| host.owner.is_some()).count()
        })
    }

    /// How often a machine was ever made, for each label.
    pub fn made(&self) -> BTreeMap<MachineId, u32> {
        self.seen(|state, _| state.made.clone())
    }

    /// The names that lead to machines of anybody, each with those machines.
    pub fn names(&self) -> Vec<String> {
        self.seen(|state, _| state.named())
    }

    /// How many changes were begun and have not taken effect yet, whoever began them.
    pub fn under_way(&self) -> usize {
        self.seen(|state, _| state.operations.len())
    }

    /// What must never happen, and did.
    pub fn violations(&self) -> Vec<Violation> {
        self.seen(|state, _| state.violations.clone())
    }

    /// All that an outsider sees of one cluster.
    pub fn picture(&self, cluster: ClusterId) -> String {
        self.seen(|state, now| state.picture(Some(cluster), now))
    }

    /// All that an outsider sees.
    pub fn whole_picture(&self) -> String {
        self.seen(|state, now| state.picture(None, now))
    }

    /// What time it is in this world.
    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// How long things take.
    pub(crate) fn pace(&self) -> Pace {
        self.inner.pace
    }

    /// How far the world is with what a task asks for.
    pub(crate) fn step(&self, task: &Task) -> Result<Step, Refusal> {
        self.look(BRIEFLY, |state, now| state.step(task, now))?
    }

    /// Orders a machine from the provider, `stretch` times slower than usual.
    pub(crate) fn order(&self, task: &Task, stretch: u32) -> Result<Begun, Refusal> {
        let span = self.span(task.machine.id, Kind::Create) * stretch;
        self.act(BRIEFLY, |kept, now| {
            let until = now.plus(span);
            let vm = kept.state.vm_last + 1;
            let order = Effect::Order {
                vm,
                by: bearer(task),
                address: task.machine.address,
                boots_at: until,
                host: task.machine.origin.is_host(),
                port: task
                    .machine
                    .has_firewall()
                    .then_some(task.action == Action::CreateExposed),
            };
            kept.happen(now, order)?;
            Ok(Begun {
                operation: None,
                until,
                reference: Computer::Vm(vm).reference(),
            })
        })
    }

    /// Has the key made that opens the machines of a cluster, unless there is one.
    pub(crate) fn order_key(
        &self,
        task: &Task,
        public: &str,
        stretch: u32,
    ) -> Result<Begun, Refusal> {
        let span = self.span(task.machine.id, Kind::Key) * stretch;
        self.act(BRIEFLY, |kept, now| {
            let until = match kept.state.keys.get(&task.cluster) {
                Some(key) => key.from,
                None => now.plus(span),
            };
            if !kept.state.keys.contains_key(&task.cluster) {
                let key = Effect::Key {
                    cluster: task.cluster,
                    public: public.to_owned(),
                    from: until,
                };
                kept.happen(now, key)?;
            }
            Ok(Begun {
                operation: None,
                until,
                reference: format!("the key of {}", task.cluster_name),
            })
        })
    }

    /// Begins the change that a task asks for, unless it is there or under way by now.
    pub(crate) fn begin(
        &self,
        task: &Task,
        change: &Change,
        stretch: u32,
    ) -> Result<Begun, Refusal> {
        let span = self.span(task.machine.id, change.kind()) * stretch;
        self.act(BRIEFLY, |kept, now| {
            let (operation, until, on) = match kept.state.step(task, now)? {
                Step::Done | Step::Begin(None) => (None, now, None),
                Step::UnderWay { until } => (None, until, None),
                Step::Begin(Some(on)) => {
                    let operation = kept.state.operation_last + 1;
                    let until = now.plus(span);
                    let of = Operation {
                        by: bearer(task),
                        role: task.machine.role,
                        on,
                        change: change.clone(),
                        until,
                        host: task.machine.origin.is_host(),
                    };
                    kept.happen(now, Effect::Begin { operation, of })?;
                    let by_itself = matches!(change, Change::Delete);
                    ((!by_itself).then_some(operation), until, Some(on))
                }
            };
            let reference = on.map(Computer::reference).unwrap_or_default();
            Ok(Begun {
                operation,
                until,
                reference,
            })
        })
    }

    /// Says that nobody drives a change any more.
    pub(crate) fn let_go(&self, operation: u64) {
        let let_go = self.lock().let_go;
        let stops = match let_go {
            LetGo::GoesOn => false,
            LetGo::Stops => true,
            LetGo::Either => fastrand::Rng::with_seed(self.inner.seed ^ operation).bool(),
        };
        if stops {
            // A world that could not write it down goes on with the change: as if the
            // machine had not noticed either.
            self.happen(Effect::LetGo { operation });
        }
    }

    /// What is seen of some machines of a cluster.
    pub(crate) fn facts(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
    ) -> Result<Vec<Fact>, Refusal> {
        Ok(self.look(BRIEFLY, |state, now| state.facts(cluster, machines, now))?)
    }

    /// What Kubernetes says of some machines of a cluster, and nothing else.
    pub(crate) fn node_facts(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
    ) -> Result<Vec<Fact>, Refusal> {
        Ok(self.look(BRIEFLY, |state, now| {
            state.node_facts(cluster, machines, now)
        })?)
    }

    /// The nodes of a cluster that are none of these machines'.
    pub(crate) fn strays(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
    ) -> Result<Option<Fact>, Refusal> {
        Ok(self.look(BRIEFLY, |state, now| {
            state.strays_fact(cluster, machines, now)
        })?)
    }

    /// What Kubernetes says of nodes that are left of machines.
    pub(crate) fn leftovers(
        &self,
        cluster: ClusterId,
        leftovers: &[Leftover],
    ) -> Result<Vec<Fact>, Refusal> {
        Ok(self.look(BRIEFLY, |state, now| {
            let facts = leftovers.iter();
            let facts = facts.filter_map(|left| state.node_fact(cluster, left.machine, now));
            facts.collect()
        })?)
    }

    /// Notes that a task led elsewhere than was foreseen. It is not written down: only in
    /// rehearsals, which have a world in memory, does anybody compare.
    pub(crate) fn unforeseen(&self, task: &Task, how: String) {
        let now = self.now();
        self.lock().state.unforeseen(now, &bearer(task), how);
    }

    /// Whether a firewall stands before any machine.
    pub(crate) fn has_firewalls(&self) -> bool {
        self.seen(|state, _| state.vms.values().any(|vm| vm.port.is_some()))
    }

    /// Somebody looks for the API of a cluster on a machine. That nobody lets them in is not written
    /// down: only in rehearsals does anybody look.
    pub(crate) fn look_for_api(&self, cluster: ClusterId, machine: &Machine) {
        let now = self.now();
        let mut kept = self.lock();
        kept.settle(now);
        let by = Bearer {
            machine: machine.id,
            name: machine.name.clone(),
            cluster,
        };
        if kept.state.is_shut(machine) && kept.state.watches(&by) {
            kept.state.violated(now, &by, Rule::SentToShut);
        }
    }

    /// Puts into the world what was observed of a cluster elsewhere. It is not written down:
    /// only a world in memory begins that way.
    pub(crate) fn furnish(&self, cluster: ClusterId, machines: &[&Machine], observed: &Observed) {
        let now = self.now();
        let mut kept = self.lock();
        kept.settle(now);
        for machine in machines {
            kept.state.furnish(cluster, machine, observed, now);
        }
        kept.state.modules.furnish(observed);
        if let Some(public) = observed.access.clone() {
            kept.state.keys.insert(cluster, Key { public, from: now });
        }
        if observed.initialised {
            let kube = kept.state.clusters.entry(cluster).or_default();
            kube.started = machines.first().map(|machine| machine.id);
            let saved = observed.snapshots.as_ref();
            let none = SnapshotsFact::none_since(now);
            kube.saved = Saved::observed(saved.map_or(&none, |(fact, _)| fact));
            kube.furnish_strays(observed);
        }
        kept.state.reindex();
    }

    fn power(&self, machine: &Machine, on: bool) {
        let computers = if let Some(address) = endpoint(machine) {
            vec![Computer::Host(address)]
        } else {
            self.seen(|state, _| {
                let labelled = state.labelled(machine.id);
                labelled.map(|(number, _)| Computer::Vm(number)).collect()
            })
        };
        for computer in computers {
            // Whoever says the same again and again does not fill the file.
            if self.seen(|state, _| state.powered(computer)) != on {
                self.happen(Effect::Power { computer, on });
            }
        }
    }

    /// Lets something happen that nobody waits for.
    fn happen(&self, effect: Effect) {
        let happened: Result<(), Error> = self.act(PATIENTLY, |kept, now| kept.happen(now, effect));
        if let Err(error) = happened {
            warn(&error);
        }
    }

    /// How long a change of one machine takes: its own stream of chance, so that one
    /// machine more does not change the fate of the others.
    fn span(&self, machine: MachineId, kind: Kind) -> Duration {
        let mut hash = DefaultHasher::new();
        (self.inner.seed, machine, kind).hash(&mut hash);
        let mut random = fastrand::Rng::with_seed(hash.finish());
        self.inner.pace.span(kind, &mut random)
    }

    /// Looks at the world as it is now.
    fn look<T>(
        &self,
        patience: Duration,
        see: impl FnOnce(&State, Timestamp) -> T,
    ) -> Result<T, Error> {
        let mut kept = self.lock();
        let _held = kept.hold(Share::Look, patience)?;
        let now = self.now();
        kept.settle(now);
        Ok(see(&kept.state, now))
    }

    /// Looks at the world as it is now; where its file cannot be read, as it was when it
    /// could be. Whoever must know which of the two it is opens the file anew.
    fn seen<T>(&self, see: impl FnOnce(&State, Timestamp) -> T) -> T {
        let mut kept = self.lock();
        let _held = kept
            .hold(Share::Look, PATIENTLY)
            .inspect_err(warn)
            .unwrap_or_default();
        let now = self.now();
        kept.settle(now);
        see(&kept.state, now)
    }

    /// Lets somebody decide and act while nothing else happens.
    fn act<T, E: From<Error>>(
        &self,
        patience: Duration,
        act: impl FnOnce(&mut Kept, Timestamp) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut kept = self.lock();
        let _held = kept.hold(Share::Act, patience)?;
        let now = kept.not_before(self.now());
        kept.settle(now);
        act(&mut kept, now)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        let kept = &self.inner.kept;
        kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Keeps other processes away, and learns what they have done; a world in memory has
    /// none.
    fn hold(&mut self, share: Share, patience: Duration) -> Result<Option<Held>, Error> {
        let Some(journal) = &mut self.journal else {
            return Ok(None);
        };
        journal.catch_up(&mut self.state, share, patience).map(Some)
    }

    fn not_before(&self, now: Timestamp) -> Timestamp {
        let journal = self.journal.as_ref();
        journal.map_or(now, |journal| journal.not_before(now))
    }

    fn settle(&mut self, now: Timestamp) {
        let until = self.state.settle(now);
        if let Some(journal) = &mut self.journal {
            journal.went_ahead(until);
        }
    }

    /// Lets one thing happen, while the world is held to act.
    fn happen(&mut self, at: Timestamp, effect: Effect) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            journal.append(at, &effect)?;
        }
        self.state.take(at, effect);
        Ok(())
    }
}

fn warn(error: &Error) {
    let (code, told) = (error.code(), error.told());
    tracing::warn!(code, %error, "{told}");
}

#[cfg(test)]
mod tests;
