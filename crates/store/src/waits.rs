//! Waiting for what others hold: an address, a name, a unit of quota, a slot of a group.
//!
//! Who gives something back has those planned again who were told to wait for it. A plan that
//! was refused is told in a commit of its own, and what it waits for may be given back before
//! that: whoever did so saw nobody waiting, and the wait would have no end. So a commit tells
//! of a wait only while it is true, and both sides have the thing for themselves while they
//! look.

use crate::body::Tx;
use crate::error::Error;
use crate::{claims, clusters};
use model::name::Name;
use plan::{Plan, Reason, Scope};

/// Whether everything that a plan waits for is still held by others.
pub(crate) fn are_true(tx: &mut dyn Tx, plan: &Plan, project: &Name) -> Result<bool, Error> {
    for held in &plan.held {
        if !is_true(tx, plan, project, &held.reason)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_true(tx: &mut dyn Tx, plan: &Plan, project: &Name, reason: &Reason) -> Result<bool, Error> {
    if let Reason::Claimed { thing, by, .. } = reason {
        tx.hold(thing)?;
        return Ok(claims::holder(tx, thing, plan.cluster)?.as_ref() == Some(by));
    }
    if let Reason::Quota { .. } = reason {
        return claims::is_full(tx, project);
    }
    if let Reason::Budget {
        scope: Scope::Group(group),
        by,
        budget,
        ..
    } = reason
        && is_elsewhere(by)
    {
        hold_group(tx, project, group)?;
        let rows = clusters::elsewhere(tx, (project, plan.cluster), group)?;
        return Ok(u32::try_from(rows.len()).is_ok_and(|rows| rows >= *budget));
    }
    Ok(true)
}

/// Whether a budget is spent by other clusters alone. Machines of the cluster itself are named
/// first and in one word, and when they are back it is planned anyway.
fn is_elsewhere(by: &str) -> bool {
    by.contains(' ')
}

/// Has the budget of a group for itself.
pub(crate) fn hold_group(tx: &mut dyn Tx, project: &Name, group: &Name) -> Result<(), Error> {
    tx.hold(&format!("group/{project}/{group}"))
}
