//! The program as a whole, from the outside: started, used, killed, and started badly.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do, and say what they saw"
)]

#[cfg(feature = "sandbox")]
mod airgap;
#[cfg(feature = "sandbox")]
#[expect(dead_code, reason = "the tests of the sandbox use the rest")]
#[path = "../../../hosts/tests/sandbox/apart.rs"]
mod apart;
mod backup;
mod bad_start;
mod clusters;
mod config;
#[cfg(feature = "sandbox")]
mod demo;
mod doctor;
#[cfg(feature = "sandbox")]
mod entering;
mod environments;
#[cfg(feature = "sandbox")]
#[path = "../../../hosts/tests/driver/envoy.rs"]
mod envoy;
mod full_disk;
#[cfg(feature = "sandbox")]
mod hosts_killed;
mod kill;
mod many;
mod metrics;
mod mirror;
mod secrets;
mod server;
#[cfg(feature = "sandbox")]
mod shared_sandbox;
mod spans;
#[cfg(feature = "sandbox")]
mod wrong_key;

use std::io::Write as _;

/// Prints what was covered, and leaves it where `make test` shows it.
fn figure(covered: &str) {
    println!("{covered}");
    if let Some(file) = std::env::var_os("SLIPWAY_FIGURES") {
        let mut figures = std::fs::File::options().append(true).open(file).unwrap();
        writeln!(figures, "{covered}").unwrap();
    }
}
