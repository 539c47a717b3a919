//! All hands of the program, put together: whose machine it is decides who does the work.
//!
//! Machines of the simulated world are the simulator's. Hosts are real and belong to `hosts`, and
//! Kubernetes on them to `kube`; the repositories of their modules are asked by `cloud`. Sandbox hosts that have no systemd cannot run it: on them it is
//! simulated, and says so.

use cloud::Repositories;
use driver::{Context, Driver, Outcome, Target};
use hosts::Hosts;
use kube::Kube;
use model::cluster::Machine;
use model::observed::Observation;
use model::provider::Provider;
use model::task::{Kind, Task};
use server::Unable;
use sim::{Simulated, World};
use std::path::Path;

/// Everything that can touch the world.
pub(crate) struct Hands {
    simulated: Simulated,
    pretended: Simulated,
    kube: Kube,
    hosts: Hosts,
    repositories: Repositories,
}

impl Hands {
    pub(crate) fn new(world: &World, hosts: Hosts, snapshots: &Path) -> Self {
        Self {
            simulated: Simulated::new(world.clone()),
            pretended: Simulated::kubernetes_only(world.clone()),
            kube: Kube::new(hosts.clone(), snapshots),
            hosts,
            repositories: Repositories::default(),
        }
    }

    /// First it is no node any more, then it is no machine.
    async fn dispose(&self, cx: &Context, task: &Task) -> Outcome {
        if !task.machine.origin.pretends() {
            return self.hosts.apply(cx, task).await;
        }
        match self.pretended.apply(cx, task).await {
            Outcome::Done(mut seen, mut outputs) => match self.hosts.apply(cx, task).await {
                Outcome::Done(more, other) => {
                    seen.extend(more);
                    outputs.extend(other);
                    Outcome::Done(seen, outputs)
                }
                failed @ (Outcome::Retry(_) | Outcome::Stuck(_)) => failed,
            },
            failed @ (Outcome::Retry(_) | Outcome::Stuck(_)) => failed,
        }
    }
}

/// What none of these hands can do, and what they would say when they were asked.
pub(crate) fn unable(machine: &Machine, kind: Kind) -> Option<Unable> {
    let origin = &machine.origin;
    let of = |because: String, next: &str| {
        let next = next.to_owned();
        Some(Unable { because, next })
    };
    match (kind, origin.via()) {
        (Kind::Create, Some(via)) if !hosts::hands::makes(via) => of(
            format!("nobody here makes machines of {} (HOST-035)", via.as_str()),
            "rehearse the manifest with `slipway simulate`, or use machines of your own in a static pool",
        ),
        (Kind::Create, Some(Provider::Simulated)) => {
            let (because, instead) = sim::lacks(origin)?;
            of(because, &format!("{instead} for the pool, in the manifest"))
        }
        (Kind::Create, _) => of(
            format!("{} (HOST-036)", hosts::hands::lacks(origin)?),
            "correct the image of the pool in the manifest",
        ),
        (Kind::Balance, _) if !origin.is_host() => of(
            "machines of the simulated world cannot be load balancers".to_owned(),
            "give the load balancer a pool of a provider of type sandbox, or a static pool of machines \
             at their real addresses",
        ),
        _ => None,
    }
}

impl Driver for Hands {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        if !task.machine.origin.is_host() {
            return self.simulated.apply(cx, task).await;
        }
        match task.action.kind() {
            Kind::Key
            | Kind::Create
            | Kind::Prepare
            | Kind::Equip
            | Kind::Mesh
            | Kind::Balance
            | Kind::Expose
            | Kind::Shut => self.hosts.apply(cx, task).await,
            // Names are asked for only with providers whose names are simulated: nobody here reaches
            // the DNS of clouds.
            Kind::Name => self.simulated.apply(cx, task).await,
            Kind::Init
            | Kind::Join
            | Kind::Install
            | Kind::Tend
            | Kind::Drain
            | Kind::Upgrade
            | Kind::Renew
            | Kind::Uncordon
            | Kind::Leave
            | Kind::Clear
            | Kind::Snapshot
            | Kind::Restore => {
                if task.machine.origin.pretends() {
                    cx.log("Kubernetes on this host is simulated");
                    self.pretended.apply(cx, task).await
                } else {
                    self.kube.apply(cx, task).await
                }
            }
            Kind::Delete | Kind::Release => self.dispose(cx, task).await,
        }
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let (hosts, simulated): (Vec<Machine>, Vec<Machine>) = target
            .machines
            .iter()
            .cloned()
            .partition(|machine| machine.origin.is_host());
        // Who looks at some of the nodes takes the others for strays.
        let of = |machines: Vec<Machine>| Target {
            cluster: target.cluster,
            whole: target.whole && nodes(&machines) == nodes(&target.machines),
            machines,
        };
        let mut seen = Vec::new();
        if !simulated.is_empty() || hosts.is_empty() {
            seen.extend(self.simulated.probe(cx, &of(simulated)).await);
        }
        if !hosts.is_empty() {
            let (pretending, running): (Vec<Machine>, Vec<Machine>) = hosts
                .iter()
                .cloned()
                .partition(|machine| machine.origin.pretends());
            let (hosts, pretending, running) = (of(hosts), of(pretending), of(running));
            let (machines, pretended, nodes, modules) = tokio::join!(
                self.hosts.probe(cx, &hosts),
                self.pretended.probe(cx, &pretending),
                self.kube.probe(cx, &running),
                self.repositories.look(cx, &hosts)
            );
            seen.extend(machines);
            seen.extend(pretended);
            seen.extend(nodes);
            seen.extend(modules);
        }
        seen
    }
}

/// How many machines are to be nodes.
fn nodes(machines: &[Machine]) -> usize {
    let nodes = machines.iter().filter(|machine| machine.role.is_node());
    nodes.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of the simulated world.
    fn simulated(server_type: &str, image: &str) -> Machine {
        let machine = serde_json::json!({
            "id": "machine-0000000000000",
            "name": "edge-brain-01",
            "pool": "brain",
            "role": "balancer",
            "ordinal": 1,
            "incarnation": 0,
            "address": "10.8.0.1",
            "origin": {"made": {
                "provider": "lab", "via": "simulated", "region": "north", "zone": null,
                "server_type": server_type, "image": image, "secret": null,
            }},
        });
        serde_json::from_value(machine).unwrap()
    }

    #[test]
    fn what_the_simulated_provider_would_refuse_is_known_before_it_is_asked() {
        assert_eq!(unable(&simulated("small", "debian-12"), Kind::Create), None);
        let told = |server_type, image| {
            let unable = unable(&simulated(server_type, image), Kind::Create);
            let Unable { because, next } = unable.unwrap();
            format!("{because}; {next}")
        };
        assert_eq!(
            told("huge", "debian-12"),
            "the provider has no server type `huge`; choose one of small, medium, large for the pool, in the manifest"
        );
        assert_eq!(
            told("small", "beos"),
            "the provider has no image `beos`; choose one of debian-12, ubuntu-24.04 for the pool, in the manifest"
        );
    }

    #[test]
    fn who_cannot_be_a_load_balancer_hears_who_can() {
        let unable = unable(&simulated("small", "debian-12"), Kind::Balance).unwrap();
        assert_eq!(
            unable.because,
            "machines of the simulated world cannot be load balancers"
        );
        assert!(unable.next.contains("a static pool"), "{}", unable.next);
    }
}
