//! What applying a manifest would do beyond the plan that somebody agreed to.
//!
//! A later journey may do less: of what was shown some is done by then. It may not do more, go
//! elsewhere, or cost more.

use api::{JourneyCluster, JourneyMonth, JourneyView};
use model::host::Fingerprint;
use model::id::MachineId;
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
            let another = another(allowed, journey);
            // Of a cluster that was not to move nothing was told: it has the version that it has.
            another
                .or_else(|| version(allowed, preview.known.desired.version, journey))
                .or_else(|| effect(allowed, journey))
                .or_else(|| made(allowed, journey))
                .or_else(|| around(allowed, journey))
                .or_else(|| cost(allowed, journey))
        })
}

/// Another manifest than the one that the plan was made of. What it says besides journeys, such as a taint
/// or whether a cluster is protected, was agreed to as well.
pub(super) fn other_manifest(shown: &JourneyView, said: &Fingerprint) -> Option<String> {
    (shown.of != said.as_str()).then(|| {
        "the manifest says something else than the one that the plan was made of".to_owned()
    })
}

/// Another life of the cluster than the one that was shown: it went, and its name was used again.
fn another(allowed: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    let allowed = allowed.filter(|_| super::moves(journey))?;
    (allowed.id != journey.id.to_string()).then(|| {
        format!(
            "cluster {} is {}, and the plan was made for another one of that name",
            journey.cluster, journey.id
        )
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

/// Something else that is done to a machine, or to another one of its name.
fn effect(shown: Option<&JourneyCluster>, journey: &Journey) -> Option<String> {
    journey.effects.iter().find_map(|(name, effects)| {
        let allowed = shown.and_then(|cluster| cluster.effects.get(name.as_str()));
        let within = |effect: api::Effect| allowed.is_some_and(|allowed| allowed.contains(&effect));
        if let Some(effect) = effects.iter().find(|effect| !within((**effect).into())) {
            return Some(format!("{name}: {} is not in the plan", effect.as_str()));
        }
        let shown = shown.and_then(|cluster| cluster.machine_ids.get(name.as_str()));
        let known = |id: &MachineId| shown.is_some_and(|shown| shown.contains(&id.to_string()));
        let id = journey.machines.get(name)?.iter().find(|id| !known(id))?;
        Some(format!(
            "{name} is {id}, and the plan was made for another machine of that name"
        ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    /// A journey that does one thing to one machine.
    fn journey(machine: &str) -> Journey {
        let told = json!({
            "cluster": "edge", "id": "cluster-0c5w3k9qj2m4x", "blocks": [], "held": [], "ends": "done",
            "minutes": 1, "effects": {"edge-pool-02": ["disturb"]}, "version": "v1.34.1",
            "machines": {"edge-pool-02": [machine]},
        });
        serde_json::from_value(told).unwrap()
    }

    #[test]
    fn another_machine_of_the_name_is_not_the_one_that_was_shown() {
        let shown = super::super::wire::cluster(&journey("machine-0c5w3k9qj2m4x"));
        assert_eq!(
            effect(Some(&shown), &journey("machine-0c5w3k9qj2m4x")),
            None
        );
        let told = effect(Some(&shown), &journey("machine-0d7x2k9qj2m4y"));
        expect!["edge-pool-02 is machine-0d7x2k9qj2m4y, and the plan was made for another machine of that name"].assert_eq(&told.unwrap_or_default());
    }
}
