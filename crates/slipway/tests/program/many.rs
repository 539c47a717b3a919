//! Three servers and two workers on one PostgreSQL, killed and started again at random for a
//! minute while they build two hundred clusters; the database itself is restarted twice.
//!
//! The world they build in is a file that stands for the outside. In the end every cluster must
//! be ready, no machine made twice, none lost, none left over. The seed of the moments is
//! printed; `SLIPWAY_KILL_SEED` repeats them.

use crate::clusters::Clusters;
use crate::server::{Server, slipway};
use lab::postgres::{Options, Postgres};
use sim::{Pace, World};
use std::path::Path;
use std::time::{Duration, Instant};

/// What runs on the database.
const SERVERS: usize = 3;
const WORKERS: usize = 2;

/// How long processes are killed, and when the database is restarted meanwhile.
const KILLING: Duration = Duration::from_mins(1);
const RESTARTS: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(40)];

/// What is built, as so many manifests with so many clusters each.
const MANIFESTS: usize = 10;
const CLUSTERS: usize = 20;
const MACHINES: usize = 2;

/// How long the clusters may take to get ready once nobody is killed any more. Far more than
/// they need: only a fleet that is stuck reaches it.
const READY_MAX: Duration = Duration::from_mins(6);

fn manifest(number: usize) -> String {
    let clusters = Clusters {
        name: &format!("m{number}"),
        prefix: &format!("c{number}-"),
        network: &format!("10.{number}"),
        count: CLUSTERS,
        control: 1,
        compute: MACHINES - 1,
    };
    clusters.manifest()
}

/// A process of the fleet, and how often it was started.
struct Member {
    process: Server,
    starts: u32,
}

struct Fleet<'a> {
    directory: &'a Path,
    database: String,
    members: Vec<Member>,
}

impl Fleet<'_> {
    /// Starts the member with that number: the first are servers, the rest workers.
    fn start(&self, number: usize, starts: u32) -> Member {
        let home = self.directory.join(format!("member-{number}-{starts}"));
        std::fs::create_dir_all(&home).unwrap();
        let data = self.directory.join("data");
        let mut command = slipway();
        if number < SERVERS {
            command.args(["serve", "--listen", "127.0.0.1:0"]);
        } else {
            command.arg("worker");
        }
        command
            .args(["--database", &self.database, "--data-dir"])
            .arg(&data);
        Member {
            process: Server::run(command, &home, data),
            starts,
        }
    }

    fn kill(&mut self, number: usize) {
        let starts = self.members[number].starts + 1;
        let next = self.start(number, starts);
        // Dropping the one before kills it.
        self.members[number] = next;
    }

    /// Asks servers until one answers.
    fn ask(&mut self, words: &[&str]) -> Vec<u8> {
        let began = Instant::now();
        loop {
            for number in 0..SERVERS {
                // A server whose database is away may have given up: it is started again, as
                // whoever looks after services would.
                if self.members[number].process.has_ended() {
                    self.kill(number);
                }
                if let Some(address) = self.members[number].process.listens() {
                    let answer = self.members[number].process.client_at(&address, words);
                    if answer.status.success() {
                        return answer.stdout;
                    }
                }
            }
            assert!(
                began.elapsed() < Duration::from_mins(1),
                "nobody answers {words:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn all_ready(&mut self) -> bool {
        let answer = self.ask(&["get", "manifests", "-o", "json"]);
        let listed: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        let manifests = listed.as_array().or(listed["items"].as_array()).unwrap();
        manifests.len() == MANIFESTS && manifests.iter().all(|one| one["state"] == "done")
    }
}

#[test]
fn a_fleet_of_processes_killed_for_a_minute_builds_every_cluster_once() {
    let Some(_) = lab::postgres::shared_or_skip("program::many") else {
        return;
    };
    let mut postgres = Postgres::start(Options::default()).unwrap();
    let seed = match std::env::var("SLIPWAY_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("SLIPWAY_KILL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let world = directory.path().join("data/world.jsonl");
    std::fs::create_dir(directory.path().join("data")).unwrap();
    drop(World::open_watched(&world, Pace::Demo, 0).unwrap());

    let mut fleet = Fleet {
        directory: directory.path(),
        database: postgres.create_database().unwrap(),
        members: Vec::new(),
    };
    for number in 0..SERVERS + WORKERS {
        let mut member = fleet.start(number, 0);
        if number == 0 {
            member.process.address();
        }
        fleet.members.push(member);
    }
    for number in 0..MANIFESTS {
        let file = directory.path().join("manifest.yaml");
        std::fs::write(&file, manifest(number)).unwrap();
        fleet.ask(&["apply", "-f", file.to_str().unwrap()]);
    }

    let (kills, restarts) = kill_for_a_while(&mut fleet, &mut postgres, &mut random);
    let began = Instant::now();
    while !fleet.all_ready() {
        assert!(began.elapsed() < READY_MAX, "not ready, seed {seed}");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(fleet);

    let world = World::open_watched(&world, Pace::Demo, 0).unwrap();
    let made = world.made();
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "made more than once: {twice:?}");
    let wanted = MANIFESTS * CLUSTERS * MACHINES;
    assert_eq!(made.len(), wanted, "machines were made that nobody wanted");
    assert_eq!(
        world.machines(),
        wanted,
        "machines are missing or left over"
    );
    assert_eq!(world.violations(), Vec::new());
    crate::figure(&format!(
        "{kills} kills of {SERVERS} servers and {WORKERS} workers on one PostgreSQL, itself restarted {restarts} times: \
         {} clusters, {wanted} machines, each made once, none left over",
        MANIFESTS * CLUSTERS
    ));
}

fn kill_for_a_while(
    fleet: &mut Fleet<'_>,
    postgres: &mut Postgres,
    random: &mut fastrand::Rng,
) -> (u32, usize) {
    let began = Instant::now();
    let (mut kills, mut restarts) = (0, 0);
    while began.elapsed() < KILLING {
        std::thread::sleep(Duration::from_millis(random.u64(100..1_500)));
        fleet.kill(random.usize(0..SERVERS + WORKERS));
        kills += 1;
        if RESTARTS
            .get(restarts)
            .is_some_and(|at| began.elapsed() >= *at)
        {
            postgres.restart().unwrap();
            restarts += 1;
        }
    }
    (kills, restarts)
}
