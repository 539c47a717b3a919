//! The one gate: every field becomes a checked type, and all faults are told at once.
//!
//! Reading goes on behind a fault, so one submission shows everything that is wrong with
//! a manifest, each fault with its path, what was found and what is allowed.

mod addons;
mod balancers;
mod bucket;
mod disruption;
mod fields;
pub(crate) mod gates;
pub(crate) mod hardware;
mod jump;
mod kubernetes;
pub(crate) mod manifest;
mod marks;
mod playbooks;
mod pools;
mod providers;
mod proxy;
mod references;
mod secrets;
pub(crate) mod snapshots;

pub use manifest::admit;

#[cfg(test)]
mod tests;
