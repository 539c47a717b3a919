//! What programs say and how they end, as root and through sudo.

use std::future::pending;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hosts::error::{Error, Kind};
use hosts::program::{Mark, Report};
use hosts::ssh::Connections;

use crate::server::{Ring, Server, lives, pids, possible, private, program, soon};

async fn run(server: &Server, user: &str, text: &str) -> (Result<Report, Error>, Vec<String>) {
    let lines = Mutex::new(Vec::new());
    let log = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let (door, ring) = (server.door(user), Ring::new());
    let connections = Connections::default();
    let ended = connections
        .run(&door, &ring, &program(text), &log, pending())
        .await;
    (ended, lines.into_inner().unwrap())
}

#[tokio::test]
async fn marks_are_reported_and_the_rest_is_logged() {
    if !possible("marks_are_reported_and_the_rest_is_logged") {
        return;
    }
    let server = Server::start();
    let text = "
        echo hello; echo '::slipway changed a b'; echo '::slipway unchanged c'
        echo '::slipway fact who '$(id -un)' in '$(pwd); printf 'bad \\377\\n'
        echo '::slipway changed on stderr is for people' >&2
        cat; printf 'no end of line'";
    let (report, lines) = run(&server, "root", text).await;
    let report = report.unwrap();
    assert_eq!(report.status, Some(0));
    assert_eq!(
        report.marks[..2],
        [
            Mark::Changed("a b".to_owned()),
            Mark::Unchanged("c".to_owned())
        ]
    );
    assert_eq!(report.fact("who"), Some("root in /"));
    let of_stdout: Vec<&String> = lines
        .iter()
        .filter(|line| !line.starts_with("::"))
        .collect();
    assert_eq!(of_stdout, ["hello", "bad \\xff", "no end of line"]);
    assert_eq!(lines.len(), 4);
}

#[tokio::test]
async fn each_bad_end_has_its_own_error() {
    if !possible("each_bad_end_has_its_own_error") {
        return;
    }
    let server = Server::start();
    let (full, readonly) = (server.path("full"), server.path("readonly"));
    let cases = [
        (
            "echo '::slipway failed HOST-015 it does not start'; exit 3".to_owned(),
            Kind::Service,
            "it does not start",
        ),
        (
            format!(
                "set -e; echo more | cat >{}/more; echo never",
                full.display()
            ),
            Kind::DiskFull,
            "No space left",
        ),
        (
            format!("set -e; cp /etc/hostname {}/; echo never", full.display()),
            Kind::DiskFull,
            "No space left",
        ),
        (
            format!("touch {}/more || exit 1", readonly.display()),
            Kind::ReadOnly,
            "Read-only",
        ),
        (
            "frobnicate --all".to_owned(),
            Kind::MissingTool,
            "frobnicate",
        ),
        ("echo odd; exit 9".to_owned(), Kind::Failed, "status 9: odd"),
        ("kill -9 $$".to_owned(), Kind::Failed, "signal KILL"),
        ("if then".to_owned(), Kind::Failed, "yntax"),
    ];
    for (text, kind, said) in cases {
        let (ended, _) = run(&server, "root", &text).await;
        let error = ended.unwrap_err();
        assert_eq!(error.kind, kind, "{text}: {error}");
        assert!(error.what.contains(said), "{text}: {error}");
        let at = format!("`try` on {}: ", server.door("root"));
        assert!(error.what.starts_with(&at), "{error}");
    }
}

#[tokio::test]
async fn others_than_root_use_sudo() {
    if !possible("others_than_root_use_sudo") {
        return;
    }
    let server = Server::start();
    for user in ["ada", "eve"] {
        let (report, lines) = run(&server, user, "echo $(id -un), for $SUDO_USER").await;
        let report = report.unwrap_or_else(|error| panic!("{error}: {lines:?}"));
        assert_eq!(report.tail, [format!("root, for {user}")]);
    }
    let (ended, lines) = run(&server, "bob", "echo never").await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, Kind::NoSudo, "{error}: {lines:?}");
    assert!(error.what.contains("bob@"), "{error}");
    assert!(!lines.contains(&"never".to_owned()));

    // As images of clouds do it: root's key runs something else.
    let forced = format!("command=\"echo come as ada; exit 142\" {}", private().1);
    std::fs::write(server.path("authorized_keys"), forced).unwrap();
    let (ended, lines) = run(&server, "root", "echo never").await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, Kind::NoSudo, "{error}: {lines:?}");
    assert!(error.what.contains("come as ada"), "{error}");
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_neither_fill_nor_stop() {
    if !possible("a_hundred_megabytes_of_output_neither_fill_nor_stop") {
        return;
    }
    let server = Server::start();
    let text = "
        yes 'a line that nobody wants to read, but that is written nevertheless' |
            head -c 100000000
        echo; head -c 20000000 /dev/zero >&2
        echo '::slipway changed all'; echo the end";
    let begun = Instant::now();
    let (report, lines) = run(&server, "root", text).await;
    let report = report.unwrap();
    println!("100 MB of lines and 20 MB without: {:?}", begun.elapsed());
    assert_eq!(report.changed(), 1, "the program ran to its end");
    assert!(report.dropped > 115_000_000, "{}", report.dropped);
    let logged: usize = lines.iter().map(String::len).sum();
    assert!(logged < 1_500_000, "{logged} bytes were logged");
    assert!(lines.contains(&"the end".to_owned()));
    assert!(report.tail.len() <= 40);
}

#[tokio::test]
async fn a_large_text_arrives_whole() {
    if !possible("a_large_text_arrives_whole") {
        return;
    }
    let server = Server::start();
    // More than a window, so that it must be opened again while we send.
    let long = "it's 100 % $HOME `x` \\ \"y\" and so on; ".repeat(120_000);
    let text = format!("cat <<'END' | wc -c\n{long}\nEND\n");
    let (report, _) = run(&server, "root", &text).await;
    assert_eq!(report.unwrap().tail, [(long.len() + 1).to_string()]);
}

#[tokio::test]
async fn secrets_are_in_no_list_of_processes() {
    if !possible("secrets_are_in_no_list_of_processes") {
        return;
    }
    let server = Server::start();
    let secret = format!("hunter2-{}", std::process::id());
    let flag = server.path("go");
    let text = format!(
        "secret='{secret}'; echo $$ >{0}.pid; while [ ! -e {0} ]; do sleep 0.05; done; echo ok",
        flag.display()
    );
    for user in ["root", "ada"] {
        let (door, ring) = (server.door(user), Ring::new());
        let connections = Connections::default();
        let program = program(&text);
        let running = connections.run(&door, &ring, &program, &|_| {}, pending());
        let looking = async {
            pids(&flag.with_extension("pid"), 1).await;
            let mut seen = 0;
            for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                for file in ["cmdline", "environ"] {
                    let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains(&secret), "{file}: {text}");
                    seen += usize::from(text.contains("/bin/sh\0-s"));
                }
            }
            assert!(seen > 0, "the shell was looked at");
            std::fs::write(&flag, "").unwrap();
        };
        let (ended, ()) = tokio::join!(running, looking);
        ended.unwrap();
        std::fs::remove_file(&flag).unwrap();
        std::fs::remove_file(flag.with_extension("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_service_that_was_started_lives_on_and_holds_nobody_up() {
    if !possible("a_service_that_was_started_lives_on_and_holds_nobody_up") {
        return;
    }
    let server = Server::start();
    let file = server.path("service");
    let text = format!("setsid sleep 1111 & echo $! >{}; echo up", file.display());
    let begun = Instant::now();
    let (report, _) = run(&server, "root", &text).await;
    assert_eq!(report.unwrap().tail, ["up"]);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let service = pids(&file, 1).await[0];
    assert!(lives(service));
    crate::server::kill(service);
    soon("the service is gone", || !lives(service)).await;
}
