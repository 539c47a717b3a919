//! Add-ons are brought to a cluster, changed, and taken away again.
//!
//! Where one of them cannot be had or does not come to life, the others go on: what failed is told
//! when all was tried.

use super::{Done, Kube, PAUSE, Trouble, look, patiently, pause};
use crate::addons;
use crate::api::Door;
use crate::api::addon::Memory;
use crate::api::manifest::{Objects, Reference};
use crate::error::{Error, Kind};
use driver::Context;
use futures_util::future::join_all;
use model::addon::{Addon, AddonName, AddonsFact};
use model::cluster::Machine;
use model::observed::{Fact, NodeFact};
use model::task::{Around, Task};
use std::time::Duration;
use tokio::time::Instant;

/// How long all add-ons of a task may take until they are rolled out.
const ROLLOUT_MAX: Duration = Duration::from_mins(4);

/// How long what was deleted may take until it is gone.
const GONE_MAX: Duration = Duration::from_mins(2);

impl Kube {
    /// Has a cluster have these add-ons as they should be, and not have others.
    pub(super) async fn install(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        (wished, remove): (&[Addon], &[AddonName]),
    ) -> Result<Done, Trouble> {
        let (door, _) = self.door(cx, task.cluster, &around.through).await?;
        let (mut failed, mut brought) = (Vec::new(), Vec::new());
        for addon in wished {
            match self.install_one(cx, (task, around), &door, addon).await {
                Ok(memory) => brought.push(memory),
                Err(trouble) => failed.push((addon.name, trouble)),
            }
        }
        for name in remove {
            if let Err(trouble) = take_away(cx, &door, *name).await {
                failed.push((*name, trouble));
            }
        }
        let until = Instant::now() + ROLLOUT_MAX;
        for memory in brought {
            if let Err(error) = rolled_out(cx, &door, &memory, until).await {
                failed.push((memory.name, error.into()));
            }
        }
        if let Some(trouble) = first(cx, failed) {
            return Err(trouble);
        }
        let connects = wished.iter().any(|addon| addon.name.connects());
        let node = if connects {
            Some(comes_up(cx, &door, &task.machine).await?)
        } else {
            None
        };
        let at = cx.now();
        let addons = door.addons_seen().await?;
        let seen = Fact::Addons(AddonsFact { addons });
        let node = node.map(|fact| Fact::Node(task.machine.id, fact));
        let facts = std::iter::once(seen).chain(node).map(|fact| (at, fact));
        Ok((facts.collect(), Vec::new()))
    }

    /// Brings one add-on, or changes it to what it should be.
    async fn install_one(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        door: &Door,
        addon: &Addon,
    ) -> Result<Memory, Trouble> {
        let objects = self.objects(cx, addon).await?;
        let objects =
            objects.changed(|object| addons::fit(addon.name, &around.kubernetes, object))?;
        self.images(cx, task, &around.nodes, addon).await?;
        let known = door.addons().await?;
        let before = known.into_iter().find(|memory| memory.name == addon.name);
        let before = before.map(|memory| memory.objects).unwrap_or_default();
        let mut memory = Memory {
            name: addon.name,
            version: addon.version.clone(),
            told: addon.fingerprint(),
            whole: false,
            objects: both(&before, objects.references()),
        };
        door.remember(&memory).await?;
        let applied = door.apply_all(&objects).await?;
        let left = Memory {
            objects: before,
            ..memory.clone()
        };
        door.prune(&left.own(), &applied).await?;
        cx.log(&format!("{addon}: {} objects applied", applied.len()));
        memory.objects = applied;
        memory.whole = true;
        door.remember(&memory).await?;
        Ok(memory)
    }

    /// What an add-on is made of: as a mirror has it, else as we write it, else as it is published.
    async fn objects(&self, cx: &Context, addon: &Addon) -> Result<Objects, Trouble> {
        let (name, version) = (addon.name, addon.version.as_str());
        let text = match self.hosts.addon_listed(cx, name, version).await? {
            Some(text) => text,
            None => match addons::own(addon) {
                Some(text) => text,
                None => self.hosts.addon_published(cx, name, version).await?,
            },
        };
        Ok(Objects::read(&text)?)
    }

    /// Brings the images of an add-on to nodes, where a mirror has any.
    async fn images(
        &self,
        cx: &Context,
        task: &Task,
        nodes: &[Machine],
        addon: &Addon,
    ) -> Result<(), Trouble> {
        let bringing = nodes.iter().map(async |node| {
            let staging = self.hosts.stage_addon(cx, task.cluster, node, addon);
            (node, staging.await)
        });
        brought(cx, join_all(bringing).await)
    }

    /// Brings the images of all add-ons of a cluster to a machine that is about to become a node.
    pub(super) async fn addon_images(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
    ) -> Result<(), Trouble> {
        for addon in &around.addons {
            let bringing = self
                .hosts
                .stage_addon(cx, task.cluster, &task.machine, addon);
            bringing.await?;
        }
        Ok(())
    }
}

/// How it went to bring something to nodes. Those that do not answer run nothing that would need it.
pub(super) fn brought(
    cx: &Context,
    nodes: Vec<(&Machine, Result<(), hosts::error::Error>)>,
) -> Result<(), Trouble> {
    for (node, brought) in nodes {
        match brought {
            Err(error) if silent(error.kind) => {
                cx.log(&format!("{}: {}", node.name, error.what));
            }
            brought => brought?,
        }
    }
    Ok(())
}

/// Whether a host did not answer, which says nothing of what was asked.
const fn silent(kind: hosts::error::Kind) -> bool {
    use hosts::error::Kind;
    matches!(kind, Kind::Refused | Kind::Silent | Kind::Lost)
}

/// Everything of both, each once.
fn both(before: &[Reference], then: Vec<Reference>) -> Vec<Reference> {
    let mut all = then;
    for object in before {
        if !all.contains(object) {
            all.push(object.clone());
        }
    }
    all
}

/// Removes an add-on with all that it brought, and waits until that is gone.
async fn take_away(cx: &Context, door: &Door, name: AddonName) -> Result<(), Trouble> {
    let known = door.addons().await?;
    let Some(mut memory) = known.into_iter().find(|memory| memory.name == name) else {
        cx.log(&format!("{name} is gone already"));
        return Ok(());
    };
    if let Some(provisioner) = name.provisioner() {
        refuse_in_use(name, &door.volumes_of(provisioner).await?)?;
    }
    memory.whole = false;
    door.remember(&memory).await?;
    let own = memory.own();
    door.take_down(&own).await?;
    let began = Instant::now();
    loop {
        let left = door.still_there(&own).await?;
        let Some(first) = left.first() else { break };
        if began.elapsed() > GONE_MAX {
            let what = format!("{first} and {} more are not gone yet", left.len() - 1);
            return Err(Error::new(Kind::NotReady, what).into());
        }
        pause(cx, PAUSE).await?;
    }
    cx.log(&format!("{name}: {} objects removed", own.len()));
    Ok(door.forget(name).await?)
}

/// Who keeps volumes stays for as long as there are any: nobody else could reach what is in them.
fn refuse_in_use(name: AddonName, volumes: &[String]) -> Result<(), Error> {
    let Some(first) = volumes.first() else {
        return Ok(());
    };
    let more = match volumes.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let what = format!("{name} keeps volumes that are in use: {first}{more}");
    Err(Error::new(Kind::VolumesLeft, what))
}

/// Waits until all of an add-on serves.
async fn rolled_out(
    cx: &Context,
    door: &Door,
    memory: &Memory,
    until: Instant,
) -> Result<(), Error> {
    for (sort, namespace, name) in memory.workloads() {
        let left = until.saturating_duration_since(Instant::now());
        door.await_rollout(cx, sort, namespace, name, left).await?;
    }
    cx.log(&format!("{} {} is well", memory.name, memory.version));
    Ok(())
}

/// Waits until a node is ready whose pods are connected now.
async fn comes_up(cx: &Context, door: &Door, machine: &Machine) -> Result<NodeFact, Trouble> {
    let name = machine.name.as_str();
    let seen = || async move {
        let node = door.node(name).await?;
        // What its kubelet asks for is seen by the next probe.
        Ok(match look::fact(&node, false) {
            Some(fact) if node.ready => Ok(fact),
            Some(_) | None => Err("its pods are not connected yet".to_owned()),
        })
    };
    patiently(cx, name, seen).await
}

/// What to tell of all that failed: one that may work later keeps the task going.
fn first(cx: &Context, failed: Vec<(AddonName, Trouble)>) -> Option<Trouble> {
    for (name, trouble) in &failed {
        cx.log(&format!("{name}: {trouble}"));
    }
    let count = failed.len();
    let later = failed.iter().position(|(_, trouble)| trouble.may_work());
    let (name, trouble) = failed.into_iter().nth(later.unwrap_or(0))?;
    let more = match count {
        1 => String::new(),
        _ => format!(" (and {} more)", count - 1),
    };
    Some(trouble.of(&format!("{name}{more}")))
}
