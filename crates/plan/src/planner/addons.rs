//! What a cluster has besides Kubernetes: who connects its pods as soon as there is an API, the rest
//! as soon as there is a node to run it.
//!
//! All that is lacking is one task: whoever does it goes on where one of them fails, so that none
//! keeps another waiting. Nothing here is taken out of service, and nothing else waits for it.

use super::draft::Draft;
use super::survey::{Life, Place};
use crate::held::Reason;
use model::addon::{Addon, AddonFact, AddonName};
use model::cluster::Role;
use model::task::{Action, Kind, State};

/// Add-ons that should be and are not, or not as they should be, and those that should not be.
pub(super) fn addons(draft: &mut Draft<'_>) {
    let view = draft.view;
    if !view.observed.initialised {
        return;
    }
    let wished = &view.desired.addons;
    let lacks = |addon: &&Addon| seen(draft, addon.name).is_none_or(|fact| !fact.is(addon));
    let mut lacking: Vec<Addon> = wished.iter().filter(lacks).cloned().collect();
    // Without it no node is ready, so nothing else could run.
    let connects = lacking.iter().position(|addon| addon.name.connects());
    let connects = connects.filter(|at| seen(draft, lacking[*at].name).is_none_or(|it| !it.whole));
    if let Some(at) = connects {
        let addons = vec![lacking.swap_remove(at)];
        let remove = Vec::new();
        if let Some(place) = draft.member_for(Kind::Install, joined) {
            begin(draft, &place, Action::Install { addons, remove });
        }
        return;
    }
    let remove = unwished(draft);
    let place = draft.member_for(Kind::Install, Place::ready_control);
    let Some(place) = place.filter(|_| can_run(draft)) else {
        return;
    };
    if let Some(outdated) = outdated(draft) {
        // What is there is changed when all nodes have the version that it is meant for. What is not
        // comes before that, unless nodes are further behind than by one minor release.
        let near = view.desired.stone.is_none();
        let (fresh, later): (Vec<_>, Vec<_>) = lacking
            .into_iter()
            .partition(|addon| near && seen(draft, addon.name).is_none_or(|fact| !fact.whole));
        lacking = fresh;
        if !later.is_empty() {
            let after = outdated.machine.name.clone();
            draft.hold(&place, Kind::Install, Reason::Turn { after });
        }
    }
    if !lacking.is_empty() || !remove.is_empty() {
        let addons = lacking;
        begin(draft, &place, Action::Install { addons, remove });
    } else {
        unwell(draft, &place);
    }
}

/// Asks for a change of add-ons, unless another machine is still at one: two would undo each
/// other's work.
fn begin(draft: &mut Draft<'_>, place: &Place<'_>, action: Action) {
    let running = |other: &&Place<'_>| {
        let open = other.open.filter(|_| other.doing(Kind::Install));
        open.is_some_and(|open| open.state == State::Running)
    };
    let mut others = draft.survey.places.iter().filter(running);
    match others.find(|other| other.machine.id != place.machine.id) {
        Some(other) => {
            let after = other.machine.name.clone();
            draft.hold(place, Kind::Install, Reason::Turn { after });
        }
        None => draft.want(place, action),
    }
}

/// What was last seen of an add-on.
fn seen<'a>(draft: &Draft<'a>, name: AddonName) -> Option<&'a AddonFact> {
    let (seen, _) = draft.view.observed.addons.as_ref()?;
    seen.get(&name)
}

/// What is there and is not wished.
fn unwished(draft: &Draft<'_>) -> Vec<AddonName> {
    let wished = &draft.view.desired.addons;
    let seen = draft.view.observed.addons.iter();
    let seen = seen.flat_map(|(seen, _)| seen.keys().copied());
    seen.filter(|name| !wished.iter().any(|addon| addon.name == *name))
        .collect()
}

/// Whether a machine is a member of the control plane that answers, ready or not.
fn joined(place: &Place<'_>) -> bool {
    place.node.is_some() && place.life == Life::Running
}

/// Whether there is a node that may run what is installed. Members of the control plane leave
/// that to others, where there are to be any. One that we took out of service is about to come back,
/// and for one that somebody else keeps from new workloads nobody waits.
fn can_run(draft: &Draft<'_>) -> bool {
    let compute = |place: &&Place<'_>| place.machine.role == Role::Compute;
    let mut others = draft.survey.wanted().filter(compute).peekable();
    let ready = |place: &Place<'_>| {
        let comes_back = place.slot && (place.open.is_some() || draft.is_busy(place));
        let answers = place.life != Life::Unreachable && !comes_back;
        answers && place.node.is_some_and(|node| node.ready)
    };
    others.peek().is_none() || others.any(ready)
}

/// The first node that has not the version of Kubernetes that it should have.
fn outdated<'a>(draft: &Draft<'a>) -> Option<Place<'a>> {
    let version = draft.view.desired.version;
    let older = |place: &&Place<'a>| place.node.is_some_and(|node| node.version < version);
    draft.survey.wanted().find(older).copied()
}

/// Tells of what is there as it should be and does not do its work.
fn unwell(draft: &mut Draft<'_>, place: &Place<'_>) {
    let wished = &draft.view.desired.addons;
    for addon in wished {
        let wrong = seen(draft, addon.name).and_then(|fact| fact.wrong.clone());
        if let Some(because) = wrong {
            let addon = addon.name;
            draft.hold(place, Kind::Install, Reason::Unwell { addon, because });
        }
    }
}
