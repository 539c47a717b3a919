//! Who lends machines and answers for names: what each can do, and what opens its account.

use crate::name::Name;
use crate::secret::SecretRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whose hands reach a provider's machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// The simulated world: machines that exist in memory.
    Simulated,
    /// This machine: hosts made of its own namespaces.
    Sandbox,
    /// Somebody else's machines, for money.
    #[serde(untagged)]
    Cloud(Cloud),
}

/// A provider that is paid for what it lends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cloud {
    /// Google Cloud.
    Gcp,
    /// Hetzner Cloud.
    Hetzner,
    /// Amazon Web Services.
    Aws,
    /// Oracle Cloud Infrastructure.
    Oci,
    /// Microsoft Azure.
    Azure,
    /// Cloudflare, for names alone.
    Cloudflare,
    /// A cloud that speaks `OpenStack`.
    Openstack,
    /// Exoscale.
    Exoscale,
    /// Cloudrift.
    Cloudrift,
    /// Verda.
    Verda,
    /// `OVHcloud`.
    Ovh,
}

/// One entry of the secret that opens an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// Whether the account cannot be opened without it.
    pub needed: bool,
    shape: Shape,
}

/// What a value must look like, as far as that can be told without asking anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Anything.
    Text,
    /// A document in JSON.
    Json,
    /// An address of the web.
    Url,
    /// So many characters.
    Long(usize),
    /// So many letters and digits.
    Alphanumeric(usize),
}

impl Provider {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let ours = [Self::Simulated, Self::Sandbox];
        ours.into_iter().chain(Cloud::ALL.map(Self::Cloud))
    }

    /// What manifests call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Sandbox => "sandbox",
            Self::Cloud(cloud) => cloud.as_str(),
        }
    }

    /// The one that manifests call so.
    pub fn named(word: &str) -> Option<Self> {
        Self::all().find(|provider| provider.as_str() == word)
    }

    /// Whether it lends machines.
    pub const fn lends(self) -> bool {
        match self {
            Self::Simulated | Self::Sandbox => true,
            Self::Cloud(cloud) => cloud.lends(),
        }
    }

    /// Whether it answers for names of DNS.
    pub const fn answers(self) -> bool {
        match self {
            Self::Simulated => true,
            Self::Sandbox => false,
            Self::Cloud(cloud) => cloud.answers(),
        }
    }

    /// Whether it lends machines cheaply that it may take back at any time.
    pub const fn lends_spot(self) -> bool {
        match self {
            Self::Simulated => true,
            Self::Sandbox => false,
            Self::Cloud(cloud) => cloud.lends_spot(),
        }
    }
}

impl Cloud {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Gcp,
        Self::Hetzner,
        Self::Aws,
        Self::Oci,
        Self::Azure,
        Self::Cloudflare,
        Self::Openstack,
        Self::Exoscale,
        Self::Cloudrift,
        Self::Verda,
        Self::Ovh,
    ];

    /// What manifests call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gcp => "gcp",
            Self::Hetzner => "hetzner",
            Self::Aws => "aws",
            Self::Oci => "oci",
            Self::Azure => "azure",
            Self::Cloudflare => "cloudflare",
            Self::Openstack => "openstack",
            Self::Exoscale => "exoscale",
            Self::Cloudrift => "cloudrift",
            Self::Verda => "verda",
            Self::Ovh => "ovh",
        }
    }

    const fn lends(self) -> bool {
        match self {
            Self::Cloudflare => false,
            Self::Gcp
            | Self::Hetzner
            | Self::Aws
            | Self::Oci
            | Self::Azure
            | Self::Openstack
            | Self::Exoscale
            | Self::Cloudrift
            | Self::Verda
            | Self::Ovh => true,
        }
    }

    const fn answers(self) -> bool {
        match self {
            Self::Gcp
            | Self::Hetzner
            | Self::Aws
            | Self::Oci
            | Self::Azure
            | Self::Cloudflare
            | Self::Exoscale
            | Self::Ovh => true,
            Self::Openstack | Self::Cloudrift | Self::Verda => false,
        }
    }

    const fn lends_spot(self) -> bool {
        match self {
            Self::Gcp | Self::Aws | Self::Azure | Self::Oci | Self::Verda => true,
            Self::Hetzner
            | Self::Cloudflare
            | Self::Openstack
            | Self::Exoscale
            | Self::Cloudrift
            | Self::Ovh => false,
        }
    }

    /// The entries of the secret that opens an account, in the order in which people read of them.
    pub const fn entries(self) -> &'static [Entry] {
        match self {
            Self::Gcp => const { &[needed("credentials", Shape::Json), text("gcpproject")] },
            Self::Hetzner => const { &[needed("credentials", Shape::Alphanumeric(64))] },
            Self::Aws => {
                const {
                    &[
                        needed("accesskey", Shape::Alphanumeric(20)),
                        needed("secretkey", Shape::Long(40)),
                    ]
                }
            }
            Self::Oci => {
                const {
                    &[
                        text("privatekey"),
                        text("keyfingerprint"),
                        text("tenancyocid"),
                        text("userocid"),
                        text("compartmentocid"),
                    ]
                }
            }
            Self::Azure => {
                const {
                    &[
                        text("subscriptionid"),
                        text("tenantid"),
                        text("clientid"),
                        text("clientsecret"),
                    ]
                }
            }
            Self::Cloudflare => const { &[text("apitoken"), text("accountid")] },
            Self::Openstack => {
                const {
                    &[
                        needed("authurl", Shape::Url),
                        text("domainid"),
                        text("projectid"),
                        text("applicationcredentialid"),
                        text("applicationcredentialsecret"),
                    ]
                }
            }
            Self::Exoscale => const { &[text("apikey"), text("apisecret")] },
            Self::Cloudrift => const { &[text("token"), optional("teamid", Shape::Text)] },
            Self::Verda => {
                const {
                    &[
                        text("clientid"),
                        text("clientsecret"),
                        optional("baseurl", Shape::Url),
                    ]
                }
            }
            Self::Ovh => {
                const {
                    &[
                        text("clientid"),
                        text("clientsecret"),
                        text("servicename"),
                        optional("endpoint", Shape::Text),
                    ]
                }
            }
        }
    }

    /// The entries of a secret without which an account cannot be opened.
    pub fn needed_of(self, secret: &Name) -> impl Iterator<Item = SecretRef> {
        let entries = self.entries().iter().filter(|entry| entry.needed);
        entries.map(|entry| SecretRef {
            name: secret.clone(),
            key: entry.name.parse().ok(),
        })
    }

    /// What is wrong with the entries of a secret that should open an account, each with the name
    /// of its entry and nothing of its value; none where nothing is. An entry that is not there is
    /// waited for, and is not wrong.
    pub fn faults(self, found: &BTreeMap<&str, &str>) -> Vec<String> {
        let judged = self.entries().iter().filter_map(|entry| {
            let name = entry.name;
            match found.get(name)?.trim() {
                "" if entry.needed => Some(format!("{name} is empty")),
                "" => None,
                value => entry
                    .shape
                    .fault(value)
                    .map(|why| format!("{name} is {why}")),
            }
        });
        judged.collect()
    }
}

const fn needed(name: &'static str, shape: Shape) -> Entry {
    Entry {
        name,
        needed: true,
        shape,
    }
}

const fn text(name: &'static str) -> Entry {
    needed(name, Shape::Text)
}

const fn optional(name: &'static str, shape: Shape) -> Entry {
    Entry {
        name,
        needed: false,
        shape,
    }
}

impl Shape {
    fn fault(self, value: &str) -> Option<String> {
        let count = value.chars().count();
        match self {
            Self::Text => None,
            Self::Json => {
                let read: Result<serde_json::Value, _> = serde_json::from_str(value);
                read.is_err().then(|| "no JSON".to_owned())
            }
            Self::Url => {
                let rest = value.split_once("://").filter(|(scheme, rest)| {
                    matches!(*scheme, "http" | "https")
                        && !rest.is_empty()
                        && !rest.starts_with('/')
                });
                let fits = rest.is_some() && !value.contains(char::is_whitespace);
                (!fits).then(|| "no address of the web, such as https://example.org".to_owned())
            }
            Self::Long(wanted) => (count != wanted)
                .then(|| format!("{count} characters long, and {wanted} were expected")),
            Self::Alphanumeric(wanted) => {
                let fits = count == wanted && value.chars().all(|c| c.is_ascii_alphanumeric());
                (!fits).then(|| format!("not {wanted} letters and digits"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn documents_name_each_by_its_word() {
        for provider in Provider::all() {
            let word = format!("\"{}\"", provider.as_str());
            assert_eq!(serde_json::to_string(&provider).unwrap(), word);
            assert_eq!(serde_json::from_str::<Provider>(&word).unwrap(), provider);
            assert_eq!(Provider::named(provider.as_str()), Some(provider));
        }
        assert_eq!(Provider::named("Hetzner"), None);
        assert!(serde_json::from_str::<Provider>("\"nobody\"").is_err());
    }

    #[test]
    fn what_opens_an_account_is_judged_without_telling_it() {
        let long = "x".repeat(64);
        let told = |cloud: Cloud, entries: &[(&str, &str)]| {
            let entries = entries.iter().copied().collect();
            cloud.faults(&entries).join("\n")
        };
        assert_eq!(told(Cloud::Hetzner, &[("credentials", &long)]), "");
        assert_eq!(
            told(Cloud::Hetzner, &[("credentials", &format!(" {long}\n"))]),
            ""
        );
        let wrong = [
            told(
                Cloud::Hetzner,
                &[("credentials", &long.replacen('x', "-", 1))],
            ),
            told(Cloud::Aws, &[("accesskey", "AKIA"), ("secretkey", "short")]),
            told(Cloud::Gcp, &[("credentials", "{")]),
            told(
                Cloud::Openstack,
                &[("authurl", "keystone.example.org:5000")],
            ),
            told(
                Cloud::Verda,
                &[
                    ("clientid", "a"),
                    ("clientsecret", "b"),
                    ("baseurl", "ftp://x"),
                ],
            ),
            told(
                Cloud::Ovh,
                &[("clientid", "a"), ("clientsecret", " "), ("endpoint", "")],
            ),
        ];
        expect![[r#"
            credentials is not 64 letters and digits
            --
            accesskey is not 20 letters and digits
            secretkey is 5 characters long, and 40 were expected
            --
            credentials is no JSON
            --
            authurl is no address of the web, such as https://example.org
            --
            baseurl is no address of the web, such as https://example.org
            --
            clientsecret is empty"#]]
        .assert_eq(&wrong.join("\n--\n"));
    }

    #[test]
    fn every_entry_can_be_set() {
        let secret: Name = "account".parse().unwrap();
        for cloud in Cloud::ALL {
            let needed: Vec<_> = cloud.needed_of(&secret).collect();
            assert!(!needed.is_empty() && needed.iter().all(|of| of.key.is_some()));
            for entry in cloud.entries() {
                assert!(
                    entry.name.parse::<crate::secret::EntryName>().is_ok(),
                    "{entry:?}"
                );
            }
        }
    }

    #[test]
    fn one_answers_for_names_alone_and_a_few_lend_for_a_while() {
        let without = Cloud::ALL.iter().filter(|cloud| !cloud.lends());
        let without: Vec<_> = without.map(|cloud| cloud.as_str()).collect();
        assert_eq!(without, ["cloudflare"]);
        let spot = Cloud::ALL.iter().filter(|cloud| cloud.lends_spot());
        let spot: Vec<_> = spot.map(|cloud| cloud.as_str()).collect();
        assert_eq!(spot, ["gcp", "aws", "oci", "azure", "verda"]);
        let silent = Cloud::ALL.iter().filter(|cloud| !cloud.answers());
        let silent: Vec<_> = silent.map(|cloud| cloud.as_str()).collect();
        assert_eq!(silent, ["openstack", "cloudrift", "verda"]);
    }
}
