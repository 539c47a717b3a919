//! Pools that are scaled: their size is what was wished last, within what is declared.

use super::{History, NOW, admitted, manifest};
use crate::{GivenBack, Known, give_back};
use expect_test::expect;
use model::intent::Wish;
use model::manifest::Manifest;
use model::task::{Action, Open, State};
use model::upkeep::Roll;

/// The manifest of the other tests, whose workers are scaled.
fn scaled(size: &str) -> Manifest {
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, {size}, serverType: small, image: debian-12}}
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [muscle]}}}}]
"
    ))
}

fn between(min: u32, max: u32) -> Manifest {
    scaled(&format!("autoscaler: {{min: {min}, max: {max}}}"))
}

fn scale(count: u32) -> Wish {
    Wish::Scale {
        pool: "muscle".parse().unwrap(),
        count,
        was: 0,
    }
}

/// How many workers stay, and how many leave.
fn size(history: &History) -> (usize, usize) {
    let desired = history.desired.as_ref().unwrap();
    (desired.machines.len() - 1, desired.leaving.len())
}

#[test]
fn a_pool_begins_with_the_fewest_and_follows_wishes_within_its_range() {
    let first = || History::new().apply(&between(1, 4));
    assert_eq!(size(&first()), (1, 0));
    assert_eq!(size(&History::new().apply(&between(0, 4))), (0, 0));
    for (wished, has) in [(3, 3), (9, 4), (0, 1)] {
        let grown = first().wish(|_| scale(wished)).apply(&between(1, 4));
        assert_eq!(size(&grown), (has, 0), "{wished}");
    }
    // The newest counts, also when the range has changed since.
    let newest = first().wish(|_| scale(2)).wish(|_| scale(3));
    assert_eq!(size(&newest.apply(&between(0, 8))), (3, 0));
}

#[test]
fn a_pool_that_is_scaled_from_now_on_keeps_its_size() {
    let fixed = || History::new().apply(&manifest(1, 3, "1.34.0", &[]));
    assert_eq!(size(&fixed().apply(&between(1, 5))), (3, 0));
    assert_eq!(size(&fixed().apply(&between(4, 5))), (4, 0));
    assert_eq!(size(&fixed().apply(&between(0, 2))), (2, 1));
    // And one with a count again has that, whatever was wished.
    let wished = fixed().apply(&between(1, 5)).wish(|_| scale(5));
    let wished = wished.apply(&between(1, 5));
    assert_eq!(size(&wished), (5, 0));
    assert_eq!(size(&wished.apply(&scaled("count: 1"))), (1, 4));
    let same = between(1, 5);
    let unmoved = History::new().apply(&same).next(&same);
    assert_eq!(unmoved.change, crate::Change::Unchanged);
}

#[test]
fn the_machine_that_is_retired_is_the_one_that_goes() {
    let three = History::new()
        .apply(&between(0, 4))
        .wish(|_| scale(3))
        .apply(&between(0, 4));
    let mut retired = History {
        wishes: Vec::new(),
        ..three
    };
    retired = retired.wish(|desired| Wish::Retire {
        machine: desired.machine_named("edge-muscle-01").unwrap().id,
    });
    let retired = retired.apply(&between(0, 4)).apply(&between(0, 4));
    retired.check(&expect![[r#"
        generation 3 at v1.34.0
          edge-brain-01 10.8.0.1 life 0
          edge-muscle-02 10.8.0.3 life 1
          edge-muscle-03 10.8.0.4 life 2
          edge-muscle-01 10.8.0.2 leaves
    "#]]);
}

/// What is given back when making these machines has failed.
fn given_back(history: &mut History, failed: &[(&str, State, u32)]) -> Option<GivenBack> {
    let desired = history.desired.clone().unwrap();
    let open = failed.iter().map(|(name, state, attempts)| {
        let machine = desired.machine_named(name).unwrap();
        Open {
            id: model::id::TaskId::derive(crate::fixture::origin(name, 0)),
            machine: machine.id,
            action: Action::Create,
            origin: machine.origin.clone(),
            through: Vec::new(),
            state: *state,
            attempts: *attempts,
            not_before: NOW,
            error: Some("quota is used up".to_owned()),
            corrected: false,
        }
    });
    history.open = open.collect();
    let known = Known {
        desired: &desired,
        observed: &history.observed,
        intents: &history.wishes,
        open: &history.open,
    };
    give_back(known, NOW)
}

#[test]
fn what_nobody_can_make_is_given_back() {
    let mut three = History::new()
        .apply(&between(1, 4))
        .wish(|_| scale(3))
        .apply(&between(1, 4));
    let failed = [
        ("edge-muscle-01", State::Stuck, 1),
        ("edge-muscle-02", State::Stuck, 1),
        ("edge-muscle-03", State::Waiting, 5),
    ];
    let back = given_back(&mut three, &failed).unwrap();
    assert_eq!(
        back.told,
        [
            "pool muscle was to have 3 machines and goes back to 1: edge-muscle-02 cannot be made: quota is used up"
        ]
    );
    assert_eq!(back.ends, [three.wishes[0].id]);
    three.desired = Some(back.desired);
    three.wishes.clear();
    // The next manifest brings nothing back of it.
    three.apply(&between(1, 4)).check(&expect![[r#"
        generation 3 at v1.34.0
          edge-brain-01 10.8.0.1 life 0
          edge-muscle-01 10.8.0.2 life 0
          edge-muscle-03 10.8.0.4 leaves
          edge-muscle-02 10.8.0.3 leaves
    "#]]);
}

#[test]
fn what_may_still_come_and_what_nobody_wished_is_not_given_back() {
    let wished = || {
        let history = History::new().apply(&between(1, 4)).wish(|_| scale(2));
        history.apply(&between(1, 4))
    };
    for (state, attempts) in [(State::Waiting, 4), (State::Running, 9)] {
        let failed = [("edge-muscle-02", state, attempts)];
        assert_eq!(given_back(&mut wished(), &failed), None, "{state:?}");
    }
    let stuck = [("edge-muscle-02", State::Stuck, 1)];
    assert!(given_back(&mut wished(), &stuck).is_some());
    let mut unwished = wished();
    unwished.wishes.clear();
    assert_eq!(given_back(&mut unwished, &stuck), None);
    // A pool with a count waits for a person, as ever.
    let mut counted = History::new().apply(&manifest(1, 2, "1.34.0", &[]));
    assert_eq!(given_back(&mut counted, &stuck), None);
}

#[test]
fn what_comes_in_place_of_others_is_not_given_back_nor_is_anything_while_nothing_is_to_begin() {
    let wished = || {
        let history = History::new().apply(&between(1, 4)).wish(|_| scale(3));
        history.apply(&between(1, 4))
    };
    let rolling = |comes: &str| {
        let mut history = wished();
        let desired = history.desired.as_mut().unwrap();
        let machine = desired.machine_named(comes).unwrap().clone();
        desired.rolls.push(Roll {
            pool: machine.pool,
            role: machine.role,
            balancer: None,
            origin: machine.origin,
            surge: 1,
            coming: vec![machine.id],
            failed: None,
        });
        history
    };
    let last = [("edge-muscle-03", State::Stuck, 1)];
    assert!(given_back(&mut wished(), &last).is_some());
    let mut paused = wished().wish(|_| Wish::Pause);
    assert_eq!(given_back(&mut paused, &last), None);
    assert_eq!(given_back(&mut rolling("edge-muscle-03"), &last), None);
    // Nor is it one of the fewest that there must be.
    let both = [last[0], ("edge-muscle-02", State::Stuck, 1)];
    let back = given_back(&mut rolling("edge-muscle-01"), &both).unwrap();
    assert_eq!(
        back.told,
        [
            "pool muscle was to have 3 machines and goes back to 1: edge-muscle-03 cannot be made: quota is used up"
        ]
    );
}

/// Names of those that stay and of those that leave, without the control plane.
fn names(history: &History) -> (Vec<&str>, Vec<&str>) {
    fn of(machines: &[model::cluster::Machine]) -> Vec<&str> {
        let names = machines.iter().map(|machine| machine.name.as_str());
        names.collect()
    }
    let desired = history.desired.as_ref().unwrap();
    (of(&desired.machines[1..]), of(&desired.leaving))
}

#[test]
fn what_was_to_leave_and_is_wanted_again_is_taken_back() {
    let fewer = || {
        let three = History::new().apply(&manifest(1, 3, "1.34.0", &[]));
        three.joined().apply(&manifest(1, 1, "1.34.0", &[]))
    };
    let all = ["edge-muscle-01", "edge-muscle-02", "edge-muscle-03"];
    assert_eq!(names(&fewer()), (all[..1].to_vec(), vec![all[1], all[2]]));
    let again = fewer().apply(&manifest(1, 3, "1.34.0", &[]));
    assert_eq!(names(&again), (all.to_vec(), vec![]));
    let two = fewer().apply(&manifest(1, 2, "1.34.0", &[]));
    assert_eq!(names(&two), (all[..2].to_vec(), vec![all[2]]));
}

#[test]
fn who_is_on_the_way_out_is_not_taken_back() {
    let fewer = || {
        let three = History::new()
            .apply(&manifest(1, 3, "1.34.0", &[]))
            .joined();
        three.apply(&manifest(1, 2, "1.34.0", &[]))
    };
    let leaver = |history: &History| history.desired.as_ref().unwrap().leaving[0].clone();
    let again = |history: History| size(&history.apply(&manifest(1, 3, "1.34.0", &[])));
    assert_eq!(again(fewer()), (3, 0));

    let mut drained = fewer();
    let machine = leaver(&drained);
    crate::predict(&mut drained.observed, &machine, &Action::Drain, NOW);
    assert_eq!(again(drained), (3, 1));

    for (attempts, state, stays) in [
        (0, State::Waiting, 0),
        (1, State::Waiting, 1),
        (1, State::Running, 1),
    ] {
        let mut begun = fewer();
        let machine = leaver(&begun);
        begun.open.push(Open {
            id: model::id::TaskId::derive(crate::fixture::origin("t", 0)),
            machine: machine.id,
            action: Action::Drain,
            origin: machine.origin.clone(),
            through: Vec::new(),
            state,
            attempts,
            not_before: NOW,
            error: None,
            corrected: false,
        });
        assert_eq!(again(begun), (3, stays), "{attempts} {state:?}");
    }
}

/// A pool that says this of its size, for workloads and for a load balancer, or for that alone.
fn shared(size: &str, compute: &str) -> Manifest {
    let pool = |name: &str, size: &str| {
        format!(
            "{{name: {name}, providerSpec: {{name: lab, region: n}}, {size}, serverType: lite, image: i}}"
        )
    };
    let (brain, both) = (pool("brain", "count: 1"), pool("muscle", size));
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: sandbox}}]
  nodePools: {{dynamic: [{brain}, {both}]}}
  kubernetes: {{clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [{compute}]}}}}]}}
  loadBalancers:
    roles: [{{name: web, protocol: tcp, port: 443, targetPort: 30443, targetPools: [brain]}}]
    clusters: [{{name: front, targetedK8s: edge, pools: [muscle], roles: [web]}}]
"
    ))
}

/// How many machines of the pool take workloads, and how many are of the load balancer.
fn both(history: &History) -> (usize, usize) {
    let machines = &history.desired.as_ref().unwrap().machines;
    let pool = "muscle".parse().unwrap();
    let of_pool = machines.iter().filter(|machine| machine.pool == pool);
    let (nodes, doors): (Vec<_>, Vec<_>) = of_pool.partition(|machine| machine.role.is_node());
    (nodes.len(), doors.len())
}

#[test]
fn who_scales_a_pool_means_the_nodes_of_the_cluster_where_it_has_some() {
    let range = "autoscaler: {min: 1, max: 4}";
    let scaled = |manifest: &Manifest, was: u32| {
        let wish = move |count| Wish::Scale {
            pool: "muscle".parse().unwrap(),
            count,
            was,
        };
        let grown = History::new()
            .apply(manifest)
            .wish(|_| wish(4))
            .apply(manifest);
        let four = both(&grown);
        (four, both(&grown.wish(|_| wish(2)).apply(manifest)))
    };
    assert_eq!(scaled(&shared(range, "muscle"), 0), ((4, 1), (2, 1)));
    assert_eq!(scaled(&shared("count: 3", "muscle"), 3), ((4, 3), (2, 3)));
    assert_eq!(scaled(&shared(range, ""), 0), ((0, 4), (0, 2)));
}
