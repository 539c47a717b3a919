//! The log of a task: read, followed, and followed on where it broke.

use super::{check, serve};
use expect_test::expect;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

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
