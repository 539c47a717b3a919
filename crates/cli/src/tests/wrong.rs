//! Calls that cannot work, and what is said of them.

use super::{Program, check, serve};
use clap::Parser;
use expect_test::expect;
use std::net::TcpListener;

#[tokio::test]
async fn nobody_there_is_said_in_one_sentence() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    check(
        &format!("http://127.0.0.1:{port}"),
        "get clusters",
        &expect![[r"
            exit 1
            --
            error: no server answers at SERVER: Connection refused (os error 111) (CLI-002)
            hint: start one with `slipway serve`, or name another with --server
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_missing_token_is_explained() {
    let server = serve(&[(
        "GET clusters",
        "401 Unauthorized",
        r#"{"title":"who?","status":401,"code":"API-003","detail":"a token is needed"}"#,
    )]);
    check(&server, "get clusters", &expect![[r"
        exit 1
        --
        error: a token is needed (API-003)
        hint: there is no token in DIR/admin.token; name the server's --data-dir, or set SLIPWAY_TOKEN
    "]]).await;
}

#[tokio::test]
async fn what_a_script_printed_does_not_steer_the_terminal() {
    let server = serve(&[(
        "GET clusters",
        "422 Unprocessable Entity",
        r#"{"title":"no","status":422,"code":"ENV-010","detail":"\u001b[31mno\u0007\nwhy","hint":"h"}"#,
    )]);
    check(
        &server,
        "get clusters",
        &expect![[r"
            exit 1
            --
            error:  [31mno 
            why (ENV-010)
            hint: h
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_file_that_is_not_there_is_a_wrong_call() {
    check(
        "http://127.0.0.1:1",
        "apply -f /nowhere/a.yaml",
        &expect![[r"
            exit 2
            --
            error: there is no file `/nowhere/a.yaml` (CLI-006)
            hint: is the name right? `-` reads standard input
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_filter_that_filters_nothing_is_a_mistake() {
    check(
        "http://127.0.0.1:1",
        "get manifests --cluster edge",
        &expect![[r"
            exit 2
            --
            error: --cluster does not apply to manifests (CLI-008)
            hint: `slipway get --help` tells which filter is for what
        "]],
    )
    .await;
    check(
        "http://127.0.0.1:1",
        "get tasks --state pending",
        &expect![[r"
            exit 2
            --
            error: no task is ever `pending` (CLI-008)
            hint: they are waiting, running, stuck, done, withdrawn
        "]],
    )
    .await;
    check(
        "http://127.0.0.1:1",
        "describe event 7",
        &expect![[r"
        exit 2
        --
        error: `slipway describe` is not for a single event (CLI-008)
        hint: it is for manifests, clusters, machines, tasks and intents
    "]],
    )
    .await;
}

#[test]
fn what_cannot_be_a_name_or_an_id_is_a_wrong_call() {
    for line in [
        "task log nope",
        "apply -f a.yaml --plan plan-xxx",
        "get clusters --project O!",
        "get machines --cluster O!",
        "pool scale edge/O! 3",
        "intent withdraw task-0000000000001",
        "simulate -f a.yaml --faults windy",
    ] {
        let words = std::iter::once("slipway").chain(line.split(' '));
        let refused = Program::try_parse_from(words).err();
        assert_eq!(refused.map(|error| error.exit_code()), Some(2), "{line}");
    }
}

#[tokio::test]
async fn a_name_that_no_such_thing_can_have_is_a_wrong_call() {
    check(
        "http://127.0.0.1:1",
        "why task nope",
        &expect![[r#"
        exit 2
        --
        error: `nope` is not an id of the form `task-` and 13 characters (CLI-008)
        hint: `slipway get task` lists the ids
    "#]],
    )
    .await;
    check(
        "http://127.0.0.1:1",
        "delete manifest O!",
        &expect![[r#"
        exit 2
        --
        error: `O` is upper case; allowed are a-z, 0-9 and, inside, hyphens (CLI-008)
        hint: `slipway get manifest` lists the names
    "#]],
    )
    .await;
    check(
        "http://127.0.0.1:1",
        "get event nope",
        &expect![[r#"
        exit 2
        --
        error: `nope` is not the number of an event (CLI-008)
        hint: `slipway get event` lists the numbers
    "#]],
    )
    .await;
}
