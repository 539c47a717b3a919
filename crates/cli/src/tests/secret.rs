//! `slipway secret`: what is sent, what is shown, and what is never repeated.

use super::{Page, Program, answer, heard};
use crate::context::Context;
use crate::out::Out;
use clap::{CommandFactory, Parser};
use expect_test::{Expect, expect};
use std::net::TcpListener;
use std::sync::mpsc;

/// What nobody may see.
const VALUE: &str = "hunter2";

const CLOUD: &str = r#"{"name":"cloud","entries":["cert","token"],"version":3,"updatedBy":"ann",
    "updatedAt":"2026-03-01T12:00:00Z"}"#;

/// Answers every request with the next answer, the last one again and again, and tells what was asked.
fn serve(answers: &'static [(&str, &str)]) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let (request, body) = heard(&stream);
            let asked = format!("{} {body}", request.replace(" HTTP/1.1\r\n", ""));
            // Nobody may be listening any more.
            drop(tell.send(asked.trim_end().to_owned()));
            let (status, body) = answers[at.min(answers.len() - 1)];
            answer(&mut stream, status, body);
        }
    });
    (server, told)
}

/// Who gives the value.
enum Giver {
    Nobody,
    Person(&'static str),
    Pipe(&'static [u8]),
}

/// Runs a command line; answers its exit code, its data and its remarks.
async fn run(server: &str, line: &str, giver: Giver) -> String {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let words = ["slipway", "--server", server, "--data-dir", place];
    let program = Program::try_parse_from(words.into_iter().chain(line.split(' '))).unwrap();
    let (data, talk) = (Page::default(), Page::default());
    let out = Out::to(Box::new(data.clone()), Box::new(talk.clone()));
    let mut out = match giver {
        Giver::Nobody => out,
        Giver::Person(answer) => out.answered(answer),
        Giver::Pipe(input) => out.fed(input),
    };
    let mut context = Context::new(&program.global, &mut out);
    let ended = Box::pin(program.verb.run(&mut context, Program::command)).await;
    let exit = ended.unwrap_or_else(|error| error.tell(&mut context));
    let text = |page: Page| String::from_utf8(page.0.take()).unwrap();
    format!("exit {}\n{}--\n{}", exit.code(), text(data), text(talk))
}

async fn sent(line: &str, giver: Giver) -> String {
    let (server, told) = serve(&[("200 OK", CLOUD)]);
    let shown = run(&server, line, giver).await;
    assert!(
        shown.starts_with("exit 0\nsecret cloud, version 3, has cert, token\n"),
        "{shown}"
    );
    assert!(!shown.contains(VALUE), "{shown}");
    let asked = told.recv().unwrap();
    asked.replace("/api/v1/projects/default/secrets/", "")
}

#[tokio::test]
async fn a_value_comes_from_a_file_a_pipe_or_a_person() {
    let file = super::file("line one\nline two\n");
    let from_file = format!("secret set cloud token={}", file.path().display());
    let token = "secret set cloud token";
    let told = [
        sent(&from_file, Giver::Nobody).await,
        sent(token, Giver::Pipe(b"hunter2\n")).await,
        sent(token, Giver::Pipe(b"\xff\x00")).await,
        sent(token, Giver::Person("hunter2\n")).await,
        sent("secret set cloud a b", Giver::Person("hunter2\nhunter3\n")).await,
        sent("secret set cloud a=/dev/null", Giver::Nobody).await,
    ];
    expect![[r#"
        PATCH cloud {"entries":{"token":"line one\u000aline two\u000a"}}
        PATCH cloud {"entries":{"token":"hunter2"}}
        PATCH cloud {"entries":{"token":{"base64":"/wA="}}}
        PATCH cloud {"entries":{"token":"hunter2"}}
        PATCH cloud {"entries":{"a":"hunter2","b":"hunter3"}}
        PATCH cloud {"entries":{"a":""}}"#]]
    .assert_eq(&told.join("\n"));
}

/// Whoever writes a value on the command line is told not to, without repeating it.
#[tokio::test]
async fn a_value_on_the_command_line_is_refused_and_not_repeated() {
    let told = refused(&[
        ("secret set cloud token=hunter2", Giver::Nobody),
        ("secret set cloud token=/hunter2/hunter2", Giver::Nobody),
        ("secret set cloud to/ken=hunter2", Giver::Nobody),
        ("secret set cloud =hunter2", Giver::Nobody),
        (
            "secret set cloud token token",
            Giver::Person("hunter2\nhunter2\n"),
        ),
        ("secret set cloud token cert", Giver::Pipe(b"hunter2")),
        ("secret set cloud token", Giver::Pipe(b"\n")),
        ("secret set cloud token", Giver::Person("\n")),
        ("secret set cloud token", Giver::Nobody),
    ])
    .await;
    assert!(!told.contains(VALUE), "{told}");
    expect![[r#"
        exit 2
        --
        error: `token=` names a file, and there is no such file (CLI-008)
        hint: a value never stands on the command line, where every user of this machine can read it; write `token` alone and be asked for it, or `token=FILE`
        exit 2
        --
        error: `token=` names a file, and there is no such file (CLI-008)
        hint: a value never stands on the command line, where every user of this machine can read it; write `token` alone and be asked for it, or `token=FILE`
        exit 2
        --
        error: the name of an entry cannot be used: entry name has `/`; allowed are a-z, A-Z, 0-9, `.`, `_` and `-` (CLI-008)
        hint: write KEY, or KEY=FILE
        exit 2
        --
        error: the name of an entry cannot be used: entry name is empty (CLI-008)
        hint: write KEY, or KEY=FILE
        exit 2
        --
        error: an entry is named twice (CLI-008)
        hint: write each entry once
        exit 2
        --
        error: standard input holds one value (CLI-008)
        hint: write KEY=FILE for the other entries, or set them one by one
        exit 2
        --
        error: the value is empty (CLI-008)
        hint: if it shall be, write `token=/dev/null`
        exit 2
        --
        value of cloud/token: error: the value is empty (CLI-008)
        hint: if it shall be, write `token=/dev/null`
        exit 2
        --
        error: a value is needed, and nobody can be asked for it (CLI-008)
        hint: pipe it in, or write `token=FILE`
    "#]].assert_eq(&told);
}

async fn refused(lines: &[(&str, Giver)]) -> String {
    let mut told = String::new();
    for (line, giver) in lines {
        let giver = match giver {
            Giver::Nobody => Giver::Nobody,
            Giver::Person(answer) => Giver::Person(answer),
            Giver::Pipe(input) => Giver::Pipe(input),
        };
        told += &run("http://127.0.0.1:1", line, giver).await;
    }
    told
}

#[tokio::test]
async fn a_value_that_is_too_long_is_not_sent() {
    let file = super::file(&"x".repeat((1 << 20) + 1));
    let line = format!("secret set cloud token={}", file.path().display());
    let told = run("http://127.0.0.1:1", &line, Giver::Nobody).await;
    assert!(told.contains("is larger than 1048576 bytes"), "{told}");
}

async fn check(answers: &'static [(&str, &str)], line: &str, giver: Giver, expected: &Expect) {
    let (server, told) = serve(answers);
    let shown = run(&server, line, giver).await;
    let asked: Vec<_> = told.try_iter().collect();
    expected.assert_eq(&format!("{shown}--\n{}\n", asked.join("\n")));
}

#[tokio::test]
async fn what_is_shown_is_what_it_is_called() {
    check(
        &[("200 OK", CLOUD)],
        "secret get-keys cloud",
        Giver::Nobody,
        &expect![[r#"
            exit 0
            cert
            token
            --
            --
            GET /api/v1/projects/default/secrets/cloud
        "#]],
    )
    .await;
    let (server, _told) = serve(&[(
        "200 OK",
        r#"{"items":[{"name":"cloud","entries":["cert","token"],"version":3,"updatedBy":"ann",
            "updatedAt":"2000-03-01T12:00:00Z"}],"next":null}"#,
    )]);
    let listed = run(&server, "secret list", Giver::Nobody).await;
    assert!(
        listed.starts_with(
            "exit 0\nNAME   ENTRIES      VERSION  SET BY  SET\ncloud  cert, token  3        ann"
        ),
        "{listed}"
    );
}

#[tokio::test]
async fn a_removal_is_asked_for_and_names_what_is_there() {
    let removed = &[("200 OK", CLOUD), ("204 No Content", "")];
    let both = "secret delete cloud";
    check(
        removed,
        both,
        Giver::Person("y\n"),
        &expect![[r#"
            exit 0
            removed secret cloud with 2 entries
            --
            remove secret cloud with 2 entries? [y/N] --
            GET /api/v1/projects/default/secrets/cloud
            DELETE /api/v1/projects/default/secrets/cloud
        "#]],
    )
    .await;
    check(
        removed,
        both,
        Giver::Person("n\n"),
        &expect![[r#"
            exit 1
            --
            remove secret cloud with 2 entries? [y/N] nothing was removed
            --
            GET /api/v1/projects/default/secrets/cloud
        "#]],
    )
    .await;
    check(
        removed,
        both,
        Giver::Nobody,
        &expect![[r#"
            exit 2
            --
            error: removing needs a yes, and nobody is here to give it (CLI-008)
            hint: say it with --yes
            --
            GET /api/v1/projects/default/secrets/cloud
        "#]],
    )
    .await;
}

#[tokio::test]
async fn single_entries_are_removed() {
    let one = "secret delete cloud token --yes";
    let left = &[
        ("200 OK", CLOUD),
        (
            "200 OK",
            r#"{"name":"cloud","entries":["cert"],"version":4,
        "updatedBy":"ann","updatedAt":"2026-03-01T12:00:00Z"}"#,
        ),
    ];
    check(
        left,
        one,
        Giver::Nobody,
        &expect![[r#"
            exit 0
            secret cloud, version 4, has cert
            --
            --
            GET /api/v1/projects/default/secrets/cloud
            PATCH /api/v1/projects/default/secrets/cloud {"entries":{"token":null}}
        "#]],
    )
    .await;
    let removed = &[("200 OK", CLOUD)];
    let missing = "secret delete cloud nobody --yes";
    check(
        removed,
        missing,
        Giver::Nobody,
        &expect![[r#"
            exit 2
            --
            error: secret cloud has no entry `nobody` (CLI-008)
            hint: `slipway secret get-keys cloud` lists them
            --
            GET /api/v1/projects/default/secrets/cloud
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_rotation_is_followed_to_its_end() {
    let (server, told) = serve(&[
        (
            "202 Accepted",
            r#"{"keys":[{"id":"key-2","wrappedBy":"04c8","inUse":true,"values":1,"createdAt":"2000-03-01T12:00:00Z"},
            {"id":"key-1","wrappedBy":"04c8","inUse":false,"values":2,"createdAt":"2000-03-01T12:00:00Z"}],"left":2,"closed":null}"#,
        ),
        (
            "200 OK",
            r#"{"keys":[{"id":"key-2","wrappedBy":"04c8","inUse":true,"values":3,"createdAt":"2000-03-01T12:00:00Z"}],
            "left":0,"closed":null}"#,
        ),
    ]);
    let shown = run(&server, "secret rotate-keys --wait", Giver::Nobody).await;
    let asked: Vec<_> = told.try_iter().collect();
    assert_eq!(asked, ["POST /api/v1/keys/rotation", "GET /api/v1/keys"]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(
        lines[1..=2]
            .iter()
            .map(|line| line.split("  ").next().unwrap())
            .collect::<Vec<_>>(),
        ["KEY", "key-2"]
    );
    assert_eq!(lines[4..], ["2 values left to be sealed with the new key"]);
}
