//! Every story again, with every single thing going wrong.
//!
//! The k-th attempt fails, or gets stuck until a person asks again, for every k; the
//! engine is killed before, during and after every effect; two such things go wrong in one
//! run; looks miss things, show old ones and come late. Whatever happens, the world must end
//! as in the undisturbed story, with no rule broken on the way, no machine made twice and
//! nothing left over.

use crate::script::{Script, scripts};
use sim::LetGo;
use sim::faults::{self, Counted, Fault, Moment, Profile};
use sim::story::{Disturbance, Told, play};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seeds per profile and story; `SLIPWAY_SEEDS` asks for more, to soak.
const SEEDS: u64 = 2;

/// Pairs of faults per seed and story.
const PAIRS: u64 = 10;

/// Lines of a story that went wrong that are shown.
const LINES_SHOWN: usize = 60;

/// Runs side by side.
const THREADS: usize = 2;

/// What is tried at every effect. A change that the dead engine had begun goes on by
/// itself or stays half done; where it matters, both are tried.
fn crashes(effect: u64) -> [(faults::Script, LetGo); 5] {
    let kill = |moment| faults::Script::once(Fault::Kill(effect, moment));
    let restart = faults::Script::once(Fault::Restart(effect, Moment::During));
    [
        (kill(Moment::Before), LetGo::Stops),
        (kill(Moment::During), LetGo::GoesOn),
        (kill(Moment::During), LetGo::Stops),
        (kill(Moment::After), LetGo::GoesOn),
        (restart, LetGo::Stops),
    ]
}

/// What is tried in pairs: two attempts fail, one fails and the engine is killed, or it is killed
/// twice.
fn pairs(name: &str, calm: &Told, count: u64) -> Vec<(faults::Script, LetGo)> {
    // Each story has a stream of chance of its own, so that another one changes nothing here.
    let seed = name.bytes().fold(0_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let mut random = fastrand::Rng::with_seed(seed);
    let Counted {
        attempts, effects, ..
    } = calm.counted;
    let pair = |number: u64| {
        let (one, another) = match number % 3 {
            0 => {
                let (a, b) = apart(&mut random, attempts);
                (fails(&mut random, a), fails(&mut random, b))
            }
            1 => {
                let (a, b) = (random.u64(0..attempts), random.u64(0..effects));
                (fails(&mut random, a), kills(&mut random, b))
            }
            _ => {
                let (a, b) = apart(&mut random, effects);
                (kills(&mut random, a), kills(&mut random, b))
            }
        };
        let let_go = random.choice([LetGo::GoesOn, LetGo::Stops]);
        let let_go = let_go.unwrap_or_default();
        (faults::Script::twice(one, another), let_go)
    };
    (0..count).map(pair).collect()
}

/// Two of so many, one after the other: as often in short succession as not, because who tries
/// again is hit then.
fn apart(random: &mut fastrand::Rng, count: u64) -> (u64, u64) {
    let first = random.u64(0..count);
    let rest = if random.bool() { 3 } else { count - first };
    (first, first + 1 + random.u64(0..rest))
}

fn fails(random: &mut fastrand::Rng, attempt: u64) -> Fault {
    if random.bool() {
        Fault::Stuck(attempt)
    } else {
        Fault::Retry(attempt)
    }
}

fn kills(random: &mut fastrand::Rng, effect: u64) -> Fault {
    let moments = [Moment::Before, Moment::During, Moment::After];
    let moment = random.choice(moments).unwrap_or(Moment::During);
    Fault::Kill(effect, moment)
}

/// One run of one story.
struct Run<'a> {
    script: &'a Script,
    calm: &'a Told,
    disturbance: Disturbance,
}

impl Run<'_> {
    /// Whether all that should go wrong went wrong: a story that ends the engine itself may
    /// never come to the point.
    fn reached(&self, told: &Told) -> bool {
        match self.disturbance {
            Disturbance::Exactly(script, _) => {
                u64::try_from(script.faults().count()) == Ok(told.counted.struck)
            }
            Disturbance::ByChance(..) | Disturbance::None => true,
        }
    }

    /// Whether a machine of a new kind may get stuck and be taken back, or be tried more or less often
    /// than in the calm: whoever comes after it has another name.
    fn is_taken_back(&self) -> bool {
        let stuck = match self.disturbance {
            Disturbance::Exactly(script, _) => {
                let mut faults = script.faults();
                faults.any(|fault| matches!(fault, Fault::Stuck(_)))
            }
            Disturbance::ByChance(..) | Disturbance::None => false,
        };
        let text = &self.calm.text;
        // A kind that is never sold is tried again just like one that is sold out for a while. Whether
        // the machine that was refused is gone by the time the next one is named is a matter of chance.
        let tried = text.contains("provider refuses ") || text.contains(" is shut\n");
        (stuck || tried) && text.contains(" replacing ")
    }

    /// What was not as it must be.
    fn findings(&self, told: &Told) -> Vec<String> {
        let mut findings = Vec::new();
        if !told.settled {
            findings.push("did not settle".to_owned());
        }
        let (calm, picture) = (&self.calm.picture, &told.picture);
        if picture != calm && !(self.is_taken_back() && nameless(picture) == nameless(calm)) {
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

/// A picture of machines that are told apart by their pools alone. What nodes carry names machines,
/// too.
fn nameless(picture: &str) -> Vec<String> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':').unwrap_or((line, ""));
        let pool = name.rsplit_once('-').map_or(name, |(pool, _)| pool);
        let (rest, _) = rest.split_once(", carries").unwrap_or((rest, ""));
        format!("{pool}:{rest}")
    };
    let mut lines: Vec<_> = picture.lines().map(line).collect();
    lines.sort();
    lines
}

/// Plays all runs, and panics with the first that went wrong; answers how many there were
/// at which something went wrong on purpose.
fn prove(scripts: &[Script], runs: &[Run<'_>]) -> String {
    let next = AtomicUsize::new(0);
    let reached = Mutex::new(BTreeMap::new());
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = play(&run.script.story, run.disturbance).unwrap();
                    if run.reached(&told) {
                        *reached.lock().unwrap().entry(&run.script.name).or_insert(0) += 1;
                    }
                    let findings = run.findings(&told);
                    if !findings.is_empty() {
                        let text = findings.join("\n");
                        let told = format!("{}, {:?}: {text}", run.script.name, run.disturbance);
                        broken.lock().unwrap().push(told);
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().unwrap();
    broken.sort();
    if let Some(first) = broken.first() {
        let names: Vec<_> = broken
            .iter()
            .filter_map(|told| told.lines().next())
            .collect();
        panic!(
            "{} of {} runs went wrong:\n{}\n\n{first}",
            broken.len(),
            runs.len(),
            names.join("\n")
        );
    }
    let reached = reached.into_inner().unwrap();
    for script in scripts {
        assert!(
            reached.contains_key(&script.name),
            "{}: nothing",
            script.name
        );
    }
    let points = grouped(reached.values().sum());
    format!("{points} over {} stories, 0 violations", reached.len())
}

fn calm(scripts: &[Script]) -> Vec<Told> {
    let tell = |script: &Script| play(&script.story, Disturbance::None).unwrap();
    scripts.iter().map(tell).collect()
}

/// As many seeds as somebody asks for.
fn seeds() -> u64 {
    let seeds = std::env::var("SLIPWAY_SEEDS").ok();
    seeds.map_or(SEEDS, |seeds| seeds.parse().unwrap())
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
    let scripts = scripts();
    let calm = calm(&scripts);
    let mut runs = Vec::new();
    for (script, calm) in scripts.iter().zip(&calm) {
        assert!(
            calm.counted.attempts > 0,
            "{} attempts nothing",
            script.name
        );
        for k in 0..calm.counted.attempts {
            for fault in [Fault::Retry(k), Fault::Stuck(k)] {
                let once = faults::Script::once(fault);
                let disturbance = Disturbance::Exactly(once, LetGo::GoesOn);
                runs.push(Run {
                    script,
                    calm,
                    disturbance,
                });
            }
        }
    }
    figure(&format!("single failures: {}", prove(&scripts, &runs)));
}

#[test]
fn wherever_the_engine_is_killed_the_story_ends_the_same() {
    let scripts = scripts();
    let calm = calm(&scripts);
    let mut runs = Vec::new();
    for (script, calm) in scripts.iter().zip(&calm) {
        for k in 0..calm.counted.effects {
            for (fault, let_go) in crashes(k) {
                let disturbance = Disturbance::Exactly(fault, let_go);
                runs.push(Run {
                    script,
                    calm,
                    disturbance,
                });
            }
        }
    }
    figure(&format!("crash points: {}", prove(&scripts, &runs)));
}

#[test]
fn whatever_two_things_go_wrong_the_story_ends_the_same() {
    let scripts = scripts();
    let calm = calm(&scripts);
    let count = seeds() * PAIRS;
    let mut runs = Vec::new();
    for (script, calm) in scripts.iter().zip(&calm) {
        for (twice, let_go) in pairs(&script.name, calm, count) {
            let disturbance = Disturbance::Exactly(twice, let_go);
            runs.push(Run {
                script,
                calm,
                disturbance,
            });
        }
    }
    figure(&format!("double faults: {}", prove(&scripts, &runs)));
}

#[test]
fn whatever_chance_has_in_store_the_story_ends_the_same() {
    let scripts = scripts();
    let calm = calm(&scripts);
    let mut runs = Vec::new();
    for (script, calm) in scripts.iter().zip(&calm) {
        let rough = |profile: &Profile| *profile != Profile::None;
        for profile in Profile::ALL.into_iter().filter(rough) {
            for seed in 0..seeds() {
                let disturbance = Disturbance::ByChance(profile, seed);
                runs.push(Run {
                    script,
                    calm,
                    disturbance,
                });
            }
        }
    }
    figure(&format!("runs by chance: {}", prove(&scripts, &runs)));
}

#[test]
fn an_equal_seed_tells_an_equal_story() {
    for script in scripts() {
        let tell = || play(&script.story, Disturbance::ByChance(Profile::Storm, 7)).unwrap();
        assert_eq!(tell().text, tell().text, "{}", script.name);
    }
}

/// Prints what was covered, and leaves it where `make test` shows it.
fn figure(covered: &str) {
    println!("{covered}");
    if let Some(file) = std::env::var_os("SLIPWAY_FIGURES") {
        let mut figures = std::fs::File::options().append(true).open(file).unwrap();
        writeln!(figures, "{covered}").unwrap();
    }
}
