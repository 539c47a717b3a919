//! Nodes that are none of a cluster's machines: told apart, and taken out where they are left of one.

use std::net::Ipv4Addr;

use kube::api::stray::strays;
use kube::error::Kind;
use model::cluster::{Machine, Origin, Role};
use model::id::{self, MachineId};
use model::stray::{Leftover, mark};
use serde_json::{Value, json};

use crate::world::{make, node, ready};

fn id(name: &str, incarnation: u64) -> MachineId {
    MachineId::derive(id::Origin {
        parent: "strays",
        name,
        ordinal: 0,
        incarnation,
    })
}

fn machine(name: &str) -> Machine {
    Machine {
        id: id(name, 0),
        name: name.parse().unwrap(),
        pool: "compute".parse().unwrap(),
        role: Role::Compute,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Given {
            endpoint: Ipv4Addr::new(203, 0, 113, 5),
            ssh_port: 22,
            username: "root".to_owned(),
            secret: None,
            jump: None,
        },
    }
}

/// A node of that machine; its kubelet says whether it is ready.
fn marked(name: &str, of: Option<MachineId>, ready: bool) -> Value {
    let mut wished = node(name);
    if let Some(of) = of {
        wished["spec"] = json!({ "providerID": mark(of) });
    }
    let status = if ready { "True" } else { "Unknown" };
    wished["status"] = json!({
        "conditions": [{
            "type": "Ready",
            "status": status,
            "lastTransitionTime": "2030-01-01T12:00:00Z",
        }],
    });
    wished
}

#[tokio::test]
async fn what_is_left_of_machines_is_told_from_ours_and_from_others() {
    let Some(door) = ready("what_is_left_of_machines_is_told_from_ours_and_from_others").await
    else {
        return;
    };
    let mut member = marked("stray-member", Some(id("stray-member", 0)), false);
    member["metadata"]["labels"] = json!({ "node-role.kubernetes.io/control-plane": "" });
    let other = Some(id("stray-namesake", 1));
    for wished in [
        marked("stray-ours", Some(id("stray-ours", 0)), true),
        marked("stray-unmarked", None, true),
        marked("stray-namesake", other, false),
        member,
        marked("stray-alive", Some(id("stray-alive", 0)), true),
        marked("stray-laptop", None, false),
    ] {
        make(&door, wished).await;
    }
    let machines = ["stray-ours", "stray-unmarked", "stray-namesake"].map(machine);
    let mut found = strays(&door.nodes().await.unwrap(), &machines);
    // Other tests have nodes of their own.
    found.nodes.retain(|name, _| name.starts_with("stray-"));
    let told: Vec<_> = found
        .nodes
        .iter()
        .map(|(name, stray)| {
            let since = stray.unready_since.map(|since| since.to_string());
            (name.as_str(), stray.machine, stray.control, since)
        })
        .collect();
    let noon = || Some("Tue 2030-01-01 12:00 UTC".to_owned());
    assert_eq!(
        told,
        [
            ("stray-alive", Some(id("stray-alive", 0)), false, None),
            ("stray-laptop", None, false, None),
            ("stray-member", Some(id("stray-member", 0)), true, noon()),
            ("stray-namesake", other, false, noon()),
        ]
    );
}

#[tokio::test]
async fn only_the_node_that_was_meant_is_taken_out_and_only_while_it_is_silent() {
    let Some(door) =
        ready("only_the_node_that_was_meant_is_taken_out_and_only_while_it_is_silent").await
    else {
        return;
    };
    let left = |name: &str, incarnation| Leftover {
        node: name.to_owned(),
        machine: id(name, incarnation),
        control: false,
    };
    make(&door, marked("left-dead", Some(id("left-dead", 0)), false)).await;
    make(&door, marked("left-alive", Some(id("left-alive", 0)), true)).await;
    make(&door, marked("left-laptop", None, false)).await;
    let alive = door.leftover(&left("left-alive", 0)).await.unwrap_err();
    assert_eq!(alive.kind, Kind::Alive, "{alive}");
    // Those that are not meant are not found, and so not touched.
    for not_meant in [
        left("left-dead", 1),
        left("left-laptop", 0),
        left("left-gone", 0),
    ] {
        assert_eq!(door.leftover(&not_meant).await.unwrap(), None);
    }
    let dead = door.leftover(&left("left-dead", 0)).await.unwrap().unwrap();
    door.out_of_service(&dead.name, true).await.unwrap();
    door.delete_node(&dead.name, Some(&dead.uid)).await.unwrap();
    assert_eq!(door.leftover(&left("left-dead", 0)).await.unwrap(), None);
    for stays in ["left-alive", "left-laptop"] {
        assert!(door.node(stays).await.is_ok(), "{stays}");
    }
}
