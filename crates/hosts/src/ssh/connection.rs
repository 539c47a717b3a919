//! One connection: opened, the host recognised, ourselves admitted.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use russh::client::{self, AuthResult, DisconnectReason, Handle, Session};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelId, ChannelOpenFailure, Disconnect, Preferred, cipher};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::pool::Inner;
use super::{Door, Keys, Limits, channel, key};
use crate::error::{Error, Kind};

/// How many programs run at once over one connection. OpenSSH's `MaxSessions` allows ten when
/// nobody changed it, and counts those that just ended for a moment longer.
pub(super) const SESSIONS: usize = 8;

/// An open connection.
pub(super) struct Connection {
    pub handle: Handle<Watch>,
    /// Bounds the programs that run over it.
    pub sessions: Arc<Semaphore>,
    /// Told whenever one of them ended.
    pub freed: Notify,
    /// The host key, and its line.
    pub key: PublicKey,
    pub line: String,
    /// What is known of its end, and of the last channel that was refused.
    told: Arc<Told>,
    used: Mutex<Instant>,
    /// The connection it goes through, which must stay open.
    pub via: Option<Arc<Self>>,
}

impl Connection {
    /// Whether it may be used, as far as is known.
    pub(super) fn alive(&self) -> bool {
        !self.handle.is_closed()
    }

    /// Whether the host is still there, which takes one round trip.
    pub(super) async fn answers(&self, limit: Duration) -> bool {
        let answer = timeout(limit, self.handle.send_ping()).await;
        matches!(answer, Ok(Ok(()))) && self.alive()
    }

    /// Says that it was used just now.
    pub(super) fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// How long nobody used it.
    pub(super) fn unused(&self) -> Duration {
        lock(&self.used).elapsed()
    }

    /// Why it ended, for people.
    pub(super) fn why(&self) -> String {
        let why = lock(&self.told.end).clone();
        why.unwrap_or_else(|| "the connection ended".to_owned())
    }

    /// Why the last channel was refused, for people.
    pub(super) fn refusal(&self) -> String {
        lock(&self.told.refusal).clone()
    }

    /// Says goodbye; the rest is done when the last who holds it lets go.
    pub(super) async fn close(&self) {
        let goodbye = self
            .handle
            .disconnect(Disconnect::ByApplication, "no longer needed", "en");
        // A host that does not listen is left without.
        drop(timeout(Duration::from_secs(1), goodbye).await);
    }
}

/// Locks, also after a panic elsewhere: what is inside is replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the protocol's side learns.
#[derive(Default)]
struct Told {
    key: OnceLock<PublicKey>,
    end: Mutex<Option<String>>,
    refusal: Mutex<String>,
}

/// Looks at the host key, and listens for why things end.
pub(super) struct Watch {
    pinned: Option<PublicKey>,
    told: Arc<Told>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Broken {
    /// The host has another key than the pinned one.
    Changed(Box<PublicKey>),
    /// Anything else.
    Ssh(russh::Error),
}

impl From<russh::Error> for Broken {
    fn from(error: russh::Error) -> Self {
        Self::Ssh(error)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed(key) => write!(f, "its host key is now {}", key::fingerprint(key)),
            Self::Ssh(error) => write!(f, "{error}"),
        }
    }
}

impl client::Handler for Watch {
    type Error = Broken;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Broken> {
        let key = key.public_key();
        match &self.pinned {
            Some(pinned) if pinned.key_data() != key.key_data() => {
                Err(Broken::Changed(Box::new(key)))
            }
            Some(_) | None => Ok(self.told.key.set(key).is_ok()),
        }
    }

    async fn channel_open_failure(
        &mut self,
        _: ChannelId,
        _: ChannelOpenFailure,
        description: &str,
        _: &str,
        _: &mut Session,
    ) -> Result<(), Broken> {
        description.clone_into(&mut lock(&self.told.refusal));
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Broken>) -> Result<(), Broken> {
        let why = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => format!("it said: {}", info.message),
            DisconnectReason::Error(error) => error.to_string(),
        };
        *lock(&self.told.end) = Some(why);
        Ok(())
    }
}

/// Opens a connection to a host: directly, or through another connection.
pub(super) async fn open(
    inner: &Arc<Inner>,
    door: &Door,
    keys: &dyn Keys,
    via: Option<Arc<Connection>>,
) -> Result<Connection, Error> {
    let limits = &inner.limits;
    let pinned = pinned(door, keys)?;
    let told = Arc::new(Told::default());
    let watch = Watch {
        pinned: pinned.clone(),
        told: Arc::clone(&told),
    };
    let config = Arc::new(config(limits, pinned.as_ref()));
    let connected = timeout(limits.connect, async {
        match &via {
            None => handshake(door, config, watch, direct(door).await?).await,
            Some(via) => {
                let channel = channel::tunnel(inner, via, door).await?;
                handshake(door, config, watch, channel.into_stream()).await
            }
        }
    });
    let mut handle = match connected.await {
        Ok(Ok(handle)) => handle,
        Ok(Err(Failure::Told(error))) => return Err(error),
        Ok(Err(Failure::Broken(broken))) => return Err(unusable(door, pinned.as_ref(), &broken)),
        Err(_) => return Err(silent(door, limits.connect, "did not answer within")),
    };
    let key = told.key.get().cloned().ok_or_else(|| {
        let what = format!("could not connect to {door}: it has no host key");
        Error::new(Kind::Garbage, what)
    })?;
    authenticate(limits, door, keys, &mut handle, &told).await?;
    let line = key::line(&key)?;
    if pinned.is_none() {
        keys.first_seen(door, &line);
    }
    Ok(Connection {
        handle,
        sessions: Arc::new(Semaphore::new(SESSIONS)),
        freed: Notify::new(),
        key,
        line,
        told,
        used: Mutex::new(Instant::now()),
        via,
    })
}

/// The pinned key of a host.
pub(super) fn pinned(door: &Door, keys: &dyn Keys) -> Result<Option<PublicKey>, Error> {
    let read = |line: String| {
        PublicKey::from_openssh(&line).map_err(|_| {
            let what = format!("could not connect to {door}: its pinned host key is unreadable");
            Error::new(Kind::ChangedHostKey, what)
        })
    };
    keys.pinned(door).map(read).transpose()
}

/// How many messages of one channel find room before they are read.
const CHANNEL_MESSAGES: usize = 8192;

/// How we speak.
fn config(limits: &Limits, pinned: Option<&PublicKey>) -> client::Config {
    let mut preferred = Preferred {
        // Several times faster than the default order where the processor knows AES.
        cipher: Cow::Borrowed(&[
            cipher::AES_256_GCM,
            cipher::CHACHA20_POLY1305,
            cipher::AES_256_CTR,
            cipher::AES_192_CTR,
            cipher::AES_128_CTR,
        ]),
        ..Preferred::DEFAULT
    };
    if let Some(pinned) = pinned {
        // A host has keys of several kinds: it must show the one we know.
        let same = |algorithm: &Algorithm| match (algorithm, pinned.algorithm()) {
            (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
            (algorithm, known) => *algorithm == known,
        };
        let (mut first, rest): (Vec<_>, Vec<_>) = preferred.key.iter().cloned().partition(same);
        first.extend(rest);
        preferred.key = Cow::Owned(first);
    }
    client::Config {
        preferred,
        nodelay: true,
        keepalive_interval: Some(limits.keepalive),
        keepalive_max: 2,
        // Keepalives are answered, so only a host that is gone is inactive. This also ends what
        // keepalives do not see: a key exchange that stops, a write that blocks.
        inactivity_timeout: Some(limits.keepalive * 3),
        // Whoever does not read holds up all that shares the connection once these are used up: a
        // busy host sends what it was asked for in pieces of a few hundred bytes.
        channel_buffer_size: CHANNEL_MESSAGES,
        ..client::Config::default()
    }
}

/// Why the first steps failed.
enum Failure {
    Told(Error),
    Broken(Broken),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

pub(super) async fn direct(door: &Door) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect((door.host, door.port)).await;
    let stream = stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    stream.map_err(|error| {
        let what = format!("could not connect to {door}: {error}");
        Error::new(unconnected(&error), what)
    })
}

/// Whose fault it is that nothing came about. What is missing here is not the host's.
fn unconnected(error: &std::io::Error) -> Kind {
    const OURS: [Errno; 6] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NETUNREACH,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
        Errno::NOMEM,
    ];
    if Errno::from_io_error(error).is_some_and(|errno| OURS.contains(&errno)) {
        Kind::OurSide
    } else if error.kind() == ErrorKind::ConnectionRefused {
        Kind::Refused
    } else {
        Kind::Silent
    }
}

async fn handshake<S>(
    door: &Door,
    config: Arc<client::Config>,
    watch: Watch,
    stream: S,
) -> Result<Handle<Watch>, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tracing::debug!(%door, "connecting");
    client::connect_stream(config, stream, watch)
        .await
        .map_err(Failure::Broken)
}

pub(super) fn silent(door: &Door, limit: Duration, how: &str) -> Error {
    let what = format!("could not connect to {door}: it {how} {limit:?}");
    Error::new(Kind::Silent, what)
}

/// The error for a host with which no protocol came about.
fn unusable(door: &Door, pinned: Option<&PublicKey>, broken: &Broken) -> Error {
    let at = format!("could not connect to {door}");
    match broken {
        Broken::Changed(key) => {
            let known = pinned.map(key::fingerprint).unwrap_or_default();
            let now = key::fingerprint(key);
            let what = format!("{at}: its host key is {now}, but {known} is pinned");
            Error::new(Kind::ChangedHostKey, what)
        }
        Broken::Ssh(russh::Error::IO(error)) => {
            Error::new(Kind::Lost, format!("{at}: it hung up: {error}"))
        }
        Broken::Ssh(russh::Error::Disconnect | russh::Error::HUP) => {
            Error::new(Kind::Lost, format!("{at}: it hung up"))
        }
        Broken::Ssh(error) => Error::new(
            Kind::Garbage,
            format!("{at}: it speaks no SSH that we know: {error}"),
        ),
    }
}

async fn authenticate(
    limits: &Limits,
    door: &Door,
    keys: &dyn Keys,
    handle: &mut Handle<Watch>,
    told: &Told,
) -> Result<(), Error> {
    // Whoever opens the secret bounds how long that takes.
    let secret = keys.key(door).await?;
    let private = key::read(&secret).map_err(|error| {
        let what = format!("could not log in to {door}: {}", error.what);
        Error::new(error.kind, what)
    })?;
    drop(secret);
    let public = key::fingerprint(private.public_key());
    let result = timeout(limits.authentication, async {
        let hash = if private.algorithm().is_rsa() {
            let best = handle.best_supported_rsa_hash().await?;
            best.unwrap_or(Some(HashAlg::Sha512))
        } else {
            None
        };
        let private = PrivateKeyWithHashAlg::new(Arc::new(private), hash);
        handle.authenticate_publickey(&door.user, private).await
    });
    let lost = |why: String| {
        let what = format!("could not log in to {door}: the connection was lost: {why}");
        Error::new(Kind::Lost, what)
    };
    let wrong = || {
        let what = format!("could not log in to {door}: it refuses the key {public}");
        Error::new(Kind::WrongKey, what)
    };
    match result.await {
        Err(_) => Err(silent(
            door,
            limits.authentication,
            "answered, but took longer to log in than",
        )),
        Ok(Ok(AuthResult::Success)) => Ok(()),
        // The library tells a lost connection as a refusal that names no other method.
        Ok(Ok(AuthResult::Failure { .. })) if handle.is_closed() => {
            let why = lock(&told.end).clone().unwrap_or_default();
            // A host that allows one attempt only refuses by hanging up.
            let refused = why.contains("authentication failures");
            Err(if refused { wrong() } else { lost(why) })
        }
        Ok(Ok(AuthResult::Failure { .. })) => Err(wrong()),
        Ok(Err(error)) => Err(lost(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn what_is_missing_here_is_not_the_fault_of_the_host() {
        let kind = |errno: Errno| unconnected(&io::Error::from(errno));
        for ours in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NETUNREACH,
            Errno::ADDRNOTAVAIL,
            Errno::NOBUFS,
        ] {
            assert_eq!(kind(ours), Kind::OurSide, "{ours}");
        }
        assert_eq!(kind(Errno::CONNREFUSED), Kind::Refused);
        for silent in [Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert_eq!(kind(silent), Kind::Silent, "{silent}");
        }
    }
}
