//! Plans, applies and deletes, as whole verbs.

use super::{HELLO, check, file, picture, serve};
use expect_test::expect;

const ACCEPTED: &str =
    r#"{"manifest":"hello","generation":2,"changed":["edge"],"unchanged":0,"follow":"/x"}"#;

#[tokio::test]
async fn all_faults_of_a_manifest_are_printed_at_once() {
    let server = serve(&[(
        "POST plans",
        "422 Unprocessable Content",
        r#"{"title":"faults","status":422,"code":"INPUT-001","detail":"the manifest has 2 faults",
            "faults":[{"path":"spec.nodePools.dynamic[2].count","code":"range","message":"found 0, allowed: 1 to 1000"},
            {"path":"spec.colour","code":"unknown-field","message":"nothing reads this"}]}"#,
    )]);
    let file = file("kind: InputManifest");
    let line = format!("plan -f {}", file.path().display());
    check(
        &server,
        &line,
        &expect![[r"
        exit 1
        --
        error: the manifest has 2 faults (INPUT-001)
        spec.nodePools.dynamic[2].count: found 0, allowed: 1 to 1000
        spec.colour: nothing reads this
    "]],
    )
    .await;
}

#[tokio::test]
async fn a_journey_is_printed_as_it_is_with_the_way_to_do_it() {
    let server = serve(&[(
        "POST plans",
        "200 OK",
        r#"{"id":"plan-1","kept":true,"text":"cluster edge\n  1  create\n","clusters":[],"empty":false,"minutes":3}"#,
    )]);
    let file = file("kind: InputManifest");
    let path = file.path().to_str().unwrap();
    let shown = picture(&server, &format!("plan -f {path}"), None).await;
    expect![[r"
        exit 0
        cluster edge
          1  create
        --
        to do this and no more: slipway apply -f FILE --plan plan-1
    "]]
    .assert_eq(&shown.replace(path, "FILE"));
    let line = format!("plan -f {path} --allow-blast 50 --allow-data-loss");
    let shown = picture(&server, &line, None).await;
    let told = shown.replace(path, "FILE");
    let last = "slipway apply -f FILE --allow-blast 50 --allow-data-loss --plan plan-1";
    assert!(told.trim_end().ends_with(last), "{told}");
}

#[tokio::test]
async fn a_journey_beyond_the_limits_is_shown_and_refused() {
    let server = serve(&[(
        "POST plans",
        "200 OK",
        r#"{"id":"plan-1","kept":true,"text":"cluster edge\n","clusters":[],"empty":false,"minutes":3,"refused":
            {"title":"refused","status":409,"code":"PLAN-001","detail":"3 of 6 machines would go","hint":"--allow-blast 50"}}"#,
    )]);
    let file = file("kind: InputManifest");
    check(
        &server,
        &format!("plan -f {}", file.path().display()),
        &expect![[r"
            exit 3
            cluster edge
            --
            applying this would be refused (PLAN-001)
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_journey_that_was_not_kept_cannot_be_referred_to() {
    let server = serve(&[(
        "POST plans",
        "200 OK",
        r#"{"id":"plan-1","kept":false,"text":"cluster edge\n","clusters":[],"empty":false,"minutes":3}"#,
    )]);
    let file = file("kind: InputManifest");
    check(
        &server,
        &format!("plan -f {}", file.path().display()),
        &expect![[r#"
            exit 0
            cluster edge
            --
            the server could not write this plan down, so `apply --plan` cannot refer to it
        "#]],
    )
    .await;
}

#[tokio::test]
async fn applying_says_what_was_accepted() {
    let server = serve(&[("POST manifests", "202 Accepted", ACCEPTED)]);
    let file = file("kind: InputManifest");
    let line = format!("apply -f {}", file.path().display());
    check(
        &server,
        &line,
        &expect![[r"
            exit 0
            manifest hello generation 2: 1 cluster (edge) changes
            --
            follow it with `slipway describe manifest hello`
        "]],
    )
    .await;
    check(
        &server,
        &format!("{line} -o yaml"),
        &expect![[r"
        exit 0
        manifest: hello
        generation: 2
        changed:
        - edge
        unchanged: 0
        follow: /x
        --
        follow it with `slipway describe manifest hello`
    "]],
    )
    .await;
}

#[tokio::test]
async fn waiting_ends_when_the_manifest_is_done() {
    let server = serve(&[
        ("POST manifests", "202 Accepted", ACCEPTED),
        ("GET manifests/hello ", "200 OK", HELLO),
        ("GET tasks", "200 OK", r#"{"items":[],"next":null}"#),
    ]);
    let file = file("kind: InputManifest");
    let line = format!("apply -f {} --wait", file.path().display());
    check(
        &server,
        &line,
        &expect![[r"
            exit 0
            manifest hello is done at generation 2
            --
            manifest hello generation 2: 1 cluster (edge) changes
            edge: 3/3 control, 2/2 compute — ready
        "]],
    )
    .await;
}

#[tokio::test]
async fn a_wait_that_takes_too_long_says_how_to_go_on() {
    let server = serve(&[
        (
            "POST manifests",
            "202 Accepted",
            r#"{"manifest":"hello","generation":3,"changed":[],"unchanged":1,"follow":"/x"}"#,
        ),
        ("GET manifests/hello ", "200 OK", HELLO),
        ("GET tasks", "200 OK", r#"{"items":[],"next":null}"#),
    ]);
    let file = file("kind: InputManifest");
    let line = format!("apply -f {} --wait --timeout 0s", file.path().display());
    let shown = picture(&server, &line, None).await;
    expect![[r"
        exit 1
        --
        manifest hello generation 3: nothing changed
        not done after 0s; the server goes on. Follow it with `slipway apply -f FILE --wait`
    "]]
    .assert_eq(&shown.replace(file.path().to_str().unwrap(), "FILE"));
}

#[tokio::test]
async fn deleting_needs_a_yes() {
    let server = serve(&[
        ("GET manifests/hello ", "200 OK", HELLO),
        ("DELETE manifests/hello ", "202 Accepted", ACCEPTED),
    ]);
    check(
        &server,
        "delete manifest hello",
        &expect![[r"
        exit 2
        --
        error: deleting needs a yes, and nobody is here to give it (CLI-008)
        hint: say it with --yes
    "]],
    )
    .await;
    expect![[r"
        exit 1
        --
        delete manifest hello with 1 cluster and 5 machines for good? [y/N] nothing was deleted
    "]]
    .assert_eq(&picture(&server, "delete manifest hello", Some("n\n")).await);
    expect![[r"
        exit 0
        manifest hello goes, with 1 cluster (edge)
        --
        delete manifest hello with 1 cluster and 5 machines for good? [y/N] follow it with `slipway describe manifest hello`
    "]].assert_eq(&picture(&server, "delete manifest hello", Some("y\n")).await);
}
