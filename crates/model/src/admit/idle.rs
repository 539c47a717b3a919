//! What is let pass and has no effect: files that people have say it, so it is no fault, and nobody should
//! believe that it does something.

use super::balancers::Balancers;
use super::manifest::Declared;
use super::parts::{Names, Parts, Read};
use super::pools::{Kind, Stock};
use super::providers::Lender;
use crate::fault::Faults;
use crate::name::Name;
use std::collections::BTreeSet;

/// Notes what nobody uses.
pub(super) fn remark(
    providers: &Parts<Lender>,
    pools: &Parts<Stock>,
    clusters: &Parts<Declared>,
    balancers: &Balancers,
    faults: &mut Faults,
) {
    disks(pools, clusters, faults);
    accounts(providers, pools, balancers, faults);
    balancers.remark_idle(faults);
}

/// Data disks of machines that have none: those of control planes and load balancers.
fn disks(pools: &Parts<Stock>, clusters: &Parts<Declared>, faults: &mut Faults) {
    let lists = clusters.all.iter().map(|read| &read.value.compute);
    let compute: BTreeSet<&Name> = lists.flat_map(Names::iter).collect();
    for Read { path, value, title } in &pools.all {
        let disk = match &value.kind {
            Kind::Dynamic(made) => made.disk.filter(|size| *size > 0),
            Kind::Static(_) | Kind::Metal => None,
        };
        let used = title.name().is_some_and(|name| compute.contains(name));
        if let Some(size) = disk.filter(|_| !used) {
            let message = format!(
                "found {size}, which has no effect: only compute machines have a data disk, and this pool has none"
            );
            faults.remark(format!("{path}.storageDiskSize"), message);
        }
    }
}

/// Providers that lend nothing and answer for nobody.
fn accounts(
    providers: &Parts<Lender>,
    pools: &Parts<Stock>,
    balancers: &Balancers,
    faults: &mut Faults,
) {
    let lending = pools.all.iter().filter_map(|pool| match &pool.value.kind {
        Kind::Dynamic(made) => made.provider.as_ref(),
        Kind::Static(_) | Kind::Metal => None,
    });
    let used: BTreeSet<&Name> = lending.chain(balancers.answering_for()).collect();
    for provider in &providers.all {
        let Some(name) = provider.name().filter(|name| !used.contains(name)) else {
            continue;
        };
        let message =
            format!("found `{name}`, which has no effect: no pool and no load balancer names it");
        faults.remark(format!("{}.name", provider.path), message);
    }
}
