//! What is asked of an API server, and the door through which it is asked.

mod answer;
mod door;
mod health;

pub use door::{Dial, Dialling, Door, Limits, Stream};
pub use health::Health;

/// The field manager that everything we apply belongs to.
pub const MANAGER: &str = "slipway";
