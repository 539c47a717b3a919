//! Files of machines, brought here.

use super::Hosts;
use crate::artifacts::Digest;
use crate::error::Error;
use crate::ssh::{Pull, Sink};
use driver::Context;
use model::cluster::Machine;
use model::id::ClusterId;

impl Hosts {
    /// Brings a file of a machine here; answers its bytes and its SHA-256, which is what the host
    /// says is in it. What was written when it ends with an error is worth nothing.
    pub async fn fetch(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        pull: Pull<'_>,
        into: Sink<'_>,
    ) -> Result<(u64, Digest), Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let log = |line: &str| cx.log(line);
        let connections = &self.inner.connections;
        let wish = (pull, into);
        let fetching = connections.fetch(&entry.door, &entry, wish, &log, cx.cancelled());
        fetching.await
    }
}
