//! What crosses from one body of the store to another, or goes on behind its back: dumps,
//! entries that somebody touched, databases of an earlier version.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod behind;
mod dumped;
#[path = "../contract/fixture.rs"]
#[expect(dead_code, reason = "most of it serves the contract")]
mod fixture;
mod furnished;
#[path = "../contract/habitat.rs"]
#[expect(dead_code, reason = "most of it serves the contract")]
mod habitat;
mod migrated;
mod recovered;
mod tampered;
mod unknown;
mod unread_environments;
mod unreadable;
