//! Hosts of namespaces, made for real: each test runs in namespaces of its own.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says what it saw"
)]

mod apart;
mod killed;
mod lite;
mod rootless;
mod systemd;
