//! All that would follow: the planner run against its own predictions until nothing is left.
//!
//! A journey is the happy path and says so. Rounds that repeat are told once, with a count:
//! rolling a thousand nodes is one line.

mod disturbed;
mod ports;
mod tell;
mod travel;

use crate::advance::spared;
use crate::claims::Claim;
use crate::hands::Hands;
use crate::held::{Held, Owner, Reason, Scope};
use crate::ledger::{Elsewhere, Slot};
use crate::pace::{Basis, Paces};
use crate::planner::{Plan, View, cancelled};
use crate::predict::predict;
use crate::price::{Cost, Prices};
use crate::summary::Phase;
pub use disturbed::Disturbed;
use disturbed::Taken;
use model::cluster::{Desired, Machine, Role};
use model::dns::Entry;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::Observed;
use model::task::{Effect, Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
pub use ports::Ports;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use travel::Travel;

/// More steps than any honest plan needs: a machine is made, joins, is drained, upgraded and
/// taken back, that for each of a few minor releases, or drained, taken out and destroyed, and
/// desired state moves on or time passes before it and after; so does the one in its place. Reaching
/// it is a bug in the planner.
const STEPS_PER_MACHINE: u32 = 64;

/// The longest pattern of rounds that is recognised when it repeats.
const PATTERN_MAX: usize = 6;

/// All that would follow for one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// Which cluster.
    pub cluster: Name,
    /// In which of its lives.
    pub id: ClusterId,
    /// The rounds, repeats told once.
    pub blocks: Vec<Block>,
    /// What still waits at the end.
    pub held: Vec<Held>,
    /// Where the cluster stands at the end.
    pub ends: Phase,
    /// How long it takes.
    pub minutes: u32,
    /// What happens to each machine: a later journey may do less, never more.
    pub effects: BTreeMap<Name, BTreeSet<Effect>>,
    /// Which machines these are, by their names: a name can be used again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<Name, BTreeSet<MachineId>>,
    /// Which Kubernetes its nodes should run at the end.
    pub version: Version,
    /// What machines that come are made of, by pool: each way once, in the words of manifests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<Name, BTreeSet<BTreeMap<String, String>>>,
    /// What nodes must pass on the way before they serve again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Name>,
    /// Who is taken out of service on the way, by pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbs: Vec<Disturbed>,
    /// Where the port of the API is opened to the world, and where it is shut.
    #[serde(default, skip_serializing_if = "Ports::is_empty")]
    pub ports: Ports,
    /// Names that somebody gave up, each with the machine to which it leads and that goes: they stay
    /// behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
    /// What the minutes were learnt from.
    #[serde(default)]
    pub basis: Basis,
    /// What its machines cost a month before and after; not told where nobody pays for any.
    #[serde(default, skip_serializing_if = "Cost::is_free")]
    pub cost: Cost,
}

/// Rounds that follow one another, told once and done `repeats` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// One round or a pattern of rounds; the steps of a round happen side by side.
    pub rounds: Vec<Vec<Step>>,
    /// How often.
    pub repeats: u32,
    /// What is waited for instead, where nothing can be done: then there are no rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The version that nodes are on their way to, where they go over several minor releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<Version>,
}

/// What a journey waits for before it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Wait {
    /// That a window opens.
    Window {
        /// When it does.
        opens: Timestamp,
        /// How long that takes.
        minutes: u32,
    },
    /// That the pause is over after which a pool's new kind of machine is tried again.
    Pause {
        /// When it is.
        due: Timestamp,
        /// How long that takes.
        minutes: u32,
    },
    /// That other clusters bring their machines back into service; nobody knows how long
    /// that takes.
    Others {
        /// One of them.
        by: String,
    },
    /// That a machine of another cluster of the manifest is gone and gives something back; nobody knows
    /// how long that takes.
    Freed {
        /// What it gives back: `address/203.0.113.5`.
        thing: String,
        /// Which machine.
        by: String,
    },
}

/// Machines of one pool to which the same is done in one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub kind: Kind,
    /// To machines of which pool.
    pub pool: Name,
    /// To those of it that do this, where the pool has machines of the control plane and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// To how many.
    pub machines: u32,
    /// To which, where it is one.
    pub first: Name,
    /// How long that takes.
    pub seconds: u32,
}

impl Step {
    /// Whether the two do the same to as many machines of the same pool.
    fn alike(&self, other: &Self) -> bool {
        let place = |step: &Self| (step.kind, step.role, step.machines);
        self.pool == other.pool && place(self) == place(other)
    }
}

impl Block {
    /// How long it takes: the longest step of each round, as often as it repeats, or the wait.
    pub fn minutes(&self) -> u32 {
        match self.wait {
            Some(Wait::Window { minutes, .. } | Wait::Pause { minutes, .. }) => minutes,
            Some(Wait::Others { .. } | Wait::Freed { .. }) => 0,
            None => self.seconds().div_ceil(60),
        }
    }

    /// How long its rounds take.
    fn seconds(&self) -> u32 {
        let longest = |round: &Vec<Step>| round.iter().map(|step| step.seconds).max().unwrap_or(0);
        let rounds = self.rounds.iter().map(longest);
        let seconds = rounds.fold(0_u32, u32::saturating_add);
        seconds.saturating_mul(self.repeats)
    }

    /// The worst that it does.
    pub fn effect(&self) -> Option<Effect> {
        self.rounds
            .iter()
            .flatten()
            .map(|step| step.kind.effect())
            .max()
    }
}

/// Runs the planner from `view` until nothing is left to do, and tells what that costs by the usual
/// prices and how long it takes by a guess.
pub fn journey(view: &View<'_>) -> Journey {
    journey_by(view, &Prices::usual(), &Paces::default(), &|_, _| None)
}

/// Runs the planner from `view` until nothing is left to do; tells costs by these prices, minutes by
/// what was learnt of tasks, and what nobody here can do by who knows the hands.
///
/// What nobody can do, and what needs a secret that nobody has set, waits. What it would lead to that
/// somebody agrees to is told all the same: what machines would be made of, what they would cost, and
/// which ports would be opened. So is what would be in the way when the secrets were set: nobody sets
/// five of them to hear then that it was in vain.
///
/// What windows would do if no data went along is told, too: it waits for somebody's word.
pub fn journey_by(view: &View<'_>, prices: &Prices, paces: &Paces, hands: Hands<'_>) -> Journey {
    let mut told = told_by(view, prices, paces, hands);
    told.held.extend(spared(view));
    let secret = |held: &Held| matches!(held.reason, Reason::Secret { .. });
    let unable = |held: &Held| matches!(held.reason, Reason::Unable { .. });
    let (closed, unable) = (told.held.iter().any(secret), told.held.iter().any(unable));
    let failing = |open: &Open| open.state == State::Stuck || open.error.is_some();
    let failed = view.open.iter().any(failing) || !view.vain.is_empty();
    if !closed && !unable && !failed {
        return told;
    }
    let opened = View {
        missing: &[],
        ..*view
    };
    if closed {
        let beyond = told_by(&opened, prices, paces, hands).held.into_iter();
        let new = |held: &Held| held.reason.owner() == Owner::Person && !told.held.contains(held);
        let beyond: Vec<_> = beyond.filter(new).collect();
        told.held.extend(beyond);
    }
    // As if nothing had failed yet: what somebody agrees to is the same at any time.
    let open: Vec<_> = view.open.iter().cloned().map(anew).collect();
    let opened = View {
        open: &open,
        vain: &[],
        ..opened
    };
    let able = told_by(&opened, prices, paces, &|_, _| None);
    Journey {
        made: able.made,
        ports: able.ports,
        cost: able.cost,
        ..told
    }
}

/// A task as it was before it failed.
fn anew(open: Open) -> Open {
    let state = match open.state {
        State::Stuck => State::Waiting,
        state @ (State::Waiting | State::Running | State::Done | State::Withdrawn) => state,
    };
    Open {
        state,
        error: None,
        ..open
    }
}

fn told_by(view: &View<'_>, prices: &Prices, paces: &Paces, hands: Hands<'_>) -> Journey {
    let mut travel = Travel::begun(*view, paces, hands);
    let last = loop {
        if travel.advanced() {
            continue;
        }
        let plan = travel.planned(hands);
        if let Some(last) = plan.and_then(|plan| travel.followed(plan)) {
            break last;
        }
    };
    let Travel {
        desired,
        observed,
        told,
        ..
    } = travel;
    let cost = [(view.desired, view.observed), (&desired, &observed)];
    let leaves = left_behind(view);
    Journey {
        leaves,
        ..told.ended(&desired, last, Cost::of(prices, cost))
    }
}

/// Pools of which some machines have a control plane and others do not, or that two load balancers share
/// with the cluster: who reads of them wants to know which are meant.
fn mixed(desired: &Desired) -> BTreeSet<Name> {
    let mut roles: BTreeMap<&Name, Role> = BTreeMap::new();
    let mut mixed = BTreeSet::new();
    for machine in desired.all() {
        let first = roles.entry(&machine.pool).or_insert(machine.role);
        if *first != machine.role {
            mixed.insert(machine.pool.clone());
        }
    }
    mixed
}

/// Names of machines that go, where somebody gave them up.
fn left_behind(view: &View<'_>) -> Vec<String> {
    let given_up = |machine: &&Machine| cancelled(view, machine.id, Kind::Name).is_some();
    let left = view.desired.leaving.iter().filter(given_up);
    let told = left.flat_map(|machine| {
        let seen = view.observed.machines.get(&machine.id);
        let names = seen.and_then(|seen| seen.names.as_ref());
        let names = names.map(|(fact, _)| &fact.names[..]).unwrap_or_default();
        let told = |of: &Entry| format!("{} of {}, with {}", of.name, machine.name, of.provider);
        names.iter().map(told)
    });
    told.collect()
}

/// The gates that nodes come to on the way.
fn passed(desired: &Desired, told: &Telling<'_>) -> Vec<Name> {
    let steps = told.blocks.iter().flat_map(|block| block.rounds.iter());
    let back = steps.flatten().any(|step| step.kind == Kind::Uncordon);
    let gates = desired.disruption.gates.iter().filter(|_| back);
    gates.map(|gate| gate.name.clone()).collect()
}

/// The cluster without what is done every day: that is no part of what somebody asks for.
fn unscheduled(desired: &Desired) -> Desired {
    let mut desired = desired.clone();
    if let Some(backup) = &mut desired.etcd_backup {
        backup.every = Duration::MAX;
    }
    desired
}

/// Predicts that tasks end well; answers what they did to which machines.
fn under_way<'a>(
    open: &[Open],
    desired: &'a Desired,
    observed: &mut Observed,
    now: Timestamp,
) -> Vec<(Kind, &'a Machine)> {
    let mut steps = Vec::new();
    if open.is_empty() {
        return steps;
    }
    let machines: BTreeMap<MachineId, &Machine> =
        desired.all().map(|machine| (machine.id, machine)).collect();
    for open in open {
        if let Some(machine) = machines.get(&open.machine) {
            predict(observed, machine, &open.action, now);
            steps.push((open.action.kind(), *machine));
        }
    }
    steps
}

/// What is waited for where nothing can be done now, though something can later.
fn wait(plan: &Plan, elsewhere: &[Elsewhere], claimed: &[Claim], clock: Timestamp) -> Option<Wait> {
    let minutes = |at: Timestamp| {
        let minutes = at.since(clock).as_secs().div_ceil(60);
        u32::try_from(minutes).unwrap_or(u32::MAX)
    };
    let opens = plan.held.iter().filter_map(|held| held.reason.opens());
    if let Some(opens) = opens.min().filter(|opens| *opens > clock) {
        let minutes = minutes(opens);
        return Some(Wait::Window { opens, minutes });
    }
    let due = plan
        .held
        .iter()
        .filter_map(|held| held.reason.paused_until());
    if let Some(due) = due.min().filter(|due| *due > clock) {
        let minutes = minutes(due);
        return Some(Wait::Pause { due, minutes });
    }
    let freed = plan.held.iter().find_map(|held| {
        let mut going = claimed.iter().filter(|claim| claim.goes);
        if let Reason::Claimed { thing, by, .. } = &held.reason {
            going.find(|claim| (&claim.thing, &claim.by) == (thing, by))
        } else {
            None
        }
    });
    if let Some(Claim { thing, by, .. }) = freed {
        let (thing, by) = (thing.clone(), by.clone());
        return Some(Wait::Freed { thing, by });
    }
    let row = plan.held.iter().find_map(|held| {
        if let Reason::Budget {
            scope: Scope::Group(group),
            ..
        } = &held.reason
        {
            elsewhere.iter().find(|row| row.group == *group)
        } else {
            None
        }
    })?;
    let by = row.to_string();
    Some(Wait::Others { by })
}

fn settle(ledger: &mut Vec<Slot>, plan: &Plan) {
    ledger.retain(|slot| !plan.release.contains(&slot.machine));
    ledger.extend(plan.disturbs.iter().cloned());
}

/// A journey being told, round by round.
struct Telling<'a> {
    paces: &'a Paces,
    basis: Basis,
    taken: Taken,
    ports: Ports,
    blocks: Vec<Block>,
    rounds: u32,
    /// Rounds, waits, and how often desired state moved on.
    steps: u32,
    /// More of them are never made.
    steps_max: u32,
    /// The plan at the last pause, and after how many rounds that was.
    paused: Option<(u32, Plan)>,
    effects: BTreeMap<Name, BTreeSet<Effect>>,
    machines: BTreeMap<Name, BTreeSet<MachineId>>,
    /// What those are made of that come, by pool.
    made: BTreeMap<Name, BTreeSet<BTreeMap<String, String>>>,
    /// What time it would be.
    clock: Timestamp,
    /// Whether that matters: without windows a journey is the same at any time.
    timed: bool,
    /// The version that nodes are on their way to, where they go over several minor releases.
    toward: Option<Version>,
    /// Pools whose machines do not all do the same.
    mixed: BTreeSet<Name>,
}

impl<'a> Telling<'a> {
    fn new(view: &View<'_>, paces: &'a Paces) -> Self {
        let machines = u32::try_from(view.desired.all().count()).unwrap_or(u32::MAX);
        Self {
            paces,
            basis: Basis::default(),
            taken: Taken::new(view.desired, view.observed),
            ports: Ports::default(),
            blocks: Vec::new(),
            rounds: 0,
            steps: 0,
            steps_max: STEPS_PER_MACHINE.saturating_mul(machines.saturating_add(1)),
            paused: None,
            effects: BTreeMap::new(),
            machines: BTreeMap::new(),
            made: BTreeMap::new(),
            clock: view.now,
            timed: !view.desired.disruption.windows.0.is_empty(),
            toward: view.desired.stone,
            mixed: mixed(view.desired),
        }
    }

    /// The plan at the pause before this one, where nothing was done in between: what is tried again
    /// in vain waits for somebody.
    fn stalled(&mut self, wait: Option<&Wait>, plan: &Plan) -> Option<Plan> {
        if !matches!(wait, Some(Wait::Pause { .. })) {
            return None;
        }
        let before = self.paused.replace((self.rounds, plan.clone()));
        let (_, first) = before.filter(|(rounds, _)| *rounds == self.rounds)?;
        Some(first)
    }

    /// Whether it has no end that anybody could tell.
    const fn is_endless(&self) -> bool {
        self.steps >= self.steps_max
    }

    /// The journey, which ends with this plan.
    fn ended(mut self, desired: &Desired, last: Plan, cost: Cost) -> Journey {
        // A wait that leads nowhere is none: what is held then says why.
        while self.blocks.pop_if(|block| block.wait.is_some()).is_some() {}
        Journey {
            cost,
            gates: passed(desired, &self),
            disturbs: self.taken.told(),
            ports: self.ports,
            leaves: Vec::new(),
            basis: self.basis,
            cluster: desired.name.clone(),
            id: desired.cluster,
            minutes: self.blocks.iter().map(Block::minutes).sum(),
            blocks: self.blocks,
            held: last.held,
            ends: last.summary.phase,
            effects: self.effects,
            machines: self.machines,
            version: desired.version,
            made: self.made,
        }
    }

    fn wait(&mut self, wait: Wait) {
        self.steps += 1;
        if let Wait::Window { opens: at, .. } | Wait::Pause { due: at, .. } = wait {
            self.clock = at;
        }
        self.blocks.push(Block {
            rounds: Vec::new(),
            repeats: 1,
            wait: Some(wait),
            toward: self.toward,
        });
    }

    fn round(&mut self, tasks: &[(Kind, &Machine)], ledger: &[Slot]) {
        if tasks.is_empty() {
            return;
        }
        self.rounds += 1;
        self.steps += 1;
        self.taken.round(tasks, ledger);
        let mut steps: Vec<Step> = Vec::new();
        for (kind, machine) in tasks {
            let effects = self.effects.entry(machine.name.clone()).or_default();
            effects.insert(kind.effect());
            let machines = self.machines.entry(machine.name.clone()).or_default();
            machines.insert(machine.id);
            if matches!(kind, Kind::Create | Kind::Prepare) {
                let made = self.made.entry(machine.pool.clone()).or_default();
                made.insert(machine.origin.made_of());
            }
            let role = Some(machine.role).filter(|_| self.mixed.contains(&machine.pool));
            let here = |step: &&mut Step| {
                (step.kind, step.role) == (*kind, role) && step.pool == machine.pool
            };
            if let Some(step) = steps.iter_mut().find(here) {
                step.machines += 1;
            } else {
                let (seconds, tasks) = self.paces.of(machine, *kind);
                self.basis.note(machine, *kind, tasks);
                steps.push(Step {
                    kind: *kind,
                    pool: machine.pool.clone(),
                    role,
                    machines: 1,
                    first: machine.name.clone(),
                    seconds,
                });
            }
        }
        let block = Block {
            rounds: vec![steps],
            repeats: 1,
            wait: None,
            toward: self.toward,
        };
        if self.timed {
            let took = Duration::from_secs(block.seconds().into());
            self.clock = self.clock.plus(took);
        }
        self.blocks.push(block);
        self.fold_repeats();
    }

    /// Folds the newest rounds into what came before, where they repeat it.
    fn fold_repeats(&mut self) {
        for length in 1..=PATTERN_MAX {
            let Some(start) = self.blocks.len().checked_sub(length) else {
                return;
            };
            let toward = self.toward;
            let single = |block: &Block| {
                block.repeats == 1 && block.rounds.len() == 1 && block.toward == toward
            };
            if !self.blocks[start..].iter().all(single) {
                return;
            }
            let pattern = |blocks: &[Block]| -> Vec<Vec<Step>> {
                blocks
                    .iter()
                    .flat_map(|block| block.rounds.clone())
                    .collect()
            };
            let newest = pattern(&self.blocks[start..]);
            if let Some(before) = start.checked_sub(1).and_then(|at| self.blocks.get_mut(at))
                && before.repeats > 1
                && before.toward == self.toward
                && walks_on(&before.rounds, &newest)
            {
                before.repeats += 1;
                self.blocks.truncate(start);
                return;
            }
            let Some(earlier) = start.checked_sub(length) else {
                continue;
            };
            if self.blocks[earlier..start].iter().all(single)
                && walks_on(&pattern(&self.blocks[earlier..start]), &newest)
            {
                self.blocks.truncate(earlier);
                self.blocks.push(Block {
                    rounds: newest,
                    repeats: 2,
                    wait: None,
                    toward: self.toward,
                });
                return;
            }
        }
    }
}

/// Whether rounds do to other machines what those before them did. What is done to the same ones again
/// is not told as if there were more of them.
fn walks_on(before: &[Vec<Step>], next: &[Vec<Step>]) -> bool {
    let mut steps = before.iter().flatten().zip(next.iter().flatten());
    same(before, next) && steps.any(|(before, next)| before.first != next.first)
}

fn same(one: &[Vec<Step>], other: &[Vec<Step>]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.alike(b)))
}

#[cfg(test)]
mod tests;
