//! The profiles of `--faults`, and their odds.

use std::fmt;
use std::str::FromStr;

/// Which faults a rehearsal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// None.
    None,
    /// Some attempts fail and work later.
    Flaky,
    /// Everything takes ten times as long, and some of it much longer.
    Slow,
    /// Looks miss things, show old ones or come late.
    Lossy,
    /// The engine is killed now and then.
    Crashes,
    /// All of these.
    Storm,
}

/// Faults that do not exist.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there are no faults called `{found}`; there are {}", Profile::names())]
pub struct Error {
    /// What was asked for.
    pub found: String,
}

impl Error {
    /// The stable code of this error.
    pub const fn code(&self) -> &'static str {
        "SIM-003"
    }
}

/// How likely each fault is, in per cent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Odds {
    pub(super) attempt_fails: u8,
    pub(super) answer_lost: u8,
    pub(super) look_fails: u8,
    pub(super) killed: u8,
    /// How many times slower things are: usually, and now and then.
    pub(super) stretch: (u32, u32),
}

impl Profile {
    /// Every profile, the mildest first.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Flaky,
        Self::Slow,
        Self::Lossy,
        Self::Crashes,
        Self::Storm,
    ];

    /// The word of the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Flaky => "flaky",
            Self::Slow => "slow",
            Self::Lossy => "lossy",
            Self::Crashes => "crashes",
            Self::Storm => "storm",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    pub(super) const fn odds(self) -> Odds {
        let calm = Odds {
            attempt_fails: 0,
            answer_lost: 0,
            look_fails: 0,
            killed: 0,
            stretch: (1, 1),
        };
        match self {
            Self::None => calm,
            Self::Flaky => Odds {
                attempt_fails: 20,
                answer_lost: 10,
                ..calm
            },
            // Ten times the usual minutes, and rarely so much that an attempt is given up.
            Self::Slow => Odds {
                stretch: (10, 40),
                ..calm
            },
            Self::Lossy => Odds {
                look_fails: 20,
                ..calm
            },
            Self::Crashes => Odds { killed: 5, ..calm },
            Self::Storm => Odds {
                attempt_fails: 10,
                answer_lost: 5,
                look_fails: 15,
                killed: 3,
                stretch: (3, 40),
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
        known.ok_or_else(|| Error {
            found: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_profile_is_refused_with_those_that_exist() {
        let refused = "windy".parse::<Profile>().expect_err("must not parse");
        assert_eq!(
            refused.to_string(),
            "there are no faults called `windy`; there are none, flaky, slow, lossy, crashes, storm"
        );
        for profile in Profile::ALL {
            assert_eq!(profile.as_str().parse(), Ok(profile));
        }
    }
}
