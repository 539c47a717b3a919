//! What a process has used so far, as the kernel counts it.

use std::time::Duration;

use anyhow::{Context, Result};

/// Kernel ticks per second; fixed on Linux for all that `/proc` shows.
const TICKS_PER_SECOND: u64 = 100;

/// What a process has used.
pub(super) struct Usage {
    /// Time on a processor, in user and in kernel mode.
    pub(super) cpu: Duration,
    /// Memory in use.
    pub(super) resident_mib: u64,
}

impl Usage {
    /// Reads the usage of a running process.
    pub(super) fn of(process: u32) -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{process}/{name}");
            std::fs::read_to_string(&path).with_context(|| format!("could not read {path}"))
        };
        let stat = read("stat")?;
        // The name in parentheses may hold spaces: count the fields behind it.
        let (_, fields) = stat.rsplit_once(") ").context("a strange line in /proc")?;
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        let status = read("status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: u64 = resident
            .and_then(|line| line.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .context("no resident memory in /proc")?;
        Ok(Self {
            cpu: Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND),
            resident_mib: kib / 1_024,
        })
    }
}
