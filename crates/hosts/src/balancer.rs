//! A load balancer: one Envoy per machine for all roles, told by files that are swapped under it.
//!
//! [`program`] brings a host to a [`Balance`]: it writes everything beside what is in use,
//! moves it over in an order in which every step works, asks Envoy whether it took it, and goes
//! back where it did not. A change of targets drops no connection: those to a target that was
//! taken away go on until they end, those to a target that died end, all others do not notice.
//! Targets of connections are checked by connecting to them every two seconds. Targets of
//! datagrams cannot be asked: all of them count as healthy.
//!
//! The program does not know how services are kept running; whoever sends it gives it the text
//! that does so for [`service`].

mod envoy;

use crate::error::{Error, Kind};
use crate::program::{Mark, Program, Report};
use model::balancer::{ADMIN_PORT, Balance, BalanceFact, Protocol};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use zeroize::Zeroizing;

/// Where everything of a load balancer is on its host.
pub const DIRECTORY: &str = "/var/lib/slipway/envoy";

/// What the service is called.
pub const SERVICE: &str = "slipway-envoy";

/// How long a program may take: Envoy's start, and a minute for somebody else to finish.
const LIMIT: Duration = Duration::from_mins(3);

/// Files that Envoy may have open: two for every connection, and some.
const OPEN_FILES: u32 = 262_144;

/// Ends a file inside a program; no line of JSON looks like it.
const END: &str = "SLIPWAY-END-OF-FILE";

/// A service that must run on a load balancer's host. When it differs from what runs, what runs
/// is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceSpec {
    /// What it is called.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub description: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How many files it may have open.
    pub open_files: u32,
}

/// The one Envoy of a host.
///
/// Its command line changes only with `binary` or with what Envoy reads at its start alone, so
/// roles and targets come and go without a restart. It needs no other directory than
/// [`DIRECTORY`], writes its log there, and may be ended with SIGTERM at any time.
pub fn service(balance: &Balance, binary: &str) -> ServiceSpec {
    let bootstrap = envoy::files(balance)
        .into_iter()
        .find(|file| file.statistic.is_none())
        .map(|file| format!("{DIRECTORY}/{}", file.path));
    let log = format!("{DIRECTORY}/log");
    let mut command = vec![binary.to_owned(), "-c".to_owned()];
    command.extend(bootstrap);
    // Reasons for a refusal are read from the log, so it is flushed often. Connections of a
    // role that is gone have ten minutes to end.
    let options = [
        "--log-path",
        &log,
        "--log-level",
        "warning",
        "--file-flush-interval-msec",
        "100",
        "--drain-time-s",
        "600",
        "--disable-hot-restart",
    ];
    command.extend(options.map(str::to_owned));
    ServiceSpec {
        name: SERVICE,
        description: "Slipway load balancer",
        command,
        open_files: OPEN_FILES,
    }
}

/// Has a host balance as told.
///
/// `ensure_service` is shell text that has [`service`] running, reports that item, and exits or
/// returns with another status than 0 where it could not. It is run after the files of a first
/// start are in place.
pub fn program(balance: &Balance, ensure_service: &str) -> Program {
    let files = envoy::files(balance);
    let in_use: Vec<_> = files.iter().filter_map(envoy::File::in_use).collect();
    let mut text = format!(
        "set -u\n{}\n{}\nbegin {}:{ADMIN_PORT} {}\n",
        include_str!("balancer/common.sh"),
        include_str!("balancer/tell.sh"),
        balance.address,
        balance.fingerprint()
    );
    for file in &files {
        want(&mut text, &file.path, &file.text);
    }
    want(&mut text, "in-use", &(in_use.join("\n") + "\n"));
    for listener in &balance.listeners {
        match listener.protocol {
            Protocol::Udp => text.push_str(&format!(
                "echo 'role {}: targets of datagrams are not checked'\n",
                listener.role
            )),
            Protocol::Tcp => {}
        }
    }
    text.push_str(&format!(
        "ensure_service() {{\n{ensure_service}\n}}\nfinish\n"
    ));
    Program {
        title: format!("load balancer with {} roles", balance.listeners.len()),
        text: Zeroizing::new(text),
        limit: LIMIT,
    }
}

/// Takes the load balancer away, whatever it was told. `stop_service` is shell text that ends
/// [`SERVICE`] and removes it, and does nothing where it is not.
pub fn down_program(stop_service: &str) -> Program {
    let text = format!(
        "set -u\n{}\nstop_service() {{\n{stop_service}\n}}\n{}",
        include_str!("balancer/common.sh"),
        include_str!("balancer/down.sh")
    );
    Program {
        title: "no load balancer".to_owned(),
        text: Zeroizing::new(text),
        limit: LIMIT,
    }
}

/// Shell text that tells facts for [`read`]: one request to Envoy where the host was told to
/// balance, nothing elsewhere. It changes nothing and leaves no names behind.
pub fn look_snippet() -> String {
    format!("(\n{}\ntell_facts\n)\n", include_str!("balancer/common.sh"))
}

/// What a host told of its load balancer: `None` where there is none, where it does not answer,
/// or where it has something else in use than it was told.
pub fn read(report: &Report) -> Result<Option<BalanceFact>, Error> {
    let garbage = |value: &str| {
        let what = format!("the host told {value:?} of its load balancer");
        Error::new(Kind::Garbage, what)
    };
    let Some(told) = report.fact("balancer-told") else {
        return Ok(None);
    };
    let told = told.parse().map_err(|_not_one| garbage(told))?;
    let mut healthy = BTreeMap::new();
    for mark in &report.marks {
        match mark {
            Mark::Fact(key, value) if key == "balancer-healthy" => {
                let (role, count) = value.split_once(' ').ok_or_else(|| garbage(value))?;
                let role = role.parse().map_err(|_not_one| garbage(value))?;
                let count = count.parse().map_err(|_not_one| garbage(value))?;
                healthy.insert(role, count);
            }
            Mark::Fact(..) | Mark::Changed(_) | Mark::Unchanged(_) | Mark::Failed(..) => {}
        }
    }
    Ok(Some(BalanceFact { told, healthy }))
}

/// Adds a file to a program, with the checksum it must have once it is written.
fn want(text: &mut String, path: &str, content: &str) {
    let digest = Sha256::digest(content.as_bytes());
    let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push_str(&format!("want {path} {sum} <<'{END}'\n{content}{END}\n"));
}

#[cfg(test)]
mod tests;
