//! Work that waits, always with an owner, a reason and a next action.

mod next;
mod reason;
mod telling;

pub use reason::{Ends, Owner, Reason, Scope};

use model::name::Name;
use model::task::Kind;
use serde::{Deserialize, Serialize};

/// Work the planner would like to begin but must not begin yet.
///
/// Many machines that wait for the same reason are one `Held`: a thousand nodes that
/// wait for their turn are one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// What would be done.
    pub kind: Kind,
    /// The first machine it would be done to.
    pub machine: Name,
    /// How many machines wait for this reason, the first included.
    pub machines: u32,
    /// Why not now.
    pub reason: Reason,
}

/// What people are told of work that waits: machines that are stuck in the same way are one sentence.
pub fn told(held: &[Held]) -> Vec<Held> {
    let mut told: Vec<Held> = Vec::new();
    for held in held {
        let stuck = |other: &&mut Held| match (&other.reason, &held.reason) {
            (Reason::Stuck { error, .. }, Reason::Stuck { error: same, .. }) => {
                other.kind == held.kind && error == same
            }
            _ => false,
        };
        match told.iter_mut().find(stuck) {
            Some(first) => first.machines += held.machines,
            None => told.push(held.clone()),
        }
    }
    told
}
