//! The one gate: every field becomes a checked type, and all faults are told at once.
//!
//! Reading goes on behind a fault, so one submission shows everything that is wrong with
//! a manifest, each fault with its path, what was found and what is allowed.

mod addons;
mod balancers;
mod bucket;
mod disruption;
mod dns;
pub(crate) mod fields;
pub(crate) mod gates;
pub(crate) mod hardware;
mod idle;
mod jump;
mod kubernetes;
pub(crate) mod manifest;
mod marks;
mod metal;
mod networks;
mod order;
mod partial;
mod parts;
mod playbooks;
mod pools;
mod providers;
mod proxy;
mod references;
mod secrets;
mod sizes;
pub(crate) mod snapshots;
pub(crate) mod templates;
pub(crate) mod upkeep;

pub use manifest::{API_VERSIONS, KIND, Refused, admit, admit_all, place, read_all};

#[cfg(test)]
mod tests;
