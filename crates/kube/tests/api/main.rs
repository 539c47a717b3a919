//! What is asked of an API server, against a real one without nodes.
#![expect(
    clippy::unwrap_used,
    clippy::as_conversions,
    reason = "a test that cannot go on fails"
)]

mod addons;
mod door;
mod drain;
mod jobs;
mod nodes;
mod objects;
mod requests;
mod strays;
mod webhook;
mod world;
