//! The host under test: runs programs as SSH would, keeps Envoy running, and asks it.

use hosts::balancer::{self, DIRECTORY, ServiceSpec};
use hosts::program::{Mark, Program, Report, quoted};
use model::balancer::{ADMIN_PORT, Balance, Listener, Protocol};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// The machine's address in what plays the mesh.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 1);

/// An address in what plays the mesh.
pub(crate) fn target(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, number)
}

/// A role for connections.
pub(crate) fn role(name: &str, port: u16, targets: &[u8]) -> Listener {
    Listener {
        role: name.parse().unwrap(),
        protocol: Protocol::Tcp,
        port,
        target_port: 9000,
        targets: targets.iter().copied().map(target).collect(),
        proxy_protocol: false,
        sticky: false,
    }
}

/// What the machine is told.
pub(crate) fn balance(listeners: &[Listener]) -> Balance {
    Balance {
        address: ADDRESS,
        listeners: listeners.to_vec(),
    }
}

/// The program that has the machine balance.
pub(crate) fn program(balance: &Balance) -> Program {
    let binary = crate::world::envoy().unwrap();
    let service = balancer::service(balance, binary.to_str().unwrap());
    balancer::program(balance, &ensure(&service))
}

/// Tells the machine to balance.
pub(crate) async fn tell(balance: &Balance) -> Report {
    run(&program(balance).text).await
}

/// Tells the machine to balance; it must be possible.
pub(crate) async fn told(balance: &Balance) -> Report {
    let report = tell(balance).await;
    assert_eq!(
        (report.status, report.failure()),
        (Some(0), None),
        "{report:?}"
    );
    assert_eq!(
        report.fact("balancer-told"),
        Some(balance.fingerprint().as_str()),
        "{report:?}"
    );
    report
}

/// A service in the least that is one: a lock that lives as long as the process.
fn ensure(service: &ServiceSpec) -> String {
    let words: Vec<_> = service.command.iter().map(|word| quoted(word)).collect();
    format!(
        r#"command={command}
if ! flock -n /var/lib/slipway/envoy.lock true && [ "$(cat /var/lib/slipway/envoy.command)" = "$command" ]; then
    mark unchanged service
else
    {STOP}
    printf %s "$command" >/var/lib/slipway/envoy.command
    setsid flock -n -F /var/lib/slipway/envoy.lock sh -c "echo \$\$ >/var/lib/slipway/envoy.pid; exec $command" >/dev/null 2>&1 &
    mark changed service
fi"#,
        command = quoted(&words.join(" ")),
    )
}

/// Ends the service and waits until it has ended.
pub(crate) const STOP: &str = "[ ! -f /var/lib/slipway/envoy.pid ] || kill -9 \"$(cat /var/lib/slipway/envoy.pid)\" 2>/dev/null || :
    flock -w 10 /var/lib/slipway/envoy.lock true";

/// Starts a program as SSH would.
pub(crate) async fn start(text: &str) -> Child {
    let mut child = Command::new("sh")
        .arg("-s")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A program may end before it was read to its end.
    let written = input.write_all(text.as_bytes()).await;
    drop((written, input));
    child
}

/// Runs a program to its end.
pub(crate) async fn run(text: &str) -> Report {
    let ended = start(text).await.wait_with_output().await.unwrap();
    let output = String::from_utf8(ended.stdout).unwrap();
    Report {
        status: ended.status.code().map(i32::cast_unsigned),
        marks: output.lines().filter_map(Mark::parse).collect(),
        tail: output.lines().map(str::to_owned).collect(),
        dropped: 0,
    }
}

/// What a probe sees.
pub(crate) async fn look() -> Report {
    run(&balancer::look_snippet()).await
}

/// Asks for a page of Envoy's, as others in the mesh can.
pub(crate) async fn page(path: &str) -> String {
    let url = format!("http://{ADDRESS}:{ADMIN_PORT}/{path}");
    let asked = Command::new("curl")
        .args(["-sg", "--max-time", "10", &url])
        .output();
    String::from_utf8(asked.await.unwrap().stdout).unwrap()
}

/// One of Envoy's figures.
pub(crate) async fn figure(name: &str) -> u64 {
    let page = page(&format!("stats?filter=^{name}$")).await;
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value
        .unwrap_or_else(|| panic!("no {name} in {page:?}"))
        .parse()
        .unwrap()
}

/// Waits until a page of Envoy's satisfies.
pub(crate) async fn until(what: &str, path: &str, satisfied: impl Fn(&str) -> bool) {
    let waiting = async {
        while !satisfied(&page(path).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let came = tokio::time::timeout(Duration::from_mins(1), waiting).await;
    assert!(came.is_ok(), "never came: {what}; {}", page(path).await);
}

/// Whether a page says that a target of a role answers.
pub(crate) fn healthy(role: &str, number: u8, page: &str) -> bool {
    healthy_at(role, number, 9000, page)
}

/// Whether a page says that a target of a role answers that listens elsewhere.
pub(crate) fn healthy_at(role: &str, number: u8, port: u16, page: &str) -> bool {
    let target = target(number);
    let line = format!("{role}::{target}:{port}::health_flags::healthy");
    page.lines().any(|found| found == line)
}

/// Everything on the machine that a program may have changed, but not what Envoy itself writes.
pub(crate) fn files() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(Path::new(DIRECTORY), &mut found);
    found.retain(|path, _| !path.ends_with("/log") && !path.ends_with("/lock"));
    found
}

fn collect(directory: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            found.insert(path.to_str().unwrap().to_owned(), text);
        }
    }
}
