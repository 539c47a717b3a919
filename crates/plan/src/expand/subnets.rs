//! The networks that pools have at clouds: each a part for itself, the same as long as it lives.

use super::growing::Stand;
use model::cluster::{Machine, Origin};
use model::name::Name;
use model::network::Network;

/// How long the prefix of each part is.
const PREFIX: u8 = 24;

/// The network of a pool with a provider and in a region: the one that it has, else the lowest that
/// no other pool of the cluster has there. Nothing where all are taken.
pub(super) fn of_pool<'a>(
    machines: impl Iterator<Item = &'a Machine>,
    stand: Stand<'_>,
    (with, at): (&Name, &str),
) -> Option<Network> {
    let there = machines.filter_map(|machine| match &machine.origin {
        Origin::Made {
            provider,
            region,
            hardware,
            ..
        } if provider == with && region == at => Some((machine, hardware.subnet?)),
        Origin::Made { .. } | Origin::Given { .. } => None,
    });
    let there: Vec<_> = there.collect();
    let own = there.iter().find(|(machine, _)| stand.holds(machine));
    let taken = |part: &Network| there.iter().any(|(_, other)| other == part);
    let free = || {
        let parts = (0..).map_while(|n| Network::AT_CLOUDS.part(PREFIX, n));
        parts.into_iter().find(|part| !taken(part))
    };
    own.map(|(_, own)| *own).or_else(free)
}
