//! What a node should carry: what all nodes do, and what the manifest gives to those of its pool.

use model::care::{self, Care, Marks, sanitised};
use model::cluster::{Desired, Machine, Origin};
use std::net::Ipv4Addr;

/// What stands for the provider of machines that nobody lends.
const GIVEN: (&str, &str, &str) = ("static-provider", "static-region", "static-zone");

/// What a node of the cluster should carry, and be told of where the API is.
///
/// Of machines that we make we know where they are; of those that were given the manifest may know
/// better.
pub(crate) fn care(desired: &Desired, machine: &Machine, api: &[Ipv4Addr]) -> Care {
    let mut marks = desired
        .marks
        .get(&machine.pool)
        .cloned()
        .unwrap_or_default();
    let mut ours = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            marks.labels.insert(key.to_owned(), value);
        }
    };
    ours(care::POOL, Some(machine.pool.to_string()));
    ours(care::NODE_TYPE, Some(machine.role.to_string()));
    match &machine.origin {
        Origin::Made {
            provider,
            via,
            region,
            zone,
            ..
        } => {
            ours(care::PROVIDER, Some(via.as_str().to_owned()));
            ours(care::INSTANCE, Some(provider.to_string()));
            ours(care::REGION, sanitised(region));
            ours(care::ZONE, zone.as_deref().and_then(sanitised));
        }
        Origin::Given { .. } => given(&mut marks),
    }
    Care {
        marks,
        api: api.to_vec(),
    }
}

/// What given machines carry unless the manifest says otherwise.
fn given(marks: &mut Marks) {
    let (provider, region, zone) = GIVEN;
    let usual = [
        (care::PROVIDER, provider),
        (care::INSTANCE, provider),
        (care::REGION, region),
        (care::ZONE, zone),
    ];
    for (key, value) in usual {
        let said = marks.labels.entry(key.to_owned());
        said.or_insert_with(|| value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{World, machine};
    use expect_test::expect;

    fn carried(desired: &Desired, machine: &Machine) -> String {
        let care = care(desired, machine, &[]);
        let labels = care.marks.labels.iter();
        labels
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }

    #[test]
    fn of_machines_that_we_make_we_know_where_they_are() {
        let mut desired = World::new("1.34.0", "w1", "").desired;
        let mut machine = machine("w1");
        if let Origin::Made { region, zone, .. } = &mut machine.origin {
            *region = "West Europe".to_owned();
            *zone = Some("WE_2".to_owned());
        }
        let said = [("team", "blue"), (model::care::ZONE, "elsewhere")];
        let labels = said.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let marks = Marks {
            labels: labels.into(),
            ..Marks::default()
        };
        desired.marks.insert(machine.pool.clone(), marks);
        expect![[r#"
            slipway.dev/node-type=compute
            slipway.dev/nodepool=compute
            slipway.dev/provider=simulated
            slipway.dev/provider-instance=lab
            team=blue
            topology.kubernetes.io/region=west-europe
            topology.kubernetes.io/zone=we-2
        "#]]
        .assert_eq(&carried(&desired, &machine));
    }

    #[test]
    fn of_machines_that_were_given_the_manifest_may_know_better() {
        let mut desired = World::new("1.34.0", "s1", "").desired;
        let machine = machine("s1");
        expect![[r#"
            slipway.dev/node-type=compute
            slipway.dev/nodepool=attic
            slipway.dev/provider=static-provider
            slipway.dev/provider-instance=static-provider
            topology.kubernetes.io/region=static-region
            topology.kubernetes.io/zone=static-zone
        "#]]
        .assert_eq(&carried(&desired, &machine));
        let marks = Marks {
            labels: [(model::care::ZONE.to_owned(), "cellar".to_owned())].into(),
            ..Marks::default()
        };
        desired.marks.insert(machine.pool.clone(), marks);
        let told = carried(&desired, &machine);
        assert!(
            told.contains("topology.kubernetes.io/zone=cellar\n"),
            "{told}"
        );
    }
}
