//! Who comes in place of others passes the gates before anybody goes.

use super::*;
use crate::check::Note;

const GATED: Said = Said {
    cluster: ", upgradeGates: [{name: smoke, command: [smoke]}]",
    ..SAID
};

/// What a gate says that stays shut.
fn shut(_: &Observed, task: &Task) -> bool {
    matches!(task.action, Action::Readmit { .. })
}

#[test]
fn nobody_goes_before_the_gates_have_let_the_newcomer_pass() {
    let mut life = Life::of(GATED);
    life.apply(Said {
        kind: "large",
        ..GATED
    });
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          uncordon edge-muscle-03
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
          uncordon edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04
    "#]]);
}

#[test]
fn a_gate_that_stays_shut_has_the_newcomer_taken_back_and_tried_again() {
    let mut life = Life::of(GATED);
    life.fails = shut;
    life.apply(Said {
        kind: "large",
        ..GATED
    });
    let waits = life.waits();
    writeln!(life.told, "{}", waits.held[0]).unwrap();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(1));
    life.now = waits.wake.unwrap();
    let waits = life.waits();
    writeln!(life.told, "{}", waits.held[0]).unwrap();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(2));
    // Somebody mended what it complained of, and says nothing.
    life.fails = |_, _| false;
    life.now = waits.wake.unwrap();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          uncordon edge-muscle-03
        pool muscle stays as it was, tried 1×: uncordon edge-muscle-03: there is no such type
          delete edge-muscle-03
        drain edge-muscle-01 and 1 more: stays: its successor was tried 1× and taken back: uncordon edge-muscle-03: there is no such type
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          uncordon edge-muscle-03
        pool muscle stays as it was, tried 2×: uncordon edge-muscle-03: there is no such type
          delete edge-muscle-03
        drain edge-muscle-01 and 1 more: stays: its successor was tried 2× and taken back: uncordon edge-muscle-03: there is no such type
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          uncordon edge-muscle-03
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
          uncordon edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}

#[test]
fn several_newcomers_that_wait_at_their_gates_are_missed_by_nobody() {
    let said = Said {
        compute: 3,
        more: "replace: true, surge: 2",
        ..GATED
    };
    let mut life = Life::of(said);
    life.fails = shut;
    life.apply(Said {
        kind: "large",
        ..said
    });
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-04 and edge-muscle-05 to come, made as pool muscle now says
          join edge-muscle-04
          join edge-muscle-05
          uncordon edge-muscle-04
          uncordon edge-muscle-05
        pool muscle stays as it was, tried 1×: uncordon edge-muscle-04: there is no such type
          delete edge-muscle-04
          delete edge-muscle-05
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-03
    "#]]);
    assert!(
        life.ledger.is_empty(),
        "who never served is no row of the ledger"
    );
}

#[test]
fn members_of_the_control_plane_pass_them_too() {
    let kind = |life: &mut Life, from: &str, to: &str| {
        let text = text(Said { more: "", ..GATED });
        let text = text.replace(from, to);
        let manifest = admit(&source::parse(&text).unwrap()).unwrap();
        let known = [Known {
            desired: life.desired.as_ref().unwrap(),
            observed: &life.observed,
            intents: &[],
            open: &[],
        }];
        let project = Name::default_project();
        let expanded = expand(&project, &manifest, &known, &BTreeMap::new(), life.now);
        life.desired = Some(expanded.expect("must expand").remove(0).desired);
    };
    let mut life = Life::of(GATED);
    let small = "count: 1, serverType: small, image: debian-12";
    kind(
        &mut life,
        small,
        "count: 1, serverType: large, image: debian-12, replace: true",
    );
    life.settle();
    life.told(&expect![[r#"
        edge-brain-02 to come, made as pool brain now says
          join edge-brain-02
          uncordon edge-brain-02
        edge-brain-02 in place of edge-brain-01
          drain edge-brain-01
          delete edge-brain-01
        now edge-brain-02 edge-muscle-01 edge-muscle-02
    "#]]);
}

#[test]
fn who_comes_for_nobody_is_asked_by_nobody() {
    let mut life = Life::of(GATED);
    life.apply(Said {
        compute: 3,
        ..GATED
    });
    life.settle();
    life.told(&expect![[r#"
          join edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-03
    "#]]);
}

#[test]
fn who_waits_at_gates_that_nobody_wants_any_more_serves() {
    let mut life = Life::of(GATED);
    life.fails = shut;
    life.apply(Said {
        kind: "large",
        ..GATED
    });
    life.until(|life| life.told.contains("join"));
    life.apply(LARGE);
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          uncordon edge-muscle-03
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04
    "#]]);
}

#[test]
fn the_checker_lets_nobody_go_for_one_that_has_not_passed() {
    let mut life = Life::of(GATED);
    life.apply(Said {
        kind: "large",
        ..GATED
    });
    life.until(|life| life.told.contains("uncordon"));
    let step = advance(&life.view()).unwrap();
    assert_eq!(check_advance(&life.view(), &step), []);
    let newcomer = life.machine("edge-muscle-03");
    let seen = life.observed.machines.get_mut(&newcomer.id).unwrap();
    if let Some((NodeFact::Joined { gated, .. }, _)) = &mut seen.node {
        *gated = true;
    }
    let broken = "nobody goes for one that has not passed its gates";
    let note = Note {
        machine: newcomer.name,
        broken,
    };
    assert_eq!(check_advance(&life.view(), &step), [note]);
}
