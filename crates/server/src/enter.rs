//! What the server needs of the hands, which it does not know: a way into machines.

use futures_util::future::BoxFuture;
use model::access::{GuestKey, Welcome};
use model::cluster::Machine;
use model::id::ClusterId;
use model::name::Name;
use std::time::Duration;
use store::Actor;
use tokio::io::{AsyncRead, AsyncWrite};

/// Ways into machines.
pub trait Enter: Send + Sync {
    /// Lets a key into a machine for some time.
    fn let_in(&self, visit: Visit, key: GuestKey, time: Duration) -> Letting<'_>;

    /// Bytes both ways to the SSH server of a machine; nothing was said on them yet.
    fn reach(&self, visit: Visit) -> BoxFuture<'_, Result<Box<dyn Wire>, Shut>>;
}

/// Somebody on the way into a machine.
pub type Letting<'a> = BoxFuture<'a, Result<Welcome, Shut>>;

/// Bytes both ways.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Who wants to enter which machine.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Whose it is.
    pub project: Name,
    /// Of which cluster.
    pub cluster: ClusterId,
    /// The machine.
    pub machine: Machine,
    /// Who opens what has to be opened on the way.
    pub actor: Actor,
}

/// Why a machine could not be entered, as one clause with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shut {
    /// What was attempted, and how it ended.
    pub what: String,
}
