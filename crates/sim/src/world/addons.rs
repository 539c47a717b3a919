//! What simulated clusters have besides Kubernetes.

use super::effect::Operation;
use super::look::{Refusal, Step};
use super::state::State;
use model::addon::{Addon, AddonFact, AddonName, AddonsFact};
use model::id::ClusterId;
use model::observed::Fact;
use model::task::Task;
use model::time::Timestamp;
use std::collections::BTreeMap;

impl State {
    /// Add-ons are begun for as long as one of them is not as it should be.
    pub(super) fn step_install(
        &self,
        task: &Task,
        (addons, remove): (&[Addon], &[AddonName]),
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        self.reach(task, now)?;
        let there = self.addons(task.cluster);
        let is = |addon: &Addon| {
            let seen = there.and_then(|there| there.get(&addon.name));
            seen.is_some_and(|fact| fact.is(addon))
        };
        let gone = |name: &AddonName| there.is_none_or(|there| !there.contains_key(name));
        if addons.iter().all(is) && remove.iter().all(gone) {
            return Ok(Step::Done);
        }
        Ok(Step::Begin(Some(self.computer(&task.machine, now)?)))
    }

    /// Half of each is there as soon as it is begun.
    pub(super) fn begin_install(&mut self, of: &Operation, addons: &[Addon]) {
        let half = |addon: &Addon| AddonFact {
            whole: false,
            ..addon.installed()
        };
        if let Some(kube) = self.clusters.get_mut(&of.by.cluster) {
            let there = kube.addons.get_or_insert_default();
            there.extend(addons.iter().map(|addon| (addon.name, half(addon))));
        }
    }

    /// All of it is there, and what should not be is not.
    pub(super) fn install(&mut self, of: &Operation, addons: &[Addon], remove: &[AddonName]) {
        if let Some(kube) = self.clusters.get_mut(&of.by.cluster) {
            let there = kube.addons.get_or_insert_default();
            there.retain(|name, _| !remove.contains(name));
            there.extend(addons.iter().map(|addon| (addon.name, addon.installed())));
        }
    }

    /// What there is, where anything was ever installed.
    fn addons(&self, cluster: ClusterId) -> Option<&BTreeMap<AddonName, AddonFact>> {
        self.clusters.get(&cluster)?.addons.as_ref()
    }

    /// What is seen of it, while the cluster answers.
    pub(super) fn addons_fact(&self, cluster: ClusterId, now: Timestamp) -> Option<Fact> {
        let addons = self.answering(cluster, now)?.addons.clone()?;
        Some(Fact::Addons(AddonsFact { addons }))
    }

    /// As an outsider would draw it.
    pub(super) fn addons_drawn(&self, cluster: ClusterId) -> Option<String> {
        let there = self.addons(cluster).filter(|there| !there.is_empty())?;
        let told = there.iter().map(|(name, fact)| {
            let half = if fact.whole { "" } else { " (half)" };
            format!("{name} {}{half}", fact.version)
        });
        Some(told.collect::<Vec<_>>().join(", "))
    }
}
