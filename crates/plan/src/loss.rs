//! Whether a change takes machines away together with data that a cluster keeps on them.
//!
//! A machine keeps data when it is made by us, so that its disk goes with it; has served workloads; and
//! its cluster has an add-on that keeps volumes on nodes, or its pool a data disk that the manifest asks
//! for. The disk that clouds give unasked keeps nothing that anybody is known to have put there.

use model::addon::AddonName;
use model::cluster::{Desired, Machine, Origin, Role};
use model::hardware::DISK_USUAL;
use model::manifest::{Manifest, Pool};
use model::name::Name;
use model::observed::{NodeFact, Observed};
use std::collections::BTreeSet;

/// Data that would go with machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Whose they are.
    pub cluster: Name,
    /// Which machines, by name.
    pub machines: Vec<Name>,
    /// What is on them, as the object of a sentence.
    pub kept: String,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// Machines that are named before the rest is only counted.
        const NAMED_MAX: usize = 5;
        let named = self.machines.iter().take(NAMED_MAX).map(Name::as_str);
        let named: Vec<_> = named.collect();
        let more = match self.machines.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (cluster, kept) = (&self.cluster, &self.kept);
        write!(
            f,
            "cluster {cluster} would lose {}{more} with {kept}",
            named.join(", ")
        )
    }
}

/// What `next` takes away of the data of a cluster that lives on; nothing where the whole cluster goes,
/// which is a statement of its own.
pub fn loss(
    before: &Desired,
    observed: &Observed,
    next: &Desired,
    manifest: Option<&Manifest>,
) -> Option<Loss> {
    if next.tombstone {
        return None;
    }
    let stays: BTreeSet<_> = next.machines.iter().map(|machine| machine.id).collect();
    let goes = |machine: &&Machine| !stays.contains(&machine.id) && served(machine, observed);
    let going: Vec<_> = before.machines.iter().filter(goes).collect();
    if has(before, observed, AddonName::LocalPath) {
        return told(before, &going, 0, LOCAL);
    }
    if has(before, observed, AddonName::Longhorn) {
        // One is survived: what it had is on others, too. One that goes already is that one.
        let leaves = |machine: &&Machine| served(machine, observed);
        let spared = match before.leaving.iter().find(leaves) {
            Some(_) => 0,
            None => 1,
        };
        return told(before, &going, spared, "volumes of add-on longhorn");
    }
    let with_disk = going.into_iter();
    let with_disk: Vec<_> = with_disk
        .filter(|machine| has_disk(before, machine, manifest))
        .collect();
    told(before, &with_disk, 0, DISKS)
}

/// What would go with one machine that another comes for, as the object of a sentence. What longhorn keeps is
/// on others, too.
pub(crate) fn kept_on(
    desired: &Desired,
    observed: &Observed,
    machine: &Machine,
) -> Option<&'static str> {
    if !served(machine, observed) {
        None
    } else if has(desired, observed, AddonName::LocalPath) {
        Some(LOCAL)
    } else if has(desired, observed, AddonName::Longhorn) {
        None
    } else {
        has_disk(desired, machine, None).then_some(DISKS)
    }
}

const LOCAL: &str = "volumes of add-on local-path";
const DISKS: &str = "what is on data disks";

/// Whether a cluster has an add-on: one that is not declared any more stays as long as it keeps volumes.
fn has(desired: &Desired, observed: &Observed, name: AddonName) -> bool {
    let seen = observed.addons.as_ref().map(|(seen, _)| seen);
    let declared = desired.addons.iter().any(|addon| addon.name == name);
    declared || seen.is_some_and(|seen| seen.contains_key(&name))
}

fn told(of: &Desired, going: &[&Machine], spared: usize, kept: &str) -> Option<Loss> {
    (going.len() > spared).then(|| Loss {
        cluster: of.name.clone(),
        machines: going.iter().map(|machine| machine.name.clone()).collect(),
        kept: kept.to_owned(),
    })
}

/// Whether a machine of ours took workloads at some time.
fn served(machine: &Machine, observed: &Observed) -> bool {
    let seen = observed.machines.get(&machine.id);
    let node = seen.and_then(|seen| seen.node.as_ref());
    let joined = matches!(node, Some((NodeFact::Joined { .. }, _)));
    joined && machine.role == Role::Compute && matches!(machine.origin, Origin::Made { .. })
}

/// Whether a machine has a data disk that somebody asks for, or did when machines of its pool came. Of one
/// that came before anybody noted that, the size tells.
fn has_disk(desired: &Desired, machine: &Machine, manifest: Option<&Manifest>) -> bool {
    data_disk(machine).is_some_and(|disk| {
        let noted = desired.disks.contains(&machine.pool);
        let asked = || manifest.is_some_and(|of| asks_for_disk(of, &machine.pool));
        noted || asked() || disk != DISK_USUAL
    })
}

/// The size of a machine's data disk.
pub(crate) const fn data_disk(machine: &Machine) -> Option<u32> {
    match &machine.origin {
        Origin::Made { hardware, .. } => hardware.disk,
        Origin::Given { .. } => None,
    }
}

/// Whether a pool asks for a data disk by itself.
pub(crate) fn asks_for_disk(manifest: &Manifest, pool: &Name) -> bool {
    match manifest.pools.get(pool) {
        Some(Pool::Dynamic(pool)) => pool.hardware.disk.is_some_and(|disk| disk > 0),
        Some(Pool::Static(_) | Pool::Metal(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use expect_test::{Expect, expect};
    use model::addon::Addon;

    /// What is told when these machines are left of `c1 w1 w2 w3`, all of which serve.
    fn check(stay: &[&str], prepare: impl Fn(&mut Desired), expected: &Expect) {
        let mut world = World::new("v1.34.0", "c1 w1 w2 w3", "c1 w1 w2 w3");
        prepare(&mut world.desired);
        let mut next = world.desired.clone();
        next.machines.retain(|machine| {
            stay.iter()
                .any(|name| machine.name.as_str().ends_with(name))
        });
        let lost = loss(&world.desired, &world.observed, &next, None);
        expected.assert_eq(&lost.map(|lost| lost.to_string()).unwrap_or_default());
    }

    fn with(name: AddonName) -> impl Fn(&mut Desired) {
        move |desired: &mut Desired| {
            desired.addons = vec![Addon {
                name,
                version: "v1".to_owned(),
                values: std::collections::BTreeMap::new(),
            }];
        }
    }

    /// Gives every machine a data disk of that size.
    fn disks(size: u32) -> impl Fn(&mut Desired) {
        move |desired: &mut Desired| {
            for machine in &mut desired.machines {
                if let Origin::Made { hardware, .. } = &mut machine.origin {
                    hardware.disk = Some(size);
                }
            }
        }
    }

    #[test]
    fn nothing_is_lost_where_nothing_is_kept() {
        check(&["c1", "w1"], |_| {}, &expect![""]);
        check(&["c1", "w1"], disks(DISK_USUAL), &expect![""]);
        check(
            &["c1", "w1", "w2", "w3"],
            with(AddonName::LocalPath),
            &expect![""],
        );
        check(
            &["w1", "w2", "w3"],
            with(AddonName::LocalPath),
            &expect![""],
        );
    }

    #[test]
    fn volumes_go_with_their_node() {
        check(
            &["c1", "w1", "w2"],
            with(AddonName::LocalPath),
            &expect!["cluster edge would lose w3 with volumes of add-on local-path"],
        );
        check(
            &["c1", "w1"],
            with(AddonName::Longhorn),
            &expect!["cluster edge would lose w2, w3 with volumes of add-on longhorn"],
        );
        check(
            &["c1", "w1", "w2"],
            with(AddonName::Longhorn),
            &expect![[""]],
        );
        check(
            &["c1", "w1"],
            disks(100),
            &expect!["cluster edge would lose w2, w3 with what is on data disks"],
        );
    }

    #[test]
    fn a_cluster_that_goes_as_a_whole_was_asked_for() {
        let gone = |desired: &mut Desired| {
            with(AddonName::LocalPath)(desired);
            desired.tombstone = true;
        };
        check(&[], gone, &expect![""]);
    }

    #[test]
    fn an_add_on_that_is_not_declared_any_more_still_keeps_what_it_has() {
        let mut world = World::new("v1.34.0", "c1 w1 w2", "c1 w1 w2");
        let seen = model::addon::AddonFact {
            version: "v1".to_owned(),
            told: model::host::Fingerprint::of(&"told"),
            whole: true,
            wrong: None,
        };
        let seen = [(AddonName::LocalPath, seen)].into();
        world.observed.addons = Some((seen, crate::fixture::NOW));
        let mut next = world.desired.clone();
        next.machines.pop();
        let lost = loss(&world.desired, &world.observed, &next, None);
        let told = lost.unwrap().to_string();
        assert_eq!(
            told,
            "cluster edge would lose w2 with volumes of add-on local-path"
        );
    }

    #[test]
    fn one_by_one_is_not_fewer() {
        let mut world = World::new("v1.34.0", "c1 w1 w2 w3", "c1 w1 w2 w3");
        with(AddonName::Longhorn)(&mut world.desired);
        let last = world.desired.machines.pop().unwrap();
        world.desired.leaving.push(last);
        let mut next = world.desired.clone();
        assert_eq!(loss(&world.desired, &world.observed, &next, None), None);
        next.leaving.extend(next.machines.pop());
        let lost = loss(&world.desired, &world.observed, &next, None);
        let told = lost.unwrap().to_string();
        assert_eq!(
            told,
            "cluster edge would lose w2 with volumes of add-on longhorn"
        );
    }

    #[test]
    fn who_never_served_keeps_nothing() {
        let mut world = World::new("v1.34.0", "c1 w1 w2", "c1 w1~ w2-");
        with(AddonName::LocalPath)(&mut world.desired);
        let mut next = world.desired.clone();
        next.machines.truncate(1);
        assert_eq!(loss(&world.desired, &world.observed, &next, None), None);
    }
}
