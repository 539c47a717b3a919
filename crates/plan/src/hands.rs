//! What nobody here can do, as whoever knows the hands says it.
//!
//! The planner asks for what should be done, and whoever is asked says that it cannot be done. Who tells
//! a journey knows that before.

use crate::held::Reason;
use crate::planner::Plan;
use model::cluster::Machine;
use model::name::Name;
use model::task::Kind;

/// Why nobody here can do something, and what a person does about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unable {
    /// Why.
    pub because: String,
    /// What ends the wait.
    pub next: String,
}

/// Says why nobody here can do something to a machine, where that is so.
pub type Hands<'a> = &'a dyn Fn(&Machine, Kind) -> Option<Unable>;

/// Holds back what nobody here can do; answers for which machines.
pub(crate) fn hold_unable(plan: &mut Plan, hands: Hands<'_>) -> Vec<Name> {
    let unable = plan.tasks.iter().filter_map(|task| {
        let Unable { because, next } = hands(&task.machine, task.action.kind())?;
        let (id, name) = (task.machine.id, task.machine.name.clone());
        Some((id, name, Reason::Unable { because, next }))
    });
    let unable: Vec<_> = unable.collect();
    for (machine, _, reason) in &unable {
        plan.hold_back(*machine, reason);
    }
    // What holds a whole pool is one sentence.
    plan.held.dedup_by(|next, held| {
        let same = matches!(held.reason, Reason::Unable { .. })
            && (held.kind, &held.reason) == (next.kind, &next.reason);
        if same {
            held.machines += next.machines;
        }
        same
    });
    unable.into_iter().map(|(_, name, _)| name).collect()
}
