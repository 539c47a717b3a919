//! Who needs a secret: clusters whose machines could not even be removed without it.

use crate::Store;
use crate::body::Tx;
use crate::clusters::{self, ClusterView};
use crate::error::Error;
use model::cluster::{Desired, Machine};
use model::dns::Names;
use model::id::ClusterId;
use model::name::Name;
use model::secret::{EntryName, SecretRef};
use std::collections::BTreeSet;

/// A cluster that needs a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// What people call it.
    pub cluster: Name,
    /// In which of its lives.
    pub id: ClusterId,
    /// The entries that it needs; none where any will do.
    pub entries: BTreeSet<EntryName>,
    /// How many of its machines need it; none where it is for snapshots or names.
    pub machines: usize,
}

impl Store {
    /// The clusters of a project that need a secret, also those that are on their way out. One that this
    /// program cannot read is left out.
    pub async fn uses(&self, project: &Name, secret: &Name) -> Result<Vec<Use>, Error> {
        let (project, secret) = (project.clone(), secret.clone());
        self.runner
            .read(move |tx| uses(tx, &project, &secret))
            .await
    }
}

/// Every secret that a cluster and its machines name.
pub(crate) fn secrets(desired: &Desired) -> BTreeSet<SecretRef> {
    let machines = desired.all();
    let machines = machines.flat_map(|machine| machine.origin.secrets());
    machines.chain(besides(desired)).collect()
}

/// The secrets that a cluster names for its snapshots and its names.
fn besides(desired: &Desired) -> impl Iterator<Item = SecretRef> {
    let backup = desired.etcd_backup.iter();
    let backup = backup.flat_map(|backup| backup.to.secrets()).cloned();
    let names = desired.balancers.iter();
    let names = names.filter_map(|balancer| balancer.dns.as_ref());
    backup.chain(names.flat_map(Names::secrets))
}

/// Rare, so that all clusters are looked at.
fn uses(tx: &mut dyn Tx, project: &Name, secret: &Name) -> Result<Vec<Use>, Error> {
    let rows = tx.query(
        "SELECT id FROM clusters WHERE project = $1 AND phase <> 'gone' ORDER BY name, incarnation",
        &[project.into()],
    )?;
    let mut found = Vec::new();
    for mut row in rows {
        match clusters::view(tx, row.take()?) {
            Ok(view) => found.extend(view.and_then(|view| used(&view, secret))),
            Err(error) if error.is_unreadable() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn used(view: &ClusterView, secret: &Name) -> Option<Use> {
    let of_this = |of: &SecretRef| of.name == *secret;
    let needs = |machine: &&Machine| {
        !view.is_gone(machine) && machine.origin.secrets().any(|of| of_this(&of))
    };
    let machines: Vec<_> = view.desired.all().filter(needs).collect();
    let named = machines.iter();
    let named = named.flat_map(|machine| machine.origin.secrets());
    let named: Vec<_> = named
        .chain(besides(&view.desired))
        .filter(of_this)
        .collect();
    (!named.is_empty()).then(|| Use {
        cluster: view.desired.name.clone(),
        id: view.desired.cluster,
        entries: named.into_iter().filter_map(|of| of.key).collect(),
        machines: machines.len(),
    })
}
