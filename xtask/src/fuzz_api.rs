//! Sends the server everything its `OpenAPI` document allows, and much that it forbids.
//!
//! A server on an empty data directory and a free port is started, schemathesis is pointed at its
//! document, and the server is killed again, whatever happens. Any answer of 500 or above is a
//! failure, and so is an answer that does not look as the document says, or an operation that
//! refuses the administrator's token every time (then nothing behind it was tried).
//!
//! **Counting:** one test per operation that was tried. The seed is fixed, so that a failure can
//! be repeated; the directory of a failed run is kept, with the server's log in it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

pub(crate) mod python;

use crate::server::Server;
use python::Python;

/// How many random requests each operation gets, besides those at the borders of its schema.
///
/// Enough to meet each kind of wrong value several times; the whole run stays below a minute.
const EXAMPLES_MAX: u32 = 30;

/// Where the random requests start from.
const SEED: u32 = 1;

/// When to give up; a run takes a fraction of it.
const RUN_MAX: Duration = Duration::from_mins(5);

/// How long one answer may take, in seconds; a stuck handler is a failure like any other.
const ANSWER_MAX_SECONDS: u32 = 10;

/// Operations that answer for ever and would only ever time out.
const STREAMS: &str = "/(events|log)$";

/// What is demanded of every answer.
const CHECKS: &str = "not_a_server_error,response_schema_conformance,content_type_conformance";

/// Whose failure it is when no operation is to blame.
const THE_RUN: &str = "the run";

/// The environment variable that carries the token, so that it stands in no argument list.
const TOKEN: &str = "SLIPWAY_FUZZ_TOKEN";

/// What schemathesis reads besides its arguments.
///
/// Most requests go to the project that exists, because behind any other there is only a 404.
const CONFIGURATION: &str = r#"[headers]
Authorization = "Bearer ${SLIPWAY_FUZZ_TOKEN}"

[dictionaries.projects]
values = ["default"]

[parameters]
"path.project" = { dictionary = "projects", probability = 0.8 }
"#;

/// What became of the fuzzing.
pub(crate) enum Fuzz {
    /// It ran to its end.
    Ran(Tally),
    /// It could not run here, for this reason.
    Skipped(String),
}

/// What a run found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) operations: usize,
    pub(crate) cases: usize,
    /// One line per operation that failed, with all that it failed at.
    pub(crate) failures: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(formatter, "failed: {failure}")?;
        }
        write!(
            formatter,
            "api fuzz: {} operations, {} cases, {} failures",
            self.operations,
            self.cases,
            self.failures.len()
        )
    }
}

/// Fuzzes the debug build, or the program given as the only argument.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let program = match arguments {
        [] => build(&["--package", "slipway"])?,
        [program] if !program.starts_with('-') => PathBuf::from(program),
        _ => bail!("usage: cargo xtask fuzz-api [PROGRAM]"),
    };
    match measure(&program)? {
        Fuzz::Ran(tally) => {
            println!("{tally}");
            Ok(ExitCode::from(u8::from(!tally.failures.is_empty())))
        }
        Fuzz::Skipped(reason) => {
            println!("api fuzz: skipped: {reason}");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Fuzzes the program that `cargo test` has just built.
///
/// The selection is the one of `cargo test`, so that cargo finds nothing left to compile.
pub(crate) fn measure_after_tests() -> Result<Fuzz> {
    measure(&build(&["--workspace", "--tests", "--bin", "slipway"])?)
}

/// Builds the server and answers where it is.
fn build(selection: &[&str]) -> Result<PathBuf> {
    let status = workspace::cargo()
        .args(["build", "--quiet"])
        .args(selection)
        .status()
        .context("could not start cargo build")?;
    if !status.success() {
        bail!("could not build slipway");
    }
    Ok(workspace::target_directory()?.join("debug/slipway"))
}

/// Starts the server, fuzzes it and reads the result.
fn measure(program: &Path) -> Result<Fuzz> {
    let target = workspace::target_directory()?;
    let python = match python::ensure(&target)? {
        Python::Ready { python, .. } => python,
        Python::Missing(reason) => return Ok(Fuzz::Skipped(reason)),
    };
    let directory = target.join(format!("fuzz-api/{}", std::process::id()));
    fs::create_dir_all(&directory)
        .with_context(|| format!("could not create {}", directory.display()))?;
    let server = Server::start(program, &directory)?;
    let finished = attack(&python, &server, &directory);
    drop(server);
    let tally = finished.and_then(|()| read_report(&directory));
    if tally.as_ref().is_ok_and(|tally| tally.failures.is_empty()) {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("could not remove {}", directory.display()))?;
    } else {
        show_log(&directory);
    }
    tally.map(Fuzz::Ran)
}

/// Runs schemathesis to its end, or to the end of our patience.
fn attack(python: &Path, server: &Server, directory: &Path) -> Result<()> {
    let configuration = directory.join("schemathesis.toml");
    fs::write(&configuration, CONFIGURATION)
        .with_context(|| format!("could not write {}", configuration.display()))?;
    let log = File::create(directory.join("fuzz.log")).context("could not create fuzz.log")?;
    let errors = log.try_clone().context("could not share fuzz.log")?;
    let mut child = Command::new(python)
        .args(arguments(server.address()))
        .current_dir(directory)
        .env(TOKEN, server.token()?)
        .env("PYTHONUTF8", "1")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .context("could not start schemathesis")?;
    let started = Instant::now();
    loop {
        if child
            .try_wait()
            .context("could not wait for schemathesis")?
            .is_some()
        {
            return Ok(()); // how it went is in its report
        }
        if started.elapsed() > RUN_MAX {
            child.kill().context("could not stop schemathesis")?;
            child.wait().context("could not wait for schemathesis")?;
            bail!(
                "schemathesis was still running after {} s",
                RUN_MAX.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The arguments of the Python interpreter; files are in its working directory.
fn arguments(address: &str) -> Vec<String> {
    let fixed = [
        "-m",
        "schemathesis.cli",
        "--config-file",
        "schemathesis.toml",
        "run",
        "--no-color",
        "--report=json",
        "--report-json-path=report.json",
        "--generation-database=none",
        // Python 3.11 counts the depth of its parser per process and not per thread: two workers
        // that read lambdas at once make it raise a SystemError (CPython issue 106905).
        "--workers=1",
    ];
    let mut all: Vec<String> = fixed.iter().map(ToString::to_string).collect();
    all.extend([
        format!("--checks={CHECKS}"),
        format!("--exclude-path-regex={STREAMS}"),
        format!("--max-examples={EXAMPLES_MAX}"),
        format!("--seed={SEED}"),
        format!("--request-timeout={ANSWER_MAX_SECONDS}"),
        format!("{address}/openapi.json"),
    ]);
    all
}

/// Reads what schemathesis found.
fn read_report(directory: &Path) -> Result<Tally> {
    let path = directory.join("report.json");
    let text = fs::read(&path).context("schemathesis ended without a report")?;
    let report: Value =
        serde_json::from_slice(&text).context("could not read the report of schemathesis")?;
    tally(&report)
}

/// Operations that no token opens but a signature, which nobody can guess: they refuse whatever is tried.
const SIGNED: &[&str] = &["POST /api/v1/projects/{project}/git/{source}"];

/// Counts operations, cases and failures of a report.
fn tally(report: &Value) -> Result<Tally> {
    let number = |value: &Value| {
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let operations =
        number(&report["operations"]["tested"]).context("the report counts no operations")?;
    let selected =
        number(&report["operations"]["selected"]).context("the report counts no operations")?;
    let cases = number(&report["test_cases"]["generated"]).context("the report counts no cases")?;
    if operations == 0 || cases == 0 {
        bail!("schemathesis tried no operation: is the OpenAPI document empty?");
    }
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |whose: String, what: String| failures.entry(whose).or_default().push(what);
    for failure in list(&report["failures"]) {
        for operation in list(&failure["operations"]) {
            add(text(&operation), text(&failure["title"]));
        }
    }
    for operation in list(&report["warnings"]["missing_auth"]) {
        let operation = text(&operation);
        if SIGNED.contains(&operation.as_str()) {
            continue;
        }
        add(operation, "always refused the token".to_owned());
    }
    for error in list(&report["errors"]) {
        add(THE_RUN.to_owned(), text(&error["title"]));
    }
    if operations < selected {
        let missed = selected - operations;
        add(THE_RUN.to_owned(), format!("{missed} operations not tried"));
    }
    if failures.is_empty() && report["exit_code"] != 0 {
        let unknown = "failed for a reason that only its log tells".to_owned();
        failures.insert(THE_RUN.to_owned(), vec![unknown]);
    }
    let failures = failures
        .into_iter()
        .map(|(whose, what)| format!("{whose}: {}", what.join(", ")))
        .collect();
    Ok(Tally {
        operations,
        cases,
        failures,
    })
}

/// Prints what schemathesis said and where the rest is.
fn show_log(directory: &Path) {
    if let Ok(log) = fs::read_to_string(directory.join("fuzz.log")) {
        println!("{log}");
    }
    println!("logs of this run: {}", directory.display());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{arguments, tally};

    #[test]
    fn the_streams_are_left_out_and_the_token_is_not_an_argument() {
        let all = arguments("http://127.0.0.1:1").join(" ");
        assert!(all.contains("--exclude-path-regex=/(events|log)$"), "{all}");
        assert!(all.ends_with(" http://127.0.0.1:1/openapi.json"), "{all}");
        assert!(!all.contains("Bearer"), "{all}");
    }

    #[test]
    fn failures_are_named_by_operation() {
        let report = json!({
            "exit_code": 1,
            "operations": { "selected": 3, "tested": 2 },
            "test_cases": { "generated": 75 },
            "failures": [
                { "title": "Server error", "operations": ["GET /a"] },
                { "title": "Wrong content type", "operations": ["GET /a"] },
            ],
            "errors": [{ "title": "Server Unavailable" }],
            "warnings": { "missing_auth": ["GET /b", super::SIGNED[0]] },
        });
        let tally = tally(&report).unwrap();
        assert_eq!(
            tally.to_string(),
            "failed: GET /a: Server error, Wrong content type\n\
             failed: GET /b: always refused the token\n\
             failed: the run: Server Unavailable, 1 operations not tried\n\
             api fuzz: 2 operations, 75 cases, 3 failures"
        );
    }

    #[test]
    fn a_run_that_tried_nothing_proves_nothing() {
        let report = json!({
            "exit_code": 0,
            "operations": { "selected": 0, "tested": 0 },
            "test_cases": { "generated": 0 },
        });
        assert!(tally(&report).is_err());
    }
}
