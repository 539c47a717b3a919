//! The only way to talk to hosts: programs and files over SSH connections that stay open.
//!
//! A [`Door`] says where a host is and as whom to enter, [`Keys`] what to enter with and which
//! host key to expect. [`Connections`] keeps one connection per door, shares it among all who ask
//! for it, and closes it when nobody does. A program that is no longer wanted, because it took
//! too long, because it was called off or because we died, is ended on the host with all that it
//! started; only what it put into a session of its own (`setsid`) outlives it.

mod channel;
mod connection;
mod copy;
mod fetch;
mod frame;
mod key;
mod output;
mod passage;
mod pool;
mod run;
mod verdict;

pub use copy::{Content, Push};
pub use fetch::{Pull, Sink};
pub(crate) use key::openssh;
pub use key::{new_key, public_half};
pub(crate) use output::Output;
pub use passage::{Stream, Wire};
pub use pool::Connections;

use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use model::secret::Secret;

use crate::error::Error;

/// Where a host is, and as whom to enter it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Door {
    /// Its address, as the jump host sees it where there is one.
    pub host: IpAddr,
    /// The port of its SSH server.
    pub port: u16,
    /// The user; any but root must be allowed to run sudo without a password.
    pub user: String,
    /// The host through which it is reached.
    pub jump: Option<Box<Self>>,
}

impl Door {
    /// The door itself, without how one gets there.
    fn near(&self) -> String {
        let at = std::net::SocketAddr::new(self.host, self.port);
        format!("{}@{at}", self.user)
    }
}

impl std::fmt::Display for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.near())?;
        match &self.jump {
            Some(jump) => write!(f, " through {jump}"),
            None => Ok(()),
        }
    }
}

/// A private key on its way.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Secret, Error>> + Send + 'a>>;

/// What to enter with, and which host to expect; asked for the door and for its jump hosts.
pub trait Keys: Send + Sync {
    /// Whose keys a door is opened with, and those in front of it, such as a project and the
    /// names of its secrets.
    ///
    /// Connections are shared only under the same name: otherwise somebody who cannot enter a
    /// host could use the connection of somebody who can.
    fn scope(&self, door: &Door) -> String;

    /// The private key. It is asked for only when a host answered and is the expected one,
    /// because that a secret was opened is audited.
    fn key<'a>(&'a self, door: &'a Door) -> Opening<'a>;

    /// The host key that was pinned, as a line of OpenSSH's; none before first sight.
    fn pinned(&self, door: &Door) -> Option<String>;

    /// Told the host key that was accepted, whenever none is pinned: the caller stores it.
    fn first_seen(&self, door: &Door, key: &str);

    /// Told whether it is the host that is waited for from now on, or a turn among our own:
    /// nobody may blame a host for the time that others took.
    fn waiting(&self, for_host: bool) {
        let _ = for_host;
    }
}

/// How long to wait, and how much to do at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For a host to answer and to agree on keys.
    pub connect: Duration,
    /// For a host to accept our key, and later to open a channel.
    pub authentication: Duration,
    /// Between signs of life; a host that misses three is gone.
    pub keepalive: Duration,
    /// After which an unused connection is closed.
    pub idle: Duration,
    /// For a program that was told to end to be gone.
    pub ending: Duration,
    /// How many connections are opened at once, and how many programs run at once.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            authentication: Duration::from_secs(10),
            keepalive: Duration::from_secs(15),
            idle: Duration::from_mins(5),
            ending: Duration::from_secs(3),
            at_once: 64,
        }
    }
}

/// Where lines for people go, as they come.
pub type Log<'a> = &'a (dyn Fn(&str) + Sync);
