//! What machines cost a month, as far as anybody can tell beforehand.
//!
//! A guess, and it says so: by a table with a date that people extend with their own prices, in whole
//! cents. What it does not know is counted and named, never taken for nothing. Machines that are
//! given, simulated or made of this one cost nobody anything.

mod admit;
mod table;

use model::cluster::{Desired, Machine, Origin};
use model::hardware::Hardware;
use model::observed::{MachineFact, Observed};
use model::provider::Provider;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Prices of a month, in cents of US dollars. Where several fit, the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// The time that they are about, as people write it.
    pub as_of: String,
    /// Those of machines.
    #[serde(default)]
    pub machines: Vec<MachinePrice>,
    /// Those of data disks.
    #[serde(default)]
    pub disks: Vec<DiskPrice>,
}

/// What machines of one type cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachinePrice {
    /// Who lends them.
    pub provider: Provider,
    /// In the provider's words.
    pub server_type: String,
    /// Where; everywhere where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether it is the price of those that may be taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot: bool,
    /// For a month.
    pub cents: u64,
}

/// What data disks cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiskPrice {
    /// Who lends them.
    pub provider: Provider,
    /// Where; everywhere where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// For a hundred gigabytes and a month: one costs less than a cent may be.
    pub cents_per_100_gb: u64,
}

/// What some machines cost a month.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Month {
    /// Those whose price is known.
    pub cents: u64,
    /// Those whose price is not: of what, and how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, u32>,
}

/// What a cluster costs a month, before a journey and after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cost {
    /// The machines that are there.
    pub before: Month,
    /// Those that will be.
    pub after: Month,
    /// When the prices were asked for.
    pub as_of: String,
}

impl Prices {
    /// Those that everybody has.
    pub fn usual() -> Self {
        table::usual()
    }

    /// With somebody's own, which count before these.
    #[must_use]
    pub fn extended(self, mut own: Self) -> Self {
        own.machines.extend(self.machines);
        own.disks.extend(self.disks);
        own
    }

    /// What the machines cost that are there or were asked for: who does not answer is paid for.
    pub(crate) fn month<'a>(
        &self,
        machines: impl Iterator<Item = &'a Machine>,
        observed: &Observed,
    ) -> Month {
        let there = |machine: &&Machine| {
            let seen = observed.machines.get(&machine.id);
            match seen.and_then(|seen| seen.machine.as_ref()) {
                None | Some((MachineFact::Absent, _)) => false,
                Some((
                    MachineFact::Booting { .. }
                    | MachineFact::Running { .. }
                    | MachineFact::Unreachable { .. },
                    _,
                )) => true,
            }
        };
        let mut month = Month::default();
        for machine in machines.filter(there) {
            self.add(&mut month, machine);
        }
        month
    }

    fn add(&self, month: &mut Month, machine: &Machine) {
        let Origin::Made {
            via,
            region,
            server_type,
            hardware,
            ..
        } = &machine.origin
        else {
            return;
        };
        let free = match via {
            Provider::Simulated | Provider::Sandbox => true,
            Provider::Cloud(_) => false,
        };
        if let Some(cents) = self.of(*via, region, server_type, hardware) {
            month.cents = month.cents.saturating_add(cents);
        } else if !free {
            let spot = if hardware.spot { " as spot" } else { "" };
            let what = format!("{} {server_type}{spot}", via.as_str());
            *month.unknown.entry(what).or_insert(0) += 1;
        }
    }

    /// What a machine costs with its disk.
    fn of(&self, via: Provider, region: &str, kind: &str, hardware: &Hardware) -> Option<u64> {
        let here = |of: &Option<String>| of.as_ref().is_none_or(|of| of == region);
        let mut machines = self.machines.iter();
        let machine = machines.find(|price| {
            let same = price.provider == via && price.server_type == kind;
            same && price.spot == hardware.spot && here(&price.region)
        })?;
        let disk = match hardware.disk {
            None => 0,
            Some(size) => {
                let mut disks = self.disks.iter();
                let disk = disks.find(|price| price.provider == via && here(&price.region))?;
                let cents = disk.cents_per_100_gb.saturating_mul(u64::from(size));
                cents.div_ceil(100)
            }
        };
        Some(machine.cents.saturating_add(disk))
    }
}

impl Month {
    fn is_free(&self) -> bool {
        self.cents == 0 && self.unknown.is_empty()
    }
}

impl Cost {
    /// What the machines of a cluster cost that are seen, before and after.
    pub(crate) fn of(prices: &Prices, [before, after]: [(&Desired, &Observed); 2]) -> Self {
        let month =
            |(desired, observed): (&Desired, &Observed)| prices.month(desired.all(), observed);
        Self {
            before: month(before),
            after: month(after),
            as_of: prices.as_of.clone(),
        }
    }

    /// Whether nobody pays for anything, before or after.
    pub fn is_free(&self) -> bool {
        self.before.is_free() && self.after.is_free()
    }
}

/// Cents as people write them: in dollars.
pub fn dollars(cents: u64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// As one line: `$12.00 → $36.00 a month, …`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (dollars(self.before.cents), dollars(self.after.cents));
        write!(
            f,
            "{before} → {after} a month, a rough guess by prices of {}",
            self.as_of
        )?;
        let kinds = self.before.unknown.keys().chain(self.after.unknown.keys());
        let kinds: std::collections::BTreeSet<_> = kinds.collect();
        for (at, kind) in kinds.into_iter().enumerate() {
            let of = |month: &Month| month.unknown.get(kind).copied().unwrap_or(0);
            let begin = if at == 0 { "; unknown: " } else { ", " };
            let (before, after) = (of(&self.before), of(&self.after));
            write!(f, "{begin}{before} → {after} {kind}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
