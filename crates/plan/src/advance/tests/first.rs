//! What is broken is replaced before other work goes on, and that goes on afterwards.

use super::{LARGE, Life, SAID, Said};
use expect_test::expect;
use model::observed::NodeFact;

/// How many nodes run this version.
fn run(life: &Life, version: &str) -> usize {
    let version = version.parse().unwrap();
    let nodes = life.observed.machines.values();
    let runs = nodes.filter(|seen| {
        matches!(seen.node, Some((NodeFact::Joined { version: runs, .. }, _)) if runs == version)
    });
    runs.count()
}

#[test]
fn an_upgrade_waits_for_a_repair_and_goes_on() {
    let said = Said { compute: 3, ..SAID };
    let mut life = Life::of(said);
    life.apply(Said {
        version: "1.35.0",
        ..said
    });
    life.until(|life| run(life, "1.35.0") == 2);
    life.sicken("edge-muscle-03");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
          drain edge-brain-01
          upgrade edge-brain-01
          uncordon edge-brain-01
          drain edge-muscle-01
          upgrade edge-muscle-01
        edge-muscle-03: its node was not ready for 10 min; edge-muscle-04 takes its place
          uncordon edge-muscle-01
          join edge-muscle-04
          delete edge-muscle-03
          drain edge-muscle-02
          upgrade edge-muscle-02
          uncordon edge-muscle-02
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-04
    "#]]);
    assert_eq!(run(&life, "1.35.0"), 4);
}

#[test]
fn somebody_is_replaced_while_the_only_member_of_the_control_plane_is_upgraded() {
    let said = Said { compute: 3, ..SAID };
    let mut life = Life::of(said);
    life.apply(Said {
        version: "1.35.0",
        ..said
    });
    life.until(|life| life.told.contains("drain edge-brain-01"));
    life.sicken("edge-muscle-03");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
          drain edge-brain-01
        edge-muscle-03: its node was not ready for 10 min; edge-muscle-04 takes its place
          upgrade edge-brain-01
          join edge-muscle-04
          uncordon edge-brain-01
          delete edge-muscle-03
          drain edge-muscle-01
          upgrade edge-muscle-01
          uncordon edge-muscle-01
          drain edge-muscle-02
          upgrade edge-muscle-02
          uncordon edge-muscle-02
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-04
    "#]]);
    assert_eq!(run(&life, "1.35.0"), 4);
}

#[test]
fn a_roll_waits_for_a_repair_and_goes_on() {
    let mut life = Life::of(Said { control: 3, ..SAID });
    life.apply(Said {
        control: 3,
        ..LARGE
    });
    life.until(|life| life.told.contains("join edge-muscle-03"));
    life.sicken("edge-brain-02");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        edge-brain-02: its node was not ready for 10 min; edge-brain-04 takes its place
        edge-muscle-03 in place of edge-muscle-01
          join edge-brain-04
          delete edge-brain-02
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-brain-03 edge-brain-04 edge-muscle-03 edge-muscle-04
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}

#[test]
fn who_is_sick_does_not_wait_for_one_that_waits_for_it() {
    let said = Said { compute: 4, ..SAID };
    let mut life = Life::of(said);
    life.apply(Said {
        kind: "large",
        ..said
    });
    life.until(|life| life.told.contains("in place of"));
    life.sicken("edge-muscle-04");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-05 to come, made as pool muscle now says
          join edge-muscle-05
        edge-muscle-05 in place of edge-muscle-01
        edge-muscle-04: its node was not ready for 10 min; edge-muscle-06 takes its place
          join edge-muscle-06
          delete edge-muscle-04
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
        edge-muscle-01 to come, made as pool muscle now says
          delete edge-muscle-02
          join edge-muscle-01
        edge-muscle-01 in place of edge-muscle-03
          drain edge-muscle-03
        edge-muscle-02 to come, made as pool muscle now says
          delete edge-muscle-03
          join edge-muscle-02
        edge-muscle-02 in place of edge-muscle-06
          drain edge-muscle-06
          delete edge-muscle-06
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-04 edge-muscle-05
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}
