//! Lists, generations and scripts, as whole verbs.

use super::{HELLO, Program, check, picture, serve};
use clap::CommandFactory;
use expect_test::expect;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn a_list_is_read_to_its_end() {
    let server = serve(&[
        (
            "GET intents?limit=500 ",
            "200 OK",
            r#"{"items":[{"id":"intent-1","project":"default","cluster":"edge",
            "wish":{"pause":{}},"author":"ann","reason":"audit","createdAt":"2026-03-01T12:00:00Z","expiresAt":null}],"next":"b"}"#,
        ),
        (
            "GET intents?limit=500&cursor=b ",
            "200 OK",
            r#"{"items":[{"id":"intent-2","project":"default","cluster":"core",
            "wish":{"scale":{"pool":"compute","count":5,"was":3}},"author":"ben","reason":"sale",
            "createdAt":"2026-03-01T12:00:00Z","expiresAt":null}],"next":null}"#,
        ),
        (
            "GET clusters/edge ",
            "200 OK",
            r#"{"id":"cluster-1","project":"default","manifest":"hello","incarnation":0,
            "generation":3,"version":"v1.35.0","name":"edge","state":"error","control":{"ready":3,"wanted":3},
            "compute":{"ready":0,"wanted":3},"leaving":0,"tasks":0,"message":"paused","held":[],"observedAt":null,
            "updatedAt":"2026-03-01T12:30:00Z","machines":[],"openTasks":[]}"#,
        ),
        ("DELETE intents/intent-1 ", "204 No Content", ""),
    ]);
    let listed = picture(&server, "intent list -o json", None).await;
    assert_eq!(listed.matches("\"id\"").count(), 2, "{listed}");
    check(
        &server,
        "cluster resume edge",
        &expect![[r"
        exit 0
        cluster edge goes on; withdrew 1 pause
        --
    "]],
    )
    .await;
    check(
        &server,
        "get intent intent-0000000000009",
        &expect![[r"
        exit 1
        --
        error: there is no intent `intent-0000000000009` (CLI-009)
        hint: `slipway get intent` lists them
    "]],
    )
    .await;
}

#[tokio::test]
async fn generations_are_compared_line_by_line() {
    let server = serve(&[
        ("GET manifests/hello ", "200 OK", HELLO),
        (
            "GET manifests/hello/generations/1 ",
            "200 OK",
            r#"{"project":"default","name":"hello","generation":1,
            "author":"admin","createdAt":"2026-03-01T12:00:00Z","deleted":false,"text":"a: 1\nb: 1\n"}"#,
        ),
        (
            "GET manifests/hello/generations/2 ",
            "200 OK",
            r#"{"project":"default","name":"hello","generation":2,
            "author":"admin","createdAt":"2026-03-01T12:00:00Z","deleted":false,"text":"a: 1\nb: 2\n"}"#,
        ),
    ]);
    check(
        &server,
        "diff manifest hello",
        &expect![[r"
        exit 0
        --- manifest hello generation 1
        +++ manifest hello generation 2
        @@ -1 +1 @@
          a: 1
        - b: 1
        + b: 2
        --
    "]],
    )
    .await;
    check(
        &server,
        "diff manifest hello --from 2 --to 2",
        &expect![[r"
        exit 0
        --
        no difference
    "]],
    )
    .await;
}

#[tokio::test]
async fn a_completion_script_knows_every_verb() {
    let script = picture("http://127.0.0.1:1", "completion bash", None).await;
    for verb in Program::command().get_subcommands() {
        assert!(script.contains(verb.get_name()), "{}", verb.get_name());
    }
}

const KUBECONFIG: &str =
    "apiVersion: v1\nclusters:\n- cluster:\n    server: https://192.0.2.7:6443\n  name: edge\n";

#[tokio::test]
async fn a_kubeconfig_is_printed_as_it_came_or_written_for_one_pair_of_eyes() {
    let server = serve(&[("GET clusters/edge/kubeconfig ", "200 OK", KUBECONFIG)]);
    let printed = picture(&server, "kubeconfig edge", None).await;
    assert_eq!(printed, format!("exit 0\n{KUBECONFIG}--\n"));
    check(
        &server,
        "kubeconfig edge -o json",
        &expect![[r#"
            exit 0
            {
              "apiVersion": "v1",
              "clusters": [
                {
                  "cluster": {
                    "server": "https://192.0.2.7:6443"
                  },
                  "name": "edge"
                }
              ]
            }
            --
        "#]],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("edge.conf");
    let line = format!("kubeconfig edge --to {}", to.display());
    let written = picture(&server, &line, None).await;
    assert!(written.starts_with("exit 0\n--\nwrote"), "{written}");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), KUBECONFIG);
    let mode = std::fs::metadata(&to).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = picture(&server, "kubeconfig other --to /nowhere/a", None).await;
    assert!(refused.contains("CLI-010"), "{refused}");
}
