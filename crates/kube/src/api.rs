//! What is asked of an API server, and the door through which it is asked.

pub mod csr;
pub mod drain;
pub mod manifest;
pub mod node;
pub mod settings;
pub mod wish;
pub mod workload;

mod answer;
mod door;
mod health;
mod text;

pub use door::{Dial, Dialling, Door, Limits, Stream};
pub use health::Health;

use kube_client::api::PatchParams;

/// The field manager that everything we apply belongs to.
pub const MANAGER: &str = "slipway";

/// How we change what is not applied.
fn patched() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}
