//! What nodes carry, and where they find the API.

use super::{Done, Kube, PAUSE, Trouble, patiently, pause};
use crate::api::Door;
use crate::api::csr::{Identity, Verdict};
use crate::api::node::Taint;
use crate::api::wish::Wish;
use crate::kubeadm::{self, provider_id};
use driver::Context;
use hosts::recipe;
use model::care::Care;
use model::cluster::Machine;
use model::task::{Around, Task};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a kubelet may take to ask; it does so as soon as it knows its addresses.
const ASKS_MAX: Duration = Duration::from_secs(30);

impl Kube {
    /// Has a node find the API where it is, and carry what it should. What it was told is written
    /// down last: until then it is told again.
    pub(super) async fn tend(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
        care: &Care,
    ) -> Result<Done, Trouble> {
        let machine = &task.machine;
        let (door, _) = self.door(cx, task.cluster, &around.through).await?;
        let api = kubeadm::api(machine, around, care);
        let program = kubeadm::found(&task.cluster_name, machine, &api);
        let report = self.visit(cx, task.cluster, machine, &program).await?;
        recipe::done(&report)?;
        let stale = kubeadm::stale_pods(&report);
        self.renew_proxies(cx, &door, machine, &stale).await?;
        self.bring(cx, &door, machine, (care, false)).await?;
        self.answer(cx, &door, machine).await?;
        self.seen(cx, task, &door).await
    }

    /// Answers what the kubelet of a node asks for: a certificate to serve with, for the names and
    /// addresses that the node has and no others.
    async fn answer(&self, cx: &Context, door: &Door, machine: &Machine) -> Result<(), Trouble> {
        let identity = Identity {
            names: [machine.name.to_string()].into(),
            addresses: [machine.address.into()].into(),
        };
        let nodes = [(machine.name.to_string(), identity)].into();
        for judged in door.judge_requests(&nodes).await? {
            match judged.verdict {
                Verdict::Approved => cx.log(&format!("approved {}", judged.request)),
                Verdict::Denied(why) => cx.log(&format!("denied {}: {why}", judged.request)),
                Verdict::Left => {}
            }
        }
        Ok(())
    }

    /// Waits until the kubelet of a node that comes has asked for its certificate and got it: until
    /// then nobody reads the logs of its pods.
    pub(super) async fn certify(
        &self,
        cx: &Context,
        door: &Door,
        machine: &Machine,
    ) -> Result<(), Trouble> {
        let name = machine.name.as_str();
        let began = tokio::time::Instant::now();
        while !door.was_approved(name).await? {
            if began.elapsed() > ASKS_MAX {
                // It is answered when it is seen to ask.
                cx.log("the kubelet has not asked for a certificate yet");
                return Ok(());
            }
            self.answer(cx, door, machine).await?;
            pause(cx, PAUSE).await?;
        }
        Ok(())
    }

    /// Has a node carry what it should, as soon as the API knows it. One with gates to pass takes no
    /// pods from before it loses the taint with which it came.
    pub(super) async fn bring(
        &self,
        cx: &Context,
        door: &Door,
        machine: &Machine,
        (care, gated): (&Care, bool),
    ) -> Result<(), Trouble> {
        let wish = &Wish {
            gated,
            ..wish(machine, care)
        };
        let name = machine.name.as_str();
        let bring = || async move { door.bring_node(name, wish).await.map(Ok) };
        patiently(cx, name, bring).await
    }

    /// Pods of kube-proxy that were started when the API was elsewhere are replaced, and waited
    /// for: without one a node sends services to pods that are gone.
    async fn renew_proxies(
        &self,
        cx: &Context,
        door: &Door,
        machine: &Machine,
        stale: &BTreeSet<String>,
    ) -> Result<(), Trouble> {
        let name = machine.name.as_str();
        let proxies = door.proxies(name).await?;
        let proxies = proxies.iter().filter(|proxy| stale.contains(&proxy.uid));
        let mut waits = false;
        for proxy in proxies {
            cx.log(&format!("{} looks for the API elsewhere", proxy.name));
            door.renew_proxy(proxy).await?;
            waits = true;
        }
        if !waits {
            return Ok(());
        }
        let look = || async move {
            let proxies = door.proxies(name).await?;
            let new = |proxy: &&crate::api::proxy::Proxy| !stale.contains(&proxy.uid);
            let ready = proxies.iter().filter(new).any(|proxy| proxy.ready);
            Ok(if ready {
                Ok(())
            } else {
                Err("none of its pods is ready yet".to_owned())
            })
        };
        patiently(cx, &format!("kube-proxy on {name}"), look).await
    }
}

/// What a node should carry, in words of the API.
fn wish(machine: &Machine, care: &Care) -> Wish {
    let marks = &care.marks;
    let taints = marks.taints.iter().map(|taint| Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.as_str().to_owned(),
    });
    Wish {
        labels: marks.labels.clone(),
        annotations: marks.annotations.clone(),
        taints: taints.collect(),
        provider_id: Some(provider_id(machine)),
        told: Some(care.fingerprint()),
        gated: false,
    }
}
