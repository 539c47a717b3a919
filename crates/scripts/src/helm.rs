//! Deploys environments by Helm, for projects that have a chart and no control scripts.
//!
//! Each environment is a release of the chart. What changes one is a small shell program
//! (`helm/act.sh`) that calls `helm` and `kubectl` under the same [`crate::runner`] as control
//! scripts, so that it is begun once and found again, whoever dies. What looks or tells is asked
//! here and now. Why these programs and not a library is told in
//! `docs/decisions/0015-helm-and-kubectl-are-programs.md`.
//!
//! **Invariant:** nothing secret is an argument or a variable of a process. Values and kubeconfigs
//! are files that only their user can read, and are removed when whoever reads them has ended.

mod acting;
mod chart;
mod cluster;
mod deployer;
pub mod error;
mod given;
mod programs;
mod state;
mod turns;
mod values;

pub use deployer::Helm;
pub use programs::Programs;
