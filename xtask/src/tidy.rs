//! Checks the rules of the house that neither rustc nor clippy knows.
//!
//! Every rule is a function in a file of its own that reads the tree and adds to one [`Report`];
//! all findings are printed at once, one per line, and each says what to do. The same run is a
//! test of this crate, so a rule cannot be forgotten on the way to a commit.
//!
//! Function length and purity are clippy's business (`clippy.toml`), not ours.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace;

mod arrows;
mod error_pages;
mod glossary;
mod lexer;
mod links;
mod manifests;
mod sources;
mod stored;
mod tree;

use tree::Tree;

/// One breach of one rule.
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// What all rules found, and how much they looked at.
#[derive(Default)]
#[must_use = "findings that nobody prints are not found"]
struct Report {
    findings: Vec<Finding>,
    counts: Vec<String>,
}

impl Report {
    /// Adds a breach: where, what it is, and after a comma or semicolon what to do about it.
    fn find(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.findings.push(Finding {
            path: path.to_owned(),
            line,
            what: what.into(),
        });
    }

    /// Adds to the one line that is printed when all is well.
    fn count(&mut self, number: usize, noun: &str) {
        self.counts.push(format!("{number} {noun}"));
    }
}

/// Runs every rule over the working tree; `--bless` rewrites the arrows first.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [] => {}
        [flag] if flag == "--bless" => arrows::bless()?,
        _ => bail!("usage: cargo xtask tidy [--bless]"),
    }
    let report = inspect()?;
    if report.findings.is_empty() {
        println!("tidy: {}", report.counts.join(", "));
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    println!("tidy: {} findings", report.findings.len());
    Ok(ExitCode::FAILURE)
}

/// Reads the tree once and lets every rule look at it.
fn inspect() -> Result<Report> {
    let root = workspace::root();
    let tree = Tree::read(&root)?;
    let mut report = Report::default();
    sources::check(&tree, &mut report);
    stored::check(&tree, &mut report);
    manifests::check(&tree, &mut report);
    arrows::check(&tree, &workspace::metadata()?, &mut report);
    error_pages::check(&tree, &mut report);
    links::check(&tree, &root, &mut report);
    glossary::check(&tree, &mut report);
    report
        .findings
        .sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(report)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let report = super::inspect().unwrap();
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(
            findings.is_empty(),
            "{} findings\n{}",
            findings.len(),
            findings.join("\n")
        );
    }
}
