//! Meshes of real `WireGuard` (in user space, by `wireguard-go`) between hosts that are namespaces of
//! this machine, joined by a bridge that nobody else sees.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail, and says what it measured"
)]

mod broken;
mod change;
mod killed;
mod many;
mod nat;
mod stream;
mod systemd;
mod together;
mod tools;
mod world;
