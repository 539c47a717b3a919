//! What else there is to know of a plan; the planner, which sees one cluster, does not know it.

use std::collections::BTreeMap;

use model::cluster::{Machine, Origin};
use model::manifest::Manifest;
use model::observed::MachineFact;
use model::provider::Provider;
use model::task::Kind;
use plan::{Change, Journey};
use store::{Preview, ProjectRow};

/// That nobody here makes the machines of some providers.
pub(super) fn unmade(previews: &[Preview], makes: fn(Provider) -> bool) -> Vec<String> {
    let mut unmade: BTreeMap<&str, u32> = BTreeMap::new();
    for origin in to_come(previews) {
        if let Origin::Made { via, .. } = origin
            && !makes(*via)
        {
            *unmade.entry(via.as_str()).or_default() += 1;
        }
    }
    let told = unmade.into_iter().map(|(via, machines)| {
        format!(
            "nobody here makes machines of {via}, of which {machines} should come: that waits for a \
             person (HOST-035); rehearse the manifest with `slipway simulate`, or use machines of your \
             own in a static pool"
        )
    });
    told.collect()
}

/// What clusters live with that no new one may have.
pub(crate) fn lived_with(manifest: &Manifest) -> Vec<String> {
    let told = manifest.doubts.iter().map(|doubt| {
        format!(
            "{}; it stays so because the cluster lives with it, and no new one may have it",
            doubt.fault
        )
    });
    told.collect()
}

/// That nobody here has what some machines are to be made of.
pub(super) fn lacking(previews: &[Preview], lacks: fn(&Origin) -> Option<String>) -> Vec<String> {
    let mut lacking: BTreeMap<String, u32> = BTreeMap::new();
    let rolls = previews.iter().flat_map(|preview| &preview.desired.rolls);
    let origins = to_come(previews).chain(rolls.map(|roll| &roll.origin));
    for what in origins.filter_map(lacks) {
        *lacking.entry(what).or_default() += 1;
    }
    let told = lacking.into_iter().map(|(what, machines)| {
        format!(
            "{what}: {machines} of those that should come wait for a person (HOST-036); correct the image of \
             the pool in the manifest"
        )
    });
    told.collect()
}

/// Of what machines are to be made that are not there.
fn to_come(previews: &[Preview]) -> impl Iterator<Item = &Origin> {
    previews.iter().flat_map(|preview| {
        let absent = |machine: &&Machine| {
            let seen = preview.known.observed.machines.get(&machine.id);
            let fact = seen.and_then(|seen| seen.machine.as_ref());
            fact.is_none_or(|(fact, _)| matches!(fact, MachineFact::Absent))
        };
        let machines = preview.desired.machines.iter().filter(absent);
        machines.map(|machine| &machine.origin)
    })
}

/// That the project may not have all the machines that would be made.
pub(super) fn over_quota(
    row: &ProjectRow,
    previews: &[Preview],
    journeys: &[Journey],
) -> Option<String> {
    let limit = row.quota.machines?;
    let count = |machines: usize| u32::try_from(machines).unwrap_or(u32::MAX);
    let mut needed = row.machines;
    for Preview {
        desired,
        known,
        change,
    } in previews
    {
        let before = match change {
            Change::New => 0,
            Change::Changed | Change::Unchanged | Change::Removed => {
                count(known.desired.machines.len())
            }
        };
        needed = needed.saturating_sub(before) + count(desired.machines.len());
    }
    let made = journeys.iter().flat_map(|journey| &journey.blocks);
    let made: u32 = made
        .map(|block| {
            let steps = block.rounds.iter().flatten();
            let begun = steps.filter(|step| matches!(step.kind, Kind::Create | Kind::Prepare));
            begun.map(|step| step.machines).sum::<u32>() * block.repeats
        })
        .sum();
    let waiting = needed.saturating_sub(limit).min(made);
    let last = match waiting {
        0 => return None,
        1 => "the last one waits".to_owned(),
        many => format!("the last {many} wait"),
    };
    Some(format!(
        "the project may have {limit} machines, and would need {needed}: {last}"
    ))
}
