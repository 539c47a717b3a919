//! The Helm driver with real Helm, and where it is about releases with a real API server. There are no
//! nodes: whoever tests plays the kubelet.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the world of tests fails as tests do"
)]

mod chart;
mod dying;
mod lacking;
mod living;
#[path = "../../src/testing.rs"]
mod testing;
mod world;
