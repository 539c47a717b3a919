//! What is done to a host so that it can serve, and how much of it is done.
//!
//! What is wished and what is seen are compared by [`Fingerprint`]: a short digest that a host
//! keeps beside what it was told and tells when it is looked at.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// A short digest of something a host was told: equal digests mean equal wishes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(String);

/// Hex digits of a fingerprint: 64 bits, compared with the few a host ever had.
const DIGITS: usize = 16;

/// Why a text is not a [`Fingerprint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has {DIGITS} hexadecimal digits")]
pub struct NotAFingerprint;

impl Fingerprint {
    /// The fingerprint of a text.
    pub fn of_text(text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let mut digits = String::with_capacity(DIGITS);
        let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for half in halves.take(DIGITS) {
            digits.extend(char::from_digit(u32::from(half), 16));
        }
        Self(digits)
    }

    /// The fingerprint of a value, by its document.
    pub fn of(value: &impl Serialize) -> Self {
        // A value of the model always has a document; an empty one would only cause work.
        Self::of_text(&serde_json::to_string(value).unwrap_or_default())
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == DIGITS && text.bytes().all(hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAFingerprint)
        }
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = NotAFingerprint;

    fn try_from(text: String) -> Result<Self, NotAFingerprint> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0
    }
}

/// What a host is made ready for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What will run on it.
    pub purpose: Purpose,
    /// How it reaches package sources and registries, where not directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// What is played on it besides, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub playbooks: Vec<Playbook>,
}

/// A playbook of Ansible's, brought by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Playbook {
    /// What people call it; a host remembers it under this name.
    pub name: Name,
    /// Its text: a list of plays, in YAML.
    pub text: String,
}

impl Playbook {
    /// What a host remembers on which it was played.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_text(&self.text)
    }
}

/// The playbooks of a cluster, by when they are played on its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Playbooks {
    /// Before a machine becomes a node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before_joining: Vec<Playbook>,
    /// When it has become one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_joining: Vec<Playbook>,
    /// How many machines every pool had made before those for after joining were declared as
    /// they are: they are a change to these, and to all others a part of their coming.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_before: BTreeMap<Name, u32>,
}

impl Playbooks {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.before_joining.is_empty() && self.after_joining.is_empty()
    }

    /// Those for a machine before it has joined, or when it has.
    pub fn due(&self, joined: bool) -> Vec<Playbook> {
        let after = self.after_joining.iter().filter(|_| joined);
        self.before_joining.iter().chain(after).cloned().collect()
    }

    /// These, declared for a cluster that had others, and whose pools had made so many machines.
    #[must_use]
    pub fn declared_after(&self, others: &Self, made: &BTreeMap<Name, u32>) -> Self {
        let made_before = if self.after_joining.is_empty() {
            BTreeMap::new()
        } else if self.after_joining == others.after_joining {
            others.made_before.clone()
        } else {
            made.clone()
        };
        Self {
            made_before,
            ..self.clone()
        }
    }
}

/// What will run on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A node of Kubernetes.
    Node,
    /// A proxy that balances load.
    Balancer,
}

/// How hosts reach package sources and registries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Where it listens, as a URL.
    pub endpoint: String,
    /// What is reached without it, as the programs on a host read it.
    pub except: Vec<String>,
}

impl Recipe {
    /// What a host that followed it tells.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_survives_being_told_and_read() {
        let print = Fingerprint::of_text("x");
        assert_eq!(print.as_str(), "2d711642b726b044");
        assert_eq!(print.to_string().parse(), Ok(print));
        assert!("2d711642b726b04G".parse::<Fingerprint>().is_err());
    }

    #[test]
    fn another_wish_has_another_fingerprint() {
        let recipe = |purpose| Recipe {
            purpose,
            proxy: None,
            playbooks: Vec::new(),
        };
        assert_ne!(
            recipe(Purpose::Node).fingerprint(),
            recipe(Purpose::Balancer).fingerprint()
        );
        let playing = |text: &str| Recipe {
            playbooks: vec![Playbook {
                name: "tune".parse().unwrap(),
                text: text.to_owned(),
            }],
            ..recipe(Purpose::Node)
        };
        assert_ne!(playing("- a").fingerprint(), playing("- b").fingerprint());
    }

    #[test]
    fn what_is_played_after_joining_is_a_change_to_the_machines_that_were_there() {
        let made = |count| BTreeMap::from([("pool".parse().unwrap(), count)]);
        let playing = |text: &str| Playbooks {
            after_joining: vec![Playbook {
                name: "label".parse().unwrap(),
                text: text.to_owned(),
            }],
            ..Playbooks::default()
        };
        let first = playing("- a").declared_after(&Playbooks::default(), &made(0));
        assert_eq!(first.made_before, made(0));
        let same = playing("- a").declared_after(&first, &made(3));
        assert_eq!(same, first);
        let other = playing("- b").declared_after(&same, &made(3));
        assert_eq!(other.made_before, made(3));
    }

    #[test]
    fn a_recipe_without_playbooks_is_the_one_from_before_there_were_any() {
        let stored = r#"{"purpose":"node"}"#;
        let read: Recipe = serde_json::from_str(stored).unwrap();
        assert_eq!(read.fingerprint(), Fingerprint::of_text(stored));
    }
}
