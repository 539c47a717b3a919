//! Sandbox hosts, entered by their namespaces: what somebody would do who sits before the machine.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How long a program on a host may take, for `timeout`.
const PATIENCE: &str = "120";

/// A host that runs.
pub(crate) struct Within {
    /// Its first process, as it is numbered here.
    pub(crate) first: u32,
}

impl Within {
    /// The host of that name, if it runs.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let mut firsts = processes().filter(|pid| {
            let of = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
            of("comm").is_ok_and(|comm| comm.trim() == "systemd")
                && of("status").is_ok_and(|status| first_of_its_own(&status))
        });
        let first = firsts.find(|pid| {
            let mut hostname = Command::new("nsenter");
            hostname.args(["-t", &pid.to_string(), "-u", "hostname"]);
            let told = hostname.output().unwrap().stdout;
            String::from_utf8_lossy(&told).trim() == name
        });
        first.map(|first| Self { first })
    }

    /// Runs a program on the host, with this as its input; answers what it wrote.
    pub(crate) fn run(&self, words: &[&str], input: &[u8]) -> Result<String, String> {
        let target = self.first.to_string();
        let mut child = Command::new("timeout")
            .args(["--kill-after=5", PATIENCE, "nsenter", "-t", &target])
            .args(["-m", "-u", "-i", "-n", "-p", "--"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Who does not read it says so by how it ends.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{words:?}: {}: {said}{complaint}", output.status))
    }
}

/// Whether a process is the first of its own namespace.
fn first_of_its_own(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().next_back() == Some("1"))
}

/// All processes.
fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether somewhere a program runs with these words.
pub(crate) fn runs(words: &[&str]) -> bool {
    processes().any(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let told: Vec<&str> = line.split('\0').collect();
        let program = told.first().and_then(|path| path.rsplit('/').next());
        program == words.first().copied() && told.get(1..words.len()) == Some(&words[1..])
    })
}

/// Where the sandbox keeps the host of that name.
pub(crate) fn kept(directory: &Path, name: &str) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(directory.join("sandbox/hosts")).ok()?;
    let mut places = hosts.flatten().map(|entry| entry.path());
    places.find(|place| {
        let record = std::fs::read(place.join("record.json")).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
        record["name"] == name
    })
}

/// Cuts the power of a host.
pub(crate) fn cut_power(directory: &Path, name: &str) {
    let place = kept(directory, name).unwrap();
    let init = std::fs::read_to_string(place.join("init")).unwrap();
    let pid = init.split(' ').next().unwrap();
    let killed = Command::new("kill").args(["-KILL", pid]).status().unwrap();
    assert!(killed.success(), "{name} could not be cut off");
}
