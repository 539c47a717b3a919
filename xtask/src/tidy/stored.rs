//! What can be stored refuses what it does not know: a document of a later version is never half read.
//!
//! Types of `model` and `plan` that can be read from a document say `deny_unknown_fields`. Those that are
//! read by way of another type, or are but one value, have no fields to deny.

use super::Report;
use super::tree::Tree;

/// Where the types are that documents are made of.
const ROOMS: &[&str] = &["crates/model/src/", "crates/plan/src/"];

/// Attributes that leave no fields to deny, besides the one that denies them.
const ENOUGH: &[&str] = &["deny_unknown_fields", "transparent", "from = "];

/// Checks every type that can be read.
pub(super) fn check(tree: &Tree, report: &mut Report) {
    let mut read = 0;
    for file in &tree.files {
        if !file.is_product() || !ROOMS.iter().any(|room| file.path.starts_with(room)) {
            continue;
        }
        for item in items(file.before_tests()) {
            read += 1;
            if !item.denies {
                report.find(
                    &file.path,
                    item.line,
                    "can be stored and reads past fields it does not know, say \
                     `#[serde(deny_unknown_fields)]`",
                );
            }
        }
    }
    report.count(read, "types that can be stored");
}

/// One type that can be read from a document.
struct Item {
    line: usize,
    denies: bool,
}

/// The types of a file that derive `Deserialize`.
fn items(text: &str) -> Vec<Item> {
    let mut found = Vec::new();
    let mut attributes = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[") {
            attributes.push_str(trimmed);
            let mut last = trimmed;
            while !last.ends_with(']')
                && let Some((_, more)) = lines.next()
            {
                last = more.trim();
                attributes.push_str(last);
            }
            continue;
        }
        if trimmed.starts_with("///") {
            continue;
        }
        let reads = attributes.contains("derive(") && attributes.contains("Deserialize");
        if reads && let Some(body) = body_of(text, index, trimmed) {
            let enough = ENOUGH.iter().any(|word| attributes.contains(word));
            found.push(Item {
                line: index + 1,
                denies: enough || !has_fields(trimmed, &body),
            });
        }
        attributes.clear();
    }
    found
}

/// The lines between the braces of the type that begins on a line; nothing where it has none.
fn body_of<'a>(text: &'a str, at: usize, line: &str) -> Option<Vec<&'a str>> {
    let is_type = line.contains("struct ") || line.contains("enum ");
    if !is_type || !line.ends_with('{') {
        return None;
    }
    let inside = |line: &&str| *line != "}";
    Some(text.lines().skip(at + 1).take_while(inside).collect())
}

/// Whether there are fields with names: those of a struct, or of a variant.
fn has_fields(line: &str, body: &[&str]) -> bool {
    let variant = |line: &&str| {
        let code = line.trim();
        code.ends_with('{') && !code.starts_with("//") && !code.starts_with('#')
    };
    line.contains("struct ") || body.iter().any(variant)
}

#[cfg(test)]
mod tests {
    use super::super::tree::{File, Tree};
    use super::{Report, check};

    const TYPES: &str = "\
//! Types.
#[derive(Debug, Deserialize)]
pub struct Open {
    a: u32,
}

#[derive(
    Debug, Deserialize,
)]
#[serde(rename_all = \"kebab-case\")]
pub enum Variants {
    /// One.
    One {
        a: u32,
    },
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
/// Said.
pub struct Shut {
    a: u32,
}

#[derive(Deserialize)]
#[serde(try_from = \"String\")]
pub struct Parsed {
    a: u32,
}

#[derive(Deserialize)]
pub enum Words {
    One,
    Two(u32),
}

#[derive(Deserialize)]
pub struct Number(u32);

#[derive(Serialize)]
pub struct Written {
    a: u32,
}
";

    #[test]
    fn what_reads_past_what_it_does_not_know_is_found() {
        let file = |path: &str| File {
            path: path.to_owned(),
            text: TYPES.to_owned(),
        };
        let files = vec![file("crates/api/src/a.rs"), file("crates/model/src/a.rs")];
        let mut report = Report::default();
        check(&Tree { files }, &mut report);
        let lines: Vec<_> = report
            .findings
            .iter()
            .map(|found| (found.path.as_str(), found.line))
            .collect();
        assert_eq!(
            lines,
            [("crates/model/src/a.rs", 3), ("crates/model/src/a.rs", 11)]
        );
    }
}
