//! What all handles of one sandbox share: its directory, its network, who has which address.

use super::ground::{self, is_mounted, locked, plain, prepared, takes_overlay};
use super::network::{Lan, cable, digest};
use super::record::{Process, Record, replace, unwritten};
use super::rootfs;
use super::{Ending, Level, Order, Settings, disk, enter, start};
use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

/// How many hosts begin at once: more would only slow each other down.
const BEGINNING: usize = 8;

/// The programs that hosts are run with, as files for those that outlive us.
const PROGRAMS: [(&str, &str); 4] = [
    ("end.sh", include_str!("end.sh")),
    ("guard.sh", include_str!("guard.sh")),
    ("lite.sh", include_str!("lite.sh")),
    ("systemd.sh", include_str!("systemd.sh")),
];

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
    dir: PathBuf,
    settings: Settings,
    in_memory: bool,
    trees: [OnceCell<PathBuf>; 2],
    /// The network and the programs are laid out at first, and again after clearing.
    pub(super) laid: tokio::sync::Mutex<bool>,
    /// While it is open our hosts live, where they are to end with us.
    guard: Mutex<Option<ChildStdin>>,
    lock: File,
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
            laid: tokio::sync::Mutex::new(false),
            guard: Mutex::new(None),
            lock,
        };
        inner.lay().await?;
        inner.adopt().await?;
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

    /// Has the bridge, the programs and the guard there.
    pub(super) async fn lay(&self) -> Result<(), Error> {
        let mut laid = self.laid.lock().await;
        if *laid {
            return Ok(());
        }
        ground::fit_for_many(&self.dir)?;
        self.lan.ensure().await?;
        for (name, text) in PROGRAMS {
            let path = self.program(name);
            let above = path.parent().unwrap_or(&path);
            std::fs::create_dir_all(above).map_err(|error| unwritten(above, &error))?;
            replace(&path, text.as_bytes(), 0o600)?;
        }
        let hosts = self.dir.join("hosts");
        std::fs::create_dir_all(&hosts).map_err(|error| unwritten(&hosts, &error))?;
        match self.settings.ending {
            Ending::Stay => {}
            Ending::WithUs => self.guard()?,
        }
        *laid = true;
        drop(laid);
        Ok(())
    }

    /// Has somebody there who ends the hosts when we end. It holds our lock until it is done.
    fn guard(&self) -> Result<(), Error> {
        let mut guard = held(&self.guard);
        if guard.is_some() {
            return Ok(());
        }
        let failed = |error| unwritten(&self.dir, &error);
        let mut child = Command::new("setsid")
            .args(["--fork", "sh"])
            .arg(self.program("guard.sh"))
            .arg(&self.dir)
            .arg(&self.lan.bridge)
            .env("PATH", tool::path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(self.lock.try_clone().map_err(failed)?)
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        *guard = child.stdin.take();
        // The one that we started goes at once; the guard is its child.
        child.wait().map_err(failed)?;
        drop(guard);
        Ok(())
    }

    /// Looks at every directory of a host: living ones are taken on, half-made ones removed.
    async fn adopt(&self) -> Result<(), Error> {
        let links = self.lan.links().await?;
        let mut sweeps = JoinSet::new();
        let hosts = self.dir.join("hosts");
        let entries = std::fs::read_dir(&hosts).map_err(|error| unwritten(&hosts, &error))?;
        for entry in entries.flatten() {
            let key = entry.file_name().to_string_lossy().into_owned();
            let whole = Record::read(&entry.path()).filter(|record| self.is_whole(&key, record));
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
        while let Some(swept) = sweeps.join_next().await {
            let lost = |error| Error::new(Kind::Failed, format!("sweeping the sandbox: {error}"));
            swept.map_err(lost)??;
        }
        Ok(())
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

    /// Takes away what all hosts shared.
    pub(super) async fn unlay(&self) -> Result<(), Error> {
        let mut laid = self.laid.lock().await;
        *laid = false;
        self.lan.remove().await?;
        ground::give_back(&self.dir)?;
        let keeper = self.dir.join("keeper");
        if let Some(process) = Process::recorded(&keeper) {
            process.kill();
        }
        for name in ["keeper", "hosts", "programs"] {
            let path = self.dir.join(name);
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unwritten(&path, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        drop(laid);
        Ok(())
    }
}
