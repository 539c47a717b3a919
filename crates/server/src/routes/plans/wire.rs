//! Journeys in the words of the contract.

use api::{
    JourneyBlock, JourneyCluster, JourneyCost, JourneyDisturbed, JourneyMonth, JourneyPace,
    JourneyStep, JourneyWait, WaitKind,
};
use plan::{Basis, Block, Cost, Disturbed, Journey, Month, Step, Wait};

use crate::view;

/// What prices are of.
const CURRENCY: &str = "USD";

pub(super) fn pace(basis: &Basis) -> JourneyPace {
    JourneyPace {
        learnt_from: basis.tasks(),
        guessed: basis.guessed().iter().map(|kind| (*kind).into()).collect(),
    }
}

pub(super) fn cluster(journey: &Journey) -> JourneyCluster {
    let effects = journey.effects.iter();
    JourneyCluster {
        name: journey.cluster.to_string(),
        id: journey.id.to_string(),
        minutes: journey.minutes,
        blocks: journey.blocks.iter().map(block).collect(),
        held: journey.held.iter().map(view::held).collect(),
        ends_in: view::state(journey.ends),
        effects: effects
            .map(|(name, all)| {
                (
                    name.to_string(),
                    all.iter().map(|effect| (*effect).into()).collect(),
                )
            })
            .collect(),
        machine_ids: journey
            .machines
            .iter()
            .map(|(name, ids)| {
                (
                    name.to_string(),
                    ids.iter().map(ToString::to_string).collect(),
                )
            })
            .collect(),
        version: journey.version.to_string(),
        made: journey
            .made
            .iter()
            .map(|(pool, ways)| (pool.to_string(), ways.iter().cloned().collect()))
            .collect(),
        disturbs: journey.disturbs.iter().map(disturbed).collect(),
        gates: journey.gates.iter().map(ToString::to_string).collect(),
        opens: journey
            .ports
            .opens
            .iter()
            .map(ToString::to_string)
            .collect(),
        shuts: journey
            .ports
            .shuts
            .iter()
            .map(ToString::to_string)
            .collect(),
        leaves: journey.leaves.clone(),
        cost: (!journey.cost.is_free()).then(|| cost(&journey.cost)),
    }
}

fn disturbed(disturbed: &Disturbed) -> JourneyDisturbed {
    JourneyDisturbed {
        pool: disturbed.pool.to_string(),
        machines: disturbed.machines,
        at_once: disturbed.at_once,
    }
}

fn cost(cost: &Cost) -> JourneyCost {
    let month = |month: &Month| JourneyMonth {
        cents: month.cents,
        unknown: month.unknown.clone(),
    };
    JourneyCost {
        currency: CURRENCY.to_owned(),
        prices_as_of: cost.as_of.clone(),
        before: month(&cost.before),
        after: month(&cost.after),
    }
}

fn wait(wait: &Wait) -> JourneyWait {
    let (kind, until, by) = match wait {
        Wait::Window { opens, .. } => (WaitKind::Window, Some(*opens), None),
        Wait::Pause { due, .. } => (WaitKind::Pause, Some(*due), None),
        Wait::Others { by } => (WaitKind::Others, None, Some(by.clone())),
        Wait::Freed { by, .. } => (WaitKind::Freed, None, Some(by.clone())),
    };
    JourneyWait {
        kind,
        until: until.map(Into::into),
        by,
    }
}

fn block(block: &Block) -> JourneyBlock {
    let step = |step: &Step| JourneyStep {
        kind: step.kind.into(),
        effect: step.kind.effect().into(),
        pool: step.pool.to_string(),
        machine: step.first.to_string(),
        machines: step.machines,
        seconds: step.seconds,
    };
    JourneyBlock {
        rounds: block
            .rounds
            .iter()
            .map(|round| round.iter().map(step).collect())
            .collect(),
        repeats: block.repeats,
        minutes: block.minutes(),
        toward: block.toward.map(|version| version.to_string()),
        wait: block.wait.as_ref().map(wait),
    }
}
