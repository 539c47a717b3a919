//! The next safe step of one cluster, and why it is not a longer one.

mod addons;
mod around;
mod draft;
mod hosts;
mod metal;
mod names;
mod ports;
mod renewal;
mod rolling;
mod rules;
mod snapshots;
mod strays;
mod survey;
mod tending;

use crate::check::Note;
use crate::claims::Claim;
use crate::held::{Held, Owner, Reason};
use crate::ledger::{Elsewhere, Slot};
use crate::summary::{Phase, Summary};
use crate::vain::Vain;
use model::cluster::{Desired, Generation};
use model::disruption::Disruption;
use model::id::{ClusterId, MachineId, TaskId};
use model::intent::Intent;
use model::name::Name;
use model::observed::Observed;
use model::secret::SecretRef;
use model::task::{Open, State, Task};
use model::time::Timestamp;
use model::version::Version;

pub(crate) use draft::ATTEMPTS_BEFORE_ERROR;
use draft::Draft;
use survey::Survey;
pub(crate) use survey::cancelled;
use tending::Cares;

/// All that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The cluster as it should be.
    pub desired: &'a Desired,
    /// The cluster as it was last seen.
    pub observed: &'a Observed,
    /// Tasks that are not finished.
    pub open: &'a [Open],
    /// Rows of the disruption ledger that the cluster holds.
    pub ledger: &'a [Slot],
    /// Rows that other clusters of the project hold, in groups that this cluster is part of.
    pub elsewhere: &'a [Elsewhere],
    /// Wishes about the cluster.
    pub intents: &'a [Intent],
    /// Machines that could not be begun because others hold what they need.
    pub blocked: &'a [Name],
    /// Of these, those whose need the others keep: nobody knows whether they ever come.
    pub shut_out: &'a [Name],
    /// What it asks for and other clusters have. Whether it gets it is for the commit to say; who
    /// tells a journey sees it here.
    pub claimed: &'a [Claim],
    /// Secrets that its machines name and that nobody has set.
    pub missing: &'a [SecretRef],
    /// What ended well again and again and changed nothing.
    pub vain: &'a [Vain],
    /// How many plans of this cluster were committed before.
    pub parent: u64,
    /// What time it is.
    pub now: Timestamp,
}

/// The next step from observed towards desired, and why it is not a longer one.
///
/// Anybody may read one; only [`plan`] can make one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a plan changes nothing until it is committed"]
pub struct Plan {
    /// Whose.
    pub cluster: ClusterId,
    /// The desired state this step leads to; the store refuses older ones.
    pub generation: Generation,
    /// How many plans went before; the store refuses a plan that was overtaken.
    pub parent: u64,
    /// Work that may start now, in any order.
    pub tasks: Vec<Task>,
    /// Machines that the tasks put out of service: rows to draw from the ledger.
    pub disturbs: Vec<Slot>,
    /// The budgets that it keeps to; the commit counts again.
    pub budgets: Disruption,
    /// Open tasks that nobody wants any more and that no worker holds.
    pub withdraw: Vec<TaskId>,
    /// Tasks to be attempted again now, because somebody asked.
    pub reopen: Vec<TaskId>,
    /// Rows of the ledger to be given back.
    pub release: Vec<MachineId>,
    /// Work that must wait, each with its reason.
    pub held: Vec<Held>,
    /// When to plan again though nothing has happened: a window opens that work waits for, or etcd
    /// is to be saved.
    pub wake: Option<Timestamp>,
    /// The cluster in one line.
    pub summary: Summary,
}

impl Plan {
    /// Gives up everything the plan would do and keeps what it tells: the checker objects.
    pub fn stop(&mut self, notes: &[Note]) {
        let at = |note: &Note| {
            self.tasks
                .iter()
                .find(|task| task.machine.name == note.machine)
        };
        let held = notes.iter().filter_map(|note| {
            let task = at(note).or(self.tasks.first())?;
            Some(Held {
                kind: task.action.kind(),
                machine: task.machine.name.clone(),
                machines: 1,
                reason: Reason::Stopped {
                    rule: note.broken.to_owned(),
                },
            })
        });
        self.held = held.collect();
        self.wake = None;
        self.summary.phase = Phase::Error;
        self.summary.message = self.held.first().map(Held::to_string).unwrap_or_default();
        self.tasks.clear();
        self.disturbs.clear();
        self.withdraw.clear();
        self.reopen.clear();
        self.release.clear();
    }

    /// Tells of something that waits and that the planner alone does not know of.
    pub fn tell(&mut self, held: Held) {
        if self.held.contains(&held) {
            return;
        }
        if held.reason.owner() == Owner::Person {
            self.summary.phase = Phase::Error;
            self.summary.message = held.to_string();
        }
        self.held.push(held);
    }

    /// Moves the tasks on one machine to what is held: the store found them impossible now.
    pub fn hold_back(&mut self, machine: MachineId, reason: &Reason) {
        let (back, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.tasks)
            .into_iter()
            .partition(|task| task.machine.id == machine);
        self.tasks = go;
        self.disturbs.retain(|slot| slot.machine != machine);
        if !back.is_empty() && reason.owner() == Owner::Person {
            self.summary.phase = Phase::Error;
        }
        let tasks = u32::try_from(back.len()).unwrap_or(u32::MAX);
        self.summary.tasks = self.summary.tasks.saturating_sub(tasks);
        for task in back {
            let held = Held {
                kind: task.action.kind(),
                machine: task.machine.name,
                machines: 1,
                reason: reason.clone(),
            };
            if self.summary.tasks == 0 || reason.owner() == Owner::Person {
                self.summary.message = held.to_string();
            }
            self.held.push(held);
        }
    }
}

/// Whether a snapshot of etcd is being put back, or is to be: nothing else is done until then.
pub(crate) fn restores(view: &View<'_>) -> bool {
    snapshots::to_restore(view).is_some()
}

/// What the nodes run that are to stay.
pub(crate) fn runs(view: &View<'_>) -> Vec<Version> {
    Survey::of(view).runs()
}

/// Whether all nodes that are to stay have this version, and none of them is out of service because
/// of us, or about to come with an older one.
pub(crate) fn has_arrived(view: &View<'_>, version: Version) -> bool {
    let survey = Survey::of(view);
    let mut nodes = survey
        .wanted()
        .filter_map(|place| Some((place.node?, place.slot)));
    let older = |open: &Open| {
        let comes = open.action.version().is_some_and(|comes| comes < version);
        comes && open.state == State::Running
    };
    nodes.all(|(node, slot)| node.version >= version && !slot) && !view.open.iter().any(older)
}

/// Compares desired with observed and returns the next step.
pub fn plan(view: &View<'_>) -> Plan {
    let survey = Survey::of(view);
    let mut draft = Draft::new(view, &survey);
    if view.desired.tombstone {
        rules::tear_down(&mut draft);
    } else if let Some(wished) = snapshots::to_restore(view) {
        snapshots::restore(&mut draft, wished);
    } else {
        let cares = Cares::of(&draft);
        rules::create(&mut draft, &cares);
        hosts::equip(&mut draft, &cares);
        hosts::mesh(&mut draft);
        rules::start_control_plane(&mut draft, &cares);
        rules::join_compute(&mut draft, &cares);
        rules::uncordon(&mut draft);
        rules::remove(&mut draft, &cares);
        rolling::tell(&mut draft);
        renewal::renew(&mut draft);
        rules::upgrade(&mut draft);
        ports::ports(&mut draft, &cares);
        tending::tend(&mut draft, &cares);
        hosts::balancers::balance(&mut draft, &cares);
        names::name(&mut draft);
        metal::unmatched(&mut draft);
        strays::clear(&mut draft);
        addons::addons(&mut draft);
        snapshots::take(&mut draft);
        rules::tell_lost(&mut draft);
    }
    draft.finish()
}

#[cfg(test)]
mod tests;
