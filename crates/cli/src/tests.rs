//! Whole verbs against a server that says exactly what a test wants it to say.

mod access;
mod declaring;
mod env;
mod etcd;
mod explain;
mod help;
mod logs;
mod pictures;
mod reading;
mod secret;
mod why;
mod wrong;

use crate::context::Context;
use crate::global::Global;
use crate::out::Out;
use crate::verb::Verb;
use clap::{CommandFactory, Parser};
use expect_test::Expect;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
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
    verb: Verbs,
}

/// The verbs, with a group that the binary puts together of them and others.
#[derive(clap::Subcommand)]
enum Verbs {
    #[command(flatten)]
    Alone(Verb),
    /// Create environments, change them, archive them, look at them
    #[command(subcommand)]
    Env(Box<crate::EnvVerb>),
}

impl Verbs {
    async fn run(
        self,
        context: &mut Context<'_>,
        program: fn() -> clap::Command,
    ) -> Result<api::Exit, crate::error::Error> {
        let verb = match self {
            Self::Alone(verb) => verb,
            Self::Env(verb) => Verb::Env(verb),
        };
        verb.run(context, program).await
    }
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

/// The first line of a request, and its body.
fn heard(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
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
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (request, String::from_utf8(body).unwrap())
}

/// Answers a request, and ends the connection.
fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let kind = if status.starts_with('2') {
        "application/json"
    } else {
        "application/problem+json"
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
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
            let (request, _) = heard(&stream);
            let request = request.replace("/api/v1/projects/default/", "");
            let found = routes.iter().find(|(route, ..)| request.starts_with(route));
            let missing = r#"{"title":"not found","status":404,"code":"API-002","detail":"there is no such thing"}"#;
            let (status, body) =
                found.map_or(("404 Not Found", missing), |route| (route.1, route.2));
            answer(&mut stream, status, body);
        }
    });
    server
}

/// Runs a command line and pictures its exit code, its data and its remarks.
async fn picture(server: &str, line: &str, answer: Option<&'static str>) -> String {
    let split = |program: Program| (program.global, program.verb);
    pictured(server, (line, answer), split, async |verb, context| {
        Box::pin(verb.run(context, Program::command)).await
    })
    .await
}

/// Runs a command line of any program that has global options and a verb.
async fn pictured<P: Parser, V>(
    server: &str,
    (line, answer): (&str, Option<&'static str>),
    split: impl Fn(P) -> (Global, V),
    run: impl AsyncFnOnce(V, &mut Context<'_>) -> Result<api::Exit, crate::error::Error>,
) -> String {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "slipway",
        "--server",
        server,
        "--data-dir",
        dir.path().to_str().unwrap(),
    ];
    let words = arguments.into_iter().chain(line.split(' '));
    let (global, verb) = split(P::try_parse_from(words).unwrap());
    let (data, talk) = (Page::default(), Page::default());
    let mut out = Out::to(Box::new(data.clone()), Box::new(talk.clone()));
    if let Some(answer) = answer {
        out = out.answered(answer);
    }
    let mut context = Context::new(&global, &mut out);
    let ended = run(verb, &mut context).await;
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

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}
