//! Rules about crate manifests: one set of lints, one edition, one version of each library.
//!
//! The manifests are read line by line. That is enough because they all have the same shape, and
//! the rule is that they have it.

use super::Report;
use super::tree::{File, Tree};

/// What every crate takes from the workspace.
const PACKAGE: &[&str] = &["edition", "license", "publish", "rust-version", "version"];

/// Checks every manifest below `crates/`, and our own.
pub(super) fn check(tree: &Tree, report: &mut Report) {
    let mut crates = 0;
    for file in &tree.files {
        let Some(directory) = crate_directory(&file.path) else {
            continue;
        };
        crates += 1;
        manifest(file, directory, report);
    }
    report.count(crates, "crates");
}

/// The name of the directory whose manifest `path` is.
fn crate_directory(path: &str) -> Option<&str> {
    let directory = path.strip_suffix("/Cargo.toml")?;
    let name = directory.strip_prefix("crates/").unwrap_or(directory);
    (!name.contains('/')).then_some(name)
}

/// Checks one manifest.
fn manifest(file: &File, directory: &str, report: &mut Report) {
    let mut section = "";
    let mut lints = false;
    let mut missing: Vec<&str> = PACKAGE.to_vec();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let shared = key.ends_with(".workspace") && value == "true";
        match section {
            "[lints]" => lints |= key == "workspace" && value == "true",
            "[package]" if key == "name" && value.trim_matches('"') != directory => report.find(
                &file.path,
                index + 1,
                format!("the crate is {value} in a directory {directory:?}, name both alike"),
            ),
            "[package]" if shared => missing.retain(|wanted| !key.starts_with(wanted)),
            "[dependencies]" | "[dev-dependencies]" | "[build-dependencies]"
                if !shared && !value.contains("workspace = true") =>
            {
                report.find(
                    &file.path,
                    index + 1,
                    format!("`{key}` has a version of its own, name it in the root manifest"),
                );
            }
            _ => {}
        }
    }
    if !lints {
        report.find(
            &file.path,
            1,
            "no lints, add `[lints]` with `workspace = true`",
        );
    }
    for key in missing {
        report.find(
            &file.path,
            1,
            format!("`{key}` is not the workspace's, write `{key}.workspace = true`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{File, Tree};
    use super::{Report, check};

    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\
        [lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n\
        tokio = { workspace = true, features = [\"time\"] }\n";

    fn findings(text: &str) -> Vec<String> {
        let files = vec![File {
            path: "crates/a/Cargo.toml".to_owned(),
            text: text.to_owned(),
        }];
        let mut report = Report::default();
        check(&Tree { files }, &mut report);
        report.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_manifest_of_the_usual_shape_passes() {
        assert_eq!(findings(GOOD), [""; 0]);
    }

    #[test]
    fn every_deviation_is_named() {
        let bad = GOOD
            .replace("name = \"a\"", "name = \"b\"")
            .replace("edition.workspace = true", "edition = \"2021\"")
            .replace("serde.workspace = true", "serde = \"1\"")
            .replace("[lints]\nworkspace = true\n", "");
        assert_eq!(
            findings(&bad),
            [
                "crates/a/Cargo.toml:2: the crate is \"b\" in a directory \"a\", name both alike",
                "crates/a/Cargo.toml:9: `serde` has a version of its own, name it in the root manifest",
                "crates/a/Cargo.toml:1: no lints, add `[lints]` with `workspace = true`",
                "crates/a/Cargo.toml:1: `edition` is not the workspace's, write `edition.workspace = true`",
            ]
        );
    }
}
