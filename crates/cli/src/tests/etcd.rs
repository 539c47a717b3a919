//! Snapshots of etcd, as whole verbs.

use super::{HELLO, pictured, serve};
use crate::global::Global;
use crate::verb::etcd::{self, Verb};
use clap::Parser;
use expect_test::{Expect, expect};

/// The part of the program that is about etcd: what it is called is the binary's to say.
#[derive(Parser)]
struct Program {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

async fn check(server: &str, line: &str, expected: &Expect) {
    let split = |program: Program| (program.global, program.verb);
    let run = pictured(server, (line, None), split, etcd::run);
    expected.assert_eq(&run.await);
}

const NOBODY: &str = r#"{"items":[],"next":null}"#;

/// A cluster that was restored at half past twelve.
const EDGE: &str = r#"{"id":"cluster-1","project":"default","manifest":"hello","incarnation":0,
    "generation":2,"version":"v1.34.4","name":"edge","state":"done","control":{"ready":3,"wanted":3},
    "compute":{"ready":2,"wanted":2},"leaving":0,"tasks":0,"message":"as declared","held":[],
    "observedAt":"2026-03-01T12:30:00Z","updatedAt":"2026-03-01T12:30:30Z","machines":[],"openTasks":[],
    "kubernetes":{"cni":"routed","kubeProxy":"iptables","podNetwork":"10.244.0.0/16",
        "serviceNetwork":"10.96.0.0/12","certificates":[],
        "endpoint":{"name":"api.edge.slipway.internal","port":6443,"machines":[]},
        "snapshots":{"kept":[{"id":"20260301T020000Z-0a1b2c3d","takenAt":"2026-03-01T02:00:00Z","bytes":7,
            "version":"v1.34.4"}],
            "restored":{"snapshot":"20260301T020000Z-0a1b2c3d","observedAt":"2026-03-01T12:30:00Z"}}}}"#;

const RESTORE: &str = r#"{"id":"intent-1","project":"default","cluster":"edge",
    "wish":{"restore":{"snapshot":"20260301T020000Z-0a1b2c3d"}},"author":"ann","reason":"audit",
    "createdAt":"2026-03-01T12:29:00Z","expiresAt":null}"#;

const SNAPSHOT: &str = r#"{"id":"intent-2","project":"default","cluster":"edge","wish":{"snapshot":{}},
    "author":"ann","reason":"audit","createdAt":"2026-03-01T12:29:00Z","expiresAt":null}"#;

#[tokio::test]
async fn waiting_for_a_restore_ends_when_it_was_seen() {
    let server = serve(&[
        ("GET clusters/edge ", "200 OK", EDGE),
        ("POST intents", "201 Created", RESTORE),
        ("GET intents", "200 OK", NOBODY),
        ("GET manifests/hello ", "200 OK", HELLO),
        ("GET tasks", "200 OK", NOBODY),
    ]);
    let line = "restore edge --snapshot 20260301T020000Z-0a1b2c3d --yes --wait";
    check(
        &server,
        line,
        &expect![[r#"
        exit 0
        cluster edge is restored from 20260301T020000Z-0a1b2c3d
        --
        intent-1 on cluster edge: restore etcd from 20260301T020000Z-0a1b2c3d
        edge: 3/3 control, 2/2 compute — ready
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_wish_that_somebody_took_back_ends_the_wait() {
    let server = serve(&[
        ("GET clusters/edge ", "200 OK", EDGE),
        ("POST intents", "201 Created", SNAPSHOT),
        ("GET intents", "200 OK", NOBODY),
        ("GET manifests/hello ", "200 OK", HELLO),
        ("GET tasks", "200 OK", NOBODY),
    ]);
    check(
        &server,
        "create edge --wait",
        &expect![[r#"
        exit 4
        --
        intent-2 on cluster edge: snapshot of etcd
        edge: 3/3 control, 2/2 compute — ready
        error: intent-2 was withdrawn or has ended before it was fulfilled
    "#]],
    )
    .await;
    check(
        &server,
        "create edge --wait --timeout 0s",
        &expect![[r#"
            exit 1
            --
            intent-2 on cluster edge: snapshot of etcd
            not done after 0s; the server goes on. Follow it with `slipway describe cluster edge`
        "#]],
    )
    .await;
}
