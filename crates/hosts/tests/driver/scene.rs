//! One cluster whose tasks a test makes by hand: what comes of them is kept, and their log is read.

use crate::stage::inside_of;
use driver::{Clock, Context, Driver as _, Keeping, Log, Open, Opening, Outcome, Output, Target};
use hosts::Hosts;
use hosts::error::Kind;
use model::cluster::{Generation, Machine};
use model::id::{self, ClusterId, TaskId};
use model::mesh::{Member, Mesh};
use model::name::Name;
use model::observed::{Fact, HostFact, Observation};
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::task::{Action, Task};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// The key of given machines under whatever name, and what came of tasks.
pub(crate) struct Ring {
    key: Mutex<Vec<u8>>,
    kept: Mutex<BTreeMap<(Owner, EntryName), Vec<u8>>>,
}

impl Ring {
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Self {
            key: Mutex::new(key),
            kept: Mutex::default(),
        }
    }

    /// Sets the key of given machines, as a person does.
    pub(crate) fn set(&self, key: Vec<u8>) {
        *self.key.lock().unwrap() = key;
    }

    /// Has the host key of a machine, as if it had been taken in.
    pub(crate) fn keep_host_key(&self, machine: &Machine) {
        let name = hosts::hands::HOST_KEY.parse().unwrap();
        let mut kept = self.kept.lock().unwrap();
        kept.insert((Owner::Machine(machine.id), name), b"a key".to_vec());
    }

    fn keep(&self, outputs: Vec<Output>) {
        let mut kept = self.kept.lock().unwrap();
        for output in outputs {
            let value = output.value.expose().to_vec();
            kept.insert((output.owner, output.entry), value);
        }
    }
}

impl Open for Ring {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        let key = self.key.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(Secret::from(key))))
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        let kept = self.kept.lock().unwrap();
        let kept = kept.get(&(owner.clone(), entry.clone())).cloned();
        Box::pin(std::future::ready(Ok(kept.map(Secret::from))))
    }
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// How often an attempt is made again on a host that did not answer, or did not end, in time: that
/// alone depends on how busy the machine is, and whoever gives out tasks does the same.
const RETRIES: u32 = 3;

/// Whether an attempt failed only because nothing came back in time. Every other reason to try
/// again is one that a test makes itself, or a fault.
fn was_slow(outcome: &Outcome) -> bool {
    let slow = [Kind::Silent, Kind::Hung].map(|kind| format!("({})", kind.code()));
    let ends = |error: &driver::Error| slow.iter().any(|code| error.attempted.ends_with(code));
    matches!(outcome, Outcome::Retry(error) if ends(error))
}

/// A driver and one cluster.
pub(crate) struct Scene {
    pub(crate) hosts: Hosts,
    pub(crate) cluster: ClusterId,
    pub(crate) ring: Ring,
}

/// One attempt that has begun.
pub(crate) struct Attempt {
    context: Context,
    lines: Arc<Lines>,
}

impl Attempt {
    /// What it works with.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// What was logged so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.lines.0.lock().unwrap().clone()
    }
}

impl Scene {
    /// A cluster that nobody has touched, whose given machines have this key.
    pub(crate) fn new(hosts: Hosts, cluster: ClusterId, key: Vec<u8>) -> Self {
        let ring = Ring::new(key);
        Self {
            hosts,
            cluster,
            ring,
        }
    }

    /// The means of an attempt; whoever drops what it does has killed it.
    pub(crate) fn attempt(self: &Arc<Self>) -> Attempt {
        let lines = Arc::new(Lines::default());
        let log: Arc<dyn Log> = lines.clone();
        let secrets: Arc<dyn Open> = Arc::new(Borrowed(self.clone()));
        let context = Context::new(Clock::System, log, secrets, CancellationToken::new(), 1);
        Attempt { context, lines }
    }

    /// Makes an attempt.
    pub(crate) async fn apply(&self, attempt: &Attempt, task: &Task) -> Outcome {
        Box::pin(self.hosts.apply(&attempt.context, task)).await
    }

    pub(crate) fn task(&self, machine: &Machine, action: Action) -> Task {
        Task {
            id: TaskId::derive(id::Origin {
                parent: &machine.id.to_string(),
                name: action.kind().as_str(),
                ordinal: 0,
                incarnation: 0,
            }),
            project: Name::default_project(),
            cluster: self.cluster,
            cluster_name: "lab".parse().unwrap(),
            generation: Generation(1),
            machine: machine.clone(),
            action,
            around: None,
        }
    }

    /// Makes an attempt that must work; answers how many items were changed, and what was seen.
    pub(crate) async fn done(self: &Arc<Self>, task: &Task) -> (usize, Vec<Observation>) {
        let (mut attempt, mut left) = (self.attempt(), RETRIES);
        let mut outcome = self.apply(&attempt, task).await;
        while left > 0 && was_slow(&outcome) {
            (attempt, left) = (self.attempt(), left - 1);
            outcome = self.apply(&attempt, task).await;
        }
        let log = attempt.log();
        let Outcome::Done(seen, outputs) = outcome else {
            panic!("{} ended with {outcome:?}: {log:#?}", task.action.kind());
        };
        self.ring.keep(outputs);
        (changed(&log), seen)
    }

    /// Does something to a machine that must work; answers how many items were changed.
    pub(crate) async fn act(self: &Arc<Self>, machine: &Machine, action: Action) -> usize {
        self.done(&self.task(machine, action)).await.0
    }

    /// Everything that is to be seen of machines.
    pub(crate) async fn look(self: &Arc<Self>, machines: &[Machine]) -> Vec<Fact> {
        let target = Target {
            cluster: self.cluster,
            machines: machines.to_vec(),
            whole: false,
        };
        let attempt = self.attempt();
        let seen = Box::pin(self.hosts.probe(&attempt.context, &target)).await;
        seen.into_iter().map(|seen| seen.fact).collect()
    }

    /// What a machine tells of itself.
    pub(crate) async fn told(self: &Arc<Self>, machine: &Machine) -> HostFact {
        let seen = self.look(std::slice::from_ref(machine)).await;
        let told = seen.iter().find_map(|fact| match fact {
            Fact::Host(_, host) => Some(host.clone()),
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
        });
        told.unwrap_or_else(|| panic!("{} tells nothing: {seen:?}", machine.name))
    }

    /// The task that connects machines with each other.
    pub(crate) async fn mesh(self: &Arc<Self>, machines: &[Machine]) -> Task {
        let mut members = Vec::new();
        for machine in machines {
            let host = self.told(machine).await;
            members.push(Member {
                machine: machine.clone(),
                key: host.mesh_key.unwrap(),
                at: host.at.unwrap(),
                pods: None,
            });
        }
        members.sort_by_key(|member| member.machine.address);
        let mesh = Mesh {
            network: "10.8.0.0/24".parse().unwrap(),
            pods: None,
            to: members.iter().map(|member| member.machine.id).collect(),
            members,
        };
        self.task(&machines[0], Action::Mesh { mesh })
    }
}

/// The secrets of a scene, for the contexts of its attempts.
struct Borrowed(Arc<Scene>);

impl Open for Borrowed {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        self.0.ring.open(secret)
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        self.0.ring.kept(owner, entry)
    }
}

/// How many items a log says were changed.
fn changed(log: &[String]) -> usize {
    let counted = |line: &String| {
        let (_, counts) = line.strip_suffix(" unchanged")?.rsplit_once(": ")?;
        counts.split_once(" changed, ")?.0.parse::<usize>().ok()
    };
    log.iter().filter_map(counted).sum()
}

/// A host seen by somebody who is in it without a key.
#[derive(Clone, Copy)]
pub(crate) struct Inside(u32);

impl Inside {
    /// Enters the host that is reached at an address.
    pub(crate) fn at(address: Ipv4Addr) -> Self {
        let sshd = inside_of(address);
        let status = std::fs::read_to_string(format!("/proc/{sshd}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        // The first process of the host stays, whatever happens to its SSH server.
        Self(parent.unwrap().trim().parse().unwrap())
    }

    /// Runs a shell's text in it, which must work.
    #[track_caller]
    pub(crate) fn sh(self, text: &str) -> String {
        self.try_sh(text)
            .unwrap_or_else(|said| panic!("{text}: {said}"))
    }

    /// Runs a shell's text in it.
    pub(crate) fn try_sh(self, text: &str) -> Result<String, String> {
        let output = Command::new("nsenter")
            .args(["--target", &self.0.to_string()])
            .args(["--mount", "--net", "--pid", "--uts", "timeout", "60"])
            .args(["sh", "-ec", text])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() {
            return Ok(said);
        }
        Err(said + &String::from_utf8_lossy(&output.stderr))
    }
}
