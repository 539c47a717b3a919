//! The contract of every driver, kept by the one of hosts on real ones: hosts of namespaces, their
//! SSH servers, WireGuard and Envoy.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says what it saw"
)]

mod airgap;
#[path = "../sandbox/apart.rs"]
mod apart;
mod bad;
mod envoy;
mod host;
mod jump;
mod owner;
mod passage;
mod scene;
mod shared;
mod stage;
mod staging;
mod systemd;
mod way_out;

use apart::apart;
use hosts::sandbox::Level;
use stage::Stage;

#[test]
fn the_driver_of_hosts_keeps_the_contract() {
    let Some(mirror) = envoy::mirror("the_driver_of_hosts_keeps_the_contract") else {
        return;
    };
    apart(
        "the_driver_of_hosts_keeps_the_contract",
        Level::Lite,
        async |lab| {
            let stage = Stage::new(&lab, mirror).await;
            let report = driver::suite::contract(&stage).await;
            println!("{report}");
            assert_eq!(report.broken().count(), 0, "{report}");
            stage.clear().await;
        },
    );
}
