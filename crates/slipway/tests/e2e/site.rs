//! What a story has to itself: a server, its hosts, and somebody who looks at the clock.

use crate::apart::{Lab, World, apart, groups, keys};
use crate::asking::{SOON, until};
use crate::hosts_within::Within;
use crate::server::{Server, slipway};
use crate::shape::{NAME, Shape, workload};
use hosts::sandbox::Level;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The Kubernetes that stories begin with.
pub(crate) const VERSION: &str = lab::kubernetes::VERSIONS[0];

/// The Kubernetes that they get.
pub(crate) const NEXT: &str = lab::kubernetes::VERSIONS[1];

/// How long a cluster may take until it is as declared, for `--timeout`. Far more than it needs: only
/// one that is stuck reaches it.
pub(crate) const READY_MAX: &str = "25m";

/// Names the file that `cargo xtask e2e` reads the steps from.
const STEPS: &str = "SLIPWAY_STEPS";

/// What the server says of a task that led elsewhere than plans say.
const UNFORESEEN: &str = "not as foreseen";

/// A running story.
pub(crate) struct Site {
    story: String,
    server: Option<Server>,
    /// Whether the server looks twice.
    judged: bool,
    pub(crate) lab: Lab,
    pub(crate) mirror: PathBuf,
    /// What there was before anything happened.
    before: World,
    /// What all hosts were called that were ever there.
    keys: BTreeSet<String>,
}

/// Says what a step took, or what was found out, here and in the table at the end.
pub(crate) fn noted(story: &str, what: &str, took: Option<Duration>) {
    let took = took.map(|took| format!("{:.1}", took.as_secs_f64()));
    let seconds = took.as_ref().map(|took| format!(": {took} s"));
    println!("{story}: {what}{}", seconds.unwrap_or_default());
    if let Some(file) = std::env::var_os(STEPS) {
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file);
        let mut steps = file.unwrap();
        writeln!(steps, "{story}\t{what}\t{}", took.unwrap_or_default()).unwrap();
    }
}

/// Tells a story; it is skipped where there is no Kubernetes of these versions or no place for hosts.
pub(crate) fn story(test: &str, versions: &[&str], told: impl FnOnce(&mut Site)) {
    tell(test, versions, false, told);
}

/// Tells a story in which nothing but us changes anything: each task must lead where plans say.
pub(crate) fn foreseen(test: &str, versions: &[&str], told: impl FnOnce(&mut Site)) {
    tell(test, versions, true, told);
}

fn tell(test: &str, versions: &[&str], judged: bool, told: impl FnOnce(&mut Site)) {
    let built = |version: &&str| lab::kubernetes::programs(version).is_some();
    let mirror = lab::kubernetes::mirror().filter(|_| versions.iter().all(built));
    let Some(mirror) = mirror else {
        return lab::skip(test, &lab::kubernetes::missing());
    };
    apart(test, Level::Systemd, async |lab| {
        tokio::task::block_in_place(|| {
            let mut site = Site::open(test, lab, mirror, judged);
            told(&mut site);
            site.close();
        });
    });
}

impl Site {
    fn open(test: &str, lab: Lab, mirror: PathBuf, judged: bool) -> Self {
        let story = test.split("::").next().unwrap().to_owned();
        let before = lab.world();
        let mut site = Self {
            story,
            server: None,
            judged,
            lab,
            mirror,
            before,
            keys: BTreeSet::new(),
        };
        site.start();
        site
    }

    /// Where the server keeps its data.
    pub(crate) fn directory(&self) -> &Path {
        &self.lab.dir
    }

    /// Starts a server; one that runs is killed.
    pub(crate) fn start(&mut self) {
        self.kill();
        let mut command = slipway();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(&self.lab.dir).arg("--mirror").arg(&self.mirror);
        let helm = lab::helm::program(lab::helm::VERSIONS[0]);
        for (flag, program) in [("--helm", helm), ("--kubectl", lab::helm::kubectl())] {
            command.args(
                program
                    .map(|program| [flag.into(), program.into_os_string()])
                    .into_iter()
                    .flatten(),
            );
        }
        if self.judged {
            command.arg("--second-look");
        }
        let server = Server::run(command, &self.lab.dir, self.lab.dir.clone());
        self.server.insert(server).address();
    }

    /// Kills the server: it gets no chance to tidy up.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }

    /// Does a step of the story, and tells how long it took.
    pub(crate) fn step<T>(&mut self, what: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        println!("{}: {what} …", self.story);
        let began = Instant::now();
        let done = work(self);
        let took = began.elapsed();
        noted(&self.story, what, Some(took));
        self.keys.extend(keys(&self.lab.dir));
        done
    }

    /// Says what was found out, beside the steps.
    pub(crate) fn figure(&self, what: &str) {
        noted(&self.story, what, None);
    }

    /// Runs a client verb, which must succeed.
    #[track_caller]
    pub(crate) fn client(&mut self, words: &[&str]) -> String {
        let output = self.server.as_mut().unwrap().client(words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}{complaint}");
        said
    }

    /// What the server complains about, which must be something.
    #[track_caller]
    pub(crate) fn refused(&mut self, words: &[&str]) -> String {
        let output = self.server.as_mut().unwrap().client(words);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{words:?}: {complaint}");
        complaint
    }

    /// What the server answers to a question.
    #[track_caller]
    pub(crate) fn told(&mut self, words: &[&str]) -> Vec<Value> {
        let said = self.client(&[words, &["-o", "json"]].concat());
        let told: Value = serde_json::from_str(&said).unwrap();
        told["items"].as_array().unwrap().clone()
    }

    /// All machines.
    pub(crate) fn machines(&mut self) -> Vec<Value> {
        self.told(&["get", "machines"])
    }

    /// What each of them is called that nobody else ever is.
    pub(crate) fn ids(&mut self) -> Vec<Value> {
        let machines = self.machines();
        machines
            .iter()
            .map(|machine| machine["id"].clone())
            .collect()
    }

    /// The names of the machines that do this.
    pub(crate) fn names(&mut self, role: &str) -> Vec<String> {
        let machines = self.machines();
        let fitting = machines.iter().filter(|machine| machine["role"] == role);
        let name = |machine: &Value| machine["name"].as_str().unwrap().to_owned();
        fitting.map(name).collect()
    }

    /// Where the machines that do this answer people.
    pub(crate) fn addresses(&mut self, role: &str) -> Vec<String> {
        let machines = self.machines();
        let fitting = machines.iter().filter(|machine| machine["role"] == role);
        let address = |machine: &Value| {
            let at = machine["machine"]["address"].as_str();
            at.unwrap().to_owned()
        };
        fitting.map(address).collect()
    }

    /// Declares a manifest and does not wait.
    #[track_caller]
    pub(crate) fn declare(&mut self, shape: Shape, more: &[&str]) {
        self.declare_text(&shape.manifest(), more);
    }

    /// Declares a manifest of another shape.
    #[track_caller]
    pub(crate) fn declare_text(&mut self, manifest: &str, more: &[&str]) {
        let file = self.lab.dir.join("manifest.yaml");
        std::fs::write(&file, manifest).unwrap();
        let words = ["apply", "-f", file.to_str().unwrap()];
        // What somebody asked for is not too much.
        let words = [&words[..], &["--allow-blast", "100"], more].concat();
        self.client(&words);
    }

    /// Declares a manifest, waits until all is so, and looks whether it is.
    #[track_caller]
    pub(crate) fn apply(&mut self, shape: Shape) {
        self.declare(shape, &["--wait", "--timeout", READY_MAX]);
        let machines = self.machines();
        assert_eq!(machines.len(), shape.machines(), "{machines:#?}");
        let nodes = self.kubectl(&["get", "nodes", "--no-headers"], "").unwrap();
        let ready = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(1) == Some(&"Ready") && words.last() == Some(&shape.version)
        };
        let wanted = shape.control + shape.compute;
        assert_eq!(nodes.lines().count(), wanted, "{nodes}");
        assert!(nodes.lines().all(ready), "{nodes}");
    }

    /// Waits until a task has failed so, and everybody who asks is told.
    #[track_caller]
    pub(crate) fn failing(&mut self, code: &str, hint: &str) {
        let code = format!("({code})");
        until(&code, || {
            let why = self.client(&["why", "cluster", NAME]);
            (why.contains(&code) && why.contains(hint)).then_some(())
        });
    }

    /// Asks for another attempt of what waits for a person.
    pub(crate) fn retry(&mut self) {
        for task in self.told(&["get", "tasks"]) {
            if task["state"] == "stuck" {
                let id = task["id"].as_str().unwrap();
                self.client(&["task", "retry", id, "--reason", "it was mended"]);
            }
        }
    }

    /// Deletes everything, and waits until it is gone.
    #[track_caller]
    pub(crate) fn delete(&mut self) {
        let wait = ["--yes", "--wait", "--timeout", READY_MAX];
        self.client(&[&["delete", "manifest", NAME], &wait[..]].concat());
    }

    /// Waits until everything is gone that was told to go.
    #[track_caller]
    pub(crate) fn gone(&mut self) {
        let began = Instant::now();
        while !self.machines().is_empty() {
            assert!(began.elapsed() < SOON, "machines are never gone");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A host of this name, which must run.
    #[track_caller]
    pub(crate) fn host(name: &str) -> Within {
        let host = Within::find(name);
        assert!(host.is_some(), "there is no host {name} that runs");
        host.unwrap()
    }

    /// Asks the API, on the first control machine that lets us.
    pub(crate) fn kubectl(&mut self, words: &[&str], input: &str) -> Result<String, String> {
        kubectl(self.names("control"), words, input)
    }

    /// Brings what pods are made of to all compute machines: there is no registry.
    pub(crate) fn bring_echo(&mut self) {
        for name in self.names("compute") {
            assert!(self.bring_echo_to(&name), "{name} takes no image");
        }
    }

    /// The same for one of them; answers whether it could be done already.
    pub(crate) fn bring_echo_to(&self, name: &str) -> bool {
        let platform = lab::kubernetes::platform();
        let archive = self.mirror.join(format!("lab/{platform}/images/echo.tar"));
        let archive = std::fs::read(archive).unwrap();
        let words = ["ctr", "-n", "k8s.io", "images", "import", "-"];
        Within::find(name).is_some_and(|host| host.run(&words, &archive).is_ok())
    }

    /// Has pods there that answer, and waits until all do.
    #[track_caller]
    pub(crate) fn deploy(&mut self, replicas: usize) {
        self.bring_echo();
        self.kubectl(&["apply", "-f", "-"], &workload(replicas))
            .unwrap();
        self.rolled_out();
    }

    /// Waits until all pods answer.
    #[track_caller]
    pub(crate) fn rolled_out(&mut self) {
        let words = ["rollout", "status", "deployment/echo", "--timeout=100s"];
        self.kubectl(&words, "").unwrap();
    }

    /// Looks whether anything is left once everything was deleted.
    fn close(mut self) {
        self.step("nothing is left", |site| {
            assert_eq!(site.machines(), Vec::<Value>::new());
            assert_eq!(site.told(&["get", "clusters"]), Vec::<Value>::new());
            let log = std::fs::read_to_string(&site.server.as_ref().unwrap().log).unwrap();
            let unforeseen: Vec<&str> = log
                .lines()
                .filter(|line| line.contains(UNFORESEEN))
                .collect();
            assert!(unforeseen.is_empty(), "{unforeseen:#?}");
            site.kill();
            let left: Vec<_> = site.keys.iter().flat_map(|key| groups(key)).collect();
            assert_eq!(left, Vec::<PathBuf>::new(), "control groups are left");
            let settled = site.lab.settles_to(&site.before);
            tokio::runtime::Handle::current().block_on(settled);
        });
    }

    /// What somebody wants to read who was told that the story failed.
    fn report(&mut self) -> String {
        let Some(server) = self.server.as_mut() else {
            return "no server runs".to_owned();
        };
        let mut text = String::new();
        let tasks = server.client(&["get", "tasks", "-o", "json"]);
        let tasks: Value = serde_json::from_slice(&tasks.stdout).unwrap_or_default();
        let tasks = tasks["items"].as_array().cloned().unwrap_or_default();
        let open = tasks.iter().filter(|task| task["state"] != "done");
        for task in open.filter(|task| task["state"] != "withdrawn") {
            let log = server.client(&["task", "log", task["id"].as_str().unwrap_or_default()]);
            let log = String::from_utf8_lossy(&log.stdout);
            text += &format!("\n{task:#}\n{log}");
        }
        text += "\nthe server said:\n";
        text += &std::fs::read_to_string(&server.log).unwrap_or_default();
        // Nothing here may fail once more.
        let control = |number| format!("{NAME}-control-0{number}");
        for what in ["nodes", "pods", "events"] {
            let words = ["get", what, "--all-namespaces", "--output=wide"];
            let told = kubectl((1..5).map(control), &words, "");
            text += &told.unwrap_or_else(|why| why);
        }
        text
    }
}

fn kubectl(
    hosts: impl IntoIterator<Item = String>,
    words: &[&str],
    input: &str,
) -> Result<String, String> {
    let admin = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"];
    let words = [&admin[..], &["--request-timeout=30s"], words].concat();
    let mut last = Err("no control machine runs".to_owned());
    for host in hosts {
        if let Some(host) = Within::find(&host) {
            last = host.run(&words, input.as_bytes());
            if last.is_ok() {
                break;
            }
        }
    }
    last
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let report = self.report();
            println!("{}: failed\n{report}", self.story);
        }
    }
}
