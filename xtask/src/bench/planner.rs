//! The planner by itself: how long its proof takes, and how long a large fleet.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::Row;
use crate::test::programs;
use crate::workspace;

/// What was promised of ten thousand random worlds.
const WORLDS_MAX: Duration = Duration::from_mins(1);

/// What was promised of a hundred clusters with ten pools each.
const FLEET_MAX: Duration = Duration::from_secs(1);
const PEAK_MIB_MAX: u64 = 200;

/// Measures the parts that are wanted.
pub(super) fn measure(part: impl Fn(&'static str) -> bool, rows: &mut Vec<Row>) -> Result<()> {
    if part("worlds") {
        rows.push(worlds()?);
    }
    if part("plan") {
        fleet(rows)?;
    }
    Ok(())
}

/// The random worlds of the planner's tests, built as `make test` builds them.
fn worlds() -> Result<Row> {
    let Some(programs) = programs::built(&["--package", "plan", "--test", "worlds"])? else {
        bail!("the build of the random worlds failed");
    };
    let program = programs.first().context("there are no random worlds")?;
    eprintln!("letting random worlds live");
    let began = Instant::now();
    let ended = program.command().stdout(Stdio::null()).status();
    let took = began.elapsed();
    ensure!(
        ended.context("could not run the random worlds")?.success(),
        "a random world broke a promise"
    );
    Ok(Row {
        what: "10,000 random worlds, every promise kept".to_owned(),
        ours: format!("{:.1} s", took.as_secs_f64()),
        rival: "none has them".to_owned(),
        budget: "< 60 s",
        met: took < WORLDS_MAX,
    })
}

/// A hundred clusters with ten pools each, in a process of its own: its peak is that of nobody else.
fn fleet(rows: &mut Vec<Row>) -> Result<()> {
    let built = workspace::cargo()
        .args(["build", "--release", "--package", "plan"])
        .args(["--example", "hundred"])
        .status();
    ensure!(
        built.context("could not start cargo")?.success(),
        "the release build of the measuring program failed"
    );
    let program = workspace::target_directory()?.join("release/examples/hundred");
    for (word, what) in [
        ("create", "100 clusters with 10 pools planned to the end"),
        ("upgrade", "100 clusters with 10 pools, upgrade planned"),
    ] {
        let began = Instant::now();
        let told = Command::new(&program).arg(word).output();
        let took = began.elapsed();
        let told = told.context("could not run the measuring program")?;
        ensure!(told.status.success(), "the measuring program failed");
        let told = String::from_utf8_lossy(&told.stdout);
        let kib: u64 = told
            .lines()
            .find_map(|line| line.strip_prefix("peak KiB: "))
            .and_then(|number| number.parse().ok())
            .context("the measuring program told no peak")?;
        let peak = kib / 1_024;
        rows.push(Row {
            what: what.to_owned(),
            ours: format!("{:.2} s, {peak} MiB", took.as_secs_f64()),
            rival: "none shows one".to_owned(),
            budget: "< 1 s, < 200 MiB",
            met: took < FLEET_MAX && peak < PEAK_MIB_MAX,
        });
    }
    Ok(())
}
