//! Stories: scripts that read like prose, run by the real loops in a simulated world.
//!
//! One command per line; empty lines and what follows `#` are for the reader.
//!
//! ```text
//! apply NAME with CLAUSES       a manifest NAME with one cluster NAME
//! edit NAME: CLAUSES            the same manifest with other numbers
//! upgrade NAME to VERSION       the same manifest with another version
//! delete NAME                   the manifest, and with it the cluster
//! replace MACHINE               an intent
//! pause NAME | resume NAME      an intent, and its withdrawal
//! retry what is stuck           an intent for every stuck task
//! cut power of MACHINE          somebody pulls the plug
//! restore power of MACHINE      somebody plugs it in again
//! somebody destroys MACHINE     at its provider, by hand
//! somebody joins NODE to NAME   a node that is none of ours
//! node NODE is left in NAME     of a machine that nobody knows any more
//! provider refuses TYPE         a server type is sold out
//! provider offers TYPE          and back
//! set secret NAME KEY           a right value; also `to nothing`, `to a wrong one`
//! gate NAME is shut             what it asks for fails
//! gate NAME is open             and back, as all are at first
//! fail the next N attempts of KIND [on MACHINE]
//! kill the engine               as kill -9 would; another one starts by itself
//! restart the engine            it is told to end, and ends; another one starts
//! wait until settled            until nothing happens any more by itself
//! wait N seconds|minutes|hours
//! show clusters | show machines | show plan of NAME
//! tell only of failures         attempts that end well are not told from now on
//! ```
//!
//! CLAUSES are `N control`, `N compute`, `hosts ADDRESS …` (a static pool instead of made
//! compute machines), `N from PROVIDER` (compute machines of one provider among several: the
//! pool has its name, and all else is made by the first of them), `N balancers` (machines of a
//! load balancer with the roles `api` and `web`), `N other balancers` (machines of another one
//! with the role `shop`), `api on first|other|none` (which of them passes the API on), `called
//! NAME` (the first one), `named NAME` (its name of DNS), `sandboxed` (machines are hosts: they
//! are equipped and connected before they join), `through URL` (the proxy of hosts; or `through
//! nothing`), `sparing NAME` (what they reach without it), `on TYPE` (the server type),
//! `compute on TYPE` (of compute machines alone), `replacing` (machines of another type come
//! in place of those there are), `at VERSION`, `gated by NAME` (nodes pass that before they
//! serve again), `allowing N per cent`; `and` and commas are for the reader.
//!
//! What is printed is what happened: each line with the minutes and seconds since the
//! beginning, commands at the margin, attempts of the engine indented.

mod manifest;
mod parse;
mod play;

pub use parse::Fault;
pub use play::{Disturbance, Told, play};

use parse::Command;

/// A script that was understood.
#[derive(Debug, Clone)]
pub struct Story {
    lines: Vec<(String, Command)>,
}

impl Story {
    /// Reads a script; the first line that is not understood is a fault.
    pub fn read(text: &str) -> Result<Self, Fault> {
        parse::read(text).map(|lines| Self { lines })
    }
}
