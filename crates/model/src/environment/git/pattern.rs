//! Patterns of branches.

use serde::{Deserialize, Serialize};

/// A pattern of names of branches: `*` is any text without a slash, `**` any text, `?` one
/// character that is no slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pattern(String);

/// Why a text is no pattern.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PatternError {
    /// Nothing fits nothing.
    #[error("found nothing, allowed: a pattern like `feature/*`")]
    Empty,
    /// No branch is so long.
    #[error(
        "found {len} bytes, allowed: at most {} with at most {} stars",
        Pattern::LEN_MAX,
        Pattern::STARS_MAX
    )]
    TooLong {
        /// How many were given.
        len: usize,
    },
    /// No branch has such.
    #[error("found {found:?}, which no branch has")]
    Character {
        /// What.
        found: char,
    },
}

impl Pattern {
    /// The longest pattern.
    pub const LEN_MAX: usize = 255;

    /// The most stars: each may cost another look at the whole name.
    pub const STARS_MAX: usize = 8;

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a branch is one of these.
    pub fn fits(&self, branch: &str) -> bool {
        fits(self.0.as_bytes(), branch.as_bytes())
    }
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        [b'*', rest @ ..] => {
            let end = name.iter().position(|byte| *byte == b'/');
            let end = end.unwrap_or(name.len());
            (0..=end).any(|at| fits(rest, &name[at..]))
        }
        [b'?', rest @ ..] => match name {
            [first, others @ ..] if *first != b'/' => fits(rest, others),
            _ => false,
        },
        [byte, rest @ ..] => match name {
            [first, others @ ..] if first == byte => fits(rest, others),
            _ => false,
        },
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        let stars = text.bytes().filter(|byte| *byte == b'*').count();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > Self::LEN_MAX || stars > Self::STARS_MAX {
            return Err(PatternError::TooLong { len: text.len() });
        }
        match text.chars().find(|c| c.is_control() || *c == ' ') {
            Some(found) => Err(PatternError::Character { found }),
            None => Ok(Self(text)),
        }
    }
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        text.to_owned().try_into()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_unless_there_are_two() {
        let table = [
            ("main", "main", true),
            ("main", "maine", false),
            ("feature/*", "feature/login", true),
            ("feature/*", "feature/login/form", false),
            ("feature/**", "feature/login/form", true),
            ("**", "anything/at/all", true),
            ("*", "a/b", false),
            ("*-fix", "quick-fix", true),
            ("**/fix-*", "a/b/fix-1", true),
            ("v?.x", "v1.x", true),
            ("v?.x", "v/.x", false),
            ("?", "", false),
            ("[a]", "a", false),
        ];
        for (pattern, branch, expected) in table {
            let pattern: Pattern = pattern.parse().unwrap();
            assert_eq!(pattern.fits(branch), expected, "{pattern:?} {branch}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let why = |text: &str| text.parse::<Pattern>().unwrap_err().to_string();
        assert_eq!(
            why(""),
            "found nothing, allowed: a pattern like `feature/*`"
        );
        assert_eq!(why("a b"), "found ' ', which no branch has");
        assert!(why(&"*".repeat(9)).contains("8 stars"));
    }

    /// The worst pattern that is taken, on the longest branch, ends soon.
    #[test]
    fn a_pattern_is_not_slow() {
        let pattern: Pattern = "**a**a**a**b".parse().unwrap();
        assert!(!pattern.fits(&"a".repeat(255)));
    }
}
