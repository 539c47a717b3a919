//! Environments on the command line: what is asked of the server, and what people see.

use super::{Page, Program, answer, check, heard, serve};
use crate::context::Context;
use crate::out::Out;
use clap::{CommandFactory, Parser};
use expect_test::expect;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const ACCEPTED: &str = r#"{"name":"orange","generation":2,"action":"action-0000000000001","kind":"update","state":"waiting"}"#;

const ORANGE: &str = r#"{"id":"environment-0000000000001","project":"default","name":"orange","generation":2,
    "status":"running","since":"2000-03-01T12:00:00Z","failed":false,"busy":null,
    "exits":[{"verb":"update","force":false},{"verb":"cleanup","force":true}],
    "owner":"ana","labels":{"team":"web"},"notes":"for the fair","protected":false,"expiresAt":null,
    "edits":{"application":[{"key":"image.tag","kind":"set","value":"v1"},{"key":"password","kind":"secret","value":null},
    {"key":"old","kind":"removed","value":null}],"deployment":[]},
    "links":[{"name":"app","url":"https://orange.example.org"}],
    "checked":null,"createdAt":"2000-03-01T12:00:00Z","updatedAt":"2000-03-01T12:00:00Z","archivedAt":null,
    "usedAt":"2000-03-01T12:00:00Z","asleep":null,"origin":null}"#;

/// Answers every request with the same, and tells what was asked.
fn listen(status: &'static str, body: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (request, sent) = heard(&stream);
            let request = request.replace("/api/v1/projects/default/", "");
            let request = request.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
            answer(&mut stream, status, body);
            if tell.send(format!("{request} {sent}\n")).is_err() {
                return;
            }
        }
    });
    (server, told)
}

/// What a command line asks of the server, and how it ends.
async fn asked(words: &[&str], piped: Option<&'static [u8]>) -> String {
    let (server, told) = listen("202 Accepted", ACCEPTED);
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let first = ["slipway", "--server", &server, "--data-dir", place, "env"];
    let program = match Program::try_parse_from(first.iter().chain(words)) {
        Ok(program) => program,
        Err(error) => return error.to_string().lines().take(1).collect::<String>() + "\n",
    };
    let (data, talk) = (Page::default(), Page::default());
    let mut out = Out::to(Box::new(data.clone()), Box::new(talk.clone()));
    if let Some(piped) = piped {
        out = out.fed(piped);
    }
    let mut context = Context::new(&program.global, &mut out);
    let ended = Box::pin(program.verb.run(&mut context, Program::command)).await;
    let exit = ended.unwrap_or_else(|error| error.tell(&mut context));
    if exit != api::Exit::Done {
        let talk = String::from_utf8(talk.0.take()).unwrap();
        return format!("exit {}: {talk}", exit.code());
    }
    told.recv().unwrap()
}

#[tokio::test]
async fn settings_are_written_as_people_know_them() {
    let create = [
        "create",
        "orange",
        "-t",
        "v1",
        "-e",
        "a=b=c",
        "-e",
        "x= \"y\"\n",
    ];
    let unset = ["update", "orange", "-E", "a", "-O", "chart"];
    let removed = ["--remove-app", "b", "--remove-deployment", "c"];
    let told = [
        asked(&[&create[..], &["-o", "chart=13"]].concat(), None).await,
        asked(
            &["create", "-n", "orange", "-o", "chart=13", "-o", "json"],
            None,
        )
        .await,
        asked(&unset, None).await,
        asked(&[&["update", "orange"], &removed[..]].concat(), None).await,
        asked(&["update", "orange", "--replace", "-e", "a=1"], None).await,
    ];
    expect![[r#"
        POST environments {"name":"orange","set":{"application":{"a":"b=c","x":" \"y\"\n"},"deployment":{"chart":"13"}},"tag":"v1"}
        POST environments {"name":"orange","set":{"deployment":{"chart":"13"}}}
        PATCH environments/orange {"unset":{"application":["a"],"deployment":["chart"]}}
        PATCH environments/orange {"remove":{"application":["b"],"deployment":["c"]}}
        PUT environments/orange {"set":{"application":{"a":"1"}}}
    "#]]
    .assert_eq(&told.concat());
}

#[tokio::test]
async fn what_is_said_besides_settings_and_in_secret_is_asked_too() {
    let said = ["--label", "team=web", "--label", "old-", "--owner", "ana"];
    let secret = ["update", "orange", "--secret", "password"];
    let told = [
        asked(
            &[&["update", "orange", "--protect"], &said[..]].concat(),
            None,
        )
        .await,
        asked(
            &[&secret[..], &["--generation", "7"]].concat(),
            Some(b"hunter2\n"),
        )
        .await,
        asked(&["create", "orange", "--expires", "2h"], None).await,
    ];
    expect![[r#"
        PATCH environments/orange {"labels":{"old":null,"team":"web"},"owner":"ana","protected":true}
        PATCH environments/orange {"secret":{"application":{"password":"hunter2"},"deployment":{}}}
        POST environments {"expiresInSeconds":7200,"name":"orange"}
    "#]]
    .assert_eq(&told.concat());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_anybody_is_asked() {
    let told = [
        asked(&["create"], None).await,
        asked(&["create", "O!"], None).await,
        asked(&["create", "orange", "-e", "novalue"], None).await,
        asked(&["create", "orange", "-e", "a..b=c"], None).await,
        asked(&["create", "orange", "-o", "xml"], None).await,
        asked(&["create", "orange", "-e", "a=1", "-e", "a=2"], None).await,
        asked(&["create", "orange", "--secret", "password=hunter2"], None).await,
        asked(
            &["create", "orange", "--secret", "pass..word=hunter2"],
            None,
        )
        .await,
        asked(
            &["create", "orange", "--secret", "password=@/nowhere/hunter2"],
            None,
        )
        .await,
        asked(
            &["create", "orange", "--secret", "a", "--secret", "b"],
            Some(b"hunter2"),
        )
        .await,
        asked(&["update", "orange"], None).await,
        asked(&["update", "-n", "orange", "lemon", "-t", "v1"], None).await,
        asked(&["list", "-o", "a=b"], None).await,
        asked(&["cleanup", "orange"], None).await,
    ]
    .concat();
    assert!(!told.contains("hunter2"), "{told}");
    expect![[r#"
        exit 2: error: nobody says what the environment is called (CLI-008)
        hint: write `slipway env create NAME`, or `name:` in the file
        error: invalid value 'O!' for '[NAME]': `O` is upper case; allowed are a-z, 0-9 and, inside, hyphens
        error: invalid value 'novalue' for '--set-app-config <KEY=VALUE>': write KEY=VALUE
        error: invalid value 'a..b=c' for '--set-app-config <KEY=VALUE>': key `a..b` has a dot or a blank too many; `a.b` would do
        error: invalid value 'xml' for '--output <KEY=VALUE|FORMAT>': write KEY=VALUE to set how it is deployed, or one of table, json, yaml
        exit 2: error: setting `a` is named twice (CLI-008)
        hint: write each setting once, here or in the file
        exit 2: error: what stands behind `password=` does not begin with `@` (CLI-008)
        hint: a secret never stands on the command line, where every user of this machine can read it; write `password` alone and be asked for it, or `password=@FILE`
        exit 2: error: the name of a secret setting cannot be used (CLI-008)
        hint: write KEY, or KEY=@FILE
        exit 2: error: `password=` names a file, and there is no such file (CLI-008)
        hint: a value never stands on the command line, where every user of this machine can read it; write `password` alone and be asked for it, or `password=@FILE`
        exit 2: error: standard input holds one value (CLI-008)
        hint: write KEY=@FILE for the other entries, or set them one by one
        exit 2: error: nothing is said that would change anything (CLI-008)
        hint: `slipway env update --help` lists what can be; `slipway env redeploy` does an earlier action again
        error: the argument '--name <NAME>' cannot be used with '[NAME]'
        error: invalid value 'a=b' for '--output <FORMAT>'
        exit 2: error: removing needs a yes, and nobody is here to give it (CLI-008)
        hint: say it with --yes
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn a_file_says_the_same_as_the_api() {
    let file = super::file(
        "name: orange\ntag: v1\nset: {application: {a: b}}\nsecret: {application: {password: hunter2}}\nlabels: {team: web}\n",
    );
    let path = file.path().to_str().unwrap();
    let told = asked(&["create", "--from-file", path, "-e", "c=d"], None).await;
    expect![[r#"
        POST environments {"labels":{"team":"web"},"name":"orange","set":{"application":{"a":"b","c":"d"}},"tag":"v1","secret":{"application":{"password":"hunter2"},"deployment":{}}}
    "#]].assert_eq(&told);
    let wrong = super::file("name: orange\npassword: hunter2\n");
    let path = wrong.path().to_str().unwrap();
    let told = asked(&["create", "--from-file", path], None).await;
    assert!(!told.contains("hunter2"), "{told}");
    assert!(told.contains("unknown field"), "{told}");
}

/// What a server says of one environment, and that there is no other.
const ROUTES: &[(&str, &str, &str)] = &[
    (
        "GET environments/orange/actions?limit=10 ",
        "200 OK",
        r#"{"items":[{"id":"action-0000000000001","environment":"orange","kind":"create","state":"failed",
                "cancelled":false,"author":"ana","forced":false,"exit":1,"error":"create exited with status 1",
                "createdAt":"2000-03-01T12:00:00Z","startedAt":"2000-03-01T12:00:00Z","deadline":null,
                "endedAt":"2000-03-01T12:00:40Z"}],"next":null}"#,
    ),
    ("GET environments/orange ", "200 OK", ORANGE),
    (
        "GET environment-deliveries?limit=5&state=waiting&environment=orange ",
        "200 OK",
        r#"{"items":[],"next":null}"#,
    ),
    (
        "GET environment-deliveries?limit=5&state=given-up&environment=orange ",
        "200 OK",
        r#"{"items":[{"id":"delivery-0000000000001","kind":"webhook","target":"ops","environment":"orange",
                "event":"running","state":"given-up","tries":1,"said":"410 Gone","createdAt":"2000-03-01T12:00:00Z",
                "endedAt":"2000-03-01T12:00:01Z"}],"next":null}"#,
    ),
    (
        "GET environments/lemon ",
        "404 Not Found",
        r#"{"title":"no such environment","status":404,"code":"ENV-003","detail":"there is no environment `lemon`","hint":"list them"}"#,
    ),
];

#[tokio::test]
async fn what_was_cancelled_is_not_shown_as_failed() {
    const CANCELLED: &str = r#"{"items":[{"id":"environment-0000000000001","project":"default","name":"orange",
        "generation":2,"status":"running","since":"2000-03-01T12:00:00Z","failed":false,
        "cancelled":{"action":"action-0000000000001","kind":"update","by":"bob","at":"2000-03-01T12:00:00Z"},
        "busy":null,"exits":[],"owner":"","labels":{},"notes":"","protected":false,"expiresAt":null,
        "edits":{"application":[],"deployment":[]},"links":[],"checked":null,"createdAt":"2000-03-01T12:00:00Z",
        "updatedAt":"2000-03-01T12:00:00Z","archivedAt":null,"usedAt":"2000-03-01T12:00:00Z","asleep":null,
        "origin":null}],"next":null}"#;
    let server = serve(&[("GET environments?limit=500 ", "200 OK", CANCELLED)]);
    let shown = super::picture(&server, "env list", None).await;
    assert!(
        shown.contains("running, update cancelled by bob "),
        "{shown}"
    );
    assert!(!shown.contains("failed"), "{shown}");
}

#[tokio::test]
async fn one_environment_is_shown_with_what_was_done_to_it() {
    let server = serve(ROUTES);
    let shown = super::picture(&server, "env info orange", None).await;
    assert!(
        shown.contains("delivery-0000000000001  webhook ops"),
        "{shown}"
    );
    // How long ago that is grows.
    let shown: String = shown
        .lines()
        .filter(|line| !line.contains(" ago"))
        .flat_map(|line| [line, "\n"])
        .collect();
    expect![[r#"
        exit 0
        environment orange
          status      running
          doing       nothing
          possible    update, cleanup by force
          owner       ana
          labels      team=web
          generation  2
        notes
          for the fair
        links
          app: https://orange.example.org
        application, as edited
          SETTING    VALUE
          image.tag  v1
          password   (secret, set)
          old        (left out)
        actions
          ACTION                WHAT    STATE   BY   WHEN       TOOK  EXIT  ERROR
        messages that have not arrived
          DELIVERY                TO           OF      EVENT    STATE     TRIES  WHEN       NEXT  SAID
        --
    "#]]
    .assert_eq(&shown);
}

#[tokio::test]
async fn how_an_environment_is_is_told_and_waited_for() {
    let server = serve(ROUTES);
    check(
        &server,
        "env status orange",
        &expect![[r#"
        exit 0
        running
        --
    "#]],
    )
    .await;
    check(
        &server,
        "env status lemon",
        &expect![[r#"
        exit 1
        --
        error: there is no environment `lemon` (ENV-003)
        hint: list them
    "#]],
    )
    .await;
    check(
        &server,
        "env wait orange --for archived",
        &expect![[r#"
        exit 1
        environment orange is running
        --
    "#]],
    )
    .await;
    check(
        &server,
        "env wait lemon --for gone",
        &expect![[r#"
        exit 0
        environment lemon is gone
        --
    "#]],
    )
    .await;
}

const TYPED: &[(&str, &str, &str)] = &[
    (
        "GET environment-keys?level=application ",
        "200 OK",
        r#"{"keys":["env","image.tag","mode","replicas","weight"],"settings":[
            {"key":"env","types":["object"],"default":"{}","required":false},
            {"key":"image.tag","types":["string"],"default":"1","required":true,"minLength":1,"maxLength":128,"pattern":"^v","description":"The version"},
            {"key":"mode","types":["string"],"allowed":["fast","slow"],"required":false},
            {"key":"replicas","types":["integer","null"],"default":"2","required":false,"minimum":0,"maximum":20,"description":"How many pods"},
            {"key":"weight","required":false,"exclusiveMinimum":0.5,"multipleOf":2}]}"#,
    ),
    (
        "GET environment-keys?level=deployment&environment=orange ",
        "200 OK",
        r#"{"keys":["chart","version"],"settings":[{"key":"chart","required":false},{"key":"version","required":false}]}"#,
    ),
    // One that is older tells only names, too.
    (
        "GET environment-keys?level=application&environment=lemon ",
        "200 OK",
        r#"{"keys":["chart"]}"#,
    ),
    (
        "POST environments ",
        "422 Unprocessable Entity",
        r#"{"title":"not what the chart takes","status":422,"code":"ENV-021","detail":"2 settings have values that they cannot have","hint":"see what each may be",
        "faults":[{"path":"application.mode","code":"format","message":"found \"odd\", allowed: \"fast\" or \"slow\""},
        {"path":"deployment.replicas","code":"range","message":"found 50, allowed: a whole number from 0 to 20"}]}"#,
    ),
];

#[tokio::test]
async fn settings_are_listed_with_what_they_may_be() {
    let server = serve(TYPED);
    check(
        &server,
        "env keys",
        &expect![[r#"
        exit 0
        SETTING    TYPE          DEFAULT  ALLOWED                                    DESCRIPTION
        env        object        {}
        image.tag  string        1        required, 1 to 128 characters, matches ^v  The version
        mode       string                 fast|slow
        replicas   integer|null  2        0 to 20                                    How many pods
        weight     any                    above 0.5, multiple of 2
        --
    "#]],
    )
    .await;
    check(
        &server,
        "env keys orange --level deployment",
        &expect![[r#"
            exit 0
            SETTING
            chart
            version
            --
        "#]],
    )
    .await;
    check(
        &server,
        "env keys lemon",
        &expect![[r#"
        exit 0
        SETTING
        chart
        --
    "#]],
    )
    .await;
    check(
        &server,
        "env create orange -e mode=odd -o replicas=50",
        &expect![[r#"
            exit 1
            --
            error: 2 settings have values that they cannot have (ENV-021)
            application.mode: found "odd", allowed: "fast" or "slow"
            deployment.replicas: found 50, allowed: a whole number from 0 to 20
            hint: see what each may be
        "#]],
    )
    .await;
}

/// Answers one request after the other, whatever is asked.
fn script(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for text in answers {
            let (mut stream, _) = listener.accept().unwrap();
            heard(&stream);
            stream.write_all(text.as_bytes()).unwrap();
        }
    });
    server
}

fn json(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{body}")
}

/// What a script prints, and how its action ends.
fn printed(state: &str) -> String {
    let line = |seq: u32, stream: &str, text: &str| {
        format!(
            "id: {seq}\nevent: line\ndata: {{\"seq\":{seq},\"stream\":\"{stream}\",\"at\":\"2026-03-01T12:00:00Z\",\"text\":\"{text}\"}}\n\n"
        )
    };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}{}event: end\ndata: {{\"state\":\"{state}\",\"next\":2}}\n\n",
        line(1, "stdout", "pulling v2"),
        line(2, "stderr", "slow \\u001b[2Jregistry")
    )
}

/// An action that failed.
const FAILED: &str = r#"{"id":"action-0000000000001","environment":"orange","kind":"update","state":"failed",
        "cancelled":false,"author":"ana","forced":false,"exit":1,"error":"update exited with status 1",
        "createdAt":"2000-03-01T12:00:00Z","startedAt":null,"deadline":null,"endedAt":null,
        "edits":{"application":[],"deployment":[]},"configuration":{"application":[],"deployment":[]}}"#;

#[tokio::test]
async fn whoever_waits_sees_what_is_printed_and_how_it_ends() {
    let pending = ORANGE.replace("\"running\"", "\"update-pending\"");
    let good = script(vec![
        json(ACCEPTED),
        printed("done"),
        json(&pending),
        json(ORANGE),
    ]);
    check(
        &good,
        "env update orange -t v2 --wait",
        &expect![[r"
            exit 0
            environment orange is running
            --
            pulling v2
            slow  [2Jregistry
            environment orange is update-pending
        "]],
    )
    .await;
    let bad = script(vec![json(ACCEPTED), printed("failed"), json(FAILED)]);
    check(
        &bad,
        "env update orange -t v2 --wait",
        &expect![[r"
            exit 1
            --
            pulling v2
            slow  [2Jregistry
            error: update orange is failed: update exited with status 1
        "]],
    )
    .await;
}

#[tokio::test]
async fn whoever_waits_is_told_what_keeps_it_from_ending_well() {
    let off = FAILED
        .replace("\"failed\"", "\"cancelled\"")
        .replace("update exited with status 1", "bob called it off");
    let off = script(vec![json(ACCEPTED), printed("cancelled"), json(&off)]);
    check(
        &off,
        "env update orange -t v2 --wait",
        &expect![[r"
            exit 1
            --
            pulling v2
            slow  [2Jregistry
            update orange is cancelled: bob called it off
        "]],
    )
    .await;
    let sick = ORANGE.replace("\"running\"", "\"tag-mismatch\"");
    let sick = script(vec![json(ACCEPTED), printed("done"), json(&sick)]);
    check(
        &sick,
        "env update orange -t v2 --wait --timeout 10m",
        &expect![[r"
            exit 1
            environment orange is tag-mismatch
            --
            pulling v2
            slow  [2Jregistry
        "]],
    )
    .await;
    let pending = ORANGE.replace("\"running\"", "\"update-pending\"");
    let never = script(vec![json(&pending); 60]);
    check(
        &never,
        "env wait orange --timeout 1s",
        &expect![[r"
            exit 1
            --
            environment orange is update-pending
            not done in time; the server goes on. Follow it with `slipway env wait orange`
        "]],
    )
    .await;
}
