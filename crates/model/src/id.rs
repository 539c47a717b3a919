//! Identifiers that cannot be mistaken for one another, nor for an earlier bearer of the name.
//!
//! An id is derived from what the thing *is*: its parent, kind, name, ordinal and
//! incarnation. Deriving twice gives the same id, so a plan made again after a crash
//! speaks of the same machines; a new incarnation gives another, so a name used again
//! is never mistaken for the old one.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where the printed digits come from: no vowels and no look-alikes, so ids spell nothing.
const ALPHABET: &[u8; 32] = b"0123456789bcdfghjkmnpqrstvwxyzeu";

/// Printed digits of an id: five bits each, 64 bits in all.
const DIGITS: usize = 13;

/// What an id is derived from, besides its kind.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The printed id or name of what this belongs to.
    pub parent: &'a str,
    /// The name a person would use.
    pub name: &'a str,
    /// Which of several with that name.
    pub ordinal: u64,
    /// How many bearers this place had before.
    pub incarnation: u64,
}

pub(crate) fn derive(kind: &str, origin: Origin<'_>) -> u64 {
    let mut hash = Sha256::new();
    for part in [kind, origin.parent, origin.name] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(origin.ordinal.to_be_bytes());
    hash.update(origin.incarnation.to_be_bytes());
    hash.finalize()
        .iter()
        .take(8)
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

pub(crate) fn print(raw: u64) -> String {
    (0..DIGITS)
        .rev()
        .filter_map(|digit| usize::try_from((raw >> (digit * 5)) & 31).ok())
        .map(|at| char::from(ALPHABET[at]))
        .collect()
}

fn parse(digits: &str) -> Option<u64> {
    if digits.len() != DIGITS {
        return None;
    }
    let mut raw: u128 = 0;
    for byte in digits.bytes() {
        let at = ALPHABET.iter().position(|letter| *letter == byte)?;
        raw = (raw << 5) | u128::try_from(at).ok()?;
    }
    u64::try_from(raw).ok()
}

/// Why a text is not an id of the wanted kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not an id of the form `{prefix}-` and {DIGITS} characters")]
pub struct Error {
    /// What was given.
    pub found: String,
    /// What it should have begun with.
    pub prefix: &'static str,
}

/// Declares a typed identifier with a printable prefix, e.g. `machine-0c5w3k9qj2m4x`.
macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(u64);

        impl $name {
            /// Derives the id of what `origin` describes.
            pub fn derive(origin: Origin<'_>) -> Self {
                Self(derive($prefix, origin))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "-{}"), print(self.0))
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                text.strip_prefix(concat!($prefix, "-"))
                    .and_then(parse)
                    .map(Self)
                    .ok_or_else(|| Error { found: text.to_owned(), prefix: $prefix })
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                text.parse()
            }
        }
    };
}

typed_id!(
    /// One Kubernetes cluster, for one whole life.
    ClusterId, "cluster"
);
typed_id!(
    /// One computer, whoever lends it to us.
    MachineId, "machine"
);
typed_id!(
    /// One piece of work for one driver.
    TaskId, "task"
);
typed_id!(
    /// One wish outside the manifest.
    IntentId, "intent"
);
typed_id!(
    /// One journey that was shown to somebody.
    JourneyId, "plan"
);
typed_id!(
    /// One environment, for one whole life.
    EnvironmentId, "environment"
);
typed_id!(
    /// One thing that is done to an environment.
    ActionId, "action"
);
typed_id!(
    /// One message to somebody outside, however often it is sent.
    DeliveryId, "delivery"
);
typed_id!(
    /// One token, which says who somebody is.
    TokenId, "token"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(incarnation: u64) -> Origin<'static> {
        Origin {
            parent: "edge",
            name: "control",
            ordinal: 1,
            incarnation,
        }
    }

    #[test]
    fn an_id_survives_being_printed_and_read() {
        let id = MachineId::derive(origin(0));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn a_new_incarnation_is_somebody_else() {
        assert_ne!(MachineId::derive(origin(0)), MachineId::derive(origin(1)));
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let machine = MachineId::derive(origin(0)).to_string();
        assert!(machine.parse::<ClusterId>().is_err());
        assert!("cluster-".parse::<ClusterId>().is_err());
        assert!(
            "cluster-uuuuuuuuuuuuu".parse::<ClusterId>().is_err(),
            "more than 64 bits"
        );
    }
}
