//! The driver of Kubernetes on hosts: it starts control planes, has machines join and leave them,
//! moves work off nodes, upgrades them, and looks at what the API says of them.
//!
//! It decides nothing: every task says through whom the API is reached and what the cluster is like.
//! Whatever is asked twice is looked at first.

mod changing;
mod coming;
mod gates;
mod going;
mod installing;
mod look;
mod restoring;
mod saving;
mod tending;
mod trouble;

use crate::api::{Dialling, Door, Health, Limits, Stream};
use crate::error::{Error, Kind};
use crate::kubeadm::{MARKER, Node};
use driver::{Context, Driver, Outcome, Output, Target};
use hosts::Hosts;
use hosts::hands::Passage;
use hosts::program::{Program, Report};
use hosts::recipe;
use hosts::recipe::item::Item;
use hosts::ssh::Pull;
use model::care::Care;
use model::cluster::Machine;
use model::id::ClusterId;
use model::kubernetes::API_PORT;
use model::observed::{Fact, NodeFact, Observation};
use model::sealed::Owner;
use model::secret::{EntryName, Secret};
use model::task::{Action, Around, Task};
use model::time::Timestamp;
use model::version::Version;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
pub use trouble::Trouble;
use zeroize::Zeroizing;

/// Where a control machine has it.
const ADMIN: &str = "/etc/kubernetes/admin.conf";

/// How large the files are that we read of a host, at most.
const FILE_MAX: u64 = 256 * 1024;

/// How long a file may take.
const FILE_PATIENCE: Duration = Duration::from_mins(1);

/// How long to wait for one member before the next is asked.
const MEMBER_PATIENCE: Duration = Duration::from_secs(10);

/// How long a node may take until it is ready.
const READY_MAX: Duration = Duration::from_mins(5);

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(500);

/// The driver of Kubernetes. Clones share its connections.
#[derive(Clone)]
pub struct Kube {
    hosts: Hosts,
    /// Where snapshots are kept.
    shelves: Arc<Path>,
    looks: look::Looks,
}

/// What a finished task saw, each with when the look began, and what came of it.
type Done = (Vec<(Timestamp, Fact)>, Vec<Output>);

impl Kube {
    /// A driver that enters machines by the driver of hosts, and keeps snapshots of etcd in a
    /// directory, which is made when there is one.
    pub fn new(hosts: Hosts, snapshots: &Path) -> Self {
        Self {
            hosts,
            shelves: snapshots.into(),
            looks: look::Looks::default(),
        }
    }

    async fn attempt(&self, cx: &Context, task: &Task) -> Result<Done, Trouble> {
        let around = task.around.as_ref().ok_or_else(|| {
            let what = format!("{} does not say what its cluster is like", task.id);
            Error::new(Kind::Garbage, what)
        })?;
        match &task.action {
            Action::Init { version, care, .. } => {
                self.init(cx, task, around, (*version, care)).await
            }
            Action::Join {
                version,
                care,
                gated,
            } => {
                self.join(cx, (task, around), (*version, care), *gated)
                    .await
            }
            Action::Tend { care } => self.tend(cx, task, around, care).await,
            Action::Upgrade { version } => self.upgrade(cx, task, around, *version).await,
            Action::Install { addons, remove } => {
                self.install(cx, (task, around), (addons, remove)).await
            }
            Action::Renew { end } => self.renew(cx, task, *end).await,
            Action::Drain => self.drain(cx, task, around).await,
            Action::Uncordon => self.uncordon(cx, task, around).await,
            Action::Readmit { gates } => self.readmit(cx, (task, around), gates).await,
            Action::Leave => self.leave(cx, task, around).await,
            Action::Clear { leftovers } => self.clear(cx, (task, around), leftovers).await,
            Action::Snapshot { taking } => self.save(cx, task, taking).await,
            Action::Restore { restoring } => self.restore(cx, task, restoring).await,
            Action::Key
            | Action::Create
            | Action::CreateExposed
            | Action::Prepare
            | Action::Equip { .. }
            | Action::Mesh { .. }
            | Action::Balance { .. }
            | Action::Name { .. }
            | Action::Expose
            | Action::Shut
            | Action::Delete
            | Action::Release => {
                let what = format!("{} is nothing that Kubernetes does", task.action.kind());
                Err(Error::new(Kind::Garbage, what).into())
            }
        }
    }

    async fn node<'a>(
        &self,
        cx: &Context,
        task: &'a Task,
        around: &'a Around,
        (version, care): (Version, &'a Care),
    ) -> Result<Node<'a>, Trouble> {
        let at = self.hosts.address(cx, task.cluster, &task.machine).await?;
        Ok(Node {
            machine: &task.machine,
            cluster: &task.cluster_name,
            around,
            version,
            outside: Some(at),
            care,
        })
    }

    /// Runs a program on a machine and says in the log what it changed.
    async fn visit(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        program: &Program,
    ) -> Result<Report, Trouble> {
        let report = self.hosts.visit(cx, cluster, machine, program).await?;
        let (changed, unchanged) = (report.changed(), report.unchanged());
        if changed + unchanged > 0 {
            let title = &program.title;
            cx.log(&format!(
                "{title}: {changed} changed, {unchanged} unchanged"
            ));
        }
        Ok(report)
    }

    /// Runs a program of items.
    async fn items(&self, cx: &Context, task: &Task, program: &Program) -> Result<(), Trouble> {
        let report = self.visit(cx, task.cluster, &task.machine, program).await?;
        Ok(recipe::done(&report)?)
    }

    /// The version with which a machine has become a node, where it has.
    async fn marked(&self, cx: &Context, task: &Task) -> Result<Option<Version>, Trouble> {
        let told = [
            ("init", "echo \"$sw_init\"".to_owned()),
            ("node", format!("[ ! -e {MARKER} ] || head -n 1 {MARKER}")),
        ];
        let told = told.map(|(key, print)| Item::Told {
            key: key.to_owned(),
            print,
        });
        let look = recipe::render(&told, "look for a node", FILE_PATIENCE);
        let report = self
            .hosts
            .visit(cx, task.cluster, &task.machine, &look)
            .await?;
        recipe::done(&report)?;
        if report.fact("init") != Some("systemd") {
            let what = format!("{} has no systemd", task.machine.name);
            return Err(Error::new(Kind::NoPlace, what).into());
        }
        Ok(report.fact("node").and_then(|text| text.parse().ok()))
    }

    /// The text of a file of a machine; it may be secret.
    async fn read(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        path: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Trouble> {
        let pull = Pull {
            path,
            size_max: FILE_MAX,
            limit: FILE_PATIENCE,
        };
        let mut text = Zeroizing::new(Vec::new());
        self.hosts
            .fetch(cx, cluster, machine, pull, &mut *text)
            .await?;
        Ok(text)
    }

    /// The kubeconfig of a member, to be kept.
    async fn kubeconfig(&self, cx: &Context, task: &Task) -> Result<Output, Trouble> {
        let text = self.read(cx, task.cluster, &task.machine, ADMIN).await?;
        Ok(Output {
            owner: Owner::Cluster(task.cluster),
            entry: EntryName::kubeconfig(),
            value: Secret::from(text.to_vec()),
        })
    }

    /// The API of a cluster, for whoever works on no task: it is reached by the first of these
    /// members that answers.
    pub async fn enter(
        &self,
        cx: &Context,
        cluster: ClusterId,
        members: &[Machine],
    ) -> Result<Door, Trouble> {
        let (door, _) = self.door(cx, cluster, members).await?;
        Ok(door)
    }

    /// The API of a cluster, reached by the first member that answers.
    async fn door(
        &self,
        cx: &Context,
        cluster: ClusterId,
        through: &[Machine],
    ) -> Result<(Door, Machine), Trouble> {
        let kubeconfig = self.kept(cx, cluster).await?;
        let entered = self.entered_somehow(cx, cluster, through, &kubeconfig);
        let (door, member, _) = entered.await?;
        Ok((door, member))
    }

    /// The API of a cluster that does not know us any more, opened with what its members have: what
    /// we keep may have ended, or somebody made it anew.
    async fn known_again(
        &self,
        cx: &Context,
        cluster: ClusterId,
        through: &[Machine],
        refused: Error,
    ) -> Result<(Door, Machine), Trouble> {
        for member in through {
            let Ok(text) = self.read(cx, cluster, member, ADMIN).await else {
                continue;
            };
            let own = Secret::from(text.to_vec());
            let through = std::slice::from_ref(member);
            if let Ok(entered) = self.entered(cx, cluster, through, &own).await {
                let name = &member.name;
                cx.log(&format!("{}: uses that of {name}", refused.what));
                return Ok(entered);
            }
        }
        Err(refused.into())
    }

    /// What opens the API of a cluster.
    async fn kept(&self, cx: &Context, cluster: ClusterId) -> Result<Secret, Trouble> {
        let owner = Owner::Cluster(cluster);
        let kept = cx.kept(&owner, &EntryName::kubeconfig()).await?;
        Ok(kept.ok_or_else(|| {
            let what = "the cluster has no kubeconfig: no control plane was started yet";
            Error::new(Kind::NoMember, what)
        })?)
    }

    /// The API of a cluster, opened with its kubeconfig.
    async fn entered(
        &self,
        cx: &Context,
        cluster: ClusterId,
        through: &[Machine],
        kubeconfig: &Secret,
    ) -> Result<(Door, Machine), Trouble> {
        // One that is not ready is asked only where nobody is.
        let (mut unready, mut last) = (None, None::<Error>);
        for member in through {
            let door = self.opened(cx, cluster, member, kubeconfig).await?;
            match door.health(MEMBER_PATIENCE).await {
                Ok(Health::Ready) => return Ok((door, member.clone())),
                Ok(Health::Failing(checks)) => {
                    cx.log(&format!("{}: {} fail", member.name, checks.join(", ")));
                    unready.get_or_insert((door, member.clone()));
                }
                Err(error) => {
                    cx.log(&format!("{}: {}", member.name, error.what));
                    // What a person must know is not covered by who is just silent.
                    let graver = !passing(error.kind);
                    if last
                        .as_ref()
                        .is_none_or(|last| graver && passing(last.kind))
                    {
                        last = Some(error);
                    }
                }
            }
        }
        if let Some(unready) = unready {
            return Ok(unready);
        }
        Err(match last {
            Some(error) if !passing(error.kind) => error,
            Some(error) => {
                let what = format!("no member of the control plane answers: {}", error.what);
                Error::new(Kind::NoMember, what)
            }
            None => {
                let what = "there is no member of the control plane to ask";
                Error::new(Kind::NoMember, what)
            }
        }
        .into())
    }

    async fn opened(
        &self,
        cx: &Context,
        cluster: ClusterId,
        member: &Machine,
        kubeconfig: &Secret,
    ) -> Result<Door, Trouble> {
        let passage = self.hosts.passages(cx, cluster, member, API_PORT);
        let dial = move || dialled(passage.clone());
        Ok(Door::open(kubeconfig, dial, Limits::default()).await?)
    }

    /// Waits until the API that a machine itself runs is ready: whoever is changed next must not
    /// find it starting.
    async fn answers(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        kubeconfig: &Secret,
    ) -> Result<(), Trouble> {
        let door = self.opened(cx, cluster, machine, kubeconfig).await?;
        let door = &door;
        let look = || async move {
            Ok(match door.health(MEMBER_PATIENCE).await? {
                Health::Ready => Ok(()),
                Health::Failing(checks) => Err(format!("{} fail", checks.join(", "))),
            })
        };
        patiently(cx, &format!("the API of {}", machine.name), look).await
    }

    /// Waits until a node has come so far and runs this version; answers what is then known of it.
    async fn ready(
        &self,
        cx: &Context,
        door: &Door,
        (machine, version): (&Machine, Version),
        until: Until,
    ) -> Result<NodeFact, Trouble> {
        let name = machine.name.as_str();
        let look = || async move {
            let node = door.node(name).await?;
            // Whoever waits here answers its kubelet next.
            let fact = look::fact(&node, false);
            let far = |fact: &NodeFact| match fact {
                NodeFact::Joined {
                    ready,
                    version: runs,
                    ..
                } => *runs == version && (*ready || until == Until::Known),
                NodeFact::Absent => false,
            };
            let come = fact.filter(far);
            Ok(come.ok_or_else(|| look::not_ready(&node, version)))
        };
        patiently(cx, name, look).await
    }
}

impl Driver for Kube {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        match Box::pin(self.attempt(cx, task)).await {
            Ok((facts, outputs)) => Outcome::done(task, facts, outputs),
            Err(trouble) => {
                cx.log(&trouble.to_string());
                trouble.into()
            }
        }
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        Box::pin(self.looked_at(cx, target)).await
    }
}

/// How far a node must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The API knows it.
    Known,
    /// It can run pods.
    Ready,
}

/// A stream to the API of one member.
fn dialled(passage: Passage) -> Dialling {
    Box::pin(async move {
        let stream = passage.open().await;
        let stream: Box<dyn Stream> = Box::new(stream.map_err(std::io::Error::other)?);
        Ok(stream)
    })
}

/// Whether another member may know better, or the same one a little later. One that has just
/// started forbids everything until it has read who may do what.
const fn passing(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Unreachable
            | Kind::Busy
            | Kind::NoNode
            | Kind::Absent
            | Kind::NotReady
            | Kind::Forbidden
    )
}

/// Looks until what is waited for is there; what was missing last is told when it takes too long.
async fn patiently<T, F>(
    cx: &Context,
    what: &str,
    look: impl Fn() -> F + Send,
) -> Result<T, Trouble>
where
    F: Future<Output = Result<Result<T, String>, Error>> + Send,
{
    let mut last = String::new();
    let waiting = async {
        loop {
            let missing = match look().await {
                Ok(Ok(seen)) => return Ok(seen),
                Ok(Err(missing)) => missing,
                Err(error) if passing(error.kind) => error.what,
                Err(error) => return Err(Trouble::from(error)),
            };
            if last != missing {
                cx.log(&format!("waits for {what}: {missing}"));
                last = missing;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let waited = tokio::select! {
        biased;
        () = cx.cancelled() => return Err(stopped()),
        waited = tokio::time::timeout(READY_MAX, waiting) => waited,
    };
    waited.unwrap_or_else(|_| {
        let what = format!("{what} is not ready: {last}");
        Err(Error::new(Kind::NotReady, what).into())
    })
}

/// Waits a little, unless the task is told to end.
async fn pause(cx: &Context, time: Duration) -> Result<(), Trouble> {
    tokio::select! {
        biased;
        () = cx.cancelled() => Err(stopped()),
        () = tokio::time::sleep(time) => Ok(()),
    }
}

fn stopped() -> Trouble {
    Error::new(Kind::Cancelled, "stopped as told").into()
}
