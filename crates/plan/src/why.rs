//! The causal chain behind a cluster's state: from what is seen to what ends it.

use crate::held::{Owner, Reason};
use crate::planner::{Plan, View};
use crate::summary::Phase;
use model::task::State;
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

/// Why the cluster is as it is: the state, then what runs, then what waits, with the
/// waits that need a person first.
pub fn why(view: &View<'_>, plan: &Plan) -> Vec<Cause> {
    let summary = &plan.summary;
    let mut chain = vec![state(view, plan)];
    let name = |id| {
        view.desired
            .all()
            .find(|machine| machine.id == id)
            .map(|machine| &machine.name)
    };
    for open in view.open.iter().filter(|open| open.state == State::Running) {
        if let Some(name) = name(open.machine) {
            let fact = format!(
                "{} {name} is running, attempt {}",
                open.action.kind(),
                open.attempts
            );
            chain.push(Cause {
                fact,
                next: Some(format!("follow it with `slipway task log {}`", open.id)),
            });
        }
    }
    let due = view
        .open
        .iter()
        .filter(|open| open.state == State::Waiting && open.error.is_none())
        .count();
    if due + plan.tasks.len() > 0 {
        let fact = match due + plan.tasks.len() {
            1 => "1 task waits for a worker".to_owned(),
            many => format!("{many} tasks wait for a worker"),
        };
        chain.push(Cause {
            fact,
            next: Some("begins by itself".to_owned()),
        });
    }
    let mut held: Vec<_> = plan.held.iter().collect();
    held.sort_by_key(|held| {
        (
            held.reason.owner() == Owner::Slipway,
            !matches!(held.reason, Reason::Backoff { .. }),
        )
    });
    for held in held {
        let next = held.next_action();
        chain.push(Cause {
            fact: held.to_string(),
            next: Some(next),
        });
    }
    if chain.len() == 1 && summary.phase == Phase::Done {
        chain.push(Cause {
            fact: "everything was last seen as declared".to_owned(),
            next: None,
        });
    }
    chain
}

/// How the cluster stands.
fn state(view: &View<'_>, plan: &Plan) -> Cause {
    let (control, compute) = (plan.summary.control, plan.summary.compute);
    let fact = format!(
        "cluster {} is {} at generation {}: {} of {} control and {} of {} compute nodes are ready",
        view.desired.name,
        plan.summary.phase.as_str(),
        view.desired.generation,
        control.0,
        control.1,
        compute.0,
        compute.1,
    );
    Cause { fact, next: None }
}
