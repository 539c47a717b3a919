//! A cluster on hosts that are there, beside one that somebody makes with kubeadm by hand.
//!
//! Both are told by the story `byhand`, one after the other on hosts of the same kind, and both
//! end when the API calls all nodes ready.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use lab::kubernetes::VERSIONS;

use super::Row;
use crate::e2e;

const WHAT: &str = "from hosts to a ready cluster";
const BUDGET: &str = "< 1.2x by hand";
const TIMES_MAX: f64 = 1.2;

/// Has the story told by the release build.
pub(super) fn measure(program: &Path) -> Result<Row> {
    let (suite, steps) = e2e::stories("byhand", &VERSIONS[..1], Some(program))?;
    if let Some(skip) = suite.skips.first() {
        return Ok(Row::unmeasured(WHAT, &skip.reason, BUDGET));
    }
    ensure!(suite.failures.is_empty(), "the story failed");
    let (ours, rival) = (seconds(&steps, "by Slipway")?, seconds(&steps, "by hand")?);
    let times = ours / rival;
    Ok(Row {
        what: WHAT.to_owned(),
        ours: format!("{ours:.1} s"),
        rival: format!("kubeadm by hand: {rival:.1} s, {times:.2}x"),
        budget: BUDGET,
        met: times < TIMES_MAX,
    })
}

/// How long the step took whose name begins so.
fn seconds(steps: &str, begins: &str) -> Result<f64> {
    let mut lines = steps.lines().map(|line| line.split('\t'));
    let found = lines.find_map(|mut parts| {
        let step = parts.nth(1)?;
        let took = parts.next()?;
        step.starts_with(begins).then_some(took)
    });
    let took = found.with_context(|| format!("the story has no step {begins:?}"))?;
    took.parse()
        .with_context(|| format!("{took:?} are no seconds"))
}
