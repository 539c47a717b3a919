//! Whatever keeps a task from being done, whoever found it.

use crate::error::Error;
use crate::snapshot;
use driver::kinds::Owner;
use driver::{Outcome, Unopened};

/// Why a task could not be done.
#[derive(Debug)]
pub enum Trouble {
    /// Kubernetes is in the way.
    Kube(Error),
    /// A host is.
    Host(hosts::error::Error),
    /// A snapshot is.
    Snapshot(snapshot::Error),
    /// What opens the cluster cannot be had.
    Unopened(Unopened),
}

impl Trouble {
    /// Whether it may work later without anybody's help.
    pub(super) fn may_work(&self) -> bool {
        match self {
            Self::Kube(error) => error.kind.owner() == Owner::Slipway,
            Self::Host(error) => error.kind.owner() == Owner::Slipway,
            Self::Snapshot(error) => error.kind.owner() == Owner::Slipway,
            Self::Unopened(unopened) => matches!(unopened, Unopened::Retry(_)),
        }
    }

    /// The same, with what it is about in front.
    pub(super) fn of(mut self, about: &str) -> Self {
        let what = match &mut self {
            Self::Kube(error) => &mut error.what,
            Self::Host(error) => &mut error.what,
            Self::Snapshot(error) => &mut error.what,
            Self::Unopened(Unopened::Retry(error) | Unopened::Stuck(error)) => &mut error.attempted,
        };
        *what = format!("{about}: {what}");
        self
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Kube(error)
    }
}

impl From<snapshot::Error> for Trouble {
    fn from(error: snapshot::Error) -> Self {
        Self::Snapshot(error)
    }
}

impl From<hosts::error::Error> for Trouble {
    fn from(error: hosts::error::Error) -> Self {
        Self::Host(error)
    }
}

impl From<Unopened> for Trouble {
    fn from(unopened: Unopened) -> Self {
        Self::Unopened(unopened)
    }
}

impl From<Trouble> for Outcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Kube(error) => error.into(),
            Trouble::Host(error) => error.into(),
            Trouble::Snapshot(error) => error.into(),
            Trouble::Unopened(unopened) => unopened.into(),
        }
    }
}

impl std::error::Error for Trouble {}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kube(error) => error.fmt(f),
            Self::Host(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
            Self::Unopened(Unopened::Retry(error) | Unopened::Stuck(error)) => error.fmt(f),
        }
    }
}
