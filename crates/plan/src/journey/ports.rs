//! Where a journey opens the port of the API to the world, and where it shuts it.

use model::cluster::Machine;
use model::name::Name;
use model::observed::Observed;
use model::task::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The control machines at clouds whose port changes on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// Those whose port is open to the world at some time, and was not before.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opens: BTreeSet<Name>,
    /// Those whose port is shut at some time, and was not before.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub shuts: BTreeSet<Name>,
}

impl Ports {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.opens.is_empty() && self.shuts.is_empty()
    }

    /// One more round, after which the world looks so.
    pub(super) fn round(&mut self, tasks: &[(Kind, &Machine)], observed: &Observed) {
        for (kind, machine) in tasks.iter().filter(|(_, machine)| machine.has_firewall()) {
            let name = || machine.name.clone();
            if *kind == Kind::Shut {
                self.shuts.insert(name());
            } else if matches!(kind, Kind::Create | Kind::Expose) && observed.lets_in(machine.id) {
                self.opens.insert(name());
            }
        }
    }
}

/// Whose, as people say it.
fn on(names: &[&Name]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [one, other] => format!("{one} and {other}"),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passing, lasting): (Vec<_>, Vec<_>) = self
            .opens
            .iter()
            .partition(|name| self.shuts.contains(*name));
        let shut: Vec<_> = self.shuts.difference(&self.opens).collect();
        let lines = [
            ("opens", on(&lasting), "to the world"),
            (
                "opens",
                on(&passing),
                "to the world, until a load balancer passes the API on",
            ),
            ("shuts", on(&shut), "to the world"),
        ];
        for (does, machines, how) in lines {
            if !machines.is_empty() {
                writeln!(f, "  {does}  the API's port of {machines} {how}")?;
            }
        }
        Ok(())
    }
}
