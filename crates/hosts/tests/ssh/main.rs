//! The SSH client against real SSH servers: every way to fail, and what must hold while it does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

mod connecting;
mod copying;
mod ending;
mod fetching;
mod passages;
mod programs;
mod proxy;
mod server;
mod sharing;
