//! Why a pool is not yet of the kind that it should be.
//!
//! Which machines come and go is desired state, and moves on by itself ([`crate::advance`]); here is
//! told what it waits for.

use super::draft::Draft;
use super::survey::Place;
use crate::advance;
use crate::held::Reason;
use model::task::Kind;
use model::upkeep::Roll;

/// Old machines stay for now.
pub(super) fn tell(draft: &mut Draft<'_>) {
    let view = draft.view;
    for roll in &view.desired.rolls {
        let old = |place: &&Place<'_>| roll.holds(place.machine) && !roll.is_new(place.machine);
        let Some(reason) = reason(draft, roll) else {
            continue;
        };
        let old: Vec<_> = draft.survey.wanted().filter(old).copied().collect();
        for place in old {
            let ends = if place.machine.role.is_node() {
                Kind::Drain
            } else {
                Kind::Delete
            };
            draft.hold(&place, ends, reason.clone());
        }
    }
}

fn reason(draft: &Draft<'_>, roll: &Roll) -> Option<Reason> {
    let coming = draft.survey.wanted();
    let coming = coming.map(|place| place.machine);
    let mut coming = coming.filter(|machine| roll.coming.contains(&machine.id));
    if let Some(comes) = coming.next() {
        let after = comes.name.clone();
        return Some(Reason::Successor { after });
    }
    let Some(failed) = &roll.failed else {
        return draft.closed();
    };
    let taken_back = || Reason::TakenBack {
        times: failed.times,
        due: failed.due(),
        error: failed.because.clone(),
    };
    if failed.due() > draft.view.now {
        return Some(taken_back());
    }
    // Its time has come: what keeps it is told, and else that it is about to be tried.
    let after = || {
        let after = advance::after(draft.view, roll)?.name.clone();
        Some(Reason::Turn { after })
    };
    let kept = draft.pause().or_else(|| draft.closed());
    Some(kept.or_else(after).unwrap_or_else(taken_back))
}
