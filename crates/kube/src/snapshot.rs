//! Snapshots of etcd while they rest: sealed in chunks, under names that say what they are.
//!
//! A snapshot holds every secret of its cluster. It leaves its host through [`seal`], which is the
//! only way into a [`shelf`], and is never whole in memory.

pub mod error;
pub mod s3;
pub mod seal;
pub mod shelf;

pub use error::{Error, Kind};
