//! All that would follow: the planner run against its own predictions until nothing is left.
//!
//! A journey is the happy path and says so. Rounds that repeat are told once, with a count:
//! rolling a thousand nodes is one line.

use crate::held::Held;
use crate::planner::{Plan, Slot, View, plan};
use crate::predict::{minutes, predict};
use crate::summary::Phase;
use model::cluster::Machine;
use model::id::MachineId;
use model::name::Name;
use model::observed::Observed;
use model::task::{Effect, Kind, Open, State};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// More rounds than any honest plan needs: a machine is made, joins, is drained, upgraded and
/// taken back, or drained, taken out and destroyed. Reaching it is a bug in the planner.
const ROUNDS_PER_MACHINE: u32 = 16;

/// The longest pattern of rounds that is recognised when it repeats.
const PATTERN_MAX: usize = 6;

/// All that would follow for one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// Which cluster.
    pub cluster: Name,
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
}

/// Rounds that follow one another, told once and done `repeats` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// One round or a pattern of rounds; the steps of a round happen side by side.
    pub rounds: Vec<Vec<Step>>,
    /// How often.
    pub repeats: u32,
}

/// Machines of one pool to which the same is done in one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is done.
    pub kind: Kind,
    /// To machines of which pool.
    pub pool: Name,
    /// To how many.
    pub machines: u32,
    /// To which, where it is one.
    pub first: Name,
}

impl Step {
    /// Whether the two do the same to as many machines of the same pool.
    fn alike(&self, other: &Self) -> bool {
        (self.kind, &self.pool, self.machines) == (other.kind, &other.pool, other.machines)
    }
}

impl Block {
    /// How long it takes: the longest step of each round, as often as it repeats.
    pub fn minutes(&self) -> u32 {
        let longest = |round: &Vec<Step>| {
            round
                .iter()
                .map(|step| minutes(step.kind))
                .max()
                .unwrap_or(0)
        };
        self.rounds
            .iter()
            .map(longest)
            .sum::<u32>()
            .saturating_mul(self.repeats)
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

/// Runs the planner from `view` until nothing is left to do.
pub fn journey(view: &View<'_>) -> Journey {
    let desired = view.desired;
    let mut observed = view.observed.clone();
    let mut ledger = view.ledger.to_vec();
    let machines: BTreeMap<MachineId, &Machine> =
        desired.all().map(|machine| (machine.id, machine)).collect();
    let (running, mut open): (Vec<_>, Vec<_>) = view
        .open
        .iter()
        .cloned()
        .partition(|open| open.state == State::Running);
    let mut told = Telling::default();
    // What is under way is assumed to end well, first.
    told.round(&under_way(&running, &machines, &mut observed, view.now));
    let rounds_max =
        ROUNDS_PER_MACHINE.saturating_mul(1 + u32::try_from(machines.len()).unwrap_or(u32::MAX));
    let mut parent = view.parent;
    let last = loop {
        let next = View {
            observed: &observed,
            open: &open,
            ledger: &ledger,
            parent,
            ..*view
        };
        let plan = plan(&next);
        open.retain(|open| !plan.withdraw.contains(&open.id));
        let (going, staying): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|open| open.state == State::Waiting || plan.reopen.contains(&open.id));
        open = staying;
        if plan.tasks.is_empty() && going.is_empty() || told.rounds >= rounds_max {
            break plan;
        }
        settle(&mut ledger, &plan);
        let mut steps = under_way(&going, &machines, &mut observed, view.now);
        for task in &plan.tasks {
            predict(&mut observed, &task.machine, &task.action, view.now);
            steps.push((task.action.kind(), &task.machine));
        }
        told.round(&steps);
        parent += 1;
    };
    Journey {
        cluster: desired.name.clone(),
        minutes: told.blocks.iter().map(Block::minutes).sum(),
        blocks: told.blocks,
        held: last.held,
        ends: last.summary.phase,
        effects: told.effects,
    }
}

/// Predicts that tasks end well; answers what they did to which machines.
fn under_way<'a>(
    open: &[Open],
    machines: &BTreeMap<MachineId, &'a Machine>,
    observed: &mut Observed,
    now: Timestamp,
) -> Vec<(Kind, &'a Machine)> {
    let mut steps = Vec::new();
    for open in open {
        if let Some(machine) = machines.get(&open.machine) {
            predict(observed, machine, &open.action, now);
            steps.push((open.action.kind(), *machine));
        }
    }
    steps
}

fn settle(ledger: &mut Vec<Slot>, plan: &Plan) {
    ledger.retain(|slot| !plan.release.contains(&slot.machine));
    ledger.extend(plan.disturbs.iter().cloned());
}

/// A journey being told, round by round.
#[derive(Default)]
struct Telling {
    blocks: Vec<Block>,
    rounds: u32,
    effects: BTreeMap<Name, BTreeSet<Effect>>,
}

impl Telling {
    fn round(&mut self, tasks: &[(Kind, &Machine)]) {
        if tasks.is_empty() {
            return;
        }
        self.rounds += 1;
        let mut steps: Vec<Step> = Vec::new();
        for (kind, machine) in tasks {
            let effects = self.effects.entry(machine.name.clone()).or_default();
            effects.insert(kind.effect());
            match steps
                .iter_mut()
                .find(|step| step.kind == *kind && step.pool == machine.pool)
            {
                Some(step) => step.machines += 1,
                None => steps.push(Step {
                    kind: *kind,
                    pool: machine.pool.clone(),
                    machines: 1,
                    first: machine.name.clone(),
                }),
            }
        }
        self.blocks.push(Block {
            rounds: vec![steps],
            repeats: 1,
        });
        self.fold_repeats();
    }

    /// Folds the newest rounds into what came before, where they repeat it.
    fn fold_repeats(&mut self) {
        for length in 1..=PATTERN_MAX {
            let Some(start) = self.blocks.len().checked_sub(length) else {
                return;
            };
            let single = |block: &Block| block.repeats == 1 && block.rounds.len() == 1;
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
                && same(&before.rounds, &newest)
            {
                before.repeats += 1;
                self.blocks.truncate(start);
                return;
            }
            let Some(earlier) = start.checked_sub(length) else {
                continue;
            };
            if self.blocks[earlier..start].iter().all(single)
                && same(&pattern(&self.blocks[earlier..start]), &newest)
            {
                self.blocks.truncate(earlier);
                self.blocks.push(Block {
                    rounds: newest,
                    repeats: 2,
                });
                return;
            }
        }
    }
}

fn same(one: &[Vec<Step>], other: &[Vec<Step>]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.alike(b)))
}

impl fmt::Display for Journey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blocks.is_empty() {
            let what = if self.held.is_empty() {
                "nothing to do"
            } else {
                "nothing can be done now"
            };
            writeln!(f, "cluster {}: {what}", self.cluster)?;
        } else {
            writeln!(f, "cluster {}", self.cluster)?;
        }
        let mut number = 1;
        for block in &self.blocks {
            block.tell(f, &mut number)?;
        }
        for held in &self.held {
            writeln!(f, "  held  {held}")?;
            writeln!(f, "        {}", held.next_action())?;
        }
        if !self.blocks.is_empty() {
            let end = match self.ends {
                Phase::Done => "ready",
                Phase::Gone => "gone",
                Phase::Pending | Phase::Scheduled | Phase::Error | Phase::Deleting => "waiting",
            };
            let machines = match self.effects.len() {
                1 => "1 machine".to_owned(),
                many => format!("{many} machines"),
            };
            writeln!(
                f,
                "  ends {end} after about {}, {machines} touched",
                span(self.minutes)
            )?;
        }
        Ok(())
    }
}

impl Block {
    fn tell(&self, f: &mut fmt::Formatter<'_>, number: &mut u32) -> fmt::Result {
        let rounds = u32::try_from(self.rounds.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(self.repeats);
        let place = if rounds == 1 {
            number.to_string()
        } else {
            format!("{number}-{}", *number + rounds - 1)
        };
        *number += rounds;
        let effect = self.effect().map_or("", Effect::as_str);
        writeln!(
            f,
            "  {place:>7}  {:<60}  {effect:<9}  {:>8}",
            self.line(),
            span(self.minutes())
        )
    }

    fn line(&self) -> String {
        if let Some(pool) = self.pool_walked() {
            let kinds: Vec<_> = self
                .rounds
                .iter()
                .flatten()
                .map(|step| step.kind.as_str())
                .collect();
            return format!(
                "{} of {pool}, one at a time: {}",
                self.repeats,
                kinds.join(", ")
            );
        }
        let step = |step: &Step| match (step.machines, self.repeats) {
            (1, 1) => format!("{} {}", step.kind, step.first),
            (1, _) => format!("{} one of {}", step.kind, step.pool),
            (many, _) => format!("{} {many} of {}", step.kind, step.pool),
        };
        let round = |round: &Vec<Step>| round.iter().map(step).collect::<Vec<_>>().join(" + ");
        let line = self
            .rounds
            .iter()
            .map(round)
            .collect::<Vec<_>>()
            .join(", then ");
        if self.repeats == 1 {
            line
        } else {
            format!("{} times: {line}", self.repeats)
        }
    }

    /// The pool whose machines are taken one by one, where that is what the block does.
    fn pool_walked(&self) -> Option<&Name> {
        let pool = &self.rounds.first()?.first()?.pool;
        let alone = |round: &Vec<Step>| matches!(round.as_slice(), [step] if step.machines == 1 && step.pool == *pool);
        (self.repeats > 1 && self.rounds.iter().all(alone)).then_some(pool)
    }
}

/// Minutes as people say them.
fn span(minutes: u32) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests;
