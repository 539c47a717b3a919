//! What is asked of an API server, and the door through which it is asked.

pub mod addon;
pub mod carried;
pub mod csr;
pub mod drain;
pub mod manifest;
pub mod node;
pub mod proxy;
pub mod settings;
pub mod stray;
pub mod wish;
pub mod workload;

mod answer;
mod door;
mod health;
mod job;
mod text;

pub use door::{Dial, Dialling, Door, Limits, Stream};
pub use health::Health;

use driver::Context;
use kube_client::api::PatchParams;

use crate::error::{Error, Kind};

/// The field manager that everything we apply belongs to.
pub const MANAGER: &str = "slipway";

/// How we change what is not applied.
fn patched() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Works until the task is told to end; `what` says what is attempted ("empty node a").
async fn unless_cancelled<T>(
    cx: &Context,
    what: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cx.cancelled() => Err(Error::new(
            Kind::Cancelled,
            format!("could not {what}, the task was told to end"),
        )),
        done = work => done,
    }
}
