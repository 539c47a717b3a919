//! What applying a manifest would do beyond the plan that somebody agreed to.
//!
//! A later journey may do less: of what was shown some is done by then. It may not do more, go
//! elsewhere, or cost more.

use api::{JourneyCluster, JourneyMonth, JourneyView};
use model::version::Version;
use plan::{Journey, Month, dollars};
use std::collections::BTreeMap;
use store::Preview;

/// The first thing that would be done and was not shown.
pub(super) fn first(
    shown: &JourneyView,
    previews: &[Preview],
    journeys: &[Journey],
) -> Option<String> {
    previews
        .iter()
        .zip(journeys)
        .find_map(|(preview, journey)| {
            let mut clusters = shown.clusters.iter();
            let allowed = clusters.find(|cluster| cluster.name == journey.cluster.as_str());
            // Of a cluster that was not to move nothing was told: it has the version that it has.
            version(allowed, preview.known.desired.version, journey)
                .or_else(|| effect(allowed, journey))
                .or_else(|| made(allowed, journey))
                .or_else(|| around(allowed, journey))
                .or_else(|| cost(allowed, journey))
        })
}

/// Another version than the one that was shown.
fn version(allowed: Option<&JourneyCluster>, before: Version, journey: &Journey) -> Option<String> {
    if !super::moves(journey) {
        return None;
    }
    let allowed = allowed.map_or_else(|| before.to_string(), |cluster| cluster.version.clone());
    let version = journey.version.to_string();
    (version != allowed).then(|| {
        format!(
            "cluster {}: version {version} is not in the plan, which leads to {allowed}",
            journey.cluster
        )
    })
}

/// Something else that is done to a machine.
fn effect(allowed: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    journey.effects.iter().find_map(|(name, effects)| {
        let allowed = allowed.and_then(|cluster| cluster.effects.get(name.as_str()));
        let within = |effect: api::Effect| allowed.is_some_and(|allowed| allowed.contains(&effect));
        let effect = effects.iter().find(|effect| !within((**effect).into()))?;
        Some(format!("{name}: {} is not in the plan", effect.as_str()))
    })
}

/// Machines that are made of something else.
fn made(allowed: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    journey.made.iter().find_map(|(pool, ways)| {
        let shown = allowed.and_then(|cluster| cluster.made.get(pool.as_str()));
        let shown = shown.map(Vec::as_slice).unwrap_or_default();
        let way = ways.iter().find(|way| !shown.contains(way))?;
        let differs = |shown: &BTreeMap<String, String>| {
            let of = |field: &String, in_: &BTreeMap<String, String>| {
                in_.get(field).map_or("none", String::as_str).to_owned()
            };
            let fields = way.keys().chain(shown.keys());
            let mut fields = fields.filter(|field| way.get(*field) != shown.get(*field));
            fields.next().map(|field| {
                let (here, there) = (of(field, way), of(field, shown));
                format!("{field} {here} is not in the plan, which shows {there}")
            })
        };
        let what = match shown {
            [only] => differs(only),
            _ => None,
        };
        let what = what.unwrap_or_else(|| {
            let way: Vec<_> = way
                .iter()
                .map(|(field, value)| format!("{field} {value}"))
                .collect();
            format!("machines of {} are not in the plan", way.join(", "))
        });
        Some(format!("cluster {}, pool {pool}: {what}", journey.cluster))
    })
}

/// Ports that are opened, and names that stay behind.
fn around(allowed: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    let opened =
        |name: &str| allowed.is_some_and(|cluster| cluster.opens.iter().any(|of| of == name));
    let left = |name: &String| allowed.is_some_and(|cluster| cluster.leaves.contains(name));
    let mut opens = journey.ports.opens.iter();
    if let Some(name) = opens.find(|name| !opened(name.as_str())) {
        return Some(format!(
            "{name}: opening the API's port to the world is not in the plan"
        ));
    }
    let mut leaves = journey.leaves.iter();
    let name = leaves.find(|name| !left(name))?;
    Some(format!("leaving behind {name} is not in the plan"))
}

/// What costs more than was shown, or would be of a price that nobody knows.
fn cost(allowed: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    let Month { cents, unknown } = &journey.cost.after;
    let nothing = JourneyMonth {
        cents: 0,
        unknown: BTreeMap::new(),
    };
    let before = &journey.cost.before;
    let as_it_is = JourneyMonth {
        cents: before.cents,
        unknown: before.unknown.clone(),
    };
    let allowed = match allowed {
        Some(cluster) => cluster.cost.as_ref().map_or(&nothing, |cost| &cost.after),
        None => &as_it_is,
    };
    let what = if *cents > allowed.cents {
        let (now, shown) = (dollars(*cents), dollars(allowed.cents));
        format!("{now} a month are not in the plan, which shows {shown}")
    } else {
        let shown = |what: &str| allowed.unknown.get(what).copied().unwrap_or(0);
        let (what, machines) = unknown
            .iter()
            .find(|(what, machines)| **machines > shown(what))?;
        format!(
            "{machines} {what}, whose price nobody knows, are not in the plan, which shows {}",
            shown(what)
        )
    };
    Some(format!("cluster {}: {what}", journey.cluster))
}
