//! Load balancers, with a real Envoy in namespaces of its own. Addresses of loopback play the
//! mesh.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print their figures"
)]

mod api;
mod host;
mod roles;
mod swaps;
mod traffic;
mod trouble;
mod world;
