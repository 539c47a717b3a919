//! How load balancers are called in the world.

use crate::id::{self, ClusterId};
use crate::name::Name;
use crate::provider::Provider;
use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// A name of DNS: labels with dots between them, in small letters.
///
/// Holding one is the proof that it was checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Domain(String);

/// Why a text is no [`Domain`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Longer than DNS allows.
    #[error("a name of DNS has at most {} characters, not {len}", Domain::LEN_MAX)]
    TooLong {
        /// How many characters there are.
        len: usize,
    },
    /// One of its labels cannot be.
    #[error("a name of DNS is made of labels with dots between them, and here a {0}")]
    Label(crate::name::Error),
}

impl Domain {
    /// The longest name (RFC 1035, section 2.3.4), without the dot of the root.
    pub const LEN_MAX: usize = 253;

    /// This name below another.
    pub fn within(&self, zone: &Self) -> Result<Self, Error> {
        format!("{self}.{zone}").parse()
    }

    /// Whether it is a name below another.
    pub(crate) fn is_below(&self, zone: &Self) -> bool {
        let labels = self.0.strip_suffix(&zone.0);
        labels.is_some_and(|labels| labels.ends_with('.'))
    }

    /// Whether a zone answers for it: it is the zone's own name, or below it.
    pub(crate) fn is_of(&self, zone: &Self) -> bool {
        self == zone || self.is_below(zone)
    }

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let len = text.chars().count();
        if len > Self::LEN_MAX {
            return Err(Error::TooLong { len });
        }
        for label in text.split('.') {
            Name::checked(label, Name::LEN_MAX).map_err(Error::Label)?;
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Domain {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Domain> for String {
    fn from(domain: Domain) -> Self {
        domain.0
    }
}

impl From<&Name> for Domain {
    fn from(label: &Name) -> Self {
        Self(label.as_str().to_owned())
    }
}

/// What a manifest says of the names of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The zone in which they are.
    pub zone: Domain,
    /// The provider that answers for the zone.
    pub provider: Name,
    /// What it is called there; absent means that we choose.
    pub hostname: Option<Name>,
    /// What else it is called there, in the order in which it was written.
    pub alternatives: Vec<Domain>,
}

/// The names of a load balancer, every choice made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// The zone in which they are.
    pub zone: Domain,
    /// The provider's name in the manifest.
    pub provider: Name,
    /// Which hands reach that provider.
    pub via: Provider,
    /// What opens the account with the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// What it is called in the zone.
    pub hostname: Name,
    /// The whole name by which it is reached.
    pub endpoint: Domain,
    /// Other whole names by which it is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Domain>,
}

/// One name that leads to machines, and who answers for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The whole name.
    pub name: Domain,
    /// The zone in which it is.
    pub zone: Domain,
    /// The provider's name in the manifest.
    pub provider: Name,
    /// Which hands reach that provider.
    pub via: Provider,
    /// What opens the account with the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
}

/// What one machine of a load balancer is called: these names lead to it, and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Naming {
    /// Where the machine answers.
    pub address: IpAddr,
    /// The names that lead there.
    pub names: Vec<Entry>,
    /// Names that led there, as far as that was seen, and lead there no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Entry>,
}

/// The names that lead to a machine. Whoever cannot ask for them does not say that there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesFact {
    /// Where they lead; nowhere, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Which ones.
    pub names: Vec<Entry>,
    /// Whoever was asked for them: what others answer for is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Provider>,
}

impl NamesFact {
    /// Whether somebody asks this provider for names.
    pub fn knows(&self, via: Provider) -> bool {
        self.asked.contains(&via)
    }

    /// Whether both say that the same names lead to the same place.
    pub fn leads_like(&self, other: &Self) -> bool {
        (&self.address, &self.names) == (&other.address, &other.names)
    }
}

impl Entry {
    /// Whether both are one name with one provider, whatever opens the account.
    pub fn is(&self, other: &Self) -> bool {
        (&self.name, &self.provider, self.via) == (&other.name, &other.provider, other.via)
    }

    /// The secrets that open the account with the provider. Where nobody said which entries are
    /// meant, the provider knows which it needs.
    fn secrets(&self) -> Vec<SecretRef> {
        match (self.via, &self.secret) {
            (Provider::Cloud(cloud), Some(SecretRef { name, key: None })) => {
                cloud.needed_of(name).collect()
            }
            (_, secret) => secret.iter().cloned().collect(),
        }
    }
}

impl Names {
    /// Every name, the one by which it is reached first.
    pub fn entries(&self) -> Vec<Entry> {
        let names = std::iter::once(&self.endpoint).chain(&self.alternatives);
        let entry = |name: &Domain| Entry {
            name: name.clone(),
            zone: self.zone.clone(),
            provider: self.provider.clone(),
            via: self.via,
            secret: self.secret.clone(),
        };
        names.map(entry).collect()
    }

    /// The secrets that open the account with the provider.
    pub fn secrets(&self) -> Vec<SecretRef> {
        let entries = self.entries();
        entries.first().map(Entry::secrets).unwrap_or_default()
    }
}

impl Naming {
    /// The secrets without which names cannot be made or taken back.
    pub fn secrets(&self) -> BTreeSet<SecretRef> {
        let entries = self.names.iter().chain(&self.former);
        entries.flat_map(Entry::secrets).collect()
    }

    /// What is seen when this was done.
    pub fn fact(&self) -> NamesFact {
        NamesFact {
            address: (!self.names.is_empty()).then_some(self.address),
            names: self.names.clone(),
            asked: self.asked(),
        }
    }

    /// Who is asked for these names, each once.
    fn asked(&self) -> Vec<Provider> {
        let mut asked = Vec::new();
        for entry in self.names.iter().chain(&self.former) {
            if !asked.contains(&entry.via) {
                asked.push(entry.via);
            }
        }
        asked
    }
}

/// How many characters a name has that we choose.
pub const CHOSEN_LEN: usize = 17;

/// The name of a load balancer to which nobody gave one: the same for as long as its cluster
/// lives, and nobody else's.
pub fn chosen(cluster: ClusterId, balancer: &Name, zone: &Domain) -> Name {
    let parent = cluster.to_string();
    let name = format!("{balancer}.{zone}");
    let part = |ordinal: u64| {
        id::print(id::derive(
            "hostname",
            id::Origin {
                parent: &parent,
                name: &name,
                ordinal,
                incarnation: 0,
            },
        ))
    };
    let text: String = (part(0) + &part(1)).chars().take(CHOSEN_LEN).collect();
    // Digits and small letters alone: always a name.
    Name::checked(&text, CHOSEN_LEN).unwrap_or_else(|_| balancer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> Domain {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_of_dns_is_made_of_labels() {
        assert_eq!(
            domain("www").within(&domain("example.org")),
            Ok(domain("www.example.org"))
        );
        for wrong in ["", ".", "example.", "Example.org", "a..b", "-a.org", "a_b"] {
            assert!(wrong.parse::<Domain>().is_err(), "{wrong}");
        }
        let long = vec!["a".repeat(63); 4].join(".");
        assert_eq!(long.parse::<Domain>(), Err(Error::TooLong { len: 255 }));
        let stored = serde_json::to_string(&domain("example.org")).unwrap();
        assert_eq!(stored, "\"example.org\"");
        assert!(serde_json::from_str::<Domain>("\"a b\"").is_err());
    }

    #[test]
    fn a_name_that_we_choose_stays_and_is_nobody_elses() {
        let cluster = |incarnation| {
            ClusterId::derive(id::Origin {
                parent: "default",
                name: "edge",
                ordinal: 0,
                incarnation,
            })
        };
        let (front, back): (Name, Name) = ("front".parse().unwrap(), "back".parse().unwrap());
        let (org, net) = (domain("example.org"), domain("example.net"));
        let first = chosen(cluster(0), &front, &org);
        assert_eq!(first.as_str().len(), CHOSEN_LEN);
        assert_eq!(first, chosen(cluster(0), &front, &org));
        for other in [
            chosen(cluster(1), &front, &org),
            chosen(cluster(0), &back, &org),
            chosen(cluster(0), &front, &net),
        ] {
            assert_ne!(first, other);
        }
    }
}
