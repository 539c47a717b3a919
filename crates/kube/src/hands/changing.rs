//! Nodes that stay: work is moved off them, they are upgraded, and work comes back.

use super::coming::stage;
use super::installing::brought;
use super::{Done, FILE_PATIENCE, Kube, Trouble, Until};
use crate::api::Door;
use crate::api::drain::Draining;
use crate::error::{Error, Kind};
use crate::kubeadm::{self, RENEWING};
use driver::Context;
use futures_util::future::join_all;
use hosts::recipe;
use hosts::recipe::item::Item;
use model::care::Care;
use model::cluster::Role;
use model::observed::{CertificatesFact, Fact};
use model::task::{Around, Task};
use model::time::Timestamp;
use model::version::Version;

impl Kube {
    /// Changes a node to another version: what kubeadm runs first, then the kubelet.
    pub(super) async fn upgrade(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
        version: Version,
    ) -> Result<Done, Trouble> {
        let machine = &task.machine;
        match self.door(cx, task.cluster, &around.through).await {
            Ok((door, _)) => emptied(cx, &door, task).await?,
            // The only member may be in the middle of it.
            Err(Trouble::Kube(error)) if error.kind == Kind::NoMember => {}
            Err(trouble) => return Err(trouble),
        }
        let nothing = Care::default();
        let node = self.node(cx, task, around, (version, &nothing)).await?;
        let staging = self
            .hosts
            .stage(cx, task.cluster, machine, version, stage(machine.role));
        let staged = staging.await?;
        // As soon as the control plane has it, kubeadm has every node run another kube-proxy, and a
        // node that must wait for its image does not learn meanwhile where services moved.
        let others = around.nodes.iter().filter(|node| node.id != machine.id);
        let bringing = others.map(async |node| {
            let hosts = &self.hosts;
            let staging = hosts.stage_worker_images(cx, task.cluster, node, version);
            (node, staging.await)
        });
        brought(cx, join_all(bringing).await)?;
        self.items(cx, task, &node.newer_kubeadm(&staged.programs))
            .await?;
        let program = node.upgrade();
        let report = self.visit(cx, task.cluster, machine, &program).await?;
        if let Some(error) = kubeadm::trouble(&program.title, machine.name.as_str(), &report) {
            return Err(error.into());
        }
        self.items(cx, task, &node.newer_kubelet(&staged.programs))
            .await?;
        let (door, _) = self.door(cx, task.cluster, &around.through).await?;
        let ready = self
            .ready(cx, &door, (machine, version), Until::Ready)
            .await?;
        // kubeadm renews certificates on its way, that of the administrator too.
        let outputs = match machine.role {
            Role::Control => {
                let kubeconfig = self.kubeconfig(cx, task).await?;
                self.answers(cx, task.cluster, machine, &kubeconfig.value)
                    .await?;
                vec![kubeconfig]
            }
            Role::Compute | Role::Balancer => Vec::new(),
        };
        let fact = Fact::Node(machine.id, ready);
        Ok((vec![(cx.now(), fact)], outputs))
    }

    /// Makes the certificates of a control machine anew, unless that was done since one of them was
    /// seen to end on this day.
    pub(super) async fn renew(
        &self,
        cx: &Context,
        task: &Task,
        end: Timestamp,
    ) -> Result<Done, Trouble> {
        let machine = &task.machine;
        let (begun, ends) = self.renewed(cx, task).await?;
        if begun || ends.is_none_or(|ends| ends <= end) {
            let program = kubeadm::renew();
            let report = self.visit(cx, task.cluster, machine, &program).await?;
            if let Some(error) = kubeadm::trouble(&program.title, machine.name.as_str(), &report) {
                return Err(error.into());
            }
        } else {
            cx.log("they were renewed already");
        }
        let kubeconfig = self.kubeconfig(cx, task).await?;
        self.answers(cx, task.cluster, machine, &kubeconfig.value)
            .await?;
        let at = cx.now();
        match self.renewed(cx, task).await? {
            (_, Some(ends)) if ends > end => {
                cx.log(&format!("the first of them ends on {}", ends.to_rfc3339()));
                let fact = Fact::Certificates(machine.id, CertificatesFact { end: ends });
                Ok((vec![(at, fact)], vec![kubeconfig]))
            }
            (_, Some(_) | None) => {
                let what = format!(
                    "kubeadm has renewed the certificates of {}, and one still ends on {}",
                    machine.name,
                    end.to_rfc3339()
                );
                Err(Error::new(Kind::Kubeadm, what).into())
            }
        }
    }

    /// Whether a renewal was begun and has not ended, and when the first certificate ends.
    async fn renewed(
        &self,
        cx: &Context,
        task: &Task,
    ) -> Result<(bool, Option<Timestamp>), Trouble> {
        let (cluster, machine) = (task.cluster, &task.machine);
        let told = [Item::Told {
            key: "renewing".to_owned(),
            print: format!("[ ! -e {RENEWING} ] || echo yes"),
        }];
        let look = recipe::render(&told, "look for a renewal", FILE_PATIENCE);
        let report = self.hosts.visit(cx, cluster, machine, &look).await?;
        recipe::done(&report)?;
        let begun = report.fact("renewing") == Some("yes");
        let shown = kubeadm::certificates();
        let report = self.hosts.visit(cx, cluster, machine, &shown).await?;
        Ok((begun, kubeadm::certificates_end(&report)))
    }

    /// Moves workloads off a node.
    pub(super) async fn drain(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
    ) -> Result<Done, Trouble> {
        let (door, _) = self.door(cx, task.cluster, &around.through).await?;
        let name = task.machine.name.as_str();
        door.refuse_locked(name).await?;
        door.forget_gates(name).await?;
        emptied(cx, &door, task).await?;
        self.seen(cx, task, &door).await
    }

    /// Lets workloads come to a node again.
    pub(super) async fn uncordon(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
    ) -> Result<Done, Trouble> {
        let (door, _) = self.door(cx, task.cluster, &around.through).await?;
        door.uncordon(task.machine.name.as_str()).await?;
        self.seen(cx, task, &door).await
    }

    pub(super) async fn seen(
        &self,
        cx: &Context,
        task: &Task,
        door: &Door,
    ) -> Result<Done, Trouble> {
        let at = cx.now();
        let name = task.machine.name.as_str();
        let (node, asking) = tokio::try_join!(door.node(name), door.asking())?;
        let fact = super::look::fact(&node, asking.contains(name))
            .map(|fact| Fact::Node(task.machine.id, fact));
        Ok((
            fact.into_iter().map(|fact| (at, fact)).collect(),
            Vec::new(),
        ))
    }
}

/// Moves off a node what is on it; where that was done before, nothing is left to do. Whoever changes
/// it does not rely on others for that.
pub(super) async fn emptied(cx: &Context, door: &Door, task: &Task) -> Result<(), Trouble> {
    let name = task.machine.name.as_str();
    let drained = Box::pin(door.drain(cx, name, Draining::default())).await?;
    Ok(drained.into_result()?)
}
