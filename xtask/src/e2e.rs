//! Tells the long stories: a real Kubernetes on hosts of the sandbox, one story after the other.
//!
//! What they need is had first, and kept for the next time. What a story prints is shown at once;
//! at the end stand all steps with their seconds, and the counts as `cargo xtask test` has them.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use lab::kubernetes::{NEWEST, OLDEST, VERSIONS};

use crate::test::programs::{self, Program};
use crate::test::{self, SKIPS, Skip, Suite};
use crate::{addons, helm, hosts, kubernetes, workspace};

/// The story that CI tells.
const SMOKE: &str = "smoke";

/// How the names of stories begin that need add-ons.
const ADDON: &str = "addon::";

/// How the names of stories begin that need the oldest and the newest Kubernetes, too.
const OTHERS: &str = "versions::";

/// Names the file that stories append their steps to.
const STEPS: &str = "SLIPWAY_STEPS";

/// Names the program that they use in place of the one that was built with them.
const PROGRAM: &str = "SLIPWAY_PROGRAM";

/// Tells all stories, the shortest, or those whose name has a word in it.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let (smoke, word) = match arguments {
        [] => (false, ""),
        [flag] if flag == "--smoke" => (true, SMOKE),
        [word] if !word.starts_with('-') => (false, word.as_str()),
        _ => bail!("usage: cargo xtask e2e [--smoke | STORY]"),
    };
    let versions = if smoke { &VERSIONS[..1] } else { VERSIONS };
    let (suite, told) = stories(word, versions, None)?;
    print!("{}", table(&told));
    Ok(test::concluded(vec![suite]))
}

/// Tells the stories whose name has a word in it, by the program under test or by another one;
/// answers how they ended and their steps.
pub(crate) fn stories(word: &str, versions: &[&str], by: Option<&Path>) -> Result<(Suite, String)> {
    let target = workspace::target_directory()?;
    hosts::ensure_bare(&target)?;
    // Where it cannot be had, stories are skipped, each with the reason.
    have(versions);
    // Of the whole workspace, so that what it is made of is the same as for all other tests.
    let built = programs::built(&["--workspace", "--test", "e2e"])?;
    let program = built.and_then(|mut programs| programs.pop());
    let program = program.context("the stories could not be built")?;
    let stories = listed(&program)?;
    let chosen: Vec<&String> = stories.iter().filter(|name| name.contains(word)).collect();
    ensure!(!chosen.is_empty(), "there is no story with {word:?}");
    if chosen.iter().any(|story| story.starts_with(OTHERS)) {
        have(&[OLDEST, NEWEST]);
    }
    if chosen.iter().any(|story| story.starts_with(ADDON))
        && let Err(error) = addons::run(&[])
    {
        println!("missing, add-ons: {error:#}");
    }
    let steps = target.join("steps.txt");
    fs::write(&steps, "").with_context(|| format!("could not empty {}", steps.display()))?;
    let mut suite = Suite {
        name: "slipway tests/e2e".to_owned(),
        finished: true,
        ..Suite::default()
    };
    for story in chosen {
        let mut command = program.command();
        command
            .args(["--exact", story, "--nocapture"])
            .env(STEPS, &steps)
            .stdin(Stdio::null());
        if let Some(by) = by {
            command.env(PROGRAM, by);
        }
        tell(command, story, &target, &mut suite)?;
    }
    let told = fs::read_to_string(&steps).context("could not read the steps")?;
    Ok((suite, told))
}

/// Builds versions of Kubernetes that are not there.
fn have(versions: &[&str]) {
    let versions: Vec<String> = versions.iter().map(|&version| version.to_owned()).collect();
    if let Err(error) = kubernetes::run(&versions) {
        println!("missing, Kubernetes: {error:#}");
    }
    if let Err(error) = helm::run(&[]) {
        println!("missing, Helm: {error:#}");
    }
}

/// The names of all stories.
fn listed(program: &Program) -> Result<Vec<String>> {
    let mut command = program.command();
    command.args(["--list", "--format", "terse"]);
    let output = command.output().context("could not list the stories")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// Tells one story, and counts it.
fn tell(mut command: Command, story: &str, target: &Path, suite: &mut Suite) -> Result<()> {
    let skips = target.join("skips-of-stories");
    fs::write(&skips, "").with_context(|| format!("could not empty {}", skips.display()))?;
    command.env(SKIPS, &skips);
    let status = command.status().context("could not start a story")?;
    let skipped = fs::read_to_string(&skips).context("could not read the skips")?;
    if !status.success() {
        suite.failed += 1;
        suite.failures.push(story.to_owned());
    } else if skipped.is_empty() {
        suite.passed += 1;
    }
    suite.skips.extend(skipped.lines().map(Skip::parse));
    Ok(())
}

/// All steps, story by story, with how long they took.
fn table(steps: &str) -> String {
    let rows: Vec<[&str; 3]> = steps
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t');
            Some([parts.next()?, parts.next()?, parts.next()?])
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let (stories, steps) = (width(0).max(5), width(1));
    let mut text = format!("\n{:<stories$}  {:<steps$}  seconds\n", "story", "step");
    for [story, step, seconds] in rows {
        let line = format!("{story:<stories$}  {step:<steps$}  {seconds:>7}");
        text += line.trim_end();
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn steps_stand_below_each_other_and_what_was_found_out_between_them() {
        let steps = "smoke\tdelete\t2.5\nsmoke\t17 answers\t\n";
        assert_eq!(
            table(steps),
            "
story  step        seconds
smoke  delete          2.5
smoke  17 answers
"
        );
    }
}
