//! An upgrade over several minor releases, on its way: when all nodes have come to a stepping stone,
//! they go on from there.

use crate::hops;
use crate::planner::{View, has_arrived, runs};
use model::cluster::Desired;

/// Where nodes go next, once every one of them serves with the version of the stone.
pub(super) fn next(view: &View<'_>) -> Option<(Desired, String)> {
    let stone = view.desired.stone?;
    if !has_arrived(view, stone) {
        return None;
    }
    let mut next = view.desired.clone();
    let to = hops::next(next.version, &runs(view));
    next.stone = (to != next.version).then_some(to);
    Some((next, format!("all nodes run {stone} and go on to {to}")))
}
