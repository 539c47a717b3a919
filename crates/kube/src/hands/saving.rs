//! What etcd knows is saved: written on a host, brought here, sealed on its way, and kept.

use super::{Done, Kube, Trouble};
use crate::kubeadm;
use crate::snapshot::s3::{Keys, Limits, Store};
use crate::snapshot::seal::{self, Sealer};
use crate::snapshot::shelf::{Kept, Shelf};
use crate::snapshot::{Error, Kind};
use driver::{Context, Output};
use hosts::ssh::Pull;
use model::id::ClusterId;
use model::observed::Fact;
use model::sealed::Owner;
use model::secret::{EntryName, Secret};
use model::snapshot::{Destination, SnapshotId, SnapshotsFact, Taking};
use model::task::Task;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// The largest snapshot: etcd itself advises against more than 8 GiB.
const SIZE_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// How long a snapshot may take on its way from a host or to it.
pub(super) const WAY_MAX: Duration = Duration::from_mins(30);

/// How much of a snapshot is between the host and the shelf.
const ON_THE_WAY: usize = 1024 * 1024;

impl Kube {
    /// Saves what the member of etcd on a machine knows, and drops what is kept too long. One that
    /// this task has taken already is not taken again.
    pub(super) async fn save(
        &self,
        cx: &Context,
        task: &Task,
        taking: &Taking,
    ) -> Result<Done, Trouble> {
        let shelf = self.shelf(cx, &taking.to, task.cluster).await?;
        let (key, known) = self.snapshot_key(cx, task.cluster).await?;
        let sealer = Sealer::new(&key.value, task.cluster)?;
        let taken = shelf.list().await?;
        let taken = taken.into_iter().find(|kept| kept.by == task.id);
        match taken {
            Some(kept) if known && opens(&shelf, &sealer, &kept).await? => {
                cx.log(&format!("snapshot {} was taken already", kept.snapshot.id));
            }
            // Its key was never stored: nobody can open it.
            Some(kept) => {
                shelf.remove(&kept).await?;
                self.take(cx, task, taking, (&shelf, &sealer)).await?;
            }
            None => self.take(cx, task, taking, (&shelf, &sealer)).await?,
        }
        let kept = self.prune(cx, &shelf, taking).await?;
        let fact = Fact::Snapshots(SnapshotsFact {
            since: kept
                .first()
                .map_or(cx.now(), |first| first.snapshot.id.at()),
            kept: kept.into_iter().map(|kept| kept.snapshot).collect(),
            answered: taking.wish,
        });
        Ok((vec![(cx.now(), fact)], vec![key]))
    }

    async fn take(
        &self,
        cx: &Context,
        task: &Task,
        taking: &Taking,
        (shelf, sealer): (&Shelf, &Sealer),
    ) -> Result<(), Trouble> {
        // First of all: a place that cannot be written is known before anybody has worked.
        let mut coming = shelf.begin(task.id).await?;
        let at = cx.now();
        let report = self
            .visit(cx, task.cluster, &task.machine, &kubeadm::save())
            .await?;
        let last = report.tail.last().map_or("nothing more", String::as_str);
        let failed = |kind| {
            let name = &task.machine.name;
            Err(Error::new(kind, format!("could not save etcd on {name}: {last}")).into())
        };
        match report.fact("save") {
            Some("done") => {}
            Some("no-room") => return failed(Kind::NoRoom),
            Some("damaged") => return failed(Kind::Unverified),
            Some(_) | None => return failed(Kind::Silent),
        }
        let file = kubeadm::saved_file();
        let pull = Pull {
            path: &file,
            size_max: SIZE_MAX,
            limit: WAY_MAX,
        };
        // Sealed on its way: here it is never in clear but in these few pieces of memory.
        let (mut near, far) = tokio::io::duplex(ON_THE_WAY);
        let fetching = async {
            let hosts = &self.hosts;
            let fetched = hosts.fetch(cx, task.cluster, &task.machine, pull, &mut near);
            let fetched = fetched.await;
            // Who seals waits for the end, or is told that there is none.
            drop(near.shutdown().await);
            drop(near);
            fetched
        };
        let (fetched, sealed) = tokio::join!(fetching, sealer.seal(far, &mut coming.file));
        let cleared = self.forget(cx, task).await;
        sealed?;
        let (bytes, digest) = fetched?;
        cleared?;
        let id = SnapshotId::of(at, &digest.to_string()).map_err(|error| {
            let what = format!("the digest of the snapshot is none: {error}");
            Error::new(Kind::Unverified, what)
        })?;
        let told = (&id, taking.version, taking.before, task.id);
        shelf.keep(coming, told).await?;
        cx.log(&format!("snapshot {id} is kept: {bytes} bytes of etcd"));
        Ok(())
    }

    /// Removes what was written on the host, whatever became of it.
    async fn forget(&self, cx: &Context, task: &Task) -> Result<(), Trouble> {
        self.items(cx, task, &kubeadm::forget_saved()).await
    }

    /// Removes what is kept too long; answers what is left.
    async fn prune(
        &self,
        cx: &Context,
        shelf: &Shelf,
        taking: &Taking,
    ) -> Result<Vec<Kept>, Trouble> {
        let kept = shelf.list().await?;
        let snapshots: Vec<_> = kept.iter().map(|kept| kept.snapshot.clone()).collect();
        let gone = taking.keep.outlived(&snapshots, taking.guard, cx.now());
        let (gone, left): (Vec<_>, Vec<_>) = kept
            .into_iter()
            .partition(|kept| gone.contains(&kept.snapshot.id));
        for kept in gone {
            shelf.remove(&kept).await?;
            cx.log(&format!("snapshot {} is kept no longer", kept.snapshot.id));
        }
        Ok(left)
    }

    /// Where the snapshots of a cluster are kept, opened.
    pub(super) async fn shelf(
        &self,
        cx: &Context,
        to: &Destination,
        cluster: ClusterId,
    ) -> Result<Shelf, Trouble> {
        Ok(match to {
            Destination::Directory { name } => {
                Shelf::directory(&self.shelves, name.as_ref(), cluster)
            }
            Destination::S3(bucket) => {
                let keys = Keys {
                    access: cx.secret(&bucket.access_key).await?,
                    secret: cx.secret(&bucket.secret_key).await?,
                };
                let store = Store::new(bucket, keys, Limits::default(), cx)?;
                Shelf::bucket(&self.shelves, store, bucket.prefix.as_deref(), cluster)
            }
        })
    }

    /// The key of a cluster's snapshots, and whether it was stored already.
    pub(super) async fn snapshot_key(
        &self,
        cx: &Context,
        cluster: ClusterId,
    ) -> Result<(Output, bool), Trouble> {
        let owner = Owner::Cluster(cluster);
        let entry = EntryName::snapshot_key();
        let kept = cx.kept(&owner, &entry).await?;
        let known = kept.is_some();
        let value: Secret = match kept {
            Some(value) => value,
            None => seal::new_key()?,
        };
        let output = Output {
            owner,
            entry,
            value,
        };
        Ok((output, known))
    }
}

async fn opens(shelf: &Shelf, sealer: &Sealer, kept: &Kept) -> Result<bool, Error> {
    match shelf.open(kept).await {
        Ok(sealed) => sealer.knows(sealed).await,
        Err(error) if error.kind == Kind::Damaged => Ok(false),
        Err(error) => Err(error),
    }
}
