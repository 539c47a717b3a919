//! Every error code has its page, and every page its code.
//!
//! A code such as `PLAN-014` counts where the product could print it: in a string literal of a
//! crate's `src`, outside tests.

use std::collections::BTreeMap;

use super::Report;
use super::lexer::{self, Kind};
use super::tree::Tree;

/// Where the pages are.
const PAGES: &str = "docs/errors/";

/// Things that look like codes and are names of something else.
const NOT_CODES: &[&str] = &["AES-128", "AES-256", "SHA-256", "SHA-384", "SHA-512"];

/// The letters before the dash of a code.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=8;

/// The digits after it.
const DIGITS: usize = 3;

/// Compares the codes of the source with the pages, both ways.
pub(super) fn check(tree: &Tree, report: &mut Report) {
    let codes = codes_in_source(tree);
    for (code, (path, line)) in &codes {
        if tree.file(&format!("{PAGES}{code}.md")).is_none() {
            report.find(
                path,
                *line,
                format!("{code} has no page, write {PAGES}{code}.md"),
            );
        }
    }
    for file in &tree.files {
        let Some(page) = file.path.strip_prefix(PAGES) else {
            continue;
        };
        let code = page.strip_suffix(".md").unwrap_or(page);
        if page != "README.md" && !codes.contains_key(code) {
            report.find(
                &file.path,
                1,
                format!("no source mentions {code}, remove the page or use the code"),
            );
        }
    }
    report.count(codes.len(), "error codes");
}

/// Each code with the place where it first appears.
fn codes_in_source(tree: &Tree) -> BTreeMap<&str, (&str, usize)> {
    let mut codes = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_product()) {
        for piece in lexer::pieces(file.before_tests()) {
            if piece.kind != Kind::Literal {
                continue;
            }
            for (offset, code) in codes_in(piece.text) {
                codes
                    .entry(code)
                    .or_insert((file.path.as_str(), piece.line_at(offset)));
            }
        }
    }
    codes
}

/// The codes in one text, with their offsets.
fn codes_in(text: &str) -> Vec<(usize, &str)> {
    let of_code = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut found = Vec::new();
    let mut offset = 0;
    for word in text.split_inclusive(|c| !of_code(c)) {
        let trimmed = word.trim_end_matches(|c| !of_code(c));
        if is_code(trimmed) && !NOT_CODES.contains(&trimmed) {
            found.push((offset, trimmed));
        }
        offset += word.len();
    }
    found
}

/// Whether a word has the shape of a code.
fn is_code(word: &str) -> bool {
    word.split_once('-').is_some_and(|(letters, digits)| {
        LETTERS.contains(&letters.len())
            && letters.bytes().all(|byte| byte.is_ascii_uppercase())
            && digits.len() == DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::{File, Tree};
    use super::{Report, check, codes_in};

    #[test]
    fn codes_are_whole_words() {
        let codes: Vec<&str> =
            codes_in("\"PLAN-014: x (STORE-001), API-1000, SHA-256, a-PLAN-001, AB-123\"")
                .into_iter()
                .map(|(_, code)| code)
                .collect();
        assert_eq!(codes, ["PLAN-014", "STORE-001"]);
    }

    #[test]
    fn both_directions_are_checked() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let tree = Tree {
            files: vec![
                file(
                    "crates/plan/src/a.rs",
                    "//! PLAN-009\nconst A: &str =\n    \"PLAN-001\";\n#[cfg(test)]\nmod tests {\n\"PLAN-008\"}\n",
                ),
                file("crates/plan/tests/a.rs", "\"PLAN-007\""),
                file("docs/errors/PLAN-002.md", ""),
            ],
        };
        let mut report = Report::default();
        check(&tree, &mut report);
        let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/plan/src/a.rs:3: PLAN-001 has no page, write docs/errors/PLAN-001.md",
                "docs/errors/PLAN-002.md:1: no source mentions PLAN-002, remove the page or use the code",
            ]
        );
    }
}
