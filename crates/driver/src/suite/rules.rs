//! The rules of the contract, one function each.

use super::{Beat, Fixture, Play, Verdict, done, equip, equip_through_proxy, finished, told};
use crate::{Driver, Outcome, Target};
use model::addon::{Addon, AddonName, AddonsFact};
use model::care::Care;
use model::cluster::Machine;
use model::dns::Naming;
use model::id::{self, IntentId, MachineId};
use model::mesh::{Member, Mesh};
use model::observed::{Fact, HostFact, MachineFact, NodeFact, Observation, PortFact};
use model::sealed::Owner;
use model::snapshot::{Destination, RestoredFact, Restoring};
use model::task::{Action, Kind, Task};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often a rule looks from outside while an attempt runs.
const GLANCE: Duration = Duration::from_millis(50);

/// The longest that any single attempt or look may take before a rule gives up on it.
const PATIENCE: Duration = Duration::from_hours(1);

impl<F: Fixture> Play<'_, F> {
    /// Makes an attempt that must work; answers what it saw.
    async fn apply(&self, task: &Task) -> Result<Vec<Observation>, String> {
        let trial = self.trial();
        let attempt = self.fixture.driver().apply(&trial.context, task);
        match timeout(PATIENCE, attempt).await {
            Ok(outcome) => {
                let (seen, outputs) = finished(task, outcome)?;
                self.keep(&outputs);
                Ok(seen)
            }
            Err(_) => Err(format!("{} did not end", told(task))),
        }
    }

    async fn act(&self, machine: &Machine, action: Action) -> Result<Vec<Observation>, String> {
        self.apply(&self.cast.task(machine, action)).await
    }

    /// The task of a beat, now that everything before it is done.
    async fn task(&self, beat: &Beat) -> Result<Task, String> {
        match beat {
            Beat::Do(machine, action) => Ok(self.cast.task(machine, action.clone())),
            Beat::Connect(machines) => self.connect(machines).await,
            Beat::PutBack(nodes) => self.put_back(nodes).await,
        }
    }

    /// The task that connects machines with each other, with the keys that they tell.
    async fn connect(&self, machines: &[Machine]) -> Result<Task, String> {
        let Some(first) = machines.first() else {
            return Err("nobody is to be connected".to_owned());
        };
        let seen = self.probe(machines.to_vec()).await?;
        let member = |machine: &Machine| {
            let host = host(&seen, machine.id)?;
            Some(Member {
                machine: machine.clone(),
                key: host.mesh_key.clone()?,
                at: host.at?,
                pods: None,
            })
        };
        let mut members = Vec::new();
        for machine in machines {
            let name = &machine.name;
            let untold = || format!("{name} does not tell its key, or where it was entered");
            members.push(member(machine).ok_or_else(untold)?);
        }
        members.sort_by_key(|member| member.machine.address);
        let mesh = Mesh {
            network: self.cast.network,
            pods: None,
            to: members.iter().map(|member| member.machine.id).collect(),
            members,
        };
        Ok(self.cast.task(first, Action::Mesh { mesh }))
    }

    /// The task that puts the newest snapshot back.
    async fn put_back(&self, nodes: &[Machine]) -> Result<Task, String> {
        let Some(first) = nodes.first() else {
            return Err("there is no member of etcd".to_owned());
        };
        let seen = self.probe(nodes.to_vec()).await?;
        let snapshot = seen.iter().find_map(|seen| {
            if let Fact::Snapshots(fact) = &seen.fact {
                fact.kept.last()
            } else {
                None
            }
        });
        let snapshot = snapshot.ok_or("nobody tells of a snapshot")?.id.clone();
        let restoring = Restoring {
            snapshot,
            wish: IntentId::derive(id::Origin {
                parent: &self.cast.cluster.to_string(),
                name: "restore",
                ordinal: 0,
                incarnation: 0,
            }),
            asked_at: model::time::Timestamp::from_millis(0),
            from: Destination::Directory { name: None },
            nodes: nodes.to_vec(),
        };
        Ok(self.cast.task(first, Action::Restore { restoring }))
    }

    async fn probe(&self, machines: Vec<Machine>) -> Result<Vec<Observation>, String> {
        let trial = self.trial();
        let clock = self.fixture.clock();
        let target = Target {
            cluster: self.cast.cluster,
            machines,
            whole: false,
        };
        let began = clock.now();
        let look = self.fixture.driver().probe(&trial.context, &target);
        let seen = timeout(PATIENCE, look)
            .await
            .map_err(|_| "a look did not end".to_owned())?;
        let ended = clock.now();
        let wrong = |seen: &&Observation| {
            seen.at < began || seen.at > ended || seen.cluster != self.cast.cluster
        };
        match seen.iter().find(wrong) {
            Some(wrong) => Err(format!("seen at the wrong time or place: {wrong:?}")),
            None => Ok(seen),
        }
    }

    async fn picture(&self) -> String {
        self.fixture.picture(&self.cast).await
    }

    /// Has the key made that opens machines, where they are opened.
    async fn key(&self) -> Verdict {
        if self.cast.hosts() {
            self.act(&self.cast.control, Action::Key).await?;
        }
        Ok(())
    }

    /// Brings the cluster as far as a control plane and one joined machine.
    async fn build(&self) -> Verdict {
        for beat in self.cast.founding() {
            if self.cast.kubernetes || !beat.kind().of_kubernetes() {
                self.apply(&self.task(&beat).await?).await?;
            }
        }
        Ok(())
    }

    /// Makes a machine and brings it to what its role needs.
    async fn raise(&self, machine: &Machine) -> Verdict {
        self.act(machine, Action::Create).await?;
        self.act(machine, equip(machine)).await?;
        Ok(())
    }

    /// What a machine tells of itself now.
    async fn told_by(&self, machine: &Machine) -> Result<HostFact, String> {
        let seen = self.probe(vec![machine.clone()]).await?;
        let told = host(&seen, machine.id).cloned();
        told.ok_or_else(|| format!("{} tells nothing of itself", machine.name))
    }
}

/// What a host was seen to tell of itself.
fn host(seen: &[Observation], machine: MachineId) -> Option<&HostFact> {
    seen.iter().find_map(|observation| match &observation.fact {
        Fact::Host(of, fact) if *of == machine => Some(fact),
        Fact::Host(..)
        | Fact::Machine(..)
        | Fact::Node(..)
        | Fact::ControlPlane(_)
        | Fact::Certificates(..)
        | Fact::Addons(_)
        | Fact::Strays(_)
        | Fact::Silence(_)
        | Fact::Snapshots(_)
        | Fact::Restored(_)
        | Fact::Names(..)
        | Fact::Port(..)
        | Fact::Commit(..)
        | Fact::Unresolved(..)
        | Fact::Access(_) => None,
    })
}

pub(super) async fn apply_twice<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        play.apply(&task).await?;
        let once = play.picture().await;
        play.apply(&task).await?;
        let twice = play.picture().await;
        if once != twice {
            return Err(format!(
                "{}: once gave\n{once}twice gave\n{twice}",
                told(&task)
            ));
        }
    }
    Ok(())
}

pub(super) async fn nothing_is_left<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let before = play.picture().await;
    for beat in play.cast.life() {
        play.apply(&play.task(&beat).await?).await?;
    }
    for machine in play.cast.machines() {
        let left = play.fixture.machines_named(machine.id).await;
        if left > 0 {
            return Err(format!("{left} of {} are left", machine.name));
        }
    }
    same(&before, &play.picture().await)
}

fn same(before: &str, after: &str) -> Verdict {
    if before == after {
        Ok(())
    } else {
        Err(format!("before\n{before}after\n{after}"))
    }
}

pub(super) async fn interrupted_create<F: Fixture>(play: Play<'_, F>) -> Verdict {
    play.key().await?;
    let fixture = play.fixture;
    let task = play.cast.task(&play.cast.compute, Action::Create);
    {
        let trial = play.trial();
        let mut attempt = pin!(fixture.driver().apply(&trial.context, &task));
        // The worker dies as soon as the machine exists: the attempt is dropped.
        loop {
            tokio::select! {
                biased;
                outcome = &mut attempt => { done(&task, outcome)?; break; }
                () = sleep(GLANCE) => {}
            }
            if fixture.machines_named(task.machine.id).await > 0 {
                break;
            }
        }
    }
    play.apply(&task).await?;
    match fixture.machines_named(task.machine.id).await {
        1 => Ok(()),
        found => Err(format!("{found} machines bear one id")),
    }
}

pub(super) async fn dropped_in_the_middle<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        {
            let trial = play.trial();
            let attempt = play.fixture.driver().apply(&trial.context, &task);
            // Whether it ended by then makes no difference: nobody heard of it.
            drop(timeout(GLANCE, attempt).await);
        }
        play.apply(&task).await?;
        let once = play.picture().await;
        play.apply(&task).await?;
        let twice = play.picture().await;
        same(&once, &twice).map_err(|how| format!("{}: {how}", told(&task)))?;
    }
    Ok(())
}

pub(super) async fn remove_absent<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let cast = &play.cast;
    play.act(&cast.compute, Action::Delete).await?;
    play.act(&cast.given, Action::Release).await?;
    play.build().await?;
    if cast.kubernetes {
        play.act(&cast.given, Action::Leave).await?;
    }
    Ok(())
}

pub(super) async fn probe_changes_nothing<F: Fixture>(play: Play<'_, F>) -> Verdict {
    play.build().await?;
    let before = play.picture().await;
    play.probe(play.cast.machines()).await?;
    same(&before, &play.picture().await)
}

pub(super) async fn probe_tells_what_it_knows<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let cast = &play.cast;
    play.key().await?;
    play.act(&cast.control, Action::Create).await?;
    let asked = vec![cast.control.clone(), cast.compute.clone()];
    let seen = play.probe(asked).await?;
    let mut compute_absent = false;
    for observation in &seen {
        match &observation.fact {
            Fact::Machine(machine, MachineFact::Absent) if *machine == cast.control.id => {
                return Err("a machine that exists was called absent".to_owned());
            }
            Fact::Machine(machine, fact) if *machine == cast.compute.id => {
                compute_absent = *fact == MachineFact::Absent;
            }
            fact if fact.machine() == Some(cast.given.id) => {
                return Err("a machine was spoken of that nobody asked for".to_owned());
            }
            Fact::Host(machine, _) if *machine == cast.compute.id => {
                return Err("a machine that was never made told of itself".to_owned());
            }
            Fact::Machine(..)
            | Fact::Node(..)
            | Fact::ControlPlane(_)
            | Fact::Host(..)
            | Fact::Certificates(..)
            | Fact::Addons(_)
            | Fact::Strays(_)
            | Fact::Silence(_)
            | Fact::Snapshots(_)
            | Fact::Restored(_)
            | Fact::Names(..)
            | Fact::Port(..)
            | Fact::Commit(..)
            | Fact::Unresolved(..)
            | Fact::Access(_) => {}
        }
    }
    if compute_absent {
        Ok(())
    } else {
        Err("a machine that was never made was not called absent".to_owned())
    }
}

pub(super) async fn silence_is_not_absence<F: Fixture>(play: Play<'_, F>) -> Verdict {
    play.build().await?;
    let cast = &play.cast;
    play.fixture.cut_power(&cast.compute).await;
    play.fixture.cut_power(&cast.control).await;
    let seen = play.probe(cast.machines()).await?;
    for observation in seen {
        let silent = [cast.control.id, cast.compute.id];
        match &observation.fact {
            Fact::Machine(machine, MachineFact::Absent | MachineFact::Running { .. })
            | Fact::Node(machine, NodeFact::Absent)
            | Fact::Host(machine, _)
            | Fact::Certificates(machine, _)
                if silent.contains(machine) =>
            {
                return Err(format!("a machine without power gave {observation:?}"));
            }
            Fact::Machine(..)
            | Fact::Node(..)
            | Fact::ControlPlane(_)
            | Fact::Host(..)
            | Fact::Certificates(..)
            | Fact::Addons(_)
            | Fact::Strays(_)
            | Fact::Silence(_)
            | Fact::Snapshots(_)
            | Fact::Restored(_)
            | Fact::Names(..)
            | Fact::Port(..)
            | Fact::Commit(..)
            | Fact::Unresolved(..)
            | Fact::Access(_) => {}
        }
    }
    Ok(())
}

pub(super) async fn observations_agree<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let clock = play.fixture.clock();
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let began = clock.now();
        let reported = play.apply(&task).await?;
        let ended = clock.now();
        if reported.is_empty() {
            return Err(format!("{} saw nothing", told(&task)));
        }
        let seen = play.probe(play.cast.machines()).await?;
        for report in reported {
            if report.at < began || report.at > ended || report.cluster != play.cast.cluster {
                return Err(format!("seen at the wrong time or place: {report:?}"));
            }
            let same_object = |other: &&Observation| {
                other.fact.machine() == report.fact.machine()
                    && other.fact.source() == report.fact.source()
            };
            match seen.iter().find(same_object) {
                Some(look) if lasting(&look.fact) != lasting(&report.fact) => {
                    let (was, is) = (&report.fact, &look.fact);
                    return Err(format!("{} saw {was:?}, the next look {is:?}", told(&task)));
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}

pub(super) async fn led_where_foreseen<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let before = play.probe(task.touched()).await?;
        // Some of it only whoever did it can tell, as that there is a key.
        let mut after = play.apply(&task).await?;
        after.extend(play.probe(task.touched()).await?);
        let wrong = play.fixture.unforeseen(&task, &before, &after);
        if !wrong.is_empty() {
            return Err(format!("{}: {}", told(&task), wrong.join("; ")));
        }
    }
    Ok(())
}

/// A fact without what changes by itself: tunnels come into use when there is something to say.
fn lasting(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    if let Fact::Host(_, host) = &mut fact {
        host.heard = None;
    }
    fact
}

pub(super) async fn cancelled_begins_nothing<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let before = play.picture().await;
        let trial = play.trial();
        trial.cancel.cancel();
        let attempt = play.fixture.driver().apply(&trial.context, &task);
        match timeout(play.fixture.soon(), attempt).await {
            Ok(Outcome::Done(..) | Outcome::Retry(_)) => {}
            Ok(Outcome::Stuck(error)) => return Err(format!("{} got stuck: {error}", told(&task))),
            Err(_) => return Err(format!("{} did not end soon", told(&task))),
        }
        let after = play.picture().await;
        same(&before, &after).map_err(|how| format!("{}: {how}", told(&task)))?;
        play.apply(&task).await?;
    }
    Ok(())
}

pub(super) async fn cancelled_ends_soon<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let trial = play.trial();
        let mut attempt = pin!(play.fixture.driver().apply(&trial.context, &task));
        let early = timeout(GLANCE, &mut attempt).await.is_ok();
        if !early {
            trial.cancel.cancel();
            if timeout(play.fixture.soon(), attempt).await.is_err() {
                return Err(format!("{} did not end soon", told(&task)));
            }
        }
        // What was interrupted can be done again.
        play.apply(&task).await?;
    }
    Ok(())
}

/// A worker may die after the effect and before the record: what came of it is then only in
/// the world, and the next attempt must find it there.
pub(super) async fn outputs_come_again<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let mut came = Vec::new();
        let mut last = Vec::new();
        for _ in 0..2 {
            let trial = play.trial();
            let outcome = play.fixture.driver().apply(&trial.context, &task).await;
            let (_, outputs) = finished(&task, outcome)?;
            let owners = [
                Owner::Cluster(task.cluster),
                Owner::Machine(task.machine.id),
            ];
            if let Some(foreign) = outputs.iter().find(|one| !owners.contains(&one.owner)) {
                return Err(format!("{} gave {foreign:?}", told(&task)));
            }
            let mut named: Vec<_> = outputs
                .iter()
                .map(|one| (one.owner.clone(), one.entry.clone()))
                .collect();
            named.sort();
            came.push(named);
            last = outputs;
        }
        if came[0] != came[1] {
            return Err(format!(
                "{} gave {:?}, then {:?}",
                told(&task),
                came[0],
                came[1]
            ));
        }
        if beat.kind() == Kind::Key && last.is_empty() {
            return Err(format!("{} gave nothing", told(&task)));
        }
        // Only what the second attempt gave is recorded, as if the first had been lost.
        play.keep(&last);
    }
    Ok(())
}

pub(super) async fn attempts_are_logged<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let trial = play.trial();
        let outcome = play.fixture.driver().apply(&trial.context, &task).await;
        let (_, outputs) = finished(&task, outcome)?;
        play.keep(&outputs);
        if trial.written() == 0 {
            return Err(format!("{} wrote nothing", told(&task)));
        }
    }
    Ok(())
}

pub(super) async fn stuck_has_a_hint<F: Fixture>(play: Play<'_, F>) -> Verdict {
    play.key().await?;
    let task = play.fixture.impossible(&play.cast);
    let trial = play.trial();
    match play.fixture.driver().apply(&trial.context, &task).await {
        Outcome::Stuck(error) if error.attempted.trim().is_empty() => {
            Err("does not say what was attempted".to_owned())
        }
        Outcome::Stuck(error) if error.hint.trim().is_empty() => {
            Err("does not say what would help".to_owned())
        }
        Outcome::Stuck(_) => Ok(()),
        Outcome::Done(..) => Err(format!("{} worked", told(&task))),
        Outcome::Retry(error) => Err(format!("{} asked for a retry: {error}", told(&task))),
    }
}

/// Whether add-ons were seen to be as they should be, and others to be gone.
fn installed(seen: &[Observation], addons: &[Addon], remove: &[AddonName]) -> bool {
    seen.iter().any(|observation| {
        let Fact::Addons(AddonsFact { addons: there }) = &observation.fact else {
            return false;
        };
        let is = |addon: &Addon| there.get(&addon.name).is_some_and(|fact| fact.is(addon));
        addons.iter().all(is) && !remove.iter().any(|name| there.contains_key(name))
    })
}

/// Whoever did something to hosts tells of each that it is as it was told.
pub(super) async fn told_is_told<F: Fixture>(play: Play<'_, F>) -> Verdict {
    for beat in play.cast.life() {
        let task = play.task(&beat).await?;
        let seen = play.apply(&task).await?;
        let this = host(&seen, task.machine.id);
        let as_told = match &task.action {
            Action::Key => {
                let access = |seen: &Observation| matches!(seen.fact, Fact::Access(_));
                seen.iter().any(access)
            }
            // A new machine may be too new to be entered; an old one has nothing left on it.
            Action::Create | Action::CreateExposed | Action::Prepare => {
                this.is_none_or(|host| host.equipped.is_none())
            }
            Action::Equip { recipe } => this.is_some_and(|host| {
                host.equipped == Some(recipe.fingerprint()) && host.mesh_key.is_some()
            }),
            Action::Mesh { mesh } => mesh.to.iter().all(|machine| {
                let wished = mesh.tunnel(*machine).map(|tunnel| tunnel.fact());
                let has = host(&seen, *machine).and_then(|host| host.mesh.clone());
                wished.is_some() && has == wished
            }),
            Action::Balance { balance } => this.is_some_and(|host| {
                let fact = host.balance.as_ref();
                fact.is_some_and(|fact| fact.told == balance.fingerprint())
            }),
            Action::Name { naming } => led(&seen, task.machine.id, naming),
            Action::Expose | Action::Shut => {
                let open = task.action == Action::Expose;
                let port = Fact::Port(task.machine.id, PortFact { open });
                seen.iter().any(|seen| seen.fact == port)
            }
            Action::Install { addons, remove } => installed(&seen, addons, remove),
            Action::Clear { leftovers } => leftovers.iter().all(|left| {
                let gone = Fact::Node(left.machine, NodeFact::Absent);
                seen.iter().any(|seen| seen.fact == gone)
            }),
            Action::Init { care, .. } | Action::Join { care, .. } | Action::Tend { care } => {
                carries(&seen, task.machine.id, care)
            }
            Action::Snapshot { taking } => seen.iter().any(|seen| {
                matches!(&seen.fact, Fact::Snapshots(fact) if fact.kept.last().is_some_and(
                    |newest| (newest.version, newest.before) == (taking.version, taking.before)
                ))
            }),
            Action::Restore { restoring } => {
                let restored = Fact::Restored(RestoredFact {
                    snapshot: restoring.snapshot.clone(),
                    wish: restoring.wish,
                });
                seen.iter().any(|seen| seen.fact == restored)
            }
            Action::Drain
            | Action::Upgrade { .. }
            | Action::Renew { .. }
            | Action::Uncordon
            | Action::Readmit { .. }
            | Action::Leave
            | Action::Delete
            | Action::Release => true,
        };
        if !as_told {
            return Err(format!("{} saw {seen:?}", told(&task)));
        }
    }
    Ok(())
}

/// Whether names were seen to lead to a machine as they should.
fn led(seen: &[Observation], machine: MachineId, naming: &Naming) -> bool {
    let wished = naming.fact();
    seen.iter().any(|seen| {
        matches!(&seen.fact, Fact::Names(id, fact) if *id == machine && fact.leads_like(&wished))
    })
}

/// Whether the node of a machine was seen to carry this.
fn carries(seen: &[Observation], machine: MachineId, told: &Care) -> bool {
    seen.iter().any(|seen| {
        matches!(&seen.fact, Fact::Node(id, NodeFact::Joined { care, .. })
            if *id == machine && *care == Some(told.fingerprint()))
    })
}

pub(super) async fn equipped_in_place<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let compute = &play.cast.compute;
    play.build().await?;
    let before = play.told_by(compute).await?;
    play.act(compute, equip_through_proxy(compute)).await?;
    let after = play.told_by(compute).await?;
    let kept = (&before.mesh_key, &before.mesh, &before.boot)
        == (&after.mesh_key, &after.mesh, &after.boot);
    if kept && before.equipped != after.equipped {
        Ok(())
    } else {
        Err(format!("told {before:?}, then {after:?}"))
    }
}

pub(super) async fn made_again_is_bare<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let compute = &play.cast.compute;
    play.key().await?;
    play.raise(compute).await?;
    let first = play.told_by(compute).await?;
    play.act(compute, Action::Delete).await?;
    play.act(compute, Action::Create).await?;
    let bare = play.told_by(compute).await?;
    if bare.equipped.is_some() || bare.mesh_key.is_some() || bare.mesh.is_some() {
        return Err(format!("made again, it told {bare:?}"));
    }
    play.act(compute, equip(compute)).await?;
    let second = play.told_by(compute).await?;
    if first.mesh_key == second.mesh_key {
        return Err(format!("both of its lives have {:?}", second.mesh_key));
    }
    Ok(())
}

pub(super) async fn mesh_names_the_silent<F: Fixture>(play: Play<'_, F>) -> Verdict {
    let (control, compute) = (&play.cast.control, &play.cast.compute);
    play.key().await?;
    play.raise(control).await?;
    play.raise(compute).await?;
    let task = play.connect(&[control.clone(), compute.clone()]).await?;
    play.fixture.cut_power(compute).await;
    let trial = play.trial();
    let attempt = play.fixture.driver().apply(&trial.context, &task);
    let outcome = timeout(PATIENCE, attempt)
        .await
        .map_err(|_| format!("{} did not end", told(&task)))?;
    match outcome {
        Outcome::Retry(error) if error.attempted.contains(compute.name.as_str()) => {}
        Outcome::Retry(_) | Outcome::Done(..) | Outcome::Stuck(_) => {
            return Err(format!("ended with {outcome:?}"));
        }
    }
    let Action::Mesh { mesh } = &task.action else {
        return Ok(());
    };
    let wished = mesh.tunnel(control.id).map(|tunnel| tunnel.fact());
    let told = play.told_by(control).await?;
    if told.mesh == wished {
        Ok(())
    } else {
        Err(format!("who answers told {told:?}"))
    }
}
