//! What a cluster tells of its Kubernetes.

use std::time::Duration;

use axum::http::StatusCode;
use expect_test::expect;
use model::observed::{
    CertificatesFact, ControlPlaneFact, Fact, MachineFact, Member, Observation, Wellbeing,
};

use crate::world::World;

/// A cluster on machines that were there before, whose Kubernetes is real.
const GIVEN: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: given}
spec:
  nodePools:
    static:
      - {name: rack, nodes: [{endpoint: 192.168.7.1, secretRef: {name: rack}}]}
  kubernetes:
    clusters:
      - name: real
        version: v1.34.1
        network: 10.8.0.0/24
        pools: {control: [rack], compute: []}
";

#[tokio::test]
async fn a_cluster_tells_where_its_api_is_and_how_its_control_plane_was_seen() {
    let world = World::new();
    let answer = world.submit(GIVEN).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let cluster = world.store.live_clusters().await.unwrap()[0].id;
    let seen = world.store.cluster_view(cluster).await.unwrap().unwrap();
    let machine = seen.desired.machines[0].id;
    let running = MachineFact::Running {
        reference: "rack".to_owned(),
        address: "192.168.7.1".parse().unwrap(),
    };
    let wellbeing = Wellbeing {
        failing: vec!["etcd".to_owned()],
        etcd: vec![Member {
            name: "real-rack-01".to_owned(),
            healthy: true,
            learner: false,
        }],
        ..Wellbeing::default()
    };
    let end = world.now().plus(Duration::from_hours(48));
    let facts = [
        Fact::Machine(machine, running),
        Fact::ControlPlane(ControlPlaneFact::started()),
        Fact::ControlPlane(ControlPlaneFact {
            initialised: true,
            wellbeing: Some(wellbeing),
        }),
        Fact::Certificates(machine, CertificatesFact { end }),
    ];
    let at = world.now();
    let facts = facts.map(|fact| Observation { cluster, fact, at });
    let observed = world.store.observe(cluster, facts.into(), at);
    assert!(observed.await.unwrap());
    let shown = world.get("/clusters/real").await.json();
    let told = [
        &shown["kubernetes"]["endpoint"]["machines"][0],
        &shown["kubernetes"]["controlPlane"],
        &shown["kubernetes"]["certificates"][0],
    ];
    let told: Vec<_> = told.iter().map(|part| format!("{part}\n")).collect();
    expect![[r#"
        {"address":"10.8.0.1","machine":"real-rack-01","outside":"192.168.7.1"}
        {"etcd":[{"healthy":true,"learner":false,"name":"real-rack-01"}],"failing":["etcd"],"observedAt":"2026-01-01T00:00:00Z","troubles":{}}
        {"end":"2026-01-03T00:00:00Z","machine":"real-rack-01","observedAt":"2026-01-01T00:00:00Z"}
    "#]]
    .assert_eq(&told.concat());
    assert_eq!(shown["machines"][0]["simulated"], "nothing");
    let page = world.look("/projects/default/clusters/real").await.text;
    for told in [
        "<dt>Endpoint</dt><dd>api.real.slipway.internal:6443 leads to real-rack-01 (10.8.0.1, outside 192.168.7.1)<",
        "<dt>Etcd</dt><dd>real-rack-01 healthy<",
        "<dt>Certificates</dt><dd>real-rack-01 until 2026-01-03 (in 2d)<",
        "<dt>Warning</dt><dd>certificates of real-rack-01 end soon",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let events = world.get("/events?after=0").await.json();
    let events = events["items"].as_array().unwrap().iter();
    let said: String = events
        .skip_while(|event| event["what"] != "cluster.started")
        .map(|event| format!("{} {}\n", event["object"], event["message"]))
        .collect();
    expect![[r#"
        "real" "the control plane was started"
        "real" "checks of the API fail: etcd, 1 of 1 members of etcd are healthy"
        "real-rack-01" "the first of its certificates ends on 2026-01-03"
    "#]]
    .assert_eq(&said);
}
