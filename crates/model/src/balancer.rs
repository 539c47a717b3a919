//! What a load balancer does with what it is sent.

use crate::host::Fingerprint;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Where a load balancer's own page and its figures are, on its address in the mesh.
pub const ADMIN_PORT: u16 = 65_533;

/// Where every load balancer accepts connections only to show that it lives: whoever keeps a
/// DNS name pointed at machines that answer asks here.
pub const HEALTH_PORT: u16 = 65_534;

/// Where the API server of Kubernetes listens.
pub const API_PORT: u32 = 6_443;

/// From here on ports are the load balancers' own.
pub const RESERVED_FROM: u32 = 64_512;

/// What one machine of a load balancer listens to, and where it sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// Its address in the mesh, where figures are read.
    pub address: Ipv4Addr,
    /// What it listens to, in the order of ports.
    pub listeners: Vec<Listener>,
}

/// One port, and who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// What people call it.
    pub role: Name,
    /// What is spoken.
    pub protocol: Protocol,
    /// Where it listens.
    pub port: u16,
    /// Where the targets listen.
    pub target_port: u16,
    /// The addresses of the targets in the mesh, in order.
    pub targets: Vec<Ipv4Addr>,
    /// Whether targets are told by the PROXY protocol who is calling.
    pub proxy_protocol: bool,
    /// Whether a caller is always sent to the same target.
    pub sticky: bool,
}

/// What is spoken on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// What a host tells of its load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BalanceFact {
    /// What it was told last and has in use.
    pub told: Fingerprint,
    /// For every role, how many of its targets answer.
    pub healthy: BTreeMap<Name, u32>,
}

impl Listener {
    /// Whether a target is told who is calling: where that was asked for and can be done.
    ///
    /// Datagrams carry no such header, and the API of a Kubernetes would not understand it.
    pub fn announces_caller(&self) -> bool {
        self.proxy_protocol && self.protocol == Protocol::Tcp && !self.is_api()
    }

    /// Whether its targets are the API of a Kubernetes, which can be asked whether it is ready.
    pub fn is_api(&self) -> bool {
        self.protocol == Protocol::Tcp && u32::from(self.target_port) == API_PORT
    }
}

impl Balance {
    /// What a host tells that was told this.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_announced_only_where_it_is_understood() {
        let announces = |protocol, target_port| {
            let listener = Listener {
                role: Name::default_project(),
                protocol,
                port: 80,
                target_port,
                targets: Vec::new(),
                proxy_protocol: true,
                sticky: false,
            };
            listener.announces_caller()
        };
        assert!(announces(Protocol::Tcp, 30_080));
        assert!(!announces(Protocol::Tcp, 6443));
        assert!(!announces(Protocol::Udp, 30_080));
    }
}
