//! The text files of the working tree, read once and shared by all rules.
//!
//! The tree on disk counts, not what git tracks: a file is checked before its first commit.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::lexer;

/// Files with these endings are text of ours; goldens, pictures and lock files are not.
const ENDINGS: &[&str] = &[
    "css", "html", "js", "md", "rs", "sh", "sql", "toml", "txt", "yaml",
];

/// Text of ours without an ending.
const NAMES: &[&str] = &["Makefile", "run"];

/// Hidden directories that are ours all the same.
const HIDDEN: &[&str] = &[".cargo", ".ci"];

/// One text file.
pub(super) struct File {
    /// From the root of the repository, with `/` between the parts.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Whether this is Rust of the product or of this crate, tests included.
    pub(super) fn is_rust(&self) -> bool {
        self.has_ending("rs")
            && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
    }

    /// Whether this is Rust that belongs to a product crate's `src`, test files excepted.
    pub(super) fn is_product(&self) -> bool {
        self.is_rust()
            && self.path.starts_with("crates/")
            && self.path.split('/').nth(2) == Some("src")
            && !self.is_test()
    }

    /// Whether the whole file is a test.
    pub(super) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Whether the file name ends in a dot and `ending`.
    pub(super) fn has_ending(&self, ending: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == ending)
    }

    /// The text before the test module at the end of the file.
    pub(super) fn before_tests(&self) -> &str {
        lexer::before_tests(&self.text)
    }
}

/// All text files, sorted by path.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

impl Tree {
    /// Reads every text file below `root`.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        descend(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The file at exactly this path.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Adds the text files of one directory and of those below it.
fn descend(directory: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("could not list {prefix:?}"))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("could not list {prefix:?}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry
            .file_type()
            .with_context(|| format!("could not look at {path}"))?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !hidden && path != "target" {
                descend(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && is_text(&name) {
            let text = fs::read_to_string(entry.path())
                .with_context(|| format!("could not read {path}"))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

/// Whether a file of this name is read at all.
fn is_text(name: &str) -> bool {
    match name.rsplit_once('.') {
        Some((_, ending)) => ENDINGS.contains(&ending),
        None => NAMES.contains(&name),
    }
}
