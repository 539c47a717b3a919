//! How hosts reach each other: one mesh over all of them.

mod twins;

pub(in crate::planner) use twins::left_out;

use super::{balancers, failed, keyless, started, under_way};
use crate::held::Reason;
use crate::planner::View;
use crate::planner::draft::Draft;
use crate::planner::survey::{Life, Place, count, given_up};
use model::cluster::{Origin, Role};
use model::mesh::{Face, Member, Mesh, Wishes};
use model::observed::MachineFact;
use model::task::{Action, Kind};

/// The mesh, for all whose end of it is not as it should be: one task, many hosts at once.
///
/// Who is about to come is waited for, so that a cluster of a hundred is connected once and
/// not a hundred times; who fails to come is not. Who is to leave and still serves is told with
/// the others: those that come in its place reach it only if it knows them.
/// Who tells the key of another one is no part of it, and keeps nobody else waiting.
pub(in crate::planner) fn mesh(draft: &mut Draft<'_>) {
    let members = draft.survey.places.iter();
    let members = members.filter(|place| place.twin.is_none());
    let members = members.filter_map(|place| face(draft.view, place));
    let mut members: Vec<_> = members.collect();
    hold_twins(draft);
    // Who comes and who goes changes nothing for the others but itself.
    members.sort_by_key(|member| member.machine.address);
    let network = draft.view.desired.network;
    let pods = draft.view.desired.kubernetes.through_mesh();
    let wishes = Wishes::of(network, pods, &members);
    let unmet = |place: &&Place<'_>| {
        let seen = place.host.and_then(|host| host.mesh.as_ref());
        place.life == Life::Running && wishes.unmet(place.machine.id, seen)
    };
    let mut stale = Vec::new();
    for place in draft.survey.wanted().filter(unmet) {
        // Who cannot be entered keeps nobody else waiting.
        match locked(draft, place) {
            Some(secret) => draft.hold(place, Kind::Mesh, secret),
            None => stale.push(place),
        }
    }
    let on_the_way_out = draft.survey.leaving().filter(unmet);
    let on_the_way_out = on_the_way_out.filter(|place| serves_on(draft, place));
    let told = stale.iter().copied().chain(on_the_way_out);
    let to: Vec<_> = told.map(|place| place.machine.id).collect();
    let Some(anchor) = anchor(draft, &stale) else {
        return;
    };
    if !anchor.wanted {
        if let Some(first) = stale.first() {
            let after = anchor.machine.name.clone();
            draft.hold(first, Kind::Mesh, Reason::Turn { after });
        }
        return;
    }
    let mut coming = draft.survey.wanted().filter(|place| coming(draft, place));
    if let Some(first) = coming.next() {
        let reason = Reason::Additions {
            waiting_for: first.machine.name.clone(),
            missing: 1 + count(coming),
        };
        draft.hold_mesh(anchor, reason);
    } else {
        let mesh = Mesh {
            network,
            pods,
            members: members.iter().map(Face::member).collect(),
            to,
        };
        draft.want(anchor, Action::Mesh { mesh });
    }
}

/// Tells of those that are left out. One that is to leave does so all the same.
fn hold_twins(draft: &mut Draft<'_>) {
    for place in draft.survey.wanted() {
        let Some(twin) = place.twin else {
            continue;
        };
        if place.life == Life::Running {
            let reason = Reason::SameKey {
                other: twin.name.clone(),
                given: matches!(place.machine.origin, Origin::Given { .. }),
            };
            draft.hold(place, Kind::Mesh, reason);
        }
    }
}

/// The machine with which the task stands: where one is under way, else with one of those
/// that are to be told.
fn anchor<'s, 'a: 's>(draft: &Draft<'a>, stale: &[&'s Place<'a>]) -> Option<&'s Place<'a>> {
    if stale.is_empty() {
        return None;
    }
    let meshing = |place: &&Place<'_>| place.doing(Kind::Mesh);
    let running = |place: &&Place<'_>| meshing(place) && under_way(place);
    let idle = |place: &&&Place<'_>| !under_way(place) && !draft.is_busy(place);
    // One that waits or failed stays where it is, unless its machine is as it should be: that
    // one has other things to do than to wait for those that fail.
    let begun = || stale.iter().filter(idle).find(|place| meshing(place));
    let free = || stale.iter().filter(idle).find(|place| place.open.is_none());
    // What fails perhaps does so for want of the mesh.
    let failing = |place: &&&Place<'_>| failed(place) && started(draft, place).is_none();
    let failing = || stale.iter().filter(idle).find(failing);
    // All of them are at something that must not be given up: somebody else tells them, and
    // always the same one.
    let able = |place: &&Place<'_>| {
        let runs = place.wanted && place.life == Life::Running;
        runs && place.machine.origin.is_host() && idle(&place)
    };
    let places = &draft.survey.places;
    let bystander = || {
        let begun = places.iter().filter(able).find(meshing);
        begun.or_else(|| {
            places
                .iter()
                .filter(able)
                .find(|place| place.open.is_none())
        })
    };
    let told = || begun().or_else(free).or_else(failing).copied();
    places.iter().find(running).or_else(told).or_else(bystander)
}

/// Whether a machine that is to leave goes on serving until others can, and can be entered.
fn serves_on(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let serves = match place.machine.role {
        Role::Control | Role::Compute => balancers::still_answers(draft, place),
        Role::Balancer => balancers::still_needed(draft, place).is_some(),
    };
    serves && locked(draft, place).is_none()
}

/// Why a machine cannot be told of its peers: nobody has set the secret that opens it.
fn locked(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let mut secrets = place.machine.origin.secrets_for(Kind::Mesh);
    let missing = secrets.find(|secret| draft.view.missing.contains(secret));
    missing.map(Into::into)
}

/// A machine as its peers know it, to be kept.
fn member(view: &View<'_>, place: &Place<'_>) -> Option<Member> {
    face(view, place).map(|face| face.member())
}

/// A machine as its peers know it: those on their way out too, for as long as they are there
/// and somebody means to clean them.
fn face<'a>(view: &View<'a>, place: &Place<'a>) -> Option<Face<'a>> {
    if !place.wanted && given_up(view, place) {
        return None;
    }
    let host = place.host?;
    let seen = view.observed.machines.get(&place.machine.id);
    let shown = seen.and_then(|seen| match seen.machine.as_ref()?.0 {
        MachineFact::Running { address, .. } => Some(address),
        MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Unreachable { .. } => None,
    });
    Some(Face {
        machine: place.machine,
        key: host.mesh_key.as_ref()?,
        at: host.at.or(shown)?,
        pods: view.desired.pods_of(place.machine),
    })
}

/// Whether a host is about to be ready for the mesh.
fn coming(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    place.machine.origin.is_host() && keyless(place) && draft.is_busy(place) && !failed(place)
}
