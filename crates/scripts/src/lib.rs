//! Deploys environments by control scripts, programs of somebody's own that are called as they
//! always were, or by [`helm`], for those who have a chart instead.
//!
//! Two ways to run one. What looks or tells is run here and now ([`process`]): its group of
//! processes is ended with its time, or when nobody waits for it any more. What changes an
//! environment is run by a small program of its own ([`runner`]), which outlives this one: whoever
//! comes back finds it, follows it, and knows how it ended.
//!
//! **Invariant:** a script that changes something is begun once for each action, whoever dies
//! meanwhile. The lock of its directory and the file `began` are the proof; `tests/runner` kills
//! everybody in turn.

pub mod contract;
pub mod error;
pub mod helm;
pub mod output;
pub mod process;
pub mod runner;
pub mod trial;

mod asking;
mod bench;
mod cache;
mod deployer;
mod deployers;
mod home;
mod secrets;
mod surroundings;

#[cfg(test)]
mod testing;

pub use asking::Notified;
pub use deployer::Scripts;
pub use deployers::Deployers;
pub use surroundings::Surroundings;
