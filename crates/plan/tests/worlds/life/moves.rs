//! What moves a life on besides plans: time, luck, and desired state by itself.

use super::{Judged, Life};
use crate::safety::shared;
use crate::shape::Luck;
use crate::upkeep::fewer;
use model::id::MachineId;
use model::intent::Wish;
use model::observed::{MachineFact, NodeFact, Observed};
use model::task::{Kind, Task};
use model::time::Timestamp;
use plan::{Known, advance, check_advance, give_back};
use proptest::prelude::*;

impl Life<'_> {
    /// What becomes of a task: the first ones on those that come in place of others may fail.
    pub(super) fn luck(&mut self, task: &Task) -> Luck {
        let id = task.machine.id;
        let mut rolls = self.desired.rolls.iter();
        let comes = rolls.any(|roll| roll.coming.contains(&id));
        let grows = task.action.kind() == Kind::Create
            && task.machine.pool.as_str() == "muscle"
            && self.desired.autoscalers.contains_key(&task.machine.pool);
        if !comes && !grows {
            return Luck::Good;
        }
        if self.mended {
            return Luck::Good;
        }
        self.tried += 1;
        let lucks = &self.world.more.lucks;
        lucks.get(self.tried - 1).copied().unwrap_or(Luck::Good)
    }

    /// Time passes, and everybody is looked at all the while.
    pub(super) fn pass(&mut self, until: Timestamp) {
        let passed = until.since(self.now);
        let later = |at: &mut Timestamp| *at = at.plus(passed);
        for seen in self.observed.machines.values_mut() {
            seen.machine.iter_mut().for_each(|(_, at)| later(at));
            seen.node.iter_mut().for_each(|(_, at)| later(at));
        }
        let told = self.observed.wellbeing.iter_mut();
        told.for_each(|(_, at)| later(at));
        self.now = until;
    }

    /// Whoever does not serve is known not to, since it was first seen.
    pub(super) fn notice(&mut self) {
        let Observed { machines, sick, .. } = &mut self.observed;
        for (id, seen) in machines {
            let lost = matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _)));
            let unready = matches!(seen.node, Some((NodeFact::Joined { ready: false, .. }, _)));
            if lost || unready {
                sick.entry(*id).or_insert(self.now);
            } else {
                sick.remove(id);
            }
        }
    }

    /// Has desired state move on as the engine does; answers whether it did.
    pub(super) fn moved_on(&mut self) -> Judged<bool> {
        let view = self.view();
        let Some(step) = advance(&view) else {
            return Ok(false);
        };
        let notes = check_advance(&view, &step);
        prop_assert_eq!(notes, Vec::new(), "{} {:#?}", step.because, view.desired);
        prop_assert!(Some(&step) == advance(&view).as_ref(), "a step is the same");
        prop_assert_eq!(fewer(&view, &step.desired), None, "{}", step.because);
        prop_assert_eq!(shared(&step.desired), None, "{}", step.because);
        self.desired = step.desired;
        Ok(true)
    }

    /// Gives back what was wished and cannot be made, as the engine does; answers whether it did.
    pub(super) fn gave_back(&mut self) -> Judged<bool> {
        let known = Known {
            desired: &self.desired,
            observed: &self.observed,
            intents: &self.intents,
            open: &self.open,
        };
        let Some(back) = give_back(known, self.now) else {
            return Ok(false);
        };
        prop_assert_eq!(shared(&back.desired), None, "{:?}", back.told);
        let paused = self.intents.iter().any(|of| matches!(of.wish, Wish::Pause));
        let mut coming = self.desired.rolls.iter().flat_map(|roll| &roll.coming);
        let stay = |id: &MachineId| {
            let was = self.desired.machines.iter().any(|of| of.id == *id);
            !was || back.desired.machines.iter().any(|of| of.id == *id)
        };
        prop_assert!(!paused && coming.all(stay), "{:?}", back.told);
        prop_assert!(
            !back.ends.is_empty(),
            "what is given back is wished no more"
        );
        self.intents
            .retain(|intent| !back.ends.contains(&intent.id));
        self.desired = back.desired;
        self.wished = None;
        Ok(true)
    }
}
