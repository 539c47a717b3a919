//! Who is told what becomes of environments, and what they are told.
//!
//! A [`Target`] is somebody whom a project names in its settings. What opens the way to one, the
//! key that messages are signed with or an address that is itself a secret, is named by a
//! [`SecretRef`] and never stands here.

use super::EnvironmentName;
use super::link::Link;
use super::status::{Deed, Status};
use crate::id::{ActionId, EnvironmentId};
use crate::name::Name;
use crate::secret::SecretRef;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most targets of one project.
pub const TARGETS_MAX: usize = 20;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// An environment is on its way from one status to another.
    Pending,
    /// It runs as it should.
    Running,
    /// It does not, in whichever way.
    Failing,
    /// It rests.
    Archived,
    /// What it has stored could not be removed.
    CleanupFailed,
    /// It is no more.
    Gone,
    /// What was done to it did not do what it should.
    ActionFailed,
    /// It will not be up for much longer.
    ExpiresSoon,
    /// Nothing happened: somebody tries whether messages arrive.
    Test,
}

impl Occasion {
    /// Those that somebody may want to be told of.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Failing,
        Self::Archived,
        Self::CleanupFailed,
        Self::Gone,
        Self::ActionFailed,
        Self::ExpiresSoon,
    ];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Failing => "failing",
            Self::Archived => "archived",
            Self::CleanupFailed => "cleanup-failed",
            Self::Gone => "gone",
            Self::ActionFailed => "action-failed",
            Self::ExpiresSoon => "expires-soon",
            Self::Test => "test",
        }
    }

    /// What it is that an environment became this; none means that it is no more.
    pub const fn of(became: Option<Status>) -> Self {
        match became {
            Some(Status::CreatePending | Status::UpdatePending | Status::ArchivePending) => {
                Self::Pending
            }
            Some(Status::Running) => Self::Running,
            Some(Status::Failure(_)) => Self::Failing,
            Some(Status::Archived) => Self::Archived,
            Some(Status::CleanupFailed) => Self::CleanupFailed,
            None => Self::Gone,
        }
    }

    /// Whether those are told of it who do not say what they want to be told: all but what somebody
    /// asked for a moment ago, and sees anyway.
    pub const fn is_usual(self) -> bool {
        !matches!(self, Self::Pending | Self::Test)
    }
}

impl std::fmt::Display for Occasion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Occasion {
    type Err = UnknownOccasion;

    fn from_str(text: &str) -> Result<Self, UnknownOccasion> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownOccasion {
            found: text.to_owned(),
        })
    }
}

/// A word that is nothing to be told of.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{found}` is nothing to be told of; allowed are {}",
    Occasion::ALL.map(Occasion::as_str).join(", ")
)]
pub struct UnknownOccasion {
    /// What was given.
    pub found: String,
}

/// An address of the web that messages go to.
///
/// Holding one is the proof that it was checked: it names a host, and nobody in it who would have
/// to be kept secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Address(String);

/// Why a text is not such an address. What was given is not told: it may be a secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// Neither of the two.
    #[error("it must begin with `https://` or `http://`")]
    Scheme,
    /// Nobody is named.
    #[error("it names no host")]
    Host,
    /// A user, or a password.
    #[error("it must not name a user or a password, because it is shown to people")]
    Credentials,
    /// What no address has.
    #[error("it has blanks, `#`, or characters that are not plain ASCII")]
    Character,
    /// Longer than allowed.
    #[error("it has {len} characters, at most {} are allowed", Address::LEN_MAX)]
    TooLong {
        /// How many were given.
        len: usize,
    },
}

impl Address {
    /// The longest address.
    pub const LEN_MAX: usize = 2_048;

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.len() > Self::LEN_MAX {
            return Err(AddressError::TooLong { len: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('#') {
            return Err(AddressError::Character);
        }
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or(AddressError::Scheme)?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(AddressError::Credentials);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(AddressError::Host);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.0
    }
}

/// How somebody is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By a request with a signature.
    Webhook(Webhook),
    /// By a sentence to a channel of Slack, or of whoever takes the same: the address, which is a
    /// secret, because whoever knows it may write there.
    Slack(SecretRef),
}

/// Where a signed request goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// To whom.
    pub url: Address,
    /// What it is signed with.
    pub secret: SecretRef,
}

impl Way {
    /// The word of the public contract.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Slack(_) => "slack",
        }
    }

    /// What has to be opened for it.
    pub const fn secret(&self) -> &SecretRef {
        match self {
            Self::Webhook(webhook) => &webhook.secret,
            Self::Slack(secret) => secret,
        }
    }
}

/// Somebody who is told what becomes of environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What people call it.
    pub name: Name,
    /// How it is told.
    pub way: Way,
    /// What it is told of; nothing means all that is usual.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub events: BTreeSet<Occasion>,
    /// Only of environments with all of these labels, each with its value or with any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
}

impl Target {
    /// Whether it wants to be told of this.
    pub fn wants(&self, occasion: Occasion, labels: &BTreeMap<String, String>) -> bool {
        let event = if self.events.is_empty() {
            occasion.is_usual()
        } else {
            self.events.contains(&occasion)
        };
        let fits = |(label, value): (&String, &Option<String>)| {
            let found = labels.get(label);
            found.is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
        };
        event && self.labels.iter().all(fits)
    }
}

/// What somebody is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What it is about.
    pub occasion: Occasion,
    /// When that happened.
    pub at: Timestamp,
    /// Why, as one clause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// Which environment; none where somebody only tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<About>,
    /// What was done to it, where the message is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

/// An environment as it was when something happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Which, in which of its lives.
    pub id: EnvironmentId,
    /// What it is called.
    pub name: EnvironmentName,
    /// How it is; none where it is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How it was before; none where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Status>,
    /// Which version of the application it has, where that is no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// What it is found by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Where it is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Until when it may be up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What was done to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Which action.
    pub id: ActionId,
    /// What.
    pub deed: Deed,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_host_and_no_password() {
        for good in [
            "https://hooks.example.org/T/B?x=1",
            "http://[::1]:9/",
            "http://a",
        ] {
            assert_eq!(good.parse::<Address>().unwrap().as_str(), good);
        }
        let why = |text: &str| text.parse::<Address>().unwrap_err();
        assert_eq!(why("ftp://a"), AddressError::Scheme);
        assert_eq!(why("https:///x"), AddressError::Host);
        assert_eq!(why("https://:80/x"), AddressError::Host);
        assert_eq!(why("https://me:pw@a/x"), AddressError::Credentials);
        assert_eq!(why("https://a/x y"), AddressError::Character);
        assert_eq!(why("https://a/x#y"), AddressError::Character);
        let long = format!("https://a/{}", "x".repeat(Address::LEN_MAX));
        assert!(matches!(why(&long), AddressError::TooLong { .. }));
    }

    #[test]
    fn occasions_are_read_as_they_are_written() {
        for occasion in Occasion::ALL {
            assert_eq!(occasion.as_str().parse(), Ok(occasion));
            let text = format!("\"{occasion}\"");
            assert_eq!(serde_json::to_string(&occasion).unwrap(), text);
        }
        assert!("test".parse::<Occasion>().is_err(), "nobody waits for it");
    }
}
