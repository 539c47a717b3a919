//! Leads people into machines for the server, by the hands of hosts.

use crate::aside;
use driver::{Clock, Context};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hosts::Hosts;
use model::access::GuestKey;
use server::{Enter, Letting, Shut, Visit, Wire};
use std::time::Duration;
use store::Store;
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// The ways on which the hands come.
pub(crate) struct Ways {
    pub(crate) hosts: Hosts,
    pub(crate) store: Store,
    pub(crate) vault: Vault,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

impl Ways {
    /// What the hands get besides the machine: keys are opened in the name of who enters.
    fn context(&self, visit: &Visit) -> Context {
        let who = (visit.project.clone(), visit.actor.clone());
        aside::context(
            (&self.store, &self.vault, self.clock),
            who,
            self.stop.clone(),
        )
    }
}

impl Enter for Ways {
    fn let_in(&self, visit: Visit, key: GuestKey, time: Duration) -> Letting<'_> {
        async move {
            let cx = self.context(&visit);
            let letting = self
                .hosts
                .let_in(&cx, visit.cluster, &visit.machine, &key, time);
            letting.await.map_err(|error| shut(&error))
        }
        .boxed()
    }

    fn reach(&self, visit: Visit) -> BoxFuture<'_, Result<Box<dyn Wire>, Shut>> {
        async move {
            let cx = self.context(&visit);
            let reached = self.hosts.reach(&cx, visit.cluster, &visit.machine).await;
            let wire: Box<dyn Wire> = Box::new(reached.map_err(|error| shut(&error))?);
            Ok(wire)
        }
        .boxed()
    }
}

fn shut(error: &hosts::error::Error) -> Shut {
    Shut {
        what: format!("{} ({})", error.what, error.kind.code()),
    }
}
