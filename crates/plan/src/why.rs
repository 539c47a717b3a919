//! The causal chain behind a cluster's state: from what is seen to what ends it.

use crate::advance::{Advance, advance, offers};
use crate::held::{self, Held, Owner, Reason};
use crate::planner::{Plan, View};
use crate::summary::Phase;
use crate::wished::wished;
use model::observed::Observed;
use model::task::{Open, State};
use model::time::Timestamp;
use std::fmt;

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What is the case.
    pub fact: String,
    /// What would change it, where there is something.
    pub next: Option<String>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)?;
        match &self.next {
            Some(next) => write!(f, "\n  → {next}"),
            None => Ok(()),
        }
    }
}

/// Why the cluster is as it is: the state, then what waits for a person, what fails and is tried
/// again, what runs, what waits for a worker, what waits for its turn, what is wished besides the
/// manifest, what could be newer, and who else is there.
pub fn why(view: &View<'_>, plan: &Plan) -> Vec<Cause> {
    // Whoever asks may be here before the planner is. A step that is stopped is none.
    let stopped = |held: &Held| matches!(held.reason, Reason::Stopped { .. });
    let step = advance(view).filter(|_| !plan.held.iter().any(stopped));
    let mut chain = vec![state(view, plan, step.as_ref())];
    let waits = held::told(&plan.held);
    let mut held: Vec<_> = waits.iter().collect();
    held.sort_by_key(|held| rank(&held.reason));
    let told = |held: &&Held| Cause {
        fact: held.to_string(),
        next: Some(next_of(held, view.now)),
    };
    chain.extend(view.observed.silence().map(|silence| Cause {
        fact: format!("its API cannot be asked: {}", silence.because),
        next: Some(silence.hint.clone()),
    }));
    let urgent = held.partition_point(|held| rank(&held.reason) < Rank::Turn);
    let (urgent, others) = held.split_at(urgent);
    chain.extend(urgent.iter().map(told));
    chain.extend(running(view));
    chain.extend(due(view, plan));
    chain.extend(step.map(|step| Cause {
        fact: format!("the next step is due: {}", step.because),
        next: Some("begins by itself".to_owned()),
    }));
    chain.extend(others.iter().map(told));
    chain.extend(tried_again(view, plan));
    let offers = offers(view).into_iter().map(|offer| Cause {
        next: Some(offer.next_action(&view.desired.name)),
        fact: offer.to_string(),
    });
    let offers: Vec<_> = offers.collect();
    let wished = wished(view.desired, view.intents, view.now);
    if chain.len() == 1 && plan.summary.phase == Phase::Done {
        let as_it_should = if wished.is_empty() {
            "as declared"
        } else {
            "as declared and wished"
        };
        chain.push(Cause {
            fact: format!("everything was last seen {as_it_should}"),
            next: None,
        });
    }
    chain.extend(wished.iter().map(|of| Cause {
        fact: of.to_string(),
        next: Some(of.next_action()),
    }));
    chain.extend(offers);
    chain.extend(strangers(view.observed).map(|node| Cause {
        fact: format!("node {node} is none of Slipway's: somebody else has joined it"),
        next: Some(format!(
            "it is left alone; if nobody needs it, run `kubectl delete node {node}`"
        )),
    }));
    chain
}

/// What ends a wait; of a try whose time has come, that it begins.
fn next_of(held: &Held, now: Timestamp) -> String {
    let due = held.reason.paused_until().filter(|due| *due <= now);
    if due.is_some() {
        "the next try is due and begins by itself; or correct the pool in the manifest, which begins anew"
            .to_owned()
    } else {
        held.next_action()
    }
}

/// Pools whose new kind failed before and is being tried again, or would be if nothing kept it: how often it was
/// tried, and how that ended, is not forgotten while nobody knows how this try ends.
fn tried_again(view: &View<'_>, plan: &Plan) -> impl Iterator<Item = Cause> {
    let waits = |error: &str| {
        let mut held = plan.held.iter();
        held.any(
            |held| matches!(&held.reason, Reason::TakenBack { error: told, .. } if told == error),
        )
    };
    let tried = view.desired.rolls.iter().filter_map(move |roll| {
        let failed = roll.failed.as_ref()?;
        let begun = !roll.coming.is_empty();
        (begun || !waits(&failed.because)).then_some((roll, failed, begun))
    });
    tried.map(|(roll, failed, begun)| {
        let now = if begun {
            "is being tried"
        } else {
            "is due to be tried"
        };
        let fact = format!(
            "the new kind of pool {} {now} for the {} time; before, it was taken back: {}",
            roll.pool,
            nth(failed.times.saturating_add(1)),
            failed.because
        );
        let next = "if it fails again, the pool stays as it was and a longer pause follows";
        Cause {
            fact,
            next: Some(next.to_owned()),
        }
    })
}

/// A number that says which: `2nd`.
fn nth(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Nodes that somebody else has joined to a cluster.
pub fn strangers(observed: &Observed) -> impl Iterator<Item = &str> {
    let strangers = observed.strays();
    let strangers = strangers.filter(|(_, stray)| stray.machine.is_none());
    strangers.map(|(node, _)| node)
}

/// What is told before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Nothing goes on before somebody acts.
    Person,
    /// It failed, and is tried again.
    Failing,
    /// It waits for others.
    Turn,
}

fn rank(reason: &Reason) -> Rank {
    let failing = matches!(
        reason,
        Reason::Backoff { .. } | Reason::TakenBack { .. } | Reason::Repair { .. }
    );
    match reason.owner() {
        Owner::Person => Rank::Person,
        Owner::Slipway if failing => Rank::Failing,
        Owner::Slipway => Rank::Turn,
    }
}

/// Tasks that somebody works on.
fn running(view: &View<'_>) -> Vec<Cause> {
    let running = view.open.iter().filter(|open| open.state == State::Running);
    let told = running.filter_map(|open| {
        let mut machines = view.desired.all();
        let machine = machines.find(|machine| machine.id == open.machine)?;
        let fact = format!(
            "{} {} is running, attempt {}",
            open.action.kind(),
            machine.name,
            open.attempts
        );
        let next = Some(format!("follow it with `slipway task log {}`", open.id));
        Some(Cause { fact, next })
    });
    told.collect()
}

/// Tasks that nobody works on yet.
fn due(view: &View<'_>, plan: &Plan) -> Option<Cause> {
    let due = |open: &&Open| open.state == State::Waiting && open.error.is_none();
    let fact = match view.open.iter().filter(due).count() + plan.tasks.len() {
        0 => return None,
        1 => "1 task waits for a worker".to_owned(),
        many => format!("{many} tasks wait for a worker"),
    };
    let next = Some("begins by itself".to_owned());
    Some(Cause { fact, next })
}

/// How the cluster stands.
fn state(view: &View<'_>, plan: &Plan, step: Option<&Advance>) -> Cause {
    let (control, compute) = (plan.summary.control, plan.summary.compute);
    let phase = match (plan.summary.phase, step) {
        (Phase::Done, Some(_)) => Phase::Scheduled,
        (phase, _) => phase,
    };
    let go = match plan.summary.leaving {
        0 => String::new(),
        1 => "; 1 machine is to go".to_owned(),
        many => format!("; {many} machines are to go"),
    };
    let fact = format!(
        "cluster {} is {} at generation {}: {} of {} control and {} of {} compute nodes are ready{go}",
        view.desired.name,
        phase.as_str(),
        view.desired.generation,
        control.0,
        control.1,
        compute.0,
        compute.1,
    );
    Cause { fact, next: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use crate::plan;
    use expect_test::expect;
    use model::observed::Silence;
    use model::task::Action;

    #[test]
    fn what_needs_a_person_comes_first_and_what_waits_for_its_turn_last() {
        let all = "c1 c2 c3 w1 w2 w3";
        let world = World::new("1.35.0", all, "c1@35 c2@35 c3@35 w1 w2? w3~-")
            .open("w1", Action::Drain, State::Running, None)
            .open("w3", Action::Create, State::Waiting, Some("out of stock"));
        let plan = plan(&world.view());
        let told: String = why(&world.view(), &plan)
            .iter()
            .map(|cause| format!("{cause}\n"))
            .collect();
        expect![[r#"
            cluster edge is error at generation 7: 3 of 3 control and 1 of 3 compute nodes are ready
            join w2: the machine does not answer
              → switch it on; or, if it is lost, take it out of the manifest where it was given, and run `slipway machine replace w2` where Slipway made it
            create w3: tried 1×: out of stock
              → tries again by itself
            drain w1 is running, attempt 1
              → follow it with `slipway task log task-3wzpqyd9dvzbb`
            upgrade w1: additions come first: 1 not ready yet (w3)
              → continues when w3 is ready
            upgrade w2: one at a time, after w1
              → continues after w1
        "#]].assert_eq(&told);
    }

    #[test]
    fn a_cluster_whose_api_cannot_be_asked_is_not_as_declared() {
        let mut world = World::new("1.34.0", "c1 w1", "c1 w1");
        let silence = Silence {
            because: "what opens it has ended (KUBE-002)".to_owned(),
            hint: "make it anew".to_owned(),
        };
        world.observed.silence = Some((Some(silence), world.now));
        let plan = plan(&world.view());
        let told: String = why(&world.view(), &plan)
            .iter()
            .map(|cause| format!("{cause}\n"))
            .collect();
        expect![[r#"
            cluster edge is error at generation 7: 1 of 1 control and 1 of 1 compute nodes are ready
            its API cannot be asked: what opens it has ended (KUBE-002)
              → make it anew
        "#]]
        .assert_eq(&told);
        assert_eq!(
            plan.summary.message,
            "its API cannot be asked: what opens it has ended (KUBE-002)"
        );
        // Whoever takes it away waits for nobody.
        let mut goes = World::new("1.34.0", "", "c1 w1");
        goes.desired.tombstone = true;
        goes.observed.silence = world.observed.silence;
        assert_eq!(crate::plan(&goes.view()).summary.phase, Phase::Deleting);
    }

    #[test]
    fn who_serves_until_its_successor_has_come_is_counted() {
        let told = |want: &str, have: &str| {
            let world = World::new("1.34.0", want, have);
            let plan = plan(&world.view());
            let told = why(&world.view(), &plan).into_iter().next();
            (plan.summary.control, told.map(|first| first.fact))
        };
        let (control, fact) = told("c4 c5 c6 w1", "c1 c2 c3 w1");
        assert_eq!(control, (3, 3));
        expect!["cluster edge is scheduled at generation 7: 3 of 3 control and 1 of 1 compute nodes are ready; 3 machines are to go"]
            .assert_eq(&fact.unwrap());
        assert_eq!(told("c1 w1", "c1 c2 c3 w1").0, (1, 1));
        assert_eq!(told("c1 c2 c3", "c1 c2! c4?").0, (1, 3));
    }

    #[test]
    fn what_is_stuck_in_the_same_way_is_one_sentence() {
        let stuck = |world: World, name: &str, error: &str| {
            world.open(name, Action::Create, State::Stuck, Some(error))
        };
        let world = World::new("1.35.0", "c1 w1 w2 w3", "c1@35");
        let world = stuck(world, "w1", "nobody here makes them");
        let world = stuck(world, "w2", "nobody here makes them");
        let world = stuck(world, "w3", "no such image");
        let plan = plan(&world.view());
        let told: String = why(&world.view(), &plan)
            .iter()
            .map(|cause| format!("{cause}\n"))
            .collect();
        expect![[r#"
            cluster edge is error at generation 7: 1 of 1 control and 0 of 3 compute nodes are ready
            create w1 and 1 more: stuck: nobody here makes them
              → correct the manifest, or mend the cause and run `slipway task retry task-3wzpqyd9dvzbb`; `slipway get tasks --state stuck` lists those of the others
            create w3: stuck: no such image
              → correct the manifest, or mend the cause and run `slipway task retry task-987kbh9qnkf3r`
        "#]].assert_eq(&told);
    }
}
