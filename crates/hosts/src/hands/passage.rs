//! Byte streams to what listens on a machine for its own programs alone, such as the API of
//! Kubernetes.

use super::Hosts;
use crate::error::Error;
use crate::ssh::Stream;
use driver::Context;
use model::cluster::Machine;
use model::id::ClusterId;
use std::net::IpAddr;
use std::sync::Arc;

/// Opens byte streams to one port of one machine, as often as it is asked. Clones are cheap.
///
/// It holds no key: where the connection has to be opened again, the key is opened again
/// through the context, and that is audited as ever.
#[derive(Clone)]
pub struct Passage {
    hosts: Hosts,
    cx: Context,
    cluster: ClusterId,
    machine: Arc<Machine>,
    port: u16,
}

impl Passage {
    /// A byte stream of its own.
    pub async fn open(&self) -> Result<Stream, Error> {
        let Self {
            hosts, cx, port, ..
        } = self;
        let entry = hosts.entry(cx, self.cluster, &self.machine).await?;
        let opening = hosts.inner.connections.passage(&entry.door, &entry, *port);
        Hosts::unless_told(cx, opening).await
    }
}

impl Hosts {
    /// Where a machine is entered.
    pub async fn address(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Result<IpAddr, Error> {
        Ok(self.entry(cx, cluster, machine).await?.door.host)
    }

    /// What opens byte streams to a port of a machine; nothing is opened yet.
    pub fn passages(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        port: u16,
    ) -> Passage {
        Passage {
            hosts: self.clone(),
            cx: cx.clone(),
            cluster,
            machine: Arc::new(machine.clone()),
            port,
        }
    }

    /// A byte stream to `127.0.0.1:PORT` on a machine, through its SSH connection.
    pub async fn passage(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        port: u16,
    ) -> Result<Stream, Error> {
        self.passages(cx, cluster, machine, port).open().await
    }
}
