//! Two servers on one PostgreSQL, each of which could have a sandbox: neither makes machines in it,
//! because it would take the other's for gone and make them a second time.

use crate::server::{Server, slipway};
use std::path::Path;
use std::time::{Duration, Instant};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sandbox.yaml");

/// How long the servers may take. Far more than they need: only one that is stuck reaches it.
const MAX: Duration = Duration::from_mins(2);

fn start(directory: &Path, name: &str, database: &str) -> Server {
    let home = directory.join(name);
    std::fs::create_dir_all(&home).unwrap();
    let data = home.join("data");
    let mut command = slipway();
    command.args(["serve", "--listen", "127.0.0.1:0", "--database", database]);
    command.arg("--key-file").arg(directory.join("key"));
    command.arg("--data-dir").arg(&data);
    Server::run(command, &home, data)
}

/// Asks until the answer holds what is waited for.
fn until(server: &mut Server, words: &[&str], holds: impl Fn(&str) -> bool) {
    let began = Instant::now();
    loop {
        let got = server.client(words);
        let said = String::from_utf8_lossy(&got.stdout).into_owned();
        if got.status.success() && holds(&said) {
            return;
        }
        assert!(began.elapsed() < MAX, "{words:?}: {got:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn servers_that_share_a_database_make_nothing_in_a_sandbox() {
    let Some(postgres) = lab::postgres::shared_or_skip("program::shared_sandbox") else {
        return;
    };
    let database = postgres.create_database().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut one = start(directory.path(), "one", &database);
    one.address();
    let mut two = start(directory.path(), "two", &database);
    let applied = one.client(&["apply", "-f", EXAMPLE]);
    assert!(applied.status.success(), "{applied:?}");
    until(&mut one, &["get", "tasks"], |said| {
        said.contains("SANDBOX-008")
    });
    two.address();
    let deleted = one.client(&["delete", "manifest", "sandbox", "--yes"]);
    assert!(deleted.status.success(), "{deleted:?}");
    until(&mut one, &["get", "machines", "-o", "json"], |said| {
        let told: serde_json::Value = serde_json::from_str(said).unwrap();
        told["items"].as_array().is_some_and(Vec::is_empty)
    });
    for name in ["one", "two"] {
        let sandbox = directory.path().join(name).join("data/sandbox");
        assert!(!sandbox.exists(), "{name} made a sandbox");
    }
}
