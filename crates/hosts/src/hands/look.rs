//! Looking at one host: what it says of itself, and whether it answers at all.

use super::entry::Entry;
use super::{Hosts, OWNER_FILE, given, gone, tell};
use crate::error::{Error, Kind};
use crate::program::Program;
use crate::recipe::{self, Looked};
use crate::{balancer, mesh, playbook};
use driver::Context;
use model::cluster::Machine;
use model::id::ClusterId;
use model::observed::{Fact, HostFact, MachineFact};
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// How long a host may take to describe itself.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Disks are told in steps of so many hundredths: only changes are worth telling.
const DISK_STEP: u8 = 5;

impl Hosts {
    /// What a host says of itself.
    pub(super) async fn look(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
    ) -> Result<(Looked, HostFact), Error> {
        self.look_after(cx, entry, "look", Vec::new()).await
    }

    /// What a host says of itself before it is changed: one whose clock is wrong is refused.
    pub(super) async fn look_before(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
    ) -> Result<Looked, Error> {
        let before = SystemTime::now();
        let (looked, _) = self.look(cx, entry).await?;
        looked.skew(before, SystemTime::now())?;
        Ok(looked)
    }

    /// Runs programs one after the other, in one go, and then looks.
    pub(super) async fn look_after(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        title: &str,
        mut programs: Vec<Program>,
    ) -> Result<(Looked, HostFact), Error> {
        let only = programs.is_empty();
        let balance = balancer::look_snippet();
        let own = format!(
            "sw_fact machine \"$(uname -m)\"\nsw_read {OWNER_FILE}\nsw_fact owner \"$sw_read\""
        );
        let more = [own.as_str(), playbook::LOOK, mesh::look_snippet(), &balance];
        programs.push(recipe::look(&more, LOOK_MAX));
        let program = chained(title, &programs);
        let before = SystemTime::now();
        let report = self.run(cx, entry, &program).await?;
        let after = SystemTime::now();
        if !only {
            tell(cx, title, &report);
        }
        let looked = Looked::read(&report)?;
        let off = clock_off(&looked, before, after);
        let used = looked.free.map(|free| 100_u8.saturating_sub(free));
        let used = used.into_iter().max().unwrap_or_default();
        let host = HostFact {
            at: Some(entry.door.host),
            system: looked.system.clone(),
            kernel: looked.kernel.clone(),
            boot: looked.boot.clone(),
            disk_used_percent: used / DISK_STEP * DISK_STEP,
            clock_off_seconds: off,
            equipped: looked.prepared.clone(),
            mesh_key: mesh::key(&report)?,
            mesh: mesh::read(&report)?,
            balance: balancer::read(&report)?,
        };
        Ok((looked, host))
    }

    /// What is to be seen of a machine; what cannot be told is left out.
    pub(super) async fn seen(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Vec<Fact> {
        let reference = reference(machine);
        let entry = match self.entry(cx, cluster, machine).await {
            Ok(entry) => entry,
            Err(error) if error.kind == Kind::NoSuchHost => return vec![gone(machine)],
            Err(error) => {
                tracing::debug!(machine = %machine.name, "could not look: {error}");
                return Vec::new();
            }
        };
        // One that nobody has entered yet is not ours to speak of.
        if given(machine).is_some() && entry.seen().is_none() {
            return Vec::new();
        }
        let address = entry.door.host;
        match self.look(cx, &entry).await {
            // It was given back, or somebody else has it now.
            Ok((looked, _)) if given(machine).is_some() && !is_ours(&looked, machine) => {
                vec![gone(machine)]
            }
            Ok((_, host)) => vec![
                Fact::Machine(machine.id, MachineFact::Running { reference, address }),
                Fact::Host(machine.id, host),
            ],
            Err(_) if cx.is_cancelled() => Vec::new(),
            Err(error) if silent(error.kind) => {
                vec![Fact::Machine(
                    machine.id,
                    MachineFact::Unreachable { reference },
                )]
            }
            Err(error) => {
                tracing::warn!(machine = %machine.name, "could not look: {error}");
                Vec::new()
            }
        }
    }
}

/// Several programs as one: each begins when the one before has ended well.
fn chained(title: &str, programs: &[Program]) -> Program {
    let step = |program: &Program| format!("{} || exit $?\n", program.piped());
    let text: String = programs.iter().map(step).collect();
    Program {
        title: title.to_owned(),
        text: Zeroizing::new(text),
        limit: programs.iter().map(|program| program.limit).sum(),
    }
}

/// What others call a machine.
pub(super) fn reference(machine: &Machine) -> String {
    given(machine).map_or_else(|| machine.name.to_string(), |at| format!("host-{at}"))
}

fn is_ours(looked: &Looked, machine: &Machine) -> bool {
    looked.owner() == Some(machine.id.to_string().as_str())
}

/// Whether a host that answers so does not answer.
const fn silent(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Refused
            | Kind::Silent
            | Kind::Hung
            | Kind::Lost
            | Kind::ChangedHostKey
            | Kind::WrongKey
    )
}

/// How far a clock is off, in whole seconds: ahead of ours is more than nothing.
fn clock_off(looked: &Looked, before: SystemTime, after: SystemTime) -> i64 {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let ahead = looked.clock.duration_since(after).unwrap_or_default();
    let behind = before.duration_since(looked.clock).unwrap_or_default();
    seconds(ahead) - seconds(behind)
}
