//! The client against a server that says exactly what a test wants it to say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use api::client::{Error, Page, Submit};
use api::{Client, LogSignal, ProjectRequest, Quota, Signal, TokenRequest, TokenRole};
use expect_test::{Expect, expect};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// Answers one request per script, in order, and returns what was asked.
fn serve(scripts: &[&str]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let scripts: Vec<String> = scripts.iter().map(|script| (*script).to_owned()).collect();
    let thread = std::thread::spawn(move || {
        let answer = |script: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut asked, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                let noise = ["content-length", "host", "user-agent"];
                if !noise.iter().any(|name| line.starts_with(name)) {
                    asked.push_str(line);
                    asked.push('\n');
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            asked.push_str(&String::from_utf8(body).unwrap());
            stream.write_all(script.as_bytes()).unwrap();
            asked
        };
        scripts.into_iter().map(answer).collect()
    });
    (server, thread)
}

fn json(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// An event stream that breaks off after `text`.
fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}

fn event(id: u64) -> String {
    format!(
        r#"id: {id}
event: cluster
data: {{"id":{id},"at":"2026-03-01T12:00:00Z","project":"default","kind":"cluster","object":"edge","message":"m"}}

"#
    )
}

fn client(server: &str) -> Client {
    Client::new(server, Some("token"), "default").unwrap()
}

#[track_caller]
fn check(error: &Error, expected: &Expect) {
    let server = |text: String| match text.split_once("http://") {
        Some((before, after)) => {
            let rest = after.find(' ').map_or("", |at| &after[at..]);
            format!("{before}SERVER{rest}")
        }
        None => text,
    };
    let hint = error.hint().unwrap_or_default();
    let said = server(error.to_string());
    expected.assert_eq(&format!(
        "{} {} {said}\nhint: {hint}\n",
        error.exit().code(),
        error.code()
    ));
}

#[tokio::test]
async fn nobody_there_is_one_sentence_with_a_way_out() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = client(&format!("http://127.0.0.1:{port}"))
        .cluster("edge")
        .await
        .unwrap_err();
    check(
        &error,
        &expect![[r"
        1 CLI-002 no server answers at SERVER
        hint: start one with `slipway serve`, or name another with --server
    "]],
    );
}

#[tokio::test]
async fn a_problem_keeps_its_code_and_its_hint() {
    let body =
        r#"{"title":"refused","status":409,"code":"PLAN-001","detail":"too much","hint":"say so"}"#;
    let (server, _) = serve(&[&json("409 Conflict", "application/problem+json", body)]);
    let error = client(&server)
        .submit("a: b", &Submit::default())
        .await
        .unwrap_err();
    check(
        &error,
        &expect![[r"
        3 PLAN-001 too much
        hint: say so
    "]],
    );
}

#[tokio::test]
async fn somebody_elses_server_is_recognised() {
    let (server, _) = serve(&[&json("404 Not Found", "text/html", "<h1>lost?</h1>")]);
    check(
        &client(&server).cluster("edge").await.unwrap_err(),
        &expect![[r"
        1 CLI-004 SERVER answered with status 404 and without a reason
        hint: is this the address of a Slipway server?
    "]],
    );
    let (server, _) = serve(&[&json("200 OK", "application/json", "[]")]);
    check(
        &client(&server).cluster("edge").await.unwrap_err(),
        &expect![[r"
        1 CLI-004 the answer of SERVER is not what this version understands
        hint: use a client and a server of the same version
    "]],
    );
}

#[tokio::test]
async fn a_manifest_is_sent_with_everything_that_was_said_about_it() {
    let body =
        r#"{"manifest":"hello","generation":2,"changed":["edge"],"unchanged":0,"follow":"/x"}"#;
    let (server, asked) = serve(&[&json("202 Accepted", "application/json", body)]);
    let submit = Submit {
        allow: api::client::Allow {
            blast: Some(50),
            data_loss: true,
        },
        plan: Some("plan-1".to_owned()),
        parent: Some(1),
        key: Some("k".to_owned()),
    };
    let accepted = client(&server)
        .submit("name: hello", &submit)
        .await
        .unwrap();
    assert_eq!(
        (accepted.generation, accepted.changed),
        (2, vec!["edge".to_owned()])
    );
    expect![[r"
        POST /api/v1/projects/default/manifests?allowBlast=50&allowDataLoss=true&plan=plan-1 HTTP/1.1
        authorization: Bearer token
        content-type: application/yaml
        if-match: 1
        idempotency-key: k
        accept: application/json
        name: hello"]]
    .assert_eq(&asked.join().unwrap()[0]);
}

#[tokio::test]
async fn a_list_is_asked_for_by_page_and_filter() {
    let page = json("200 OK", "application/json", r#"{"items":[],"next":"b"}"#);
    let (server, asked) = serve(&[&page]);
    let page = Page {
        limit: Some(2),
        cursor: Some("a b".to_owned()),
    };
    let listed = client(&server).machines(Some("edge"), &page).await.unwrap();
    assert_eq!(listed.next.as_deref(), Some("b"));
    let asked = asked.join().unwrap();
    let line = asked[0].lines().next().unwrap();
    assert_eq!(
        line,
        "GET /api/v1/projects/default/machines?limit=2&cursor=a+b&cluster=edge HTTP/1.1"
    );
}

#[tokio::test]
async fn a_broken_stream_goes_on_after_the_last_event() {
    let first = events(&format!(": hello\n\n{}{}", event(7), event(8)));
    let second = events(&format!("{}data: {{\n\n", event(9)));
    let (server, asked) = serve(&[&first, &second]);
    let mut stream = client(&server).events(None);
    let mut heard = Vec::new();
    while heard.len() < 8 {
        heard.push(match stream.next().await.unwrap() {
            Signal::Open => "open".to_owned(),
            Signal::Event(event) => event.id.to_string(),
            Signal::Unknown => "unknown".to_owned(),
            Signal::Lost(error) => error.code().to_owned(),
        });
    }
    let expected = [
        "open", "7", "8", "CLI-003", "open", "9", "unknown", "CLI-003",
    ];
    assert_eq!(
        (heard, stream.after()),
        (expected.map(str::to_owned).to_vec(), Some(9))
    );
    let asked = asked.join().unwrap();
    assert!(!asked[0].contains("last-event-id") && asked[0].contains("accept: text/event-stream"));
    assert!(asked[1].contains("last-event-id: 8"), "{}", asked[1]);
}

#[tokio::test]
async fn a_stream_that_is_refused_ends_at_once() {
    let body = r#"{"title":"a","status":401,"code":"API-003","detail":"no token"}"#;
    let (server, _) = serve(&[&json("401 Unauthorized", "application/problem+json", body)]);
    let error = client(&server).events(Some(3)).next().await.unwrap_err();
    assert_eq!(error.code(), "API-003");
}

fn line(seq: u64) -> String {
    format!(
        "id: {seq}\nevent: line\ndata: {{\"seq\":{seq},\"attempt\":1,\"at\":\"2026-03-01T12:00:00Z\",\"text\":\"t\"}}\n\n"
    )
}

#[tokio::test]
async fn a_followed_log_goes_on_after_its_last_line_and_knows_its_end() {
    let first = events(&format!("{}{}", line(1), line(2)));
    let second = events(&format!(
        "{}event: line\ndata: {{\n\nevent: end\ndata: {{\"state\":\"withdrawn\",\"next\":3}}\n\n",
        line(3)
    ));
    let (server, asked) = serve(&[&first, &second]);
    let mut log = client(&server).follow_task_log("task-1", 0);
    let mut heard = Vec::new();
    while heard.len() < 8 {
        heard.push(match log.next().await.unwrap() {
            LogSignal::Open => "open".to_owned(),
            LogSignal::Line(line) => line.seq.to_string(),
            LogSignal::End(end) => format!("{} at {}", end.state, end.next),
            LogSignal::Unknown => "unknown".to_owned(),
            LogSignal::Lost(error) => error.code().to_owned(),
        });
    }
    let expected = [
        "open",
        "1",
        "2",
        "CLI-003",
        "open",
        "3",
        "unknown",
        "withdrawn at 3",
    ];
    assert_eq!(
        (heard, log.after()),
        (expected.map(str::to_owned).to_vec(), 3)
    );
    let asked = asked.join().unwrap();
    assert!(
        asked[0].starts_with("GET /api/v1/projects/default/tasks/task-1/log HTTP/1.1"),
        "{}",
        asked[0]
    );
    assert!(!asked[0].contains("last-event-id") && asked[0].contains("accept: text/event-stream"));
    assert!(asked[1].contains("last-event-id: 2"), "{}", asked[1]);
}

#[tokio::test]
async fn what_belongs_to_no_project_is_asked_beside_them() {
    let lab = r#"{"name":"lab","quota":{"clusters":2,"machines":null,"environments":null},
        "used":{"clusters":0,"machines":0},"createdAt":"2026-03-01T12:00:00Z","updatedAt":"2026-03-01T12:00:00Z"}"#;
    let made = r#"{"token":"slipway_s3cret","id":"token-1","name":"ci","role":"user","project":"lab","state":"active",
        "createdBy":"admin","createdAt":"2026-03-01T12:00:00Z","expiresAt":null,"lastUsedAt":null,"revokedAt":null}"#;
    let nothing = r#"{"items":[],"next":null}"#;
    let scripts = [
        json("201 Created", "application/json", lab),
        json("201 Created", "application/json", made),
        json("200 OK", "application/json", nothing),
    ];
    let (server, asked) = serve(&scripts.each_ref().map(String::as_str));
    let client = client(&server);
    let quota = Quota {
        clusters: Some(2),
        ..Quota::default()
    };
    let project = client
        .create_project("lab", &ProjectRequest { quota })
        .await;
    assert_eq!(project.unwrap().quota, quota);
    let request = TokenRequest {
        name: "ci".to_owned(),
        role: TokenRole::User,
        project: Some("lab".to_owned()),
        expires_in_seconds: None,
    };
    let made = client.create_token(&request).await.unwrap();
    assert_eq!(made.token, "slipway_s3cret");
    client.audit(Some("lab"), &Page::default()).await.unwrap();
    expect![[r#"
        PUT /api/v1/projects/lab HTTP/1.1
        authorization: Bearer token
        content-type: application/json
        if-none-match: *
        accept: application/json
        {"quota":{"clusters":2,"machines":null,"environments":null}}
        POST /api/v1/tokens HTTP/1.1
        authorization: Bearer token
        content-type: application/json
        accept: application/json
        {"name":"ci","role":"user","project":"lab"}
        GET /api/v1/audit?project=lab HTTP/1.1
        authorization: Bearer token
        accept: application/json
    "#]]
    .assert_eq(&asked.join().unwrap().join("\n"));
}

#[tokio::test]
async fn an_export_that_breaks_off_is_not_taken_for_a_whole_one() {
    let whole = json("200 OK", "application/x-ndjson", "{}\n{}\n");
    let cut = whole.strip_suffix("{}\n").unwrap();
    let (server, _asked) = serve(&[&whole, cut]);
    let client = client(&server);
    let read = async || {
        let mut export = client.export_audit(None).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = export.next().await? {
            bytes.extend(piece);
        }
        Ok::<_, Error>(bytes)
    };
    assert_eq!(read().await.unwrap(), b"{}\n{}\n");
    assert_eq!(read().await.unwrap_err().code(), "CLI-003");
}
