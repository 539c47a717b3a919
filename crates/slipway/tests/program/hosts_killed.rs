//! A real server, killed again and again while it makes, equips and joins real hosts.
//!
//! In the end every host was made once and its load balancer listens; deleted under more kills,
//! nothing of them is left. The seed is printed; `SLIPWAY_KILL_SEED` repeats the moments.

use crate::apart::apart;
use crate::server::{Server, slipway};
use crate::{envoy, figure};
use hosts::sandbox::Level;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the server is killed while it builds, and while it deletes.
const KILLS: [u32; 2] = [14, 6];

/// How long the rest may take once nobody kills the server any more. Far more than it needs: only
/// a server that is stuck reaches it.
const READY_MAX: Duration = Duration::from_mins(3);

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sandbox.yaml");

fn start(directory: &Path, mirror: &Path) -> Server {
    let mut command = slipway();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(directory.join("data"));
    command.arg("--mirror").arg(mirror);
    Server::run(command, directory, directory.join("data"))
}

/// What the server answers to a question, as JSON; nothing where there is no such thing.
fn asked(server: &mut Server, words: &[&str]) -> Option<serde_json::Value> {
    let got = server.client(&[words, &["-o", "json"]].concat());
    serde_json::from_slice(&got.stdout).ok()
}

/// Waits until something holds.
fn until(server: &mut Server, what: &str, holds: impl Fn(&mut Server) -> bool) {
    let began = Instant::now();
    while !holds(server) {
        let log = || std::fs::read_to_string(&server.log).unwrap();
        assert!(began.elapsed() < READY_MAX, "{what}: {}", log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Kills the server at random moments, most of them in the middle of its work.
fn killed(mut server: Server, mirror: &Path, times: u32, random: &mut fastrand::Rng) -> Server {
    for _ in 0..times {
        if random.u8(..) > 50 {
            server.address();
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..700)));
        let directory = server.directory.clone();
        drop(server);
        server = start(&directory, mirror);
    }
    server
}

/// Which processes there are besides this one, and whoever waits for it.
fn processes() -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|pid| ![1, std::process::id()].contains(pid));
    let told = others.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    // A process that ended and was not waited for has no life left in it.
    told.filter(|stat| !stat.contains(") Z ")).collect()
}

/// The machines there are.
fn machines(server: &mut Server) -> Option<Vec<serde_json::Value>> {
    let told = asked(server, &["get", "machines"])?;
    Some(told["items"].as_array()?.clone())
}

/// What the sandbox keeps, by machine.
fn kept(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("data/sandbox/hosts")).map_or(0, Iterator::count)
}

/// The network devices there are.
fn links() -> String {
    let mut listed = std::process::Command::new("ip");
    let names = listed.args(["-br", "link"]).output().unwrap().stdout;
    String::from_utf8(names).unwrap()
}

#[test]
fn killed_while_it_makes_hosts_it_makes_each_once_and_leaves_none() {
    let test = "hosts_killed::killed_while_it_makes_hosts_it_makes_each_once_and_leaves_none";
    let Some(mirror) = envoy::mirror(test) else {
        return;
    };
    apart(test, Level::Lite, async |lab| {
        tokio::task::block_in_place(|| made_once_and_gone(&lab.dir, &mirror));
    });
}

fn made_once_and_gone(directory: &Path, mirror: &Path) {
    let seed = match std::env::var("SLIPWAY_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("SLIPWAY_KILL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let before = links();
    let mut server = start(directory, mirror);
    let applied = server.client(&["apply", "-f", EXAMPLE]);
    assert!(applied.status.success(), "{applied:?}");
    server = killed(server, mirror, KILLS[0], &mut random);
    until(&mut server, "it is not ready", |server| {
        let manifest = asked(server, &["get", "manifest", "sandbox"]);
        manifest.is_some_and(|view| view["state"] == "done")
    });
    let machines = machines(&mut server).unwrap();
    assert_eq!(machines.len(), 4);
    assert_eq!(kept(directory), 4, "each was made once");
    let mut rows = machines.iter();
    let door = rows.find(|row| row["role"] == "balancer").unwrap();
    let at = door["machine"]["address"].as_str().unwrap();
    TcpStream::connect(format!("{at}:8080")).unwrap();

    let going = server.client(&["delete", "manifest", "sandbox", "--yes"]);
    assert!(going.status.success(), "{going:?}");
    server = killed(server, mirror, KILLS[1], &mut random);
    until(&mut server, "it is not gone", |server| {
        self::machines(server).is_some_and(|left| left.is_empty())
    });
    assert_eq!(kept(directory), 0);
    assert_eq!(links(), before, "nothing is left of the hosts' network");
    drop(server);
    let left = processes();
    assert!(left.is_empty(), "{left:?}");
    figure(&format!(
        "kills: {} while 4 real hosts were made, equipped, joined and deleted, each made once, none left over",
        KILLS[0] + KILLS[1]
    ));
}
