//! Recipes for real: programs are fed to `sh -s` in namespaces whose root is an overlay that is
//! thrown away, and are killed, starved and lied to there.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod files;
mod killed;
mod looking;
mod packages;
mod recipes;
mod shell;
mod supervised;
mod world;
