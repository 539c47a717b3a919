//! A journey as people read it: one line per round, or per rounds that repeat.

use super::{Block, Journey, Step, Wait, same};
use crate::summary::Phase;
use model::name::Name;
use model::task::Effect;
use std::collections::BTreeSet;
use std::fmt;

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
        let mut before: &[Block] = &[];
        let mut toward = None;
        let mut skipped: Vec<&[Block]> = Vec::new();
        for part in self.blocks.chunk_by(|_, next| next.wait.is_none()) {
            if alike(before, part) {
                skipped.push(part);
                continue;
            }
            tell_skipped(f, &mut number, &mut skipped)?;
            for block in part {
                if let Some(version) = block.toward.filter(|version| toward != Some(*version)) {
                    writeln!(f, "           to {version}")?;
                    toward = Some(version);
                }
                block.tell(f, &mut number)?;
            }
            before = part;
        }
        tell_skipped(f, &mut number, &mut skipped)?;
        for held in &self.held {
            writeln!(f, "  held  {held}")?;
            writeln!(f, "        {}", held.next_action())?;
        }
        self.tell_around(f)?;
        if !self.blocks.is_empty() {
            let end = match self.ends {
                Phase::Done => "ready",
                Phase::Gone => "gone",
                Phase::Pending | Phase::Scheduled | Phase::Error | Phase::Deleting => "waiting",
            };
            let machines = match self.touched() {
                1 => "1 machine".to_owned(),
                many => format!("{many} machines"),
            };
            let waits = self.blocks.iter().any(|block| block.wait.is_some());
            let after = if waits {
                days(self.minutes)
            } else {
                span(self.minutes)
            };
            writeln!(f, "  ends {end} after about {after}, {machines} touched")?;
        }
        Ok(())
    }
}

impl Journey {
    /// How many machines it does something to. One that goes and another that comes with its name are two.
    fn touched(&self) -> usize {
        let of_name = |name: &Name| self.machines.get(name).map_or(1, BTreeSet::len);
        self.effects.keys().map(of_name).sum()
    }

    /// What it means for others: gates, who is disturbed, ports, what stays behind, and costs.
    fn tell_around(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.gates.is_empty() {
            let gates: Vec<_> = self.gates.iter().map(Name::as_str).collect();
            writeln!(
                f,
                "  gates  a node serves, and others are upgraded or go, when these let it pass: {}",
                gates.join(", ")
            )?;
        }
        if !self.disturbs.is_empty() && !self.blocks.is_empty() {
            let disturbs: Vec<_> = self.disturbs.iter().map(ToString::to_string).collect();
            writeln!(f, "  disturbs  {}", disturbs.join("; "))?;
        }
        write!(f, "{}", self.ports)?;
        if !self.leaves.is_empty() {
            writeln!(f, "  leaves behind  {}", self.leaves.join("; "))?;
        }
        let changes = self.cost.before != self.cost.after;
        if !self.cost.is_free() && (changes || !self.blocks.is_empty()) {
            writeln!(f, "  costs  {}", self.cost)?;
        }
        Ok(())
    }
}

/// Whether both wait for a window and then do the same.
fn alike(one: &[Block], other: &[Block]) -> bool {
    let window = |part: &[Block]| {
        let wait = part.first().and_then(|block| block.wait.as_ref());
        matches!(wait, Some(Wait::Window { .. }))
    };
    let same = |(a, b): (&Block, &Block)| {
        (a.repeats, a.toward) == (b.repeats, b.toward) && same(&a.rounds, &b.rounds)
    };
    window(one) && window(other) && one.len() == other.len() && one.iter().zip(other).all(same)
}

/// One line for windows in which the same is done as in the one before.
fn tell_skipped(
    f: &mut fmt::Formatter<'_>,
    number: &mut u32,
    skipped: &mut Vec<&[Block]>,
) -> fmt::Result {
    let parts = std::mem::take(skipped);
    let Some(Wait::Window { opens, .. }) =
        parts.last().and_then(|part| part.first()?.wait.as_ref())
    else {
        return Ok(());
    };
    let rounds = parts
        .iter()
        .flat_map(|part| part.iter())
        .map(Block::count)
        .sum();
    let line = match parts.len() {
        1 => format!("the same in the window that opens {opens}"),
        many => format!("the same in {many} more windows, the last opens {opens}"),
    };
    let minutes = parts
        .iter()
        .flat_map(|part| part.iter())
        .map(Block::minutes)
        .sum();
    row(f, &place(number, rounds), &line, "", &days(minutes))
}

/// Where rounds stand in the journey, and that others follow.
fn place(number: &mut u32, rounds: u32) -> String {
    let first = *number;
    *number += rounds;
    match rounds {
        0 => String::new(),
        1 => first.to_string(),
        many => format!("{first}-{}", first + many - 1),
    }
}

fn row(
    f: &mut fmt::Formatter<'_>,
    place: &str,
    line: &str,
    effect: &str,
    span: &str,
) -> fmt::Result {
    writeln!(f, "  {place:>7}  {line:<60}  {effect:<9}  {span:>8}")
}

impl Step {
    /// A pool or a machine, with what its machines do where that needs to be said.
    fn of(&self, name: &Name) -> String {
        match self.role {
            Some(role) => format!("{name} ({})", role.as_str()),
            None => name.to_string(),
        }
    }
}

impl Block {
    /// How many rounds it stands for.
    fn count(&self) -> u32 {
        let rounds = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        rounds.saturating_mul(self.repeats)
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>, number: &mut u32) -> fmt::Result {
        let effect = self.effect().map_or("", Effect::as_str);
        let place = place(number, self.count());
        match &self.wait {
            None => row(f, &place, &self.line(), effect, &span(self.minutes())),
            Some(Wait::Window { opens, minutes }) => {
                let line = format!("wait for the window that opens {opens}");
                row(f, &place, &line, effect, &days(*minutes))
            }
            Some(Wait::Pause { due, minutes }) => {
                let line = format!("wait for the end of the pause, {due}");
                row(f, &place, &line, effect, &days(*minutes))
            }
            Some(Wait::Others { by }) => {
                writeln!(f, "  {place:>7}  wait until {by} is back in service")
            }
            Some(Wait::Freed { thing, by }) => {
                let thing = thing.replacen('/', " ", 1);
                writeln!(
                    f,
                    "  {place:>7}  wait until {by} is gone, which has {thing}"
                )
            }
        }
    }

    fn line(&self) -> String {
        if let Some((pool, at_once)) = self.pool_walked() {
            let kinds: Vec<_> = self
                .rounds
                .iter()
                .flatten()
                .map(|step| step.kind.as_str())
                .collect();
            let (all, kinds) = (at_once.saturating_mul(self.repeats), kinds.join(", "));
            return match at_once {
                1 => format!("{all} of {pool}, one at a time: {kinds}"),
                many => format!("{all} of {pool}, {many} at a time: {kinds}"),
            };
        }
        if let Some((machines, kinds)) = self.pools_walked() {
            return format!("{} times {machines}: {kinds}", self.repeats);
        }
        let step = |step: &Step| match (step.machines, self.repeats) {
            (1, 1) => format!("{} {}", step.kind, step.of(&step.first)),
            (1, _) => format!("{} one of {}", step.kind, step.of(&step.pool)),
            (many, _) => format!("{} {many} of {}", step.kind, step.of(&step.pool)),
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

    /// The pool whose machines are taken one by one, or so many at a time, where that is what
    /// the block does.
    fn pool_walked(&self) -> Option<(String, u32)> {
        let first = self.rounds.first()?.first()?;
        let place = |step: &Step| (step.of(&step.pool), step.machines);
        let alone =
            |round: &Vec<Step>| matches!(round.as_slice(), [step] if place(step) == place(first));
        (self.repeats > 1 && self.rounds.iter().all(alone)).then(|| place(first))
    }

    /// The machines of several pools to which one thing after the other is done, and what is
    /// done, where that is what the block does.
    fn pools_walked(&self) -> Option<(String, String)> {
        let machines = |round: &Vec<Step>| -> Vec<String> {
            let step = |step: &Step| format!("{} of {}", step.machines, step.of(&step.pool));
            round.iter().map(step).collect()
        };
        let first = machines(self.rounds.first()?);
        let mut kinds = Vec::new();
        for round in &self.rounds {
            let kind = round.first()?.kind;
            if machines(round) != first || round.iter().any(|step| step.kind != kind) {
                return None;
            }
            kinds.push(kind.as_str());
        }
        (self.repeats > 1).then(|| (first.join(" + "), kinds.join(", ")))
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

/// Minutes as people say them who wait for long.
fn days(minutes: u32) -> String {
    match (minutes / (24 * 60), minutes / 60 % 24) {
        (0, 0..10) => span(minutes),
        (0, hours) => format!("{hours} h"),
        (days, 0) => format!("{days} d"),
        (days, hours) => format!("{days} d {hours} h"),
    }
}
