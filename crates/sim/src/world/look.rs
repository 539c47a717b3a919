//! What a driver finds when it looks: facts, and whether a task may begin.

use super::effect::{Change, Computer, Told, endpoint};
use super::kit::{End, Kit, Passing, ends};
use super::saved::Saved;
use super::state::{Course, Duty, Kube, Node, State};
use crate::world;
use driver::Error;
use model::cluster::{Machine, Origin, Role};
use model::host::Fingerprint;
use model::id::{ClusterId, MachineId};
use model::mesh::Mesh;
use model::observed::{
    AccessFact, CertificatesFact, ControlPlaneFact, Fact, MachineFact, NodeFact,
};
use model::provider::Provider;
use model::snapshot::Restoring;
use model::task::{Action, Task};
use model::time::Timestamp;
use std::net::{IpAddr, Ipv4Addr};

/// Sizes that the simulated provider sells.
pub(crate) const SERVER_TYPES: [&str; 3] = ["small", "medium", "large"];

/// Images that the simulated provider has.
pub(crate) const IMAGES: [&str; 2] = ["debian-12", "ubuntu-24.04"];

/// How far the world is with what a task asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is as asked.
    Done,
    /// It is under way, until then.
    UnderWay {
        /// When it takes effect.
        until: Timestamp,
    },
    /// It can be begun, on this computer where there is one.
    Begin(Option<Computer>),
}

/// Why a task cannot begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another process has the world to itself just now: to be asked again in a moment.
    Busy(Error),
    /// It may work later.
    Later(Error),
    /// It will not work until somebody changes something.
    Never(Error),
}

/// What no simulated provider has of what a machine is to be made of, and what it has instead.
pub fn lacks(origin: &Origin) -> Option<(String, String)> {
    let Origin::Made {
        via: Provider::Simulated,
        server_type,
        image,
        ..
    } = origin
    else {
        return None;
    };
    let lacks = |what: &str, found: &String, sold: &[&str]| {
        let because = format!("the provider has no {what} `{found}`");
        let next = format!("choose one of {}", sold.join(", "));
        let sells = sold.contains(&found.as_str());
        (!sells).then_some((because, next))
    };
    lacks("server type", server_type, &SERVER_TYPES).or_else(|| lacks("image", image, &IMAGES))
}

impl From<world::Error> for Refusal {
    fn from(error: world::Error) -> Self {
        match error {
            world::Error::Busy { .. } => Self::Busy(error.told()),
            world::Error::Open { .. } | world::Error::Line { .. } | world::Error::Write { .. } => {
                Self::Later(error.told())
            }
        }
    }
}

fn later(attempted: impl Into<String>, hint: &str) -> Refusal {
    Refusal::Later(Error {
        attempted: attempted.into(),
        hint: hint.to_owned(),
    })
}

fn never(attempted: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::Never(Error {
        attempted: attempted.into(),
        hint: hint.into(),
    })
}

const BY_ITSELF: &str = "tries again by itself";

impl State {
    /// How far the world is with what `task` asks for.
    pub(crate) fn step(&self, task: &Task, now: Timestamp) -> Result<Step, Refusal> {
        let machine = &task.machine;
        if let Some((_, of)) = self.under_way(machine.id) {
            let removes = matches!(task.action, Action::Delete | Action::Release);
            match Change::of(task) {
                Some(change) if change == of.change => {
                    return Ok(Step::UnderWay { until: of.until });
                }
                Some(_) | None if removes => {}
                Some(_) | None => {
                    let other = of.change.kind();
                    return Err(later(
                        format!("{other} of {} is still under way", machine.name),
                        BY_ITSELF,
                    ));
                }
            }
        }
        match &task.action {
            Action::Key => Ok(self.step_key(task.cluster, now)),
            Action::Create | Action::CreateExposed => self.step_create(machine, now),
            Action::Prepare => self.step_prepare(machine),
            Action::Equip { recipe } => self.step_equip(machine, &recipe.fingerprint(), now),
            Action::Mesh { mesh } => self.step_mesh(mesh, &ends(mesh), now),
            Action::Balance { balance } => self.step_balance(machine, &Passing::of(balance), now),
            Action::Name { naming } => Ok(self.step_name(machine, naming)),
            Action::Expose => self.step_port(machine, true),
            Action::Shut => self.step_port(machine, false),
            Action::Init { .. } => self.step_init(task, now),
            Action::Join { .. } => self.step_join(task, now),
            Action::Install { addons, remove } => self.step_install(task, (addons, remove), now),
            Action::Tend { .. }
            | Action::Drain
            | Action::Upgrade { .. }
            | Action::Renew { .. }
            | Action::Uncordon
            | Action::Readmit { .. }
            | Action::Leave => self.step_node(task, now),
            Action::Clear { leftovers } => self.step_clear(task, leftovers, now),
            Action::Snapshot { .. } => self.step_snapshot(task, now),
            Action::Restore { restoring } => self.step_restore(task, restoring, now),
            Action::Delete => Ok(self.step_delete(machine)),
            Action::Release => self.step_release(machine),
        }
    }

    fn step_key(&self, cluster: ClusterId, now: Timestamp) -> Step {
        match self.keys.get(&cluster) {
            None => Step::Begin(None),
            Some(key) if key.from > now => Step::UnderWay { until: key.from },
            Some(_) => Step::Done,
        }
    }

    fn step_equip(
        &self,
        machine: &Machine,
        recipe: &Fingerprint,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let (on, kit) = self.host(machine, now)?;
        if kit.equipped.as_ref() == Some(recipe) && kit.mesh_key.is_some() {
            return Ok(Step::Done);
        }
        Ok(Step::Begin(Some(on)))
    }

    fn step_balance(
        &self,
        machine: &Machine,
        passing: &Passing,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let (on, kit) = self.host(machine, now)?;
        if kit.end.is_none() {
            let attempted = format!("{} is not part of the mesh", machine.name);
            return Err(later(attempted, BY_ITSELF));
        }
        if kit.passing.as_ref() == Some(passing) {
            return Ok(Step::Done);
        }
        Ok(Step::Begin(Some(on)))
    }

    /// The computer that a host runs on, if it answers, and what is on it.
    fn host(&self, machine: &Machine, now: Timestamp) -> Result<(Computer, &Kit), Refusal> {
        let on = self.computer(machine, now)?;
        let kit = self.kit(on).map(|kit| (on, kit));
        kit.ok_or_else(|| {
            never(
                format!("{} is no host that could be entered", machine.name),
                "declare it with a provider of another type, or at its real address",
            )
        })
    }

    /// A mesh is begun for as long as anybody who answers lacks it. Who does not answer is
    /// named when all others have it.
    fn step_mesh(&self, mesh: &Mesh, ends: &[End], now: Timestamp) -> Result<Step, Refusal> {
        let mut silent = None;
        for end in ends {
            let on = self.whose(end.machine);
            let on = on.filter(|on| self.answers(*on, now));
            let kit = on.and_then(|on| self.kit(on));
            let keyed = |kit: &&Kit| kit.mesh_key.is_some();
            match (on, kit.filter(keyed)) {
                (Some(_), Some(kit))
                    if kit.end.as_ref().map(|has| &has.fact) == Some(&end.fact) => {}
                (Some(on), Some(_)) => return Ok(Step::Begin(Some(on))),
                (Some(_) | None, Some(_) | None) => silent = silent.or(Some(end.machine)),
            }
        }
        let members = mesh.members.iter().map(|member| &member.machine);
        let mut named = members.filter(|machine| Some(machine.id) == silent);
        match named.next() {
            Some(machine) => Err(unanswered(machine)),
            None => Ok(Step::Done),
        }
    }

    fn step_create(&self, machine: &Machine, now: Timestamp) -> Result<Step, Refusal> {
        match self.labelled(machine.id).next() {
            Some((_, vm)) if vm.stopping => Err(later(
                format!("{} is being deleted", machine.name),
                BY_ITSELF,
            )),
            Some((_, vm)) if !vm.powered => Err(silent(machine)),
            Some((_, vm)) if vm.boots_at > now => Ok(Step::UnderWay { until: vm.boots_at }),
            Some(_) => Ok(Step::Done),
            None if machine.origin.lacks_commit() => Err(never(
                format!("nobody knows from which commit {} is made", machine.name),
                "look up where the branch of its modules leads",
            )),
            None => self.sold(machine).map(|()| Step::Begin(None)),
        }
    }

    /// Whether the provider sells what the machine asks for.
    fn sold(&self, machine: &Machine) -> Result<(), Refusal> {
        let Origin::Made {
            via,
            server_type,
            image,
            ..
        } = &machine.origin
        else {
            return Err(never(
                format!("{} was given, not to be made", machine.name),
                "declare it in a static pool",
            ));
        };
        let sells: Vec<_> = SERVER_TYPES
            .into_iter()
            .filter(|name| !self.refused.contains(*name))
            .collect();
        // What somebody else sells under which names is not known here.
        let known = match via {
            Provider::Simulated => sells.contains(&server_type.as_str()),
            Provider::Sandbox | Provider::Cloud(_) => !self.refused.contains(server_type),
        };
        if !known {
            return Err(never(
                format!("the provider refuses server type `{server_type}`"),
                format!("choose one of {}", sells.join(", ")),
            ));
        }
        if *via == Provider::Simulated && !IMAGES.contains(&image.as_str()) {
            return Err(never(
                format!("the provider has no image `{image}`"),
                format!("choose one of {}", IMAGES.join(", ")),
            ));
        }
        Ok(())
    }

    fn step_prepare(&self, machine: &Machine) -> Result<Step, Refusal> {
        let Some(address) = endpoint(machine) else {
            return Err(never(
                format!("{} has no address to prepare it at", machine.name),
                "declare it in a dynamic pool",
            ));
        };
        let host = self.hosts.get(&address);
        let owner = host.and_then(|host| host.owner.as_ref());
        match (host, owner) {
            (Some(host), _) if !host.powered => Err(silent(machine)),
            (Some(_), Some(owner)) if owner.machine != machine.id => Err(later(
                format!("{address} is in use as {}", owner.name),
                "continues when it is given back",
            )),
            (Some(host), Some(_)) if host.prepared => Ok(Step::Done),
            (Some(_) | None, Some(_) | None) => Ok(Step::Begin(Some(Computer::Host(address)))),
        }
    }

    fn step_init(&self, task: &Task, now: Timestamp) -> Result<Step, Refusal> {
        let machine = &task.machine;
        let kube = self.clusters.get(&task.cluster);
        match kube.and_then(|kube| kube.started) {
            Some(first) if first == machine.id => return Ok(Step::Done),
            Some(_) => {
                return Err(never(
                    format!("{} already has a control plane", task.cluster_name),
                    "join the machine instead; a second control plane would split the cluster",
                ));
            }
            None => {}
        }
        Ok(Step::Begin(Some(self.computer(machine, now)?)))
    }

    fn step_join(&self, task: &Task, now: Timestamp) -> Result<Step, Refusal> {
        let computer = self.computer(&task.machine, now)?;
        self.reach(task, now)?;
        let kube = self.clusters.get(&task.cluster);
        let node = kube.and_then(|kube| kube.nodes.get(&task.machine.id));
        match node {
            Some(node)
                if node.on == computer
                    && self.carries(node, now)
                    && node.course != Course::Leaving =>
            {
                Ok(Step::Done)
            }
            Some(_) | None => Ok(Step::Begin(Some(computer))),
        }
    }

    fn step_node(&self, task: &Task, now: Timestamp) -> Result<Step, Refusal> {
        let machine = &task.machine;
        let kube = self.clusters.get(&task.cluster);
        let node = kube.and_then(|kube| kube.nodes.get(&machine.id));
        // An upgrade that was interrupted goes on upon the machine itself: the only member
        // of a control plane would otherwise wait for its own answer.
        let changes = matches!(task.action, Action::Upgrade { .. } | Action::Renew { .. });
        let on_the_spot = changes && node.is_some_and(|node| node.course == Course::Changing);
        if !on_the_spot {
            self.reach(task, now)?;
        }
        let Some(node) = node else {
            // Who is no node has left, and carries nothing that would have to be moved.
            if matches!(task.action, Action::Drain | Action::Leave) {
                return Ok(Step::Done);
            }
            return Err(later(
                format!("{} is no node of {}", machine.name, task.cluster_name),
                BY_ITSELF,
            ));
        };
        if is_met(node, &task.action) {
            return Ok(Step::Done);
        }
        let there = changes || matches!(task.action, Action::Tend { .. });
        if there && !self.carries(node, now) {
            return Err(silent(machine));
        }
        Ok(Step::Begin(Some(node.on)))
    }

    fn step_snapshot(&self, task: &Task, now: Timestamp) -> Result<Step, Refusal> {
        self.reach(task, now)?;
        let kube = self.clusters.get(&task.cluster);
        if kube.is_some_and(|kube| kube.saved.last == Some(task.id)) {
            return Ok(Step::Done);
        }
        Ok(Step::Begin(Some(self.computer(&task.machine, now)?)))
    }

    fn step_restore(
        &self,
        task: &Task,
        restoring: &Restoring,
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        let saved = self.clusters.get(&task.cluster).map(|kube| &kube.saved);
        let restored = saved.and_then(|saved| saved.restored.as_ref());
        if restored.is_some_and(|restored| restored.wish == restoring.wish) {
            // Whoever says that it is done has seen it answer.
            self.reach(task, now)?;
            return Ok(Step::Done);
        }
        let wanted = &restoring.snapshot;
        let kept = |saved: &Saved| saved.kept.iter().any(|kept| kept.id == *wanted);
        if !saved.is_some_and(kept) {
            return Err(never(
                format!("there is no snapshot {wanted} of {}", task.cluster_name),
                "choose one of those that `slipway backup etcd list` shows",
            ));
        }
        for node in &restoring.nodes {
            let on = self.computer(node, now)?;
            // A machine that was made again knows nothing of the control plane that was on the one before.
            if node.role == Role::Control && self.member_on(task.cluster, node.id) != Some(on) {
                return Err(later(
                    format!(
                        "there is no control plane on {} to put etcd back to",
                        node.name
                    ),
                    BY_ITSELF,
                ));
            }
        }
        Ok(Step::Begin(Some(self.computer(&task.machine, now)?)))
    }

    /// The computer on which a machine became a node.
    fn member_on(&self, cluster: ClusterId, machine: MachineId) -> Option<Computer> {
        let node = self.clusters.get(&cluster)?.nodes.get(&machine)?;
        Some(node.on)
    }

    fn step_delete(&self, machine: &Machine) -> Step {
        match self.labelled(machine.id).next() {
            None => Step::Done,
            Some((number, _)) => Step::Begin(Some(Computer::Vm(number))),
        }
    }

    fn step_release(&self, machine: &Machine) -> Result<Step, Refusal> {
        let Some(address) = endpoint(machine) else {
            return Ok(Step::Done);
        };
        let host = self.hosts.get(&address);
        let owner = host.and_then(|host| host.owner.as_ref());
        match (host, owner) {
            (Some(host), _) if !host.powered => Err(silent(machine)),
            (Some(_), Some(owner)) if owner.machine == machine.id => {
                Ok(Step::Begin(Some(Computer::Host(address))))
            }
            (Some(_) | None, Some(_) | None) => Ok(Step::Done),
        }
    }

    /// The computer that a machine runs on, if it answers.
    pub(super) fn computer(&self, machine: &Machine, now: Timestamp) -> Result<Computer, Refusal> {
        let computer = match endpoint(machine) {
            Some(address) => self
                .hosts
                .get(&address)
                .filter(|host| host.prepared)
                .and_then(|host| host.owner.as_ref())
                .filter(|owner| owner.machine == machine.id)
                .map(|_| Computer::Host(address)),
            None => self
                .labelled(machine.id)
                .next()
                .map(|(number, _)| Computer::Vm(number)),
        };
        computer
            .filter(|computer| self.answers(*computer, now))
            .ok_or_else(|| silent(machine))
    }

    /// Whether the cluster answers.
    pub(super) fn reach(&self, task: &Task, now: Timestamp) -> Result<(), Refusal> {
        if self.quorum(task.cluster, now) {
            return Ok(());
        }
        let started = self
            .clusters
            .get(&task.cluster)
            .is_some_and(|kube| kube.started.is_some());
        let why = if started {
            format!("etcd of {} has no quorum", task.cluster_name)
        } else {
            format!("{} has no control plane yet", task.cluster_name)
        };
        Err(later(why, "continues when its control nodes answer"))
    }

    /// What is seen of some machines of a cluster; what cannot be seen is left out.
    pub(crate) fn facts(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
        now: Timestamp,
    ) -> Vec<Fact> {
        let mut facts = Vec::with_capacity(machines.len() * 3 + 5);
        facts.extend(self.control_plane_facts(cluster, now));
        facts.extend(self.addons_fact(cluster, now));
        for machine in machines {
            facts.push(Fact::Machine(machine.id, self.machine_fact(machine, now)));
            facts.extend(self.node_fact(cluster, machine.id, now));
            facts.extend(self.certificates_fact(cluster, machine, now));
            let on = self.computer(machine, now).ok();
            let told = on.and_then(|on| self.host_told(cluster, on, now));
            facts.extend(told.map(|told| Fact::Host(machine.id, told)));
            facts.extend(self.names_fact(machine));
            facts.extend(self.port_fact(machine));
        }
        facts.extend(self.modules_facts(machines));
        let key = self.keys.get(&cluster).filter(|key| key.from <= now);
        facts.extend(key.map(|key| {
            let public = key.public.clone();
            Fact::Access(AccessFact { public })
        }));
        facts
    }

    /// What Kubernetes says of some machines of a cluster.
    pub(crate) fn node_facts(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
        now: Timestamp,
    ) -> Vec<Fact> {
        let nodes = machines.iter().flat_map(|machine| {
            let node = self.node_fact(cluster, machine.id, now);
            let certificates = self.certificates_fact(cluster, machine, now);
            node.into_iter().chain(certificates)
        });
        let control_plane = self.control_plane_facts(cluster, now);
        let addons = self.addons_fact(cluster, now);
        let whole = control_plane.into_iter().chain(addons);
        whole.chain(nodes).collect()
    }

    /// A cluster as Kubernetes sees it, while it answers.
    pub(super) fn answering(&self, cluster: ClusterId, now: Timestamp) -> Option<&Kube> {
        let kube = self.clusters.get(&cluster);
        kube.filter(|_| self.quorum(cluster, now))
    }

    /// What is known of a control plane, and of what was saved of it.
    fn control_plane_facts(&self, cluster: ClusterId, now: Timestamp) -> Vec<Fact> {
        let started = |kube: &&Kube| kube.started.is_some();
        let Some(kube) = self.answering(cluster, now).filter(started) else {
            return Vec::new();
        };
        let mut facts = vec![
            Fact::ControlPlane(ControlPlaneFact::started()),
            Fact::Snapshots(kube.saved.fact()),
        ];
        facts.extend(kube.saved.restored.clone().map(Fact::Restored));
        facts
    }

    pub(super) fn node_fact(
        &self,
        cluster: ClusterId,
        machine: MachineId,
        now: Timestamp,
    ) -> Option<Fact> {
        let node = match self.answering(cluster, now)?.nodes.get(&machine) {
            None => NodeFact::Absent,
            Some(node) => NodeFact::Joined {
                ready: self.ready(node, now),
                cordoned: node.duty != Duty::Serves,
                version: node.version,
                care: node.told.care.clone(),
                asks: false,
                gated: node.duty == Duty::Gated,
            },
        };
        Some(Fact::Node(machine, node))
    }

    /// When the certificates of a control machine end, which it tells itself.
    fn certificates_fact(
        &self,
        cluster: ClusterId,
        machine: &Machine,
        now: Timestamp,
    ) -> Option<Fact> {
        let node = self.clusters.get(&cluster)?.nodes.get(&machine.id)?;
        let end = node.end.filter(|_| self.carries(node, now))?;
        Some(Fact::Certificates(machine.id, CertificatesFact { end }))
    }

    fn machine_fact(&self, machine: &Machine, now: Timestamp) -> MachineFact {
        match endpoint(machine) {
            Some(address) => self.host_fact(machine, address),
            None => self.vm_fact(machine, now),
        }
    }

    fn vm_fact(&self, machine: &Machine, now: Timestamp) -> MachineFact {
        let Some((number, vm)) = self.labelled(machine.id).next() else {
            return MachineFact::Absent;
        };
        let reference = Computer::Vm(number).reference();
        if !vm.powered || vm.stopping {
            MachineFact::Unreachable {
                reference,
                because: None,
            }
        } else if vm.boots_at > now {
            MachineFact::Booting { reference }
        } else {
            MachineFact::Running {
                reference,
                address: IpAddr::V4(vm.address),
            }
        }
    }

    fn host_fact(&self, machine: &Machine, address: Ipv4Addr) -> MachineFact {
        let reference = Computer::Host(address).reference();
        let Some(host) = self.hosts.get(&address) else {
            return MachineFact::Absent;
        };
        let ours = host
            .owner
            .as_ref()
            .is_some_and(|owner| owner.machine == machine.id);
        if !host.powered {
            MachineFact::Unreachable {
                reference,
                because: None,
            }
        } else if !ours {
            MachineFact::Absent
        } else if host.prepared {
            MachineFact::Running {
                reference,
                address: IpAddr::V4(address),
            }
        } else {
            MachineFact::Booting { reference }
        }
    }
}

/// Whether a node is already as a task would leave it.
fn is_met(node: &Node, action: &Action) -> bool {
    match action {
        Action::Tend { care } => node.told == Told::of(care),
        Action::Drain => node.duty == Duty::Drained,
        Action::Uncordon | Action::Readmit { .. } => node.duty == Duty::Serves,
        Action::Upgrade { version } => node.version >= *version && node.course != Course::Changing,
        Action::Renew { end } => node.end > Some(*end) && node.course != Course::Changing,
        Action::Leave
        | Action::Key
        | Action::Create
        | Action::CreateExposed
        | Action::Prepare
        | Action::Equip { .. }
        | Action::Mesh { .. }
        | Action::Balance { .. }
        | Action::Name { .. }
        | Action::Expose
        | Action::Shut
        | Action::Init { .. }
        | Action::Join { .. }
        | Action::Install { .. }
        | Action::Clear { .. }
        | Action::Snapshot { .. }
        | Action::Restore { .. }
        | Action::Delete
        | Action::Release => false,
    }
}

fn unanswered(machine: &Machine) -> Refusal {
    later(
        format!(
            "{} does not answer and was not told of its peers; all others were",
            machine.name
        ),
        "continues when it answers again",
    )
}

pub(super) fn silent(machine: &Machine) -> Refusal {
    later(
        format!("{} does not answer", machine.name),
        "continues when it answers again",
    )
}
