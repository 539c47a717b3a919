//! What the API says of the nodes of a cluster.

use super::Kube;
use crate::api;
use driver::{Context, Target};
use model::cluster::{Machine, Role};
use model::observed::{ControlPlaneFact, Fact, NodeFact, Observation};
use model::version::Version;

impl Kube {
    /// Looks at all nodes of a cluster by one question to its API. Where nobody answers nothing is
    /// told: silence is not absence.
    pub(super) async fn looked_at(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let control = |machine: &&Machine| machine.role == Role::Control;
        let members: Vec<_> = target.machines.iter().filter(control).cloned().collect();
        let at = cx.now();
        let asking = async {
            let (door, _) = self.door(cx, target.cluster, &members).await.ok()?;
            door.nodes().await.ok()
        };
        let nodes = tokio::select! {
            biased;
            () = cx.cancelled() => None,
            nodes = asking => nodes,
        };
        let Some(nodes) = nodes else {
            return Vec::new();
        };
        let begun = Fact::ControlPlane(ControlPlaneFact { initialised: true });
        let of_nodes = target
            .machines
            .iter()
            .filter(|machine| machine.role.is_node());
        let facts = of_nodes.filter_map(|machine| {
            let node = nodes.iter().find(|node| node.name == machine.name.as_str());
            let fact = node.map_or(Some(NodeFact::Absent), fact);
            fact.map(|fact| Fact::Node(machine.id, fact))
        });
        let seen = std::iter::once(begun).chain(facts).map(|fact| Observation {
            cluster: target.cluster,
            fact,
            at,
        });
        seen.collect()
    }
}

/// A node as the planner knows it; one of a version that nobody knows is left out.
pub(super) fn fact(node: &api::node::Node) -> Option<NodeFact> {
    Some(NodeFact::Joined {
        ready: node.ready,
        cordoned: node.cordoned,
        version: node.kubelet.parse().ok()?,
    })
}

/// Why a node is not what it should be, in words.
pub(super) fn not_ready(node: &api::node::Node, version: Version) -> String {
    if node.ready {
        let runs = &node.kubelet;
        return format!("it runs {runs} and should run {version}");
    }
    let ready = node
        .conditions
        .iter()
        .find(|condition| condition.of == "Ready");
    ready.map_or_else(
        || "it has not said yet whether it is".to_owned(),
        |condition| format!("{}: {}", condition.reason, condition.message),
    )
}
