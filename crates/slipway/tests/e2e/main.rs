//! The long proofs: a real Kubernetes on hosts of the sandbox, made, used, broken and removed.
//!
//! `cargo xtask e2e` runs them, one story after the other, with all that they need; nothing else
//! does. Each story has namespaces of its own, so that nothing of it is left, however it ends.

#![cfg(feature = "sandbox")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do, and say what they saw"
)]

mod addon;
#[path = "../../../hosts/tests/sandbox/apart.rs"]
mod apart;
mod asking;
mod bad;
mod byhand;
mod demo;
mod endpoint;
mod environments;
mod gates;
mod hosts_within;
mod killed;
mod reboot;
mod renew;
mod replace;
mod restore;
mod roll;
mod scale;
#[expect(dead_code, reason = "the tests of the program use the rest")]
#[path = "../program/server.rs"]
mod server;
mod shape;
mod site;
mod smoke;
mod upgrade;
mod versions;
mod whole;
mod worse;
