//! The driver with real scripts and real processes, some of which are killed.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the world of tests fails as tests do"
)]

mod acting;
mod dying;
mod examples;
mod looking;
#[path = "../../src/testing.rs"]
mod testing;
mod world;
