//! Kubernetes as a cluster should have it, besides its version: what its pods and services are
//! called on the network, who connects them, and the one name of its API.

use crate::name::Name;
use crate::network::Network;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Where the API of every cluster listens on its machines.
pub const API_PORT: u16 = 6_443;

/// The prefix of each machine's part of the pods' network: room for 254 of them.
const POD_PREFIX: u8 = 24;

/// What is decided when a cluster is made, and stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    /// The addresses of pods.
    pub pods: Network,
    /// The addresses of services.
    pub services: Network,
    /// Who connects the pods.
    pub cni: Cni,
    /// How services find their pods.
    pub proxy: ProxyMode,
}

/// Who connects the pods of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cni {
    /// The mesh itself: every machine has a part of the network, and tunnels let it through. Needs
    /// no image.
    Routed,
    /// Flannel.
    Flannel,
    /// Calico.
    Calico,
    /// Cilium, which does without kube-proxy.
    Cilium,
}

/// How kube-proxy sends what comes to a service to its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyMode {
    /// By rules of iptables.
    Iptables,
    /// By rules of nftables.
    Nftables,
    /// By the kernel's virtual servers.
    Ipvs,
    /// Not at all: whoever connects the pods does it.
    None,
}

impl Cni {
    /// Every one, the default first.
    pub const ALL: [Self; 4] = [Self::Routed, Self::Flannel, Self::Calico, Self::Cilium];

    /// The word of manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::Flannel => "flannel",
            Self::Calico => "calico",
            Self::Cilium => "cilium",
        }
    }
}

impl ProxyMode {
    /// Every one, the default first.
    pub const ALL: [Self; 4] = [Self::Iptables, Self::Nftables, Self::Ipvs, Self::None];

    /// The word of manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Iptables => "iptables",
            Self::Nftables => "nftables",
            Self::Ipvs => "ipvs",
            Self::None => "none",
        }
    }
}

impl Default for Kubernetes {
    /// What a cluster has whose manifest says nothing of it.
    fn default() -> Self {
        Self {
            pods: Network::of([10, 244, 0, 0], 16),
            services: Network::of([10, 96, 0, 0], 12),
            cni: Cni::Routed,
            proxy: ProxyMode::Iptables,
        }
    }
}

impl Kubernetes {
    /// How many machines can have a part of the pods' network, where the mesh carries it.
    pub fn room(&self) -> Option<u32> {
        let parts = POD_PREFIX.saturating_sub(self.through_mesh()?.prefix());
        // The first part is that of no machine, as the first address is.
        Some((1_u32 << parts) - 1)
    }

    /// The network of all pods, where the mesh carries it.
    pub const fn through_mesh(&self) -> Option<Network> {
        match self.cni {
            Cni::Routed => Some(self.pods),
            // They have tunnels of their own, inside the mesh.
            Cni::Flannel | Cni::Calico | Cni::Cilium => None,
        }
    }

    /// The part of the pods' network that belongs to the machine at an address, where the mesh
    /// carries it.
    pub fn pods_at(&self, network: Network, address: Ipv4Addr) -> Option<Network> {
        self.through_mesh()?
            .part(POD_PREFIX, network.place(address)?)
    }
}

/// The one name of a cluster's API, on all its nodes and in its certificates: where it leads is
/// written on each node, so that the API can move and nothing else changes.
pub fn api_name(cluster: &Name) -> String {
    format!("api.{cluster}.slipway.internal")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn every_machine_has_a_part_of_the_pods_network_of_its_own() {
        let kubernetes = Kubernetes::default();
        let machines = network("10.8.0.0/24");
        let parts: Vec<_> = machines
            .hosts()
            .map(|address| kubernetes.pods_at(machines, address).unwrap())
            .collect();
        assert_eq!(parts[0], network("10.244.1.0/24"));
        assert_eq!(parts[253], network("10.244.254.0/24"));
        for pair in parts.windows(2) {
            assert!(!pair[0].overlaps(pair[1]) && pair[0].overlaps(kubernetes.pods));
        }
        assert_eq!(kubernetes.pods_at(machines, [10, 9, 0, 1].into()), None);
    }

    #[test]
    fn a_network_of_pods_has_room_for_so_many_machines() {
        let mut kubernetes = Kubernetes::default();
        assert_eq!(kubernetes.room(), Some(255));
        let large = network("10.8.0.0/20");
        assert_eq!(kubernetes.pods_at(large, [10, 8, 1, 0].into()), None);
        kubernetes.pods = network("10.128.0.0/12");
        assert_eq!(kubernetes.room(), Some(4095));
        let part = kubernetes.pods_at(large, [10, 8, 1, 0].into());
        assert_eq!(part, Some(network("10.129.0.0/24")));
        kubernetes.pods = network("10.128.0.0/28");
        assert_eq!(kubernetes.room(), Some(0));
    }

    #[test]
    fn who_has_tunnels_of_its_own_needs_no_part() {
        let kubernetes = Kubernetes {
            cni: Cni::Flannel,
            ..Kubernetes::default()
        };
        let part = kubernetes.pods_at(network("10.8.0.0/24"), [10, 8, 0, 1].into());
        assert_eq!(part, None);
    }
}
