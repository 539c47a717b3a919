//! Nodes leave: out of etcd, out of the API, and what is left of Kubernetes off their hosts.

use super::changing::emptied;
use super::{Done, Kube, Trouble};
use crate::api::Door;
use crate::api::node::Node;
use crate::error::{Error, Kind};
use crate::kubeadm::{self, Without};
use driver::Context;
use hosts::error::Kind as HostKind;
use model::cluster::{Machine, Role};
use model::id::ClusterId;
use model::observed::{Fact, NodeFact};
use model::stray::Leftover;
use model::task::{Around, Task};
use std::time::Duration;

/// How often somebody looks whether a node that is emptied is still ready.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl Kube {
    /// Takes a node out of its cluster, and Kubernetes off its host if that answers.
    pub(super) async fn leave(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
    ) -> Result<Done, Trouble> {
        let machine = &task.machine;
        let others = around.through.iter();
        let others: Vec<_> = others
            .filter(|other| other.id != machine.id)
            .cloned()
            .collect();
        let (door, member) = self.door(cx, task.cluster, &others).await?;
        let name = machine.name.as_str();
        let state = match door.node(name).await {
            Ok(node) if is_silent(&node) => State::Dead,
            Ok(node) => {
                door.refuse_locked(name).await?;
                if node.ready {
                    lost_or_emptied(cx, &door, task).await?
                } else {
                    State::Sick
                }
            }
            Err(error) if error.kind == Kind::NoNode => State::Emptied,
            Err(error) => return Err(error.into()),
        };
        match machine.role {
            Role::Control => {
                self.members(cx, task.cluster, &member, Some(machine.into()))
                    .await?;
            }
            Role::Compute | Role::Balancer => {}
        }
        // What a dead machine holds is let go only if somebody says that it is dead, and one that may
        // still run must first have ended its pods: two would write to one volume.
        if state != State::Emptied {
            match self.cleaned(cx, task).await? {
                Some(unreached) if state == State::Sick => return Err(unreached.into()),
                Some(_) | None => door.out_of_service(name, true).await?,
            }
        }
        door.delete_node(name, None).await?;
        cx.log(&format!("{name} is no node any more"));
        if state == State::Emptied {
            self.cleaned(cx, task).await?;
        }
        let fact = Fact::Node(machine.id, NodeFact::Absent);
        Ok((vec![(cx.now(), fact)], Vec::new()))
    }

    /// Takes nodes out of their cluster that are left of machines, each that can be.
    pub(super) async fn clear(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        leftovers: &[Leftover],
    ) -> Result<Done, Trouble> {
        let (door, member) = self.door(cx, task.cluster, &around.through).await?;
        let (mut seen, mut last) = (Vec::new(), None);
        for left in leftovers {
            let name = &left.node;
            match self
                .take_out(cx, task.cluster, (&door, &member), left)
                .await
            {
                Ok(()) => {
                    cx.log(&format!("{name} is no node any more"));
                    seen.push((cx.now(), Fact::Node(left.machine, NodeFact::Absent)));
                }
                Err(trouble) => {
                    cx.log(&format!("{name}: {trouble}"));
                    last = Some(trouble);
                }
            }
        }
        match last {
            None => Ok((seen, Vec::new())),
            Some(trouble) => Err(trouble),
        }
    }

    /// Takes a node out of its cluster that is left of a machine, and its member out of etcd.
    async fn take_out(
        &self,
        cx: &Context,
        cluster: ClusterId,
        (door, member): (&Door, &Machine),
        left: &Leftover,
    ) -> Result<(), Trouble> {
        let Some(node) = door.leftover(left).await? else {
            return Ok(());
        };
        let name = &left.node;
        // What a dead machine holds is let go only if somebody says that it is dead.
        door.out_of_service(name, true).await?;
        if left.control {
            let without = Without {
                name,
                // Another machine may have its address by now.
                address: None,
            };
            self.members(cx, cluster, member, Some(without)).await?;
        }
        Ok(door.delete_node(name, Some(&node.uid)).await?)
    }

    /// Takes Kubernetes off a host; answers why one could not be reached.
    async fn cleaned(
        &self,
        cx: &Context,
        task: &Task,
    ) -> Result<Option<hosts::error::Error>, Trouble> {
        let program = kubeadm::leave();
        let visit = self.visit(cx, task.cluster, &task.machine, &program).await;
        match visit {
            Ok(report) => {
                let name = task.machine.name.as_str();
                match kubeadm::trouble(&program.title, name, &report) {
                    None => Ok(None),
                    Some(error) => Err(error.into()),
                }
            }
            Err(Trouble::Host(error)) if silent(error.kind) => {
                cx.log(&format!("{error}: it is left as it is"));
                Ok(Some(error))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Has a member of etcd removed, where there is one, and tells all members.
    pub(super) async fn members(
        &self,
        cx: &Context,
        cluster: ClusterId,
        member: &Machine,
        without: Option<Without<'_>>,
    ) -> Result<Vec<String>, Trouble> {
        let program = kubeadm::members(without);
        let report = self.visit(cx, cluster, member, &program).await?;
        if report.fact("etcd") == Some("answers") {
            return Ok(report.facts("member").map(str::to_owned).collect());
        }
        let last = report.tail.last().map_or("it said nothing", String::as_str);
        let what = format!("etcd on {} did not change its members: {last}", member.name);
        Err(Error::new(Kind::Etcd, what).into())
    }
}

/// How a node is that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing runs on it.
    Emptied,
    /// It is not ready, and its pods may still run.
    Sick,
    /// Nothing is heard of it.
    Dead,
}

/// Moves what is left off a node. The API takes a while to see that a machine is dead, and nothing
/// leaves such a one.
async fn lost_or_emptied(cx: &Context, door: &Door, task: &Task) -> Result<State, Trouble> {
    let name = task.machine.name.as_str();
    tokio::select! {
        emptied = emptied(cx, door, task) => emptied.map(|()| State::Emptied),
        () = dies(door, name) => {
            cx.log(&format!("{name} is not heard any more: what it holds is let go"));
            Ok(State::Dead)
        }
    }
}

/// Waits until nothing is heard of a node any more.
async fn dies(door: &Door, name: &str) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if door.node(name).await.is_ok_and(|node| is_silent(&node)) {
            return;
        }
    }
}

/// Whether nothing is heard of a node. One whose kubelet says that it is not ready is alive, and so
/// may be its pods.
fn is_silent(node: &Node) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|condition| condition.of == "Ready" && condition.status == "Unknown")
}

/// Whether a host that fails so is one that nobody reaches.
const fn silent(kind: HostKind) -> bool {
    matches!(
        kind,
        HostKind::Refused | HostKind::Silent | HostKind::NoSuchHost
    )
}
