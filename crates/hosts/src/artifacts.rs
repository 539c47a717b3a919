//! What hosts need and do not have: packages, binaries, images, each vouched for by a digest.
//!
//! An [`Artifact`] has a [`Name`], under which mirrors keep it, and a [`Digest`], which says what
//! must be in it. The digest comes from the table of [`pins`], or from the [`Index`] of a mirror.
//! The [`Cache`] gets an artifact once, from the first [`Source`] that has it, and keeps it by
//! its digest; whoever reads it reads what was promised, or nothing. [`mirror`] makes and checks
//! directories that are sources themselves, for places without a network, and [`packages`] says
//! where the packages of a distribution lie in them.

pub mod addons;
mod cache;
mod evict;
mod fill;
pub mod index;
pub mod kubernetes;
pub mod mirror;
mod name;
pub mod packages;
mod part;
pub mod pins;
mod secure;
mod source;
mod trouble;
mod web;

pub use cache::{Cache, Handle, Limits};
pub use fill::{Progress, Tell, quiet};
pub use index::{Entry, Index};
pub use name::{Digest, Name, NotADigest, NotAName};
pub use source::{NotASource, Source};
pub use web::Patience;

use crate::error::{Error, Kind};
use model::host::Purpose;

/// Something that a host needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What it is called.
    pub name: Name,
    /// What must be in it; where we do not know, the index of the first mirror that lists it
    /// decides.
    pub sha256: Option<Digest>,
    /// Its bytes, where we know.
    pub size: Option<u64>,
}

impl Artifact {
    /// The artifact of a name, with what we know of it.
    pub fn named(name: Name) -> Self {
        let pin = pins::find(name.as_str());
        Self {
            name,
            sha256: pin.and_then(|pin| pin.sha256.parse().ok()),
            size: pin.map(|pin| pin.size),
        }
    }
}

/// What a host's programs must be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux on `x86_64`.
    Amd64,
    /// Linux on `aarch64`.
    Arm64,
}

impl Platform {
    /// The platform of a host that tells this with `uname -m`, where we know it.
    pub fn of_machine(machine: &str) -> Option<Self> {
        match machine {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// As packages of Debian and Ubuntu say it.
    pub const fn architecture(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As names of artifacts say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "linux-amd64",
            Self::Arm64 => "linux-arm64",
        }
    }
}

/// The name of the proxy that runs on load balancer machines.
pub fn envoy(platform: Platform) -> String {
    format!("envoy/{}/{}/envoy", pins::ENVOY, platform.as_str())
}

/// What a host needs from us besides the packages of its distribution.
pub fn wanted(purpose: Purpose, platform: Platform) -> Vec<Artifact> {
    let names = match purpose {
        Purpose::Node => Vec::new(),
        Purpose::Balancer => vec![envoy(platform)],
    };
    let names = names.iter().filter_map(|name| name.parse().ok());
    names.map(Artifact::named).collect()
}

/// Everything that this version of the program may want, for whatever host.
pub fn all_wanted() -> Vec<Artifact> {
    let names = pins::PINS.iter().filter_map(|pin| pin.name.parse().ok());
    names.map(Artifact::named).collect()
}

/// Does something with files where it disturbs nobody who waits for the network.
///
/// Dropping the answer does not stop it, so nothing long is done in one go.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        let what = format!("a thread that worked on files broke down: {error}");
        Error::new(Kind::CacheBroken, what)
    })
}

impl From<Error> for trouble::Trouble {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_good_and_says_what_must_be_in_it() {
        assert_eq!(all_wanted().len(), pins::PINS.len());
        for artifact in all_wanted() {
            assert!(artifact.sha256.is_some(), "{}", artifact.name);
        }
    }

    #[test]
    fn what_a_host_needs_is_pinned() {
        for platform in [Platform::Amd64, Platform::Arm64] {
            assert_eq!(wanted(Purpose::Node, platform), []);
            let [proxy] = wanted(Purpose::Balancer, platform).try_into().unwrap();
            assert!(proxy.sha256.is_some(), "{} is not pinned", proxy.name);
        }
        assert_eq!(Platform::of_machine("riscv64"), None);
    }
}
