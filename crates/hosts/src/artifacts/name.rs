//! What an artifact is called, and the digest of what is in it.

use sha2::{Digest as _, Sha256};

/// The name of an artifact: its path in a mirror, such as `envoy/1.40.0/linux-amd64/envoy`.
///
/// A name is safe to be joined to a directory or an address: it has no part that is empty or
/// begins with a dot, and only characters that file names of packages have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Longest name, in bytes.
const NAME_MAX: usize = 240;

/// Characters of a name besides ASCII letters and digits.
const MARKS: &[u8] = b"._+~:=@%-";

/// Why a text is no [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of an artifact: use letters, digits and `._+~:=@%-` in parts that \
     are separated by single slashes and do not begin with a dot, at most {NAME_MAX} bytes"
)]
pub struct NotAName(String);

impl Name {
    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is of the same program as another name, maybe of another version.
    pub(super) fn kin(&self, other: &Self) -> bool {
        self.parts().next() == other.parts().next()
    }

    /// Whether it is in the directory of another name.
    pub(super) fn is_below(&self, above: &Self) -> bool {
        let rest = self.0.strip_prefix(&above.0);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Its parts, which slashes separate.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }
}

impl std::str::FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || MARKS.contains(&byte);
        let good =
            |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(known);
        // The index lies beside the files and cannot be one of them.
        if text.len() <= NAME_MAX && text != super::index::FILE && text.split('/').all(good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName(text.chars().take(NAME_MAX).collect()))
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The SHA-256 of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is no [`Digest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 has 64 lower-case hexadecimal digits")]
pub struct NotADigest;

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::ended(Sha256::new_with_prefix(bytes))
    }

    /// The digest of all that was fed.
    pub(crate) fn ended(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(NotADigest),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NotADigest);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_directory() {
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "./a",
            ".git/x",
            "a b",
            "a\nb",
            "ä",
            "a\\b",
            "index.json",
            "a/.b",
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(241).parse::<Name>().is_err());
        for good in [
            "envoy/1.40.0/linux-amd64/envoy",
            "deb/libc6_2.36-9+deb12u10_amd64.deb",
            "deb/x_1%3a2~rc1_all.deb",
            "a/index.json",
        ] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_digest_survives_being_told_and_read() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        for bad in [
            "",
            "ba78",
            &text.to_uppercase(),
            &format!("{text}0"),
            &text.replace('b', "ß"),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad:?}");
        }
    }
}
