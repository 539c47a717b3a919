//! The example manifests do what their comments say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use expect_test::expect;
use model::admit::admit;
use model::cluster::Desired;
use model::manifest::Manifest;
use model::name::Name;
use model::observed::Observed;
use model::source;
use model::task::Action;
use model::time::Timestamp;
use plan::{Known, View, expand, journey, predict};
use std::collections::BTreeMap;

const MAINTENANCE: &str = include_str!("../../../examples/maintenance.yaml");
const KUBERNETES: &str = include_str!("../../../examples/kubernetes.yaml");
const SANDBOX: &str = include_str!("../../../examples/sandbox.yaml");

const UPKEEP: &str = include_str!("../../../examples/upkeep.yaml");

/// Friday, 6 March 2026, 09:00 UTC.
const NOW: Timestamp = Timestamp::from_millis(1_772_787_600_000);

fn manifest(text: &str) -> Manifest {
    admit(&source::parse(text).unwrap()).unwrap()
}

fn grown(manifest: &Manifest, known: &[Known<'_>]) -> Vec<Desired> {
    let project = Name::default_project();
    let expanded = expand(&project, manifest, known, &BTreeMap::new(), NOW).unwrap();
    expanded
        .into_iter()
        .map(|expansion| expansion.desired)
        .collect()
}

fn told(desired: &Desired, observed: &Observed) -> String {
    let view = View {
        desired,
        observed,
        open: &[],
        ledger: &[],
        elsewhere: &[],
        intents: &[],
        blocked: &[],
        shut_out: &[],
        missing: &[],
        claimed: &[],
        vain: &[],
        parent: 0,
        now: NOW,
    };
    journey(&view).to_string()
}

#[test]
fn maintenance_is_built_at_once_and_upgraded_within_its_windows() {
    let built = grown(&manifest(MAINTENANCE), &[]);
    let mut journeys: String = built
        .iter()
        .map(|desired| told(desired, &Observed::default()))
        .collect();

    let seen: Vec<_> = built.iter().map(seen).collect();
    let known: Vec<_> = built
        .iter()
        .zip(&seen)
        .map(|(desired, observed)| Known {
            desired,
            observed,
            intents: &[],
            open: &[],
        })
        .collect();
    let raised = manifest(&MAINTENANCE.replace("version: v1.34.2", "version: v1.35.0"));
    for (desired, observed) in grown(&raised, &known).iter().zip(&seen) {
        journeys += &told(desired, observed);
    }
    expect![[r#"
        cluster shop
                1  create 3 of control + create 3 of compute-a + create 4 of compute-b + prepare 2 of spare  create        2 min
                2  init shop-control-01                                          create        3 min
                3  join shop-control-02                                          create        2 min
                4  join shop-control-03 + join 3 of compute-a + join 4 of compute-b + join 2 of spare  create        2 min
          ends ready after about 9 min, 12 machines touched
        cluster backoffice
                1  create 3 of control + create 3 of compute-a                   create        2 min
                2  init backoffice-control-01                                    create        3 min
                3  join backoffice-control-02                                    create        2 min
                4  join backoffice-control-03 + join 3 of compute-a              create        2 min
          ends ready after about 9 min, 6 machines touched
        cluster shop
                1  tend 3 of control + tend 3 of compute-a + tend 4 of compute-b + tend 2 of spare  in place      1 min
                   wait for the window that opens Sat 2026-03-07 12:00 UTC                   1 d 2 h
                2  snapshot shop-control-01                                      create        1 min
             3-11  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
            12-17  2 times 1 of compute-a + 2 of compute-b: drain, upgrade, uncordon  disturb      12 min
               18  drain shop-compute-a-03                                       disturb       2 min
               19  upgrade shop-compute-a-03                                     in place      3 min
               20  uncordon shop-compute-a-03                                    in place      1 min
            21-26  2 of spare, one at a time: drain, upgrade, uncordon           disturb      12 min
          disturbs  3 of compute-a, one at a time; 4 of compute-b, 2 at a time; 3 of control, one at a time; 2 of spare, one at a time
          ends ready after about 1 d 3 h, 12 machines touched
        cluster backoffice
                1  tend 3 of control + tend 3 of compute-a                       in place      1 min
                   wait for the window that opens Sat 2026-03-07 03:30 UTC                      18 h
                2  snapshot backoffice-control-01                                create        1 min
             3-11  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
            12-20  3 of compute-a, one at a time: drain, upgrade, uncordon       disturb      18 min
          disturbs  3 of compute-a, one at a time; 3 of control, one at a time
          ends ready after about 19 h, 6 machines touched
    "#]].assert_eq(&journeys);
}

#[test]
fn sandbox_is_a_cluster_of_hosts_behind_a_load_balancer() {
    let manifest = manifest(SANDBOX);
    let role = &manifest.balancers[0].roles[0];
    assert!(!role.proxy_protocol && !role.sticky);
    let built = grown(&manifest, &[]);
    expect![[r#"
        cluster shed
                1  key shed-control-01                                           create        1 min
                2  create shed-control-01 + create 2 of compute + create porch-door-01  create        2 min
                3  equip shed-control-01 + equip 2 of compute + equip porch-door-01  in place      2 min
                4  mesh shed-control-01                                          in place      1 min
                5  init shed-control-01                                          create        3 min
                6  join 2 of compute                                             create        2 min
                7  balance porch-door-01                                         in place      1 min
          ends ready after about 12 min, 4 machines touched
    "#]].assert_eq(&told(&built[0], &Observed::default()));
}

#[test]
fn kubernetes_is_three_control_and_two_compute_machines_whose_api_is_behind_a_load_balancer() {
    let manifest = manifest(KUBERNETES);
    let roles = &manifest.balancers[0].roles;
    let ports: Vec<_> = roles.iter().map(|role| role.port).collect();
    assert_eq!(ports, [6443, 8080]);
    let built = grown(&manifest, &[]);
    expect![[r#"
        cluster shed
                1  key shed-control-01                                           create        1 min
                2  create 3 of control + create 2 of compute + create porch-door-01  create        2 min
                3  equip 3 of control + equip 2 of compute + equip porch-door-01  in place      2 min
                4  mesh shed-control-01                                          in place      1 min
                5  init shed-control-01                                          create        3 min
                6  join shed-control-02 + balance porch-door-01                  in place      2 min
                7  join shed-control-03 + join 2 of compute + balance porch-door-01  in place      2 min
                8  balance porch-door-01                                         in place      1 min
          ends ready after about 14 min, 6 machines touched
    "#]].assert_eq(&told(&built[0], &Observed::default()));
}

#[test]
fn upkeep_has_a_snapshot_before_its_upgrade_and_gates_beside_every_node() {
    let built = grown(&manifest(UPKEEP), &[]);
    let mut journeys = told(&built[0], &Observed::default());
    let observed = seen(&built[0]);
    let known = Known {
        desired: &built[0],
        observed: &observed,
        intents: &[],
        open: &[],
    };
    let raised = manifest(&UPKEEP.replace("version: v1.34.4", "version: v1.35.2"));
    journeys += &told(&grown(&raised, &[known])[0], &observed);
    expect![[r#"
        cluster shop
                1  create 3 of control + create 2 of compute + create shop-graphics-01  create        2 min
                2  init shop-control-01                                          create        3 min
                3  join shop-control-02                                          create        2 min
                4  join shop-control-03 + join 2 of compute + join shop-graphics-01  create        2 min
                5  install shop-control-01                                       in place      2 min
          ends ready after about 11 min, 6 machines touched
        cluster shop
                1  snapshot shop-control-01 + tend 2 of control + tend 2 of compute + tend shop-graphics-01  in place      1 min
                2  drain shop-control-01 + install shop-control-02               disturb       2 min
                3  upgrade shop-control-01                                       in place      3 min
                4  uncordon shop-control-01                                      in place      1 min
                5  drain shop-control-02 + tend shop-control-01                  disturb       2 min
                6  upgrade shop-control-02                                       in place      3 min
                7  uncordon shop-control-02                                      in place      1 min
                8  drain shop-control-03                                         disturb       2 min
                9  upgrade shop-control-03                                       in place      3 min
               10  uncordon shop-control-03                                      in place      1 min
            11-16  2 of compute, one at a time: drain, upgrade, uncordon         disturb      12 min
               17  drain shop-graphics-01                                        disturb       2 min
               18  upgrade shop-graphics-01                                      in place      3 min
               19  uncordon shop-graphics-01                                     in place      1 min
          gates  a node serves, and others are upgraded or go, when these let it pass: disks, smoke
          disturbs  2 of compute, one at a time; 3 of control, one at a time; 1 of graphics
          ends ready after about 37 min, 6 machines touched
    "#]].assert_eq(&journeys);
}

/// A cluster that is as it should be.
fn seen(desired: &Desired) -> Observed {
    let mut observed = Observed::default();
    let (version, network) = (desired.version, desired.network);
    for machine in &desired.machines {
        predict(&mut observed, machine, &Action::Create, NOW);
        predict(
            &mut observed,
            machine,
            &Action::Init {
                version,
                network,
                care: model::care::Care::default(),
            },
            NOW,
        );
    }
    observed
}
