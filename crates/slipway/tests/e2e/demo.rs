//! The demo as a newcomer sees it, with a real Kubernetes: shown from nothing to pods that answer,
//! and ended in the middle.

use crate::apart::{Lab, apart, groups, keys};
use crate::asking::until;
use crate::hosts_within::runs;
use crate::server::slipway;
use crate::site::{VERSION, noted};
use hosts::sandbox::Level;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

/// What the demo says when it has come so far, and how the step is called.
const STEPS: [(&str, &str); 4] = [
    ("all 5 nodes are ready", "from the start to all nodes ready"),
    ("pods serve:", "from the start to pods that serve"),
    (
        "over the mesh it was answered by",
        "from the start to answers of all pods",
    ),
    ("all is gone", "from the start to everything deleted"),
];

/// A demo that runs, killed when dropped.
struct Demo {
    child: Child,
    began: Instant,
    /// Where it has its directory.
    temporary: PathBuf,
}

impl Demo {
    fn start(lab: &Lab, mirror: &Path, more: &[&str]) -> Self {
        let temporary = lab.dir.join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = slipway();
        command
            .args(["demo", "--mirror"])
            .arg(mirror)
            .args(more)
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Self {
            child: command.spawn().unwrap(),
            began: Instant::now(),
            temporary,
        }
    }

    /// What it is called by whom it has made.
    fn keys(&self) -> BTreeSet<String> {
        let homes = std::fs::read_dir(&self.temporary).unwrap().flatten();
        homes.flat_map(|home| keys(&home.path())).collect()
    }

    fn ended(&mut self) -> ExitStatus {
        until("the end of the demo", || self.child.try_wait().unwrap())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a demo apart, then looks whether anything is left of it.
fn shown(test: &str, more: &[&str], watched: impl FnOnce(&mut Demo) -> BTreeSet<String>) {
    let built = lab::kubernetes::programs(VERSION).is_some();
    let Some(mirror) = lab::kubernetes::mirror().filter(|_| built) else {
        return lab::skip(test, &lab::kubernetes::missing());
    };
    apart(test, Level::Systemd, async |lab| {
        let before = lab.world();
        let keys = tokio::task::block_in_place(|| {
            let mut demo = Demo::start(&lab, &mirror, more);
            let keys = watched(&mut demo);
            let left = std::fs::read_dir(&demo.temporary).unwrap().flatten();
            let left: Vec<_> = left.map(|entry| entry.path()).collect();
            assert_eq!(left, Vec::<PathBuf>::new(), "files are left");
            keys
        });
        assert!(!keys.is_empty(), "no host was ever seen");
        let left: Vec<_> = keys.iter().flat_map(|key| groups(key)).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "control groups are left");
        lab.settles_to(&before).await;
    });
}

#[test]
fn the_demo_shows_pods_of_a_real_kubernetes_and_leaves_nothing() {
    let test = "demo::the_demo_shows_pods_of_a_real_kubernetes_and_leaves_nothing";
    shown(test, &["--once"], |demo| {
        let (mut said, mut keys) = (String::new(), BTreeSet::new());
        let lines = BufReader::new(demo.child.stderr.take().unwrap()).lines();
        for line in lines.map(Result::unwrap) {
            println!("demo: {line}");
            keys.extend(demo.keys());
            if let Some((_, step)) = STEPS.iter().find(|(word, _)| line.contains(word)) {
                noted("demo", step, Some(demo.began.elapsed()));
            }
            said += &line;
            said += "\n";
        }
        let status = demo.ended();
        noted(
            "demo",
            "from the start to the end",
            Some(demo.began.elapsed()),
        );
        assert!(status.success(), "{status}");
        let words = STEPS.iter().map(|(word, _)| *word);
        for word in words.chain([
            "a real Kubernetes",
            "on shed-compute-01",
            "on shed-compute-02",
        ]) {
            assert!(said.contains(word), "{word}");
        }
        keys
    });
}

#[test]
fn the_demo_is_ended_in_the_middle_of_kubeadm_and_leaves_nothing() {
    let test = "demo::the_demo_is_ended_in_the_middle_of_kubeadm_and_leaves_nothing";
    shown(test, &[], |demo| {
        let mut heard = BufReader::new(demo.child.stderr.take().unwrap());
        // Whoever says something nobody reads would wait for ever.
        let hearing = std::thread::spawn(move || {
            let mut said = String::new();
            std::io::Read::read_to_string(&mut heard, &mut said).unwrap();
            said
        });
        until("kubeadm", || {
            assert!(demo.child.try_wait().unwrap().is_none());
            runs(&["kubeadm", "init"]).then_some(())
        });
        let keys = demo.keys();
        let told = Instant::now();
        let pid = demo.child.id().to_string();
        let interrupted = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(interrupted.success());
        let status = demo.ended();
        noted("demo", "from Ctrl-C to the end", Some(told.elapsed()));
        let said = hearing.join().unwrap();
        assert!(status.success(), "{status}: {said}");
        keys
    });
}
