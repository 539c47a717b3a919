//! A world in memory, and the real loops rehearsed in it.
//!
//! [`World`] is what a provider, given hosts and Kubernetes would be; [`Simulated`] is the
//! driver that reaches it, held to the same contract as the real ones. [`story`] runs the
//! engine's own loops in that world on a virtual clock, from a script that reads like
//! prose; the proof under `tests/` re-runs every story with every single thing going wrong.
//! [`rehearse_blocking`] does the same for somebody's manifest: it is `slipway simulate`.
//!
//! **Invariant:** equal inputs and an equal seed give equal output, byte for byte; `tests/`
//! compares. Nothing but [`World::open`] lets the machine's clock drive anything.

pub mod faults;
pub mod story;

mod chronicle;
mod driver;
mod made_up;
mod rehearse;
mod stage;
mod world;

pub use crate::driver::Simulated;
pub use faults::Profile;
pub use rehearse::{Error as RehearseError, Report, rehearse_blocking};
pub use world::{Error, LetGo, Pace, Rule, Violation, World, lacks};
