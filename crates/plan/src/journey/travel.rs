//! A cluster on its way: the planner is asked, what it says is assumed to end well, and so on.

use super::{Telling, Wait, settle, under_way, unscheduled, wait};
use crate::advance::{advance, foreseen};
use crate::claims::{Claim, hold_claimed};
use crate::hands::{Hands, hold_unable};
use crate::ledger::{Elsewhere, Slot};
use crate::pace::Paces;
use crate::planner::{Plan, View, plan};
use crate::predict::predict;
use model::cluster::Desired;
use model::name::Name;
use model::observed::Observed;
use model::snapshot::SnapshotsFact;
use model::task::{Open, State};

/// All that changes while a journey is made.
pub(super) struct Travel<'a> {
    from: View<'a>,
    pub(super) desired: Desired,
    pub(super) observed: Observed,
    open: Vec<Open>,
    ledger: Vec<Slot>,
    elsewhere: &'a [Elsewhere],
    blocked: Vec<Name>,
    shut_out: Vec<Name>,
    claimed: Vec<Claim>,
    parent: u64,
    pub(super) told: Telling<'a>,
}

impl<'a> Travel<'a> {
    /// Sets out. What is under way is assumed to end well, first; what waits and nobody here can do is
    /// asked for again, and held like what was never begun.
    pub(super) fn begun(from: View<'a>, paces: &'a Paces, hands: Hands<'_>) -> Self {
        let desired = unscheduled(from.desired);
        let mut observed = from.observed.clone();
        let none = || (SnapshotsFact::none_since(from.now), from.now);
        observed.snapshots.get_or_insert_with(none);
        foreseen(&desired, &mut observed, from.now);
        let running = |open: &Open| open.state == State::Running;
        let (running, mut open): (Vec<_>, Vec<_>) = from.open.iter().cloned().partition(running);
        open.retain(|open| {
            let machine = desired.all().find(|machine| machine.id == open.machine);
            machine.is_none_or(|machine| hands(machine, open.action.kind()).is_none())
        });
        let mut told = Telling::new(&from, paces);
        let steps = under_way(&running, &desired, &mut observed, from.now);
        told.round(&steps, from.ledger);
        Self {
            desired,
            observed,
            open,
            ledger: from.ledger.to_vec(),
            elsewhere: from.elsewhere,
            blocked: from.blocked.to_vec(),
            shut_out: from.shut_out.to_vec(),
            claimed: from.claimed.to_vec(),
            parent: from.parent,
            told,
            from,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            desired: &self.desired,
            observed: &self.observed,
            open: &self.open,
            ledger: &self.ledger,
            elsewhere: self.elsewhere,
            blocked: &self.blocked,
            shut_out: &self.shut_out,
            parent: self.parent,
            now: self.told.clock,
            ..self.from
        }
    }

    /// Has desired state move on by itself; answers whether it did.
    pub(super) fn advanced(&mut self) -> bool {
        let Some(step) = advance(&self.view()).filter(|_| !self.told.is_endless()) else {
            return false;
        };
        self.told.steps += 1;
        self.desired = step.desired;
        let heads_for = self.desired.heads_for();
        self.told.toward = self.told.toward.map(|_| heads_for);
        true
    }

    /// The next step; none where it has to be planned again, because others need not wait for what
    /// does not come.
    pub(super) fn planned(&mut self, hands: Hands<'_>) -> Option<Plan> {
        let mut plan = plan(&self.view());
        let mut refused = Vec::new();
        for (machine, goes) in hold_claimed(&mut plan, &self.claimed) {
            if !goes && !self.shut_out.contains(&machine) {
                self.shut_out.push(machine.clone());
            }
            refused.push(machine);
        }
        refused.extend(hold_unable(&mut plan, hands));
        refused.retain(|machine| !self.blocked.contains(machine));
        let goes = refused.is_empty();
        self.blocked.append(&mut refused);
        goes.then_some(plan)
    }

    /// Does what a plan says, or waits for what it waits for; answers the plan with which all ends.
    pub(super) fn followed(&mut self, plan: Plan) -> Option<Plan> {
        self.open.retain(|open| !plan.withdraw.contains(&open.id));
        let goes = |open: &Open| open.state == State::Waiting || plan.reopen.contains(&open.id);
        let open = std::mem::take(&mut self.open).into_iter();
        let (going, staying): (Vec<_>, Vec<_>) = open.partition(goes);
        self.open = staying;
        let still = plan.tasks.is_empty() && going.is_empty();
        let clock = self.told.clock;
        let waits = || wait(&plan, self.elsewhere, &self.claimed, clock);
        let wait = if still { waits() } else { None };
        if still && wait.is_none() || self.told.is_endless() {
            return Some(plan);
        }
        let first = self.told.stalled(wait.as_ref(), &plan);
        if first.is_some() {
            return first;
        }
        settle(&mut self.ledger, &plan);
        let mut steps = under_way(&going, &self.desired, &mut self.observed, clock);
        for task in &plan.tasks {
            predict(&mut self.observed, &task.machine, &task.action, clock);
            steps.push((task.action.kind(), &task.machine));
        }
        self.told.ports.round(&steps, &self.observed);
        self.told.round(&steps, &self.ledger);
        self.parent += 1;
        if let Some(wait) = wait {
            self.waited(wait);
        }
        None
    }

    /// What others have under way is assumed to end well, too.
    fn waited(&mut self, wait: Wait) {
        if matches!(wait, Wait::Others { .. }) {
            self.elsewhere = &[];
        }
        if matches!(wait, Wait::Freed { .. }) {
            self.claimed.retain(|claim| !claim.goes);
            self.blocked.clear();
            self.shut_out.clear();
        }
        self.told.wait(wait);
    }
}
