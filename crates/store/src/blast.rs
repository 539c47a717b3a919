//! How much a change would take away at once, judged against all that there is.
//!
//! A machine that was never made cannot be taken away: a manifest that asked for what
//! nobody can make must be free to ask for something else.

use crate::body::{Tx, first};
use crate::clusters::ClusterView;
use crate::error::Error;
use model::cluster::{Desired, Machine, Role};
use model::id::MachineId;
use model::manifest::Manifest;
use model::observed::{MachineFact, Observed};
use model::task::State;
use plan::{Blast, Limits, Loss, Stranded};
use std::collections::BTreeMap;

/// A change that would remove more machines at once than somebody agreed to.
#[derive(Debug)]
pub(crate) struct TooMuch {
    pub(crate) what: String,
    pub(crate) removed: u32,
    pub(crate) of: u32,
    pub(crate) percent_needed: u32,
}

/// What somebody agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowed {
    /// The share of machines, in per cent, that may be removed at once.
    pub blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    pub data_loss: bool,
}

impl Allowed {
    /// Whatever it is: for those who only want to know what would follow.
    pub const EVERYTHING: Self = Self {
        blast: Some(100),
        data_loss: true,
    };
}

impl From<Option<u8>> for Allowed {
    /// A share of machines, and no loss of data.
    fn from(blast: Option<u8>) -> Self {
        Self {
            blast,
            data_loss: false,
        }
    }
}

/// What the first of several changes takes away of the data of a cluster, where nobody agreed to that.
pub(crate) fn lost<'a>(
    mut changes: impl Iterator<Item = (&'a ClusterView, &'a Desired)>,
    manifest: &Manifest,
    allowed: bool,
) -> Result<(), Loss> {
    let loss = changes.find_map(|(before, next)| {
        plan::loss(&before.desired, &before.observed, next, Some(manifest))
    });
    loss.filter(|_| !allowed).map_or(Ok(()), Err)
}

/// Whether changes, each from what is known to the next desired state, stay within the limits.
pub(crate) fn judge<'a>(
    tx: &mut dyn Tx,
    changes: impl Iterator<Item = (&'a ClusterView, &'a Desired)>,
    manifest: &Manifest,
    limits: Limits,
) -> Result<Result<(), TooMuch>, Error> {
    let mut worst: Option<TooMuch> = None;
    let mut exceed = |what: String, blast: Blast| {
        let percent_needed = worst
            .as_ref()
            .map_or(0, |worst| worst.percent_needed)
            .max(blast.percent());
        let (what, removed, of) = match worst.take() {
            Some(worst) if worst.percent_needed >= blast.percent() => {
                (worst.what, worst.removed, worst.of)
            }
            Some(_) | None => (what, blast.removed, blast.of),
        };
        worst = Some(TooMuch {
            what,
            removed,
            of,
            percent_needed,
        });
    };
    let (mut removed, mut leaving) = (0_u32, 0_u32);
    for (before, next) in changes {
        let Some(there) = there(tx, before, next)? else {
            continue;
        };
        let blast = Blast::between(&there, next);
        let going = match blast.removed {
            0 => 0,
            _ => plan::going(&before.desired, &before.observed, next),
        };
        (removed, leaving) = (removed + blast.removed, leaving + going);
        let allowed = if next.tombstone {
            limits.allow_end(blast)
        } else {
            limits.allow_cluster(blast.beside(going))
        };
        if !allowed {
            exceed(whose(next, going), blast.beside(going));
        }
        if let Some(Stranded { role, blast }) = plan::stranded(&there, next, manifest)
            && u32::from(limits.cluster) < blast.percent()
        {
            exceed(part(next, role), blast);
        }
    }
    if removed > 0 {
        let row = first(
            tx,
            "SELECT COUNT(*) FROM machines WHERE leaving = 0 AND absent = 0",
            &[],
        )?;
        let of: u32 = row.map_or(Ok(0), |mut row| row.take())?;
        // Machines that are being made count though they were last seen not to be there.
        let of = of.max(removed);
        let blast = Blast { removed, of }.beside(leaving);
        if !limits.allow_fleet(blast) {
            exceed("the fleet".to_owned(), blast);
        }
    }
    Ok(worst.map_or(Ok(()), Err))
}

/// Whose machines go, with those that went before.
fn whose(next: &Desired, going: u32) -> String {
    match going {
        0 => format!("cluster {}", next.name),
        going => format!(
            "cluster {}, {going} of which are leaving already,",
            next.name
        ),
    }
}

/// Which machines of a cluster go.
fn part(next: &Desired, role: Role) -> String {
    match role {
        Role::Control => format!("the control plane of cluster {}", next.name),
        Role::Compute | Role::Balancer => {
            format!(
                "cluster {} that take workloads, and no other is left,",
                next.name
            )
        }
    }
}

/// The cluster with the machines that there are or may be, where a change removes any.
fn there(tx: &mut dyn Tx, before: &ClusterView, next: &Desired) -> Result<Option<Desired>, Error> {
    if Blast::between(&before.desired, next).removed == 0 {
        return Ok(None);
    }
    let attempted = attempted(tx, before)?;
    let mut there = before.desired.clone();
    there
        .machines
        .retain(|machine| may_be_there(machine, &before.observed, &attempted));
    Ok(Some(there))
}

/// Whether there is something to remove; in doubt, there is.
fn may_be_there(
    machine: &Machine,
    observed: &Observed,
    attempted: &BTreeMap<MachineId, State>,
) -> bool {
    let seen = observed.machines.get(&machine.id);
    let attempted = attempted.get(&machine.id);
    match seen.and_then(|seen| seen.machine.as_ref()) {
        // Whoever works on it now may have made it after that was seen.
        Some((MachineFact::Absent, _)) => attempted == Some(&State::Running),
        Some((
            MachineFact::Booting { .. }
            | MachineFact::Running { .. }
            | MachineFact::Unreachable { .. },
            _,
        )) => true,
        None => attempted.is_some() || seen.is_some_and(|seen| seen.node.is_some()),
    }
}

/// The machines that an attempt may have made, each with the state of a task that says so:
/// running before any other.
///
/// A task that is stuck says itself that it did not; one whose worker vanished cannot know.
fn attempted(tx: &mut dyn Tx, view: &ClusterView) -> Result<BTreeMap<MachineId, State>, Error> {
    let rows = tx.query(
        "SELECT machine, state FROM tasks
         WHERE cluster = $1 AND attempts > 0 AND (state <> 'stuck' OR lost = 1)
         ORDER BY CASE WHEN state = 'running' THEN 1 ELSE 0 END",
        &[view.desired.cluster.into()],
    )?;
    rows.into_iter()
        .map(|mut row| Ok((row.take()?, row.take()?)))
        .collect()
}
