//! Secrets on their way to drivers and back: opened for a task, sealed before the record.

use driver::{Keeping, Open, Opening, Output, Unopened};
use model::endpoint::Endpoint;
use model::name::Name;
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret, SecretRef};
use std::sync::Arc;
use store::{Actor, SealedRow, Store};
use vault::{OnlyEntry, Vault};

/// Opens the secrets of one project, for somebody whose name is written down.
pub(crate) struct Opener {
    pub(crate) store: Store,
    pub(crate) vault: Vault,
    pub(crate) project: Name,
    pub(crate) actor: Actor,
}

/// Opens the secrets of one project outside of any task, for somebody whose name is written
/// down.
pub fn opener(store: Store, vault: Vault, project: Name, actor: Actor) -> Arc<dyn Open> {
    Arc::new(Opener {
        store,
        vault,
        project,
        actor,
    })
}

/// Opens what somebody is about to be given, and else what is stored.
pub fn given(
    owner: Owner,
    fresh: Arc<Vec<(EntryName, Secret)>>,
    stored: Arc<dyn Open>,
) -> Arc<dyn Open> {
    Arc::new(Given {
        owner,
        fresh,
        stored,
    })
}

struct Given {
    owner: Owner,
    fresh: Arc<Vec<(EntryName, Secret)>>,
    stored: Arc<dyn Open>,
}

impl Open for Given {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        self.stored.open(secret)
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        let fresh = self.fresh.iter().find(|(of, _)| of == entry);
        match fresh.filter(|_| *owner == self.owner) {
            Some((_, value)) => {
                let value = Secret::from(value.expose().to_vec());
                Box::pin(std::future::ready(Ok(Some(value))))
            }
            None => self.stored.kept(owner, entry),
        }
    }

    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        self.stored.kubeconfig(cluster)
    }
}

impl Opener {
    async fn opened(&self, secret: &SecretRef) -> Result<Secret, Unopened> {
        let entry = match &secret.key {
            Some(key) => key.clone(),
            None => self.only_entry(secret).await?,
        };
        let place = Place {
            project: self.project.clone(),
            owner: Owner::Secret(secret.name.clone()),
            entry: entry.clone(),
        };
        let opened = self.vault.open(&place, &self.actor).await;
        let opened = opened.map_err(|error| failed(&format!("secret {secret}"), &error))?;
        opened.ok_or_else(|| unset(secret, entry.as_str()))
    }

    /// The entry that is meant where none is named.
    async fn only_entry(&self, secret: &SecretRef) -> Result<EntryName, Unopened> {
        let found = self.vault.only_entry(&self.project, &secret.name).await;
        match found.map_err(|error| failed(&format!("secret {secret}"), &error))? {
            OnlyEntry::One(entry) => Ok(entry),
            OnlyEntry::None => Err(unset(secret, "KEY")),
            OnlyEntry::Several => Err(Unopened::Stuck(driver::Error {
                attempted: format!(
                    "secret {} has several entries, and none is named",
                    secret.name
                ),
                hint: "name the entry with `key` in the secretRef of the manifest".to_owned(),
            })),
        }
    }
}

impl Opener {
    /// The kubeconfig of a cluster, asking where its API is now.
    async fn led(&self, cluster: &Name) -> Result<Secret, Unopened> {
        let unread = |error: store::Error| {
            Unopened::Retry(driver::Error {
                attempted: format!("could not read of cluster {cluster}: {error}"),
                hint: "tries again by itself".to_owned(),
            })
        };
        let none = |why: &str| {
            Unopened::Retry(driver::Error {
                attempted: format!("could not learn the way to cluster {cluster}: {why}"),
                hint: format!(
                    "goes on by itself when it is there; see `slipway why cluster {cluster}`"
                ),
            })
        };
        let found = self.store.cluster(&self.project, cluster).await;
        let row = found.map_err(unread)?;
        let row = row.ok_or_else(|| none("there is no such cluster"))?;
        let view = self.store.cluster_view(row.id).await.map_err(unread)?;
        let view = view.ok_or_else(|| none("there is no such cluster"))?;
        let (owner, entry) = (Owner::Cluster(row.id), EntryName::kubeconfig());
        let kept = self.kept(&owner, &entry).await?;
        let kept = kept.ok_or_else(|| none("it has no kubeconfig yet"))?;
        let endpoint = Endpoint::of(&view.desired, &view.observed);
        let given = endpoint.given_out(kept);
        given.map_err(|_no_address| none("nobody knows where its API answers"))
    }
}

impl Open for Opener {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        Box::pin(self.opened(secret))
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        Box::pin(async move {
            let place = Place {
                project: self.project.clone(),
                owner: owner.clone(),
                entry: entry.clone(),
            };
            let kept = self.vault.open(&place, &self.actor).await;
            kept.map_err(|error| failed(&format!("{entry} of {owner}"), &error))
        })
    }

    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        Box::pin(self.led(cluster))
    }
}

/// Nobody has set it, or somebody removed it since: it goes on by itself when it is set.
fn unset(secret: &SecretRef, entry: &str) -> Unopened {
    Unopened::Retry(driver::Error {
        attempted: format!("secret {secret} is not set"),
        hint: format!("run `slipway secret set {} {entry}`", secret.name),
    })
}

fn failed(what: &str, error: &vault::Error) -> Unopened {
    let told = driver::Error {
        attempted: format!("could not open {what}: {error} ({})", error.code()),
        hint: error.hint().into_owned(),
    };
    if error.is_passing() {
        Unopened::Retry(told)
    } else {
        Unopened::Stuck(told)
    }
}

/// Seals what came of a task of this project; with keys that were read afresh, if the store
/// has refused those that are known.
pub(crate) async fn seal(
    vault: &Vault,
    project: &Name,
    outputs: &[Output],
    stale: bool,
) -> Result<Vec<SealedRow>, vault::Error> {
    if stale {
        vault.refresh().await?;
    }
    let mut rows = Vec::with_capacity(outputs.len());
    for Output {
        owner,
        entry,
        value,
    } in outputs
    {
        let place = Place {
            project: project.clone(),
            owner: owner.clone(),
            entry: entry.clone(),
        };
        let sealed = vault.seal(&place, value).await?;
        rows.push(SealedRow { place, sealed });
    }
    Ok(rows)
}
