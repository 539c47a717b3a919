//! Whole verbs against a server that says exactly what a test wants it to say.

mod access;
mod help;
mod pictures;
mod secret;

use crate::context::Context;
use crate::global::Global;
use crate::out::Out;
use crate::verb::Verb;
use clap::{CommandFactory, Parser};
use expect_test::{Expect, expect};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::rc::Rc;

/// The program as the binary composes it.
#[derive(Parser)]
#[command(
    name = "slipway",
    about = "Builds Kubernetes and looks after it for life"
)]
struct Program {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// A handle whose contents can be read afterwards.
#[derive(Clone, Default)]
struct Page(Rc<RefCell<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Answers requests by the first route that matches, for as long as the test runs.
///
/// A route is the beginning of a request line, a status and a body.
fn serve(routes: &'static [(&str, &str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if request.is_empty() {
                    request.clone_from(&line);
                }
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let request = request.replace("/api/v1/projects/default/", "");
            let found = routes.iter().find(|(route, ..)| request.starts_with(route));
            let missing = r#"{"title":"not found","status":404,"code":"API-002","detail":"there is no such thing"}"#;
            let (status, body) =
                found.map_or(("404 Not Found", missing), |route| (route.1, route.2));
            let kind = if status.starts_with('2') {
                "application/json"
            } else {
                "application/problem+json"
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
    });
    server
}

/// Runs a command line and pictures its exit code, its data and its remarks.
async fn picture(server: &str, line: &str, answer: Option<&'static str>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "slipway",
        "--server",
        server,
        "--data-dir",
        dir.path().to_str().unwrap(),
    ];
    let words = arguments.into_iter().chain(line.split(' '));
    let program = Program::try_parse_from(words).unwrap();
    let (data, talk) = (Page::default(), Page::default());
    let mut out = Out::to(Box::new(data.clone()), Box::new(talk.clone()));
    if let Some(answer) = answer {
        out = out.answered(answer);
    }
    let mut context = Context::new(&program.global, &mut out);
    let ended = Box::pin(program.verb.run(&mut context, Program::command)).await;
    let exit = ended.unwrap_or_else(|error| error.tell(&mut context));
    let text = |page: Page| String::from_utf8(page.0.take()).unwrap();
    let whole = format!("exit {}\n{}--\n{}", exit.code(), text(data), text(talk));
    whole
        .replace(server, "SERVER")
        .replace(dir.path().to_str().unwrap(), "DIR")
}

async fn check(server: &str, line: &str, expected: &Expect) {
    expected.assert_eq(&picture(server, line, None).await);
}

const HELLO: &str = r#"{"project":"default","name":"hello","generation":2,"author":"admin",
    "createdAt":"2026-03-01T12:00:00Z","deleted":false,"state":"done","text":"a: 1\nb: 2\n",
    "clusters":[{"name":"edge","state":"done","control":{"ready":3,"wanted":3},
    "compute":{"ready":2,"wanted":2},"leaving":0,"tasks":0,"message":"as declared"}]}"#;

const ACCEPTED: &str =
    r#"{"manifest":"hello","generation":2,"changed":["edge"],"unchanged":0,"follow":"/x"}"#;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

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
async fn a_journey_is_printed_as_it_is_with_the_way_to_do_it() {
    let server = serve(&[(
        "POST plans",
        "200 OK",
        r#"{"id":"plan-1","kept":true,"text":"cluster edge\n  1  create\n","clusters":[],"empty":false,"minutes":3}"#,
    )]);
    let file = file("kind: InputManifest");
    let line = format!("plan -f {}", file.path().display());
    let shown = picture(&server, &line, None).await;
    expect![[r"
        exit 0
        cluster edge
          1  create
        --
        to do this and no more: slipway apply -f FILE --plan plan-1
    "]]
    .assert_eq(&shown.replace(file.path().to_str().unwrap(), "FILE"));
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
        error: name has 'O' at position 0; allowed are a-z, 0-9 and, inside, hyphens (CLI-008)
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

/// Answers one request per script, in order, whatever is asked; returns the resume ids.
fn script(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<Option<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let answer = |text: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            let head = reader.lines().map(Result::unwrap);
            let resumed = head
                .take_while(|line| !line.is_empty())
                .filter_map(|line| line.strip_prefix("last-event-id: ").map(str::to_owned))
                .last();
            stream.write_all(text.as_bytes()).unwrap();
            resumed
        };
        answers.into_iter().map(answer).collect()
    });
    (server, thread)
}

fn frames(frames: &[&str]) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}retry: 2000\n\n{}", frames.concat())
}

const FIRST: &str = "id: 1\nevent: line\ndata: {\"seq\":1,\"attempt\":1,\"at\":\"2026-03-01T12:00:00Z\",\"text\":\"dialling\"}\n\n";
const MISSING: &str = "id: 8\nevent: line\ndata: {\"seq\":8,\"attempt\":1,\"at\":\"2026-03-01T12:00:01Z\",\"text\":\"… 7 …\",\"dropped\":7}\n\n";
const LAST: &str = "id: 9\nevent: line\ndata: {\"seq\":9,\"attempt\":1,\"at\":\"2026-03-01T12:00:01Z\",\"text\":\"there\"}\n\n";
const END: &str = "event: end\ndata: {\"state\":\"done\",\"next\":9}\n\n";

#[tokio::test]
async fn a_followed_log_goes_on_where_it_broke_and_says_what_is_missing() {
    let (server, resumed) = script(vec![frames(&[FIRST]), frames(&[MISSING, LAST, END])]);
    check(
        &server,
        "task log task-0000000000001 --follow",
        &expect![[r"
            exit 0
            2026-03-01T12:00:00.000Z  attempt 1  dialling
            2026-03-01T12:00:01.000Z  attempt 1  there
            --
            the live stream of SERVER ended; trying again
            the server is back
            7 lines, 2 to 8, are missing here: of a long log the beginning and the end are kept
            task task-0000000000001 is done
        "]],
    )
    .await;
    assert_eq!(resumed.join().unwrap(), [None, Some("1".to_owned())]);
}

#[tokio::test]
async fn a_followed_log_can_be_read_by_programs() {
    let (server, resumed) = script(vec![frames(&[LAST, END])]);
    check(
        &server,
        "task log task-0000000000001 --follow --after 8 -o json",
        &expect![[r#"
            exit 0
            {"seq":9,"attempt":1,"at":"2026-03-01T12:00:01Z","text":"there"}
            --
            task task-0000000000001 is done
        "#]],
    )
    .await;
    assert_eq!(resumed.join().unwrap(), [Some("8".to_owned())]);
}

#[tokio::test]
async fn a_log_is_read_to_its_end_from_where_one_says() {
    let server = serve(&[
        (
            "GET tasks/task-0000000000001/log?after=1&limit=500 ",
            "200 OK",
            r#"{"lines":[{"seq":2,"attempt":1,"at":"2026-03-01T12:00:00Z","text":"…","dropped":1},
                {"seq":3,"attempt":1,"at":"2026-03-01T12:00:00Z","text":"a"}],"next":3}"#,
        ),
        (
            "GET tasks/task-0000000000001/log?after=3&limit=500 ",
            "200 OK",
            r#"{"lines":[],"next":3}"#,
        ),
        (
            "GET tasks/task-0000000000001/log?after=99&limit=500 ",
            "400 Bad Request",
            r#"{"title":"not a place to go on from","status":400,"code":"STREAM-002",
                "detail":"after: the log ends before line 99","hint":"begin anew"}"#,
        ),
    ]);
    check(
        &server,
        "task log task-0000000000001 --after 1",
        &expect![[r"
            exit 0
            2026-03-01T12:00:00.000Z  attempt 1  a
            --
            line 2 is missing here: of a long log the beginning and the end are kept
        "]],
    )
    .await;
    check(
        &server,
        "task log task-0000000000001 --after 99",
        &expect![[r"
            exit 1
            --
            error: after: the log ends before line 99 (STREAM-002)
            hint: begin anew
        "]],
    )
    .await;
}
