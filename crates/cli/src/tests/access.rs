//! Projects, tokens and audit, as whole verbs.

use super::{check, file, picture, serve};
use expect_test::expect;

const LAB: &str = r#"{"name":"lab","quota":{"clusters":5,"machines":50,"environments":null},
    "used":{"clusters":1,"machines":7},"createdAt":"2026-03-01T12:00:00Z","updatedAt":"2026-03-01T12:00:00Z"}"#;

const ADA: &str = r#""id":"token-0c5w3k9qj2m4x","name":"ada","role":"operator","project":"lab",
    "state":"active","createdBy":"admin","createdAt":"2026-03-01T12:00:00Z","expiresAt":null,
    "lastUsedAt":null,"revokedAt":null}"#;

/// What a server with three entries exports; the digests were computed by another program.
const EXPORT: &str = r#"{"seq":1,"at":"2026-03-01T12:00:00Z","project":null,"actor":"slipway","origin":"first start","action":"token.create","object":"token/token-0c5w3k9qj2m4x","was":null,"became":null,"detail":"admin, admin","previous":"0000000000000000000000000000000000000000000000000000000000000000","digest":"ca60bac2b304a4883bbd7181474e76745eca473ebc65d22d6beae9a435fa6b71"}
{"seq":2,"at":"2026-03-01T12:00:01.5Z","project":"default","actor":"admin","origin":"127.0.0.1 with token-0c5w3k9qj2m4x","action":"manifest.submit","object":"manifest/hello","was":0,"became":1,"detail":"1 cluster","previous":"ca60bac2b304a4883bbd7181474e76745eca473ebc65d22d6beae9a435fa6b71","digest":"7dd8e1fab860fff603ab739514242670caa57bc9602554ce90d4cac169e56bdb"}
{"seq":3,"at":"2026-03-01T12:01:00Z","project":"default","actor":"ada","origin":"192.0.2.7 with token-1c5w3k9qj2m4x","action":"intent.wish","object":"cluster/edge","was":1,"became":null,"detail":"pause: audit until noon","previous":"7dd8e1fab860fff603ab739514242670caa57bc9602554ce90d4cac169e56bdb","digest":"8d6ae66941c79a40012b21412b9996b509b262c447fcad26f11ec427967c8afb"}
"#;

/// Ages grow while the test stands still.
fn ageless(text: &str) -> String {
    let words = text.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let aged = |at: usize| words.get(at + 1) == Some(&"ago");
        let words = words.iter().enumerate();
        let words = words.map(|(at, word)| if aged(at) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ") + "\n"
    });
    words.collect()
}

#[tokio::test]
async fn projects_are_listed_with_what_is_used_of_their_limits() {
    let listed = Box::leak(format!(r#"{{"items":[{LAB}],"next":null}}"#).into_boxed_str());
    let routes = Box::leak(Box::new([
        ("GET /api/v1/projects/lab ", "200 OK", LAB),
        ("GET /api/v1/projects?", "200 OK", &*listed),
    ]));
    let server = serve(routes);
    let all = picture(&server, "get projects", None).await;
    let one = picture(&server, "get project lab", None).await;
    assert_eq!(all, one);
    expect![[r#"
        exit 0
        NAME CLUSTERS MACHINES DECLARED ENVIRONMENTS MADE
        lab 1/5 7/50 - N ago
        --
    "#]]
    .assert_eq(&ageless(&all));
}

#[tokio::test]
async fn a_project_is_made_and_its_limits_are_changed_one_by_one() {
    let server = serve(&[
        ("GET /api/v1/projects/lab ", "200 OK", LAB),
        ("PUT /api/v1/projects/lab ", "200 OK", LAB),
        ("DELETE /api/v1/projects/lab ", "204 No Content", ""),
    ]);
    let mut told = String::new();
    for line in [
        "project create lab",
        "project quota lab --machines 50",
        "project quota lab",
        "project delete lab",
        "project quota other --clusters none",
    ] {
        told.push_str(&ageless(&picture(&server, line, None).await));
    }
    expect![[r#"
        exit 0
        NAME CLUSTERS MACHINES DECLARED ENVIRONMENTS MADE
        lab 1/5 7/50 - N ago
        --
        use it with --project lab; `slipway token create NAME --project-scope lab` lets somebody in
        exit 0
        NAME CLUSTERS MACHINES DECLARED ENVIRONMENTS MADE
        lab 1/5 7/50 - N ago
        --
        exit 2
        --
        error: no limit was named (CLI-008)
        hint: name --clusters, --machines or --environments, each with a number or `none`
        exit 0
        --
        project lab is gone
        exit 1
        --
        error: there is no such thing (API-002)
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn a_token_is_printed_once_and_alone() {
    let made = Box::leak(format!(r#"{{"token":"slipway_s3cret",{ADA}"#).into_boxed_str());
    let routes = Box::leak(Box::new([("POST /api/v1/tokens ", "201 Created", &*made)]));
    let line = "token create ada --role operator --project-scope lab --expires 30d";
    check(&serve(routes), line, &expect![[r#"
        exit 0
        slipway_s3cret
        --
        ada is operator in project lab; the token is not told again, and `slipway token revoke token-0c5w3k9qj2m4x` ends it
    "#]]).await;
}

#[tokio::test]
async fn tokens_are_listed_and_revoked() {
    let one = format!("{{{ADA}");
    let listed = Box::leak(format!(r#"{{"items":[{one}],"next":null}}"#).into_boxed_str());
    let one = Box::leak(one.into_boxed_str());
    let routes = Box::leak(Box::new([
        (
            "GET /api/v1/tokens?limit=500&project=lab ",
            "200 OK",
            &*listed,
        ),
        (
            "GET /api/v1/tokens?limit=500 ",
            "200 OK",
            r#"{"items":[],"next":null}"#,
        ),
        (
            "DELETE /api/v1/tokens/token-0c5w3k9qj2m4x ",
            "200 OK",
            &*one,
        ),
    ]));
    let server = serve(routes);
    let mut told = String::new();
    for line in [
        "token list --project lab",
        "token list",
        "token revoke token-0c5w3k9qj2m4x",
    ] {
        told.push_str(&ageless(&picture(&server, line, None).await));
    }
    expect![[r#"
        exit 0
        ID NAME ROLE PROJECT STATE MADE BY MADE ENDS LAST USED
        token-0c5w3k9qj2m4x ada operator lab active admin N ago when revoked never
        --
        exit 0
        --
        no tokens
        exit 0
        revoked token-0c5w3k9qj2m4x: ada
        --
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn what_was_done_is_listed_newest_first() {
    let entries: Vec<_> = EXPORT.lines().rev().collect();
    let page = |entries: &[&str], next: &str| {
        let text = format!(r#"{{"items":[{}],"next":{next}}}"#, entries.join(","));
        &*Box::leak(text.into_boxed_str())
    };
    let routes = Box::leak(Box::new([
        (
            "GET /api/v1/audit?limit=3 ",
            "200 OK",
            page(&entries[..2], r#""audit.2""#),
        ),
        (
            "GET /api/v1/audit?limit=1&cursor=audit.2 ",
            "200 OK",
            page(&entries[2..], "null"),
        ),
    ]));
    let told = picture(&serve(routes), "audit list --limit 3", None).await;
    expect![[r#"
        exit 0
        ENTRY WHEN PROJECT WHO FROM WHAT OBJECT GENERATION DETAIL
        3 N ago default ada 192.0.2.7 with token-1c5w3k9qj2m4x intent.wish cluster/edge 1 → - pause: audit until noon
        2 N ago default admin 127.0.0.1 with token-0c5w3k9qj2m4x manifest.submit manifest/hello 0 → 1 1 cluster
        1 N ago - slipway first start token.create token/token-0c5w3k9qj2m4x admin, admin
        --
    "#]].assert_eq(&ageless(&told));
}

#[tokio::test]
async fn an_export_is_verified_without_a_server() {
    let verify = async |text: &str| {
        let file = file(text);
        let line = format!("audit verify --file {}", file.path().display());
        picture("http://127.0.0.1:1", &line, None).await
    };
    expect![[r#"
        exit 0
        3 entries are as they were written, up to the digest 8d6ae66941c79a40012b21412b9996b509b262c447fcad26f11ec427967c8afb
        --
    "#]].assert_eq(&verify(EXPORT).await);
    expect![[r#"
        exit 1
        2 entries are as they were written, up to the digest 7dd8e1fab860fff603ab739514242670caa57bc9602554ce90d4cac169e56bdb
        --
        error: the audit chain is broken at entry 3: it was changed after it was written (AUDIT-001)
        hint: compare it with an export or a backup from before, and find out who can write there
    "#]].assert_eq(&verify(&EXPORT.replace("until noon", "until moon")).await);
    let nothing = verify("").await;
    assert!(
        nothing.starts_with("exit 1\n") && nothing.contains("AUDIT-002"),
        "{nothing}"
    );
    let mut lines: Vec<_> = EXPORT.lines().collect();
    lines.remove(1);
    expect![[r#"
        exit 1
        1 entry is as it was written, with the digest ca60bac2b304a4883bbd7181474e76745eca473ebc65d22d6beae9a435fa6b71
        --
        error: the audit chain is broken at entry 3: an entry before it is missing (AUDIT-001)
        hint: compare it with an export or a backup from before, and find out who can write there
    "#]].assert_eq(&verify(&lines.join("\n")).await);
    expect![[r#"
        exit 1
        no entry is as it was written
        --
        error: the audit chain is broken at entry 1: its line is not an entry (AUDIT-001)
        hint: compare it with an export or a backup from before, and find out who can write there
    "#]]
    .assert_eq(&verify("what is this?\n").await);
    // As an export with --project writes it: without what concerns no project.
    let (_, part) = EXPORT.split_once('\n').unwrap();
    expect![[r#"
        exit 1
        no entry is as it was written
        --
        error: the audit chain is broken at entry 2: an entry before it is missing (AUDIT-001)
        hint: an export of one project is no whole chain and cannot be verified: export without --project, with a token for all projects
    "#]].assert_eq(&verify(part).await);
    expect![[r#"
        exit 2
        --
        error: there is no file `/nowhere` (CLI-006)
        hint: is the name right? `-` reads standard input
    "#]]
    .assert_eq(&picture("http://127.0.0.1:1", "audit verify --file /nowhere", None).await);
}

#[tokio::test]
async fn a_server_whose_chain_is_broken_is_a_failure() {
    let server = serve(&[(
        "GET /api/v1/audit/verification ",
        "200 OK",
        r#"{"intact":false,"entries":6,"head":"abc","broken":{"seq":7,"reason":"it was changed after it was written"}}"#,
    )]);
    check(
        &server,
        "audit verify -o json",
        &expect![[r#"
        exit 1
        {
          "intact": false,
          "entries": 6,
          "head": "abc",
          "broken": {
            "seq": 7,
            "reason": "it was changed after it was written"
          }
        }
        --
        error: the audit chain is broken at entry 7: it was changed after it was written (AUDIT-001)
        hint: compare it with an export or a backup from before, and find out who can write there
    "#]],
    )
    .await;
}

#[tokio::test]
async fn the_whole_chain_is_verified_whatever_project_is_named() {
    let server = serve(&[(
        "GET /api/v1/audit/verification ",
        "200 OK",
        r#"{"intact":true,"entries":6,"head":"abc"}"#,
    )]);
    check(
        &server,
        "audit verify --project lab",
        &expect![[r#"
        exit 0
        6 entries are as they were written, up to the digest abc
        --
        --project changes nothing here: the whole chain is verified, of all projects
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_export_is_written_to_a_file_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&[("GET /api/v1/audit/export ", "200 OK", EXPORT)]);
    let to = dir.path().join("audit.jsonl");
    let line = format!("audit export --to {}", to.display());
    let told = picture(&server, &line, None).await;
    expect![[r#"
        exit 0
        --
        wrote 3 lines to PLACE/audit.jsonl
    "#]]
    .assert_eq(&told.replace(dir.path().to_str().unwrap(), "PLACE"));
    assert_eq!(std::fs::read_to_string(&to).unwrap(), EXPORT);
    let refused = serve(&[(
        "GET /api/v1/audit/export ",
        "403 Forbidden",
        r#"{"title":"role too low","status":403,"code":"AUTH-005","detail":"this needs the role admin, and the token has the role viewer"}"#,
    )]);
    let told = picture(&refused, "audit export", None).await;
    expect![[r#"
        exit 3
        --
        error: this needs the role admin, and the token has the role viewer (AUTH-005)
    "#]]
    .assert_eq(&told);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}
