//! Environments through the whole program, deployed by the example scripts.

mod bad_input;
mod early;
mod git;
mod import;
mod killed;
mod secret;
mod several;
mod told;
mod verbs;
mod walk;
mod wire;

use crate::secrets::{done, said, until};
use crate::server::{Server, slipway};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Where the example scripts are.
const EXAMPLES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/environments/scripts"
);

/// Scripts that change something.
const CHANGING: &[&str] = &["create", "update", "archive", "unarchive", "cleanup"];

/// A server with a project whose environments are deployed by the example scripts, each run of
/// one that changes something written down.
struct House {
    directory: tempfile::TempDir,
    /// The address of a PostgreSQL database, where there is one.
    database: Option<String>,
    server: Server,
}

impl House {
    /// Where looks are made every second, and nobody waits long for what is pending.
    fn new(delivery: &str) -> Self {
        Self::on(None, delivery)
    }

    /// The same on a database of its own.
    fn on(database: Option<String>, delivery: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        noted_scripts(&directory.path().join("scripts"), &runs_of(&directory));
        let server = serve(directory.path(), database.as_deref());
        let mut house = Self {
            directory,
            database,
            server,
        };
        let scripts = house.directory.path().join("scripts");
        house.env(&[
            "settings",
            "set",
            "--project-name",
            "Shop",
            "--base-domain",
            "shop.example.org",
            "--namespace",
            "shop",
            "--scripts",
            scripts.to_str().unwrap(),
            "--every",
            "1s",
            "--pending-time",
            "3s",
            "--secret-delivery",
            delivery,
        ]);
        house
    }

    /// Kills the server with no time to tidy up, and starts another.
    fn kill(&mut self) {
        drop(self.server.child.kill());
        drop(self.server.child.wait());
        let next = serve(self.directory.path(), self.database.as_deref());
        self.server = next;
    }

    /// Runs `slipway env …`, which must end well.
    #[track_caller]
    fn env(&mut self, words: &[&str]) -> String {
        let words: Vec<_> = ["env"].iter().chain(words).copied().collect();
        done(&self.server.client(&words))
    }

    /// The same when it is to end badly; answers its exit code and what it said.
    #[track_caller]
    fn refused(&mut self, words: &[&str]) -> (Option<i32>, String) {
        let words: Vec<_> = ["env"].iter().chain(words).copied().collect();
        let output = self.server.client(&words);
        assert!(!output.status.success(), "{}", said(&output));
        (output.status.code(), said(&output))
    }

    /// What opens the API to whoever asks it without the command line.
    fn bearer(&self) -> (&'static str, String) {
        let token = self.directory.path().join("data/admin.token");
        let token = std::fs::read_to_string(token).unwrap();
        ("authorization", format!("Bearer {}", token.trim()))
    }

    /// All that is known of an environment, for programs.
    #[track_caller]
    fn seen(&mut self, name: &str) -> Value {
        let output = self.server.client(&["env", "status", name, "-o", "json"]);
        assert!(
            output.status.success() || !output.stdout.is_empty(),
            "{}",
            said(&output)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until an environment is so.
    #[track_caller]
    fn is(&mut self, name: &str, status: &str) {
        until(&format!("{name} is {status}"), || {
            (self.seen(name)["status"] == status).then_some(())
        });
    }

    /// Has scripts that change something wait until they are let go.
    fn hold(&self, hold: bool) {
        let file = self.directory.path().join("runs.hold");
        if hold {
            std::fs::write(file, "").unwrap();
        } else {
            std::fs::remove_file(file).unwrap();
        }
    }

    /// How often each script was run for an environment.
    fn runs(&self, name: &str) -> BTreeMap<String, usize> {
        let noted = std::fs::read_to_string(runs_of(&self.directory)).unwrap_or_default();
        let mut runs = BTreeMap::new();
        for line in noted.lines() {
            let (script, of) = line.split_once(' ').unwrap();
            if of == name {
                *runs.entry(script.to_owned()).or_insert(0) += 1;
            }
        }
        runs
    }
}

fn runs_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("runs")
}

fn serve(directory: &Path, database: Option<&str>) -> Server {
    let data = directory.join("data");
    let mut command = slipway();
    command
        .env("SLIPWAY_LOG", "trace")
        .env("SLIPWAY_HELM", directory.join("helm"))
        .env("SLIPWAY_KUBECTL", directory.join("kubectl"))
        .env("SLIPWAY_EXAMPLE_STATE", directory.join("state"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data);
    if let Some(address) = database {
        command.args(["--database", address]);
    }
    Server::run(command, directory, data)
}

/// Scripts that are those of the example; those that change something note that they run, and wait
/// where they are held.
fn noted_scripts(directory: &Path, runs: &Path) {
    std::fs::create_dir(directory).unwrap();
    for entry in std::fs::read_dir(EXAMPLES).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains('.') {
            continue;
        }
        let note = if CHANGING.contains(&name) {
            // The name of the environment is the eighth word, behind its option.
            format!(
                "echo \"{name} $8\" >>'{0}'\nn=0\nwhile [ -e '{0}.hold' ]; do n=$((n+1)); echo \"held $n\"; sleep 0.2; done\n[ $n -eq 0 ] || echo \"let go after $n\"\n",
                runs.display()
            )
        } else {
            String::new()
        };
        let text = format!("#!/bin/sh\n{note}exec '{}' \"$@\"\n", path.display());
        let script = directory.join(name);
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
