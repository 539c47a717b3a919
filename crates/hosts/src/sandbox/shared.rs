//! What all hosts of a sandbox share: the bridge, the programs they are run with, the guard. It is
//! there while there is a host, and goes with the last one.

use super::Ending;
use super::ground;
use super::inner::{Inner, Slot, held};
use super::record::{Process, replace, unwritten};
use crate::error::{Error, Kind};
use crate::tool;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::task::JoinSet;

/// The programs that hosts are run with, as files for those that outlive us.
const PROGRAMS: [(&str, &str); 4] = [
    ("end.sh", include_str!("end.sh")),
    ("guard.sh", include_str!("guard.sh")),
    ("lite.sh", include_str!("lite.sh")),
    ("systemd.sh", include_str!("systemd.sh")),
];

/// Whether what hosts share is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Laid {
    /// Nothing of it is.
    Nothing,
    /// Some of it may be: somebody was killed, or failed in the middle.
    Partly,
    /// All of it is.
    Everything,
}

impl Inner {
    /// The place of a machine, on ground that stays laid as long as somebody holds the place.
    pub(super) async fn place(&self, id: &str) -> Result<Arc<Slot>, Error> {
        // Who takes the ground away holds the same lock, and looks whether anybody has a place.
        let mut laid = self.laid.lock().await;
        let placed = match self.lay(&mut laid).await {
            Ok(()) => self.slot(id),
            Err(error) => Err(error),
        };
        drop(laid);
        if placed.is_err() {
            drop(self.settle().await);
        }
        placed
    }

    /// Takes on the hosts of those who had the sandbox open before; where there are none, takes
    /// away what they left.
    pub(super) async fn take_over(&self) -> Result<(), Error> {
        let mut laid = self.laid.lock().await;
        let found = self.found()?;
        if found.iter().any(|(_, whole)| whole.is_some()) {
            self.lay(&mut laid).await?;
        } else if !found.is_empty() {
            self.programs()?;
        }
        drop(laid);
        self.adopt(found).await?;
        self.settle().await
    }

    /// Ends work on a place: what hosts shared goes with the last of them.
    pub(super) async fn leave<T>(
        &self,
        slot: Arc<Slot>,
        done: Result<T, Error>,
    ) -> Result<T, Error> {
        let there = slot.record().is_some();
        drop(slot);
        if there {
            return done;
        }
        let settled = self.settle().await;
        // The first error is why the second may have come.
        done.and_then(|done| settled.map(|()| done))
    }

    /// Takes away what hosts shared, if there is no host and nobody makes one.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        let mut laid = self.laid.lock().await;
        if *laid == Laid::Nothing || !self.empty() {
            return Ok(());
        }
        self.unlay(&mut laid).await
    }

    /// Takes it away in any case, with whoever keeps the namespaces for the next to enter.
    pub(super) async fn end(&self) -> Result<(), Error> {
        let mut laid = self.laid.lock().await;
        self.unlay(&mut laid).await?;
        drop(laid);
        let keeper = self.dir.join("keeper");
        if let Some(process) = Process::recorded(&keeper) {
            process.kill();
        }
        match std::fs::remove_file(&keeper) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(unwritten(&keeper, &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether no place holds a host or is worked on; places that a failed attempt left are freed.
    fn empty(&self) -> bool {
        let mut slots = held(&self.slots);
        let used = |slot: &Arc<Slot>| slot.record().is_some() || Arc::strong_count(slot) > 1;
        if slots.values().any(used) {
            return false;
        }
        slots.clear();
        true
    }

    /// Has the bridge, the programs and the guard there.
    async fn lay(&self, laid: &mut Laid) -> Result<(), Error> {
        if *laid == Laid::Everything {
            return Ok(());
        }
        *laid = Laid::Partly;
        ground::fit_for_many(&self.dir)?;
        self.lan.ensure().await?;
        self.programs()?;
        let hosts = self.dir.join("hosts");
        std::fs::create_dir_all(&hosts).map_err(|error| unwritten(&hosts, &error))?;
        match self.settings.ending {
            Ending::Stay => {}
            Ending::WithUs => self.guard()?,
        }
        *laid = Laid::Everything;
        Ok(())
    }

    fn programs(&self) -> Result<(), Error> {
        for (name, text) in PROGRAMS {
            let path = self.program(name);
            let above = path.parent().unwrap_or(&path);
            std::fs::create_dir_all(above).map_err(|error| unwritten(above, &error))?;
            replace(&path, text.as_bytes(), 0o600)?;
        }
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

    /// Takes away what all hosts shared, and what half-made ones left.
    async fn unlay(&self, laid: &mut Laid) -> Result<(), Error> {
        *laid = Laid::Partly;
        let mut sweeps = JoinSet::new();
        for (key, _) in self.found()? {
            sweeps.spawn(self.ending("remove", &key));
        }
        swept(sweeps).await?;
        self.lan.remove().await?;
        ground::give_back(&self.dir)?;
        for name in ["hosts", "programs"] {
            let path = self.dir.join(name);
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unwritten(&path, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        *laid = Laid::Nothing;
        Ok(())
    }
}

/// Waits until everything that was half-made is gone.
pub(super) async fn swept(mut sweeps: JoinSet<Result<(), Error>>) -> Result<(), Error> {
    while let Some(swept) = sweeps.join_next().await {
        let lost = |error| Error::new(Kind::Failed, format!("sweeping the sandbox: {error}"));
        swept.map_err(lost)??;
    }
    Ok(())
}
