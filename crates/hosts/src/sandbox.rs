//! Machines made of Linux namespaces: each with a network, files and processes of its own, reached
//! by SSH like any other.
//!
//! A sandbox is a directory: what is there is the truth, and whoever opens it goes on where the last
//! one was killed. Hosts outlive us, unless [`Ending::WithUs`] is wished. There is one case to know:
//! this process is root of its user namespace and may make network devices; [`entering`] is for
//! those who are not.

mod disk;
mod enter;
mod ground;
mod inner;
mod network;
mod record;
mod rootfs;
mod shared;
mod sources;
mod start;

pub use enter::{Means, entered, entering, inherited, means};
pub use ground::fits_systemd;
pub use rootfs::{Progress, default_cache, ensure_rootfs};

use crate::error::{Error, Kind};
use inner::{Inner, Slot, held};
use model::network::Network;
use record::Record;
use serde::{Deserialize, Serialize};
use start::not_started;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;
use tokio::task::JoinSet;

/// How long a host may take to go down by itself before its power is cut.
const GOING_DOWN: Duration = Duration::from_mins(2);

/// How a sandbox is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where its hosts are kept; survives restarts.
    pub dir: PathBuf,
    /// The root filesystem of all hosts, an archive or a directory; one is built where none is given.
    pub rootfs: Option<PathBuf>,
    /// Where root filesystems are kept, if not at [`default_cache`].
    pub cache: Option<PathBuf>,
    /// The addresses of the hosts; the first is the machine's own.
    pub subnet: Network,
    /// What becomes of the hosts when we end.
    pub ending: Ending,
}

/// What becomes of hosts when the process ends that has them open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// They go on, and the next who opens the sandbox finds them.
    Stay,
    /// Nothing is left of them, even if we are killed.
    WithUs,
}

/// What runs in a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// An SSH server, and at boot every program in `/etc/slipway/boot.d`.
    Lite,
    /// systemd, and all that Kubernetes needs of a machine.
    Systemd,
}

impl Level {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lite => "lite",
            Self::Systemd => "systemd",
        }
    }
}

impl std::str::FromStr for Level {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let mut levels = [Self::Lite, Self::Systemd].into_iter();
        let found = levels.find(|level| level.as_str() == word);
        found.ok_or_else(|| {
            let what = format!("there are no sandbox hosts of type {word:?}");
            Error::new(Kind::NotStarted, what)
        })
    }
}

/// What all hosts are made of.
pub const IMAGE: &str = "debian-12";

/// A host that is wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The machine's id, by which it is known from then on.
    pub id: String,
    /// Its host name.
    pub name: String,
    /// What runs in it.
    pub level: Level,
    /// Who may log in as root: a public key as one line of OpenSSH's.
    pub authorized_key: String,
}

/// A host that is there and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Where it answers.
    pub address: Ipv4Addr,
    /// The public key of its SSH server, as one line of OpenSSH's.
    pub host_key: String,
}

/// A host as it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The machine's id.
    pub id: String,
    /// Its host name.
    pub name: String,
    /// What runs in it.
    pub level: Level,
    /// Where it answers.
    pub address: Ipv4Addr,
    /// The public key of its SSH server, as one line of OpenSSH's.
    pub host_key: String,
    /// Whether it runs.
    pub state: State,
    /// Whether it is cut off from the others.
    pub partitioned: bool,
}

/// Whether a host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Running,
    /// Its power is off; its disk is kept.
    Off,
}

/// A sandbox that is open. Clones are the same one.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("bridge", &self.inner.lan.bridge)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Opens a sandbox: adopts the hosts that live, and sweeps what a killed attempt left.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let inner = Arc::new(Inner::open(settings).await?);
        Ok(Self { inner })
    }

    /// Has a host there that runs and answers; one that is there already is taken as it is.
    pub async fn create(&self, order: &Order) -> Result<Made, Error> {
        let slot = self.inner.place(&order.id).await?;
        let made = self.made(&slot, order).await;
        self.inner.leave(slot, made).await
    }

    /// A host by its machine's id.
    #[expect(
        clippy::unused_async,
        reason = "where hosts are looked up is our own business"
    )]
    pub async fn find(&self, id: &str) -> Option<Seen> {
        let found = held(&self.inner.slots).get(id).and_then(known);
        found.map(|(key, record)| self.seen(&key, record))
    }

    /// All hosts, by their machines' ids.
    #[expect(
        clippy::unused_async,
        reason = "where hosts are looked up is our own business"
    )]
    pub async fn list(&self) -> Vec<Seen> {
        let found: Vec<_> = held(&self.inner.slots).values().filter_map(known).collect();
        let seen = found.into_iter();
        seen.map(|(key, record)| self.seen(&key, record)).collect()
    }

    /// Leaves nothing of a host, and with the last one nothing of what they shared; one that is not
    /// there is fine.
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let slot = held(&self.inner.slots).get(id).cloned();
        let Some(slot) = slot else {
            // The one before may have failed to take away what hosts shared.
            return self.inner.settle().await;
        };
        let deleted = self.deleted(id, &slot).await;
        self.inner.leave(slot, deleted).await
    }

    /// Cuts a host's power; its disk is kept.
    pub async fn power_off(&self, id: &str) -> Result<(), Error> {
        let slot = self.known(id)?;
        let off = async {
            let (_gate, _) = entered_alone(&slot).await?;
            self.inner.ending("halt", &slot.key).await
        };
        let off = off.await;
        self.inner.leave(slot, off).await
    }

    /// Has a host run again, and answer.
    pub async fn power_on(&self, id: &str) -> Result<(), Error> {
        let slot = self.known(id)?;
        let on = async {
            let (_gate, record) = entered_alone(&slot).await?;
            self.up(&slot, &record).await
        };
        let on = on.await;
        self.inner.leave(slot, on).await
    }

    /// Has a host go down and come back: in good order where systemd runs, by a power cut else.
    pub async fn reboot(&self, id: &str) -> Result<(), Error> {
        let slot = self.known(id)?;
        let back = self.rebooted(&slot).await;
        self.inner.leave(slot, back).await
    }

    /// Cuts a host off from the network, or connects it again.
    pub async fn partition(&self, id: &str, cut: bool) -> Result<(), Error> {
        let slot = self.known(id)?;
        let parted = self.partitioned(&slot, cut).await;
        self.inner.leave(slot, parted).await
    }

    /// Leaves nothing of any host, nor of what they shared.
    pub async fn clear(&self) -> Result<(), Error> {
        let ids: Vec<_> = held(&self.inner.slots).keys().cloned().collect();
        let mut all = JoinSet::new();
        for id in ids {
            let sandbox = self.clone();
            all.spawn(async move { sandbox.delete(&id).await });
        }
        while let Some(deleted) = all.join_next().await {
            let lost = |error| Error::new(Kind::Failed, format!("clearing the sandbox: {error}"));
            deleted.map_err(lost)??;
        }
        self.inner.end().await
    }

    async fn made(&self, slot: &Slot, order: &Order) -> Result<Made, Error> {
        let _gate = slot.gate.lock().await;
        let record = match slot.record() {
            Some(record) => self.admitted(slot, record, order).await?,
            None => self.inner.make(slot, order).await?,
        };
        self.up(slot, &record).await?;
        Ok(Made {
            address: record.address,
            host_key: record.host_key,
        })
    }

    async fn deleted(&self, id: &str, slot: &Arc<Slot>) -> Result<(), Error> {
        let _gate = slot.gate.lock().await;
        self.inner.ending("remove", &slot.key).await?;
        slot.set(None);
        // Who waits for the gate meanwhile makes it anew, at the address it has.
        let mut slots = held(&self.inner.slots);
        if Arc::strong_count(slot) == 2 {
            slots.remove(id);
        }
        drop(slots);
        Ok(())
    }

    async fn rebooted(&self, slot: &Slot) -> Result<(), Error> {
        let (_gate, record) = entered_alone(slot).await?;
        let in_order = match record.level {
            Level::Lite => false,
            Level::Systemd => self.asked_to_reboot(slot).await,
        };
        if !in_order {
            self.inner.ending("halt", &slot.key).await?;
        }
        self.up(slot, &record).await
    }

    async fn partitioned(&self, slot: &Slot, cut: bool) -> Result<(), Error> {
        let (_gate, record) = entered_alone(slot).await?;
        let mark = self.inner.directory(&slot.key).join("partitioned");
        let marked = if cut {
            std::fs::write(&mark, "")
        } else {
            std::fs::remove_file(&mark)
        };
        match marked {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(not_started(&record, &error.to_string()));
            }
            Ok(()) | Err(_) => {}
        }
        if self.inner.process(&slot.key).is_some() {
            self.inner.lan.plug(&slot.key, !cut).await?;
        }
        Ok(())
    }

    /// Starts a host unless it runs, and waits until it answers; one that is cut off cannot.
    async fn up(&self, slot: &Slot, record: &Record) -> Result<(), Error> {
        let directory = self.inner.directory(&slot.key);
        let answers = async |process| {
            if directory.join("partitioned").exists() {
                return Ok(());
            }
            start::answers(&directory, record, process).await
        };
        if let Some(process) = self.inner.process(&slot.key) {
            let answered = answers(process).await;
            // One whose beginning was interrupted may still be ending when it is found.
            if answered.is_ok() || process.alive() {
                return answered;
            }
        }
        let closed = |_| not_started(record, "the sandbox is closed");
        let turn = self.inner.turns.acquire().await.map_err(closed)?;
        let process = start::start(&self.inner, &slot.key, record).await?;
        drop(turn);
        answers(process).await
    }

    /// Takes a host that is there as the answer to an order; only who may log in can have changed.
    async fn admitted(
        &self,
        slot: &Slot,
        mut record: Record,
        order: &Order,
    ) -> Result<Record, Error> {
        if record.authorized_key == order.authorized_key {
            return Ok(record);
        }
        record.authorized_key.clone_from(&order.authorized_key);
        let directory = self.inner.directory(&slot.key);
        if let Some(process) = self.inner.process(&slot.key) {
            start::authorize(process, &record).await?;
        } else {
            disk::authorize(&directory.join("disk"), &record)?;
        }
        record.write(&directory)?;
        slot.set(Some(record.clone()));
        Ok(record)
    }

    /// Asks systemd for a reboot and waits until it begins again; false where it does not.
    async fn asked_to_reboot(&self, slot: &Slot) -> bool {
        let Some(process) = self.inner.process(&slot.key) else {
            return false;
        };
        let Some(before) = start::leader(process) else {
            return false;
        };
        if !start::interrupt(before) {
            return false;
        }
        let again = async {
            while start::leader(process).is_none_or(|now| now == before) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(GOING_DOWN, again).await.is_ok()
    }

    fn known(&self, id: &str) -> Result<Arc<Slot>, Error> {
        let slot = held(&self.inner.slots).get(id).cloned();
        let known = slot.filter(|slot| slot.record().is_some());
        known.ok_or_else(|| absent(id))
    }

    fn seen(&self, key: &str, record: Record) -> Seen {
        let state = match self.inner.process(key) {
            Some(_) => State::Running,
            None => State::Off,
        };
        let partitioned = self.inner.directory(key).join("partitioned").exists();
        Seen {
            id: record.id,
            name: record.name,
            level: record.level,
            address: record.address,
            host_key: record.host_key,
            state,
            partitioned,
        }
    }
}

/// A host that is there. Who only looks holds no place: it would keep what hosts share.
fn known(slot: &Arc<Slot>) -> Option<(String, Record)> {
    slot.record().map(|record| (slot.key.clone(), record))
}

/// Has a host to oneself; it may have been deleted while we waited.
async fn entered_alone(slot: &Slot) -> Result<(MutexGuard<'_, ()>, Record), Error> {
    let gate = slot.gate.lock().await;
    let record = slot.record().ok_or_else(|| absent(&slot.key))?;
    Ok((gate, record))
}

fn absent(id: &str) -> Error {
    let what = format!("the sandbox host {id} is not there");
    Error::new(Kind::NoSuchHost, what)
}
