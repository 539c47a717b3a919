//! Networks with room for one machine more, or for none.

use super::{Life, SAID, Said};
use crate::advance::advance;
use crate::journey;
use expect_test::expect;
use std::fmt::Write as _;
use std::time::Duration;

/// Six addresses for five machines.
const TIGHT: Said = Said {
    compute: 4,
    network: "10.8.0.0/29",
    ..SAID
};

#[test]
fn a_pool_rolls_through_the_last_address() {
    let mut life = Life::of(TIGHT);
    let large = Said {
        kind: "large",
        ..TIGHT
    };
    life.apply(large);
    let told = journey(&life.view());
    assert!(told.held.is_empty(), "{told}");
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-05 to come, made as pool muscle now says
          join edge-muscle-05
        edge-muscle-05 in place of edge-muscle-01
          drain edge-muscle-01
          delete edge-muscle-01
        edge-muscle-01 to come, made as pool muscle now says
          join edge-muscle-01
        edge-muscle-01 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        edge-muscle-02 to come, made as pool muscle now says
          join edge-muscle-02
        edge-muscle-02 in place of edge-muscle-03
          drain edge-muscle-03
          delete edge-muscle-03
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        edge-muscle-03 in place of edge-muscle-04
          drain edge-muscle-04
          delete edge-muscle-04
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-03 edge-muscle-05
    "#]]);
}

#[test]
fn who_is_sick_waits_for_the_address_of_one_that_leaves() {
    let tight = Said {
        cluster: ", disruption: {unavailable: 2}",
        ..TIGHT
    };
    let mut life = Life::of(tight);
    life.apply(Said {
        kind: "large",
        ..tight
    });
    life.until(|life| life.told.contains("in place of"));
    life.sicken("edge-muscle-04");
    life.wait(10);
    life.look();
    assert_eq!(advance(&life.view()), None);
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-05 to come, made as pool muscle now says
          join edge-muscle-05
        edge-muscle-05 in place of edge-muscle-01
          drain edge-muscle-01
          delete edge-muscle-01
        edge-muscle-04: its node was not ready for 10 min; edge-muscle-01 takes its place
          join edge-muscle-01
          delete edge-muscle-04
        edge-muscle-04 to come, made as pool muscle now says
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-01
          drain edge-muscle-01
          delete edge-muscle-01
        edge-muscle-01 to come, made as pool muscle now says
          join edge-muscle-01
        edge-muscle-01 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        edge-muscle-02 to come, made as pool muscle now says
          join edge-muscle-02
        edge-muscle-02 in place of edge-muscle-03
          drain edge-muscle-03
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-04 edge-muscle-05
    "#]]);
}

#[test]
fn without_an_address_a_pool_stays_as_it_was_and_a_journey_ends() {
    let six = Said { compute: 5, ..SAID };
    let mut life = Life::of(six);
    life.apply(Said {
        kind: "large",
        ..six
    });
    life.desired.as_mut().unwrap().network = "10.8.0.0/29".parse().unwrap();
    let told = journey(&life.view());
    assert_eq!(told.minutes, 0, "{told}");
    writeln!(life.told, "{told}").unwrap();
    let waits = life.waits();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(1));
    writeln!(life.told, "{}", waits.held[0]).unwrap();
    life.told(&expect![[r#"
        cluster edge: nothing can be done now
          held  drain edge-muscle-01 and 4 more: stays: its successor was tried 1× and taken back: network 10.8.0.0/29 has no address left
                tries again by itself, Thu 1970-01-01 00:17 UTC; or correct the pool in the manifest, which begins anew

        network 10.8.0.0/29 has no address left
        drain edge-muscle-01 and 4 more: stays: its successor was tried 1× and taken back: network 10.8.0.0/29 has no address left
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-03 edge-muscle-04 edge-muscle-05
    "#]]);
}
