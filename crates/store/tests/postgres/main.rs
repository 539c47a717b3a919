//! What only a database that several processes share can do, and has to: races, outages, doors.
//!
//! Two handles on one database are two processes, as far as the database can tell.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod doors;
mod environments;
#[path = "../contract/fixture.rs"]
#[expect(dead_code, reason = "most of it serves the contract")]
mod fixture;
#[path = "../contract/habitat.rs"]
#[expect(dead_code, reason = "most of it serves the contract")]
mod habitat;
mod lanes;
mod octopod;
mod outages;
mod races;
mod streams;

use lab::postgres::{Options, Postgres};
use std::time::Duration;
use store::Store;

/// Long enough for everything that ends at all.
pub(crate) const LONG: Duration = Duration::from_secs(100);

/// An empty database on the server that all share; none where there is no PostgreSQL.
pub(crate) fn database(test: &str) -> Option<(&'static Postgres, String)> {
    let server = lab::postgres::shared_or_skip(&format!("postgres::{test}"))?;
    let url = server.create_database().unwrap();
    Some((server, url))
}

/// Two processes on one database.
pub(crate) fn two(test: &str) -> Option<[Store; 2]> {
    let (_, url) = database(test)?;
    Some([Store::connect(&url).unwrap(), Store::connect(&url).unwrap()])
}

/// A server that may be stopped, with an empty database.
pub(crate) fn server(test: &str) -> Option<(Postgres, String)> {
    lab::postgres::shared_or_skip(&format!("postgres::{test}"))?;
    let server = Postgres::start(Options::default()).unwrap();
    let url = server.create_database().unwrap();
    Some((server, url))
}
