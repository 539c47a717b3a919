//! Runs every proof that a fresh machine can run, and counts.
//!
//! First the test programs of the workspace, several at once, then the fuzzer over the API
//! ([`crate::fuzz_api`], one test per operation). What a program prints is shown when it ends; at
//! the end stand the counts of each suite, what failed, and every skip with its reason. The last
//! line is always the same: `N passed, N failed, N skipped`.
//!
//! **Skips.** A test that cannot run here returns early, after appending a line `name: reason` to
//! the file that the environment variable `SLIPWAY_SKIPS` names; where nothing captures its
//! output it may print `SKIPPED name: reason` instead. For libtest it has passed; we take it off
//! the passed ones of its suite. With `CI=true` a skip is a failure unless its reason starts with
//! `not possible here:`, so that a proof cannot quietly stop running.

pub(crate) mod programs;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use crate::fuzz_api::{self, Fuzz};
use crate::hosts::{self, Got};
use crate::postgres::{self, Postgres};
use crate::workspace;
use programs::Program;

/// How many test programs run at once, on however many cores.
const AT_ONCE: usize = 2;

/// How many lines of a failure the summary repeats, and how many signs of each.
const TOLD: usize = 6;
const TOLD_SIGNS: usize = 600;

/// Names the file that tests append their skips to.
pub(crate) const SKIPS: &str = "SLIPWAY_SKIPS";

/// Names the file that proofs append what they covered to: libtest swallows what a test prints
/// when it passes, and a number nobody sees proves nothing.
const FIGURES: &str = "SLIPWAY_FIGURES";

/// How a reason starts when no change of ours could make the test run on this machine.
const IMPOSSIBLE: &str = "not possible here:";

/// The tests of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) failures: Vec<String>,
    /// What its tests said when they failed, shortened.
    pub(crate) words: Vec<String>,
    pub(crate) skips: Vec<Skip>,
    pub(crate) finished: bool,
}

/// A test that did not run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    name: String,
    pub(crate) reason: String,
}

impl Skip {
    /// Reads `name: reason`.
    pub(crate) fn parse(line: &str) -> Self {
        let (name, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        Self {
            name: name.trim().to_owned(),
            reason: reason.trim().to_owned(),
        }
    }
}

/// Runs everything and prints the counts.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask test");
    }
    // Tests that need it skip themselves where it is missing, each with its reason.
    if let Postgres::Missing(reason) = postgres::ensure()? {
        println!("there is no PostgreSQL to test with: {reason}");
    }
    let target = workspace::target_directory()?;
    hosts::ensure(&target)?;
    if let Got::Missing(reason) = hosts::ansible(&target)? {
        println!("there is no Ansible to test with: {reason}");
    }
    if let Got::Missing(reason) = hosts::moto(&target)? {
        println!("there is no store that speaks S3 to test with: {reason}");
    }
    let figures = target.join("figures.txt");
    let mut suites = workspace_tests(&target.join("skips"), &figures)?;
    suites.push(api_fuzz());
    println!("\nWhat the proofs covered");
    let covered = fs::read_to_string(&figures).context("could not read the figures")?;
    for line in covered.lines() {
        println!("  {line}");
    }
    Ok(concluded(suites))
}

/// Prints the counts; in CI, what could have run and did not has failed.
pub(crate) fn concluded(mut suites: Vec<Suite>) -> ExitCode {
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        refuse_skips(&mut suites);
    }
    let summary = summary(&suites);
    print!("{summary}");
    let failed = suites.iter().any(|suite| suite.failed > 0);
    ExitCode::from(u8::from(failed))
}

/// Builds every test program of the workspace, then runs several of them at once: most wait for
/// something most of the time. What each prints is shown when it ends.
fn workspace_tests(skips: &Path, figures: &Path) -> Result<Vec<Suite>> {
    fs::write(figures, "").with_context(|| format!("could not empty {}", figures.display()))?;
    fs::create_dir_all(skips).with_context(|| format!("could not make {}", skips.display()))?;
    let Some(programs) = programs::built(&["--workspace"])? else {
        return Ok(Log::default().finish(false));
    };
    let next = Mutex::new(programs.into_iter().enumerate());
    let done: Mutex<Vec<(usize, Vec<Suite>)>> = Mutex::new(Vec::new());
    let failed = std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let taken = next.lock().ok().and_then(|mut next| next.next());
                let Some((place, program)) = taken else {
                    return Ok(());
                };
                let skips = skips.join(place.to_string());
                let suites = one(&program, &skips, figures)?;
                if let Ok(mut done) = done.lock() {
                    done.push((place, suites));
                }
            }
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(ended) => ended,
            Err(_) => bail!("a worker broke down"),
        });
        ended.collect::<Result<()>>()
    });
    failed?;
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(place, _)| *place);
    let mut suites: Vec<_> = done.into_iter().flat_map(|(_, suites)| suites).collect();
    suites.extend(examples(&skips.join("examples"), figures)?);
    Ok(suites)
}

/// Runs one test program and reads what it prints.
fn one(program: &Program, skips: &Path, figures: &Path) -> Result<Vec<Suite>> {
    let mut log = Log::default();
    log.krate.clone_from(&program.krate);
    log.line(&program.announced());
    let mut command = program.command();
    let (output, succeeded) = said(&mut command, skips, figures)?;
    let text = format!("\n{}\n{output}", program.announced());
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("could not pass on what a test printed")?;
    read(&mut log, &output, skips)?;
    Ok(log.finish(succeeded))
}

/// Runs the examples in documentation, which only cargo can.
fn examples(skips: &Path, figures: &Path) -> Result<Vec<Suite>> {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    let (output, succeeded) = said(&mut command, skips, figures)?;
    print!("{output}");
    let mut log = Log::default();
    read(&mut log, &output, skips)?;
    Ok(log.finish(succeeded))
}

/// What a command prints on both streams, and whether it succeeded.
fn said(command: &mut Command, skips: &Path, figures: &Path) -> Result<(String, bool)> {
    fs::write(skips, "").with_context(|| format!("could not empty {}", skips.display()))?;
    // One pipe for both streams, so that they stay in their order.
    let (mut reader, writer) = std::io::pipe().context("could not make a pipe")?;
    command
        .env(SKIPS, skips)
        .env(FIGURES, figures)
        // The message says what was wrong; fifty frames of the runtime only hide it.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("could not share a pipe")?)
        .stderr(writer);
    let mut child = command.spawn().context("could not start a test")?;
    // The command holds the writing end, which must close for the reader to end.
    *command = Command::new("true");
    let mut output = Vec::new();
    let read = reader.read_to_end(&mut output);
    read.context("could not read what a test prints")?;
    let status = child.wait().context("could not wait for a test")?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok((output, status.success()))
}

/// Reads the output of a program that has ended, and its skips.
fn read(log: &mut Log, output: &str, skips: &Path) -> Result<()> {
    let skipped = fs::read_to_string(skips).context("could not read the skips")?;
    for line in output.lines() {
        if log.line(line) {
            log.skips(skipped.lines());
        }
    }
    Ok(())
}

/// Runs the fuzzer as one more suite.
fn api_fuzz() -> Suite {
    println!("\n     Running the API fuzzer");
    let mut suite = Suite {
        name: "api fuzz".to_owned(),
        finished: true,
        ..Suite::default()
    };
    match fuzz_api::measure_after_tests() {
        Ok(Fuzz::Ran(tally)) => {
            println!("{tally}");
            suite.failed = tally.failures.len();
            suite.passed = tally.operations.saturating_sub(suite.failed);
            suite.failures = tally.failures;
        }
        Ok(Fuzz::Skipped(reason)) => suite.skips.push(Skip {
            name: "every operation".to_owned(),
            reason,
        }),
        Err(error) => {
            suite.failed = 1;
            suite.failures.push(format!("{error:#}"));
        }
    }
    suite
}

/// Turns every skip that could have been avoided into a failure.
fn refuse_skips(suites: &mut [Suite]) {
    for suite in suites {
        let (kept, refused): (Vec<Skip>, Vec<Skip>) = std::mem::take(&mut suite.skips)
            .into_iter()
            .partition(|skip| skip.reason.starts_with(IMPOSSIBLE));
        suite.skips = kept;
        for Skip { name, reason } in refused {
            suite.failed += 1;
            suite.failures.push(format!(
                "{name}: skipped, which CI does not accept: {reason}"
            ));
        }
    }
}

/// The block at the end.
fn summary(suites: &[Suite]) -> String {
    let width = suites
        .iter()
        .map(|suite| suite.name.len())
        .max()
        .unwrap_or(0);
    let row = |name: &str, passed: &str, failed: &str, skipped: &str| {
        format!("{name:<width$}  {passed:>6}  {failed:>6}  {skipped:>7}")
    };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut lines = vec![String::new(), row("suite", "passed", "failed", "skipped")];
    let mut failures = Vec::new();
    let mut reasons = Vec::new();
    for suite in suites {
        let counts = [suite.passed, suite.failed, suite.skips.len()];
        passed += counts[0];
        failed += counts[1];
        skipped += counts[2];
        if counts != [0; 3] {
            let [passed, failed, skipped] = counts.map(|count| count.to_string());
            lines.push(row(&suite.name, &passed, &failed, &skipped));
        }
        let failed = suite.failures.iter();
        failures.extend(failed.map(|failure| format!("  {}: {failure}", suite.name)));
        if counts[1] > 0 {
            failures.extend(suite.words.iter().map(|line| format!("    {line}")));
        }
        let skips = suite.skips.iter();
        reasons
            .extend(skips.map(|skip| format!("  {}: {}: {}", suite.name, skip.name, skip.reason)));
    }
    for (title, list) in [("failed", failures), ("skipped", reasons)] {
        if !list.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(list);
        }
    }
    lines.push(format!(
        "\n{passed} passed, {failed} failed, {skipped} skipped\n"
    ));
    lines.join("\n")
}

/// Reads what cargo and libtest print.
#[derive(Default)]
struct Log {
    suites: Vec<Suite>,
    /// The crate whose unit tests ran last; its integration tests follow.
    krate: String,
    /// How many lines of a failure are still to be kept.
    telling: usize,
}

impl Log {
    /// Takes one line; true when it ended a suite.
    fn line(&mut self, line: &str) -> bool {
        let line = without_colour(line);
        let line = line.trim();
        if line.contains(" panicked at ") {
            self.telling = TOLD;
        }
        self.telling = if line.is_empty() { 0 } else { self.telling };
        if self.telling > 0 {
            self.telling -= 1;
            let told = line.chars().take(TOLD_SIGNS).collect();
            self.suite().words.push(told);
            return false;
        }
        if let Some(name) = self.suite_name(line) {
            self.suites.push(Suite {
                name,
                ..Suite::default()
            });
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            let suite = self.suite();
            suite.passed = count(counts, "passed");
            suite.failed = count(counts, "failed");
            suite.ignored = count(counts, "ignored");
            suite.finished = true;
            return true;
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.suite().failures.push(name.to_owned());
        } else if let Some(skip) = line.strip_prefix("SKIPPED ") {
            self.skips(std::iter::once(skip));
        }
        false
    }

    /// Gives the skips that no earlier suite has to the current one.
    fn skips<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let skip = Skip::parse(line);
            if !self.suites.iter().any(|suite| suite.skips.contains(&skip)) {
                self.suite().skips.push(skip);
            }
        }
    }

    /// All suites; a program that ended without a result has failed.
    fn finish(mut self, succeeded: bool) -> Vec<Suite> {
        for suite in &mut self.suites {
            suite.passed = suite.passed.saturating_sub(suite.skips.len());
            suite.skips.extend((0..suite.ignored).map(|_| Skip {
                name: "a test".to_owned(),
                reason: "marked as ignored in the source".to_owned(),
            }));
            if !suite.finished {
                suite.failed += 1;
                suite
                    .failures
                    .push("the program ended before its tests did".to_owned());
            }
        }
        if !succeeded && self.suites.iter().all(|suite| suite.failed == 0) {
            self.suites.push(Suite {
                name: "cargo test".to_owned(),
                failed: 1,
                failures: vec!["failed without running tests, see above".to_owned()],
                ..Suite::default()
            });
        }
        self.suites
    }

    /// The suite that runs now.
    fn suite(&mut self) -> &mut Suite {
        if self.suites.is_empty() {
            self.suites.push(Suite::default());
        }
        let last = self.suites.len() - 1;
        &mut self.suites[last]
    }

    /// The name of the suite that cargo announces with this line.
    fn suite_name(&mut self, line: &str) -> Option<String> {
        if let Some(krate) = line.strip_prefix("Doc-tests ") {
            return Some(format!("{krate} examples in documentation"));
        }
        let (file, program) = line
            .strip_prefix("Running ")?
            .strip_suffix(')')?
            .split_once(" (")?;
        match file.strip_prefix("unittests ") {
            Some(file) => {
                let (program, _hash) =
                    Path::new(program).file_name()?.to_str()?.rsplit_once('-')?;
                program.clone_into(&mut self.krate);
                Some(format!("{program} {file}"))
            }
            None => Some(format!("{} {file}", self.krate)),
        }
    }
}

/// The number before `word` in a result line.
fn count(counts: &str, word: &str) -> usize {
    counts
        .split([';', '.'])
        .filter_map(|part| part.trim().strip_suffix(word))
        .find_map(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// The line without terminal colours.
fn without_colour(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

#[cfg(test)]
mod tests {
    use super::{IMPOSSIBLE, Log, Suite, refuse_skips, summary};

    const OUTPUT: &str = "\
   Compiling model v0.0.0
     Running unittests src/lib.rs (target/debug/deps/model-0a1b)
test name::empty ... ok
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/limits.rs (target/debug/deps/limits-0a1b)
test big ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests \u{1b}[1mmodel\u{1b}[0m
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    /// Feeds the lines of `output`; `skips` appear in the file before the first result.
    fn read(output: &str, skips: &[&str], succeeded: bool) -> Vec<Suite> {
        let mut log = Log::default();
        for line in output.lines() {
            if log.line(line) {
                log.skips(skips.iter().copied());
            }
        }
        log.finish(succeeded)
    }

    #[test]
    fn suites_are_counted_and_failures_named() {
        assert_eq!(
            summary(&read(OUTPUT, &["name::long: no time"], false)),
            "
suite                            passed  failed  skipped
model src/lib.rs                      2       0        1
model tests/limits.rs                 1       1        0

failed
  model tests/limits.rs: big

skipped
  model src/lib.rs: name::long: no time

3 passed, 1 failed, 1 skipped
"
        );
    }

    #[test]
    fn the_summary_repeats_what_a_failed_test_said() {
        let output = "\
     Running tests/limits.rs (target/debug/deps/limits-0a1b)
test big ... FAILED
thread 'big' (7) panicked at crates/model/tests/limits.rs:3:5:
it is too small

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let text = summary(&read(output, &[], false));
        let told = "  tests/limits.rs: big\n    thread 'big' (7) panicked at crates/model/tests/limits.rs:3:5:\n    it is too small\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        let output =
            "     Running unittests src/lib.rs (target/debug/deps/plan-0a1b)\ntest a ... ok\n";
        let text = summary(&read(output, &[], false));
        assert!(
            text.ends_with("\n0 passed, 1 failed, 0 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn a_build_that_fails_has_failed() {
        let text = summary(&read("error: could not compile\n", &[], false));
        assert!(
            text.ends_with("\n0 passed, 1 failed, 0 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn in_ci_only_the_impossible_is_skipped() {
        let possible = format!("b: {IMPOSSIBLE} no such kernel");
        let mut suites = read(OUTPUT, &["a: too slow", &possible], true);
        refuse_skips(&mut suites);
        let text = summary(&suites);
        assert!(text.contains("model src/lib.rs: a: skipped, which CI does not accept: too slow"));
        assert!(
            text.ends_with("\n2 passed, 2 failed, 1 skipped\n"),
            "{text}"
        );
    }

    #[test]
    fn a_skip_told_twice_counts_once() {
        let output = "     Running tests/stories.rs (target/debug/deps/stories-0a1b)\n\
            SKIPPED one: no world\ntest result: ok. 4 passed; 0 failed; 1 ignored;\n";
        let text = summary(&read(output, &["one: no world"], true));
        assert!(
            text.ends_with("\n3 passed, 0 failed, 2 skipped\n"),
            "{text}"
        );
    }
}
