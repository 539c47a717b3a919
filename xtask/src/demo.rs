//! Shows the main job on this machine: installs what real hosts need, and runs the demo.
//!
//! Of Kubernetes it takes what was built before: a first look at Slipway must not take long. Only who
//! asks for it has it built.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use lab::kubernetes::VERSIONS;

use crate::{hosts, kubernetes, mirror, workspace};

/// Has Kubernetes built first.
const KUBERNETES: &str = "--kubernetes";

/// What the demo itself is told.
const PASSED: [&str; 3] = ["--once", "--simulated", "--simulated-kubernetes"];

/// Runs the release build's demo on this machine.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let (built, passed): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| *word == KUBERNETES);
    if passed.iter().any(|word| !PASSED.contains(&word.as_str())) {
        let passed = PASSED.join("] [");
        bail!("usage: cargo xtask demo [{KUBERNETES}] [{passed}]");
    }
    if !built.is_empty() && !hosts::is_root() {
        // Before it is built: that takes minutes.
        bail!("a real Kubernetes takes root of this machine; without, the demo simulates it");
    }
    let target = workspace::target_directory()?;
    if built.is_empty() {
        hosts::ensure(&target)?;
    } else {
        hosts::ensure_bare(&target)?;
        // The example has the first of them.
        kubernetes::run(&[VERSIONS[0].to_owned()])?;
    }
    let program = target.join("release/slipway");
    let mut command = Command::new(&program);
    command.arg("demo").args(passed);
    let mirror = mirror::place(&target);
    if mirror.join("index.json").exists() {
        command.arg("--mirror").arg(mirror);
    }
    // From here on the demo has the terminal, and Ctrl-C.
    let failed = command.exec();
    Err(failed).with_context(|| format!("could not start {}", program.display()))
}
