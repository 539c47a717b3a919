//! Rehearse.
/// Report
pub struct Report;
/// x
pub fn rehearse_blocking() {}
