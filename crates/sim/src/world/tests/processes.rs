//! Real processes in one world: this test binary starts itself several times over.

use super::shared::given;
use super::{create, open};
use crate::world::{Begun, Change, Pace, Refusal, Step, World};
use ::driver::Clock;
use model::task::{Action, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The file of the world; only the processes that the test starts have it.
const WORLD: &str = "SLIPWAY_TEST_WORLD";

/// Which of them a process is.
const WHO: &str = "SLIPWAY_TEST_WHO";

const PROCESSES: u8 = 4;

/// How many machines each of them makes, and how many hosts it prepares.
const EACH: u8 = 250;

/// Each process that starts later writes the file anew, while the others work with it.
const COMPACT_FROM: u64 = 4_096;

/// After how many machines, counted again after each start, the first of them is killed.
const KILLED_AFTER: [usize; 4] = [1, 30, 80, 140];

/// How often the world is asked before it counts as stuck.
const TRIES: u32 = 100_000;

/// Asks until no other process has the world to itself.
fn asked<T>(ask: impl Fn() -> Result<T, Refusal>) -> T {
    for _ in 0..TRIES {
        match ask() {
            Ok(answer) => return answer,
            Err(Refusal::Busy(_)) => {}
            Err(refusal @ (Refusal::Later(_) | Refusal::Never(_))) => panic!("{refusal:?}"),
        }
    }
    panic!("nobody gives the lock back");
}

/// Looks before it makes, as a driver does.
fn make(world: &World, task: &Task) -> Option<Begun> {
    match asked(|| world.step(task)) {
        Step::Done | Step::UnderWay { .. } => None,
        Step::Begin(_) => Some(asked(|| world.order(task, 1))),
    }
}

fn own(who: u8, number: u8) -> String {
    format!("p{who}-{number}")
}

/// What each process does. Without the variables it is not one of them, and is done.
#[test]
fn one_of_several() {
    let (Ok(path), Ok(who)) = (std::env::var(WORLD), std::env::var(WHO)) else {
        return;
    };
    let who: u8 = who.parse().unwrap();
    let path = Path::new(&path);
    let world = World::open_on(Clock::System, path, Pace::Demo, 0, COMPACT_FROM).unwrap();
    for number in 0..EACH {
        let name = own(who, number);
        let made = make(&world, &create(&name));
        let host = given(
            &name.replace('p', "h"),
            Ipv4Addr::new(10, 9, who, number),
            Action::Prepare,
        );
        asked(|| world.begin(&host, &Change::Prepare, 1));
        // All of them want this one; one may begin it.
        let common = given(
            &format!("common-{number}"),
            Ipv4Addr::new(10, 9, PROCESSES, number),
            Action::Prepare,
        );
        asked(|| world.begin(&common, &Change::Prepare, 1));
        let reference = made.map(|begun| begun.reference).unwrap_or_default();
        let mut out = std::io::stdout().lock();
        writeln!(out, "made {name} {reference}").unwrap();
    }
}

struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    fn start(path: &Path, who: u8) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "world::tests::processes::one_of_several"])
            .args(["--nocapture", "--test-threads=1"])
            .env(WORLD, path)
            .env(WHO, who.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The next machine that it says it has, and what it is called if it was just made.
    fn next(&mut self) -> Option<(String, Option<String>)> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, made)) = line.split_once("made ") {
                let (name, reference) = made.trim_end_matches('\n').split_once(' ').unwrap();
                let reference = Some(reference.to_owned()).filter(|text| !text.is_empty());
                return Some((name.to_owned(), reference));
            }
        }
    }
}

/// What the processes said they made: for each machine, what the provider called it.
type Said = BTreeMap<String, String>;

fn note(said: &mut Said, made: (String, Option<String>)) {
    if let (name, Some(reference)) = made {
        let before = said.insert(name.clone(), reference);
        assert_eq!(before, None, "{name} was made twice");
    }
}

/// Kills the first process in the middle of its work, again and again.
fn kill_the_first(path: &Path, said: &mut Said) {
    for after in KILLED_AFTER {
        let mut first = Process::start(path, 0);
        for _ in 0..after {
            note(said, first.next().expect("it has more to do"));
        }
        first.child.kill().unwrap();
        // It may have said more before it died.
        while let Some(made) = first.next() {
            note(said, made);
        }
        assert!(!first.child.wait().unwrap().success());
    }
}

fn run_to_the_end(mut process: Process, said: &mut Said) {
    while let Some(made) = process.next() {
        note(said, made);
    }
    assert!(process.child.wait().unwrap().success());
}

#[test]
fn nothing_is_lost_or_made_twice_among_processes_that_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("world.jsonl");
    let mut said = Said::new();
    let others: Vec<_> = (1..PROCESSES)
        .map(|who| Process::start(&path, who))
        .collect();
    kill_the_first(&path, &mut said);
    run_to_the_end(Process::start(&path, 0), &mut said);
    for process in others {
        run_to_the_end(process, &mut said);
    }

    let world = open(&path).unwrap();
    let all = usize::from(PROCESSES) * usize::from(EACH);
    let made = world.made();
    assert_eq!(made.len(), all, "every machine was made");
    assert!(made.values().all(|times| *times == 1), "each of them once");
    assert_eq!(world.machines(), all);
    assert_eq!(world.violations(), []);
    assert_eq!(world.hosts(), all + usize::from(EACH));

    // Who was killed between making a machine and saying so could not say so.
    assert!(said.len() + KILLED_AFTER.len() >= all, "{}", said.len());
    let numbers: BTreeSet<_> = said.values().collect();
    assert_eq!(numbers.len(), said.len(), "no number was given twice");
    let kept = world.lock();
    let state = &kept.state;
    for (name, reference) in &said {
        let machine = create(name).machine.id;
        let labelled: Vec<_> = state.labelled(machine).map(|(number, _)| number).collect();
        let [number] = labelled[..] else {
            panic!("{name} is there once: {labelled:?}");
        };
        assert_eq!(*reference, format!("vm-{number:06}"));
    }
    assert_eq!(state.vm_last, u64::try_from(all).unwrap());
    let changes = u64::try_from(all).unwrap() + u64::from(EACH);
    assert_eq!(state.operation_last, changes, "each change was begun once");
}
