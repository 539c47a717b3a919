//! How a load balancer is called: as the manifest says, as before, or by a name that we choose.

use model::cluster::Desired;
use model::dns::{Declared, Domain, Names, chosen};
use model::manifest::{Balancer, Manifest};
use model::name::Name;

/// The names of a load balancer, where its manifest wants any.
///
/// A name that nobody gave stays for as long as the zone is the same: whoever knows it goes on
/// finding the load balancer by it.
pub(super) fn names(manifest: &Manifest, start: &Desired, balancer: &Balancer) -> Option<Names> {
    let declared = balancer.dns.as_ref()?;
    let account = manifest.providers.get(&declared.provider)?;
    let before = start.balancers.iter().find(|of| of.name == balancer.name);
    let before = before.and_then(|of| of.dns.as_ref());
    let kept = before.filter(|before| before.zone == declared.zone);
    let kept = kept.map(|before| before.hostname.clone());
    let kept = kept.filter(|name| !taken(manifest, balancer, &declared.zone, name));
    let hostname = declared.hostname.clone().or(kept);
    let hostname =
        hostname.unwrap_or_else(|| chosen(start.cluster, &balancer.name, &declared.zone));
    let within = |name: &Domain| name.within(&declared.zone).ok();
    Some(Names {
        zone: declared.zone.clone(),
        provider: declared.provider.clone(),
        via: account.via,
        secret: account.secret.as_ref().map(|named| named.secret.clone()),
        endpoint: within(&Domain::from(&hostname))?,
        alternatives: declared.alternatives.iter().filter_map(within).collect(),
        hostname,
    })
}

/// Whether another load balancer was given a name that this one only kept.
fn taken(manifest: &Manifest, but: &Balancer, zone: &Domain, name: &Name) -> bool {
    let others = manifest.balancers.iter().filter(|of| of.name != but.name);
    let mut declared = others.filter_map(|of| of.dns.as_ref());
    let name = Domain::from(name);
    declared.any(|of: &Declared| {
        let first = of.hostname.as_ref().map(Domain::from);
        of.zone == *zone && (first.as_ref() == Some(&name) || of.alternatives.contains(&name))
    })
}
