//! What is to be seen of a run from outside: its processes, its directory, and where the key is.

use crate::stage::Stage;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What is to be seen of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    /// Processes that belong to a run, by what they were called with.
    pub(crate) processes: Vec<String>,
    /// Directories of runs.
    pub(crate) directories: Vec<PathBuf>,
    /// Those of them that others may enter.
    pub(crate) open_to_others: Vec<String>,
    /// Files, arguments and environments in which the private key is.
    pub(crate) with_key: Vec<String>,
}

impl Leftovers {
    pub(crate) fn of(stage: &Stage) -> Self {
        let mut seen = Self::default();
        let keys = ["key", "front"].map(|key| stage.lab.dir.join(key));
        let keys = keys.iter().filter(|key| key.exists());
        let keys: Vec<_> = keys
            .map(|key| std::fs::read_to_string(key).unwrap())
            .collect();
        // The lines in which the secret halves are.
        let secret = |key: &String| key.lines().rev().nth(2).unwrap().to_owned();
        let secrets: Vec<_> = keys.iter().map(secret).collect();
        assert!(
            secrets.iter().all(|secret| secret.len() > 40),
            "the key of the test has changed its form"
        );
        let holds = |bytes: &[u8]| {
            let has = |secret: &String| {
                let mut windows = bytes.windows(secret.len());
                windows.any(|window| window == secret.as_bytes())
            };
            secrets.iter().any(has)
        };
        // The look finds what is there to be found.
        assert!(keys.iter().all(|key| holds(key.as_bytes())));
        for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if name.to_string_lossy().starts_with("slipway-") && !stage.lab.dir.starts_with(&path) {
                let here = path.join("known_hosts");
                let text = std::fs::read_to_string(here).unwrap_or_default();
                // Other tests of this machine have runs of their own, with other host keys.
                if text.contains(stage.made.host_key.trim()) {
                    seen.directory(&path, &holds);
                }
            }
        }
        for pid in std::fs::read_dir("/proc").unwrap().flatten() {
            if pid.file_name().to_string_lossy().parse::<u32>().is_ok() {
                seen.process(&pid.path(), &holds);
            }
        }
        seen
    }

    fn directory(&mut self, path: &Path, holds: &impl Fn(&[u8]) -> bool) {
        self.directories.push(path.to_owned());
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        if mode & 0o077 != 0 {
            self.open_to_others.push(path.display().to_string());
        }
        let mut inside = vec![path.to_owned()];
        while let Some(next) = inside.pop() {
            let entries = std::fs::read_dir(&next).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                if path.is_dir() {
                    inside.push(path);
                } else if path.is_file() && holds(&std::fs::read(&path).unwrap_or_default()) {
                    self.with_key.push(path.display().to_string());
                }
            }
        }
    }

    fn process(&mut self, proc: &Path, holds: &impl Fn(&[u8]) -> bool) {
        let read = |name: &str| std::fs::read(proc.join(name)).unwrap_or_default();
        let (words, environment) = (read("cmdline"), read("environ"));
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        let told = String::from_utf8_lossy(&environment).into_owned();
        if holds(&words) || holds(&environment) {
            self.with_key.push(line.clone());
        }
        // The keeper and the agent have no word in their environment, but a telling name.
        let ours = ["slipway-playbook", "ssh-agent -D", "ssh-add -q"];
        let named = ours.iter().any(|name| line.contains(name));
        if named || told.contains("SLIPWAY_PLAYBOOK_RUN=") {
            self.processes.push(line);
        }
    }
}
