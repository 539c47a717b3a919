//! Names a person chooses.

use serde::{Deserialize, Serialize};

/// A name valid as a DNS label: in Kubernetes, with every cloud and as a host name.
///
/// Holding a `Name` is the proof that it was checked; nothing downstream checks again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Name(String);

/// Why a text is not a [`Name`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Nothing was given.
    #[error("name is empty")]
    Empty,
    /// Longer than allowed here.
    #[error("name has {len} characters, at most {max} are allowed")]
    TooLong {
        /// How many characters were given.
        len: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Capital letters, and nothing else that DNS forbids.
    #[error(
        "name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `{small}`"
    )]
    Capital {
        /// The same in small letters.
        small: String,
    },
    /// A character that DNS forbids, or a hyphen at either end.
    #[error("{}; allowed are a-z, 0-9 and, inside, hyphens", told(*found))]
    Character {
        /// The offending character.
        found: char,
        /// Its index, counted from zero.
        at: usize,
    },
}

/// What is wrong with a character of a name, in words.
fn told(found: char) -> String {
    match found {
        '-' => "a name neither begins nor ends with a hyphen".to_owned(),
        ' ' => "name has a blank".to_owned(),
        found if found.is_uppercase() => format!("`{found}` is upper case"),
        found => format!("name has `{}`", found.escape_debug()),
    }
}

impl Name {
    /// The longest DNS label (RFC 1035, section 2.3.4).
    pub const LEN_MAX: usize = 63;

    /// What a name looks like, as a regular expression.
    pub const PATTERN: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

    /// The project that exists from the start.
    pub fn default_project() -> Self {
        Self("default".to_owned())
    }

    /// Checks `text` against the rules and a tighter limit than DNS sets.
    pub fn checked(text: &str, max: usize) -> Result<Self, Error> {
        let len = text.chars().count();
        if len == 0 {
            return Err(Error::Empty);
        }
        if len > max {
            return Err(Error::TooLong { len, max });
        }
        let allowed = |at: usize, c: char| match c {
            'a'..='z' | '0'..='9' => true,
            '-' => at != 0 && at + 1 != len,
            _ => false,
        };
        match text.chars().enumerate().find(|&(at, c)| !allowed(at, c)) {
            Some((at, found)) => Err(capital(text, max).unwrap_or(Error::Character { found, at })),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A machine's name: cluster, pool and ordinal, the last in at least two hex digits.
    ///
    /// # Panics
    ///
    /// If cluster and pool names were admitted with limits that leave no room for it.
    pub fn of_machine(cluster: &Self, pool: &Self, ordinal: u32) -> Self {
        let text = format!("{cluster}-{pool}-{ordinal:02x}");
        assert!(
            text.len() <= Self::LEN_MAX,
            "admission bounds cluster and pool names"
        );
        Self(text)
    }
}

/// What is wrong with a name that would be one in small letters.
fn capital(text: &str, max: usize) -> Option<Error> {
    let small = text.to_ascii_lowercase();
    let is_name = small != text && Name::checked(&small, max).is_ok();
    is_name.then_some(Error::Capital { small })
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::checked(text, Self::LEN_MAX)
    }
}

impl TryFrom<String> for Name {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hyphen_at_the_end_is_refused() {
        let refused = "edge-".parse::<Name>().expect_err("must not parse");
        assert_eq!(refused, Error::Character { found: '-', at: 4 });
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let told = |text: &str| text.parse::<Name>().unwrap_err().to_string();
        let allowed = "allowed are a-z, 0-9 and, inside, hyphens";
        let words = [
            ("My Brain", "`M` is upper case"),
            ("-brain", "a name neither begins nor ends with a hyphen"),
            ("my brain", "name has a blank"),
            ("my_brain", "name has `_`"),
            ("brain\t", "name has `\\t`"),
        ];
        for (text, word) in words {
            assert_eq!(told(text), format!("{word}; {allowed}"));
        }
    }

    #[test]
    fn the_limit_counts_characters() {
        assert!(Name::checked("abc", 3).is_ok());
        assert_eq!(
            Name::checked("abcd", 3),
            Err(Error::TooLong { len: 4, max: 3 })
        );
    }
}
