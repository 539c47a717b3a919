//! Machines that we make: those of the sandbox, where this build has one.

use super::Hosts;
use crate::error::{Error, Kind};
use driver::Context;
use model::cluster::{Machine, Origin};
use model::id::ClusterId;
use std::net::IpAddr;
#[cfg(feature = "sandbox")]
use {
    super::{HOST_KEY, SSH_KEY, entry, entry_name},
    crate::{sandbox, ssh},
    model::provider::Provider,
    model::sealed::Owner,
};

#[cfg(not(feature = "sandbox"))]
#[expect(clippy::unused_async, reason = "a build with a sandbox waits for it")]
impl Hosts {
    pub(super) async fn make(
        &self,
        _: &Context,
        _: ClusterId,
        machine: &Machine,
    ) -> Result<(), Error> {
        Err(no_sandbox(machine))
    }

    pub(super) async fn delete(&self, _: &Context, machine: &Machine) -> Result<(), Error> {
        Err(no_sandbox(machine))
    }

    pub(super) async fn whereabouts(&self, machine: &Machine) -> Result<(IpAddr, String), Error> {
        Err(no_sandbox(machine))
    }
}

/// What nobody here has, of what machines are to be made of.
#[cfg(feature = "sandbox")]
pub fn lacks(origin: &Origin) -> Option<String> {
    let Origin::Made {
        via: Provider::Sandbox,
        image,
        ..
    } = origin
    else {
        return None;
    };
    let allowed = sandbox::IMAGE;
    (image != allowed).then(|| {
        format!("found image `{image}`, allowed: {allowed}, of which hosts of the sandbox are")
    })
}

/// What nobody here has, of what machines are to be made of; a build without a sandbox has none of
/// it, and says so when it is asked to make one.
#[cfg(not(feature = "sandbox"))]
pub const fn lacks(_: &Origin) -> Option<String> {
    None
}

/// Another build may have made it, so nothing is said of whether it is there.
#[cfg(not(feature = "sandbox"))]
fn no_sandbox(machine: &Machine) -> Error {
    let what = format!("{} is of a sandbox, which this build has not", machine.name);
    Error::new(Kind::NoSandbox, what)
}

#[cfg(feature = "sandbox")]
impl Hosts {
    pub(super) async fn make(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Result<(), Error> {
        let Origin::Made { server_type, .. } = &machine.origin else {
            return Ok(());
        };
        if let Some(what) = lacks(&machine.origin) {
            return Err(Error::new(Kind::NoImage, what));
        }
        let (owner, entry) = (Owner::Cluster(cluster), entry_name(SSH_KEY)?);
        let key = cx.kept(&owner, &entry).await.map_err(entry::unopened)?;
        let key = key.ok_or_else(|| {
            Error::new(Kind::NoKey, "the cluster has no key to open its machines")
        })?;
        let order = sandbox::Order {
            id: machine.id.to_string(),
            name: machine.name.to_string(),
            level: server_type.parse()?,
            authorized_key: ssh::public_half(&key)?,
        };
        // It takes a moment, and half a host would be in the way of the next attempt.
        let made = self.inner.sandbox.get().await?.create(&order).await?;
        cx.log(&format!("{} answers at {}", machine.name, made.address));
        Ok(())
    }

    pub(super) async fn delete(&self, cx: &Context, machine: &Machine) -> Result<(), Error> {
        // Nobody makes machines under a shared database: one whose key was never kept is not there.
        let never = self.inner.sandbox.is_refused() && !was_made(cx, machine).await?;
        if never {
            cx.log(&format!("{} was never made", machine.name));
            return Ok(());
        }
        if let Some(sandbox) = self.inner.sandbox.there().await? {
            sandbox.delete(&machine.id.to_string()).await?;
        }
        self.inner.pins.forget(machine.id);
        cx.log(&format!("{} is gone", machine.name));
        Ok(())
    }

    /// Where a machine is that was made, and which host key it was made with.
    pub(super) async fn whereabouts(&self, machine: &Machine) -> Result<(IpAddr, String), Error> {
        let seen = match self.inner.sandbox.there().await? {
            Some(sandbox) => sandbox.find(&machine.id.to_string()).await,
            None => None,
        };
        let seen = seen.ok_or_else(|| {
            let what = format!("{} is not there", machine.name);
            Error::new(Kind::NoSuchHost, what)
        })?;
        Ok((IpAddr::V4(seen.address), seen.host_key))
    }

    /// Ends every host of the sandbox, where there is one.
    pub async fn clear(&self) -> Result<(), Error> {
        if let Some(sandbox) = self.inner.sandbox.there().await? {
            sandbox.clear().await?;
        }
        Ok(())
    }
}

/// Whether a machine was ever made and taken in, by whomever: its host key was kept then.
#[cfg(feature = "sandbox")]
async fn was_made(cx: &Context, machine: &Machine) -> Result<bool, Error> {
    let (owner, entry) = (Owner::Machine(machine.id), entry_name(HOST_KEY)?);
    let key = cx.kept(&owner, &entry).await.map_err(entry::unopened)?;
    Ok(key.is_some())
}
