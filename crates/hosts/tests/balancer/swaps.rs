//! Changes under load: nobody notices who has no reason to.

use crate::host::{STOP, balance, figure, healthy, role, run, target, told, until};
use crate::traffic::{Caller, Load, Target, ask_once};
use crate::world::within;
use std::net::Ipv4Addr;
use std::process::Command;

/// Twenty sets of targets: some come, some go, all are replaced, and there and back.
const SETS: [&[u8]; 20] = [
    &[1, 2],
    &[3],
    &[4, 5],
    &[1, 4, 5],
    &[1],
    &[6],
    &[1, 2, 3, 4, 5, 6],
    &[2, 4, 6],
    &[1, 3, 5],
    &[5],
    &[4],
    &[3],
    &[2],
    &[1],
    &[1, 2],
    &[2, 3],
    &[3, 4],
    &[4, 5],
    &[5, 6],
    &[1, 2, 3],
];

/// Figures that grow when somebody is sent away who was not connected to a target already.
const SENT_AWAY: [&str; 4] = [
    "tcp.web.downstream_cx_no_route",
    "cluster.web.upstream_cx_none_healthy",
    "cluster.web.upstream_cx_connect_attempts_exceeded",
    "cluster.web.upstream_cx_overflow",
];

/// Connections that stay, each with the target that answers it.
async fn long_ones(count: usize) -> Vec<(u8, Caller)> {
    let mut long = Vec::new();
    for _ in 0..count {
        let mut caller = Caller::new(8080).await.unwrap();
        let with = caller.ask().await.unwrap();
        long.push((with, caller));
    }
    long
}

/// Asks everybody again; whose target is `dead` may have lost its connection. Says how many have.
async fn ask_again(long: &mut [(u8, Caller)], dead: Option<u8>) -> u64 {
    let mut lost = 0;
    for (with, caller) in long {
        match caller.ask().await {
            Ok(by) => assert_eq!(by, *with, "a connection changed its target"),
            Err(error) => {
                assert_eq!(Some(*with), dead, "a connection was lost: {error}");
                lost += 1;
            }
        }
    }
    lost
}

#[test]
fn twenty_changes_and_a_dead_target_fail_nobody_else() {
    within(
        "swaps::twenty_changes_and_a_dead_target_fail_nobody_else",
        async {
            let mut targets = Vec::new();
            for number in 1..=6 {
                targets.push(Some(Target::start(number)));
            }
            told(&balance(&[role("web", 8080, &[1, 2, 3])])).await;
            let mut long = long_ones(12).await;
            let load = Load::start(8080, 8);
            load.more(100).await;
            for set in SETS {
                let report = told(&balance(&[role("web", 8080, set)])).await;
                assert_eq!(
                    report.changed(),
                    2,
                    "its targets and what was told: {report:?}"
                );
                for _ in 0..5 {
                    let by = ask_once(8080).await.unwrap();
                    assert!(set.contains(&by), "{by} was taken away");
                }
                load.more(50).await;
                ask_again(&mut long, None).await;
            }
            assert_eq!(load.failed(), 0, "of {}", load.served());
            let served = load.served();
            targets[1] = None;
            until("target 2 is out", "clusters", |page| {
                !healthy("web", 2, page)
            })
            .await;
            load.more(500).await;
            let (all, failed) = load.finish().await;
            let lost = ask_again(&mut long, Some(2)).await;
            println!(
                "20 changes: 0 of {served} new connections failed, 12 of 12 long ones were kept"
            );
            println!(
                "1 dead target: of {} new connections {failed} ended with it, and {lost} of 12 long ones",
                all + failed - served
            );
            for figure_name in SENT_AWAY {
                assert_eq!(figure(figure_name).await, 0, "{figure_name}");
            }
            // A caller has at most one connection, and there are eight.
            assert!(failed <= 8, "{failed} failed");
        },
    );
}

#[test]
fn a_target_that_dies_comes_back_by_itself() {
    within("swaps::a_target_that_dies_comes_back_by_itself", async {
        let _one = Target::start(1);
        let two = Target::start(2);
        let wish = balance(&[role("web", 8080, &[1, 2])]);
        let report = told(&wish).await;
        assert_eq!(report.fact("balancer-healthy"), Some("web 2"));
        drop(two);
        until("target 2 is out", "clusters", |page| {
            !healthy("web", 2, page)
        })
        .await;
        for _ in 0..20 {
            assert_eq!(ask_once(8080).await.unwrap(), 1);
        }
        let report = crate::host::look().await;
        assert_eq!(report.fact("balancer-healthy"), Some("web 1"));
        let _two = Target::start(2);
        until("target 2 is in", "clusters", |page| healthy("web", 2, page)).await;
        assert_eq!(told(&wish).await.changed(), 0);
    });
}

#[test]
fn what_a_silent_machine_held_ends_and_new_callers_avoid_it() {
    within(
        "swaps::what_a_silent_machine_held_ends_and_new_callers_avoid_it",
        async {
            let _targets = (Target::start(1), Target::start(2));
            told(&balance(&[role("web", 8080, &[1, 2])])).await;
            let mut long = long_ones(8).await;
            // Nothing reaches it any more, and it says no goodbye.
            let route = format!("route add blackhole {} table local", target(2));
            let done = Command::new("ip").args(route.split(' ')).status().unwrap();
            assert!(done.success());
            until("target 2 is out", "clusters", |page| {
                !healthy("web", 2, page)
            })
            .await;
            for _ in 0..20 {
                assert_eq!(ask_once(8080).await.unwrap(), 1);
            }
            let held = long.iter().filter(|(with, _)| *with == 2).count();
            assert!(held > 0);
            until("its connections ended", "clusters", |page| {
                page.contains(&format!("web::{}:9000::cx_active::0\n", target(2)))
            })
            .await;
            let lost = ask_again(&mut long, Some(2)).await;
            println!("a silent machine: {lost} connections ended of {held} it held");
            assert_eq!(usize::try_from(lost), Ok(held));
        },
    );
}

#[test]
fn roles_come_and_go_and_others_do_not_notice() {
    within("swaps::roles_come_and_go_and_others_do_not_notice", async {
        let _targets = (Target::start(1), Target::start(2));
        let web = role("web", 8080, &[1, 2]);
        let api = role("api", 8081, &[1]);
        told(&balance(std::slice::from_ref(&web))).await;
        let mut long = long_ones(8).await;
        let load = Load::start(8080, 4);
        let mut other = web.clone();
        other.sticky = true;
        for step in [
            vec![web.clone(), api.clone()],
            vec![web.clone()],
            vec![other.clone(), api.clone()],
            vec![other],
            vec![web.clone(), role("apis", 8081, &[2])],
            vec![web.clone(), api.clone()],
            vec![web.clone()],
        ] {
            let wish = balance(&step);
            told(&wish).await;
            if let Some(added) = step.get(1) {
                ask_once(added.port).await.unwrap();
            } else {
                assert!(ask_once(8081).await.is_err(), "the role is gone");
            }
            load.more(50).await;
            ask_again(&mut long, None).await;
            assert_eq!(told(&wish).await.changed(), 0);
        }
        let (served, failed) = load.finish().await;
        println!("7 changes of roles: {failed} of {served} new connections failed");
        assert_eq!(failed, 0);
    });
}

#[test]
fn a_port_that_changes_its_role_is_never_closed() {
    within(
        "swaps::a_port_that_changes_its_role_is_never_closed",
        async {
            let _targets = (Target::start(1), Target::start(2));
            told(&balance(&[role("web", 8080, &[1])])).await;
            let mut long = long_ones(4).await;
            let load = Load::start(8080, 4);
            load.more(50).await;
            for (name, number) in [("site", 2), ("web", 1), ("site", 2)] {
                told(&balance(&[role(name, 8080, &[number])])).await;
                load.more(50).await;
                assert_eq!(ask_once(8080).await.unwrap(), number);
                ask_again(&mut long, None).await;
            }
            let (served, failed) = load.finish().await;
            println!("3 changes of a port's role: {failed} of {served} new connections failed");
            assert_eq!(failed, 0);
        },
    );
}

#[test]
fn envoy_comes_back_with_what_it_was_told() {
    within("swaps::envoy_comes_back_with_what_it_was_told", async {
        let _one = Target::start(1);
        let wish = balance(&[role("web", 8080, &[1])]);
        told(&wish).await;
        run(STOP).await;
        assert!(ask_once(8080).await.is_err());
        assert!(
            crate::host::look().await.marks.is_empty(),
            "it has nothing in use"
        );
        let report = told(&wish).await;
        assert_eq!(report.changed(), 1, "only the service: {report:?}");
        assert_eq!(ask_once(8080).await.unwrap(), 1);
    });
}

#[test]
fn a_role_moves_to_another_port() {
    within("swaps::a_role_moves_to_another_port", async {
        let _one = Target::start(1);
        told(&balance(&[role("web", 8080, &[1])])).await;
        let mut long = long_ones(2).await;
        told(&balance(&[role("web", 8090, &[1])])).await;
        assert_eq!(ask_once(8090).await.unwrap(), 1);
        assert!(ask_once(8080).await.is_err());
        // They have ten minutes.
        ask_again(&mut long, None).await;
    });
}

#[test]
fn another_address_in_the_mesh_starts_envoy_again() {
    within(
        "swaps::another_address_in_the_mesh_starts_envoy_again",
        async {
            let _one = Target::start(1);
            let mut wish = balance(&[role("web", 8080, &[1])]);
            told(&wish).await;
            wish.address = Ipv4Addr::new(127, 0, 3, 2);
            let report = told(&wish).await;
            assert_eq!(
                report.changed(),
                3,
                "bootstrap, service and what was told: {report:?}"
            );
            assert_eq!(ask_once(8080).await.unwrap(), 1);
            assert_eq!(told(&wish).await.changed(), 0);
        },
    );
}
