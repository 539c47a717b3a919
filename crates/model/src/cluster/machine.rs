//! Machines of a cluster: which they are, what they do, and where they come from.

use super::Generation;
use crate::hardware::Hardware;
use crate::host::Purpose;
use crate::id::MachineId;
use crate::name::Name;
use crate::provider::Provider;
use crate::secret::SecretRef;
use crate::task::Kind;
use crate::templates::Templates;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// One machine as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Which machine, in which of its lives.
    pub id: MachineId,
    /// Its host name and the name of its node.
    pub name: Name,
    /// The pool it belongs to.
    pub pool: Name,
    /// What it does in the cluster.
    pub role: Role,
    /// Its place in the pool, counted from 1.
    pub ordinal: u32,
    /// How many machines the pool had made before this one.
    pub incarnation: u32,
    /// Its address in the cluster's private network.
    pub address: Ipv4Addr,
    /// The load balancer that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<Name>,
    /// Where it comes from.
    pub origin: Origin,
}

impl Machine {
    /// Whether the firewall of a cloud stands between the world and the API on it. Nobody looks
    /// after one before machines that were given, or that are this machine's own.
    pub const fn has_firewall(&self) -> bool {
        let cloud = matches!(
            self.origin,
            Origin::Made {
                via: Provider::Cloud(_),
                ..
            }
        );
        cloud && matches!(self.role, Role::Control)
    }
}

/// What a machine does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane and a member of etcd.
    Control,
    /// Runs workloads.
    Compute,
    /// Takes what is sent to the cluster and passes it on; no node of Kubernetes.
    Balancer,
}

impl Role {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Compute => "compute",
            Self::Balancer => "balancer",
        }
    }

    /// Whether such a machine becomes a node of Kubernetes.
    pub const fn is_node(self) -> bool {
        match self {
            Self::Control | Self::Compute => true,
            Self::Balancer => false,
        }
    }

    /// What will run on such a machine.
    pub const fn purpose(self) -> Purpose {
        match self {
            Self::Control | Self::Compute => Purpose::Node,
            Self::Balancer => Purpose::Balancer,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a machine comes from, with all that its maker must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "most machines are made: the large one is the usual one"
)]
pub enum Origin {
    /// We create it.
    Made {
        /// The provider's name in the manifest.
        provider: Name,
        /// Which hands reach that provider.
        via: Provider,
        /// Where, in the provider's words.
        region: String,
        /// Where within the region.
        zone: Option<String>,
        /// Which size.
        server_type: String,
        /// Which operating system image.
        image: String,
        /// What else it is made with.
        #[serde(default, skip_serializing_if = "Hardware::is_usual")]
        hardware: Hardware,
        /// What opens the account with the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<SecretRef>,
    },
    /// It was there before us, and will be after us.
    Given {
        /// Where it answers.
        endpoint: Ipv4Addr,
        /// The port of its SSH server.
        ssh_port: u16,
        /// Whom to log in as.
        username: String,
        /// What opens the door: the entry of a secret that holds a private SSH key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<SecretRef>,
        /// The host through which it is reached, where not directly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jump: Option<Jump>,
    },
}

/// The size of a sandbox host that has little more than an SSH server.
pub const LITE: &str = "lite";

/// A host through which others are reached. It is passed through and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jump {
    /// Where it answers.
    pub endpoint: Ipv4Addr,
    /// The port of its SSH server.
    pub ssh_port: u16,
    /// Whom to log in as.
    pub username: String,
    /// What opens its door: the entry of a secret that holds a private SSH key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Which accepted change put it there: one that was taken out and put back may be another
    /// host, and is met for the first time again.
    pub since: Generation,
}

impl Origin {
    /// Whether the machine is a host that we enter: it is equipped, and joins the mesh. Those of
    /// the simulated world are not, and neither are those at addresses of documentation
    /// (RFC 5737), which lead there.
    pub const fn is_host(&self) -> bool {
        match self {
            Self::Made { via, .. } => match via {
                Provider::Simulated => false,
                Provider::Sandbox | Provider::Cloud(_) => true,
            },
            Self::Given { endpoint, .. } => !endpoint.is_documentation(),
        }
    }

    /// Whether it is a host on which nothing can run Kubernetes: then that is simulated.
    pub fn pretends(&self) -> bool {
        match self {
            Self::Made {
                via: Provider::Sandbox,
                server_type,
                ..
            } => server_type == LITE,
            Self::Made {
                via: Provider::Simulated | Provider::Cloud(_),
                ..
            }
            | Self::Given { .. } => false,
        }
    }

    /// Whether Kubernetes on such a machine is real.
    pub fn runs_kubernetes(&self) -> bool {
        self.is_host() && !self.pretends()
    }

    /// The secret that it names for itself.
    pub const fn secret(&self) -> Option<&SecretRef> {
        match self {
            Self::Made { secret, .. } | Self::Given { secret, .. } => secret.as_ref(),
        }
    }

    /// Whose hands reach it, where we make it.
    pub const fn via(&self) -> Option<Provider> {
        match self {
            Self::Made { via, .. } => Some(*via),
            Self::Given { .. } => None,
        }
    }

    /// Takes over the network of its pool, where it was made before pools had any.
    pub fn take_subnet(&mut self, of_pool: &Self) {
        if self.same_account(of_pool)
            && let Self::Made { hardware, .. } = self
            && let Self::Made {
                hardware: of_pool, ..
            } = of_pool
            && hardware.subnet.is_none()
        {
            hardware.subnet = of_pool.subnet;
        }
    }

    /// Whether both are made with the same account of a provider.
    pub fn same_account(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Made { provider, via, .. },
                Self::Made {
                    provider: there,
                    via: via_there,
                    ..
                },
            ) => provider == there && via == via_there,
            (Self::Made { .. } | Self::Given { .. }, _) => false,
        }
    }

    /// The host through which it is reached, where not directly.
    pub const fn jump(&self) -> Option<&Jump> {
        match self {
            Self::Given { jump, .. } => jump.as_ref(),
            Self::Made { .. } => None,
        }
    }

    /// Every secret that it names: its own, and that of the host in front of it. Where nobody said
    /// which entries are meant, a provider knows which it needs.
    pub fn secrets(&self) -> impl Iterator<Item = SecretRef> {
        let jump = self.jump().and_then(|jump| jump.secret.clone());
        let own = match self {
            Self::Made {
                via: Provider::Cloud(cloud),
                secret: Some(SecretRef { name, key: None }),
                ..
            } => cloud.needed_of(name).collect(),
            Self::Made { secret, .. } | Self::Given { secret, .. } => {
                secret.iter().cloned().collect::<Vec<_>>()
            }
        };
        let modules = self.templates().and_then(Templates::secret);
        own.into_iter().chain(jump).chain(modules)
    }

    /// Whether what was begun on `other` may go on: it opens the same account, or enters by the
    /// same way. All that is said of a given machine is how it is entered.
    pub fn entered_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Given { .. }, Self::Given { .. }) => self == other,
            (Self::Made { .. }, _) | (_, Self::Made { .. }) => {
                let opens = |of: &Self| {
                    let modules = of.templates().and_then(Templates::secret);
                    (of.secret().cloned(), modules)
                };
                opens(self) == opens(other)
            }
        }
    }

    /// Whether both make machines alike, whatever opens the account.
    pub fn made_like(&self, other: &Self) -> bool {
        *self == other.clone().opened_like(self)
    }

    /// The same with another secret.
    #[must_use]
    pub fn with_secret(mut self, named: Option<SecretRef>) -> Self {
        match &mut self {
            Self::Made { secret, .. } | Self::Given { secret, .. } => *secret = named,
        }
        self
    }

    /// The secrets without which work of this kind should not be begun.
    ///
    /// Providers are asked to make a machine, to open and shut its port, and to destroy it; in
    /// between they are not needed. A given machine is always entered with its key, and that of the host in front of
    /// it. A drain needs them too, because what follows does, and nothing is taken out of service
    /// to wait there. Only to bring it back into service none is needed, and to name it, which
    /// others do.
    pub fn secrets_for(&self, kind: Kind) -> impl Iterator<Item = SecretRef> {
        let needed = match self {
            Self::Made { .. } => matches!(
                kind,
                Kind::Create | Kind::Expose | Kind::Shut | Kind::Delete
            ),
            Self::Given { .. } => !matches!(kind, Kind::Uncordon | Kind::Name),
        };
        self.secrets().filter(move |_| needed)
    }
}
