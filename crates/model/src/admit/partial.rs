//! What is left of a manifest that has faults: what could be read is judged with what there is, so that
//! one answer tells everything.
//!
//! What follows from a fault is not judged. A cluster is whole where nothing is wrong with it, with its
//! pools and with who lends their machines; of the others only single fields are compared.

use super::manifest::{Declared, Document};
use super::parts::{Names, Parts, Read};
use super::pools::{Stock, place};
use super::providers::Lender;
use crate::dns::Declared as Dns;
use crate::fault::Faults;
use crate::manifest::{Balancer, Cluster, Glimpse, Manifest, Partial, Pool};
use crate::name::Name;
use std::collections::BTreeMap;

/// Keeps of a document what could be read.
pub(super) fn of(document: Document, faults: &mut Faults) -> Partial {
    let Document {
        name,
        namespace,
        providers,
        groups,
        pools,
        clusters,
        balancers,
    } = document;
    let accounts = sound(&providers, faults, |lender: &Lender| lender.whole.clone());
    let lent = |pool: &Pool| match pool {
        Pool::Dynamic(pool) => accounts.contains_key(&pool.provider),
        Pool::Static(_) | Pool::Metal(_) => true,
    };
    let stocked = |stock: &Stock| stock.whole.clone().filter(lent);
    let pools = sound(&pools, faults, stocked);
    let whole = sound(&clusters, faults, |of: &Declared| of.whole.clone());
    let glimpses: Vec<_> = clusters.all.iter().map(glimpse).collect();
    let is_all = !clusters.is_lost() && glimpses.iter().all(|of| of.name.is_some());
    let balancing = balancers.pools().flat_map(Names::iter).cloned().collect();
    let serving = if faults.is_wrong("spec.loadBalancers") {
        Vec::new()
    } else {
        balancers.whole()
    };
    let groups = sound(&groups, faults, |budget| *budget);
    let has = |names: &[Name]| names.iter().all(|name| pools.contains_key(name));
    let whole = |of: &Glimpse| of.name.as_ref().and_then(|name| whole.get(name).cloned());
    let whole = glimpses.iter().filter_map(whole);
    let whole = whole.filter(|of: &Cluster| has(&of.control) && has(&of.compute));
    let whole: Vec<_> = whole.collect();
    let serves = |of: &Balancer| {
        let answers = |dns: &Dns| accounts.contains_key(&dns.provider);
        whole.iter().any(|cluster| cluster.name == of.cluster)
            && has(&of.pools)
            && of.dns.as_ref().is_none_or(answers)
    };
    let sound = name.clone().map(|name| Manifest {
        name,
        namespace: namespace.clone(),
        providers: accounts.clone(),
        pools: pools.clone(),
        groups,
        balancers: serving.into_iter().filter(serves).collect(),
        clusters: whole.clone(),
        doubts: Vec::new(),
        remarks: Vec::new(),
    });
    // Accounts are judged by what opens them, whatever else is wrong with them.
    let lenders = providers.all.into_iter();
    let lenders = lenders.filter_map(|read| Some((read.name()?.clone(), read.value.whole?)));
    Partial {
        name,
        namespace,
        namespaces: faults.take_namespaces(),
        providers: lenders.collect(),
        pools,
        clusters: glimpses,
        is_all,
        balancing,
        sound,
        doubts: faults.doubts(),
        told: faults.places(),
    }
}

/// Parts in which nothing is wrong, and of whose name there is no other.
fn sound<T, W>(
    parts: &Parts<T>,
    faults: &Faults,
    whole: impl Fn(&T) -> Option<W>,
) -> BTreeMap<Name, W> {
    let alone = |part: &&Read<T>| {
        let named = part.name().and_then(|name| parts.get(name));
        named.is_some_and(|named| named.path == part.path) && !faults.is_wrong(&part.path)
    };
    let sound = parts.all.iter().filter(alone);
    let sound = sound.filter_map(|part| Some((part.name()?.clone(), whole(&part.value)?)));
    sound.collect()
}

fn glimpse(read: &Read<Declared>) -> Glimpse {
    let of = &read.value;
    Glimpse {
        position: place(&read.path).unwrap_or_default(),
        name: read.name().cloned(),
        version: of.version,
        network: of.network,
        pods: of.kubernetes.pods,
        services: of.kubernetes.services,
        cni: of.kubernetes.cni,
        proxy: of.kubernetes.proxy,
        control: of.control.whole(),
        compute: of.compute.whole(),
    }
}
