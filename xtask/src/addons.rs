//! Builds the add-ons that stories install, as mirrors have them: an image archive each.
//!
//! It is done as for Kubernetes itself, from published Go modules, and kept in the same way. Their
//! objects are those that the program writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lab::kubernetes::{EXPORTER, EXPORTERS, cache, platform};

use crate::hosts::Got;
use crate::kubernetes::go::{Go, Source};
use crate::kubernetes::images::Image;
use crate::kubernetes::shelf::Shelf;
use crate::kubernetes::{MADE, write};
use crate::mirror::{self, Look};
use crate::workspace;

/// Changes with what is built and how.
const SHAPE: &str = "1";

/// Builds what is not there, and puts all of it into the mirror.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask addons");
    }
    let place = mirror::place(&workspace::target_directory()?);
    for version in EXPORTERS {
        let shelf = shelf(version);
        shelf.fill(|work| build(version, work))?;
        shelf.put_into(&below(version), &place)?;
        println!("{EXPORTER} {version} is in {}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts into the mirror what was built before, and says what is not there; builds nothing.
pub(crate) fn cached(target: &Path) -> Result<Got> {
    for version in EXPORTERS {
        let shelf = shelf(version);
        if shelf.check(Look::Sizes).is_err() {
            let how = "they were not built; `cargo xtask addons` does it, in a minute";
            return Ok(Got::Missing(how.to_owned()));
        }
        shelf.put_into(&below(version), &mirror::place(target))?;
    }
    Ok(Got::There)
}

/// What mirrors have of a version.
fn below(version: &str) -> String {
    format!("addons/{EXPORTER}/{version}/")
}

/// Where a version is kept: beside those of Kubernetes.
fn shelf(version: &str) -> Shelf {
    let kept = cache().with_file_name("addons");
    let place: PathBuf = kept.join(EXPORTER).join(version);
    Shelf::new(place, SHAPE.to_owned())
}

fn build(version: &str, work: &Path) -> Result<()> {
    println!("{EXPORTER} {version} …");
    let bin = work.join("bin");
    let images = work.join(MADE).join(below(version));
    let images = images.join(platform()).join("images");
    for directory in [&bin, &images] {
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make {}", directory.display()))?;
    }
    let module = "github.com/prometheus/node_exporter";
    let told = "github.com/prometheus/common/version.Version";
    let source = Source {
        name: EXPORTER,
        modules: vec![module],
        version: version.to_owned(),
        beside: version.to_owned(),
        packages: vec![module.to_owned()],
        variables: vec![(told.to_owned(), version.trim_start_matches('v').to_owned())],
    };
    Go::find()?.build(&source, work, &bin)?;
    let image = Image::new(&[(&bin.join("node_exporter"), "bin/node_exporter")])?.user(65_534);
    let archive = image.pack(&[format!("quay.io/prometheus/{EXPORTER}:{version}")])?;
    write(&images.join(format!("{EXPORTER}.tar")), &archive)
}
