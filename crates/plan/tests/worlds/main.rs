//! Random worlds: the planner converges, deterministically, within its budgets.
//!
//! A world is a cluster of any shape, of hosts or of simulated machines, behind a load balancer
//! or not, edited once or twice, with work under way, pools that become machines of another kind,
//! machines that do not serve, newcomers on which work fails, seen in any honest or dishonest state, under any budgets and windows, with secrets that nobody has set and members of
//! etcd that are sick. From each the journey must end, and when everything is mended that only others
//! can mend, it must end as declared; the checker must stay silent at every step, no budget may be
//! exceeded and no window left, etcd keeps its quorum, nothing is removed that is not ours, no
//! address is used twice, no pool loses who serves, a plan made twice must be the same twice, and where nothing is left to do
//! nothing is planned.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod besides;
mod declared;
mod judge;
mod life;
mod safety;
mod seen;
mod shape;
mod upkeep;
mod work;

use life::{Judged, Life};
use model::task::Kind;
use model::time::Timestamp;
use plan::{Phase, View, journey};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestError, TestRunner};
use seen::{around, made};
use shape::{Sight, World, world};
use std::io::Write as _;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000);

/// How many worlds there are, the same ones every time; `SLIPWAY_SEEDS` asks for that many times as
/// many others, to soak.
const WORLDS: u32 = 10_000;

/// How many of them live side by side.
const THREADS: u32 = 2;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "it is a test that asks and takes the time, not the planner"
)]
fn no_world_breaks_a_promise() {
    let soak = std::env::var("SLIPWAY_SEEDS").ok();
    let soak = soak.map(|seeds| seeds.parse::<u32>().unwrap());
    let worlds = WORLDS * soak.unwrap_or(1);
    let config = |thread: u32| ProptestConfig {
        cases: worlds / THREADS,
        rng_seed: soak.map_or(RngSeed::Fixed(u64::from(thread)), |_| RngSeed::Random),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        let threads = (1..=THREADS).map(|thread| scope.spawn(move || proved(config(thread))));
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
    });
    figure(&format!(
        "random worlds: {},{:03} in {} s, 0 violations",
        worlds / 1_000,
        worlds % 1_000,
        began.elapsed().as_secs()
    ));
}

/// Leaves what was covered where `make test` shows it.
fn figure(covered: &str) {
    if let Some(file) = std::env::var_os("SLIPWAY_FIGURES") {
        let mut figures = std::fs::File::options().append(true).open(file).unwrap();
        writeln!(figures, "{covered}").unwrap();
    }
}

/// Lets worlds live; panics with the smallest in which a promise is broken.
fn proved(config: ProptestConfig) {
    type Keeps = fn(&World) -> Judged<()>;
    let promises: [(&str, Keeps); 3] = [
        ("every step is safe and the journey ends", lives),
        ("a healthy cluster reaches what is declared", reaches),
        (
            "a running cluster is upgraded within budgets and windows",
            upgraded,
        ),
    ];
    let kept = |world: World| {
        for (promise, keeps) in promises {
            keeps(&world).map_err(|broken| TestCaseError::fail(format!("{promise}: {broken}")))?;
        }
        Ok(())
    };
    match TestRunner::new(config).run(&world(), kept) {
        Ok(()) => {}
        Err(TestError::Fail(reason, world)) => panic!("{reason}\nin {world:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn lives(world: &World) -> Judged<()> {
    Life::of(world).live()
}

fn reaches(world: &World) -> Judged<()> {
    let mut world = world.clone();
    for sight in &mut world.sights {
        *sight = Sight::Unseen;
    }
    let (desired, observed) = made(&world);
    let (elsewhere, _) = around(&world);
    let view = View {
        desired: &desired,
        observed: &observed,
        open: &[],
        ledger: &[],
        elsewhere: &elsewhere,
        intents: &[],
        blocked: &[],
        shut_out: &[],
        missing: &[],
        claimed: &[],
        vain: &[],
        parent: 0,
        now: NOW,
    };
    let told = journey(&view);
    prop_assert_eq!(
        told.ends,
        if world.delete {
            Phase::Gone
        } else {
            Phase::Done
        }
    );
    // Everybody is connected at once. Only who has to wait for somebody's address comes later.
    let steps = || {
        let blocks = told.blocks.iter();
        blocks.flat_map(|block| block.rounds.iter().flatten())
    };
    let times = |kind: Kind| steps().filter(|step| step.kind == kind).count();
    let real = world.front.1.real && !world.delete;
    prop_assert_eq!(
        times(Kind::Key),
        usize::from(real && !world.access),
        "{}",
        told
    );
    prop_assert!(
        times(Kind::Mesh) <= 2 && (times(Kind::Mesh) > 0) == real,
        "{}",
        told
    );
    Ok(())
}

fn upgraded(world: &World) -> Judged<()> {
    let mut world = world.clone();
    world.delete = false;
    world.upgrade = true;
    world.more.etcd = None;
    for sight in &mut world.sights {
        *sight = Sight::Node {
            ready: true,
            cordoned: false,
            gated: false,
            old: true,
        };
    }
    let (desired, observed) = made(&world);
    let (elsewhere, _) = around(&world);
    let view = View {
        desired: &desired,
        observed: &observed,
        open: &[],
        ledger: &[],
        elsewhere: &elsewhere,
        intents: &[],
        blocked: &[],
        shut_out: &[],
        missing: &[],
        claimed: &[],
        vain: &[],
        parent: 0,
        now: NOW,
    };
    let told = journey(&view);
    prop_assert_eq!(told.ends, Phase::Done, "{}", told);
    // Nobody is forgotten, and never are more taken out of service at once than may be.
    for machine in desired.all().filter(|machine| machine.role.is_node()) {
        prop_assert!(told.effects.contains_key(&machine.name), "{}", told);
    }
    let most = desired.disruption.unavailable;
    let blocks = told.blocks.iter();
    for step in blocks.flat_map(|block| block.rounds.iter().flatten()) {
        prop_assert!(
            step.kind != Kind::Drain || step.machines <= most,
            "{}",
            told
        );
    }
    Ok(())
}
