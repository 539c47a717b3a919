//! What all handles of one sandbox share: its directory, its network, who has which address.

use super::ground::{self, is_mounted, locked, plain, prepared, takes_overlay};
use super::network::{Lan, cable, digest};
use super::record::{Process, Record, unwritten};
use super::rootfs;
use super::shared::{Laid, swept};
use super::{Level, Order, Settings, disk, enter, start};
use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

/// How many hosts begin at once: more would only slow each other down.
const BEGINNING: usize = 8;

/// One host, or the place of one that is being made.
pub(super) struct Slot {
    /// What its directory and devices are called.
    pub(super) key: String,
    /// Where it answers.
    pub(super) address: Ipv4Addr,
    /// Who works on it works alone.
    pub(super) gate: tokio::sync::Mutex<()>,
    record: Mutex<Option<Record>>,
}

impl Slot {
    fn new(key: String, address: Ipv4Addr, record: Option<Record>) -> Arc<Self> {
        Arc::new(Self {
            key,
            address,
            gate: tokio::sync::Mutex::default(),
            record: Mutex::new(record),
        })
    }

    /// What is known of the host, once it is made.
    pub(super) fn record(&self) -> Option<Record> {
        held(&self.record).clone()
    }

    pub(super) fn set(&self, record: Option<Record>) {
        *held(&self.record) = record;
    }
}

/// What all handles of a sandbox share.
pub(super) struct Inner {
    /// Its network.
    pub(super) lan: Lan,
    /// Who has a place in it, by the machine's id.
    pub(super) slots: Mutex<BTreeMap<String, Arc<Slot>>>,
    /// Lets only some hosts begin at once.
    pub(super) turns: Semaphore,
    /// Where everything is.
    pub(super) dir: PathBuf,
    /// How it is to be.
    pub(super) settings: Settings,
    in_memory: bool,
    trees: [OnceCell<PathBuf>; 2],
    /// What hosts share is laid for the first and taken away with the last.
    pub(super) laid: tokio::sync::Mutex<Laid>,
    /// While it is open our hosts live, where they are to end with us.
    pub(super) guard: Mutex<Option<ChildStdin>>,
    /// Nobody else has the sandbox open while we hold it.
    pub(super) lock: File,
}

/// Takes a lock; a panic elsewhere leaves nothing half-done under ours.
pub(super) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Opens a sandbox: adopts what lives, sweeps what a killed attempt left.
    pub(super) async fn open(settings: Settings) -> Result<Self, Error> {
        if !enter::is_root() {
            let what = "opening a sandbox: this process is not root of its namespaces";
            return Err(Error::new(Kind::NoSandbox, what));
        }
        let dir = prepared(&settings.dir)?;
        let lock = locked(&dir).await?;
        let inner = Self {
            lan: Lan::new(&dir, settings.subnet),
            slots: Mutex::default(),
            turns: Semaphore::new(BEGINNING),
            in_memory: !takes_overlay(&dir).await?,
            dir,
            settings,
            trees: [OnceCell::new(), OnceCell::new()],
            laid: tokio::sync::Mutex::new(Laid::Partly),
            guard: Mutex::new(None),
            lock,
        };
        inner.take_over().await?;
        Ok(inner)
    }

    /// The directory of a host.
    pub(super) fn directory(&self, key: &str) -> PathBuf {
        self.dir.join("hosts").join(key)
    }

    /// The file of a program.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join("programs").join(name)
    }

    /// The host's first process, if it runs.
    pub(super) fn process(&self, key: &str) -> Option<Process> {
        Process::recorded(&self.directory(key).join("init"))
    }

    /// The directories of hosts that are there, by their keys; half-made ones have no record.
    pub(super) fn found(&self) -> Result<Vec<(String, Option<Record>)>, Error> {
        let hosts = self.dir.join("hosts");
        let entries = match std::fs::read_dir(&hosts) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| unwritten(&hosts, &error))?,
        };
        let looked = entries.flatten().map(|entry| {
            let key = entry.file_name().to_string_lossy().into_owned();
            let whole = Record::read(&entry.path()).filter(|record| self.is_whole(&key, record));
            (key, whole)
        });
        Ok(looked.collect())
    }

    /// Takes living hosts on, and removes half-made ones.
    pub(super) async fn adopt(&self, found: Vec<(String, Option<Record>)>) -> Result<(), Error> {
        let links = self.lan.links().await?;
        let mut sweeps = JoinSet::new();
        for (key, whole) in found {
            let Some(record) = whole else {
                sweeps.spawn(self.ending("remove", &key));
                continue;
            };
            if !self
                .lan
                .subnet
                .hosts()
                .any(|address| address == record.address)
            {
                let (name, address, subnet) = (&record.name, record.address, self.lan.subnet);
                let what = format!("{subnet} for sandbox hosts: {name} has {address} already");
                return Err(Error::new(Kind::SubnetTaken, what));
            }
            // A host whose cable ended in a network that is no more can be reached by nobody.
            if self.process(&key).is_none() || !links.contains(&cable(&key)) {
                sweeps.spawn(self.ending("halt", &key));
            }
            let slot = Slot::new(key, record.address, Some(record.clone()));
            held(&self.slots).insert(record.id, slot);
        }
        swept(sweeps).await
    }

    /// A disk in memory is gone when the machine was restarted, and the host with it.
    fn is_whole(&self, key: &str, record: &Record) -> bool {
        let disk = self.directory(key).join("disk");
        key == self.key(&record.id) && (!record.in_memory || is_mounted(&disk))
    }

    /// Cuts a host's power (`halt`) or leaves nothing of it (`remove`).
    pub(super) fn ending(
        &self,
        wish: &'static str,
        key: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let mut command = tool::command("sh");
        command
            .arg(self.program("end.sh"))
            .arg(wish)
            .arg(self.directory(key))
            .arg(key);
        let key = key.to_owned();
        async move {
            let ended = tool::run(&mut command, "", SHORT).await;
            let failed = |said| {
                Error::new(
                    Kind::Failed,
                    format!("ending the sandbox host {key}: {said}"),
                )
            };
            ended.map(drop).map_err(failed)
        }
    }

    /// The place of a machine; it is given the lowest free address where it has none.
    pub(super) fn slot(&self, id: &str) -> Result<Arc<Slot>, Error> {
        let mut slots = held(&self.slots);
        if let Some(slot) = slots.get(id) {
            return Ok(Arc::clone(slot));
        }
        let taken: std::collections::BTreeSet<_> =
            slots.values().map(|slot| slot.address).collect();
        let mut free = self
            .lan
            .subnet
            .hosts()
            .filter(|address| *address != self.lan.gateway);
        let full = || {
            let what = format!(
                "an address for the sandbox host {id}: all of {} are taken",
                self.lan.subnet
            );
            Error::new(Kind::SubnetFull, what)
        };
        let address = free
            .find(|address| !taken.contains(address))
            .ok_or_else(full)?;
        let slot = Slot::new(self.key(id), address, None);
        slots.insert(id.to_owned(), Arc::clone(&slot));
        drop(slots);
        Ok(slot)
    }

    fn key(&self, id: &str) -> String {
        let dir = self.dir.as_os_str().as_encoded_bytes();
        format!("s{}", digest(&[dir, id.as_bytes()], 10))
    }

    /// Makes the disk of a host and records it; it is off then.
    pub(super) async fn make(&self, slot: &Slot, order: &Order) -> Result<Record, Error> {
        let directory = self.directory(&slot.key);
        if directory.exists() {
            self.ending("remove", &slot.key).await?;
        }
        let lower = self.tree(order.level).await?;
        let (private, host_key) = disk::host_key()?;
        let in_memory = self.in_memory || lower == Path::new("/");
        let record = Record {
            id: order.id.clone(),
            name: order.name.clone(),
            level: order.level,
            address: slot.address,
            host_key,
            authorized_key: order.authorized_key.clone(),
            lower,
            in_memory,
        };
        let store = directory.join("disk");
        for path in [&store, &directory.join("root")] {
            std::fs::create_dir_all(path).map_err(|error| unwritten(path, &error))?;
        }
        if in_memory {
            let mut command = tool::command("mount");
            command
                .args(["-t", "tmpfs", "-o", "mode=755", "slipway"])
                .arg(&store);
            let mounted = tool::run(&mut command, "", SHORT).await;
            mounted.map_err(|said| start::not_started(&record, &said))?;
        }
        disk::furnish(&store, &record, &self.lan, &private)?;
        record.write(&directory)?;
        slot.set(Some(record.clone()));
        Ok(record)
    }

    /// The files that the hosts of a level share.
    async fn tree(&self, level: Level) -> Result<PathBuf, Error> {
        let which = match level {
            Level::Lite => 0,
            Level::Systemd => {
                ground::fit_for_systemd(&self.dir)?;
                1
            }
        };
        let cache = self
            .settings
            .cache
            .clone()
            .unwrap_or_else(rootfs::default_cache);
        let found = async {
            let told = |line: &str| tracing::info!(level = level.as_str(), "{line}");
            let given = self.settings.rootfs.as_deref();
            let source = rootfs::source(given, level, &cache, &told).await?;
            let tree = rootfs::tree(&source, &cache, &told).await?;
            // The kernel is told the path among others, between commas and colons.
            plain(&tree).map(|()| tree)
        };
        self.trees[which].get_or_try_init(|| found).await.cloned()
    }
}
