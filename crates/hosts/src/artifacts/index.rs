//! What a mirror says it holds: `index.json` beside its files.
//!
//! ```json
//! {"slipway":"mirror","version":1,"artifacts":[
//! {"name":"envoy/1.40.0/linux-amd64/envoy","sha256":"8aa1…","size":106905560}
//! ]}
//! ```
//!
//! It comes from elsewhere, so it is read with suspicion: bounded, nothing unknown, nothing
//! twice. The same content has the same text, so that two mirrors can be compared.

use super::name::{Digest, Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file in a mirror.
pub const FILE: &str = "index.json";

/// Largest index, in bytes.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most artifacts of a mirror.
pub const ENTRIES_MAX: usize = 50_000;

/// Largest artifact, in bytes: larger than any image, and small enough to be added up.
pub const SIZE_MAX: u64 = 64 << 30;

/// What we call such a file, so that no other JSON passes for one.
const KIND: &str = "mirror";

/// The version of its form that we write and read.
const VERSION: u32 = 1;

/// What is known of an artifact besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What must be in it.
    pub sha256: Digest,
    /// Its bytes.
    pub size: u64,
}

/// What a mirror says it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(BTreeMap<Name, Entry>);

/// Why a text is no index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnIndex {
    /// More than we read.
    #[error("it has more than {BYTES_MAX} bytes")]
    TooLong,
    /// No JSON, or not of this shape.
    #[error("{0}")]
    Shape(String),
    /// Something else in JSON.
    #[error("it does not say \"slipway\": \"mirror\"")]
    Kind,
    /// Made by a version that we do not know.
    #[error("it has version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// More than we keep.
    #[error("it lists more than {ENTRIES_MAX} artifacts")]
    TooMany,
    /// A line that cannot be.
    #[error("artifact {0}: {1}")]
    Artifact(usize, String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    slipway: String,
    version: u32,
    artifacts: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    sha256: String,
    size: u64,
}

/// The head alone, which tells whether the rest can be understood.
#[derive(Deserialize)]
struct Head {
    slipway: String,
    version: u32,
}

impl Index {
    /// Reads the text of an index.
    pub fn parse(text: &[u8]) -> Result<Self, NotAnIndex> {
        if text.len() > BYTES_MAX {
            return Err(NotAnIndex::TooLong);
        }
        let shape = |error: serde_json::Error| NotAnIndex::Shape(error.to_string());
        let head: Head = serde_json::from_slice(text).map_err(shape)?;
        if head.slipway != KIND {
            return Err(NotAnIndex::Kind);
        }
        if head.version != VERSION {
            return Err(NotAnIndex::Version(head.version));
        }
        let document: Document = serde_json::from_slice(text).map_err(shape)?;
        if document.artifacts.len() > ENTRIES_MAX {
            return Err(NotAnIndex::TooMany);
        }
        let mut index = Self::default();
        for (at, line) in document.artifacts.into_iter().enumerate() {
            let wrong = |why: String| NotAnIndex::Artifact(at + 1, why);
            let name: Name = line.name.parse().map_err(|why| wrong(format!("{why}")))?;
            let sha256 = line.sha256.parse().map_err(|why| wrong(format!("{why}")))?;
            if line.size > SIZE_MAX {
                return Err(wrong(format!("{name} has more than {SIZE_MAX} bytes")));
            }
            let size = line.size;
            if index.0.contains_key(&name) {
                return Err(wrong(format!("{name} is listed twice")));
            }
            index.0.insert(name, Entry { sha256, size });
        }
        Ok(index)
    }

    /// The text of the index; the same content has the same text.
    pub fn to_text(&self) -> String {
        let lines: Vec<String> = self
            .0
            .iter()
            .map(|(name, entry)| {
                // Neither a name nor a digest has anything that JSON would escape.
                format!(
                    "{{\"name\":\"{name}\",\"sha256\":\"{}\",\"size\":{}}}",
                    entry.sha256, entry.size
                )
            })
            .collect();
        format!(
            "{{\"slipway\":\"{KIND}\",\"version\":{VERSION},\"artifacts\":[\n{}\n]}}\n",
            lines.join(",\n")
        )
    }

    /// What is known of an artifact.
    pub fn get(&self, name: &Name) -> Option<Entry> {
        self.0.get(name).copied()
    }

    /// Adds an artifact, or says anew what is in it.
    pub fn insert(&mut self, name: Name, entry: Entry) {
        self.0.insert(name, entry);
    }

    /// The artifacts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Entry)> {
        self.0.iter().map(|(name, entry)| (name, *entry))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u64) -> Entry {
        Entry {
            sha256: Digest::of(b"x"),
            size,
        }
    }

    #[test]
    fn an_index_survives_being_written_and_read() {
        let mut index = Index::default();
        assert_eq!(Index::parse(index.to_text().as_bytes()), Ok(index.clone()));
        index.insert("b/c".parse().unwrap(), entry(7));
        index.insert("a".parse().unwrap(), entry(0));
        let text = index.to_text();
        assert_eq!(Index::parse(text.as_bytes()), Ok(index));
        assert!(text.find("\"a\"").unwrap() < text.find("\"b/c\"").unwrap());
    }

    #[test]
    fn what_is_no_index_is_refused_and_says_why() {
        let digest = "0".repeat(64);
        let of =
            |lines: &str| format!(r#"{{"slipway":"mirror","version":1,"artifacts":[{lines}]}}"#);
        let line = |name: &str, digest: &str, size: &str| {
            format!(r#"{{"name":"{name}","sha256":"{digest}","size":{size}}}"#)
        };
        let twice = format!("{0},{0}", line("a", &digest, "1"));
        for (text, why) in [
            (String::new(), "EOF"),
            ("<html>".to_owned(), "expected value"),
            (
                r#"{"slipway":"backup","version":1}"#.to_owned(),
                "does not say",
            ),
            (
                r#"{"slipway":"mirror","version":2,"artifacts":{}}"#.to_owned(),
                "has version 2",
            ),
            (of("").replace('}', ",\"more\":1}"), "unknown field"),
            (
                of(&line("../a", &digest, "1")),
                "artifact 1: \"../a\" cannot be",
            ),
            (of(&line("a", "00", "1")), "artifact 1: a SHA-256 has 64"),
            (of(&line("a", &digest, "-1")), "invalid value"),
            (of(&line("a", &digest, "99999999999999")), "more than"),
            (of(&twice), "artifact 2: a is listed twice"),
            (format!("{} x", of("")), "trailing characters"),
            ("[".repeat(1_000_000), "invalid type"),
            (" ".repeat(BYTES_MAX + 1), "it has more than"),
        ] {
            let told = Index::parse(text.as_bytes()).unwrap_err().to_string();
            let begin: String = text.chars().take(80).collect();
            assert!(told.contains(why), "{begin}: {told}");
        }
        let many: Vec<String> = (0..=ENTRIES_MAX)
            .map(|n| line(&n.to_string(), &digest, "1"))
            .collect();
        let many = of(&many.join(","));
        assert_eq!(Index::parse(many.as_bytes()), Err(NotAnIndex::TooMany));
    }
}
