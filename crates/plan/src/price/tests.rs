//! What clusters cost, and what nobody knows of it.

use super::{MachinePrice, Prices};
use crate::fixture::World;
use crate::journey::{journey, journey_by};
use crate::pace::Paces;
use expect_test::{Expect, expect};
use model::cluster::Origin;
use model::provider::{Cloud, Provider};

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
    let told = journey_by(&world.view(), prices, &Paces::default()).to_string();
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
        journey_by(&world.view(), &Prices::usual(), &Paces::default()).cost
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
    let own = r#"{
        "asOf": "2026-11-01",
        "machines": [
            {"provider": "hetzner", "serverType": "cpx31", "region": "south", "cents": 1},
            {"provider": "hetzner", "serverType": "cpx31", "region": "north", "cents": 1000}
        ]
    }"#;
    let own: Prices = serde_json::from_str(own).unwrap();
    let prices = Prices::usual().extended(own);
    costs(
        &lent(grows(), Cloud::Hetzner, "cpx31", false),
        &prices,
        &expect!["costs  $22.50 → $35.00 a month, a rough guess by prices of 2026-11-01"],
    );
    // A price that cannot be read is no price.
    let wrong = r#"{"asOf": "today", "machines": [{"provider": "hetzner", "cents": 1}]}"#;
    assert!(serde_json::from_str::<Prices>(wrong).is_err());
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
