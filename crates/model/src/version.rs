//! Kubernetes versions.

use serde::{Deserialize, Serialize};

/// A Kubernetes version whose minor we know how to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version {
    /// The minor release; the major is always 1.
    pub minor: u16,
    /// The patch release.
    pub patch: u16,
}

/// How much of what stands behind a version is repeated to whoever wrote it.
const SUFFIX_SHOWN: usize = 20;

/// Why a text is not a [`Version`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not of the form major, minor, patch.
    #[error("version is not of the form v1.MINOR.PATCH")]
    Form,
    /// Something behind the patch: a build, or what comes before a release.
    #[error(
        "version has `{suffix}` behind its patch; allowed are releases, of the form v1.MINOR.PATCH"
    )]
    Suffix {
        /// What was found there.
        suffix: String,
    },
    /// A minor we do not build.
    #[error(
        "version 1.{minor} is not supported; allowed are 1.{} to 1.{}",
        Version::MINOR_MIN,
        Version::MINOR_MAX
    )]
    Unsupported {
        /// What was asked for.
        minor: u16,
    },
}

impl Version {
    /// The oldest minor release that upstream still maintains.
    pub const MINOR_MIN: u16 = 33;
    /// The newest minor release that we build.
    pub const MINOR_MAX: u16 = 36;

    /// The releases that upgrades over several minors go through, one for each minor that lies
    /// between two others.
    const STEPPING_STONES: [Self; 2] = [
        Self {
            minor: 34,
            patch: 4,
        },
        Self {
            minor: 35,
            patch: 8,
        },
    ];

    /// The release of a minor that upgrades over several of them go through.
    pub fn stepping_stone(minor: u16) -> Self {
        let mut known = Self::STEPPING_STONES.into_iter();
        // The first of each minor was always released.
        let first = Self { minor, patch: 0 };
        known.find(|stone| stone.minor == minor).unwrap_or(first)
    }
}

impl std::str::FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (bare, suffix) = bare.split_at(bare.find(['-', '+']).unwrap_or(bare.len()));
        let mut parts = bare.split('.');
        let (Some("1"), Some(minor), Some(patch), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::Form);
        };
        let number = |part: &str| -> Result<u16, Error> {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| plain).ok_or(Error::Form)
        };
        let (minor, patch) = (number(minor)?, number(patch)?);
        if !suffix.is_empty() {
            let suffix = suffix.chars().take(SUFFIX_SHOWN).collect();
            return Err(Error::Suffix { suffix });
        }
        if !(Self::MINOR_MIN..=Self::MINOR_MAX).contains(&minor) {
            return Err(Error::Unsupported { minor });
        }
        Ok(Self { minor, patch })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_v_is_optional_and_order_is_numeric() {
        let old: Version = "1.34.9".parse().unwrap();
        let new: Version = "v1.34.10".parse().unwrap();
        assert!(old < new);
    }

    #[test]
    fn only_releases_are_allowed_and_that_is_said() {
        let wrong = |text: &str| text.parse::<Version>().unwrap_err().to_string();
        assert_eq!(
            wrong("v1.34.0-rc.1"),
            "version has `-rc.1` behind its patch; allowed are releases, of the form v1.MINOR.PATCH"
        );
        assert_eq!(wrong("1.34.0+k3s1"), wrong("v1.34.0+k3s1"));
        assert_eq!(
            wrong("v1.34-rc.1"),
            "version is not of the form v1.MINOR.PATCH"
        );
    }

    #[test]
    fn every_minor_between_two_others_has_a_stepping_stone() {
        let between = Version::MINOR_MIN + 1..Version::MINOR_MAX;
        let stones: Vec<_> = between.map(Version::stepping_stone).collect();
        assert_eq!(stones, Version::STEPPING_STONES);
    }

    #[test]
    fn what_is_not_a_version_is_refused() {
        for text in [
            "",
            "1",
            "1.34",
            "2.34.0",
            "1.34.x",
            "1.+34.0",
            "1.34.0.1",
            "v v1.34.0",
        ] {
            assert_eq!(text.parse::<Version>(), Err(Error::Form), "{text:?}");
        }
        assert_eq!(
            "1.20.0".parse::<Version>(),
            Err(Error::Unsupported { minor: 20 })
        );
    }
}
