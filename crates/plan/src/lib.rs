//! Decides; does nothing.
//!
//! [`expand`] turns a manifest into what each of its clusters should be. [`plan`]
//! compares one such cluster with the cluster as it was last seen and answers with the
//! next safe tasks, and with the reasons for those it holds back. [`check`] judges a
//! finished plan without knowing how it was made. [`journey`] runs the planner against
//! [`predict`] until nothing is left, so that people see the end before the beginning.
//!
//! All of these are functions: equal inputs give equal answers, in equal order.
//!
//! **Invariant:** this crate depends on `model` alone (`docs/dependencies.txt`), and
//! `clippy.toml` beside it forbids clocks, files and unordered maps.

mod advance;
mod blast;
mod brief;
mod care;
mod check;
mod claims;
pub mod environment;
mod evicted;
mod expand;
#[cfg(test)]
mod fixture;
mod foreseen;
mod hands;
mod held;
mod hops;
mod journey;
mod ledger;
mod loss;
pub mod notify;
mod pace;
mod planner;
mod predict;
mod price;
mod stranded;
mod summary;
mod vain;
mod why;
mod wished;

pub use advance::{Advance, Offer, Taken, advance, follows, offers};
pub use blast::{Blast, Limits, going};
pub use brief::brief;
pub use check::{Note, check, check_advance};
pub use claims::Claim;
pub use evicted::{Evicted, evicted};
pub use expand::{
    Change, Expansion, GivenBack, Judged, Known, Remembered, expand, expand_beside, give_back,
    judge, recovered, retire,
};
pub use foreseen::unforeseen;
pub use hands::{Hands, Unable};
pub use held::{Ends, Held, Owner, Reason, Scope, told};
pub use journey::{Block, Disturbed, Journey, Ports, Step, Wait, journey, journey_by};
pub use ledger::{Elsewhere, Slot, spent};
pub use loss::{Loss, loss};
pub use pace::{Basis, Paces, minutes};
pub use planner::{Plan, View, plan};
pub use predict::predict;
pub use price::{Cost, DiskPrice, MachinePrice, Month, Prices, dollars};
pub use stranded::{Stranded, stranded};
pub use summary::{Phase, Summary};
pub use vain::{VAIN_MAX, Vain};
pub use why::{Cause, strangers, why};
pub use wished::{Wished, wished};
