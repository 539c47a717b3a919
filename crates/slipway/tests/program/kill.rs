//! A real server, killed a hundred times at random moments while it builds twenty clusters.
//!
//! The world it builds in is a file of its own, which stands for the outside and knows nothing
//! of the server's deaths. In the end every cluster must be ready, no machine made twice, none
//! left over. The seed of the moments is printed; `SLIPWAY_KILL_SEED` repeats them.

use crate::clusters::Clusters;
use crate::server::Server;
use sim::{Pace, World};
use std::time::{Duration, Instant};

/// How often the server is killed.
const KILLS: u32 = 100;

/// The clusters of the manifest, of three control machines each.
const CLUSTERS: usize = 20;
const CONTROL: usize = 3;

/// How long the clusters may take to get ready once nobody kills the server any more. Far more
/// than they need: only a server that is stuck reaches it.
const READY_MAX: Duration = Duration::from_mins(5);

fn manifest(compute: usize) -> String {
    let clusters = Clusters {
        name: "twenty",
        prefix: "c",
        network: "10.20",
        count: CLUSTERS,
        control: CONTROL,
        compute,
    };
    clusters.manifest()
}

/// Applies the manifest with that many compute machines per cluster.
fn apply(server: &mut Server, compute: usize) {
    let file = server.directory.join("manifest.yaml");
    std::fs::write(&file, manifest(compute)).unwrap();
    let applied = server.client(&["apply", "-f", file.to_str().unwrap()]);
    assert!(
        applied.status.success(),
        "{}",
        String::from_utf8_lossy(&applied.stderr)
    );
}

/// Where the manifest stands.
fn state(server: &mut Server) -> String {
    let got = server.client(&["get", "manifest", "twenty", "-o", "json"]);
    assert!(
        got.status.success(),
        "{}",
        String::from_utf8_lossy(&got.stderr)
    );
    let view: serde_json::Value = serde_json::from_slice(&got.stdout).unwrap();
    view["state"].as_str().unwrap().to_owned()
}

#[test]
fn killed_a_hundred_times_it_builds_every_cluster_once() {
    let seed = match std::env::var("SLIPWAY_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("SLIPWAY_KILL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let mut compute = 3;
    let mut server = Server::start(directory.path());
    apply(&mut server, compute);
    for kill in 1..=KILLS {
        // Some die before they listen, most in the middle of their work.
        if !random.bool() || kill % 10 == 0 {
            server.address();
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..400)));
        // There is always something to build.
        if kill % 10 == 0 && state(&mut server) == "done" {
            compute += 1;
            apply(&mut server, compute);
            std::thread::sleep(Duration::from_millis(random.u64(0..400)));
        }
        drop(server);
        server = Server::start(directory.path());
    }
    let began = Instant::now();
    while state(&mut server) != "done" {
        assert!(
            began.elapsed() < READY_MAX,
            "not ready: {}",
            std::fs::read_to_string(&server.log).unwrap()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(server);

    let world = World::open(&directory.path().join("data/world.jsonl"), Pace::Demo, 0).unwrap();
    let made = world.made();
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "made more than once: {twice:?}");
    let wanted = CLUSTERS * (CONTROL + compute);
    assert_eq!(made.len(), wanted, "machines were made that nobody wanted");
    assert_eq!(
        world.machines(),
        wanted,
        "machines are missing or left over"
    );
    assert_eq!(world.violations(), Vec::new());
    crate::figure(&format!(
        "{KILLS} kills of a server building {CLUSTERS} clusters: {wanted} machines, each made once, none left over"
    ));
}
