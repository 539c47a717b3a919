//! Relative links in documents lead somewhere.
//!
//! Documents are the Markdown files at the root and below `docs/`. Links to the outside are not
//! followed: a check that needs the network fails for reasons that are not ours.

use std::path::{Component, Path, PathBuf};

use super::Report;
use super::tree::{File, Tree};

/// Checks every document.
pub(super) fn check(tree: &Tree, root: &Path, report: &mut Report) {
    let mut links = 0;
    for file in tree.files.iter().filter(|file| is_document(file)) {
        for (line, target) in targets(&file.text) {
            links += 1;
            if !leads_somewhere(root, &file.path, target) {
                report.find(
                    &file.path,
                    line,
                    format!("the link to {target} is dead, correct or remove it"),
                );
            }
        }
    }
    report.count(links, "links");
}

/// Whether links of this file are checked.
fn is_document(file: &File) -> bool {
    file.has_ending("md") && (!file.path.contains('/') || file.path.starts_with("docs/"))
}

/// The relative targets of one document, with their lines; code is passed over.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let definition = line
                .strip_prefix('[')
                .and_then(|rest| rest.split_once("]: "))
                .map(|(_, target)| target);
            let inline = line.match_indices("](").filter_map(|(at, _)| {
                let target = &line[at + 2..];
                let in_code = line[..at].matches('`').count() % 2 == 1;
                target
                    .find(')')
                    .filter(|_| !in_code)
                    .map(|end| &target[..end])
            });
            let relative = definition
                .into_iter()
                .chain(inline)
                .filter_map(relative_part);
            found.extend(relative.map(|target| (index + 1, target)));
        }
    }
    found
}

/// The path in a link, without title and anchor; nothing when it leads outside or stays here.
fn relative_part(target: &str) -> Option<&str> {
    let target = target.split_whitespace().next()?;
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let path = target.split('#').next()?;
    let outside = target.contains("://") || target.starts_with("mailto:");
    (!outside && !path.is_empty()).then_some(path)
}

/// Whether `target`, read from the document at `from`, exists inside the repository.
fn leads_somewhere(root: &Path, from: &str, target: &str) -> bool {
    let mut path = PathBuf::from(from);
    path.pop();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::ParentDir => {
                if !path.pop() {
                    return false;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    root.join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::{leads_somewhere, targets};
    use crate::workspace;

    #[test]
    fn only_relative_links_outside_code_count() {
        let text = "[a](b.md#c) ![p](<d.png>) `[x](no)`\n```\n[y](no)\n```\n\
            [z](https://example.org) [w](#here)\n[r]: e.md \"title\"\n";
        assert_eq!(targets(text), [(1, "b.md"), (1, "d.png"), (6, "e.md")]);
    }

    #[test]
    fn links_are_read_from_their_document_and_stay_inside() {
        let root = workspace::root();
        assert!(leads_somewhere(&root, "xtask/README.md", "../Cargo.toml"));
        assert!(leads_somewhere(&root, "README.md", "./xtask/src"));
        assert!(!leads_somewhere(&root, "README.md", "missing.md"));
        assert!(!leads_somewhere(&root, "README.md", "../outside.md"));
        assert!(!leads_somewhere(&root, "README.md", "/etc/hostname"));
    }
}
