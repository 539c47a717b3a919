//! What the log says of requests, plans and tasks when it is read by a program.

use crate::server::{Server, slipway};
use std::path::Path;
use std::time::{Duration, Instant};

/// Every line of the log, each with the spans around it.
fn lines(log: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(log).unwrap();
    let whole = text.lines().filter(|line| line.ends_with('}'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The first span of that name that has all these fields.
fn span(log: &Path, name: &str, fields: &[&str]) -> Option<serde_json::Value> {
    let lines = lines(log);
    let spans = lines.iter().filter_map(|line| line["spans"].as_array());
    let mut named = spans.flatten().filter(|span| span["name"] == name);
    let found = named.find(|span| fields.iter().all(|field| !span[*field].is_null()));
    found.cloned()
}

#[test]
fn requests_plans_and_tasks_each_have_a_span_with_fields() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    // A port that was free a moment ago: the address stands in JSON here.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let mut command = slipway();
    command
        .args(["serve", "--log", "json", "--listen", &address, "--data-dir"])
        .arg(&data)
        .env("SLIPWAY_LOG", "debug");
    let server = Server::run(command, directory.path(), data);
    let url = format!("http://{address}");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let began = Instant::now();
    while !server
        .client_at(&url, &["apply", "-f", example.to_str().unwrap(), "--wait"])
        .status
        .success()
    {
        assert!(began.elapsed() < Duration::from_mins(2));
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = &server.log;
    let request = span(
        log,
        "request",
        &["request.id", "http.method", "http.route", "http.status"],
    );
    assert!(request.is_some(), "no request in the log");
    assert!(
        span(log, "plan", &["cluster"]).is_some(),
        "no plan in the log"
    );
    let task = span(
        log,
        "task",
        &["task", "kind", "cluster", "attempt", "worker"],
    );
    let task = task.expect("no task in the log");
    assert_eq!(task["attempt"], 1, "{task}");
    let text = std::fs::read_to_string(log).unwrap();
    let token = std::fs::read_to_string(directory.path().join("data/admin.token")).unwrap();
    assert!(!text.contains(token.trim()), "a token stands in the log");
}
