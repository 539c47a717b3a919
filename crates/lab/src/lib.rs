//! The real parts that tests and measurements run against.
//!
//! What we prove against the real thing is started here: on its own port, in its own directory,
//! and never outliving whoever started it, however that one ends. Only tests and `xtask` use this
//! crate; it knows nothing of the product.

pub mod control_plane;
pub mod helm;
pub mod kubernetes;
pub mod octopod;
pub mod postgres;
pub mod s3;
pub mod traces;

mod apart;
mod skip;

pub use apart::{apart, within};
pub use skip::skip;
