//! Nodes that are none of a cluster's machines: found, and taken out where they are left of one.

use model::cluster::Machine;
use model::stray::{Leftover, Stray, StraysFact};

use super::Door;
use super::node::Node;
use crate::error::{Error, Kind};

/// Whether a node is that of a machine: by its mark, or by its name where it bears none of ours.
pub fn is_of(node: &Node, machine: &Machine) -> bool {
    match node.machine() {
        Some(marked) => marked == machine.id,
        None => node.name == machine.name.as_str() && machine.role.is_node(),
    }
}

/// The nodes that are none of these machines'.
pub fn strays(nodes: &[Node], machines: &[Machine]) -> StraysFact {
    let known = |node: &Node| machines.iter().any(|machine| is_of(node, machine));
    let strays = nodes.iter().filter(|node| !known(node)).map(|node| {
        let machine = node.machine();
        let stray = Stray {
            machine,
            // Nobody judges those of others, and what comes and goes with them is no news.
            control: machine.is_some() && node.is_control(),
            unready_since: node.unready_since.filter(|_| machine.is_some()),
        };
        (node.name.clone(), stray)
    });
    StraysFact {
        nodes: strays.collect(),
    }
}

impl Door {
    /// The node that is left of a machine; nothing where it is gone, and another may have its name.
    ///
    /// One that is ready is an error: it may be of use to somebody.
    pub async fn leftover(&self, left: &Leftover) -> Result<Option<Node>, Error> {
        let node = match self.node(&left.node).await {
            Ok(node) if node.machine() == Some(left.machine) => node,
            Ok(_) => return Ok(None),
            Err(error) if error.kind == Kind::NoNode => return Ok(None),
            Err(error) => return Err(error),
        };
        if node.ready {
            let what = format!(
                "may not take node {} out of the cluster, it is ready again",
                node.name
            );
            return Err(Error::new(Kind::Alive, what));
        }
        Ok(Some(node))
    }
}
