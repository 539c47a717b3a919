//! A world that is kept in a file survives whoever works in it.

mod hosts;
mod processes;
mod shared;

use super::{Error, Pace, Refusal, World};
use crate::driver::Simulated;
use ::driver::{Clock, Context, Driver, Log, NoSecrets, Outcome};
use model::cluster::{Generation, Machine, Origin, Role};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::provider::Provider;
use model::task::{Action, Task};
use model::time::Timestamp;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

struct Unread;

impl Log for Unread {
    fn line(&self, _: Timestamp, _: &str) {}
}

fn origin(name: &str) -> id::Origin<'_> {
    id::Origin {
        parent: "test",
        name,
        ordinal: 0,
        incarnation: 0,
    }
}

fn create(name: &str) -> Task {
    Task {
        id: TaskId::derive(origin(name)),
        project: Name::default_project(),
        cluster: ClusterId::derive(origin("cluster")),
        cluster_name: "cluster".parse().unwrap(),
        generation: Generation(1),
        machine: Machine {
            id: MachineId::derive(origin(name)),
            name: name.parse().unwrap(),
            pool: "pool".parse().unwrap(),
            role: Role::Compute,
            ordinal: 1,
            incarnation: 0,
            address: Ipv4Addr::new(10, 8, 0, 1),
            balancer: None,
            origin: Origin::Made {
                provider: "lab".parse().unwrap(),
                via: Provider::Simulated,
                region: "north".to_owned(),
                zone: None,
                server_type: "small".to_owned(),
                image: "debian-12".to_owned(),
                hardware: model::hardware::Hardware::default(),
                secret: None,
            },
        },
        action: Action::Create,
        around: None,
    }
}

fn open(path: &Path) -> Result<World, Error> {
    World::open(path, Pace::Demo, 0)
}

/// A directory with a world of two machines, left as a kill would leave it.
fn left_behind() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.jsonl");
    let world = open(&path).unwrap();
    for name in ["one", "two"] {
        world.order(&create(name), 1).unwrap();
    }
    (directory, path)
}

#[test]
fn what_was_made_is_there_after_a_kill() {
    let (_directory, path) = left_behind();
    for _ in 0..2 {
        let world = open(&path).unwrap();
        assert_eq!(world.machines(), 2);
        assert_eq!(world.made().values().copied().collect::<Vec<_>>(), [1, 1]);
        assert_eq!(world.machines_named(create("one").machine.id), 1);
    }
}

#[test]
fn a_line_that_was_cut_off_never_counted() {
    let (_directory, path) = left_behind();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 7]).unwrap();
    let world = open(&path).unwrap();
    assert_eq!(world.machines(), 1);
    world.order(&create("three"), 1).unwrap();
    drop(world);
    assert_eq!(open(&path).unwrap().machines(), 2);
}

#[test]
fn a_line_of_somebody_else_is_refused_with_its_place() {
    let (_directory, path) = left_behind();
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"{\"comet\": 1}\n").unwrap();
    let refused = open(&path).map(|_| ()).expect_err("must not open");
    assert!(matches!(refused, Error::Line { line: 3, .. }), "{refused}");
    assert_eq!(refused.code(), "SIM-002");
}

#[test]
fn a_directory_that_is_not_there_is_said_so() {
    let refused = open(Path::new("/nowhere/world.jsonl")).map(|_| ());
    assert_eq!(refused.expect_err("must not open").code(), "SIM-001");
}

#[test]
fn an_order_that_cannot_be_written_never_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.jsonl");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let world = open(&path).unwrap();
    let refused = world.order(&create("one"), 1).expect_err("no room");
    let Refusal::Later(error) = refused else {
        panic!("may work later: {refused:?}");
    };
    assert!(error.attempted.contains("SIM-007"), "{error}");
    assert_eq!(world.machines(), 0);
}

#[tokio::test]
async fn a_second_server_adopts_what_the_first_had_ordered() {
    let (_directory, path) = left_behind();
    let world = open(&path).unwrap();
    let driver = Simulated::new(world.clone());
    let stop = CancellationToken::new();
    let cx = Context::new(
        Clock::System,
        Arc::new(Unread),
        Arc::new(NoSecrets),
        stop,
        1,
    );
    let outcome = driver.apply(&cx, &create("one")).await;
    assert!(matches!(outcome, Outcome::Done(..)));
    assert_eq!(world.machines(), 2);
}
