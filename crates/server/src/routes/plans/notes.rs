//! What else there is to know of a plan; the planner, which sees one cluster, does not know it.

use model::manifest::Manifest;
use model::task::Kind;
use plan::{Change, Journey};
use store::{Preview, ProjectRow};

/// What was let pass: what has no effect, and what clusters live with that no new one may have.
pub(crate) fn let_pass(manifest: &Manifest) -> Vec<String> {
    let idle = manifest.remarks.iter().map(ToString::to_string);
    let told = manifest.doubts.iter().map(|doubt| {
        format!(
            "{}; it stays so because the cluster lives with it, and no new one may have it",
            doubt.fault
        )
    });
    idle.chain(told).collect()
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
