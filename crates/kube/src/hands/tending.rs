//! What nodes carry, and where they find the API.

use super::{Done, Kube, Trouble, patiently};
use crate::api::Door;
use crate::api::node::Taint;
use crate::api::wish::Wish;
use crate::kubeadm::{self, provider_id};
use driver::Context;
use hosts::recipe;
use model::care::Care;
use model::cluster::Machine;
use model::task::{Around, Task};
use std::collections::BTreeSet;

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
        self.bring(cx, &door, machine, care).await?;
        self.seen(cx, task, &door).await
    }

    /// Has a node carry what it should, as soon as the API knows it.
    pub(super) async fn bring(
        &self,
        cx: &Context,
        door: &Door,
        machine: &Machine,
        care: &Care,
    ) -> Result<(), Trouble> {
        let wish = &wish(machine, care);
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
    }
}
