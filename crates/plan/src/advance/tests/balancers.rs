//! Machines of load balancers become another kind, too, and are replaced when they do not answer.

use super::{Life, SAID, Said, text};
use crate::advance::advance;
use crate::expand::{Known, expand};
use expect_test::expect;
use model::admit::admit;
use model::name::Name;
use model::observed::MachineFact;
use model::source;
use std::collections::BTreeMap;

const DOORS: Said = Said {
    kind: "lite",
    door: (2, "lite"),
    ..SAID
};

const WIDE: Said = Said {
    door: (2, "systemd"),
    ..DOORS
};

/// Nobody can enter a machine from now on.
fn lose(life: &mut Life, name: &str) {
    let id = life.machine(name).id;
    let seen = life.observed.machines.get_mut(&id).unwrap();
    let lost = MachineFact::Unreachable {
        reference: "vm".to_owned(),
        because: None,
    };
    seen.machine = Some((lost, life.now));
    life.observed.sick.insert(id, life.now);
    life.look();
}

#[test]
fn a_load_balancer_of_another_kind_is_refused_without_consent() {
    let life = Life::of(Said { more: "", ..DOORS });
    let other = text(Said { more: "", ..WIDE });
    let manifest = admit(&source::parse(&other).unwrap()).unwrap();
    let known = [Known {
        desired: life.desired.as_ref().unwrap(),
        observed: &life.observed,
        intents: &[],
        open: &[],
    }];
    let project = Name::default_project();
    let refused = expand(&project, &manifest, &known, &BTreeMap::new(), life.now);
    let refused = refused.expect_err("must be refused");
    assert_eq!(refused.len(), 1);
    expect!["spec.nodePools.dynamic[2]: found serverType systemd, which was lite when front-door-01 was made; say replace: true to have the pool's machines replaced, one after the other"].assert_eq(&refused[0].to_string());
}

#[test]
fn a_load_balancer_becomes_another_kind_one_machine_at_a_time() {
    let mut life = Life::of(DOORS);
    life.apply(WIDE);
    life.settle();
    life.told(&expect![[r#"
        front-door-03 to come, made as pool door now says
          balance front-door-03
        front-door-03 in place of front-door-01
          delete front-door-01
        front-door-01 to come, made as pool door now says
          balance front-door-01
        front-door-01 in place of front-door-02
          delete front-door-02
        now edge-brain-01 edge-muscle-01 edge-muscle-02 front-door-01 front-door-03
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}

#[test]
fn a_machine_of_a_load_balancer_that_does_not_answer_is_replaced() {
    let mut life = Life::of(DOORS);
    lose(&mut life, "front-door-01");
    life.settle();
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        front-door-01: it did not answer for 10 min; front-door-03 takes its place
          delete front-door-01
          balance front-door-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02 front-door-02 front-door-03
    "#]]);
}

#[test]
fn machines_of_a_load_balancer_are_replaced_one_after_the_other() {
    let mut life = Life::of(DOORS);
    lose(&mut life, "front-door-01");
    lose(&mut life, "front-door-02");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        front-door-01: it did not answer for 10 min; front-door-03 takes its place
          delete front-door-01
          balance front-door-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02 front-door-02 front-door-03
    "#]]);
    // The next one may go when the pause after the first is over.
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        front-door-02: it did not answer for 10 min; front-door-01 takes its place
          delete front-door-02
          balance front-door-01
        now edge-brain-01 edge-muscle-01 edge-muscle-02 front-door-01 front-door-03
    "#]]);
    assert_eq!(advance(&life.view()), None);
}
