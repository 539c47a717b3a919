//! Several handles on one file are several processes, as far as the file is concerned.

use super::{Unread, create, open};
use crate::driver::Simulated;
use crate::world::journal::COMPACT_FROM;
use crate::world::{Change, Error, Pace, Refusal, Rule, World};
use ::driver::{Clock, Context, Driver, NoSecrets, Outcome, Target};
use expect_test::expect;
use model::care::Care;
use model::cluster::Origin;
use model::task::{Action, Task};
use model::time::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A directory for a world, and the path of its file.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.jsonl");
    (directory, path)
}

/// A world on a file with hours that pass at once; this many hours after all others.
fn open_late(path: &Path, hours: u64) -> World {
    let epoch = Timestamp::from_millis(1_000_000);
    let clock = Clock::starting_at(epoch.plus(Duration::from_hours(hours)));
    World::open_on(clock, path, Pace::Realistic, 0, COMPACT_FROM).unwrap()
}

/// The file of a world that is written anew whenever that makes it shorter.
fn open_compacting(path: &Path) -> World {
    World::open_on(Clock::System, path, Pace::Demo, 0, 0).unwrap()
}

/// A task for a machine that was given, at an address of its own.
pub(super) fn given(name: &str, endpoint: Ipv4Addr, action: Action) -> Task {
    let mut task = create(name);
    task.machine.origin = Origin::Given {
        endpoint,
        ssh_port: 22,
        username: "root".to_owned(),
        secret: None,
        jump: None,
    };
    Task { action, ..task }
}

fn prepare() -> Task {
    given("host", Ipv4Addr::new(192, 0, 2, 1), Action::Prepare)
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

fn ordered(world: &World, name: &str) -> String {
    world.order(&create(name), 1).unwrap().reference
}

/// As if another process had been stopped in the middle of its work.
fn stopped_holder(path: &Path) -> File {
    let file = File::open(path.with_extension("lock")).unwrap();
    file.lock().unwrap();
    file
}

/// What a driver gets in this world, with what tells it to stop.
fn context(world: &World) -> (Context, CancellationToken) {
    let (clock, stop) = (Clock::starting_at(world.now()), CancellationToken::new());
    let (log, secrets) = (Arc::new(Unread), Arc::new(NoSecrets));
    (Context::new(clock, log, secrets, stop.clone(), 1), stop)
}

#[test]
fn each_sees_what_the_other_did_and_no_number_is_given_twice() {
    let (_directory, path) = place();
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    assert_eq!(ordered(&one, "a"), "vm-000001");
    assert_eq!(two.machines_named(create("a").machine.id), 1);
    assert_eq!(ordered(&two, "b"), "vm-000002");
    assert_eq!(ordered(&two, "c"), "vm-000003");
    assert_eq!(ordered(&one, "d"), "vm-000004");
    let begun = |world: &World, host| {
        let address = Ipv4Addr::new(192, 0, 2, host);
        let task = given(&format!("host-{host}"), address, Action::Prepare);
        let begun = world.begin(&task, &Change::Prepare, 1).unwrap();
        begun.operation
    };
    assert_eq!(begun(&one, 1), Some(1));
    assert_eq!(begun(&two, 2), Some(2));
    assert_eq!(begun(&two, 1), None, "it is under way");
    for world in [&one, &two, &open(&path).unwrap()] {
        assert_eq!(world.machines(), 4);
        assert_eq!(world.hosts(), 2);
        assert_eq!(world.made().len(), 4);
    }
}

#[test]
fn what_is_made_twice_is_seen_by_all_whoever_made_it() {
    let (_directory, path) = place();
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    ordered(&one, "a");
    ordered(&two, "a");
    for world in [one, two, open(&path).unwrap()] {
        assert_eq!(world.made().into_values().collect::<Vec<_>>(), [2]);
        let broken: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
        assert_eq!(broken, [Rule::MadeTwice]);
    }
}

#[test]
fn half_a_line_of_a_dead_writer_is_cut_off_by_the_next() {
    let (_directory, path) = place();
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    ordered(&one, "a");
    let mut dead = OpenOptions::new().append(true).open(&path).unwrap();
    dead.write_all(b"{\"effect\":[17,{\"order\":{\"vm\":2,\"by\"")
        .unwrap();
    assert_eq!(two.machines(), 1, "looking is possible meanwhile");
    assert_eq!(ordered(&two, "b"), "vm-000002");
    assert_eq!(one.machines(), 2);
    assert_eq!(open(&path).unwrap().machines(), 2);
    assert_eq!(lines(&path), 2);
}

#[test]
fn half_a_line_longer_than_a_chunk_is_cut_off_too() {
    let (_directory, path) = place();
    let world = open(&path).unwrap();
    ordered(&world, "a");
    let mut dead = OpenOptions::new().append(true).open(&path).unwrap();
    dead.write_all(&[b'x'; 10_000]).unwrap();
    assert_eq!(world.machines(), 1);
    assert_eq!(ordered(&world, "b"), "vm-000002");
    assert_eq!(open(&path).unwrap().machines(), 2);
}

#[test]
fn who_has_it_open_finds_the_file_that_took_its_place() {
    let (_directory, path) = place();
    let (one, idle) = (open(&path).unwrap(), open(&path).unwrap());
    for number in 0..20 {
        ordered(&one, &format!("m{number}"));
    }
    let two = open_compacting(&path);
    assert_eq!(lines(&path), 1, "everything is in one line");
    assert_eq!(ordered(&one, "n"), "vm-000021");
    assert_eq!(ordered(&two, "o"), "vm-000022");
    for world in [&one, &two, &idle, &open(&path).unwrap()] {
        assert_eq!(world.machines(), 22);
        assert_eq!(world.made().len(), 22);
    }
    assert_eq!(lines(&path), 3, "and nothing went to the old one");
}

#[test]
fn a_short_file_is_not_written_anew() {
    let (_directory, path) = place();
    let world = open(&path).unwrap();
    ordered(&world, "a");
    ordered(&world, "b");
    assert_eq!(open(&path).unwrap().machines(), 2);
    assert_eq!(lines(&path), 2);
}

#[test]
fn one_who_is_far_behind_catches_up() {
    let (_directory, path) = place();
    let (busy, late) = (open(&path).unwrap(), open(&path).unwrap());
    for number in 0..300 {
        ordered(&busy, &format!("m{number}"));
    }
    assert_eq!(late.machines(), 300);
    assert_eq!(ordered(&late, "last"), "vm-000301");
}

#[test]
fn a_line_of_somebody_else_stops_who_has_it_open() {
    let (_directory, path) = place();
    let world = open(&path).unwrap();
    ordered(&world, "a");
    let mut other = OpenOptions::new().append(true).open(&path).unwrap();
    other.write_all(b"{\"comet\": 1}\n").unwrap();
    let refused = world.order(&create("b"), 1).expect_err("cannot be read");
    let Refusal::Later(error) = refused else {
        panic!("may work later: {refused:?}");
    };
    assert!(error.attempted.contains("line 2"), "{error}");
    assert!(error.attempted.contains("SIM-002"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_does_not_part_the_two() {
    let (_directory, path) = place();
    let (early, late) = (open_late(&path, 0), open_late(&path, 1));
    let task = prepare();
    early.begin(&task, &Change::Prepare, 1).unwrap();
    // An hour later the host is ready. But that hour never was: somebody cut the power
    // while it was being prepared.
    let ready = late.whole_picture();
    early.cut_power(&task.machine);
    early.restore_power(&task.machine);
    expect!["host: at 192.0.2.1, running"].assert_eq(ready.trim());
    for world in [&late, &early, &open_late(&path, 1)] {
        expect!["host: at 192.0.2.1, in preparation"].assert_eq(world.whole_picture().trim());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_what_has_taken_effect() {
    let (_directory, path) = place();
    let world = open_late(&path, 1);
    let task = prepare();
    let begun = world.begin(&task, &Change::Prepare, 1).unwrap();
    let pause = begun.until.since(world.now());
    tokio::time::sleep(pause).await;
    assert_eq!(world.whole_picture().trim(), "host: at 192.0.2.1, running");
    // The same process, after somebody has set the clock back.
    let state = world.lock().state.clone();
    let journal = world.lock().journal.take();
    let before = Timestamp::from_millis(begun.until.as_millis() - 60_000);
    let clock = Clock::starting_at(before);
    let back = World::from_parts(clock, Pace::Realistic, 0, state, journal);
    back.cut_power(&task.machine);
    back.restore_power(&task.machine);
    for world in [&back, &open_late(&path, 2)] {
        assert_eq!(world.whole_picture().trim(), "host: at 192.0.2.1, running");
    }
}

/// Starts a control plane on a new machine and then destroys it, node and all.
async fn destroy_a_node(world: &World) {
    let task = create("one");
    let init = Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/24".parse().unwrap(),
        care: Care::default(),
    };
    for action in [Action::Create, init, Action::Delete] {
        let driver = Simulated::new(world.clone());
        let (cx, _stop) = context(world);
        let task = Task {
            action,
            ..task.clone()
        };
        let outcome = driver.apply(&cx, &task).await;
        assert!(matches!(outcome, Outcome::Done(..)), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watched_world_is_watched_by_all() {
    let (_directory, path) = place();
    let (one, two) = (open_late(&path, 0), open_late(&path, 0));
    one.watch().unwrap();
    one.watch().unwrap();
    assert_eq!(lines(&path), 1, "once is enough");
    destroy_a_node(&two).await;
    for world in [&one, &two, &open_late(&path, 0), &open_compacting(&path)] {
        let broken: Vec<_> = world.violations().iter().map(|one| one.rule).collect();
        assert_eq!(broken, [Rule::NodeDestroyed]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_world_that_nobody_wants_watched_is_not() {
    let (_directory, path) = place();
    let world = open_late(&path, 0);
    destroy_a_node(&world).await;
    assert_eq!(world.violations(), []);
}

#[test]
fn who_opens_it_to_watch_finds_what_was_broken_before() {
    let (_directory, path) = place();
    let world = World::open_watched(&path, Pace::Demo, 0).unwrap();
    ordered(&world, "a");
    ordered(&world, "a");
    let world = World::open_watched(&path, Pace::Demo, 0).unwrap();
    assert_eq!(world.violations().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_process_that_holds_the_lock_makes_others_try_later() {
    let (_directory, path) = place();
    let world = open_late(&path, 0);
    let holder = stopped_holder(&path);
    let (driver, task) = (Simulated::new(world.clone()), create("one"));
    let (cx, _stop) = context(&world);
    let refused = world.order(&task, 1).expect_err("it is held");
    assert!(matches!(refused, Refusal::Busy(_)), "{refused:?}");
    let Outcome::Retry(error) = driver.apply(&cx, &task).await else {
        panic!("must be tried later");
    };
    assert!(error.attempted.contains("SIM-006"), "{error}");
    let target = Target {
        cluster: task.cluster,
        machines: vec![task.machine.clone()],
        whole: false,
    };
    let seen = driver.probe(&cx, &target).await;
    assert!(seen.is_empty(), "what cannot be seen is left out: {seen:?}");
    holder.unlock().unwrap();
    let outcome = driver.apply(&cx, &task).await;
    assert!(matches!(outcome, Outcome::Done(..)), "{outcome:?}");
    assert_eq!(world.made().into_values().collect::<Vec<_>>(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_driver_waits_for_a_process_that_is_only_slow() {
    let (_directory, path) = place();
    let world = open_late(&path, 0);
    let holder = stopped_holder(&path);
    let (driver, task) = (Simulated::new(world.clone()), create("one"));
    let (cx, _stop) = context(&world);
    let continued = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        holder.unlock().unwrap();
    };
    let (outcome, ()) = tokio::join!(driver.apply(&cx, &task), continued);
    assert!(matches!(outcome, Outcome::Done(..)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_told_to_stop_does_not_wait_for_the_lock() {
    let (_directory, path) = place();
    let world = open_late(&path, 0);
    let holder = stopped_holder(&path);
    let (driver, task) = (Simulated::new(world.clone()), create("one"));
    let (cx, stop) = context(&world);
    let told = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(driver.apply(&cx, &task), told);
    let Outcome::Retry(error) = outcome else {
        panic!("must go on later: {outcome:?}");
    };
    expect!["stopped as told; continues at the next start"].assert_eq(&error.to_string());
    drop(holder);
    assert_eq!(world.machines(), 0);
}

#[test]
fn a_file_that_somebody_removed_is_missed() {
    let (_directory, path) = place();
    let world = open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = world.order(&create("one"), 1).expect_err("it is not there");
    let Refusal::Later(error) = refused else {
        panic!("may work later: {refused:?}");
    };
    assert!(error.attempted.contains("SIM-001"), "{error}");
}

#[test]
fn every_trouble_has_a_code_and_a_remedy() {
    let path = PathBuf::from("data/world.jsonl");
    let io = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let troubles = [
        Error::Open {
            path: path.clone(),
            cause: io(),
        },
        Error::Busy {
            path: path.with_extension("lock"),
        },
        Error::Write { path, cause: io() },
    ];
    let told: String = troubles
        .iter()
        .map(|error| format!("{}\n", error.told()))
        .collect();
    expect![[r#"
        could not open the simulated world at data/world.jsonl: permission denied (SIM-001); make the data directory writable, or free space on its disk
        could not get hold of the simulated world: another process holds data/world.lock (SIM-006); tries again by itself; a process that was stopped while it held the lock must be continued or killed
        could not write to the simulated world at data/world.jsonl: permission denied (SIM-007); free space on the disk of the data directory
    "#]].assert_eq(&told);
}
