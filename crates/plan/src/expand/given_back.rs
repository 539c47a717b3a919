//! A pool that was to grow, and whose new machines nobody can make, goes back to what there is.

use super::Known;
use crate::planner::ATTEMPTS_BEFORE_ERROR;
use model::cluster::{Desired, Machine};
use model::id::IntentId;
use model::intent::Wish;
use model::name::Name;
use model::task::{Kind, Open, State};
use model::time::Timestamp;

/// What becomes of a cluster of which more was wished than can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBack {
    /// Its next generation, in which those machines leave that could not be made.
    pub desired: Desired,
    /// The wishes that end with this.
    pub ends: Vec<IntentId>,
    /// What to tell people, one sentence for each pool.
    pub told: Vec<String>,
}

/// Gives back what wishes to scale asked for and nobody can make: the provider says that it will
/// never do, or has failed as often as makes an error.
///
/// Only pools with an autoscaler are touched, never below their least size, and only machines that
/// were never made. Whoever scales reads the new size, and may wish again. Machines that come in place of
/// others were wished by nobody, and while somebody asked that nothing be begun nothing is given back.
pub fn give_back(known: Known<'_>, now: Timestamp) -> Option<GivenBack> {
    // Of most clusters nobody scales anything.
    let scaled = known.desired.autoscalers.keys();
    let mut scaled = scaled.filter(|pool| failed(known, pool).next().is_some());
    scaled.next()?;
    let mut counting = known.intents.iter().filter(|intent| intent.counts(now));
    if counting.any(|intent| matches!(intent.wish, Wish::Pause)) {
        return None;
    }
    let mut desired = known.desired.clone();
    let (mut ends, mut told) = (Vec::new(), Vec::new());
    let pools = known.desired.autoscalers.iter();
    for (pool, range) in pools.filter(|_| !known.desired.tombstone) {
        let wishes = wishes(known, pool, now);
        let Some((_, wished)) = wishes.last() else {
            continue;
        };
        let mut last = None;
        for (machine, open) in failed(known, pool) {
            let at = desired.machines.iter().position(|of| of.id == machine.id);
            if let Some(at) = at.filter(|_| beside(&desired, machine) > range.min) {
                desired.leaving.push(desired.machines.remove(at));
                last = Some((machine, open));
            }
        }
        let Some((machine, open)) = last else {
            continue;
        };
        let error = open.error.as_deref().unwrap_or("no reason was recorded");
        told.push(format!(
            "pool {pool} was to have {wished} machines and goes back to {}: {} cannot be made: {error}",
            beside(&desired, machine),
            machine.name,
        ));
        ends.extend(wishes.iter().map(|(id, _)| *id));
    }
    if told.is_empty() {
        return None;
    }
    desired.generation = desired.generation.next();
    Some(GivenBack {
        desired,
        ends,
        told,
    })
}

/// The wishes that scale a pool, oldest first, each with its size.
fn wishes(known: Known<'_>, pool: &Name, now: Timestamp) -> Vec<(IntentId, u32)> {
    let wishes = known.intents.iter().filter(|intent| intent.counts(now));
    let scaling = wishes.filter_map(|intent| match &intent.wish {
        Wish::Scale {
            pool: of,
            count,
            was: 0,
        } if of == pool => Some((intent.id, *count)),
        Wish::Scale { .. }
        | Wish::Replace { .. }
        | Wish::Retire { .. }
        | Wish::Retry { .. }
        | Wish::Cancel { .. }
        | Wish::Pause
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => None,
    });
    scaling.collect()
}

/// How many machines do the same as this one, itself included, and not those that come in place of others.
fn beside(desired: &Desired, machine: &Machine) -> u32 {
    let place = |of: &Machine| (of.pool.clone(), of.role, of.balancer.clone());
    let beside = desired.machines.iter().filter(|of| !comes(desired, of));
    let beside = beside.filter(|of| place(of) == place(machine)).count();
    u32::try_from(beside).unwrap_or(u32::MAX)
}

/// Whether a machine comes in place of another, which goes when it serves.
fn comes(desired: &Desired, machine: &Machine) -> bool {
    let mut rolls = desired.rolls.iter();
    rolls.any(|roll| roll.coming.contains(&machine.id))
}

/// The machines of a pool that cannot be made, the highest first, each with the task that failed. Where the
/// cluster has nodes of the pool, wishes are about these, and not about machines of load balancers.
fn failed<'a>(
    known: Known<'a>,
    pool: &'a Name,
) -> impl Iterator<Item = (&'a Machine, &'a Open)> + 'a {
    let of_pool = known.desired.machines.iter();
    let of_pool = of_pool.filter(move |machine| machine.pool == *pool);
    let of_pool = of_pool.filter(move |machine| !comes(known.desired, machine));
    let nodes = of_pool.clone().any(|machine| machine.role.is_node());
    let of_pool = of_pool.rev();
    let of_pool = of_pool.filter(move |machine| machine.role.is_node() || !nodes);
    of_pool.filter_map(move |machine| {
        let mut open = known.open.iter();
        let open = open.find(|open| open.machine == machine.id)?;
        let failed = match open.state {
            State::Stuck => true,
            State::Waiting => open.error.is_some() && open.attempts >= ATTEMPTS_BEFORE_ERROR,
            State::Running | State::Done | State::Withdrawn => false,
        };
        let made = open.action.kind() == Kind::Create;
        (made && failed && !open.corrected).then_some((machine, open))
    })
}
