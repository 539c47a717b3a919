//! A host as load balancer: the proxy's program lies on it, runs as a service, and is told what
//! to pass on.

use super::entry::Entry;
use super::{Done, Hosts, tell};
use crate::artifacts::{self, Artifact, Platform};
use crate::balancer;
use crate::error::{Error, Kind};
use crate::program::Program;
use crate::recipe::item::{Item, State, Unit};
use crate::recipe::services::Definition;
use crate::recipe::{self, Looked};
use driver::Context;
use model::balancer::Balance;
use model::task::Task;
use std::time::Duration;

/// How long the proxy may take to start or to end.
const SERVICE_MAX: Duration = Duration::from_mins(2);

/// Where artifacts lie on a host.
const BIN: &str = "/usr/local/lib/slipway/bin";

/// The program that takes a load balancer away.
pub(super) fn down() -> Program {
    balancer::down_program(&ensured("", Vec::new(), State::Absent))
}

/// Shell text that has the proxy's service in a state.
fn ensured(description: &str, command: Vec<String>, state: State) -> String {
    let service = Item::Service {
        name: balancer::SERVICE.to_owned(),
        unit: Unit::Ours(Definition {
            description: description.to_owned(),
            command,
            reload: "HUP".to_owned(),
        }),
        state,
        restart_when: Vec::new(),
    };
    recipe::render(&[service], "service", SERVICE_MAX).piped()
}

impl Hosts {
    pub(super) async fn balance(
        &self,
        cx: &Context,
        task: &Task,
        balance: &Balance,
    ) -> Result<Done, Error> {
        let entry = self.entry(cx, task.cluster, &task.machine).await?;
        let (looked, _) = self.look(cx, &entry).await?;
        let binary = self.push_proxy(cx, &entry, &looked).await?;
        let service = balancer::service(balance, &binary);
        // The shell has what Envoy needs to have many connections before it becomes Envoy.
        let limit = format!("ulimit -n {} 2>/dev/null; exec \"$@\"", service.open_files);
        let shell = ["/bin/sh", "-c", &limit, service.name].map(str::to_owned);
        let command = shell.into_iter().chain(service.command).collect();
        let ensured = ensured(service.description, command, State::Running);
        let programs = vec![balancer::program(balance, &ensured)];
        let told = self.told_last(cx, &entry, "load balancer", programs);
        Ok((vec![told.await?], Vec::new()))
    }

    /// Has the proxy's program lie on the host; answers where.
    async fn push_proxy(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        looked: &Looked,
    ) -> Result<String, Error> {
        let told = looked.facts.get("machine").map_or("", String::as_str);
        let platform = Platform::of_machine(told).ok_or_else(|| {
            let what = format!("{} is a {told:?}, for which there is no proxy", entry.door);
            Error::new(Kind::NoArtifact, what)
        })?;
        let name = artifacts::envoy(platform);
        let named = name.parse().map_err(|_not_one| {
            Error::new(
                Kind::NoArtifact,
                format!("{name} is no name of an artifact"),
            )
        })?;
        let artifact = Artifact::named(named);
        let cache = self.cache().await?;
        let fetching = cache.fetch(&self.inner.sources, &artifact, &artifacts::quiet);
        let handle = Self::unless_told(cx, fetching).await?;
        let path = format!("{BIN}/envoy-{}", artifacts::pins::ENVOY);
        let pushed = self.bring(cx, entry, &handle, &path, 0o755);
        tell(cx, "proxy", &pushed.await?);
        Ok(path)
    }
}
