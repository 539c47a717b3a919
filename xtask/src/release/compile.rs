//! Compiles the program so that it needs nothing of the machine it runs on but the kernel.
//!
//! With musl where Rust's library for it and a C compiler for it are there; else with glibc, linked
//! statically. Both make a program that starts anywhere; glibc needs `nss.c` to keep it so.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// Keeps glibc from loading what was built for another one.
const NSS: &str = include_str!("nss.c");

/// What cargo is told of features, for the program and for the list of what is in it. The sandbox is
/// for tests and demos: a server that others use must not be able to make hosts of its own machine.
pub(super) const FEATURES: &str = "--no-default-features";

/// Whose C library is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CLibrary {
    Musl,
    Glibc,
}

/// What the program is compiled for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name for rustc.
    pub(super) triple: String,
    /// Whose C library is linked.
    pub(super) library: CLibrary,
    /// Why not the other.
    pub(super) reason: &'static str,
}

impl Target {
    /// The best there is on this machine, for its own processor.
    pub(super) fn choose() -> Result<Self> {
        if std::env::consts::OS != "linux" {
            bail!("a release is for Linux and is built there");
        }
        let libraries = sysroot()?.join("lib/rustlib");
        let there = |triple: &str| libraries.join(triple).join("lib").is_dir();
        Self::best(std::env::consts::ARCH, there, has_compiler)
    }

    /// The best of what has Rust's library (`there`) and a C compiler (`compiles`).
    fn best(
        architecture: &str,
        there: impl Fn(&str) -> bool,
        compiles: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let musl = format!("{architecture}-unknown-linux-musl");
        let glibc = format!("{architecture}-unknown-linux-gnu");
        let reason = match (there(&musl), compiles(architecture)) {
            (true, true) => {
                return Ok(Self {
                    triple: musl,
                    library: CLibrary::Musl,
                    reason: "it is installed",
                });
            }
            (true, false) => "there is no C compiler for musl (musl-gcc)",
            (false, _) => "the musl target of Rust is not installed",
        };
        ensure!(
            there(&glibc),
            "Rust's library for neither {musl} nor {glibc} is installed"
        );
        Ok(Self {
            triple: glibc,
            library: CLibrary::Glibc,
            reason,
        })
    }

    /// Compiles the program and says where it is.
    pub(super) fn compile(&self, target_directory: &Path) -> Result<PathBuf> {
        let mut command = workspace::cargo();
        command
            .args(["build", "--release", "--locked", "--package", "slipway"])
            .arg(FEATURES)
            .args(["--target", &self.triple])
            .args(["--config", r#"profile.release.strip="debuginfo""#])
            // These replace the flags of whoever calls: a release is the same for all.
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags(target_directory)?)
            .env(
                format!("CFLAGS_{}", self.triple.replace('-', "_")),
                forget_paths("-ffile-prefix-map=").join(" "),
            );
        let status = command.status().context("could not start cargo build")?;
        ensure!(
            status.success(),
            "cargo build failed for {}; a static program needs the static C library (libc.a), \
             which some systems have in a package of its own",
            self.triple
        );
        Ok(target_directory.join(&self.triple).join("release/slipway"))
    }

    /// What rustc is told, in the form that allows blanks in paths.
    fn flags(&self, target_directory: &Path) -> Result<OsString> {
        let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
        flags.extend(forget_paths("--remap-path-prefix="));
        if self.library == CLibrary::Glibc {
            let object = compile_nss(target_directory)?;
            flags.push(format!("-Clink-arg={}", object.display()));
        }
        Ok(flags.join("\u{1f}").into())
    }
}

/// Options that keep the paths of this machine out of the program, where they would tell of us
/// and make it differ from the same program built elsewhere.
fn forget_paths(option: &str) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let root = Some(workspace::root());
    [(root, "/slipway"), (home, "/cargo")]
        .into_iter()
        .filter_map(|(path, short)| Some(format!("{option}{}={short}", path?.display())))
        .collect()
}

/// Compiles the one piece of C that is ours.
fn compile_nss(target_directory: &Path) -> Result<PathBuf> {
    let directory = target_directory.join("release-parts");
    fs::create_dir_all(&directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    let (source, object) = (directory.join("nss.c"), directory.join("nss.o"));
    fs::write(&source, NSS).with_context(|| format!("could not write {}", source.display()))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let output = Command::new(&compiler)
        .args(["-O2", "-Wall", "-Werror", "-c", "nss.c", "-o", "nss.o"])
        .current_dir(&directory)
        .output()
        .with_context(|| format!("could not start {}", compiler.display()))?;
    ensure!(
        output.status.success(),
        "could not compile nss.c: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(object)
}

/// Whether C can be compiled for musl, by the names under which the builds of our libraries look.
fn has_compiler(architecture: &str) -> bool {
    let named = std::env::var_os(format!("CC_{architecture}_unknown_linux_musl")).is_some();
    let names = [
        "musl-gcc".to_owned(),
        format!("{architecture}-linux-musl-gcc"),
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        || std::env::split_paths(&path)
            .any(|directory| names.iter().any(|name| directory.join(name).is_file()))
}

/// Where the toolchain is.
fn sysroot() -> Result<PathBuf> {
    Ok(PathBuf::from(ask(&["--print", "sysroot"])?))
}

/// The version of Rust.
pub(super) fn rust_version() -> Result<String> {
    let told = ask(&["--version"])?;
    let version = told.split_whitespace().nth(1);
    Ok(version.context("rustc tells no version")?.to_owned())
}

/// What rustc answers.
fn ask(question: &[&str]) -> Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(program)
        .args(question)
        .current_dir(workspace::root())
        .output()
        .context("could not start rustc")?;
    ensure!(output.status.success(), "rustc did not answer");
    let told = String::from_utf8(output.stdout).context("rustc answers in riddles")?;
    Ok(told.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{CLibrary, Target};

    fn best(installed: &[&str], compiler: bool) -> Result<(String, CLibrary), String> {
        let there = |triple: &str| installed.iter().any(|ending| triple.ends_with(ending));
        let best = Target::best("x86_64", there, |_| compiler);
        best.map(|target| (target.triple, target.library))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn musl_comes_first_where_it_can_be_compiled_for() {
        let musl = ("x86_64-unknown-linux-musl".to_owned(), CLibrary::Musl);
        let glibc = ("x86_64-unknown-linux-gnu".to_owned(), CLibrary::Glibc);
        assert_eq!(best(&["gnu", "musl"], true), Ok(musl));
        assert_eq!(best(&["gnu", "musl"], false), Ok(glibc.clone()));
        assert_eq!(best(&["gnu"], true), Ok(glibc));
        assert_eq!(
            best(&[], true),
            Err("Rust's library for neither x86_64-unknown-linux-musl nor \
                 x86_64-unknown-linux-gnu is installed"
                .to_owned())
        );
    }
}
