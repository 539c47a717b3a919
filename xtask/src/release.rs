//! Builds what people install: a static program, its checksums, what is in it, and an image.
//!
//! Everything goes to `target/dist`. The same source on the same toolchain gives the same bytes:
//! nothing in there knows the hour, the user or the paths of the machine that built it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::digest::sha256;
use crate::workspace;

mod compile;
mod elf;
mod image;
mod sbom;
mod time;

use compile::{CLibrary, FEATURES, Target};

/// The list of checksums, in the form that `sha256sum --check` reads.
const SUMS: &str = "SHA256SUMS";

/// Builds a release.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask release");
    }
    let target = Target::choose()?;
    println!("for {}: {}", target.triple, target.reason);
    let metadata = metadata(&target.triple)?;
    let version = version(&metadata)?;
    let time = time::of_source(git(&["log", "-1", "--format=%ct"]).as_deref())?;
    let target_directory = workspace::target_directory()?;
    let built = target.compile(&target_directory)?;
    let program =
        fs::read(&built).with_context(|| format!("could not read {}", built.display()))?;
    let architecture = std::env::consts::ARCH;
    elf::Facts::read(&program)
        .and_then(|facts| facts.self_contained(architecture))
        .with_context(|| format!("{} is not what was wanted", built.display()))?;

    let dist = Dist::empty(target_directory.join("dist"))?;
    let name = format!("slipway-{version}-linux-{architecture}");
    dist.write(&name, 0o755, &program)?;
    try_out(&dist.path(&name), &version)?;
    let sbom = list(&target, &metadata, &version, &program, time)?;
    dist.write(&format!("slipway-{version}.sbom.cdx.json"), 0o644, &sbom)?;
    let revision = revision();
    let image = image::Image {
        version: &version,
        architecture,
        revision: revision.as_deref(),
        time,
        program: &program,
    };
    dist.write(&format!("slipway-{version}-oci.tar"), 0o644, &image.pack()?)?;
    dist.sum_up()?;
    Ok(ExitCode::SUCCESS)
}

/// The directory of the release.
struct Dist(PathBuf);

impl Dist {
    /// Makes the directory, without what an earlier release left.
    fn empty(directory: PathBuf) -> Result<Self> {
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("could not clear {}", directory.display()))?;
        }
        fs::create_dir_all(&directory)
            .with_context(|| format!("could not make {}", directory.display()))?;
        Ok(Self(directory))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, content)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .with_context(|| format!("could not write {}", path.display()))
    }

    /// Writes the checksums of all that is there, and tells what there is.
    fn sum_up(&self) -> Result<()> {
        let mut lines = BTreeSet::new();
        let unreadable = || format!("could not list {}", self.0.display());
        for entry in fs::read_dir(&self.0).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let content = fs::read(entry.path()).with_context(unreadable)?;
            lines.insert((name, sha256(&content), content.len()));
        }
        let sums: String = lines
            .iter()
            .map(|(name, sum, _)| format!("{sum}  {name}\n"))
            .collect();
        self.write(SUMS, 0o644, sums.as_bytes())?;
        println!("in {}:", self.0.display());
        for (name, sum, bytes) in &lines {
            println!("  {name}  {bytes} bytes  sha256 {sum}");
        }
        println!("  {SUMS}");
        Ok(())
    }
}

/// Runs the program once, where it will be fetched from.
fn try_out(program: &Path, version: &str) -> Result<()> {
    let output = Command::new(program)
        .arg("--version")
        .env_clear()
        .output()
        .with_context(|| format!("could not start {}", program.display()))?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && told.trim() == format!("slipway {version}"),
        "{} --version says {:?} and ends with {}",
        program.display(),
        told.trim(),
        output.status
    );
    println!("{}", told.trim());
    Ok(())
}

/// What cargo knows of every package for the target.
fn metadata(triple: &str) -> Result<Value> {
    let told = cargo(&[
        "metadata",
        "--locked",
        "--format-version=1",
        FEATURES,
        "--filter-platform",
        triple,
    ])?;
    serde_json::from_str(&told).context("could not read the answer of cargo metadata")
}

/// The version of the program.
fn version(metadata: &Value) -> Result<String> {
    let version = package(metadata, "slipway")?["version"].as_str();
    Ok(version.context("slipway has no version")?.to_owned())
}

/// What cargo says of the package with this name.
fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value> {
    let packages = metadata["packages"].as_array();
    packages
        .into_iter()
        .flatten()
        .find(|package| package["name"] == name)
        .with_context(|| format!("cargo metadata does not know {name}"))
}

/// The bill of materials.
fn list(
    target: &Target,
    metadata: &Value,
    version: &str,
    program: &[u8],
    time: u64,
) -> Result<Vec<u8>> {
    let tree = |edges: &str| {
        let printed = tree(FEATURES, &target.triple, edges, "{p}")?;
        Ok::<_, anyhow::Error>(sbom::packages(&printed))
    };
    let lock = fs::read_to_string(workspace::root().join("Cargo.lock"))
        .context("could not read Cargo.lock")?;
    let sources = sbom::Sources {
        root: "slipway",
        version,
        metadata,
        lock: &lock,
        packages: &tree("normal")?,
        linked: &tree("normal,no-proc-macro")?,
        others: &others(target, metadata, program)?,
        time,
    };
    let mut text = serde_json::to_vec_pretty(&sources.list()?)?;
    text.push(b'\n');
    Ok(text)
}

/// The packages of the program, one a line, over edges of these kinds.
fn tree(features: &str, triple: &str, edges: &str, format: &str) -> Result<String> {
    cargo(&[
        "tree",
        "--locked",
        "--package=slipway",
        features,
        "--prefix=none",
        "--format",
        format,
        "--target",
        triple,
        "--edges",
        edges,
    ])
}

/// What is in the program and comes from no package.
fn others(
    target: &Target,
    metadata: &Value,
    program: &[u8],
) -> Result<Vec<(String, String, &'static str)>> {
    let rust = compile::rust_version()?;
    let library = match target.library {
        CLibrary::Musl => ("musl".to_owned(), format!("rust-{rust}"), "MIT"),
        CLibrary::Glibc => {
            let told = after(program, b"GNU C Library (", b"stable release version ");
            let version = told.context("the program does not tell the version of its C library")?;
            ("glibc".to_owned(), version, "LGPL-2.1-or-later")
        }
    };
    let header = package(metadata, "libsqlite3-sys")?["manifest_path"]
        .as_str()
        .map(|manifest| Path::new(manifest).with_file_name("sqlite3/sqlite3.h"))
        .context("libsqlite3-sys is nowhere")?;
    let header =
        fs::read(&header).with_context(|| format!("could not read {}", header.display()))?;
    let sqlite = after(&header, b"#define SQLITE_VERSION ", b"\"")
        .context("the database engine tells no version")?;
    Ok(vec![
        library,
        ("rust-std".to_owned(), rust, "MIT OR Apache-2.0"),
        ("sqlite".to_owned(), sqlite, "blessing"),
    ])
}

/// The digits and dots that follow `second`, soon after `first`.
fn after(bytes: &[u8], first: &[u8], second: &[u8]) -> Option<String> {
    /// More would be another sentence.
    const FAR: usize = 200;
    let position = |bytes: &[u8], wanted: &[u8]| {
        let at = bytes
            .windows(wanted.len())
            .position(|found| found == wanted);
        at.map(|at| at + wanted.len())
    };
    let rest = bytes.get(position(bytes, first)?..)?;
    let rest = rest.get(..FAR).unwrap_or(rest);
    let rest = rest.get(position(rest, second)?..)?;
    let digits = rest.iter().map(|byte| char::from(*byte));
    let version: String = digits
        .take_while(|found| found.is_ascii_digit() || *found == '.')
        .collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_owned())
}

/// What cargo prints.
fn cargo(arguments: &[&str]) -> Result<String> {
    let verb = arguments.first().copied().unwrap_or_default();
    let output = workspace::cargo()
        .args(arguments)
        .output()
        .with_context(|| format!("could not start cargo {verb}"))?;
    ensure!(
        output.status.success(),
        "cargo {verb} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("cargo {verb} prints no text"))
}

/// The commit, when the tree is exactly that.
fn revision() -> Option<String> {
    let changed = git(&["status", "--porcelain"])?;
    git(&["rev-parse", "HEAD"]).filter(|_| changed.is_empty())
}

/// What git says, where there is git and the source is under it.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(workspace::root())
        .output()
        .ok()?;
    let told = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| told.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Dist, FEATURES, SUMS, after, tree};
    use std::process::Command;

    #[test]
    fn the_checksums_can_be_checked_by_others() {
        let directory = std::env::temp_dir().join(format!("xtask-release-{}", std::process::id()));
        let dist = Dist::empty(directory.clone()).unwrap();
        dist.write("b", 0o755, b"two").unwrap();
        dist.write("a", 0o644, b"one").unwrap();
        dist.sum_up().unwrap();
        let check = || {
            let output = Command::new("sha256sum")
                .args(["--check", "--strict", SUMS])
                .current_dir(&directory)
                .output()
                .unwrap();
            (
                output.status.success(),
                String::from_utf8(output.stdout).unwrap(),
            )
        };
        assert_eq!(check(), (true, "a: OK\nb: OK\n".to_owned()));
        dist.write("a", 0o644, b"eno").unwrap();
        assert_eq!(check(), (false, "a: FAILED\nb: OK\n".to_owned()));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_release_has_no_sandbox() {
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let sandbox = |features: &str| {
            let packages = tree(features, &triple, "normal", "{p} {f}").unwrap();
            let hosts = packages.lines().find(|line| line.starts_with("hosts v"));
            hosts.unwrap().contains("sandbox")
        };
        assert!(sandbox("--features=default"), "development builds have it");
        assert!(!sandbox(FEATURES));
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let banner =
            b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        assert_eq!(
            after(banner, b"GNU C Library (", b"stable release version "),
            Some("2.36".to_owned())
        );
        let header = b"#define SQLITE_VERSION        \"3.54.1\"\n#define X";
        assert_eq!(
            after(header, b"#define SQLITE_VERSION ", b"\""),
            Some("3.54.1".to_owned())
        );
        assert_eq!(after(b"nothing", b"GNU", b" "), None);
    }
}
