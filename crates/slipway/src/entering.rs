//! Leads people into machines for the server, by the hands of hosts.

use driver::{Clock, Context, Log};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hosts::Hosts;
use model::access::GuestKey;
use model::time::Timestamp;
use server::{Enter, Letting, Shut, Visit, Wire};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// The ways on which the hands come.
pub(crate) struct Ways {
    pub(crate) hosts: Hosts,
    pub(crate) vault: Vault,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

/// Takes lines that belong to no task.
struct Aside;

impl Log for Aside {
    fn line(&self, _: Timestamp, text: &str) {
        tracing::debug!(line = text, "on the way into a machine");
    }
}

impl Ways {
    /// What the hands get besides the machine: keys are opened in the name of who enters.
    fn context(&self, visit: &Visit) -> Context {
        let (project, actor) = (visit.project.clone(), visit.actor.clone());
        let secrets = engine::opener(self.vault.clone(), project, actor);
        Context::new(self.clock, Arc::new(Aside), secrets, self.stop.clone(), 0)
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
