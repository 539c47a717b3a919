//! The package sources of this machine, so that its hosts are made from the same.

use crate::tool::{self, SHORT};
use std::path::Path;

/// Settings of apt that reaching the sources may depend on.
const OPTIONS: [&str; 3] = [
    "Acquire::Check-Valid-Until",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
];

/// The release hosts are made of, and the sources to make them from; none where this machine is of
/// another distribution: then the builder's own are used.
pub(super) fn here() -> (String, String) {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let Some(suite) = codename(&release) else {
        return ("stable".to_owned(), String::new());
    };
    let mut files = vec![Path::new("/etc/apt/sources.list").to_owned()];
    let mut more: Vec<_> = std::fs::read_dir("/etc/apt/sources.list.d")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    more.sort();
    files.append(&mut more);
    let mut lines = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|end| end.to_str()) {
            Some("list") => lines.push_str(&of_lines(&text, &suite)),
            Some("sources") => lines.push_str(&of_stanzas(&text, &suite)),
            Some(_) | None => {}
        }
    }
    (suite, lines)
}

/// The settings that this machine's apt has, as apt reads them.
pub(super) async fn options() -> Vec<String> {
    let mut command = tool::command("apt-config");
    let dump = tool::run(command.arg("dump"), "", SHORT)
        .await
        .unwrap_or_default();
    let wanted = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        OPTIONS.contains(&name) && !line.ends_with("\"\";")
    };
    dump.lines().filter(wanted).map(str::to_owned).collect()
}

fn codename(release: &str) -> Option<String> {
    let value = |key: &str| tool::released(release, key);
    let known = matches!(value("ID")?.as_str(), "debian" | "ubuntu");
    value("VERSION_CODENAME").filter(|name| known && !name.is_empty())
}

/// Whether a suite belongs to the release: itself, its updates, its security.
fn belongs(suite: &str, release: &str) -> bool {
    suite
        .strip_prefix(release)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
}

/// The lines of a `.list` file that belong to the release.
fn of_lines(text: &str, release: &str) -> String {
    let kept = |line: &&str| {
        let Some(rest) = line.trim().strip_prefix("deb ") else {
            return false;
        };
        let rest = rest.trim_start();
        let rest = match rest.split_once(']') {
            Some((_, rest)) if rest.starts_with(' ') => rest,
            Some(_) | None => rest,
        };
        rest.split_whitespace()
            .nth(1)
            .is_some_and(|suite| belongs(suite, release))
    };
    text.lines()
        .filter(kept)
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

/// The stanzas of a `.sources` file that belong to the release, as lines.
fn of_stanzas(text: &str, release: &str) -> String {
    let uncommented: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut lines = String::new();
    for stanza in uncommented.split(|line| line.trim().is_empty()) {
        let field = |name: &str| {
            let words = stanza.iter().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then_some(value)
            });
            words
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        if !field("Types").contains(&"deb") || field("Enabled") == ["no"] {
            continue;
        }
        // A key that is written into the stanza has no place in a line; mmdebstrap finds the usual.
        let options = match field("Signed-By").as_slice() {
            [file] if file.starts_with('/') => format!("[signed-by={file}] "),
            _ => String::new(),
        };
        let components = field("Components").join(" ");
        for uri in field("URIs") {
            for suite in field("Suites")
                .iter()
                .filter(|suite| belongs(suite, release))
            {
                lines.push_str(&format!("deb {options}{uri} {suite} {components}\n"));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_of_the_release_are_taken() {
        let list = "# deb http://a/debian bookworm main\n\
                    deb [signed-by=/k.gpg arch=amd64] http://a/debian bookworm main\n\
                    deb-src http://a/debian bookworm main\n\
                    deb http://vendor/apt tools-bookworm main\n\
                    deb http://a/security bookworm-security main\n";
        assert_eq!(
            of_lines(list, "bookworm"),
            "deb [signed-by=/k.gpg arch=amd64] http://a/debian bookworm main\n\
             deb http://a/security bookworm-security main\n"
        );
    }

    #[test]
    fn stanzas_become_lines() {
        let stanzas = "Types: deb\n# said\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\n\
                       Components: main contrib\nSigned-By: /k.gpg\n\n\
                       Types: deb\nURIs: http://vendor\nSuites: nodistro\nComponents: main\n\n\
                       Types: deb\nURIs: http://off\nSuites: bookworm\nComponents: main\nEnabled: no\n";
        assert_eq!(
            of_stanzas(stanzas, "bookworm"),
            "deb [signed-by=/k.gpg] http://a/debian bookworm main contrib\n\
             deb [signed-by=/k.gpg] http://a/debian bookworm-updates main contrib\n"
        );
    }

    #[test]
    fn a_machine_of_another_distribution_has_no_say() {
        let debian = "ID=debian\nVERSION_CODENAME=bookworm\n";
        assert_eq!(codename(debian).as_deref(), Some("bookworm"));
        assert_eq!(codename("ID=fedora\nVERSION_CODENAME=\"\"\n"), None);
    }
}
