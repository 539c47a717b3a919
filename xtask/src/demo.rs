//! Shows the main job on this machine: installs what real hosts need, and runs the demo.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{hosts, mirror, workspace};

/// Runs the release build's demo on this machine.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    if !matches!(arguments, [] | [_]) || arguments.iter().any(|word| word != "--once") {
        bail!("usage: cargo xtask demo [--once]");
    }
    let target = workspace::target_directory()?;
    hosts::ensure(&target)?;
    let program = target.join("release/slipway");
    let mut command = Command::new(&program);
    command.arg("demo").args(arguments);
    let mirror = mirror::place(&target);
    if mirror.join("index.json").exists() {
        command.arg("--mirror").arg(mirror);
    }
    // From here on the demo has the terminal, and Ctrl-C.
    let failed = command.exec();
    Err(failed).with_context(|| format!("could not start {}", program.display()))
}
