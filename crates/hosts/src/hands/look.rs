//! Looking at one host: what it says of itself, and whether it answers at all.

use super::entry::Entry;
use super::owner::FILE as OWNER_FILE;
use super::{Hosts, given, gone, tell};
use crate::error::{Error, Kind};
use crate::program::Program;
use crate::recipe::{self, Looked};
use crate::{balancer, mesh, playbook};
use driver::{Context, Target};
use model::cluster::Machine;
use model::id::ClusterId;
use model::observed::{Fact, HostFact, MachineFact, Observation};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

/// How long a host may take to describe itself.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// How long one host may keep a probe waiting, whatever it does meanwhile. Well below what a whole
/// probe may take, and enough for the second row of those that wait for connections to be opened.
pub(super) const PATIENCE: Duration = Duration::from_secs(22);

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
            heard: mesh::heard(&report)?,
            balance: balancer::read(&report)?,
        };
        Ok((looked, host))
    }

    /// Looks at all machines at once. Each has its own time: one that dawdles takes nothing from
    /// what was seen of the others.
    pub(super) async fn looked_at(
        &self,
        cx: &Context,
        target: &Target,
        patience: Duration,
    ) -> Vec<Observation> {
        let (cluster, until) = (target.cluster, Instant::now() + patience);
        let mut looks = JoinSet::new();
        for machine in &target.machines {
            let (this, cx, machine) = (self.clone(), cx.clone(), machine.clone());
            looks.spawn(async move {
                let at = cx.now();
                let facts = this.seen(&cx, cluster, &machine, until).await;
                let seen = facts.into_iter();
                seen.map(|fact| Observation { cluster, fact, at })
                    .collect::<Vec<_>>()
            });
        }
        let mut seen = Vec::new();
        while let Some(looked) = looks.join_next().await {
            match looked {
                Ok(facts) => seen.extend(facts),
                Err(error) => tracing::error!(%error, "a look at a host broke down"),
            }
        }
        seen
    }

    /// What is to be seen of a machine until then; what cannot be told is left out.
    async fn seen(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        until: Instant,
    ) -> Vec<Fact> {
        let fair = until.saturating_duration_since(Instant::now()) / 4;
        let entry = match timeout_at(until, self.entry(cx, cluster, machine)).await {
            Ok(Ok(entry)) => entry,
            Ok(Err(error)) if error.kind == Kind::NoSuchHost => return vec![gone(machine)],
            Ok(Err(error)) => {
                tracing::debug!(machine = %machine.name, "could not look: {error}");
                return Vec::new();
            }
            Err(_) => {
                tracing::warn!(machine = %machine.name, "could not look: its keys are not there yet");
                return Vec::new();
            }
        };
        // One that nobody has entered yet is not ours to speak of.
        if given(machine).is_some() && entry.seen().is_none() {
            return Vec::new();
        }
        match timeout_at(until, self.look(cx, &entry)).await {
            Ok(looked) => told(cx, machine, &entry, looked),
            Err(_) if cx.is_cancelled() => Vec::new(),
            Err(_) if entry.waited() >= fair => {
                tracing::warn!(machine = %machine.name, "{} took too long to be looked at", entry.door);
                vec![unreachable(machine, None)]
            }
            // It had no turn, or only at the very end: nobody knows how it is.
            Err(_) => {
                tracing::warn!(machine = %machine.name, "there was no time to look at {}", entry.door);
                Vec::new()
            }
        }
    }
}

/// What a look that ended says of a machine.
fn told(
    cx: &Context,
    machine: &Machine,
    entry: &Entry<'_>,
    looked: Result<(Looked, HostFact), Error>,
) -> Vec<Fact> {
    match looked {
        // It was given back, or somebody else has it now.
        Ok((looked, _)) if given(machine).is_some() && !is_ours(&looked, machine) => {
            vec![gone(machine)]
        }
        Ok((_, host)) => {
            let running = MachineFact::Running {
                reference: reference(machine),
                address: entry.door.host,
            };
            vec![
                Fact::Machine(machine.id, running),
                Fact::Host(machine.id, host),
            ]
        }
        Err(_) if cx.is_cancelled() => Vec::new(),
        Err(error) => {
            tracing::warn!(machine = %machine.name, "could not look: {error}");
            let away = out_of_reach(error.kind);
            let because = answers(error.kind).then(|| {
                let (what, kind) = (&error.what, error.kind);
                format!("{what} ({}); {}", kind.code(), kind.hint())
            });
            away.then(|| unreachable(machine, because))
                .into_iter()
                .collect()
        }
    }
}

fn unreachable(machine: &Machine, because: Option<String>) -> Fact {
    let reference = reference(machine);
    let unreachable = MachineFact::Unreachable { reference, because };
    Fact::Machine(machine.id, unreachable)
}

/// Whether a look that ended so found somebody who answers: what is wrong with them is told then,
/// and the same words each time.
const fn answers(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ChangedHostKey | Kind::WrongKey | Kind::NoSudo | Kind::NoPassage | Kind::MissingTool
    )
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
    looked.machine() == Some(machine.id.to_string().as_str())
}

/// Whether a look that ended so says of the host that it is out of our reach: it does not answer,
/// it does not let us in, or what answers is nothing we could work with.
///
/// What went wrong on our side says nothing of the host: when it was last seen grows old.
const fn out_of_reach(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Refused
            | Kind::Silent
            | Kind::Hung
            | Kind::Lost
            | Kind::ChangedHostKey
            | Kind::WrongKey
            | Kind::NoSudo
            | Kind::NoPassage
            | Kind::Garbage
            | Kind::MissingTool
            | Kind::Flood
    )
}

/// How far a clock is off, in whole seconds: ahead of ours is more than nothing.
fn clock_off(looked: &Looked, before: SystemTime, after: SystemTime) -> i64 {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let ahead = looked.clock.duration_since(after).unwrap_or_default();
    let behind = before.duration_since(looked.clock).unwrap_or_default();
    seconds(ahead) - seconds(behind)
}

#[cfg(test)]
mod tests;
