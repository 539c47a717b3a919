//! A site without a network, from the outside: packages are collected where there is one, carried
//! over, served, and installed on a real host.

use crate::apart::{Lab, apart, missing};
use crate::secrets::done;
use crate::server::{Server, slipway};
use crate::wrong_key;
use hosts::sandbox::{Level, Made};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the packages are that this test collects; kept, so that the next run is quick.
fn mirror() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages-of-the-program")
}

fn collecting(to: &Path) -> Command {
    let mut command = slipway();
    command.args(["mirror", "packages", "--to"]).arg(to);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
}

/// A mirror that is served, until dropped.
struct Served(Child, String);

impl Served {
    fn start(directory: &Path) -> Self {
        let mut child = slipway()
            .args(["mirror", "serve", "--listen", "127.0.0.1:0"])
            .arg(directory)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.rsplit(' ').next().unwrap().to_owned();
        let second = lines.next().unwrap().unwrap();
        assert_eq!(
            second,
            format!("use it with: slipway serve --mirror {address}")
        );
        Self(child, address)
    }

    /// Ends as it should.
    fn end(mut self) {
        interrupt(&self.0);
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Collects packages, is interrupted, and goes on. Whether there are any to be had here.
fn collected(test: &str) -> bool {
    let to = mirror();
    let mut child = collecting(&to).spawn().unwrap();
    let began = Instant::now();
    while !to.join(".packages").exists() && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_mins(1), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if said.contains("ARTIFACT-007") {
        lab::skip(test, &format!("there are no packages here: {said}"));
        return false;
    }
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("give the same command again"), "{said}");
    let ended = collecting(&to).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if said.contains("ARTIFACT-007") {
        lab::skip(test, &format!("there are no packages here: {said}"));
        return false;
    }
    assert!(ended.status.success(), "{said}");
    let told = String::from_utf8_lossy(&ended.stdout).into_owned();
    for part in ["/wireguard-tools_", "/containerd_", "/libc6_"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!to.join(".packages").exists());
    let mut verify = slipway();
    verify.args(["mirror", "verify"]).arg(&to);
    assert!(verify.output().unwrap().status.success());
    true
}

#[test]
fn a_site_without_a_network_gets_its_packages_over_a_served_mirror() {
    let name = "airgap::a_site_without_a_network_gets_its_packages_over_a_served_mirror";
    if lab::within().is_none() && (missing(Level::Lite).is_none() && !collected(name)) {
        return;
    }
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let host = sandbox.create(&lab.order("one", Level::Lite)).await;
        let host = host.unwrap();
        lab.ssh(&host, BARE).unwrap();
        tokio::task::block_in_place(|| equipped(&lab, &host));
        sandbox.clear().await.unwrap();
    });
}

/// What the rest of the world would be for packages, taken away; and two packages that every host
/// of the sandbox has.
const BARE: &str = "rm -rf /etc/apt/sources.list.d /var/lib/apt/lists; : >/etc/apt/sources.list; \
    dpkg --purge wireguard-go wireguard-tools >/dev/null 2>&1; ! command -v wg";

/// A server whose only mirror is a served one equips the host out of it.
fn equipped(lab: &Lab, host: &Made) {
    let served = Served::start(&mirror());
    let mut command = slipway();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(lab.dir.join("data"));
    command.args(["--mirror", &served.1]);
    let mut server = Server::run(command, &lab.dir, lab.dir.join("data"));
    wrong_key::set(&mut server, &lab.dir.join("key"));
    let manifest = wrong_key::manifest(lab, &host.address.to_string());
    done(&server.client(&["apply", "-f", &manifest]));
    wrong_key::goes_as_far_as_it_can(&mut server);
    let version = lab.ssh(host, "wg --version").unwrap();
    assert!(version.starts_with("wireguard-tools"), "{version}");
    let tasks = server.client(&["get", "tasks", "-o", "json"]);
    let tasks: serde_json::Value = serde_json::from_slice(&tasks.stdout).unwrap();
    let mut tasks = tasks["items"].as_array().unwrap().iter();
    let equip = tasks.find(|task| task["kind"] == "equip").unwrap();
    let log = done(&server.client(&["task", "log", equip["id"].as_str().unwrap()]));
    assert!(log.contains("packages: 2 brought"), "{log}");
    served.end();
}

#[test]
fn without_apt_it_says_so() {
    if missing(Level::Lite).is_some() {
        return lab::skip("without_apt_it_says_so", "not possible here: it takes root");
    }
    let home = tempfile::tempdir().unwrap();
    let hidden = "mount --bind /dev/null /usr/bin/apt-get && exec \"$@\"";
    let ended = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", hidden])
        .args(["sh", env!("CARGO_BIN_EXE_slipway"), "mirror", "packages"])
        .arg("--to")
        .arg(home.path().join("mirror"))
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let first = "error: could not collect packages: the program apt-get is missing (ARTIFACT-007)";
    assert!(said.starts_with(first), "{said}");
    assert!(
        said.contains("\nhint: run it on a Debian or Ubuntu machine"),
        "{said}"
    );
    assert!(!home.path().join("mirror").exists());
}
