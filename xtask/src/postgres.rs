//! PostgreSQL for the tests that need a real one: installed once where that is possible.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use lab::postgres::{Error, Programs};

/// What is installed. Tests start servers of their own from it.
const PACKAGE: &str = "postgresql";

/// Read by the package while it is installed.
const CONFIGURATION: &str = "/etc/postgresql-common/createcluster.d";

/// Whether there is a PostgreSQL to test with.
pub(crate) enum Postgres {
    /// Its version, and whether it was installed just now.
    Ready { version: String, fresh: bool },
    /// Why there is none.
    Missing(String),
}

/// Installs PostgreSQL unless it is there, or says why that does not work.
pub(crate) fn ensure() -> Result<Postgres> {
    let fresh = match Programs::find() {
        Ok(programs) => return Ok(ready(&programs, false)),
        Err(Error::Missing { installable: true }) => install()?,
        Err(error) => return Ok(Postgres::Missing(error.to_string())),
    };
    Ok(match (Programs::find(), fresh) {
        (Ok(programs), _) => ready(&programs, true),
        (Err(_), Err(reason)) => Postgres::Missing(reason),
        (Err(error), Ok(())) => Postgres::Missing(error.to_string()),
    })
}

fn ready(programs: &Programs, fresh: bool) -> Postgres {
    let (major, minor) = programs.version;
    Postgres::Ready {
        version: format!("{major}.{minor}"),
        fresh,
    }
}

/// Installs the package; answers why that did not work.
fn install() -> Result<Result<(), String>> {
    println!("installing the package {PACKAGE} with apt-get (once)");
    let quiet = quiet(Path::new(CONFIGURATION))?;
    let mut installed = apt_get(&["install", "--no-install-recommends", PACKAGE])?;
    if !installed.status.success() {
        // The usual reason is that the lists are old or were never fetched.
        let updated = apt_get(&["update"])?;
        if updated.status.success() {
            installed = apt_get(&["install", "--no-install-recommends", PACKAGE])?;
        }
    }
    fs::remove_file(&quiet).with_context(|| format!("could not remove {}", quiet.display()))?;
    Ok(if installed.status.success() {
        Ok(())
    } else {
        Err(format!(
            "apt-get could not install {PACKAGE}: {}",
            last_line(&installed)
        ))
    })
}

/// Tells the package not to leave a server running: whoever wants one starts it.
fn quiet(directory: &Path) -> Result<std::path::PathBuf> {
    let file = directory.join("slipway-tests.conf");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&file, "create_main_cluster = false\n"))
        .with_context(|| format!("could not write {}", file.display()))?;
    Ok(file)
}

/// Runs apt-get without questions.
pub(crate) fn apt_get(words: &[&str]) -> Result<Output> {
    Command::new("apt-get")
        .args(["--yes", "--quiet"])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C")
        .output()
        .context("could not start apt-get")
}

/// The last line that says something; apt-get puts its reasons on the standard error.
pub(crate) fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.map_or_else(|| output.status.to_string(), str::to_owned)
}
