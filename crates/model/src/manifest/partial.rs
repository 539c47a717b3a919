//! What could be read of a manifest that has faults: to be judged with what there is, never to be stored.

use super::{Account, Cluster, Manifest, Pool};
use crate::fault::Doubt;
use crate::kubernetes::{Cni, ProxyMode};
use crate::name::Name;
use crate::network::Network;
use crate::version::Version;
use std::collections::BTreeMap;

/// A manifest with faults, as far as it could be read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Partial {
    /// What it is called, where that is a name: without it nobody knows which clusters are its own.
    pub name: Option<Name>,
    /// The namespace that was written beside it.
    pub namespace: Option<Name>,
    /// Those that were written beside secrets, each with its place.
    pub namespaces: Vec<(String, Name)>,
    /// Accounts that could be read.
    pub providers: BTreeMap<Name, Account>,
    /// Pools in which nothing is wrong, nor with who lends their machines.
    pub pools: BTreeMap<Name, Pool>,
    /// Its clusters, in the order in which they were written.
    pub clusters: Vec<Glimpse>,
    /// Whether there are no others, so that one which is not among them was taken out.
    pub is_all: bool,
    /// Pools that load balancers name.
    pub balancing: Vec<Name>,
    /// A manifest of its own: the clusters in which nothing is wrong, with all that they name.
    pub sound: Option<Manifest>,
    /// What only living clusters may have.
    pub doubts: Vec<Doubt>,
    /// Places of which something is said already.
    pub told: Vec<String>,
}

/// A cluster of a manifest with faults, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Its place in the list of clusters, for messages.
    pub position: usize,
    /// What it is called.
    pub name: Option<Name>,
    /// Which Kubernetes.
    pub version: Option<Version>,
    /// The private network its machines share.
    pub network: Option<Network>,
    /// The network of its pods.
    pub pods: Option<Network>,
    /// The network of its services.
    pub services: Option<Network>,
    /// Who connects its pods.
    pub cni: Option<Cni>,
    /// How its services are reached.
    pub proxy: Option<ProxyMode>,
    /// Pools whose machines run the control plane, as far as they could be read.
    pub control: Vec<Name>,
    /// Pools whose machines run workloads, as far as they could be read.
    pub compute: Vec<Name>,
}

impl Glimpse {
    /// A cluster that could be read whole.
    pub fn of(position: usize, cluster: &Cluster) -> Self {
        let of = &cluster.kubernetes;
        Self {
            position,
            name: Some(cluster.name.clone()),
            version: Some(cluster.version),
            network: Some(cluster.network),
            pods: Some(of.pods),
            services: Some(of.services),
            cni: Some(of.cni),
            proxy: Some(of.proxy),
            control: cluster.control.clone(),
            compute: cluster.compute.clone(),
        }
    }

    /// Where it says something, for messages.
    pub fn path(&self, field: &str) -> String {
        format!("spec.kubernetes.clusters[{}].{field}", self.position)
    }
}

impl Partial {
    /// Whether something is said already of a place, or of something within it.
    pub fn tells(&self, path: &str) -> bool {
        self.told.iter().any(|told| within(told, path))
    }

    /// The sound clusters, each with its place in the list.
    pub fn places(&self) -> Vec<usize> {
        let sound = self.sound.iter().flat_map(|of| &of.clusters);
        let place = |name: &Name| {
            let mut clusters = self.clusters.iter();
            clusters.find(|of| of.name.as_ref() == Some(name))
        };
        let places = sound.filter_map(|cluster| place(&cluster.name));
        places.map(|of| of.position).collect()
    }
}

/// Whether a path leads to a place, or to something within it.
pub(crate) fn within(path: &str, place: &str) -> bool {
    let rest = path.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || place.is_empty() || rest.starts_with(['.', '[']))
}
