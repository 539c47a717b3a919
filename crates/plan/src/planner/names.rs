//! Names that load balancers should have in the world, and that nobody here can give them.

use super::draft::Draft;
use crate::held::Reason;
use model::provider::Provider;
use model::task::Kind;

/// Says which names lead nowhere: this build has no hands for the DNS of clouds, and a promise
/// that nobody keeps is worse than none. In the simulated world names are as simulated as machines.
pub(super) fn unnamed(draft: &mut Draft<'_>) {
    for balancer in &draft.view.desired.balancers {
        let Some(dns) = &balancer.dns else { continue };
        let cloud = match dns.via {
            Provider::Cloud(cloud) => cloud,
            Provider::Simulated | Provider::Sandbox => continue,
        };
        let mut machines = draft.survey.wanted();
        let place = machines.find(|place| place.machine.balancer.as_ref() == Some(&balancer.name));
        if let Some(place) = place {
            let reason = Reason::Unnamed {
                name: dns.endpoint.to_string(),
                provider: cloud.as_str().to_owned(),
            };
            draft.hold(place, Kind::Balance, reason);
        }
    }
}
