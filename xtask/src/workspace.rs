//! Where the repository is and what cargo knows of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The top directory of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs us, so that a toolchain chosen on the command line stays chosen.
///
/// What it told us of our own package is not passed on: build scripts that look at it would run again,
/// and with them half of the workspace be built anew, whenever cargo is called by us or by a person.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in ours {
        command.env_remove(name);
    }
    command.current_dir(root());
    command
}

/// What `cargo metadata` says of the workspace's own crates.
///
/// Nothing is resolved, so neither the network nor the lock file is needed.
pub(crate) fn metadata() -> Result<Value> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("could not start cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("could not read the answer of cargo metadata")
}

/// The directory that cargo builds into.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let directory = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(directory))
}
