//! Looks after the repository: `cargo xtask VERB`.
//!
//! `make` is the menu and this is the kitchen: whatever needs more than one line of shell is a
//! verb here, one file each. The crate builds in seconds because it uses nothing of the product
//! and next to nothing from outside; verbs that need the product run its program, and what they
//! need beside it comes from `lab`.
//!
//! A new verb is a `mod` line and a row of [`VERBS`].

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are commands for people; what they print is their result"
)]

use std::process::ExitCode;

mod addons;
mod bench;
mod demo;
mod digest;
mod e2e;
mod fuzz_api;
mod helm;
mod hosts;
mod kubernetes;
mod mirror;
mod oci;
mod postgres;
mod release;
mod server;
mod test;
mod tidy;
mod tools;
mod workspace;

/// One thing `cargo xtask` can do.
struct Verb {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<ExitCode>,
}

const VERBS: &[Verb] = &[
    Verb {
        name: "tidy",
        about: "check the rules that neither rustc nor clippy knows; --bless rewrites the arrows",
        run: tidy::run,
    },
    Verb {
        name: "test",
        about: "run every proof a fresh machine can run and count the results",
        run: test::run,
    },
    Verb {
        name: "e2e",
        about: "tell the long stories of a real Kubernetes on sandbox hosts: [--smoke] [STORY]",
        run: e2e::run,
    },
    Verb {
        name: "fuzz-api",
        about: "send what the OpenAPI document allows, and what it forbids, to a running server",
        run: fuzz_api::run,
    },
    Verb {
        name: "bench",
        about: "measure what was promised, on a release build, and print it beside the budget",
        run: bench::run,
    },
    Verb {
        name: "release",
        about: "build a static program, its checksums, its bill of materials and an image",
        run: release::run,
    },
    Verb {
        name: "demo",
        about: "run the demo on real hosts where this machine can have them: [--once] [--kubernetes]",
        run: demo::run,
    },
    Verb {
        name: "kubernetes",
        about: "build a real Kubernetes for the lab from Go modules: [VERSION…]; once, it is kept",
        run: kubernetes::run,
    },
    Verb {
        name: "addons",
        about: "build the add-ons that the stories install, from Go modules; once, it is kept",
        run: addons::run,
    },
    Verb {
        name: "helm",
        about: "build a real Helm for the lab from its Go module; once, it is kept",
        run: helm::run,
    },
    Verb {
        name: "tools",
        about: "install what the other verbs need and say what is missing",
        run: tools::run,
    },
];

/// The exit code for a verb or an option that does not exist.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        menu();
        return ExitCode::from(USAGE);
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        eprintln!("there is no verb {name:?}");
        menu();
        return ExitCode::from(USAGE);
    };
    match (verb.run)(rest) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Lists the verbs.
fn menu() {
    eprintln!("usage: cargo xtask VERB");
    for verb in VERBS {
        eprintln!("  {:<10} {}", verb.name, verb.about);
    }
}
