//! What a running server and a running worker tell Prometheus, against `docs/metrics.md`.

use crate::server::{Server, slipway};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The contract: each metric with its type, whose number it is, and its labels.
struct Listed {
    kind: String,
    of: String,
    labels: BTreeSet<String>,
}

fn contract() -> BTreeMap<String, Listed> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `slipway_"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, of, labels, _] = cells.as_slice() else {
            return None;
        };
        let labels = labels.split(';').filter_map(|label| {
            let (label, _) = label.trim().strip_prefix('`')?.split_once("`:")?;
            Some(label.to_owned())
        });
        let listed = Listed {
            kind: (*kind).to_owned(),
            of: (*of).to_owned(),
            labels: labels.collect(),
        };
        Some((name.trim_matches('`').to_owned(), listed))
    })
    .collect()
}

/// The status and the body of what an address answers.
fn get(address: &str, path: &str) -> (u16, String) {
    let address = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// What was told: the type of each metric, and the sets of labels of its series.
type Told = BTreeMap<String, (String, BTreeSet<BTreeSet<String>>)>;

fn told(text: &str) -> Told {
    let mut told = Told::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            told.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.is_empty() && !line.starts_with('#') {
            let (series, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels
                .split("\",")
                .filter_map(|label| label.split_once('='));
            let labels = labels.map(|(label, _)| label.to_owned());
            let labels: BTreeSet<String> = labels.filter(|label| label != "le").collect();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|end| name.strip_suffix(end))
                .find(|family| told.contains_key(*family))
                .unwrap_or(name);
            told.get_mut(family).unwrap().1.insert(labels);
        }
    }
    told
}

/// Everything that is told is in the contract, as it stands there.
#[track_caller]
fn keeps(told: &Told, contract: &BTreeMap<String, Listed>) {
    for (name, (kind, labels)) in told {
        assert!(
            contract.contains_key(name),
            "docs/metrics.md does not list {name}"
        );
        let listed = &contract[name];
        assert_eq!(*kind, listed.kind, "{name}");
        assert_eq!(*labels, BTreeSet::from([listed.labels.clone()]), "{name}");
    }
}

/// Has something built, so that there is something to tell.
fn build(server: &mut Server) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let applied = server.client(&["apply", "-f", example.to_str().unwrap(), "--wait"]);
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}");
}

#[test]
fn a_server_tells_what_is_listed_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path());
    build(&mut server);
    let address = server.address();
    // One that opens nothing is refused, and counted.
    let (status, _) = get(&address, "/api/v1/projects");
    assert_eq!(status, 401);
    let (status, text) = get(&address, "/metrics");
    assert_eq!(status, 200);
    let (told, contract) = (told(&text), contract());
    assert!(
        contract.len() > 15,
        "the table of docs/metrics.md was not read"
    );
    keeps(&told, &contract);
    // What happens only when something is amiss, or somebody follows, has not happened.
    let silent = [
        "slipway_event_reads_total",
        "slipway_held",
        "slipway_streams",
        "slipway_tokens_refused_total",
    ];
    let missing: Vec<_> = contract
        .keys()
        .filter(|name| !told.contains_key(*name) && !silent.contains(&name.as_str()))
        .collect();
    assert_eq!(missing, [""; 0], "{text}");
    assert!(text.contains("# HELP slipway_tasks_due "), "{text}");
    assert!(
        text.contains("slipway_task_seconds_bucket{kind=\"create\",ended=\"done\",le=\"3600\"}")
    );
}

#[test]
fn a_worker_tells_what_is_its_own_where_it_is_asked_to() {
    let Some(postgres) = lab::postgres::shared_or_skip("program::metrics") else {
        return;
    };
    let database = postgres.create_database().unwrap();
    let directory = tempfile::tempdir().unwrap();
    // A server makes the master key; a worker never does.
    Server::start(directory.path()).address();
    let mut command = slipway();
    command
        .args(["worker", "--listen", "127.0.0.1:0", "--database", &database])
        .arg("--data-dir")
        .arg(directory.path().join("data"));
    let data = directory.path().join("data");
    let mut worker = Server::run(command, directory.path(), data);
    let address = worker.address();
    assert_eq!(get(&address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(get(&address, "/api/v1/projects").0, 404);
    let contract = contract();
    // It counts its questions as soon as it has asked some.
    let began = Instant::now();
    loop {
        let (status, text) = get(&address, "/metrics");
        assert_eq!(status, 200);
        let told = told(&text);
        keeps(&told, &contract);
        for name in told.keys() {
            assert_eq!(contract[name].of, "process", "{name}");
        }
        if told.contains_key("slipway_store_question_seconds") {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
