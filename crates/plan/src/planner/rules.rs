//! The rules, each with its reasons for not acting.
//!
//! In their order: what is missing comes first, the control plane before the rest, what
//! was interrupted before what is new, removals after additions, upgrades last of all.

mod joining;
mod making;
mod quorum;
mod removing;
mod upgrading;

pub(super) use joining::{join_compute, start_control_plane, uncordon};
pub(super) use making::{acquire, create, joinable};
pub(super) use quorum::{
    After, at_its_address, cannot_join, outnumbered, quorum, quorum_at_risk, tell_lost,
};
pub(super) use removing::{remove, tear_down};
pub(super) use upgrading::upgrade;
