//! What must not be seen, and how to speak of it.
//!
//! A [`Secret`] holds bytes that cannot be printed: it has no `Debug`, no `Display` and
//! no `Serialize`, so a type that contains one has none of them either, and a log line,
//! an event or an answer that would reveal it does not compile. Whoever needs the bytes
//! says so with [`Secret::expose`], a word that review can search for.
//!
//! Documents never contain a secret. They contain a [`SecretRef`]: the name of a secret
//! of the same project and, where one value is meant, the entry within it.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::name::Name;

/// Bytes that cannot be printed, and are wiped from memory when they are dropped.
///
/// Nor can they be cloned or compared: a copy is one more place to wipe, and a comparison
/// that stops at the first difference tells how far it came.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the text over; it is not copied, so nothing unwiped stays behind.
    pub fn from_text(text: String) -> Self {
        Self::from(text.into_bytes())
    }

    /// The bytes, for those who have to use them. Neither log nor store what this returns.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, if they are text.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

/// The name of one entry of a secret: letters, digits, `.`, `_` and `-`.
///
/// The rules are those that Kubernetes has for the keys of its secrets, so that either
/// can be copied to the other. Holding an `EntryName` is the proof that it was checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EntryName(String);

/// Why a text is not an [`EntryName`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Nothing was given.
    #[error("entry name is empty")]
    Empty,
    /// Longer than allowed.
    #[error(
        "entry name has {len} characters, at most {} are allowed",
        EntryName::LEN_MAX
    )]
    TooLong {
        /// How many characters were given.
        len: usize,
    },
    /// A character that is not allowed.
    #[error(
        "entry name has `{}`; allowed are a-z, A-Z, 0-9, `.`, `_` and `-`",
        found.escape_debug()
    )]
    Character {
        /// The offending character.
        found: char,
        /// Its index, counted from zero.
        at: usize,
    },
    /// A name that means a directory, where entries become files or parts of an address.
    #[error("entry name must not be `.` nor begin with `..`")]
    Dots,
}

impl EntryName {
    /// The longest name, as in Kubernetes.
    pub const LEN_MAX: usize = 253;

    /// Which value of a cluster opens its API.
    pub fn kubeconfig() -> Self {
        Self("kubeconfig".to_owned())
    }

    /// Which value of a cluster opens the snapshots of its etcd.
    pub fn snapshot_key() -> Self {
        Self("snapshot-key".to_owned())
    }

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for EntryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for EntryName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for EntryName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        let len = text.chars().count();
        if len > Self::LEN_MAX {
            return Err(Error::TooLong { len });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some((at, found)) = text.chars().enumerate().find(|&(_, c)| !allowed(c)) {
            return Err(Error::Character { found, at });
        }
        if text == "." || text.starts_with("..") {
            return Err(Error::Dots);
        }
        Ok(Self(text))
    }
}

impl From<EntryName> for String {
    fn from(name: EntryName) -> Self {
        name.0
    }
}

/// A reference to a secret of the same project, or to one entry of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// Which secret.
    pub name: Name,
    /// Which of its entries; none where the reader knows which ones it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<EntryName>,
}

impl std::fmt::Display for SecretRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}/{key}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::marker::PhantomData;

    use super::*;

    /// Tells at compile time what a type can do: an inherent constant, which exists only
    /// where its bound holds, hides the one of the trait that everything has.
    struct Can<T>(PhantomData<T>);

    trait Cannot {
        const DEBUG: bool = false;
        const DISPLAY: bool = false;
        const SERIALIZE: bool = false;
        const CLONE: bool = false;
        const COMPARE: bool = false;
    }

    impl<T> Cannot for Can<T> {}

    impl<T: Debug> Can<T> {
        const DEBUG: bool = true;
    }

    impl<T: Display> Can<T> {
        const DISPLAY: bool = true;
    }

    impl<T: Serialize> Can<T> {
        const SERIALIZE: bool = true;
    }

    impl<T: Clone> Can<T> {
        const CLONE: bool = true;
    }

    impl<T: PartialEq> Can<T> {
        const COMPARE: bool = true;
    }

    macro_rules! abilities {
        ($of:ty) => {
            [
                Can::<$of>::DEBUG,
                Can::<$of>::DISPLAY,
                Can::<$of>::SERIALIZE,
                Can::<$of>::CLONE,
                Can::<$of>::COMPARE,
            ]
        };
    }

    #[test]
    fn a_secret_can_be_neither_shown_nor_copied() {
        assert_eq!(abilities!(Secret), [false; 5]);
        assert_eq!(
            abilities!(String),
            [true; 5],
            "the question can be answered with yes"
        );
    }

    #[test]
    fn a_secret_gives_back_what_it_was_given() {
        let text = Secret::from_text("grün".to_owned());
        assert_eq!(text.expose_text(), Some("grün"));
        let bytes = Secret::from(vec![0xff, 0]);
        assert_eq!(bytes.expose(), [0xff, 0]);
        assert_eq!(bytes.expose_text(), None);
    }

    /// Freed memory cannot be looked at, but what wipes itself says so in its type.
    #[test]
    fn a_secret_wipes_itself() {
        fn wipes(_: &impl zeroize::ZeroizeOnDrop) {}
        wipes(&Secret::from(vec![1]).0);
    }

    #[test]
    fn entry_names_are_checked() {
        for fine in [
            "a",
            "tls.crt",
            "ACCESS_KEY-2",
            ".dockercfg",
            &"x".repeat(253),
        ] {
            assert_eq!(
                fine.parse::<EntryName>().map(String::from).as_deref(),
                Ok(fine)
            );
        }
        for (wrong, why) in [
            ("", Error::Empty),
            (&"x".repeat(254), Error::TooLong { len: 254 }),
            ("a/b", Error::Character { found: '/', at: 1 }),
            ("ä", Error::Character { found: 'ä', at: 0 }),
            (".", Error::Dots),
            ("..", Error::Dots),
            ("..a", Error::Dots),
        ] {
            assert_eq!(wrong.parse::<EntryName>(), Err(why), "{wrong:?}");
        }
    }

    #[test]
    fn a_stored_reference_is_checked_when_it_is_read() {
        let whole = SecretRef {
            name: "aws".parse().unwrap(),
            key: None,
        };
        assert_eq!(serde_json::to_string(&whole).unwrap(), r#"{"name":"aws"}"#);
        let entry: SecretRef = serde_json::from_str(r#"{"name":"aws","key":"token"}"#).unwrap();
        assert_eq!(entry.to_string(), "aws/token");
        assert!(serde_json::from_str::<SecretRef>(r#"{"name":"aws","key":"a/b"}"#).is_err());
    }
}
