//! What a secret is while it rests: sealed, under a data key that is itself wrapped.
//!
//! Values only; `vault` makes and opens them. All of this may be stored, printed and
//! copied: without the master key it is noise. A [`Place`] says where a sealed value
//! belongs, and is bound into the seal: a row that was moved elsewhere does not open.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{ClusterId, EnvironmentId, MachineId};
use crate::name::Name;
use crate::secret::EntryName;

/// Why a text is none of these.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not the id of a data key.
    #[error("`{found}` is not an id of the form `key-` and 32 hexadecimal digits")]
    Key {
        /// What was given.
        found: String,
    },
    /// Not an owner.
    #[error("`{found}` does not name a secret, a cluster, a machine or an environment as an owner")]
    Owner {
        /// What was given.
        found: String,
    },
}

/// Which data key: a digest of it, so that another key cannot pass under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KeyId([u8; 16]);

impl KeyId {
    /// What every printed id begins with.
    const PREFIX: &str = "key-";

    /// The id that these bytes of a digest are.
    pub const fn from_digest(digest: [u8; 16]) -> Self {
        Self(digest)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text
            .strip_prefix(Self::PREFIX)
            .filter(|digits| digits.len() == 32)
            .filter(|digits| {
                digits
                    .bytes()
                    .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
            });
        digits
            .and_then(|digits| u128::from_str_radix(digits, 16).ok())
            .map(|raw| Self(raw.to_be_bytes()))
            .ok_or_else(|| Error::Key {
                found: text.to_owned(),
            })
    }
}

impl TryFrom<String> for KeyId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.to_string()
    }
}

/// A data key as the store keeps it: readable only with the master key that wrapped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapped {
    /// Which data key this is.
    pub id: KeyId,
    /// Who can unwrap it: the fingerprint of a master key, or `command`.
    pub by: String,
    /// The wrapped key.
    pub text: String,
}

/// One sealed value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// The data key that opens it.
    pub key: KeyId,
    /// The sealed bytes.
    pub text: String,
}

/// Whose value it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Owner {
    /// A secret that a person set.
    Secret(Name),
    /// A cluster: its kubeconfig, its keys, the state of the tools that built it.
    Cluster(ClusterId),
    /// A machine: what only it may be reached with.
    Machine(MachineId),
    /// An environment: settings that nobody should see.
    Environment(EnvironmentId),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name) => write!(f, "secret/{name}"),
            Self::Cluster(id) => write!(f, "cluster/{id}"),
            Self::Machine(id) => write!(f, "machine/{id}"),
            Self::Environment(id) => write!(f, "environment/{id}"),
        }
    }
}

impl FromStr for Owner {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let owner = match text.split_once('/') {
            Some(("secret", name)) => name.parse().ok().map(Self::Secret),
            Some(("cluster", id)) => id.parse().ok().map(Self::Cluster),
            Some(("machine", id)) => id.parse().ok().map(Self::Machine),
            Some(("environment", id)) => id.parse().ok().map(Self::Environment),
            Some(_) | None => None,
        };
        owner.ok_or_else(|| Error::Owner {
            found: text.to_owned(),
        })
    }
}

impl TryFrom<String> for Owner {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

/// Where a sealed value belongs. It opens there and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The project.
    pub project: Name,
    /// Whose value it is.
    pub owner: Owner,
    /// Which of the owner's values.
    pub entry: EntryName,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.project, self.owner, self.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Origin;

    #[test]
    fn a_key_id_survives_being_printed_and_read() {
        let id = KeyId::from_digest([0x0f; 16]);
        assert_eq!(id.to_string(), "key-0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "key-", "key-0f", &id.to_string().to_uppercase()] {
            assert!(wrong.parse::<KeyId>().is_err(), "{wrong:?}");
        }
        let signed = format!("key-+{}", "f".repeat(31));
        assert!(signed.parse::<KeyId>().is_err(), "a sign is no digit");
    }

    #[test]
    fn an_owner_survives_being_printed_and_read() {
        let origin = Origin {
            parent: "default",
            name: "edge",
            ordinal: 0,
            incarnation: 0,
        };
        for owner in [
            Owner::Secret("aws".parse().unwrap()),
            Owner::Cluster(ClusterId::derive(origin)),
            Owner::Machine(MachineId::derive(origin)),
            Owner::Environment(EnvironmentId::derive(origin)),
        ] {
            assert_eq!(owner.to_string().parse(), Ok(owner));
        }
        for wrong in ["", "aws", "secret/", "secret/a/b", "cluster/edge", "pool/a"] {
            assert!(wrong.parse::<Owner>().is_err(), "{wrong:?}");
        }
    }
}
