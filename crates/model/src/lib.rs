//! The nouns of Slipway: manifests, intents, desired state, observed state, tasks.
//!
//! Values only. Nothing here performs I/O, reads a clock or draws a random number, so
//! a value of these types means the same thing in the server, in the engine and in a
//! test. [`admit`] is the one gate: holding a [`manifest::Manifest`] proves that every
//! field was checked, and nothing downstream checks again.
//!
//! Some types can be serialised. That is the store's private encoding of its documents,
//! versioned there; what people and programs see are the wire types of `api`.
//!
//! **Invariant:** this crate depends on no other of ours (`docs/dependencies.txt`), and
//! `clippy.toml` beside it forbids clocks, files and unordered maps.

pub mod access;
pub mod addon;
pub mod admit;
pub mod audit;
pub mod balancer;
pub mod care;
pub mod cluster;
pub mod disruption;
pub mod dns;
pub mod endpoint;
pub mod environment;
pub mod fault;
pub mod gate;
pub mod hardware;
pub mod host;
pub mod id;
pub mod intent;
pub mod kubernetes;
pub mod language;
pub mod manifest;
pub mod mesh;
pub mod name;
pub mod network;
pub mod observed;
pub mod provider;
pub mod scaling;
pub mod sealed;
pub mod secret;
pub mod snapshot;
pub mod source;
pub mod stray;
pub mod task;
pub mod templates;
pub mod time;
pub mod upkeep;
pub mod version;
