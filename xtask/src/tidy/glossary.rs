//! One word per idea: the table of `docs/glossary.md` parses, and documentation keeps to it.
//!
//! The third column lists words that people use elsewhere for the same idea. They may not appear
//! in doc comments of the product, where they would make a reader look for a difference. Names
//! between backticks are other people's and pass.

use std::collections::BTreeSet;

use super::Report;
use super::lexer::{self, Kind};
use super::sources::find_word;
use super::tree::Tree;

/// The document with the table.
const GLOSSARY: &str = "docs/glossary.md";

/// The head of the table.
const HEAD: [&str; 3] = ["Word", "Meaning", "Not"];

/// One row of the table.
struct Word<'a> {
    word: &'a str,
    not: Vec<String>,
}

/// Checks the table, then the doc comments against it.
pub(super) fn check(tree: &Tree, report: &mut Report) {
    let Some(file) = tree.file(GLOSSARY) else {
        report.find(GLOSSARY, 1, "missing, restore it");
        return;
    };
    let words = parse(&file.text, report);
    report.count(words.len(), "glossary words");
    for file in tree.files.iter().filter(|file| file.is_product()) {
        for piece in lexer::pieces(&file.text) {
            if piece.kind == Kind::Doc {
                synonyms(&words, &file.path, &piece, report);
            }
        }
    }
}

/// Reads the table; a row that is none is a finding.
fn parse<'a>(text: &'a str, report: &mut Report) -> Vec<Word<'a>> {
    let mut rows = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, cells(line)))
        .skip_while(|(_, cells)| *cells != HEAD);
    if rows.next().is_none() {
        report.find(
            GLOSSARY,
            1,
            "no table, begin it with `| Word | Meaning | Not |`",
        );
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, cells) in rows.skip(1).take_while(|(_, cells)| !cells.is_empty()) {
        match cells.as_slice() {
            [word, meaning, not] if !word.is_empty() && !meaning.is_empty() && !not.is_empty() => {
                if !seen.insert(word.to_lowercase()) {
                    report.find(
                        GLOSSARY,
                        line,
                        format!("{word:?} is here twice, keep one row"),
                    );
                }
                words.push(Word {
                    word,
                    not: not
                        .split(',')
                        .map(|synonym| synonym.trim().to_lowercase())
                        .filter(|synonym| synonym != "–")
                        .collect(),
                });
            }
            _ => report.find(
                GLOSSARY,
                line,
                "not a word, a meaning and what not to say, fill the cells (`–` for nothing)",
            ),
        }
    }
    words
}

/// The cells of a row of a table; none when the line is no row.
fn cells(line: &str) -> Vec<&str> {
    line.trim()
        .strip_prefix('|')
        .and_then(|rest| rest.strip_suffix('|'))
        .map(|inside| inside.split('|').map(str::trim).collect())
        .unwrap_or_default()
}

/// Finds the words of the third column in one doc comment.
fn synonyms(words: &[Word<'_>], path: &str, piece: &lexer::Piece<'_>, report: &mut Report) {
    for (index, line) in piece.text.lines().enumerate() {
        let prose: String = line
            .split('`')
            .step_by(2)
            .collect::<Vec<_>>()
            .join("`")
            .to_lowercase();
        for word in words {
            for synonym in &word.not {
                if find_word(&prose, synonym).is_some() {
                    report.find(
                        path,
                        piece.line + index,
                        format!(
                            "{synonym:?} is not our word, say {:?} (docs/glossary.md)",
                            word.word
                        ),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{File, Tree};
    use super::{GLOSSARY, Report, check};

    fn findings(table: &str, source: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let head = "# Glossary\n\n| Word | Meaning | Not |\n|---|---|---|\n";
        let tree = Tree {
            files: vec![
                file(GLOSSARY, &format!("{head}{table}\n\nEnd.\n")),
                file("crates/a/src/lib.rs", source),
            ],
        };
        let mut report = Report::default();
        check(&tree, &mut report);
        report.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn synonyms_count_in_doc_comments_only() {
        assert_eq!(
            findings(
                "| pool | machines alike | nodepool, node group |",
                "//! A Nodepool, not `nodepool`.\n// nodepool\nconst A: &str = \"nodepool\";\n"
            ),
            [
                "crates/a/src/lib.rs:1: \"nodepool\" is not our word, say \"pool\" (docs/glossary.md)"
            ]
        );
    }

    #[test]
    fn a_row_needs_its_cells_and_a_word_only_one_row() {
        let found = findings(
            "| a | b | – |\n| A | c | – |\n| d | | – |\n| e | f |",
            "//! Fine.\n",
        );
        assert_eq!(
            found,
            [
                "docs/glossary.md:6: \"A\" is here twice, keep one row",
                "docs/glossary.md:7: not a word, a meaning and what not to say, fill the cells (`–` for nothing)",
                "docs/glossary.md:8: not a word, a meaning and what not to say, fill the cells (`–` for nothing)",
            ]
        );
    }
}
