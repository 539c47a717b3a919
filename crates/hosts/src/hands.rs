//! The driver of hosts: it enters them, equips them, connects them, has them balance, and makes
//! those that are made of namespaces.
//!
//! It decides nothing: every task says all there is to do, and what was seen on the way goes back.
//! Whatever is asked twice is looked at first, so that a task may be begun again at any point.

mod addons;
mod balancing;
mod bringing;
mod entry;
mod fetching;
mod guests;
mod look;
mod made;
#[cfg(feature = "sandbox")]
mod opened;
mod owner;
mod passage;
mod playing;
mod staging;
mod supply;

use crate::artifacts::{Cache, Source};
use crate::error::{Error, Kind};
use crate::program::{Program, Report};
use crate::recipe;
use crate::ssh::{self, Connections};
use crate::{mesh, playbook};
use driver::{Context, Driver, Outcome, Output, Target};
use entry::{Entry, Pins};
pub use made::lacks;
use model::cluster::{Machine, Origin};
use model::host::Recipe;
use model::id::ClusterId;
use model::mesh::Mesh;
use model::observed::{AccessFact, Fact, MachineFact, Observation};
use model::provider::{Cloud, Provider};
use model::sealed::Owner;
use model::secret::EntryName;
use model::task::{Action, Task};
use model::time::Timestamp;
#[cfg(feature = "sandbox")]
pub use opened::Opened;
use owner::{Claim, Whose};
pub use passage::Passage;
pub use staging::{Stage, Staged};
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

/// Which value of a cluster opens its machines.
pub const SSH_KEY: &str = "ssh-key";

/// Which value of a machine says which host key it has.
pub const HOST_KEY: &str = "host-key";

/// Which value of a machine says which host key the one in front of it has.
pub const JUMP_HOST_KEY: &str = "jump-host-key";

/// How long a host may take to get all that its purpose needs.
const EQUIP_MAX: Duration = Duration::from_mins(20);

/// How long a host may take to be cleaned.
const REMOVE_MAX: Duration = Duration::from_mins(10);

/// How long a host may take to be taken into use.
const TAKE_MAX: Duration = Duration::from_mins(1);

/// How many bytes that nobody could keep a program may write: a tool that writes more is broken.
const FLOOD: u64 = 64 * 1024 * 1024;

/// The driver of hosts. Clones share its connections.
#[derive(Clone)]
pub struct Hosts {
    inner: Arc<Inner>,
    /// Where programs of this machine are searched.
    path: Arc<OsStr>,
}

struct Inner {
    connections: Connections,
    /// Opened when the first host is made or looked for.
    #[cfg(feature = "sandbox")]
    sandbox: Opened,
    cache: PathBuf,
    fetched: OnceCell<Cache>,
    sources: Vec<Source>,
    playbooks: bool,
    pins: Pins,
    /// Bounds the playbooks that are played.
    plays: Semaphore,
}

/// What the driver works with.
pub struct Parts {
    /// Where hosts made of namespaces are, once there is one.
    #[cfg(feature = "sandbox")]
    pub sandbox: Opened,
    /// Where fetched artifacts are kept; made when there is one.
    pub cache: PathBuf,
    /// Where the rest comes from, in the order in which they are asked.
    pub sources: Vec<Source>,
    /// Whether playbooks of manifests are played. They can run anything on this machine.
    pub playbooks: bool,
}

/// What a finished task saw, each with when the look began, and what came of it.
type Done = (Vec<Seen>, Vec<Output>);

/// Something that was seen, and when the look began: a look that began later knows better.
type Seen = (Timestamp, Fact);

impl Hosts {
    /// A driver with no connections yet.
    pub fn new(parts: Parts) -> Self {
        let inner = Inner {
            connections: Connections::new(ssh::Limits::default()),
            #[cfg(feature = "sandbox")]
            sandbox: parts.sandbox,
            cache: parts.cache,
            fetched: OnceCell::new(),
            sources: parts.sources,
            playbooks: parts.playbooks,
            pins: Pins::default(),
            plays: Semaphore::new(playbook::AT_ONCE),
        };
        Self {
            inner: Arc::new(inner),
            path: std::env::var_os("PATH").unwrap_or_default().into(),
        }
    }

    /// The same, with other places where programs of this machine are searched.
    #[must_use]
    pub fn searching(self, path: OsString) -> Self {
        Self {
            path: path.into(),
            ..self
        }
    }

    async fn attempt(&self, cx: &Context, task: &Task) -> Result<Done, Error> {
        if cx.is_cancelled() {
            return Err(stopped());
        }
        let (facts, mut outputs) = self.carry_out(cx, task).await?;
        outputs.extend(self.met(&task.machine)?);
        Ok((facts, outputs))
    }

    async fn carry_out(&self, cx: &Context, task: &Task) -> Result<Done, Error> {
        let machine = &task.machine;
        match &task.action {
            Action::Key => self.key(cx, task).await,
            Action::Create | Action::CreateExposed => self.create(cx, task).await,
            Action::Prepare => self.prepare(cx, task).await,
            Action::Equip { recipe } => self.equip(cx, task, recipe).await,
            Action::Mesh { mesh } => self.mesh(cx, task, mesh).await,
            Action::Balance { balance } => self.balance(cx, task, balance).await,
            Action::Delete => {
                match lender(machine) {
                    // Nobody could make it.
                    Some(_) => cx.log(&format!("{} was never made", machine.name)),
                    None => self.delete(cx, machine).await?,
                }
                Ok((vec![(cx.now(), gone(machine))], Vec::new()))
            }
            Action::Release => {
                self.release(cx, task).await?;
                Ok((vec![(cx.now(), gone(machine))], Vec::new()))
            }
            Action::Expose | Action::Shut => Err(unlent(machine)),
            Action::Name { .. }
            | Action::Init { .. }
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
            | Action::Restore { .. } => Err(Error::new(
                Kind::Failed,
                format!("{} is not done by hosts", task.action.kind()),
            )),
        }
    }

    /// The key of a cluster: made once, and given again to whoever asks again.
    async fn key(&self, cx: &Context, task: &Task) -> Result<Done, Error> {
        let owner = Owner::Cluster(task.cluster);
        let entry = entry_name(SSH_KEY)?;
        let kept = cx.kept(&owner, &entry).await.map_err(entry::unopened)?;
        let (value, public) = match kept {
            Some(value) => {
                cx.log("the key was made already");
                let public = ssh::public_half(&value)?;
                (value, public)
            }
            None => ssh::new_key(&format!("slipway {}", task.cluster_name))?,
        };
        cx.log(&format!("its public half is {public}"));
        let output = Output {
            owner,
            entry,
            value,
        };
        let access = Fact::Access(AccessFact { public });
        Ok((vec![(cx.now(), access)], vec![output]))
    }

    async fn create(&self, cx: &Context, task: &Task) -> Result<Done, Error> {
        let machine = &task.machine;
        if lender(machine).is_some_and(|cloud| !makes(Provider::Cloud(cloud))) {
            return Err(unlent(machine));
        }
        self.make(cx, task.cluster, machine).await?;
        let claim = self.claim(cx, task).await?;
        let entry = self.entry(cx, task.cluster, machine).await?;
        self.taken_in(cx, task, &entry, &claim).await
    }

    /// A given machine is entered for the first time: its host key is the right one from then on.
    async fn prepare(&self, cx: &Context, task: &Task) -> Result<Done, Error> {
        let entry = self.entry(cx, task.cluster, &task.machine).await?;
        let looked = self.look_before(cx, &entry).await?;
        let claim = self.claim(cx, task).await?;
        claim.not_foreign(&looked, &entry.door)?;
        self.taken_in(cx, task, &entry, &claim).await
    }

    /// What a machine says that answers, once it was told whose it is, and the host key it has.
    async fn taken_in(
        &self,
        cx: &Context,
        task: &Task,
        entry: &Entry<'_>,
        claim: &Claim,
    ) -> Result<Done, Error> {
        let told = recipe::render(&[claim.item()], "take into use", TAKE_MAX);
        let taken = self.look_after(cx, entry, "take into use", vec![told]);
        let (looked, host) = taken.await?;
        let at = cx.now();
        cx.log(&format!(
            "{} answers: {}, kernel {}",
            entry.door, looked.system, looked.kernel
        ));
        let running = MachineFact::Running {
            reference: look::reference(&task.machine),
            address: entry.door.host,
        };
        let outputs = match entry.seen() {
            Some(key) => vec![Output {
                owner: Owner::Machine(task.machine.id),
                entry: entry_name(HOST_KEY)?,
                value: key.into_bytes().into(),
            }],
            None => Vec::new(),
        };
        let id = task.machine.id;
        let facts = [Fact::Machine(id, running), Fact::Host(id, host)];
        Ok((facts.map(|fact| (at, fact)).into(), outputs))
    }

    async fn equip(&self, cx: &Context, task: &Task, recipe: &Recipe) -> Result<Done, Error> {
        let entry = self.entry(cx, task.cluster, &task.machine).await?;
        let looked = self.look_before(cx, &entry).await?;
        let claim = self.claim(cx, task).await?;
        claim.not_foreign(&looked, &entry.door)?;
        let items = recipe::prepare(recipe, looked.level);
        let mut items = self.supplied(cx, &entry, &looked, items).await?;
        let forgotten = playbook::forgotten(&recipe.playbooks, &looked.facts);
        let last = items.len().saturating_sub(1);
        items.splice(last..last, forgotten);
        let due = self.due(cx, task, recipe, &looked)?;
        // The stamp says that everything is done, so it waits for the playbooks.
        let stamp = if due.is_empty() { None } else { items.pop() };
        let equip = recipe::render(&items, "equip", EQUIP_MAX);
        let mut programs = vec![equip, mesh::key_program()];
        if let Some(stamp) = stamp {
            for program in programs.drain(..) {
                self.told(cx, &entry, "equip", &program).await?;
            }
            self.play(cx, task, &entry, &due).await?;
            programs.push(recipe::render(&[stamp], "stamp", TAKE_MAX));
        }
        Ok((
            vec![self.told_last(cx, &entry, "equip", programs).await?],
            Vec::new(),
        ))
    }

    /// Tells every host that needs it of its peers, all at once. Those that could be told keep
    /// what they got, also when another could not.
    async fn mesh(&self, cx: &Context, task: &Task, mesh: &Mesh) -> Result<Done, Error> {
        apart(mesh)?;
        let mut telling = JoinSet::new();
        let members = mesh.members.iter();
        for member in members.filter(|member| mesh.to.contains(&member.machine.id)) {
            let Some(tunnel) = mesh.tunnel(member.machine.id) else {
                continue;
            };
            let (this, cx, machine) = (self.clone(), cx.clone(), member.machine.clone());
            let cluster = task.cluster;
            telling.spawn(async move {
                let told = this.connect(&cx, cluster, &machine, &tunnel).await;
                (machine, told)
            });
        }
        let (mut facts, mut failed) = (Vec::new(), Vec::new());
        while let Some(told) = telling.join_next().await {
            match told {
                Ok((_, Ok(seen))) => facts.push(seen),
                Ok((machine, Err(error))) => {
                    cx.log(&format!("{}: {error}", machine.name));
                    failed.push((machine.name, error));
                }
                Err(error) => return Err(Error::new(Kind::Failed, error.to_string())),
            }
        }
        // Who must act decides: one that waits for a person is told before one that does not.
        failed.sort_by_key(|(_, error)| error.kind.owner() == crate::error::Owner::Slipway);
        match failed.first() {
            None => Ok((facts, Vec::new())),
            Some((name, error)) => {
                let others = match failed.len() {
                    1 => String::new(),
                    more => format!(", and {} more could not be told of their peers", more - 1),
                };
                let what = format!("{name}: {}{others}", error.what);
                Err(Error::new(error.kind, what))
            }
        }
    }

    async fn connect(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        tunnel: &model::mesh::Tunnel,
    ) -> Result<Seen, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let programs = vec![mesh::change_program(tunnel)];
        let title = machine.name.as_str();
        self.told_last(cx, &entry, title, programs).await
    }

    /// Runs the last programs of a task; answers what the host says of itself afterwards.
    ///
    /// When the look itself began nobody knows, only that it was not before this.
    async fn told_last(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        title: &str,
        programs: Vec<Program>,
    ) -> Result<Seen, Error> {
        let (_, host) = self.look_after(cx, entry, title, programs).await?;
        Ok((cx.now(), Fact::Host(entry.machine, host)))
    }

    /// Gives a given machine back. Whatever was on it, it is a stranger from then on.
    async fn release(&self, cx: &Context, task: &Task) -> Result<(), Error> {
        self.clean(cx, task).await?;
        self.inner.pins.forget(task.machine.id);
        Ok(())
    }

    /// Cleans a given machine. What is not ours is left alone: a machine that was never taken into
    /// use, one that others have now, and one that answers where ours was.
    async fn clean(&self, cx: &Context, task: &Task) -> Result<(), Error> {
        let entry = self.entry(cx, task.cluster, &task.machine).await?;
        let looked = match self.look(cx, &entry).await {
            Ok((looked, _)) => looked,
            // A person took it out of its manifest, and it is not the host that we changed.
            Err(error) if error.kind == Kind::ChangedHostKey && entry.door.jump.is_none() => {
                cx.log(&format!(
                    "{error}: nothing of ours is on it, so it is let go"
                ));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let other = match self.claim(cx, task).await?.whose(looked.owner()) {
            Whose::Ours | Whose::Former => None,
            Whose::Nobodys => Some("it is not in use: nothing is to be taken from it".to_owned()),
            Whose::Foreign(owner) => Some(format!("it belongs to {owner}: it is left as it is")),
        };
        if let Some(other) = other {
            cx.log(&other);
            return Ok(());
        }
        let items = recipe::removal(looked.level);
        for (title, program) in [
            ("load balancer", balancing::down()),
            ("mesh", mesh::down_program()),
            ("clean", recipe::render(&items, "clean", REMOVE_MAX)),
        ] {
            self.told(cx, &entry, title, &program).await?;
        }
        Ok(())
    }

    /// Runs a program of somebody else's on a machine.
    pub async fn visit(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        program: &Program,
    ) -> Result<Report, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        self.run(cx, &entry, program).await
    }

    /// Runs a program on a host and says in the log what it changed.
    async fn told(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        title: &str,
        program: &Program,
    ) -> Result<(), Error> {
        let report = self.run(cx, entry, program).await?;
        tell(cx, title, &report);
        Ok(())
    }

    /// Runs a program on a host, its lines into the log of the task.
    async fn run(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        program: &Program,
    ) -> Result<Report, Error> {
        let log = |line: &str| cx.log(line);
        let connections = &self.inner.connections;
        let running = connections.run(&entry.door, entry, program, &log, cx.cancelled());
        let report = running.await?;
        if report.dropped > FLOOD {
            let (title, door, more) = (&program.title, &entry.door, report.dropped);
            let what = format!("`{title}` on {door}: {more} bytes of output were left out");
            return Err(Error::new(Kind::Flood, what));
        }
        Ok(report)
    }
}

impl Driver for Hosts {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        match self.attempt(cx, task).await {
            Ok((facts, outputs)) => Outcome::done(task, facts, outputs),
            Err(error) => {
                cx.log(&error.to_string());
                error.into()
            }
        }
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        self.looked_at(cx, target, look::PATIENCE).await
    }
}

/// Refuses a mesh whose tunnels would take the way on which we come.
fn apart(mesh: &Mesh) -> Result<(), Error> {
    match mesh.reached_within() {
        None => Ok(()),
        Some((machine, at)) => {
            let (name, network) = (&machine.name, mesh.network);
            let what = format!("{name} is reached at {at}, inside {network}, the cluster's own");
            Err(Error::new(Kind::Overlap, what))
        }
    }
}

/// Whether somebody here makes machines of a provider.
pub const fn makes(via: Provider) -> bool {
    match via {
        Provider::Simulated | Provider::Sandbox => true,
        Provider::Cloud(_) => false,
    }
}

/// Nobody here reaches who lends the machine.
fn unlent(machine: &Machine) -> Error {
    let lender = lender(machine).map_or("that kind", Cloud::as_str);
    let what = format!("nobody here makes machines of {lender}");
    Error::new(Kind::NoHands, what)
}

/// Who lends the machine, where that is somebody else whom this build does not reach.
const fn lender(machine: &Machine) -> Option<Cloud> {
    match machine.origin {
        Origin::Made {
            via: Provider::Cloud(cloud),
            ..
        } => Some(cloud),
        Origin::Made {
            via: Provider::Simulated | Provider::Sandbox,
            ..
        }
        | Origin::Given { .. } => None,
    }
}

fn gone(machine: &Machine) -> Fact {
    Fact::Machine(machine.id, MachineFact::Absent)
}

fn stopped() -> Error {
    Error::new(Kind::Lost, "stopped as told")
}

/// Says in the log what a program changed, one line for each item.
fn tell(cx: &Context, title: &str, report: &Report) {
    for item in report.changes() {
        cx.log(&format!("{title}: changed {item}"));
    }
    let (changed, unchanged) = (report.changed(), report.unchanged());
    cx.log(&format!(
        "{title}: {changed} changed, {unchanged} unchanged"
    ));
    if report.dropped > 0 {
        let dropped = report.dropped;
        cx.log(&format!(
            "{title}: {dropped} bytes of output were too many to keep"
        ));
    }
}

fn entry_name(text: &str) -> Result<EntryName, Error> {
    text.parse()
        .map_err(|_not_one| Error::new(Kind::Failed, format!("{text} is no name of a value")))
}

/// Where a given machine answers.
fn given(machine: &Machine) -> Option<IpAddr> {
    match &machine.origin {
        Origin::Given { endpoint, .. } => Some(IpAddr::V4(*endpoint)),
        Origin::Made { .. } => None,
    }
}
