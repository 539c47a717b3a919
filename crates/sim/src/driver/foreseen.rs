//! Whether a task led where `plan::predict` says it leads: a rehearsal looks at what a task touches
//! before it begins and when it is done, and has the two compared.

use super::Simulated;
use crate::world::{Step, World};
use model::observed::{Observation, Observed};
use model::task::{Action, Task};

/// What a task touches, as it was before.
pub(super) struct Before {
    seen: Observed,
}

impl Simulated {
    /// What a task touches as it is now; nothing where nobody rehearses, and nothing that says how
    /// it was before where somebody else has begun it already.
    pub(super) fn before(&self, task: &Task, step: &Step) -> Option<Before> {
        self.chronicle.as_ref()?;
        // Who did these before was perhaps told otherwise.
        let once = matches!(
            task.action,
            Action::Snapshot { .. } | Action::Init { .. } | Action::Join { .. }
        );
        let before_us = once && *step == Step::Done;
        if before_us || matches!(step, Step::UnderWay { .. }) {
            return None;
        }
        let seen = look(&self.world, task)?.into_iter().collect();
        Some(Before { seen })
    }

    /// Tells the world where a task that is done led elsewhere than was foreseen.
    pub(super) fn compare(&self, before: &Before, task: &Task) {
        let Some(after) = look(&self.world, task) else {
            return;
        };
        let wrong = plan::unforeseen(task, &before.seen, &after, self.world.now());
        if !wrong.is_empty() {
            let told = format!("{}: {}", task.action.kind(), wrong.join("; "));
            self.world.unforeseen(task, told);
        }
    }
}

/// What is seen of what a task touches.
fn look(world: &World, task: &Task) -> Option<Vec<Observation>> {
    let (cluster, at) = (task.cluster, world.now());
    let mut facts = world.facts(cluster, &task.touched()).ok()?;
    if let Action::Clear { leftovers } = &task.action {
        facts.extend(world.leftovers(cluster, leftovers).ok()?);
    }
    let seen = facts.into_iter();
    Some(seen.map(|fact| Observation { cluster, fact, at }).collect())
}
