//! Installs what the other verbs need, once, and says in one line each what is there.
//!
//! Nothing is installed outside of the build directory and the Rust toolchain, but for PostgreSQL
//! and what hosts are made of, which come as packages of the system where root runs us. What takes long to compile is only
//! reported: its absence is a skip that says so, never a surprise.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::fuzz_api::python::{self, Python};
use crate::hosts::{self, Got};
use crate::postgres::{self, Postgres};
use crate::{addons, helm, kubernetes, workspace};

/// What `make check` needs of the toolchain.
const COMPONENTS: &[(&str, &str)] = &[("rustfmt", "fmt"), ("clippy", "clippy")];

/// Looks at every tool and installs what can be installed.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let for_bench = match arguments {
        [] => false,
        [word] if word == "bench" => true,
        _ => bail!("usage: cargo xtask tools [bench]"),
    };
    for (component, verb) in COMPONENTS {
        println!("{component}: {}", toolchain(component, verb)?);
    }
    println!("schemathesis: {}", schemathesis()?);
    println!("PostgreSQL: {}", postgres()?);
    let target = workspace::target_directory()?;
    println!("packages for hosts: {}", got(hosts::packages()?));
    println!("Envoy: {}", got(hosts::envoy(&target)?));
    println!("Kubernetes: {}", got(kubernetes::cached(&target)?));
    println!("Helm: {}", got(helm::cached()));
    println!("moto: {}", got(hosts::moto(&target)?));
    println!("add-ons: {}", got(addons::cached(&target)?));
    if for_bench {
        println!("ansible-core: {}", got(hosts::ansible(&target)?));
    }
    println!("cargo-deny: {}", deny());
    Ok(ExitCode::SUCCESS)
}

/// A part of the Rust toolchain.
fn toolchain(component: &str, verb: &str) -> Result<String> {
    let there = workspace::cargo()
        .args([verb, "--version"])
        .output()
        .with_context(|| format!("could not start cargo {verb}"))?;
    if there.status.success() {
        return Ok("there".to_owned());
    }
    let added = Command::new("rustup")
        .args(["component", "add", component])
        .output();
    Ok(match added {
        Ok(output) if output.status.success() => "installed".to_owned(),
        Ok(output) => format!(
            "missing, rustup could not add it: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
        Err(_) => "missing, `make check` needs it: install it with your Rust toolchain".to_owned(),
    })
}

/// The fuzzer of the API.
fn schemathesis() -> Result<String> {
    let target = workspace::target_directory()?;
    Ok(match python::ensure(&target)? {
        Python::Ready { fresh: true, .. } => format!("{} installed", python::VERSION),
        Python::Ready { fresh: false, .. } => format!("{} there", python::VERSION),
        Python::Missing(reason) => format!("missing, `make test` will skip it: {reason}"),
    })
}

/// The second body of the store.
fn postgres() -> Result<String> {
    Ok(match postgres::ensure()? {
        Postgres::Ready {
            version,
            fresh: true,
        } => format!("{version} installed"),
        Postgres::Ready {
            version,
            fresh: false,
        } => format!("{version} there"),
        Postgres::Missing(reason) => format!("missing, `make test` will skip it: {reason}"),
    })
}

/// Something that hosts are made of, or measured against.
fn got(got: Got) -> String {
    match got {
        Got::There => "there".to_owned(),
        Got::Installed => "installed".to_owned(),
        Got::Missing(reason) => format!("missing, what needs it will be skipped: {reason}"),
    }
}

/// The judge of licences and advisories.
fn deny() -> &'static str {
    let there = workspace::cargo().args(["deny", "--version"]).output();
    if there.is_ok_and(|output| output.status.success()) {
        "there"
    } else {
        "missing, `make check` will skip it: compiling it takes minutes, so it is left to you \
         (`cargo install --locked cargo-deny`)"
    }
}
