//! Builds a real Helm for the lab, from the Go modules that it publishes.
//!
//! It is done as for Kubernetes itself, and kept in the same way. Nobody but tests runs it: hosts
//! have no use for it, so no mirror has it, only an index that vouches for what was built.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use lab::helm::{VERSIONS, cache};

use crate::hosts::Got;
use crate::kubernetes::go::{Go, Source};
use crate::kubernetes::shelf::Shelf;
use crate::kubernetes::{LOOSE, MADE};
use crate::mirror::Look;

/// Changes with what is built and how.
const SHAPE: &str = "1";

/// Builds what is not there.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let known = |word: &String| VERSIONS.contains(&word.as_str());
    if !arguments.iter().all(known) {
        bail!("usage: cargo xtask helm [{}]", VERSIONS.join("|"));
    }
    for version in VERSIONS {
        if !arguments.is_empty() && !arguments.iter().any(|word| word == version) {
            continue;
        }
        let shelf = shelf(version);
        shelf.fill(|work| build(version, work))?;
        println!("Helm {version} is in {}", cache().join(version).display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether it was built before; builds nothing.
pub(crate) fn cached() -> Got {
    let missing = VERSIONS
        .iter()
        .filter(|version| shelf(version).check(Look::Sizes).is_err());
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        return Got::There;
    }
    let missing = missing.join(" and ");
    let how = format!("{missing} was not built; `cargo xtask helm` does it, in minutes");
    Got::Missing(how)
}

/// Where a version is kept.
fn shelf(version: &str) -> Shelf {
    Shelf::new(cache().join(version), SHAPE.to_owned())
}

fn build(version: &str, work: &Path) -> Result<()> {
    println!("Helm {version} …");
    let began = Instant::now();
    let bin = work.join(LOOSE);
    for directory in [&bin, &work.join(MADE)] {
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make {}", directory.display()))?;
    }
    Go::find()?.build(&source(version)?, work, &bin)?;
    println!(
        "Helm {version} was built in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The module of a version, which must tell it: programs that call Helm ask.
fn source(version: &str) -> Result<Source> {
    let module = match version.split('.').next() {
        Some("v3") => "helm.sh/helm/v3",
        Some("v4") => "helm.sh/helm/v4",
        Some(_) | None => bail!("nobody knows the module of Helm {version}"),
    };
    let told = format!("{module}/internal/version.version");
    Ok(Source {
        name: "helm",
        modules: vec![module],
        version: version.to_owned(),
        beside: version.to_owned(),
        packages: vec![format!("{module}/cmd/helm")],
        variables: vec![(told, version.to_owned())],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_module() {
        for version in VERSIONS {
            let source = source(version).unwrap();
            let major = version.split('.').next().unwrap();
            assert_eq!(source.modules, [format!("helm.sh/helm/{major}")]);
        }
        assert!(source("v5.0.0").is_err());
    }
}
