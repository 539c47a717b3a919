//! Random worlds: the planner converges, deterministically, within its budgets.
//!
//! A world is a cluster of any shape, of hosts or of simulated machines, behind a load balancer
//! or not, edited once, with work under way, seen in any honest or
//! dishonest state, under any budgets and windows, with secrets that nobody has set. From
//! each the journey must end, the checker must stay silent at every step, no budget may be
//! exceeded and no window left, and a plan made twice must be the same twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod besides;
mod declared;
mod judge;
mod seen;
mod shape;

use judge::{Told, excess, later, second_start, starting, unfinished};
use model::task::{Kind, State};
use model::time::Timestamp;
use plan::{Phase, Reason, Slot, View, check, journey, plan, predict};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use seen::{around, made, under_way};
use shape::{Sight, world};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Worlds per property, the same ones every time; `SLIPWAY_SEEDS` asks for that many times as
/// many others, to soak.
#[expect(
    clippy::disallowed_methods,
    reason = "it is a test that asks, not the planner"
)]
fn config() -> ProptestConfig {
    let soak = std::env::var("SLIPWAY_SEEDS").ok();
    let soak = soak.map(|seeds| seeds.parse::<u32>().unwrap());
    ProptestConfig {
        cases: 1_500 * soak.unwrap_or(1),
        rng_seed: soak.map_or(RngSeed::Fixed(1), |_| RngSeed::Random),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_step_is_safe_and_the_journey_ends(world in world()) {
        let (desired, mut observed) = made(&world);
        let (mut elsewhere, missing) = around(&world);
        let mut open = under_way(&world, &desired, &observed);
        let rows = desired.all().zip(&world.rows).filter(|(_, row)| **row);
        let mut ledger: Vec<_> = rows.map(|(machine, _)| Slot::of(machine, &desired.disruption)).collect();
        let begun = starting(&desired, &observed, &open);
        let mut told = Told::default();
        let mut ended = None;
        let mut now = NOW;
        for round in 0..400_u64 {
            let view = View { desired: &desired, observed: &observed, open: &open, ledger: &ledger, elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &missing, parent: round, now };
            let step = plan(&view);
            prop_assert_eq!(check(&view, &step), Vec::new(), "{:#?} {:#?}", view.open, step.tasks);
            prop_assert_eq!(format!("{step:?}"), format!("{:?}", plan(&view)));
            let mut rows = ledger.clone();
            rows.retain(|slot| !step.release.contains(&slot.machine));
            prop_assert_eq!(excess(&view, &step, &rows), None);
            prop_assert_eq!(second_start(&view, &step, begun), None);
            prop_assert_eq!(told.misled(&view, &step), None);
            rows.extend(step.disturbs.iter().cloned());
            ledger = rows;
            // What is stuck stays so until nobody wants it; everything else ends well.
            open.retain(|open| !step.withdraw.contains(&open.id));
            let (stuck, going): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.state == State::Stuck);
            open = stuck;
            if step.tasks.is_empty() && going.is_empty() {
                // Etcd is saved for ever, and certificates are renewed again and again.
                let waits = step.held.iter().any(|held| matches!(held.reason, Reason::Window { .. }));
                if let Some(opens) = step.wake.filter(|_| waits) {
                    prop_assert!(opens > now, "what is waited for is there");
                    now = opens;
                } else if elsewhere.is_empty() {
                    ended = Some(step);
                    break;
                }
                // The others give back what they hold, too.
                elsewhere.clear();
                continue;
            }
            now = later(now, &step, &going);
            for open in going {
                let machine = desired.all().find(|machine| machine.id == open.machine).unwrap();
                predict(&mut observed, machine, &open.action, now);
                told.hear(machine.id, &open.action);
            }
            for task in &step.tasks {
                told.hear(task.machine.id, &task.action);
                predict(&mut observed, &task.machine, &task.action, now);
            }
        }
        let Some(last) = ended else { return Err(TestCaseError::fail("no end after 400 rounds")) };
        match last.summary.phase {
            Phase::Done | Phase::Gone => {
                prop_assert!(last.held.is_empty());
                prop_assert_eq!(unfinished(&desired, &observed), None);
            }
            Phase::Pending | Phase::Scheduled | Phase::Error | Phase::Deleting => {
                prop_assert!(!last.held.is_empty(), "waits for nothing: {:?}", last.summary);
            }
        }
    }

    #[test]
    fn a_healthy_cluster_reaches_what_is_declared(world in world()) {
        let mut world = world;
        for sight in &mut world.sights {
            *sight = Sight::Unseen;
        }
        let (desired, observed) = made(&world);
        let (elsewhere, _) = around(&world);
        let view = View { desired: &desired, observed: &observed, open: &[], ledger: &[], elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &[], parent: 0, now: NOW };
        let told = journey(&view);
        prop_assert_eq!(told.ends, if world.delete { Phase::Gone } else { Phase::Done });
        // Everybody is connected at once. Only who has to wait for somebody's address comes later.
        let steps = || told.blocks.iter().flat_map(|block| block.rounds.iter().flatten());
        let times = |kind: Kind| steps().filter(|step| step.kind == kind).count();
        let real = world.front.1.real && !world.delete;
        prop_assert_eq!(times(Kind::Key), usize::from(real && !world.access), "{}", told);
        prop_assert!(times(Kind::Mesh) <= 2 && (times(Kind::Mesh) > 0) == real, "{}", told);
    }

    #[test]
    fn a_running_cluster_is_upgraded_within_budgets_and_windows(world in world()) {
        let mut world = world;
        world.delete = false;
        world.upgrade = true;
        for sight in &mut world.sights {
            *sight = Sight::Node { ready: true, cordoned: false, old: true };
        }
        let (desired, observed) = made(&world);
        let (elsewhere, _) = around(&world);
        let view = View { desired: &desired, observed: &observed, open: &[], ledger: &[], elsewhere: &elsewhere, intents: &[], blocked: &[], missing: &[], parent: 0, now: NOW };
        let told = journey(&view);
        prop_assert_eq!(told.ends, Phase::Done, "{}", told);
        // Nobody is forgotten, and never are more taken out of service at once than may be.
        for machine in desired.all().filter(|machine| machine.role.is_node()) {
            prop_assert!(told.effects.contains_key(&machine.name), "{}", told);
        }
        let most = desired.disruption.unavailable;
        for step in told.blocks.iter().flat_map(|block| block.rounds.iter().flatten()) {
            prop_assert!(step.kind != Kind::Drain || step.machines <= most, "{}", told);
        }
    }
}
