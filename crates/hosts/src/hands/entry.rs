//! How one machine is entered for one task: where, as whom, with which key, and which host key is
//! expected.

use super::{HOST_KEY, Hosts, JUMP_HOST_KEY, SSH_KEY, entry_name, given};
use crate::error::{Error, Kind};
use crate::playbook::Opened;
use crate::ssh::{Door, Keys, Opening};
use driver::{Context, Output, Unopened};
use model::cluster::{Jump, Machine, Origin};
use model::id::{ClusterId, MachineId};
use model::sealed::Owner;
use model::secret::SecretRef;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The host keys of machines that were entered and of the hosts in front of them, so that each
/// is opened once.
#[derive(Default)]
pub(super) struct Pins(Mutex<BTreeMap<MachineId, Pinned>>);

/// What is known of one machine.
#[derive(Default)]
struct Pinned {
    own: Option<String>,
    front: Option<FrontPin>,
}

/// The host key of the host in front of a machine.
#[derive(Clone)]
struct FrontPin {
    /// Whose it is; another jump host has another key.
    mark: String,
    key: String,
    /// Whether it was kept for us: one that was not is given with the next task.
    kept: bool,
}

impl Pins {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<MachineId, Pinned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, machine: MachineId) -> Option<String> {
        self.lock().get(&machine)?.own.clone()
    }

    fn put(&self, machine: MachineId, key: &str) {
        self.lock().entry(machine).or_default().own = Some(key.to_owned());
    }

    fn front(&self, machine: MachineId, mark: &str) -> Option<FrontPin> {
        let pins = self.lock();
        let front = pins.get(&machine)?.front.as_ref();
        front.filter(|front| front.mark == mark).cloned()
    }

    fn put_front(&self, machine: MachineId, front: FrontPin) {
        self.lock().entry(machine).or_default().front = Some(front);
    }

    pub(super) fn forget(&self, machine: MachineId) {
        self.lock().remove(&machine);
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
    front: Option<Front>,
    waited: Mutex<Waited>,
}

/// How long the host was waited for, without the time that others of ours took.
#[derive(Default)]
struct Waited {
    before: Duration,
    since: Option<Instant>,
}

impl Waited {
    fn until_now(&self) -> Duration {
        let now = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.before + now
    }
}

/// The host in front of a machine.
struct Front {
    mark: String,
    secret: Option<SecretRef>,
}

impl Front {
    fn of(jump: &Jump) -> Self {
        Self {
            mark: mark(jump),
            secret: jump.secret.clone(),
        }
    }
}

/// What tells one jump host from another. One that was taken out of the manifest and put back is
/// another one.
fn mark(jump: &Jump) -> String {
    format!("{} {}:{}", jump.since, jump.endpoint, jump.ssh_port)
}

impl Entry<'_> {
    /// The host key that the machine has, once it was entered.
    pub(super) fn seen(&self) -> Option<String> {
        self.expected
            .clone()
            .or_else(|| self.pins.get(self.machine))
    }

    /// How long the host itself was waited for, and not our own turn.
    pub(super) fn waited(&self) -> Duration {
        let waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.until_now()
    }

    /// The host in front of a machine, where this is its door.
    fn front(&self, door: &Door) -> Option<&Front> {
        let jump = self.door.jump.as_deref();
        self.front.as_ref().filter(|_| jump == Some(door))
    }

    /// A door of the way with all that other programs need to open it, once it was entered.
    pub(super) async fn opened<'d>(&'d self, door: &'d Door) -> Result<Opened<'d>, Error> {
        let host_key = self.pinned(door).ok_or_else(|| {
            let what = format!("the host key of {door} is not known");
            Error::new(Kind::ChangedHostKey, what)
        })?;
        Ok(Opened {
            door,
            host_key,
            key: self.key(door).await?,
        })
    }

    /// Whose keys open a door: those of the cluster's own, or a secret of the project.
    fn keys(&self, secret: Option<&SecretRef>) -> String {
        match secret {
            Some(secret) => format!("{}/{secret}", self.cluster),
            None => self.cluster.to_string(),
        }
    }

    /// The secret with the key of the machine itself; one that we made is opened with its
    /// cluster's.
    fn own(&self) -> Option<&SecretRef> {
        self.secret.as_ref().filter(|_| !self.made)
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
        let (door, expected) = match &machine.origin {
            Origin::Made { .. } => {
                let (host, key) = self.whereabouts(machine).await?;
                let door = Door {
                    host,
                    port: 22,
                    user: "root".to_owned(),
                    jump: None,
                };
                (door, Some(key))
            }
            Origin::Given {
                endpoint,
                ssh_port,
                username,
                secret: _,
                jump,
            } => {
                let expected = self.pinned(cx, machine).await?;
                if let Some(jump) = jump {
                    self.pinned_front(cx, machine, jump).await?;
                }
                let door = Door {
                    host: IpAddr::V4(*endpoint),
                    port: *ssh_port,
                    user: username.clone(),
                    jump: jump.as_ref().map(|jump| Box::new(in_front(jump))),
                };
                (door, expected)
            }
        };
        Ok(Entry {
            door,
            machine: machine.id,
            cx,
            cluster,
            secret: machine.origin.secret().cloned(),
            made: given(machine).is_none(),
            pins: &self.inner.pins,
            expected,
            front: machine.origin.jump().map(Front::of),
            waited: Mutex::default(),
        })
    }

    /// The host key that was seen when the machine was first entered.
    async fn pinned(&self, cx: &Context, machine: &Machine) -> Result<Option<String>, Error> {
        if let Some(key) = self.inner.pins.get(machine.id) {
            return Ok(Some(key));
        }
        let key = kept(cx, machine, HOST_KEY).await?;
        if let Some(key) = &key {
            self.inner.pins.put(machine.id, key);
        }
        Ok(key)
    }

    /// Remembers the host key that was seen when the machine was first entered through this
    /// jump host.
    async fn pinned_front(
        &self,
        cx: &Context,
        machine: &Machine,
        jump: &Jump,
    ) -> Result<(), Error> {
        let mark = mark(jump);
        if self.inner.pins.front(machine.id, &mark).is_some() {
            return Ok(());
        }
        let kept = kept(cx, machine, JUMP_HOST_KEY).await?;
        let key = kept
            .as_deref()
            .and_then(|kept| kept.strip_prefix(&format!("{mark} ")));
        if let Some(key) = key {
            let front = FrontPin {
                key: key.to_owned(),
                mark,
                kept: true,
            };
            self.inner.pins.put_front(machine.id, front);
        }
        Ok(())
    }

    /// The host key of the host in front of a machine, where nobody keeps it yet.
    pub(super) fn met(&self, machine: &Machine) -> Result<Option<Output>, Error> {
        let mark: Option<String> = machine.origin.jump().map(mark);
        let front = mark.and_then(|mark| self.inner.pins.front(machine.id, &mark));
        let front = front.filter(|front| !front.kept).map(|front| {
            Ok(Output {
                owner: Owner::Machine(machine.id),
                entry: entry_name(JUMP_HOST_KEY)?,
                value: format!("{} {}", front.mark, front.key).into_bytes().into(),
            })
        });
        front.transpose()
    }
}

/// The door of a jump host.
fn in_front(jump: &Jump) -> Door {
    Door {
        host: IpAddr::V4(jump.endpoint),
        port: jump.ssh_port,
        user: jump.username.clone(),
        jump: None,
    }
}

/// A text that is kept with a machine.
async fn kept(cx: &Context, machine: &Machine, entry: &str) -> Result<Option<String>, Error> {
    let (owner, entry) = (Owner::Machine(machine.id), entry_name(entry)?);
    let kept = cx.kept(&owner, &entry).await.map_err(unopened)?;
    Ok(kept.and_then(|kept| String::from_utf8(kept.expose().to_vec()).ok()))
}

impl Keys for Entry<'_> {
    fn scope(&self, door: &Door) -> String {
        match (&self.front, self.front(door)) {
            (_, Some(front)) => self.keys(front.secret.as_ref()),
            // Who may not pass the one in front must not use the connection of who may.
            (Some(front), None) => {
                let (own, front) = (self.keys(self.own()), self.keys(front.secret.as_ref()));
                format!("{own} through {front}")
            }
            (None, None) => self.keys(self.own()),
        }
    }

    fn key<'a>(&'a self, door: &'a Door) -> Opening<'a> {
        Box::pin(async move {
            let none = || Error::new(Kind::NoKey, format!("there is no key for {door}"));
            let front = self.front(door);
            let secret = front.map_or_else(|| self.own(), |front| front.secret.as_ref());
            if let Some(secret) = secret {
                return self.cx.secret(secret).await.map_err(unopened);
            }
            if front.is_some() {
                return Err(none());
            }
            let (owner, entry) = (Owner::Cluster(self.cluster), entry_name(SSH_KEY)?);
            let kept = self.cx.kept(&owner, &entry).await.map_err(unopened)?;
            kept.ok_or_else(none)
        })
    }

    fn pinned(&self, door: &Door) -> Option<String> {
        match self.front(door) {
            Some(front) => {
                let pin = self.pins.front(self.machine, &front.mark);
                pin.map(|pin| pin.key)
            }
            None => self.seen(),
        }
    }

    fn first_seen(&self, door: &Door, key: &str) {
        match self.front(door) {
            Some(front) => self.pins.put_front(
                self.machine,
                FrontPin {
                    mark: front.mark.clone(),
                    key: key.to_owned(),
                    kept: false,
                },
            ),
            None => self.pins.put(self.machine, key),
        }
    }

    fn waiting(&self, for_host: bool) {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.before = waited.until_now();
        waited.since = for_host.then(Instant::now);
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
