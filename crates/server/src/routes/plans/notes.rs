//! What else there is to know of a plan; the planner, which sees one cluster, does not know it.

use std::collections::BTreeMap;

use model::cluster::{Machine, Origin};
use model::observed::MachineFact;
use model::provider::Provider;
use model::task::Kind;
use plan::{Change, Journey};
use store::{Preview, ProjectRow};

/// That nobody here makes the machines of some providers.
pub(super) fn unmade(previews: &[Preview], makes: fn(Provider) -> bool) -> Vec<String> {
    let mut unmade: BTreeMap<&str, u32> = BTreeMap::new();
    for preview in previews {
        let absent = |machine: &&Machine| {
            let seen = preview.known.observed.machines.get(&machine.id);
            let fact = seen.and_then(|seen| seen.machine.as_ref());
            fact.is_none_or(|(fact, _)| matches!(fact, MachineFact::Absent))
        };
        for machine in preview.desired.machines.iter().filter(absent) {
            if let Origin::Made { via, .. } = machine.origin
                && !makes(via)
            {
                *unmade.entry(via.as_str()).or_default() += 1;
            }
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
