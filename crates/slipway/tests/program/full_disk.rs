//! A disk that fills up under a running server: writes are refused, reads go on, nothing is lost.

use crate::server::Server;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Room for the database and a few manifests, and no more.
const DISK: &str = "2m";

/// Starts a server on a small file system that only it can see.
fn on_small_disk(directory: &Path) -> Server {
    let data = directory.join("data");
    std::fs::create_dir(&data).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={DISK},mode=700 none {data} && exec {program} serve --listen 127.0.0.1:0 --data-dir {data}",
        data = data.display(),
        program = env!("CARGO_BIN_EXE_slipway"),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    // Both `unshare` and `sh` become the server: the process is the one we started.
    let mut server = Server::run(command, directory, data.clone());
    server.address();
    let seen = format!("/proc/{}/root{}", server.child.id(), data.display());
    server.look_in(seen.into());
    server
}

fn manifest(name: &str, remark: usize) -> String {
    format!(
        "# {}
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {name}}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
      - {{name: {name}, version: v1.34.0, network: 10.20.0.0/24, pools: {{control: [brain]}}}}
",
        "x".repeat(remark)
    )
}

/// Whether this machine lets us mount a file system of our own.
fn possible() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return true;
    }
    let reason = "a disk cannot be filled: not possible here: mounting needs root and unshare";
    println!("SKIPPED {reason}");
    if let Some(file) = std::env::var_os("SLIPWAY_SKIPS") {
        use std::io::Write as _;
        let mut skips = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        writeln!(
            skips,
            "full_disk: not possible here: mounting needs root and unshare"
        )
        .unwrap();
    }
    false
}

#[test]
fn a_full_disk_stops_writes_and_nothing_else() {
    if !possible() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut server = on_small_disk(directory.path());
    let file = directory.path().join("manifest.yaml");
    let path = file.to_str().unwrap().to_owned();
    let apply = |server: &mut Server, name: &str, remark: usize| {
        std::fs::write(&file, manifest(name, remark)).unwrap();
        server.client(&["apply", "-f", &path])
    };

    assert!(apply(&mut server, "first", 0).status.success());
    let mut refused = None;
    for n in 0..100 {
        let output = apply(&mut server, &format!("filler-{n}"), 200_000);
        if !output.status.success() {
            refused = Some(String::from_utf8(output.stderr).unwrap());
            break;
        }
    }
    let refused = refused.expect("twenty megabytes do not fit on the disk");
    assert!(refused.contains("STORE-001"), "{refused}");
    assert!(refused.contains("hint: make room on the disk"), "{refused}");

    let read = server.client(&["get", "manifest", "first"]);
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );

    let grown = Command::new("nsenter")
        .args([
            "--mount",
            &format!("--target={}", server.child.id()),
            "mount",
            "-o",
            "remount,size=64m",
        ])
        .arg(directory.path().join("data"))
        .status()
        .unwrap();
    assert!(grown.success());
    let began = Instant::now();
    loop {
        let output = apply(&mut server, "last", 0);
        let waited = apply(&mut server, "first", 0);
        if output.status.success()
            && waited.status.success()
            && done(&mut server, "first")
            && done(&mut server, "last")
        {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_mins(2),
            "{}",
            std::fs::read_to_string(&server.log).unwrap()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn done(server: &mut Server, name: &str) -> bool {
    let got = server.client(&["get", "manifest", name, "-o", "json"]);
    let view: serde_json::Value = serde_json::from_slice(&got.stdout).unwrap_or_default();
    view["state"] == "done"
}
