//! Hands for clouds: whose modules machines are made with.
//!
//! [`Repositories`] looks where tags and branches of template repositories lead. It changes nothing,
//! anywhere: what it sees are observations, and `plan` decides what follows.

pub mod error;

mod git;
mod repositories;

pub use repositories::Repositories;
