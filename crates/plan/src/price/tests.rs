//! What clusters cost, and what nobody knows of it.

use super::{MachinePrice, Prices};
use crate::fixture::World;
use crate::journey::{journey, journey_by};
use crate::pace::Paces;
use expect_test::{Expect, expect};
use model::cluster::Origin;
use model::provider::{Cloud, Provider};
use model::source;

/// A world whose machines are lent by a cloud, as one type, with a data disk where they run
/// workloads.
fn lent(mut world: World, cloud: Cloud, kind: &str, lent_spot: bool) -> World {
    let desired = &mut world.desired;
    for machine in desired.machines.iter_mut().chain(&mut desired.leaving) {
        let compute = machine.role == model::cluster::Role::Compute;
        if let Origin::Made {
            via,
            server_type,
            hardware,
            ..
        } = &mut machine.origin
        {
            *via = Provider::Cloud(cloud);
            kind.clone_into(server_type);
            hardware.disk = compute.then_some(50);
            hardware.spot = lent_spot;
        }
    }
    world
}

/// The line of the journey that tells of money, if there is one.
#[track_caller]
fn costs(world: &World, prices: &Prices, expected: &Expect) {
    let told = journey_by(&world.view(), prices, &Paces::default(), &|_, _| None).to_string();
    let line = told.lines().find(|line| line.contains("cost"));
    expected.assert_eq(line.unwrap_or("nothing").trim());
}

fn grows() -> World {
    World::new("1.34.0", "c1 w1 w2", "c1~ w3~")
}

#[test]
fn a_journey_tells_what_is_paid_before_and_after() {
    let world = lent(grows(), Cloud::Hetzner, "cpx31", false);
    costs(
        &world,
        &Prices::usual(),
        &expect!["costs  $34.50 → $53.00 a month, a rough guess by prices of about 2025"],
    );
    let told = journey(&world.view());
    assert_eq!(
        told.cost,
        journey_by(
            &world.view(),
            &Prices::usual(),
            &Paces::default(),
            &|_, _| None
        )
        .cost
    );
}

#[test]
fn what_nobody_pays_for_is_not_told() {
    costs(&grows(), &Prices::usual(), &expect!["nothing"]);
    let given = World::new("1.34.0", "c1 s1", "c1");
    costs(&given, &Prices::usual(), &expect!["nothing"]);
}

#[test]
fn what_is_not_known_is_named_and_never_nothing() {
    let world = lent(grows(), Cloud::Hetzner, "cpx99", false);
    costs(
        &world,
        &Prices::usual(),
        &expect![
            "costs  $0.00 → $0.00 a month, a rough guess by prices of about 2025; unknown: 2 → 3 hetzner cpx99"
        ],
    );
    let spot = lent(grows(), Cloud::Aws, "t3.large", true);
    costs(
        &spot,
        &Prices::usual(),
        &expect![
            "costs  $0.00 → $0.00 a month, a rough guess by prices of about 2025; unknown: 2 → 3 aws t3.large as spot"
        ],
    );
}

#[test]
fn prices_of_ones_own_count_first() {
    let own = r#"
asOf: "2026-11-01"
machines:
  - {provider: hetzner, serverType: cpx31, region: south, cents: 1}
  - {provider: hetzner, serverType: cpx31, region: north, cents: 1000}
"#;
    let own = Prices::admit(&source::parse(own).unwrap()).unwrap();
    let prices = Prices::usual().extended(own);
    costs(
        &lent(grows(), Cloud::Hetzner, "cpx31", false),
        &prices,
        &expect!["costs  $22.50 → $35.00 a month, a rough guess by prices of 2026-11-01"],
    );
}

#[test]
fn all_that_is_wrong_with_prices_is_told_at_once() {
    let faults = |text: &str| {
        let document = source::parse(text).unwrap();
        Prices::admit(&document).unwrap_err().join("\n")
    };
    expect![[r#"
        found field `currency`, allowed: asOf, machines, disks
        asOf: found nothing, allowed: a text of 1 to 100 characters
        machines[0].provider: found `hetzer`, allowed: simulated, sandbox, gcp, hetzner, aws, oci, azure, openstack, exoscale, cloudrift, verda, ovh
        machines[1].provider: found `cloudflare`, allowed: simulated, sandbox, gcp, hetzner, aws, oci, azure, openstack, exoscale, cloudrift, verda, ovh
        machines[1].serverType: found a text, allowed: a text of 1 to 100 characters
        machines[1].cents: found `10.5`, allowed: whole cents of US dollars, 0 to 1000000000000
        machines[2].region: found a number, allowed: a text of 1 to 100 characters
        machines[2].spot: found a text, allowed: true, false
        machines[2].cents: found `-1`, allowed: whole cents of US dollars, 0 to 1000000000000
        machines[3]: found a text, allowed: a mapping with provider, serverType, region, spot, cents
        disks: found a mapping, allowed: a list of prices"#]].assert_eq(&faults(
        r#"
currency: EUR
machines:
  - {provider: hetzer, serverType: cpx31, cents: 1000}
  - {provider: cloudflare, serverType: "", cents: 10.5}
  - {provider: aws, serverType: t3.large, region: 7, spot: maybe, cents: -1}
  - cpx31
disks: {provider: aws}
"#,
    ));
    expect!["found a list, allowed: a mapping with asOf, machines, disks"]
        .assert_eq(&faults("- cpx31"));
    let disks = "{asOf: today, disks: [{provider: ovh, centsPer100Gb: 450}]}";
    let prices = Prices::admit(&source::parse(disks).unwrap()).unwrap();
    assert_eq!(
        prices.disks.first().map(|disk| disk.cents_per_100_gb),
        Some(450)
    );
}

#[test]
fn prices_are_written_as_they_are_read() {
    let usual = Prices::usual();
    let text = serde_json::to_string(&usual).unwrap();
    let read = Prices::admit(&source::parse(&text).unwrap());
    assert_eq!(read, Ok(usual));
}

#[test]
fn every_price_of_the_table_stands_there_once() {
    let prices = Prices::usual();
    let key = |price: &MachinePrice| (price.provider.as_str(), price.server_type.clone());
    let keys: std::collections::BTreeSet<_> = prices.machines.iter().map(key).collect();
    assert_eq!(keys.len(), prices.machines.len());
    for price in &prices.machines {
        let mut disks = prices.disks.iter();
        let disk = disks.any(|disk| disk.provider == price.provider);
        assert!(disk && price.cents > 0, "{price:?}");
    }
}
