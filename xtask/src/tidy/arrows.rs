//! Which crate may use which: `docs/dependencies.txt` against the manifests.
//!
//! The file has two sections. `[arrows]` is the picture of what is: every crate of the workspace
//! and those of ours that it uses; `--bless` draws it afresh, and review sees the new line.
//! `[libraries]` is law and written by hand: a library named there may be used only by the crates
//! behind it, and `--bless` never widens it. Only what the product itself needs counts; what its
//! tests use is free.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Report;
use super::tree::Tree;
use crate::workspace;

/// The golden file.
const GOLDEN: &str = "docs/dependencies.txt";

/// A crate or a library, and the names behind its arrow.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// What the golden file says, each row with its line.
#[derive(Default)]
struct Golden {
    arrows: BTreeMap<String, (usize, BTreeSet<String>)>,
    libraries: BTreeMap<String, (usize, BTreeSet<String>)>,
}

/// Compares the golden file with what cargo knows, both ways.
pub(super) fn check(tree: &Tree, metadata: &Value, report: &mut Report) {
    let Some(file) = tree.file(GOLDEN) else {
        report.find(GOLDEN, 1, "missing, restore it and run `make bless`");
        return;
    };
    let golden = parse(&file.text, report);
    let (arrows, libraries) = graphs(metadata);
    compare_arrows(&golden, &arrows, report);
    compare_libraries(&golden, &libraries, report);
    report.count(arrows.values().map(BTreeSet::len).sum(), "arrows");
}

/// Rewrites the `[arrows]` section from the manifests and leaves the rest as it is.
pub(super) fn bless() -> Result<()> {
    let path = workspace::root().join(GOLDEN);
    let text = fs::read_to_string(&path).with_context(|| format!("could not read {GOLDEN}"))?;
    let (arrows, _) = graphs(&workspace::metadata()?);
    let blessed = redraw(&text, &arrows)?;
    if blessed != text {
        fs::write(&path, blessed).with_context(|| format!("could not write {GOLDEN}"))?;
        println!("rewrote {GOLDEN}");
    }
    Ok(())
}

/// The golden text with its arrows replaced.
fn redraw(text: &str, arrows: &Graph) -> Result<String> {
    let (head, rest) = text
        .split_once("[arrows]\n")
        .context("no [arrows] section in docs/dependencies.txt")?;
    // The rows end at the first empty line; what follows belongs to the next section.
    let tail = rest
        .lines()
        .take_while(|row| !row.is_empty())
        .map(|row| row.len() + 1)
        .sum::<usize>();
    let mut drawn = format!("{head}[arrows]\n");
    for (from, to) in arrows {
        let names: Vec<&str> = to.iter().map(String::as_str).collect();
        let names = if names.is_empty() {
            "–".to_owned()
        } else {
            names.join(" ")
        };
        writeln!(drawn, "{from} → {names}")?;
    }
    drawn.push_str(rest.get(tail..).unwrap_or_default());
    Ok(drawn)
}

/// Reads the golden file; a row that is none is a finding.
fn parse(text: &str, report: &mut Report) -> Golden {
    let mut golden = Golden::default();
    let mut section = "";
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        if row.starts_with('[') {
            section = row;
            continue;
        }
        let rows = match section {
            "[arrows]" => &mut golden.arrows,
            "[libraries]" => &mut golden.libraries,
            _ => {
                report.find(GOLDEN, line, "a row outside of both sections, remove it");
                continue;
            }
        };
        let Some((from, to)) = row.split_once('→') else {
            report.find(GOLDEN, line, "not an arrow, write `name → names`");
            continue;
        };
        let names = to
            .split_whitespace()
            .filter(|name| *name != "–")
            .map(str::to_owned)
            .collect();
        rows.insert(from.trim().to_owned(), (line, names));
    }
    golden
}

/// Who uses whom inside the workspace, and which library is used by whom.
fn graphs(metadata: &Value) -> (Graph, Graph) {
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages().map(name).collect();
    let mut arrows: Graph = ours
        .iter()
        .map(|ours| (ours.clone(), BTreeSet::new()))
        .collect();
    let mut libraries = Graph::new();
    for package in packages() {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for dependency in dependencies.filter(|dependency| dependency["kind"].is_null()) {
            let (from, to) = (name(package), name(dependency));
            let (graph, key, value) = if ours.contains(&to) {
                (&mut arrows, from, to)
            } else {
                (&mut libraries, to, from)
            };
            graph.entry(key).or_default().insert(value);
        }
    }
    (arrows, libraries)
}

/// An arrow that is not drawn, or drawn and not there.
fn compare_arrows(golden: &Golden, arrows: &Graph, report: &mut Report) {
    let nothing = BTreeSet::new();
    for (from, to) in arrows {
        let Some((line, drawn)) = golden.arrows.get(from) else {
            report.find(
                GOLDEN,
                1,
                format!("the crate {from} is not drawn, run `make bless`"),
            );
            continue;
        };
        for name in to.difference(drawn) {
            report.find(
                GOLDEN,
                *line,
                format!("{from} uses {name} and no arrow says so, drop the dependency or, if review agrees, run `make bless`"),
            );
        }
    }
    for (from, (line, drawn)) in &golden.arrows {
        let real = arrows.get(from).unwrap_or(&nothing);
        if !arrows.contains_key(from) {
            report.find(
                GOLDEN,
                *line,
                format!("there is no crate {from}, run `make bless`"),
            );
        }
        for name in drawn.difference(real) {
            report.find(
                GOLDEN,
                *line,
                format!("{from} does not use {name}, run `make bless`"),
            );
        }
    }
}

/// A library where it may not be, or a permission that nobody uses.
fn compare_libraries(golden: &Golden, libraries: &Graph, report: &mut Report) {
    let nothing = BTreeSet::new();
    for (library, (line, allowed)) in &golden.libraries {
        let users = libraries.get(library).unwrap_or(&nothing);
        for user in users.difference(allowed) {
            report.find(
                GOLDEN,
                *line,
                format!("{user} may not use {library}, drop the dependency or change this line in review"),
            );
        }
        for idle in allowed.difference(users) {
            report.find(
                GOLDEN,
                *line,
                format!("{idle} does not use {library}, take it off this line"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tree::{File, Tree};
    use super::{GOLDEN, Report, check, graphs, redraw};

    const TEXT: &str = "# head\n[arrows]\nengine → store\nmodel → –\nold → model\n\n# law\n[libraries]\nrusqlite → store\n";

    fn metadata() -> serde_json::Value {
        json!({ "packages": [
            { "name": "model", "dependencies": [{ "name": "rusqlite", "kind": null }] },
            { "name": "engine", "dependencies": [
                { "name": "model", "kind": null },
                { "name": "sim", "kind": "dev" },
            ] },
        ] })
    }

    #[test]
    fn every_difference_is_found() {
        let tree = Tree {
            files: vec![File {
                path: GOLDEN.to_owned(),
                text: TEXT.to_owned(),
            }],
        };
        let mut report = Report::default();
        check(&tree, &metadata(), &mut report);
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/dependencies.txt:3: engine uses model and no arrow says so, drop the dependency or, if review agrees, run `make bless`",
                "docs/dependencies.txt:3: engine does not use store, run `make bless`",
                "docs/dependencies.txt:5: there is no crate old, run `make bless`",
                "docs/dependencies.txt:5: old does not use model, run `make bless`",
                "docs/dependencies.txt:9: model may not use rusqlite, drop the dependency or change this line in review",
                "docs/dependencies.txt:9: store does not use rusqlite, take it off this line",
            ]
        );
    }

    #[test]
    fn blessing_draws_arrows_and_leaves_the_law_alone() {
        let (arrows, _) = graphs(&metadata());
        assert_eq!(
            redraw(TEXT, &arrows).unwrap(),
            "# head\n[arrows]\nengine → model\nmodel → –\n\n# law\n[libraries]\nrusqlite → store\n"
        );
    }
}
