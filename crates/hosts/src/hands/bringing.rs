//! What a host needs of ours is fetched once for all of them, and brought to it.

use super::entry::Entry;
use super::{Hosts, stopped};
use crate::artifacts::{Cache, Handle};
use crate::error::Error;
use crate::program::Report;
use crate::ssh::{Content, Push};
use driver::Context;
use model::cluster::Machine;
use model::id::ClusterId;
use std::time::Duration;

/// How long an artifact may take on its way to a host.
const PUSH_MAX: Duration = Duration::from_mins(10);

impl Hosts {
    /// Where fetched artifacts are kept.
    pub(super) async fn cache(&self) -> Result<&Cache, Error> {
        let open = || async { Cache::open(&self.inner.cache) };
        self.inner.fetched.get_or_try_init(open).await
    }

    /// Waits for something that may be called off.
    pub(super) async fn unless_told<T>(
        cx: &Context,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = cx.cancelled() => Err(stopped()),
            done = work => done,
        }
    }

    /// Has a file lie on a machine; nothing is sent where it does.
    pub async fn push(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        push: Push<'_>,
    ) -> Result<Report, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        self.pushed(cx, &entry, push).await
    }

    async fn pushed(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        push: Push<'_>,
    ) -> Result<Report, Error> {
        let log = |line: &str| cx.log(line);
        let connections = &self.inner.connections;
        let pushed = connections.copy(&entry.door, entry, push, &log, cx.cancelled());
        pushed.await
    }

    /// Has an artifact lie on a host; nothing is sent where it does.
    pub(super) async fn bring(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        handle: &Handle,
        path: &str,
        mode: u32,
    ) -> Result<Report, Error> {
        let push = Push {
            content: Content::File(handle.path()),
            path,
            mode,
            sha256: &handle.sha256().to_string(),
            limit: PUSH_MAX,
        };
        self.pushed(cx, entry, push).await
    }
}
