//! What `slipway mirror` shows: progress on the way, and what there is at the end.

use hosts::artifacts::mirror::{Found, Made};
use hosts::artifacts::{Artifact, Entry, Index, Name, Progress, Source};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a line on a terminal is drawn anew.
const REDRAW: Duration = Duration::from_millis(100);

/// One artifact.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl Row {
    fn of(name: &Name, entry: Entry, state: Option<&'static str>) -> Self {
        Self {
            sha256: Some(entry.sha256.to_string()),
            size: Some(entry.size),
            ..Self::bad(name.to_string(), state, None)
        }
    }

    fn bad(name: String, state: Option<&'static str>, why: Option<String>) -> Self {
        Self {
            name,
            sha256: None,
            size: None,
            state,
            why,
            code: None,
        }
    }
}

/// What there is at the end.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    mirror: Option<String>,
    artifacts: Vec<Row>,
}

impl Told {
    /// What became of the wishes.
    pub(super) fn made(mirror: &Path, made: &Made) -> Self {
        let good = |list: &[(Name, Entry)], state| {
            let rows = list
                .iter()
                .map(|(name, entry)| Row::of(name, *entry, Some(state)));
            rows.collect::<Vec<_>>()
        };
        let mut artifacts = good(&made.added, "fetched");
        artifacts.extend(good(&made.kept, "there"));
        artifacts.extend(made.failed.iter().map(|(name, error)| Row {
            code: Some(error.kind.code()),
            ..Row::bad(name.to_string(), Some("failed"), Some(error.what.clone()))
        }));
        Self::sorted(Some(mirror.display().to_string()), artifacts)
    }

    /// What is in a mirror.
    pub(super) fn found(mirror: &Path, found: &Found) -> Self {
        let wrong = |name: &Name| found.wrong.iter().any(|(bad, _)| bad == name);
        let good = found.index.iter().filter(|(name, _)| !wrong(name));
        let mut artifacts: Vec<Row> = good
            .map(|(name, entry)| Row::of(name, entry, Some("good")))
            .collect();
        artifacts.extend(
            found
                .wrong
                .iter()
                .map(|(name, why)| Row::bad(name.to_string(), Some("wrong"), Some(why.clone()))),
        );
        artifacts.extend(found.others.iter().map(|(path, why)| {
            let path = path.strip_prefix(mirror).unwrap_or(path);
            let name = path.display().to_string();
            Row::bad(name, Some("left out"), Some(why.clone()))
        }));
        Self::sorted(Some(mirror.display().to_string()), artifacts)
    }

    /// What a source says it holds.
    pub(super) fn listed(source: &Source, index: &Index) -> Self {
        let rows = index.iter().map(|(name, entry)| Row::of(name, entry, None));
        Self::sorted(Some(source.to_string()), rows.collect())
    }

    /// What hosts are brought.
    pub(super) fn wanted(artifacts: &[Artifact]) -> Self {
        let rows = artifacts.iter().map(|artifact| Row {
            sha256: artifact.sha256.map(|digest| digest.to_string()),
            size: artifact.size,
            ..Row::bad(artifact.name.to_string(), None, None)
        });
        Self::sorted(None, rows.collect())
    }

    fn sorted(mirror: Option<String>, mut artifacts: Vec<Row>) -> Self {
        artifacts.sort_by(|one, other| one.name.cmp(&other.name));
        Self { mirror, artifacts }
    }

    /// What people see.
    pub(super) fn picture(&self) -> String {
        let width = |of: fn(&Row) -> usize| self.artifacts.iter().map(of).max().unwrap_or(0);
        let name = width(|row| row.name.len()).max("NAME".len());
        let state = match width(|row| row.state.map_or(0, str::len)) {
            0 => 0,
            widest => widest.max("STATE".len()) + "  ".len(),
        };
        let line = |first: &str, size: &str, shown: &str, last: &str| {
            format!("{first:<name$}  {size:>9}  {shown:<state$}{last}\n")
        };
        let state_head = if state > 0 { "STATE" } else { "" };
        let mut picture = line("NAME", "SIZE", state_head, "SHA-256");
        for row in &self.artifacts {
            let size = row.size.map_or_else(|| "–".to_owned(), bytes);
            let last = row.why.as_deref().or(row.sha256.as_deref());
            let shown = row.state.unwrap_or_default();
            picture.push_str(&line(&row.name, &size, shown, last.unwrap_or("–")));
        }
        if let Some(mirror) = &self.mirror {
            let good = self.artifacts.iter().filter(|row| row.size.is_some());
            let total = good.clone().filter_map(|row| row.size).sum();
            picture.push_str(&format!(
                "{mirror}: {} of {} artifacts, {}\n",
                good.count(),
                self.artifacts.len(),
                bytes(total)
            ));
        }
        picture
    }
}

/// A number of bytes as people say it.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut tenths = count.saturating_mul(10);
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1024;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or_default();
    if unit == 0 {
        return format!("{count} {name}");
    }
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Tells on standard error what happens: one line that moves on a terminal, else a line for
/// each artifact.
pub(super) struct Watch {
    live: bool,
    drawn: Mutex<Option<Instant>>,
}

impl Watch {
    /// Begins to watch.
    pub(super) fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            drawn: Mutex::default(),
        }
    }

    /// Tells one step.
    pub(super) fn see(&self, progress: Progress<'_>) {
        match progress {
            Progress::Asking(name, source) => self.line(&format!("{name} from {source}"), false),
            Progress::Bytes(name, done, total) => {
                let of = total.map(|total| format!(" of {}", bytes(total)));
                let line = format!("{name}: {}{}", bytes(done), of.unwrap_or_default());
                self.line(&line, false);
            }
            Progress::Passed(name, source, why) => {
                self.line(&format!("{name}: {source}: {why}"), true);
            }
            Progress::Whole(name, size) => self.line(&format!("{name}: {}", bytes(size)), true),
            Progress::Said(line) => self.line(line, false),
        }
    }

    /// Draws a line; one that lasts stays on the screen.
    fn line(&self, text: &str, lasts: bool) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = drawn.is_some_and(|at| at.elapsed() < REDRAW);
        if !lasts && (!self.live || recent) {
            return;
        }
        let mut out = std::io::stderr().lock();
        // A closed standard error leaves nobody to tell.
        drop(match (self.live, lasts) {
            (true, true) => writeln!(out, "\r\x1b[K{text}"),
            (true, false) => write!(out, "\r\x1b[K{text}"),
            (false, _) => writeln!(out, "{text}"),
        });
        drop(out.flush());
        *drawn = (!lasts).then(Instant::now);
    }

    /// Removes the line that moves.
    pub(super) fn clear(&self) {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.live && drawn.is_some() {
            drop(write!(std::io::stderr().lock(), "\r\x1b[K"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use hosts::artifacts::Digest;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        let said = [0, 1023, 1024, 106_905_560, 5 << 40].map(bytes);
        assert_eq!(said, ["0 B", "1023 B", "1.0 KiB", "101.9 MiB", "5.0 TiB"]);
    }

    #[test]
    fn what_there_is_stands_in_a_table() {
        let entry = Entry {
            sha256: Digest::of(b"abc"),
            size: 3,
        };
        let mut found = Found::default();
        found.index.insert("deb/a.deb".parse().unwrap(), entry);
        let why = "its size is 5, and 9 was expected".to_owned();
        found.wrong.push(("tool".parse().unwrap(), why));
        let told = Told::found(Path::new("/srv/mirror"), &found);
        let listed = Told::listed(&Source::Directory("/srv/mirror".into()), &found.index);
        expect![[r#"
            NAME            SIZE  STATE  SHA-256
            deb/a.deb        3 B  good   ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
            tool               –  wrong  its size is 5, and 9 was expected
            /srv/mirror: 1 of 2 artifacts, 3 B
            NAME            SIZE  SHA-256
            deb/a.deb        3 B  ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
            /srv/mirror: 1 of 1 artifacts, 3 B
        "#]]
        .assert_eq(&format!("{}{}", told.picture(), listed.picture()));
    }
}
