//! The networks that pools have at clouds: each a part for itself, the same as long as it lives.

use super::growing::Stand;
use model::cluster::Origin;
use model::name::Name;
use model::network::Network;

/// How long the prefix of each part is.
const PREFIX: u8 = 24;

/// The network of a pool with a provider and in a region: the one that it has, else the lowest that
/// no other pool of the cluster has there. Nothing where all are taken. A pool has what its machines
/// were made with, and what those will be that are to come in their place.
pub(super) fn of_pool<'a>(
    origins: impl Iterator<Item = (Stand<'a>, &'a Origin)>,
    stand: Stand<'_>,
    (with, at): (&Name, &str),
) -> Option<Network> {
    let there = origins.filter_map(|(whose, origin)| match origin {
        Origin::Made {
            provider,
            region,
            hardware,
            ..
        } if provider == with && region == at => Some((whose, hardware.subnet?)),
        Origin::Made { .. } | Origin::Given { .. } => None,
    });
    let there: Vec<_> = there.collect();
    let own = there.iter().find(|(whose, _)| *whose == stand);
    let taken = |part: &Network| there.iter().any(|(_, other)| other == part);
    let free = || {
        let parts = (0..).map_while(|n| Network::AT_CLOUDS.part(PREFIX, n));
        parts.into_iter().find(|part| !taken(part))
    };
    own.map(|(_, own)| *own).or_else(free)
}
