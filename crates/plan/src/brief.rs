//! What another generation changes, in one line for people who look back.

use model::cluster::{Desired, Machine};
use model::name::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Machines of a pool that are named before they are only counted.
const NAMED_MAX: usize = 2;

/// What `next` changes: versions, machines by pool, and what else is different, by its field of manifests
/// where it has one.
pub fn brief(before: Option<&Desired>, next: &Desired) -> String {
    let Some(before) = before else {
        let machines = next.machines.len();
        let s = if machines == 1 { "" } else { "s" };
        return format!(
            "made, with {machines} machine{s}, Kubernetes {}",
            next.version
        );
    };
    let mut told = Vec::new();
    if next.tombstone && !before.tombstone {
        told.push("to be removed".to_owned());
    }
    if next.version != before.version {
        told.push(format!("Kubernetes {} → {}", before.version, next.version));
    }
    if let Some(stone) = next.stone.filter(|_| next.stone != before.stone) {
        told.push(format!("on the way by {stone}"));
    }
    told.extend(machines("+", &before.machines, &next.machines));
    told.extend(machines("-", &next.machines, &before.machines));
    told.extend(rolls(before, next));
    let others = others(before, next);
    if !others.is_empty() {
        told.push(others.join(", "));
    }
    if told.is_empty() {
        "nothing that can be told in short".to_owned()
    } else {
        told.join("; ")
    }
}

/// Machines that only the second list has, by pool.
fn machines(sign: &str, without: &[Machine], with: &[Machine]) -> Vec<String> {
    let known: BTreeSet<_> = without.iter().map(|machine| machine.id).collect();
    let mut pools: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
    for machine in with.iter().filter(|machine| !known.contains(&machine.id)) {
        pools.entry(&machine.pool).or_default().push(&machine.name);
    }
    let tell = |(pool, names): (&Name, Vec<&Name>)| {
        if names.len() > NAMED_MAX {
            return format!("{sign}{} of {pool}", names.len());
        }
        let names: Vec<_> = names
            .into_iter()
            .map(|name| format!("{sign}{name}"))
            .collect();
        names.join(", ")
    };
    pools.into_iter().map(tell).collect()
}

/// Pools whose machines begin, or cease, to become another kind.
fn rolls(before: &Desired, next: &Desired) -> Vec<String> {
    let pools = |of: &Desired| -> BTreeSet<Name> {
        let pools = of.rolls.iter().map(|roll| roll.pool.clone());
        pools.collect()
    };
    let (old, new) = (pools(before), pools(next));
    let begins = new.difference(&old);
    let begins = begins.map(|pool| format!("{pool} becomes another kind"));
    let ends = old.difference(&new);
    let ends = ends.map(|pool| format!("{pool} is of its kind"));
    begins.chain(ends).collect()
}

/// What else is different.
fn others(before: &Desired, next: &Desired) -> Vec<&'static str> {
    let fields = [
        ("loadBalancers", before.balancers != next.balancers),
        ("installationProxy", before.proxy != next.proxy),
        ("playbooks", before.playbooks != next.playbooks),
        ("addons", before.addons != next.addons),
        ("labels, annotations and taints", before.marks != next.marks),
        ("autoscaler", before.autoscalers != next.autoscalers),
        ("storageDiskSize", before.disks != next.disks),
        ("replace", before.replacing != next.replacing),
        ("etcdBackup", before.etcd_backup != next.etcd_backup),
        ("deletionProtection", before.protected != next.protected),
        ("disruption", before.disruption != next.disruption),
        ("repair", before.repair != next.repair),
        ("discovered machines", before.metal != next.metal),
        ("what machines are made with", remade(before, next)),
    ];
    let different = fields.into_iter().filter(|(_, different)| *different);
    different.map(|(field, _)| field).collect()
}

/// Whether a machine that stays is told to be made otherwise, such as from another commit.
fn remade(before: &Desired, next: &Desired) -> bool {
    let old: BTreeMap<_, _> = before
        .machines
        .iter()
        .map(|of| (of.id, &of.origin))
        .collect();
    let mut stay = next.machines.iter();
    stay.any(|machine| {
        old.get(&machine.id)
            .is_some_and(|origin| **origin != machine.origin)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use expect_test::{Expect, expect};

    fn check(change: impl Fn(&mut Desired), expected: &Expect) {
        let before = World::new("v1.34.0", "c1 w1 w2 w3 w4", "").desired;
        let mut next = before.clone();
        change(&mut next);
        expected.assert_eq(&brief(Some(&before), &next));
    }

    #[test]
    fn a_generation_is_told_in_one_line() {
        let new = World::new("v1.34.0", "c1", "").desired;
        expect!["made, with 1 machine, Kubernetes v1.34.0"].assert_eq(&brief(None, &new));
        check(
            |next| next.version = "v1.35.1".parse().unwrap(),
            &expect!["Kubernetes v1.34.0 → v1.35.1"],
        );
        check(|next| next.machines.truncate(4), &expect!["-w4"]);
        check(|next| next.machines.truncate(1), &expect!["-4 of compute"]);
        check(
            |next| {
                let more = World::new("v1.34.0", "w8 w9", "").desired.machines;
                next.machines.remove(1);
                next.machines.extend(more);
                next.addons.clear();
                next.protected = true;
            },
            &expect!["+w8, +w9; -w1; deletionProtection"],
        );
        check(|next| next.tombstone = true, &expect!["to be removed"]);
        check(|_| {}, &expect!["nothing that can be told in short"]);
    }
}
