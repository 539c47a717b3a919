//! Machines that are to be taken from those that were discovered, and of which none is known.

use super::draft::Draft;
use crate::held::Reason;
use model::name::Name;
use model::task::Kind;

/// Says which machines are waited for. Everything else of the cluster goes on.
pub(super) fn unmatched(draft: &mut Draft<'_>) {
    let desired = draft.view.desired;
    for wanted in &desired.metal {
        let stem = wanted.balancer.as_ref().unwrap_or(&desired.name);
        let selector = wanted.selector.iter();
        let selector = selector.map(|(label, value)| format!("{label}={value}"));
        let reason = Reason::Unmatched {
            selector: selector.collect::<Vec<_>>().join(", "),
        };
        let first = Name::of_machine(stem, &wanted.pool, 1);
        draft.hold_unborn(Kind::Prepare, first, wanted.count, reason);
    }
}
