//! Why a machine waits, by name or with others.

use super::{check, serve};
use expect_test::expect;

/// A machine of the pool `compute` that nobody has looked at.
macro_rules! unseen {
    ($name:literal) => {
        concat!(
            r#"{"id":"machine-1","name":""#,
            $name,
            r#"","cluster":"edge","pool":"compute","role":"compute","ordinal":1,
            "address":"10.0.0.5","leaving":false,"machine":null,"node":null,
            "origin":{"given":{"endpoint":"192.0.2.1","sshPort":22,"username":"root"}}}"#
        )
    };
}

/// One of another pool, of which nobody else waits.
const OTHER: &str = r#"{"id":"machine-2","name":"edge-other-01","cluster":"edge","pool":"other",
    "role":"compute","ordinal":1,"address":"10.0.0.9","leaving":false,"machine":null,"node":null,
    "origin":{"given":{"endpoint":"192.0.2.9","sshPort":22,"username":"root"}}}"#;

/// A cluster in which machines wait together.
const WAITING: &str = concat!(
    r#"{"id":"cluster-1","project":"default","manifest":"hello","incarnation":0,
                "generation":3,"version":"v1.35.0","name":"edge","state":"scheduled","control":{"ready":3,"wanted":3},
                "compute":{"ready":0,"wanted":3},"leaving":0,"tasks":0,"message":"","observedAt":null,
                "updatedAt":"2026-03-01T12:30:00Z","openTasks":[],"held":[{"kind":"join","machine":"edge-compute-100",
                "machines":3,"reason":"turn","text":"join edge-compute-100 and 2 more: one at a time",
                "owner":"slipway","nextAction":"continues by itself"}],"machines":["#,
    unseen!("edge-compute-10"),
    ",",
    unseen!("edge-compute-100"),
    "]}"
);

#[tokio::test]
async fn a_machine_waits_by_name_or_with_others() {
    let server = serve(&[
        (
            "GET machines/edge-compute-10 ",
            "200 OK",
            unseen!("edge-compute-10"),
        ),
        (
            "GET machines/edge-compute-100 ",
            "200 OK",
            unseen!("edge-compute-100"),
        ),
        ("GET machines/edge-other-01 ", "200 OK", OTHER),
        (
            "GET clusters/edge/why ",
            "200 OK",
            r#"{"chain":[{"fact":"cluster edge is scheduled","next":null},
            {"fact":"join edge-compute-100 and 2 more: one at a time","next":"continues by itself"}]}"#,
        ),
        ("GET clusters/edge ", "200 OK", WAITING),
    ]);
    check(
        &server,
        "why machine edge-compute-100",
        &expect![[r#"
        exit 0
        machine edge-compute-100 is to stay; its provider: never looked; Kubernetes: never looked
        cluster edge is scheduled
        join edge-compute-100 and 2 more: one at a time
          → continues by itself
        --
    "#]],
    )
    .await;
    check(
        &server,
        "why machine edge-compute-10",
        &expect![[r#"
        exit 0
        machine edge-compute-10 is to stay; its provider: never looked; Kubernetes: never looked
        cluster edge is scheduled
        edge-compute-10 waits with 2 others: join edge-compute-100 and 2 more: one at a time
          → continues by itself
        --
    "#]],
    )
    .await;
    // A wait goes across pools.
    check(
        &server,
        "why machine edge-other-01",
        &expect![[r#"
        exit 0
        machine edge-other-01 is to stay; its provider: never looked; Kubernetes: never looked
        cluster edge is scheduled
        edge-other-01 waits with 2 others: join edge-compute-100 and 2 more: one at a time
          → continues by itself
        --
    "#]],
    )
    .await;
}
