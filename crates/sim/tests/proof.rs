//! Every story again, with every single thing going wrong.
//!
//! The k-th attempt fails, or gets stuck until a person asks again, for every k; the
//! engine is killed before, during and after every effect; looks miss things, show old
//! ones and come late. Whatever happens, the world must end as in the undisturbed story,
//! with no rule broken on the way, no machine made twice and nothing left over.

mod told;

use sim::faults::{Moment, Profile, Script};
use sim::story::{Disturbance, Told, play};
use sim::LetGo;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use told::{Read, stories};

/// Seeds per profile and story.
const SEEDS: u64 = 3;

/// Lines of a story that went wrong that are shown.
const LINES_SHOWN: usize = 60;

/// Runs side by side.
const THREADS: usize = 2;

/// Each of these is tried at every effect. A change that the dead engine had begun goes
/// on by itself or stays half done; where it matters, both are tried.
const CRASHES: [(Moment, LetGo); 4] = [
    (Moment::Before, LetGo::Stops),
    (Moment::During, LetGo::GoesOn),
    (Moment::During, LetGo::Stops),
    (Moment::After, LetGo::GoesOn),
];

/// One run of one story.
struct Run<'a> {
    read: &'a Read,
    calm: &'a Told,
    disturbance: Disturbance,
}

impl Run<'_> {
    /// What was not as it must be.
    fn findings(&self) -> Vec<String> {
        let told = match play(&self.read.story, self.disturbance) {
            Ok(told) => told,
            Err(error) => return vec![format!("could not be played: {error}")],
        };
        let mut findings = Vec::new();
        if !told.settled {
            findings.push("did not settle".to_owned());
        }
        if told.picture != self.calm.picture {
            let (calm, picture) = (&self.calm.picture, &told.picture);
            findings.push(format!("ended as\n{picture}instead of\n{calm}"));
        }
        for violation in &told.violations {
            findings.push(format!("{violation}"));
        }
        for machine in &told.made_again {
            findings.push(format!("{machine} was made again"));
        }
        findings.extend(told.leftovers.iter().cloned());
        if !findings.is_empty() {
            let lines: Vec<_> = told.text.lines().take(LINES_SHOWN).collect();
            findings.push(lines.join("\n"));
        }
        findings
    }
}

/// Plays all runs, and panics with the first that went wrong.
fn prove(runs: &[Run<'_>]) {
    let next = AtomicUsize::new(0);
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let findings = run.findings();
                    if !findings.is_empty() {
                        let text = findings.join("\n");
                        let told = format!("{}, {:?}: {text}", run.read.name, run.disturbance);
                        broken.lock().unwrap().push(told);
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().unwrap();
    broken.sort();
    if let Some(first) = broken.first() {
        let names: Vec<_> = broken.iter().filter_map(|told| told.lines().next()).collect();
        panic!(
            "{} of {} runs went wrong:\n{}\n\n{first}",
            broken.len(),
            runs.len(),
            names.join("\n")
        );
    }
}

fn calm(stories: &[Read]) -> Vec<Told> {
    let tell = |read: &Read| play(&read.story, Disturbance::None).unwrap();
    stories.iter().map(tell).collect()
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

#[test]
fn whatever_attempt_fails_or_gets_stuck_the_story_ends_the_same() {
    let stories = stories();
    let calm = calm(&stories);
    let mut runs = Vec::new();
    for (read, calm) in stories.iter().zip(&calm) {
        assert!(calm.counted.attempts > 0, "{} attempts nothing", read.name);
        for k in 0..calm.counted.attempts {
            for script in [
                Script {
                    retry: Some(k),
                    ..Script::default()
                },
                Script {
                    stuck: Some(k),
                    ..Script::default()
                },
            ] {
                let disturbance = Disturbance::Exactly(script, LetGo::GoesOn);
                runs.push(Run {
                    read,
                    calm,
                    disturbance,
                });
            }
        }
    }
    prove(&runs);
    println!(
        "failures: {} over {} stories, 0 violations",
        grouped(runs.len()),
        stories.len()
    );
}

#[test]
fn wherever_the_engine_is_killed_the_story_ends_the_same() {
    let stories = stories();
    let calm = calm(&stories);
    let mut runs = Vec::new();
    for (read, calm) in stories.iter().zip(&calm) {
        let before = runs.len();
        for k in 0..calm.counted.effects {
            for (moment, let_go) in CRASHES {
                let script = Script {
                    kill: Some((k, moment)),
                    ..Script::default()
                };
                let disturbance = Disturbance::Exactly(script, let_go);
                runs.push(Run {
                    read,
                    calm,
                    disturbance,
                });
            }
        }
        assert!(runs.len() > before, "{} has no crash point", read.name);
    }
    prove(&runs);
    println!(
        "crash points: {} over {} stories, 0 violations",
        grouped(runs.len()),
        stories.len()
    );
}

#[test]
fn whatever_chance_has_in_store_the_story_ends_the_same() {
    let stories = stories();
    let calm = calm(&stories);
    let mut runs = Vec::new();
    for (read, calm) in stories.iter().zip(&calm) {
        for profile in Profile::ALL {
            for seed in 0..SEEDS {
                let disturbance = Disturbance::ByChance(profile, seed);
                runs.push(Run {
                    read,
                    calm,
                    disturbance,
                });
            }
        }
    }
    prove(&runs);
    println!(
        "runs by chance: {} over {} stories, 0 violations",
        grouped(runs.len()),
        stories.len()
    );
}

#[test]
fn an_equal_seed_tells_an_equal_story() {
    for read in stories() {
        let tell = || play(&read.story, Disturbance::ByChance(Profile::Storm, 7)).unwrap();
        assert_eq!(tell().text, tell().text, "{}", read.name);
    }
}
