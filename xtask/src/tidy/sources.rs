//! Rules about source files: headers, sizes, names and words.

use super::Report;
use super::lexer::{self, Kind};
use super::tree::{File, Tree};

/// A file longer than this without its tests must be split.
///
/// Past a thousand lines nobody reads a file from top to bottom any more.
const LINES_MAX: usize = 1_000;

/// What we aim for; more is counted in the summary, not refused.
const LINES_AIM: usize = 400;

/// The files that may be longer for now.
const ALLOW_LIST: &str = "xtask/tidy-allow.txt";

/// Marks of unfinished work, spelled in halves so that this file passes its own rule.
const UNFINISHED: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Code that must not be committed, and what to write instead.
const CODE: &[(&str, &str)] = &[
    ("todo!", "write the code or leave it out"),
    ("unimplemented!", "write the code or leave it out"),
    ("dbg!", "remove it, or use tracing"),
    (
        "#[ignore",
        "make the test run, or let it skip itself with a reason",
    ),
];

/// Names that say nothing of what is inside.
const NAMES: &[&str] = &[
    "common", "helper", "helpers", "manager", "misc", "util", "utils",
];

/// Checks every file against the rules of this module.
pub(super) fn check(tree: &Tree, report: &mut Report) {
    let mut rust = 0;
    for file in &tree.files {
        words(file, report);
        if file.is_rust() {
            rust += 1;
            header(file, report);
            name(file, report);
            code(file, report);
        }
    }
    report.count(rust, "Rust files");
    sizes(tree, report);
}

/// Every Rust file opens by saying what it is for.
fn header(file: &File, report: &mut Report) {
    if !file.text.starts_with("//!") {
        report.find(
            &file.path,
            1,
            "no header, begin with a `//!` sentence that says what the file is for",
        );
    }
}

/// Neither a file nor a directory on the way to it has an empty name.
fn name(file: &File, report: &mut Report) {
    for part in file.path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if NAMES.contains(&stem) {
            report.find(
                &file.path,
                1,
                format!("the name `{stem}` says nothing, name it after what it does"),
            );
        }
    }
}

/// Marks of unfinished work, anywhere.
fn words(file: &File, report: &mut Report) {
    for (index, line) in file.text.lines().enumerate() {
        for word in UNFINISHED {
            if find_word(line, word).is_some() {
                report.find(
                    &file.path,
                    index + 1,
                    format!("`{word}` marks unfinished work, finish it or write an issue"),
                );
            }
        }
    }
}

/// Calls and attributes that are fine for an hour and not for a commit.
fn code(file: &File, report: &mut Report) {
    let pieces = lexer::pieces(&file.text);
    for piece in pieces.iter().filter(|piece| piece.kind == Kind::Code) {
        for (pattern, instead) in CODE {
            for (offset, _) in piece.text.match_indices(pattern) {
                report.find(
                    &file.path,
                    piece.line_at(offset),
                    format!("`{pattern}` is not for the tree, {instead}"),
                );
            }
        }
    }
}

/// Files end before a reader gives up; the allow-list may only shrink.
fn sizes(tree: &Tree, report: &mut Report) {
    let allowed = allow_list(tree, report);
    let mut long = 0;
    for file in &tree.files {
        if !file.is_rust() || file.is_test() {
            continue;
        }
        let lines = file.before_tests().lines().count();
        if lines > LINES_AIM {
            long += 1;
        }
        let entry = allowed.iter().find(|entry| entry.path == file.path);
        let ceiling = entry.map_or(LINES_MAX, |entry| entry.lines.max(LINES_MAX));
        if lines > ceiling {
            report.find(
                &file.path,
                lines,
                format!("{lines} lines without tests, split it below {ceiling}"),
            );
        }
        if let Some(entry) = entry.filter(|_| lines <= LINES_MAX) {
            report.find(
                ALLOW_LIST,
                entry.line,
                format!("{} has {lines} lines now, remove the entry", file.path),
            );
        }
    }
    report.count(
        long,
        &format!("of them above the {LINES_AIM} lines we aim for"),
    );
}

/// One row of the allow-list.
struct Allowed<'a> {
    path: &'a str,
    lines: usize,
    line: usize,
}

/// Reads the allow-list; a row that names no file is a finding.
fn allow_list<'a>(tree: &'a Tree, report: &mut Report) -> Vec<Allowed<'a>> {
    let text = tree.file(ALLOW_LIST).map_or("", |file| &file.text);
    let mut rows = Vec::new();
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        if row.trim().is_empty() || row.starts_with('#') {
            continue;
        }
        match row
            .split_once(' ')
            .map(|(path, lines)| (path, lines.trim().parse()))
        {
            Some((path, Ok(lines))) if tree.file(path).is_some() => {
                rows.push(Allowed { path, lines, line });
            }
            _ => report.find(
                ALLOW_LIST,
                line,
                "not a path of a file and its lines, correct or remove the entry",
            ),
        }
    }
    rows
}

/// Where `word` stands in `text` with no letter, digit or underscore on either side.
pub(super) fn find_word(text: &str, word: &str) -> Option<usize> {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(of_word) && !text[at + word.len()..].starts_with(of_word))
}

#[cfg(test)]
mod tests {
    use super::super::tree::{File, Tree};
    use super::{ALLOW_LIST, Report, check, find_word};

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| File {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        let mut report = Report::default();
        check(&Tree { files }, &mut report);
        report.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_macro_counts_only_where_it_is_code() {
        let text =
            "//! A file.\n\nfn a() {\n    todo!();\n}\n// todo! b\nconst C: &str = \"dbg!\";\n";
        assert_eq!(
            findings(&[("crates/x/src/a.rs", text)]),
            ["crates/x/src/a.rs:4: `todo!` is not for the tree, write the code or leave it out"]
        );
    }

    #[test]
    fn a_long_file_needs_an_entry_and_a_short_one_must_not_have_it() {
        let long = format!("//! Long.\n{}", "\n".repeat(1_100));
        let found = findings(&[
            ("crates/x/src/a.rs", &long),
            ("crates/x/src/b.rs", &long),
            ("crates/x/src/c.rs", "//! Short.\n"),
            (
                ALLOW_LIST,
                "crates/x/src/b.rs 1200\ncrates/x/src/c.rs 1200\n",
            ),
        ]);
        assert_eq!(
            found,
            [
                "crates/x/src/a.rs:1101: 1101 lines without tests, split it below 1000",
                "xtask/tidy-allow.txt:2: crates/x/src/c.rs has 1 lines now, remove the entry",
            ]
        );
    }

    #[test]
    fn empty_names_and_missing_headers_are_found() {
        assert_eq!(
            findings(&[("crates/x/tests/utils/mod.rs", "fn a() {}\n")]).len(),
            2
        );
        assert_eq!(findings(&[("crates/x/src/a.rs", "//! Fine.\n")]), [""; 0]);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(find_word("an XXL shirt, XX here", "XX"), Some(14));
        assert_eq!(find_word("jobs", "job"), None);
    }
}
