//! HTTP for people and programs: the public contract, live events, and the page.
//!
//! Requests are read into checked types, asked of the store, and shown in the words of
//! `api`. The server decides nothing: what a manifest means is for `plan`, what may be
//! stored is for the store. The page stands on the same ground as the API and can do
//! nothing that the API cannot.
//!
//! **Invariants:** every answer to a failed request is a problem with a code (`problem`);
//! nothing under `/api` and no page but the one to sign in is answered without a token that
//! may have it (`access`, `tests/http/matrix.rs`), but git services that sign what they tell (`git`); the document of the API is `openapi/v1.json`
//! (`tests/http/openapi.rs`).

pub mod auth;
pub mod metrics;
pub mod mirror;

mod access;
mod advise;
mod app;
mod body;
mod connections;
mod credentials;
mod enter;
mod environments;
mod extract;
mod git;
mod layers;
mod openapi;
mod page;
mod problem;
mod rehearse;
mod routes;
mod streams;
mod view;
mod watched;

pub use access::Need;
pub use advise::{Advice, Advise, Candidate, Glance, Of, Trouble, Unadvised, Verdict};
pub use api::SimulationView;
pub use app::{Clock, Server, router, run};
pub use enter::{Enter, Letting, Shut, Visit, Wire};
pub use openapi::document;
pub use page::pages;
pub use plan::{Prices, Unable};
pub use rehearse::{Rehearsal, Rehearse, Turn};
pub use watched::watched;

use problem::Problem;

/// Bytes in the digits people read them in.
fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Computes something that takes its time, away from the threads that serve requests.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        // Whoever catches panics of requests shall catch this one too, with its message.
        Err(fallen) => match fallen.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Problem::busy("the server stops")),
        },
    }
}
