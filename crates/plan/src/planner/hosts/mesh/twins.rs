//! Machines that tell the mesh key of another one: copies of a machine, and hosts that lie.
//!
//! Peers know each other by their keys. With one key for two machines nobody could be told of
//! both, and the whole mesh would stop at somebody who has done nothing. So one of them is a
//! member, and the others are left out until they tell a key of their own.

use super::member;
use crate::planner::View;
use crate::planner::survey::Place;
use model::cluster::Machine;
use model::id::MachineId;
use model::mesh::{Member, Mesh, MeshFact, MeshKey};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// With more of them than this nobody asks who was known first: an image with a key in it has
/// made them all.
const ASKED_MAX: usize = 8;

/// What every machine tells of its end of the mesh.
type Facts<'a> = BTreeMap<MachineId, &'a MeshFact>;

/// The machines that are left out, each with the one that is a member by the same key.
pub(in crate::planner) fn left_out<'a>(
    view: &View<'a>,
    places: &[Place<'a>],
) -> BTreeMap<MachineId, &'a Machine> {
    let mut tellers: BTreeMap<&MeshKey, usize> = BTreeMap::new();
    for place in places {
        if let Some(key) = place.host.and_then(|host| host.mesh_key.as_ref()) {
            *tellers.entry(key).or_default() += 1;
        }
    }
    if tellers.values().all(|count| *count == 1) {
        return BTreeMap::new();
    }
    let mut mesh = Mesh {
        network: view.desired.network,
        pods: view.desired.kubernetes.through_mesh(),
        members: Vec::new(),
        to: Vec::new(),
    };
    let mut sharing: BTreeMap<MeshKey, Vec<(&Place<'a>, Member)>> = BTreeMap::new();
    for place in places {
        let Some(member) = member(view, place) else {
            continue;
        };
        if tellers.get(&member.key).is_some_and(|count| *count == 1) {
            mesh.members.push(member);
        } else {
            let same = sharing.entry(member.key.clone()).or_default();
            same.push((place, member));
        }
    }
    let facts = places.iter();
    let facts: Facts<'_> = facts
        .filter_map(|place| Some((place.machine.id, place.host?.mesh.as_ref()?)))
        .collect();
    let mut left_out = BTreeMap::new();
    for twins in sharing.into_values() {
        let Some((place, first)) = rightful(&mesh, &facts, &twins) else {
            continue;
        };
        for (_, twin) in twins.iter().filter(|(_, twin)| twin != first) {
            left_out.insert(twin.machine.id, place.machine);
        }
        mesh.members.push(first.clone());
    }
    left_out
}

/// Who has the key by right: the one whom others were told of by it. Where nobody can say, one
/// that has been a part of the mesh, or else the first.
fn rightful<'t, 'a>(
    mesh: &Mesh,
    facts: &Facts<'_>,
    twins: &'t [(&'t Place<'a>, Member)],
) -> Option<&'t (&'t Place<'a>, Member)> {
    let rank = |(at, (place, twin)): &(usize, &(&Place<'_>, Member))| {
        let met = facts.contains_key(&twin.machine.id);
        let asked = twins.len() <= ASKED_MAX;
        let known = if asked {
            witnesses(mesh, facts, twin, twins)
        } else {
            0
        };
        (known, met, place.node.is_some(), Reverse(*at))
    };
    let (_, first) = twins.iter().enumerate().max_by_key(rank)?;
    Some(first)
}

/// How many were told that the key is this machine's. Among them may be those that tell the
/// same key now: what each was told of the others says nothing of its own.
fn witnesses(mesh: &Mesh, facts: &Facts<'_>, of: &Member, twins: &[(&Place<'_>, Member)]) -> usize {
    let mut mesh = mesh.clone();
    mesh.members.push(of.clone());
    let told = |mesh: &Mesh, peers: &[Member]| {
        let wishes = mesh.wishes();
        let told = |peer: &&Member| {
            let fact = facts.get(&peer.machine.id);
            fact.is_some_and(|fact| wishes.told(peer.machine.id, fact))
        };
        let others = peers.iter().filter(|peer| peer.machine.id != of.machine.id);
        others.filter(told).count()
    };
    let peers = told(&mesh, &mesh.members);
    let others = twins.iter().filter(|(_, twin)| twin != of);
    let others = others.map(|(_, twin)| {
        let mut with = mesh.clone();
        with.members.push(twin.clone());
        told(&with, std::slice::from_ref(twin))
    });
    peers + others.sum::<usize>()
}
