//! What a driver gets besides its task: where to write, when to stop, what time it is, and
//! the secrets that its task names.

use crate::{Clock, Error, Outcome};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use std::pin::Pin;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Takes the lines a driver writes; they become the log of the attempt.
pub trait Log: Send + Sync {
    /// Appends one line.
    fn line(&self, at: Timestamp, text: &str);
}

/// Opens the secrets of the project that a task belongs to.
pub trait Open: Send + Sync {
    /// The value of a secret's entry; where the reference names none, of its only one.
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a>;

    /// What came of an earlier task of the same cluster or machine, where anything did.
    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a>;

    /// The kubeconfig of a cluster of the same project, as it can be used from here.
    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        Box::pin(std::future::ready(Err(Unopened::Stuck(Error {
            attempted: format!("could not learn the way to cluster {cluster}, none is known here"),
            hint: "name a kubeconfig instead".to_owned(),
        }))))
    }
}

/// A secret on its way.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Secret, Unopened>> + Send + 'a>>;

/// Something kept, on its way.
pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<Option<Secret>, Unopened>> + Send + 'a>>;

/// Why a secret could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unopened {
    /// It may be possible later.
    Retry(Error),
    /// Somebody must change something.
    Stuck(Error),
}

impl From<Unopened> for Outcome {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Retry(error) => Self::Retry(error),
            Unopened::Stuck(error) => Self::Stuck(error),
        }
    }
}

/// Nobody has given anything to open: for looks and trials that need no secret.
#[derive(Debug, Clone, Copy)]
pub struct NoSecrets;

impl Open for NoSecrets {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        Box::pin(std::future::ready(Err(Unopened::Stuck(Error {
            attempted: format!("could not open secret {secret}, there are none here"),
            hint: format!("set it with `slipway secret set {}`", secret.name),
        }))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What a driver gets besides its task.
#[derive(Clone)]
pub struct Context {
    clock: Clock,
    log: Arc<dyn Log>,
    secrets: Arc<dyn Open>,
    cancel: CancellationToken,
    fence: u64,
}

impl Context {
    /// Puts a context together; the engine does, and tests.
    pub fn new(
        clock: Clock,
        log: Arc<dyn Log>,
        secrets: Arc<dyn Open>,
        cancel: CancellationToken,
        fence: u64,
    ) -> Self {
        Self {
            clock,
            log,
            secrets,
            cancel,
            fence,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Writes one line to the log of the attempt; never a secret, people read it.
    pub fn log(&self, text: &str) {
        self.log.line(self.now(), text);
    }

    /// Opens a secret of the task's project; that it was opened is audited.
    pub async fn secret(&self, secret: &SecretRef) -> Result<Secret, Unopened> {
        self.secrets.open(secret).await
    }

    /// Opens what came of an earlier task of the same cluster or machine.
    pub async fn kept(&self, owner: &Owner, entry: &EntryName) -> Result<Option<Secret>, Unopened> {
        self.secrets.kept(owner, entry).await
    }

    /// Opens the way to a cluster of the same project; that it was opened is audited.
    pub async fn kubeconfig(&self, cluster: &Name) -> Result<Secret, Unopened> {
        self.secrets.kubeconfig(cluster).await
    }

    /// Completes when the lease is lost or the program ends: stop, and begin nothing new.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Grows with every claim of the task; for systems that can compare it too.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}
