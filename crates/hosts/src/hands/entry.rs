//! How one machine is entered for one task: where, as whom, with which key, and which host key is
//! expected.

use super::{HOST_KEY, Hosts, SSH_KEY, entry_name, given};
use crate::error::{Error, Kind};
use crate::ssh::{Door, Keys, Opening};
use driver::{Context, Unopened};
use model::cluster::{Machine, Origin};
use model::id::{ClusterId, MachineId};
use model::sealed::Owner;
use model::secret::SecretRef;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The host keys of machines that were entered, so that each is opened once.
#[derive(Default)]
pub(super) struct Pins(Mutex<BTreeMap<MachineId, String>>);

impl Pins {
    fn get(&self, machine: MachineId) -> Option<String> {
        let pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pins.get(&machine).cloned()
    }

    fn put(&self, machine: MachineId, key: &str) {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pins.insert(machine, key.to_owned());
    }

    pub(super) fn forget(&self, machine: MachineId) {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pins.remove(&machine);
    }
}

/// How one machine is entered.
pub(super) struct Entry<'a> {
    pub(super) door: Door,
    pub(super) machine: MachineId,
    cx: &'a Context,
    cluster: ClusterId,
    /// The secret with the key of a given machine.
    secret: Option<SecretRef>,
    made: bool,
    pins: &'a Pins,
    expected: Option<String>,
}

impl Entry<'_> {
    /// The host key that the machine has, once it was entered.
    pub(super) fn seen(&self) -> Option<String> {
        self.expected
            .clone()
            .or_else(|| self.pins.get(self.machine))
    }
}

impl Hosts {
    /// How a machine is entered now. One of the sandbox that is not there is not entered.
    pub(super) async fn entry<'a>(
        &'a self,
        cx: &'a Context,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Result<Entry<'a>, Error> {
        let (host, port, user, expected) = match &machine.origin {
            Origin::Made { .. } => {
                let (address, key) = self.whereabouts(machine).await?;
                (address, 22, "root".to_owned(), Some(key))
            }
            Origin::Given {
                endpoint,
                ssh_port,
                username,
                secret: _,
            } => {
                let expected = self.pinned(cx, machine).await?;
                (IpAddr::V4(*endpoint), *ssh_port, username.clone(), expected)
            }
        };
        Ok(Entry {
            door: Door {
                host,
                port,
                user,
                jump: None,
            },
            machine: machine.id,
            cx,
            cluster,
            secret: machine.origin.secret().cloned(),
            made: given(machine).is_none(),
            pins: &self.inner.pins,
            expected,
        })
    }

    /// The host key that was seen when the machine was first entered.
    async fn pinned(&self, cx: &Context, machine: &Machine) -> Result<Option<String>, Error> {
        if let Some(key) = self.inner.pins.get(machine.id) {
            return Ok(Some(key));
        }
        let (owner, entry) = (Owner::Machine(machine.id), entry_name(HOST_KEY)?);
        let kept = cx.kept(&owner, &entry).await.map_err(unopened)?;
        let text = |kept: model::secret::Secret| String::from_utf8(kept.expose().to_vec()).ok();
        let key = kept.and_then(text);
        if let Some(key) = &key {
            self.inner.pins.put(machine.id, key);
        }
        Ok(key)
    }
}

impl Keys for Entry<'_> {
    fn scope(&self) -> String {
        match &self.secret {
            Some(secret) if !self.made => format!("{}/{secret}", self.cluster),
            Some(_) | None => self.cluster.to_string(),
        }
    }

    fn key<'a>(&'a self, door: &'a Door) -> Opening<'a> {
        Box::pin(async move {
            if let Some(secret) = self.secret.as_ref().filter(|_| !self.made) {
                return self.cx.secret(secret).await.map_err(unopened);
            }
            let (owner, entry) = (Owner::Cluster(self.cluster), entry_name(SSH_KEY)?);
            let kept = self.cx.kept(&owner, &entry).await.map_err(unopened)?;
            kept.ok_or_else(|| Error::new(Kind::NoKey, format!("there is no key for {door}")))
        })
    }

    fn pinned(&self, _: &Door) -> Option<String> {
        self.expected
            .clone()
            .or_else(|| self.pins.get(self.machine))
    }

    fn first_seen(&self, _: &Door, key: &str) {
        self.pins.put(self.machine, key);
    }
}

/// A key that could not be opened, as an error of hosts.
pub(super) fn unopened(unopened: Unopened) -> Error {
    let (kind, error) = match unopened {
        Unopened::Retry(error) => (Kind::KeyAway, error),
        Unopened::Stuck(error) => (Kind::NoKey, error),
    };
    Error::new(kind, format!("{}: {}", error.attempted, error.hint))
}
