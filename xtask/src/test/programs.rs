//! The test programs of the workspace, as cargo built them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::workspace;

/// Test programs that take longest: they begin first, so that nobody waits for one alone.
const LONGEST: &[&str] = &[
    "stories", "driver", "program", "contract", "balancer", "recipe",
];

/// One test program.
pub(crate) struct Program {
    /// The crate it belongs to.
    pub(crate) krate: String,
    /// What it is called.
    name: String,
    /// Its source, below the directory of its crate.
    source: PathBuf,
    /// Whether it holds the unit tests of the crate.
    unit: bool,
    directory: PathBuf,
    executable: PathBuf,
}

impl Program {
    /// The line with which cargo announces it.
    pub(crate) fn announced(&self) -> String {
        let (source, program) = (self.source.display(), self.executable.display());
        if self.unit {
            format!("     Running unittests {source} ({program})")
        } else {
            format!("     Running {source} ({program})")
        }
    }

    /// How it is run: where its crate is, as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }

    fn read(message: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(PathBuf::from);
        let of_tests = message["profile"]["test"].as_bool()?;
        let executable = text(&message["executable"]).filter(|_| of_tests)?;
        let directory = text(&message["manifest_path"])?.parent()?.to_owned();
        let source = text(&message["target"]["src_path"])?;
        let kind = message["target"]["kind"][0].as_str()?;
        Some(Self {
            krate: directory.file_name()?.to_str()?.to_owned(),
            name: message["target"]["name"].as_str()?.to_owned(),
            source: source.strip_prefix(&directory).ok()?.to_owned(),
            unit: kind != "test",
            directory,
            executable,
        })
    }

    /// Long ones first, then by crate.
    fn order(&self) -> (usize, &str, &Path) {
        let long = LONGEST.iter().position(|name| *name == self.name);
        let place = long.filter(|_| !self.unit).unwrap_or(LONGEST.len());
        (place, &self.krate, &self.source)
    }
}

/// Builds those that `cargo test` with these words would run; `None` where that failed, which cargo
/// has told.
pub(crate) fn built(words: &[&str]) -> Result<Option<Vec<Program>>> {
    let mut command = workspace::cargo();
    command
        .args(["test", "--no-run"])
        .args(words)
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("could not start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("could not read cargo test")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        programs.extend(Program::read(&message));
    }
    let status = child.wait().context("could not wait for cargo test")?;
    programs.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(status.success().then_some(programs))
}
