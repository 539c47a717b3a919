//! Texts with words in braces that stand for parts of a request.
//!
//! **Invariant:** whatever a branch is called, what a template makes of it can be a name, and a
//! tag; that two requests are given the same first name is seen by whoever gives it, who takes the
//! next: those end in a digest of the request.

use super::event::Event;
use crate::environment::EnvironmentName;
use crate::environment::config::Value;
use crate::id::{self, Origin};
use crate::name::Name;
use serde::{Deserialize, Serialize};

/// The longest template.
const LEN_MAX: usize = 200;

/// Characters of the digest that tells apart requests whose names would be the same.
const DIGEST_LEN: usize = 5;

/// Names that end in a digest which are offered: that several are taken is next to impossible.
const DIGESTS_MAX: u64 = 8;

/// The longest tag that an image can have.
const TAG_LEN_MAX: usize = 128;

/// Characters of a commit that people write.
const SHORT_LEN: usize = 7;

/// What words in braces there are.
const WORDS: [&str; 5] = ["branch", "number", "sha", "short", "source"];

/// Why a text is no template.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    /// It is empty or too long.
    #[error("found {len} bytes, allowed: 1 to {LEN_MAX}")]
    Length {
        /// How many were given.
        len: usize,
    },
    /// A word in braces that stands for nothing.
    #[error("found `{{{found}}}`, allowed: {}", words())]
    Word {
        /// Which.
        found: String,
    },
    /// A brace alone.
    #[error("found a brace without its other, allowed: words like `{{branch}}`")]
    Brace,
    /// Every request would be called the same.
    #[error("found neither `{{branch}}` nor `{{number}}`, so all would be called the same")]
    Alike,
    /// A character that no tag has.
    #[error("found {found:?}, allowed between words: a-z, A-Z, 0-9, `.`, `_` and `-`")]
    Character {
        /// Which.
        found: char,
    },
}

fn words() -> String {
    WORDS.map(|word| format!("`{{{word}}}`")).join(", ")
}

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    Word(&'a str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    if text.is_empty() || text.len() > LEN_MAX {
        return Err(TemplateError::Length { len: text.len() });
    }
    let mut rest = text;
    let mut pieces = Vec::new();
    while let Some((before, behind)) = rest.split_once('{') {
        let (word, behind) = behind.split_once('}').ok_or(TemplateError::Brace)?;
        if before.contains('}') {
            return Err(TemplateError::Brace);
        }
        if !WORDS.contains(&word) {
            let found = word.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(TemplateError::Word { found });
        }
        pieces.extend([Piece::Text(before), Piece::Word(word)]);
        rest = behind;
    }
    if rest.contains('}') {
        return Err(TemplateError::Brace);
    }
    pieces.push(Piece::Text(rest));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let odd = pieces.iter().find_map(|piece| match piece {
        Piece::Text(text) => text.chars().find(|c| !plain(*c)),
        Piece::Word(_) => None,
    });
    odd.map_or(Ok(pieces), |found| Err(TemplateError::Character { found }))
}

fn fill(text: &str, source: &Name, event: &Event) -> String {
    let pieces = pieces(text).unwrap_or_default();
    let filled = pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Word("branch") => event.branch.clone(),
        Piece::Word("number") => event.request.to_string(),
        Piece::Word("sha") => event.sha.clone(),
        Piece::Word("short") => event.sha.chars().take(SHORT_LEN).collect(),
        Piece::Word(_) => source.to_string(),
    });
    filled.collect()
}

macro_rules! template {
    ($(#[$doc:meta])* $name:ident, $usual:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The checked text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($usual.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = TemplateError;

            fn try_from(text: String) -> Result<Self, TemplateError> {
                let check: fn(&[Piece<'_>]) -> Result<(), TemplateError> = $check;
                check(&pieces(&text)?)?;
                Ok(Self(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = TemplateError;

            fn from_str(text: &str) -> Result<Self, TemplateError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(template: $name) -> Self {
                template.0
            }
        }
    };
}

template!(
    /// What environments of a source are called; they have the name of the branch as usual.
    NameTemplate,
    "{branch}",
    |pieces| {
        let tells = |piece: &Piece<'_>| matches!(piece, Piece::Word("branch" | "number"));
        let apart = pieces.iter().any(tells);
        apart.then_some(()).ok_or(TemplateError::Alike)
    }
);

template!(
    /// Which tag environments of a source are given; the whole commit as usual.
    TagTemplate,
    "{sha}",
    |_| Ok(())
);

impl NameTemplate {
    /// Names for an environment of a request, the best first. The first may be another's.
    pub fn names(&self, source: &Name, event: &Event) -> Vec<EnvironmentName> {
        let stem = label(&fill(&self.0, source, event));
        let whole = (stem.len() <= EnvironmentName::LEN_MAX).then(|| stem.clone());
        let digests = (0..DIGESTS_MAX).map(|salt| {
            let digest = id::print(id::derive(
                "request",
                Origin {
                    parent: &format!("{source} {}", event.repository),
                    name: &event.branch,
                    ordinal: event.request,
                    incarnation: salt,
                },
            ));
            let digest = &digest[digest.len() - DIGEST_LEN..];
            let room = EnvironmentName::LEN_MAX - DIGEST_LEN - 1;
            let cut: String = stem.chars().take(room).collect();
            format!("{}-{digest}", cut.trim_end_matches('-'))
        });
        let names = whole.into_iter().chain(digests);
        names.filter_map(|name| name.parse().ok()).collect()
    }
}

/// A text as a DNS label that begins with a letter, however long.
fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            label.push(c);
        } else if !label.ends_with('-') {
            label.push('-');
        }
    }
    let label = label.trim_matches('-');
    let letter = label.starts_with(|c: char| c.is_ascii_lowercase());
    if label.is_empty() {
        "request".to_owned()
    } else if letter && label.len() >= EnvironmentName::LEN_MIN {
        label.to_owned()
    } else {
        format!("r-{label}")
    }
}

impl TagTemplate {
    /// The tag of a request. What no tag of an image can have is a hyphen in it.
    pub fn fill(&self, source: &Name, event: &Event) -> Value {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let filled = fill(&self.0, source, event);
        let filled = filled.chars().map(|c| if plain(c) { c } else { '-' });
        let filled: String = filled.collect();
        let tag = filled.trim_start_matches(['.', '-']);
        let tag: String = tag.chars().take(TAG_LEN_MAX).collect();
        // A short text without NUL is a value.
        tag.parse().unwrap_or_default()
    }
}
