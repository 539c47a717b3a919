//! A world that lives: plans are made, judged and carried out until nothing is left to do, then
//! whatever was wrong is mended, and nothing may be left undone.

mod moves;

use crate::NOW;
use crate::besides::untold;
use crate::declared::grown;
use crate::judge::{Told, excess, later, second_start, starting, unfinished};
use crate::safety::{crowded, robbed, shared, undecided};
use crate::seen::{around, declared, made, scale};
use crate::shape::{Luck, World};
use crate::upkeep::{lead, misdeclared, sick};
use crate::work::under_way;
use model::cluster::Desired;
use model::id::{IntentId, MachineId, Origin};
use model::intent::{Intent, Wish};
use model::manifest::Manifest;
use model::observed::{MachineFact, NodeFact, Observed};
use model::secret::SecretRef;
use model::task::{Open, State, Task};
use model::time::Timestamp;
use plan::{Elsewhere, Known, Phase, Plan, Reason, Slot, View};
use plan::{advance, check, plan, predict, retire};
use proptest::prelude::*;
use std::net::IpAddr;

/// More rounds than any world needs; one that comes to them does not converge.
const ROUNDS_MAX: u64 = 800;

/// After so many rounds branches lead elsewhere.
const MOVES_AFTER: u64 = 5;

pub(crate) type Judged<T> = Result<T, TestCaseError>;

pub(crate) struct Life<'w> {
    world: &'w World,
    desired: Desired,
    observed: Observed,
    open: Vec<Open>,
    ledger: Vec<Slot>,
    elsewhere: Vec<Elsewhere>,
    missing: Vec<SecretRef>,
    intents: Vec<Intent>,
    /// Where a control plane may have been started before we looked.
    begun: Option<MachineId>,
    told: Told,
    round: u64,
    now: Timestamp,
    /// What the manifest says.
    declared: Manifest,
    /// How many workers are wished where they are scaled, unless that was given back.
    wished: Option<u32>,
    /// How often work was begun on those that come in place of others.
    tried: usize,
    /// Whether the manifest is still to change.
    turns: bool,
    mended: bool,
}

pub(crate) fn wish(wish: Wish) -> Intent {
    let origin = Origin {
        parent: "test",
        name: wish.as_str(),
        ordinal: 0,
        incarnation: 0,
    };
    Intent {
        id: IntentId::derive(origin),
        project: "default".parse().unwrap(),
        cluster: "edge".parse().unwrap(),
        wish,
        author: "ada".to_owned(),
        reason: String::new(),
        created_at: NOW,
        expires_at: None,
    }
}

impl<'w> Life<'w> {
    pub(crate) fn of(world: &'w World) -> Self {
        let (desired, mut observed) = made(world);
        let [_, declared] = declared(world);
        untold(world, &mut observed);
        observed.sick = sick(world, &observed);
        lead(&desired, &mut observed, "a", NOW);
        let (elsewhere, missing) = around(world);
        let open = under_way(world, &desired, &observed);
        let rows = desired.all().zip(&world.rows).filter(|(_, row)| **row);
        let rows = rows.map(|(machine, _)| Slot::of(machine, &desired.disruption));
        let pause = world.more.paused.then(|| wish(Wish::Pause));
        Self {
            ledger: rows.collect(),
            begun: starting(&desired, &observed, &open),
            intents: pause.into_iter().chain([scale(world.compute.1)]).collect(),
            declared,
            wished: Some(world.compute.1),
            tried: 0,
            turns: world.more.turn.is_some() && !desired.tombstone,
            world,
            desired,
            observed,
            open,
            elsewhere,
            missing,
            told: Told::default(),
            round: 0,
            now: NOW,
            mended: false,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            desired: &self.desired,
            observed: &self.observed,
            open: &self.open,
            ledger: &self.ledger,
            elsewhere: &self.elsewhere,
            intents: &self.intents,
            blocked: &[],
            shut_out: &[],
            missing: &self.missing,
            claimed: &[],
            vain: &[],
            parent: self.round,
            now: self.now,
        }
    }

    /// Lives until nothing is left to do and nothing is wrong.
    pub(crate) fn live(mut self) -> Judged<()> {
        prop_assert_eq!(shared(&self.desired), None);
        while self.round < ROUNDS_MAX {
            let last = self.step()?;
            self.round += 1;
            let Some(last) = last else { continue };
            if self.turns {
                self.turn()?;
                continue;
            }
            self.rests(&last)?;
            let there = matches!(last.summary.phase, Phase::Done | Phase::Gone);
            prop_assert!(
                there || !last.held.is_empty(),
                "waits for nothing: {:?}",
                last.summary
            );
            // Who vanished does not come back with the others.
            let lost = |reason: &Reason| {
                let outvoted = matches!(
                    reason,
                    Reason::Quorum { silent: 1.., .. } | Reason::Quorum { gone: 1.., .. }
                );
                *reason == Reason::ControlPlaneLost || self.mended && outvoted
            };
            if !self.desired.tombstone && last.held.iter().any(|held| lost(&held.reason)) {
                self.desired = self.retired();
            } else if there || self.mended {
                return self.arrived(&last);
            } else {
                self.mend();
            }
        }
        let plan = plan(&self.view());
        Err(TestCaseError::fail(format!("no end: {plan:#?}")))
    }

    /// Makes a plan and carries it out; answers the plan where there is nothing left to do.
    fn step(&mut self) -> Judged<Option<Plan>> {
        self.notice();
        let commit = if self.round < MOVES_AFTER { "a" } else { "b" };
        lead(&self.desired, &mut self.observed, commit, self.now);
        if self.moved_on()? || self.gave_back()? {
            return Ok(None);
        }
        let step = self.planned()?;
        self.ledger
            .retain(|slot| !step.release.contains(&slot.machine));
        self.ledger.extend(step.disturbs.iter().cloned());
        self.open.retain(|open| !step.withdraw.contains(&open.id));
        for open in &mut self.open {
            if step.reopen.contains(&open.id) {
                open.state = State::Waiting;
                open.error = None;
            }
        }
        let turn = self.world.more.turn;
        if self.turns && turn.is_some_and(|turn| turn.after == self.round) {
            self.open.extend(step.tasks.iter().map(running));
            self.turn()?;
            return Ok(None);
        }
        // What is stuck stays so until nobody wants it; everything else ends well.
        let stuck = |open: &Open| open.state == State::Stuck;
        let (stuck, going): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(stuck);
        self.open = stuck;
        if step.tasks.is_empty() && going.is_empty() {
            let changes = !step.withdraw.is_empty() || !step.release.is_empty();
            let goes_on = changes || self.waited(&step)?;
            return Ok(if goes_on { None } else { Some(step) });
        }
        self.pass(later(self.now, &step, &going));
        for open in going {
            let mut all = self.desired.all();
            let machine = all.find(|machine| machine.id == open.machine).unwrap();
            predict(&mut self.observed, machine, &open.action, self.now);
            self.told.hear(machine.id, &open.action);
        }
        for task in &step.tasks {
            let luck = self.luck(task);
            if luck != Luck::Bad {
                self.told.hear(task.machine.id, &task.action);
                predict(&mut self.observed, &task.machine, &task.action, self.now);
            }
            if luck != Luck::Good {
                self.open.push(Open {
                    state: State::Stuck,
                    error: Some("no luck".to_owned()),
                    ..running(task)
                });
            }
        }
        Ok(None)
    }

    /// A plan that keeps every promise.
    fn planned(&self) -> Judged<Plan> {
        let view = self.view();
        let step = plan(&view);
        let notes = check(&view, &step);
        prop_assert_eq!(notes, Vec::new(), "{:#?} {:#?}", view.open, step.tasks);
        prop_assert!(step == plan(&view), "a plan made twice is the same");
        let mut rows = self.ledger.clone();
        rows.retain(|slot| !step.release.contains(&slot.machine));
        prop_assert_eq!(excess(&view, &step, &rows), None);
        prop_assert_eq!(second_start(&view, &step, self.begun), None);
        prop_assert_eq!(self.told.misled(&view, &step), None);
        prop_assert_eq!(undecided(&view, &step), None);
        prop_assert_eq!(robbed(&view, &step), None);
        prop_assert_eq!(crowded(&view, &step), None);
        Ok(step)
    }

    /// Lets time pass where that helps: a window opens, a pause is over, others give back what they
    /// hold.
    fn waited(&mut self, step: &Plan) -> Judged<bool> {
        // Etcd is saved for ever, and certificates are renewed again and again.
        let mut held = step.held.iter();
        let waits = held.any(|held| {
            matches!(
                held.reason,
                Reason::Window { .. } | Reason::Repair { .. } | Reason::TakenBack { .. }
            )
        });
        if let Some(opens) = step.wake.filter(|_| waits) {
            prop_assert!(opens > self.now, "what is waited for is there");
            self.pass(opens);
        } else if self.elsewhere.is_empty() {
            return Ok(false);
        }
        self.elsewhere.clear();
        Ok(true)
    }

    /// The manifest becomes what it was first, and somebody may want another machine.
    fn turn(&mut self) -> Judged<()> {
        self.turns = false;
        let [mut first, second] = declared(self.world);
        for (back, there) in first.clusters.iter_mut().zip(&second.clusters) {
            back.version = there.version;
        }
        let replace = self.world.more.turn.and_then(|turn| turn.replace);
        let machine = replace.and_then(|at| self.desired.machines.get(at));
        let wishes = machine.map(|machine| {
            wish(Wish::Replace {
                machine: machine.id,
            })
        });
        let scaled = scale(self.world.compute.0);
        let wishes: Vec<_> = wishes.into_iter().chain([scaled.clone()]).collect();
        let known = Known {
            desired: &self.desired,
            observed: &self.observed,
            intents: &wishes,
            open: &self.open,
        };
        if let Some(mut next) = grown(Some(known), &first, self.now) {
            next.addons.clone_from(&self.desired.addons);
            self.desired = next;
            self.declared = first;
            self.wished = Some(self.world.compute.0);
            self.intents.retain(|intent| intent.id != scaled.id);
            self.intents.push(scaled);
        }
        prop_assert_eq!(shared(&self.desired), None);
        Ok(())
    }

    /// Once there is nothing left to do, nothing is planned.
    fn rests(&self, last: &Plan) -> Judged<()> {
        let again = plan(&self.view());
        let quiet = again.tasks.is_empty() && again.withdraw.is_empty() && again.release.is_empty();
        prop_assert!(quiet && again.reopen.is_empty(), "{:#?}", again);
        prop_assert_eq!(advance(&self.view()), None);
        prop_assert_eq!(&again.held, &last.held);
        Ok(())
    }

    /// Everything is as declared, and nobody waits.
    fn arrived(&self, last: &Plan) -> Judged<()> {
        let there = if self.desired.tombstone {
            Phase::Gone
        } else {
            Phase::Done
        };
        prop_assert_eq!(last.summary.phase, there, "{:#?}", last);
        prop_assert!(last.held.is_empty(), "{:#?}", last.held);
        prop_assert_eq!(unfinished(&self.desired, &self.observed), None);
        prop_assert!(self.ledger.is_empty(), "rows are kept: {:?}", self.ledger);
        let wrong = misdeclared(&self.desired, &self.declared, self.wished);
        prop_assert_eq!(wrong, None, "{:#?}", self.desired);
        Ok(())
    }

    /// Everybody does what they are asked to, and everybody who was ill is well again.
    fn mend(&mut self) {
        self.mended = true;
        self.missing.clear();
        self.intents.clear();
        self.observed.wellbeing = None;
        self.observed.strays = None;
        for open in &mut self.open {
            open.corrected = true;
        }
        let addons = self.observed.addons.iter_mut();
        for fact in addons.flat_map(|(addons, _)| addons.values_mut()) {
            fact.whole = true;
        }
        for machine in self.desired.all() {
            let Some(seen) = self.observed.machines.get_mut(&machine.id) else {
                continue;
            };
            if let Some((fact @ MachineFact::Unreachable { .. }, _)) = &mut seen.machine {
                *fact = MachineFact::Running {
                    reference: "vm".to_owned(),
                    address: IpAddr::V4(machine.address),
                };
            }
            let ours = self.ledger.iter().any(|slot| slot.machine == machine.id);
            if let Some((
                NodeFact::Joined {
                    ready,
                    cordoned,
                    gated,
                    ..
                },
                _,
            )) = &mut seen.node
            {
                *ready = true;
                // Who was cordoned by hand is taken back by hand.
                *cordoned &= ours || *gated;
            }
        }
    }

    /// A cluster that nobody can mend is deleted.
    fn retired(&self) -> Desired {
        retire(Known {
            desired: &self.desired,
            observed: &self.observed,
            intents: &[],
            open: &self.open,
        })
    }
}

/// A task that a worker has just taken.
fn running(task: &Task) -> Open {
    let through = task.around.iter().flat_map(|around| &around.through);
    Open {
        id: task.id,
        machine: task.machine.id,
        action: task.action.clone(),
        origin: task.machine.origin.clone(),
        through: through.map(|member| member.id).collect(),
        state: State::Running,
        attempts: 1,
        not_before: NOW,
        error: None,
        corrected: false,
    }
}
