//! From the nouns of the model outward to the wire.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use api::{ClusterGeneration, IntentView, MachineView};
use expect_test::{Expect, expect};
use model::cluster::{Desired, Generation, Jump, Machine, Origin, Role};
use model::host::Playbooks;
use model::id::{self, ClusterId, IntentId, MachineId, TaskId};
use model::intent::{Intent, Wish};
use model::observed::{MachineFact, NodeFact, Seen};
use model::provider::Provider;
use model::task::Kind;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

fn origin(name: &str) -> id::Origin<'_> {
    id::Origin {
        parent: "default",
        name,
        ordinal: 0,
        incarnation: 0,
    }
}

fn machine(name: &str, role: Role, origin_of: Origin) -> Machine {
    Machine {
        id: MachineId::derive(origin(name)),
        name: name.parse().unwrap(),
        pool: "pool".parse().unwrap(),
        role,
        ordinal: 1,
        incarnation: 0,
        address: "10.0.0.1".parse().unwrap(),
        balancer: None,
        origin: origin_of,
    }
}

fn made() -> Origin {
    Origin::Made {
        provider: "lab".parse().unwrap(),
        via: Provider::Simulated,
        region: "north".to_owned(),
        zone: None,
        server_type: "small".to_owned(),
        image: "debian-13".to_owned(),
        hardware: model::hardware::Hardware::default(),
        secret: None,
    }
}

fn given() -> Origin {
    Origin::Given {
        endpoint: "192.0.2.7".parse().unwrap(),
        ssh_port: 22,
        username: "root".to_owned(),
        secret: None,
        jump: Some(Jump {
            endpoint: "192.0.2.1".parse().unwrap(),
            ssh_port: 2_222,
            username: "ann".to_owned(),
            secret: Some(model::secret::SecretRef {
                name: "front".parse().unwrap(),
                key: None,
            }),
            since: Generation(2),
        }),
    }
}

#[track_caller]
fn check(wire: &impl serde::Serialize, expected: &Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(wire).unwrap());
}

#[test]
fn a_machine_shows_what_should_be_beside_what_was_seen() {
    let running = MachineFact::Running {
        reference: "vm-1".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    let joined = NodeFact::Joined {
        ready: true,
        cordoned: false,
        version: "v1.35.2".parse().unwrap(),
        care: None,
        asks: false,
        gated: false,
    };
    let seen = Seen {
        names: None,
        port: None,
        machine: Some((running, Timestamp::from_millis(0))),
        host: None,
        certificates: None,
        node: Some((joined, Timestamp::from_millis(1_000))),
    };
    let view = MachineView::new(
        (
            &"edge".parse().unwrap(),
            "cluster-0c5w3k9qj2m4x".parse().unwrap(),
        ),
        &machine("edge-pool-01", Role::Control, made()),
        false,
        &seen,
    );
    check(
        &(&view.machine, &view.node),
        &expect![[r#"
        [
          {
            "state": "running",
            "reference": "vm-1",
            "address": "192.0.2.1",
            "observedAt": "1970-01-01T00:00:00Z"
          },
          {
            "joined": true,
            "ready": true,
            "cordoned": false,
            "version": "v1.35.2",
            "observedAt": "1970-01-01T00:00:01Z"
          }
        ]"#]],
    );
    assert_eq!(
        (view.cluster.as_str(), view.role.to_string().as_str()),
        ("edge", "control")
    );
}

#[test]
fn a_generation_of_a_cluster_tells_where_its_machines_come_from() {
    let desired = Desired {
        cluster: ClusterId::derive(origin("edge")),
        project: "default".parse().unwrap(),
        manifest: "hello".parse().unwrap(),
        name: "edge".parse().unwrap(),
        incarnation: 0,
        generation: Generation(4),
        version: "v1.35.0".parse().unwrap(),
        network: "10.0.0.0/24".parse().unwrap(),
        kubernetes: model::kubernetes::Kubernetes::default(),
        machines: vec![machine("edge-pool-01", Role::Control, made())],
        leaving: vec![machine("edge-own-01", Role::Compute, given())],
        made: BTreeMap::new(),
        balancers: Vec::new(),
        former: Vec::new(),
        proxy: None,
        addons: Vec::new(),
        playbooks: Playbooks::default(),
        marks: BTreeMap::new(),
        metal: Vec::new(),
        autoscalers: BTreeMap::new(),
        disks: BTreeSet::new(),
        replacing: BTreeSet::new(),
        etcd_backup: None,
        tombstone: false,
        protected: false,
        disruption: model::disruption::Disruption::default(),
        rolls: Vec::new(),
        repair: model::upkeep::Repair::default(),
        stone: None,
        repaired: BTreeMap::new(),
    };
    let wire = ClusterGeneration::from(&desired);
    assert_eq!((wire.generation, wire.network.as_str()), (4, "10.0.0.0/24"));
    check(
        &[&wire.machines[0].origin, &wire.leaving[0].origin],
        &expect![[r#"
            [
              {
                "made": {
                  "provider": "lab",
                  "region": "north",
                  "zone": null,
                  "serverType": "small",
                  "image": "debian-13"
                }
              },
              {
                "given": {
                  "endpoint": "192.0.2.7",
                  "sshPort": 22,
                  "username": "root",
                  "jumpHost": {
                    "endpoint": "192.0.2.1",
                    "sshPort": 2222,
                    "username": "ann"
                  }
                }
              }
            ]"#]],
    );
}

#[test]
fn every_wish_reads_as_a_sentence() {
    let task = TaskId::derive(origin("task"));
    let machine = MachineId::derive(origin("edge-pool-01"));
    let wishes = [
        Wish::Scale {
            pool: "pool".parse().unwrap(),
            count: 5,
            was: 3,
        },
        Wish::Replace { machine },
        Wish::Retry { task },
        Wish::Cancel {
            task,
            machine,
            kind: Kind::Join,
        },
        Wish::Pause,
        Wish::Snapshot,
        Wish::Restore {
            snapshot: "20260307T020000Z-0a1b2c3d".parse().unwrap(),
        },
    ];
    let told: Vec<String> = wishes
        .into_iter()
        .map(|wish| {
            let intent = Intent {
                id: IntentId::derive(origin("intent")),
                project: "default".parse().unwrap(),
                cluster: "edge".parse().unwrap(),
                wish,
                author: "ann".to_owned(),
                reason: "because".to_owned(),
                created_at: Timestamp::from_millis(0),
                expires_at: None,
            };
            IntentView::from(&intent).wish.to_string()
        })
        .collect();
    let short = told
        .join("\n")
        .replace(&task.to_string(), "task-1")
        .replace(&machine.to_string(), "machine-1");
    expect![[r#"
        scale pool from 3 to 5
        replace machine-1
        retry task-1
        cancel task-1
        pause
        snapshot of etcd
        restore etcd from 20260307T020000Z-0a1b2c3d"#]]
    .assert_eq(&short);
}

#[test]
fn times_are_strings_in_the_published_schema() {
    let schema = serde_json::to_value(<api::Time as utoipa::PartialSchema>::schema()).unwrap();
    assert_eq!(
        (&schema["type"], &schema["format"]),
        (&"string".into(), &"date-time".into())
    );
}
