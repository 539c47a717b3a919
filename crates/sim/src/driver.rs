//! The simulated driver: real manners in a world that is not.
//!
//! It behaves as a driver for a real provider must: it looks before it makes, adopts what
//! a vanished attempt left, checks for cancellation before every effect and leaves out
//! what it cannot see. `driver::suite` holds it to that.

use crate::chronicle::Chronicle;
use crate::faults::{Failure, Faults, INJECTED, Moment, Profile};
use crate::world::{Begun, Change, Refusal, Step, World};
use ::driver::{Context, Driver, Error, Outcome, Target};
use model::observed::{Fact, Observation};
use model::task::{Action, Task};
use std::sync::Arc;
use tokio::time::sleep;

/// A driver for the simulated world.
pub struct Simulated {
    world: World,
    faults: Arc<Faults>,
    chronicle: Option<Arc<Chronicle>>,
}

/// Why an attempt ended without success.
enum Failed {
    Later(Error),
    Never(Error),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Later(error) => Self::Later(error),
            Refusal::Never(error) => Self::Never(error),
        }
    }
}

impl Simulated {
    /// A driver that nothing goes wrong for.
    pub fn new(world: World) -> Self {
        let faults = Arc::new(Faults::by_chance(Profile::None, 0));
        Self {
            world,
            faults,
            chronicle: None,
        }
    }

    /// A driver in a rehearsal: things go wrong, and what happens is told.
    pub(crate) fn rehearsing(world: World, faults: Arc<Faults>, chronicle: Arc<Chronicle>) -> Self {
        Self {
            world,
            faults,
            chronicle: Some(chronicle),
        }
    }

    async fn attempt(&self, cx: &Context, task: &Task) -> Result<Vec<Observation>, Failed> {
        go_on(cx)?;
        let begun = match self.world.step(task)? {
            Step::Done => {
                cx.log(&format!("{} is as wished already", task.machine.name));
                None
            }
            Step::UnderWay { until } => {
                cx.log(&format!(
                    "{} of {} is under way already; adopting it",
                    task.action.kind(),
                    task.machine.name
                ));
                Some(Begun {
                    operation: None,
                    until,
                    reference: String::new(),
                })
            }
            Step::Begin(_) => {
                let effect = self.faults.effect();
                self.faults.pass(effect, Moment::Before).await;
                go_on(cx)?;
                let begun = self.begin(cx, task)?;
                let hand = Hand::on(&self.world, begun.operation);
                self.faults.pass(effect, Moment::During).await;
                self.wait(cx, &begun).await?;
                hand.finish();
                self.faults.pass(effect, Moment::After).await;
                None
            }
        };
        if let Some(begun) = begun {
            self.wait(cx, &begun).await?;
        }
        match self.world.step(task)? {
            Step::Done => Ok(self.seen(cx, task)),
            Step::UnderWay { .. } | Step::Begin(_) => Err(Failed::Later(Error {
                attempted: format!(
                    "{} of {} was interrupted",
                    task.action.kind(),
                    task.machine.name
                ),
                hint: "tries again by itself".to_owned(),
            })),
        }
    }

    fn begin(&self, cx: &Context, task: &Task) -> Result<Begun, Failed> {
        let stretch = self.faults.stretch();
        let (kind, name) = (task.action.kind(), &task.machine.name);
        match Change::of(&task.action) {
            None => {
                let begun = self.world.order(task, stretch)?;
                cx.log(&format!("ordered {} for {name}", begun.reference));
                Ok(begun)
            }
            Some(change) => {
                let begun = self.world.begin(task, change, stretch)?;
                cx.log(&format!("began to {kind} {name} on {}", begun.reference));
                Ok(begun)
            }
        }
    }

    async fn wait(&self, cx: &Context, begun: &Begun) -> Result<(), Failed> {
        loop {
            let left = begun.until.since(self.world.now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Err(stopped()),
                () = sleep(left) => {}
            }
        }
    }

    /// What is seen of the machine when its task is done.
    fn seen(&self, cx: &Context, task: &Task) -> Vec<Observation> {
        let at = cx.now();
        let facts = self
            .world
            .facts(task.cluster, std::slice::from_ref(&task.machine));
        let about_machine = matches!(
            task.action,
            Action::Create | Action::Prepare | Action::Delete | Action::Release
        );
        let told = facts.into_iter().filter(|fact| match fact {
            Fact::Machine(..) => about_machine,
            Fact::Node(..) => !about_machine,
            Fact::ControlPlane(_) => matches!(task.action, Action::Init { .. }),
        });
        let seen: Vec<_> = told
            .map(|fact| Observation {
                cluster: task.cluster,
                fact,
                at,
            })
            .collect();
        cx.log(&format!(
            "{} {}: done",
            task.action.kind(),
            task.machine.name
        ));
        seen
    }
}

impl Driver for Simulated {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        let failure = self.faults.attempt(task.action.kind());
        let ended = match failure {
            Some(Failure::Retry) => Err(Failed::Later(injected())),
            Some(Failure::Stuck) => Err(Failed::Never(injected())),
            Some(Failure::LostAnswer) => match self.attempt(cx, task).await {
                Ok(_) => Err(Failed::Later(injected())),
                Err(failed) => Err(failed),
            },
            None => self.attempt(cx, task).await,
        };
        let outcome = match ended {
            Ok(seen) => Outcome::Done(seen),
            Err(Failed::Later(error)) => Outcome::Retry(error),
            Err(Failed::Never(error)) => Outcome::Stuck(error),
        };
        if let Outcome::Retry(error) | Outcome::Stuck(error) = &outcome {
            cx.log(&error.to_string());
        }
        if let Some(chronicle) = &self.chronicle {
            chronicle.attempt(cx.now(), task, &outcome);
        }
        outcome
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let at = cx.now();
        let facts = self.world.facts(target.cluster, &target.machines);
        let seen = facts.into_iter().map(|fact| Observation {
            cluster: target.cluster,
            fact,
            at,
        });
        let (delay, shown) = self.faults.blur(seen.collect());
        let delay = delay + self.world.pace().look();
        if !delay.is_zero() {
            tokio::select! {
                biased;
                () = cx.cancelled() => return Vec::new(),
                () = sleep(delay) => {}
            }
        }
        shown
    }
}

/// Holds on to a change; when it is dropped in the middle, the change is let go.
struct Hand<'a> {
    world: &'a World,
    operation: Option<u64>,
}

impl<'a> Hand<'a> {
    fn on(world: &'a World, operation: Option<u64>) -> Self {
        Self { world, operation }
    }

    fn finish(mut self) {
        self.operation = None;
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation {
            self.world.let_go(operation);
        }
    }
}

fn go_on(cx: &Context) -> Result<(), Failed> {
    if cx.is_cancelled() {
        Err(stopped())
    } else {
        Ok(())
    }
}

fn stopped() -> Failed {
    Failed::Later(Error {
        attempted: "stopped as told".to_owned(),
        hint: "continues at the next start".to_owned(),
    })
}

fn injected() -> Error {
    Error {
        attempted: INJECTED.to_owned(),
        hint: "try again".to_owned(),
    }
}

#[cfg(test)]
mod tests;
