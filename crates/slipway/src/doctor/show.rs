//! Findings as people and programs see them.

use super::judge::{Finding, Standing};
use serde::Serialize;

/// All findings, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    /// Whether nothing is wrong.
    pub(super) good: bool,
    findings: &'a [Finding],
}

impl<'a> Report<'a> {
    pub(super) fn of(findings: &'a [Finding]) -> Self {
        let wrong = |finding: &Finding| finding.standing == Standing::Wrong;
        Self {
            good: !findings.iter().any(wrong),
            findings,
        }
    }
}

/// The column in which what was found begins: after the longest name of a check.
const NAMES: usize = 16;

/// All findings, for people: one line each, and one on how to mend it where that is needed.
pub(super) fn picture(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let word = match finding.standing {
            Standing::Good => "ok   ",
            Standing::Note => "note ",
            Standing::Wrong => "WRONG",
        };
        text.push_str(&format!(
            "{word}  {:<NAMES$}  {}\n",
            finding.check, finding.found
        ));
        if let Some(mend) = &finding.mend {
            text.push_str(&format!("       {:<NAMES$}  → {mend}\n", ""));
        }
    }
    let wrong = findings
        .iter()
        .filter(|finding| finding.standing == Standing::Wrong)
        .count();
    text.push_str(&match wrong {
        0 => "\nNothing is wrong.\n".to_owned(),
        1 => "\nOne thing is wrong.\n".to_owned(),
        many => format!("\n{many} things are wrong.\n"),
    });
    text
}
