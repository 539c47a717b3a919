//! What somebody may do, and which token says so.

use crate::id;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub use crate::id::TokenId;

/// What the holder of a token may do, each role all that the one before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sees everything but secrets.
    Viewer,
    /// Declares: submits manifests, plans, rehearses, sets secrets.
    User,
    /// Interferes: scales, replaces, retries, cancels, pauses, deletes.
    Operator,
    /// Decides who may do what: projects, tokens, keys, audit, backups.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::User, Self::Operator, Self::Admin];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::User => "user",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text is not a role.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a role; there are viewer, user, operator and admin")]
pub struct Unknown {
    /// What was given.
    pub found: String,
}

impl FromStr for Role {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| Unknown {
            found: text.to_owned(),
        })
    }
}

impl TokenId {
    /// The id of the token with this digest: the same token is never stored twice.
    pub fn of(digest: &str) -> Self {
        Self::derive(id::Origin {
            parent: "",
            name: digest,
            ordinal: 0,
            incarnation: 0,
        })
    }
}

/// The public half of a key with which somebody enters a machine for a while.
///
/// Of one kind alone and without a comment: it becomes part of a line in a file of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestKey(String);

/// Why a text is not the key of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("allowed: the public half of an ed25519 key, `ssh-ed25519 AAAA…`, without a comment")]
pub struct NoGuestKey;

impl GuestKey {
    /// What every key of this kind begins with: its name, and the lengths before its parts.
    const BEGINS: &'static str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI";

    /// How long each of them is.
    const LEN: usize = "ssh-ed25519 ".len() + 68;

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GuestKey {
    type Err = NoGuestKey;

    fn from_str(text: &str) -> Result<Self, NoGuestKey> {
        let rest = text.strip_prefix(Self::BEGINS).ok_or(NoGuestKey)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
        if text.len() == Self::LEN && rest.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoGuestKey)
        }
    }
}

/// What somebody needs to know who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// As whom they enter.
    pub user: String,
    /// The port of the machine's SSH server, as we see it.
    pub port: u16,
    /// The host key by which they recognise the machine, as a line of OpenSSH's.
    pub host_key: String,
    /// Until when the key is let in, by the machine's own clock.
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_guest_is_one_word_of_its_kind_and_nothing_else() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJK1vIzCMLIRl1oVQkTBHzzW8iPZAqDGm1sXQ8Jk4Zt";
        assert_eq!(key.parse::<GuestKey>().unwrap().as_str(), key);
        for wrong in [
            String::new(),
            format!("{key} somebody@there"),
            format!("{key}\n"),
            format!("command=\"true\" {key}"),
            key[..key.len() - 1].to_owned(),
            key.replace("JJK1", "JJ 1"),
            key.replace("ssh-ed25519", "ssh-rsa"),
        ] {
            assert_eq!(wrong.parse::<GuestKey>(), Err(NoGuestKey), "{wrong}");
        }
    }
}
