//! `slipway env`: one group for people. Most of its verbs ask a server; those about scripts need none.

mod import;

use crate::config;
use crate::failure::Failure;
use anyhow::Context as _;
use api::Exit;
use scripts::Surroundings;
use scripts::trial::{self, Finding, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Create environments, change them, archive them, look at them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Group {
    #[command(flatten)]
    Client(Box<cli::EnvVerb>),
    /// Take over the environments of an Octopod, as they are
    Import(cli::EnvImport),
    /// Look after control scripts
    #[command(
        subcommand,
        after_help = "Example:\n  slipway env scripts check /srv/scripts"
    )]
    Scripts(Verb),
}

/// What can be done with control scripts
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Check(Check),
}

/// Try a directory of control scripts, and say what is missing or wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env scripts check /srv/scripts
  slipway env scripts check examples/environments/scripts -o json

No server is asked: run it where the server runs, as its user. Scripts that only look or tell are
run, about an environment that nobody has; those that would change something, or tell somebody, are
only looked at. Ends with 1 when something is wrong.")]
pub(crate) struct Check {
    /// The directory with the scripts
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How long each script may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
}

/// What was found, for programs.
#[derive(Debug, Serialize)]
struct Report {
    good: bool,
    scripts: Vec<Row>,
}

/// One script, for programs.
#[derive(Debug, Serialize)]
struct Row {
    script: &'static str,
    verdict: &'static str,
    seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Row {
    fn of(finding: &Finding) -> Self {
        let wrong = match finding.verdict {
            Verdict::Wrong(kind) => Some(kind),
            Verdict::Good | Verdict::Untried | Verdict::Absent => None,
        };
        Self {
            script: finding.script.name(),
            verdict: match finding.verdict {
                Verdict::Good => "good",
                Verdict::Untried => "untried",
                Verdict::Absent => "absent",
                Verdict::Wrong(_) => "wrong",
            },
            seen: finding.seen.clone(),
            code: wrong.map(scripts::error::Kind::code),
            hint: wrong.map(scripts::error::Kind::hint),
        }
    }
}

impl Report {
    fn of(findings: &[Finding]) -> Self {
        let scripts: Vec<Row> = findings.iter().map(Row::of).collect();
        Self {
            good: scripts.iter().all(|row| row.code.is_none()),
            scripts,
        }
    }

    /// For people: a line for each script, and below those that are wrong what to do.
    fn picture(&self) -> String {
        let mut picture = String::new();
        for row in &self.scripts {
            let seen = row.seen.replace('\n', " ");
            let code = row.code.map(|code| format!(" ({code})"));
            let code = code.unwrap_or_default();
            picture.push_str(&format!(
                "{:<8} {:<24} {seen}{code}\n",
                row.verdict, row.script
            ));
            if let Some(hint) = row.hint {
                picture.push_str(&format!("{:33} hint: {hint}\n", ""));
            }
        }
        picture
    }
}

/// Runs a verb.
pub(crate) async fn run(group: Group, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let arguments = match group {
        Group::Client(verb) => {
            let verb = cli::Verb::Env(verb);
            return Ok(cli::run(verb, global, config::command).await);
        }
        Group::Import(arguments) => return import::run(arguments, global).await,
        Group::Scripts(Verb::Check(arguments)) => arguments,
    };
    let patience = Duration::from_secs(arguments.patience);
    let surroundings = Surroundings::new(std::env::vars_os());
    let found = trial::directory(&arguments.directory, patience, surroundings).await;
    let found = found.map_err(|error| Failure {
        what: error.what,
        code: error.kind.code(),
        hint: "name a directory on this machine that has the scripts".to_owned(),
    })?;
    let report = Report::of(&found);
    let exit = if report.good {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(cli::show(global, &report, &report.picture(), exit))
}

/// Runs one control script, as the server that started this program says.
pub(crate) async fn carry(directory: &Path) -> anyhow::Result<ExitCode> {
    let carried = scripts::runner::carry(directory).await;
    carried.with_context(|| format!("could not run the script of {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use scripts::contract::Script;
    use scripts::error::Kind;

    #[test]
    fn what_is_wrong_is_shown_with_what_to_do() {
        let finding = |script, verdict, seen: &str| Finding {
            script,
            verdict,
            seen: seen.to_owned(),
        };
        let report = Report::of(&[
            finding(Script::DeploymentConfig, Verdict::Good, "told 3 settings"),
            finding(Script::Check, Verdict::Wrong(Kind::Hung), "took longer"),
            finding(Script::Create, Verdict::Untried, "is there"),
            finding(Script::Init, Verdict::Absent, "is not there"),
        ]);
        assert!(!report.good);
        expect![[r"
            good     deployment_config        told 3 settings
            wrong    check                    took longer (SCRIPT-004)
                                              hint: find out what the script waits for, or give it more time in the project's settings; looks are made again by themselves
            untried  create                   is there
            absent   init                     is not there
        "]]
        .assert_eq(&report.picture());
    }
}
