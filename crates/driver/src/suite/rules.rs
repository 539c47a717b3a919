//! The rules of the contract, one function each.

use super::{Cast, Fixture, Trial, Verdict, done, finished, told};
use crate::{Driver, Outcome, Target};
use model::cluster::Machine;
use model::observed::{Fact, MachineFact, NodeFact, Observation};
use model::sealed::Owner;
use model::task::{Action, Task};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often a rule looks from outside while an attempt runs.
const GLANCE: Duration = Duration::from_millis(50);

/// The longest that any single attempt or look may take before a rule gives up on it.
const PATIENCE: Duration = Duration::from_hours(1);

async fn apply<F: Fixture>(fixture: &F, task: &Task) -> Result<Vec<Observation>, String> {
    let trial = Trial::new(fixture.clock());
    let attempt = fixture.driver().apply(&trial.context, task);
    match timeout(PATIENCE, attempt).await {
        Ok(outcome) => done(task, outcome),
        Err(_) => Err(format!("{} did not end", told(task))),
    }
}

async fn probe<F: Fixture>(
    fixture: &F,
    cast: &Cast,
    machines: Vec<Machine>,
) -> Result<Vec<Observation>, String> {
    let trial = Trial::new(fixture.clock());
    let target = Target {
        cluster: cast.cluster,
        machines,
    };
    let began = fixture.clock().now();
    let look = fixture.driver().probe(&trial.context, &target);
    let seen = timeout(PATIENCE, look)
        .await
        .map_err(|_| "a look did not end".to_owned())?;
    let ended = fixture.clock().now();
    match seen
        .iter()
        .find(|seen| seen.at < began || seen.at > ended || seen.cluster != cast.cluster)
    {
        Some(wrong) => Err(format!("seen at the wrong time or place: {wrong:?}")),
        None => Ok(seen),
    }
}

/// Brings the cluster as far as a control plane and one joined machine.
async fn build<F: Fixture>(fixture: &F, cast: &Cast) -> Verdict {
    for task in cast.life().iter().take(4) {
        apply(fixture, task).await?;
    }
    Ok(())
}

pub(super) async fn apply_twice<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        apply(fixture, &task).await?;
        let once = fixture.picture(&cast).await;
        apply(fixture, &task).await?;
        let twice = fixture.picture(&cast).await;
        if once != twice {
            return Err(format!(
                "{}: once gave\n{once}twice gave\n{twice}",
                told(&task)
            ));
        }
    }
    Ok(())
}

pub(super) async fn nothing_is_left<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    let before = fixture.picture(&cast).await;
    for task in cast.life() {
        apply(fixture, &task).await?;
    }
    for machine in cast.machines() {
        let left = fixture.machines_named(machine.id).await;
        if left > 0 {
            return Err(format!("{left} of {} are left", machine.name));
        }
    }
    let after = fixture.picture(&cast).await;
    if before == after {
        Ok(())
    } else {
        Err(format!("before\n{before}after\n{after}"))
    }
}

pub(super) async fn interrupted_create<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    let task = cast.task(&cast.compute, Action::Create);
    {
        let trial = Trial::new(fixture.clock());
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
    apply(fixture, &task).await?;
    match fixture.machines_named(task.machine.id).await {
        1 => Ok(()),
        found => Err(format!("{found} machines bear one id")),
    }
}

pub(super) async fn remove_absent<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for (machine, action) in [
        (&cast.compute, Action::Delete),
        (&cast.given, Action::Release),
    ] {
        apply(fixture, &cast.task(machine, action)).await?;
    }
    build(fixture, &cast).await?;
    apply(fixture, &cast.task(&cast.given, Action::Leave)).await?;
    Ok(())
}

pub(super) async fn probe_changes_nothing<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    build(fixture, &cast).await?;
    let before = fixture.picture(&cast).await;
    probe(fixture, &cast, cast.machines()).await?;
    let after = fixture.picture(&cast).await;
    if before == after {
        Ok(())
    } else {
        Err(format!("before\n{before}after\n{after}"))
    }
}

pub(super) async fn probe_tells_what_it_knows<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    apply(fixture, &cast.task(&cast.control, Action::Create)).await?;
    let asked = vec![cast.control.clone(), cast.compute.clone()];
    let seen = probe(fixture, &cast, asked).await?;
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
            Fact::Machine(..) | Fact::Node(..) | Fact::ControlPlane(_) => {}
        }
    }
    if compute_absent {
        Ok(())
    } else {
        Err("a machine that was never made was not called absent".to_owned())
    }
}

pub(super) async fn silence_is_not_absence<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    build(fixture, &cast).await?;
    fixture.cut_power(&cast.compute).await;
    fixture.cut_power(&cast.control).await;
    let seen = probe(fixture, &cast, cast.machines()).await?;
    for observation in seen {
        let silent = [cast.control.id, cast.compute.id];
        match &observation.fact {
            Fact::Machine(machine, MachineFact::Absent | MachineFact::Running { .. })
            | Fact::Node(machine, NodeFact::Absent)
                if silent.contains(machine) =>
            {
                return Err(format!("a machine without power gave {observation:?}"));
            }
            Fact::Machine(..) | Fact::Node(..) | Fact::ControlPlane(_) => {}
        }
    }
    Ok(())
}

pub(super) async fn observations_agree<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        let began = fixture.clock().now();
        let reported = apply(fixture, &task).await?;
        let ended = fixture.clock().now();
        if reported.is_empty() {
            return Err(format!("{} saw nothing", told(&task)));
        }
        let seen = probe(fixture, &cast, cast.machines()).await?;
        for report in reported {
            if report.at < began || report.at > ended || report.cluster != cast.cluster {
                return Err(format!("seen at the wrong time or place: {report:?}"));
            }
            let same_object = |other: &&Observation| {
                other.fact.machine() == report.fact.machine()
                    && other.fact.source() == report.fact.source()
            };
            match seen.iter().find(same_object) {
                Some(look) if look.fact != report.fact => {
                    let (was, is) = (&report.fact, &look.fact);
                    return Err(format!("{} saw {was:?}, the next look {is:?}", told(&task)));
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}

pub(super) async fn cancelled_begins_nothing<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        let before = fixture.picture(&cast).await;
        let trial = Trial::new(fixture.clock());
        trial.cancel.cancel();
        let attempt = fixture.driver().apply(&trial.context, &task);
        match timeout(fixture.soon(), attempt).await {
            Ok(Outcome::Done(..) | Outcome::Retry(_)) => {}
            Ok(Outcome::Stuck(error)) => return Err(format!("{} got stuck: {error}", told(&task))),
            Err(_) => return Err(format!("{} did not end soon", told(&task))),
        }
        let after = fixture.picture(&cast).await;
        if before != after {
            return Err(format!("{}: before\n{before}after\n{after}", told(&task)));
        }
        apply(fixture, &task).await?;
    }
    Ok(())
}

pub(super) async fn cancelled_ends_soon<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        let trial = Trial::new(fixture.clock());
        let mut attempt = pin!(fixture.driver().apply(&trial.context, &task));
        let early = timeout(GLANCE, &mut attempt).await.is_ok();
        if !early {
            trial.cancel.cancel();
            if timeout(fixture.soon(), attempt).await.is_err() {
                return Err(format!("{} did not end soon", told(&task)));
            }
        }
        // What was interrupted can be done again.
        apply(fixture, &task).await?;
    }
    Ok(())
}

/// A worker may die after the effect and before the record: what came of it is then only in
/// the world, and the next attempt must find it there.
pub(super) async fn outputs_come_again<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        let mut came = Vec::new();
        for _ in 0..2 {
            let trial = Trial::new(fixture.clock());
            let outcome = fixture.driver().apply(&trial.context, &task).await;
            let (_, outputs) = finished(&task, outcome)?;
            let owners = [
                Owner::Cluster(task.cluster),
                Owner::Machine(task.machine.id),
            ];
            if let Some(foreign) = outputs.iter().find(|one| !owners.contains(&one.owner)) {
                return Err(format!("{} gave {foreign:?}", told(&task)));
            }
            let mut named: Vec<_> = outputs
                .into_iter()
                .map(|one| (one.owner, one.entry))
                .collect();
            named.sort();
            came.push(named);
        }
        if came[0] != came[1] {
            return Err(format!(
                "{} gave {:?}, then {:?}",
                told(&task),
                came[0],
                came[1]
            ));
        }
    }
    Ok(())
}

pub(super) async fn attempts_are_logged<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    for task in cast.life() {
        let trial = Trial::new(fixture.clock());
        let outcome = fixture.driver().apply(&trial.context, &task).await;
        done(&task, outcome)?;
        if trial.written() == 0 {
            return Err(format!("{} wrote nothing", told(&task)));
        }
    }
    Ok(())
}

pub(super) async fn stuck_has_a_hint<F: Fixture>(fixture: &F) -> Verdict {
    let cast = fixture.cast();
    let task = fixture.impossible(&cast);
    let trial = Trial::new(fixture.clock());
    match fixture.driver().apply(&trial.context, &task).await {
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
