//! A real host that does not accept its key, through the whole program: who must act is told
//! everywhere, and when they did the cluster goes on.

use crate::apart::{Lab, apart};
use crate::secrets::{done, until};
use crate::server::Server;
use hosts::sandbox::Level;
use std::path::Path;
use std::process::Command;

/// A cluster of one host that was there before.
const MANIFEST: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: attic}
spec:
  nodePools:
    static:
      - {name: trunk, nodes: [{endpoint: ENDPOINT, secretRef: {name: door}}]}
  kubernetes:
    clusters:
      - {name: attic, version: v1.34.0, network: 10.30.0.0/24, pools: {control: [trunk], compute: []}}
";

/// What everybody is told.
const CODE: &str = "(HOST-003)";
const HINT: &str = "set the right private key with `slipway secret set`";

/// Sets the key of the host as a person does.
pub(crate) fn set(server: &mut Server, key: &Path) {
    let entry = format!("privatekey={}", key.display());
    done(&server.client(&["secret", "set", "door", &entry]));
}

/// Writes the manifest with the host that answers there; answers its path.
pub(crate) fn manifest(lab: &Lab, endpoint: &str) -> String {
    let manifest = lab.dir.join("manifest.yaml");
    std::fs::write(&manifest, MANIFEST.replace("ENDPOINT", endpoint)).unwrap();
    manifest.to_str().unwrap().to_owned()
}

/// The task that waits for a person, and what it says.
fn stuck(server: &mut Server) -> Option<(String, String)> {
    let tasks = server.client(&["get", "tasks", "-o", "json"]);
    let tasks: serde_json::Value = serde_json::from_slice(&tasks.stdout).unwrap();
    let mut tasks = tasks["items"].as_array().unwrap().iter();
    let found = tasks.find(|task| task["state"] == "stuck")?;
    let word = |key: &str| found[key].as_str().unwrap().to_owned();
    Some((word("id"), word("error")))
}

/// Waits until the host is entered and equipped, and found to be no place for Kubernetes.
pub(crate) fn goes_as_far_as_it_can(server: &mut Server) {
    until("a host without systemd is refused", || {
        let (_, error) = stuck(server)?;
        error.contains("has no systemd (KUBE-030)").then_some(error)
    });
}

#[test]
fn a_host_that_refuses_its_key_waits_for_a_person_and_then_goes_on() {
    let name = "wrong_key::a_host_that_refuses_its_key_waits_for_a_person_and_then_goes_on";
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let host = sandbox.create(&lab.order("one", Level::Lite)).await;
        let endpoint = host.unwrap().address.to_string();
        tokio::task::block_in_place(|| told_and_mended(&lab, &endpoint));
        sandbox.clear().await.unwrap();
    });
}

fn told_and_mended(lab: &Lab, endpoint: &str) {
    let other = lab.dir.join("other");
    let keygen = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&other)
        .status();
    assert!(keygen.unwrap().success());
    let mut server = Server::start(&lab.dir);
    set(&mut server, &other);
    let manifest = &manifest(lab, endpoint);
    done(&server.client(&["apply", "-f", manifest]));

    // Every way to ask says what is wrong and what helps.
    let (task, error) = until("the host refuses its key", || stuck(&mut server));
    assert!(error.contains(CODE), "{error}");
    let why = done(&server.client(&["why", "machine", "attic-trunk-01"]));
    let log = done(&server.client(&["task", "log", &task]));
    let described = done(&server.client(&["describe", "task", &task]));
    for told in [&why, &log, &described] {
        assert!(told.contains(CODE) && told.contains(HINT), "{told}");
    }
    assert!(why.contains("stuck"), "it waits for a person: {why}");
    // Another attempt with the same key ends as the one before.
    done(&server.client(&["task", "retry", &task, "--reason", "try it"]));
    until("the host refuses it again", || {
        let log = done(&server.client(&["task", "log", &task]));
        (log.matches(CODE).count() >= 2).then_some(log)
    });

    set(&mut server, &lab.dir.join("key"));
    // Nobody needs to ask for another attempt.
    goes_as_far_as_it_can(&mut server);
    let machine = done(&server.client(&["describe", "machine", "attic-trunk-01"]));
    assert!(machine.contains(endpoint), "{machine}");
}
