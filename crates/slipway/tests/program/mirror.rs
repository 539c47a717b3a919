//! `slipway mirror` from the outside: made, checked, interrupted, and told to programs.

use crate::server::slipway;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};

fn mirror(words: &[&str]) -> Output {
    slipway().arg("mirror").args(words).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_directory_becomes_a_mirror_and_is_copied_and_checked() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    std::fs::create_dir_all(from.join("deb")).unwrap();
    std::fs::write(from.join("deb/a.deb"), "aaa").unwrap();
    std::fs::write(from.join("tool"), "tool").unwrap();
    assert!(mirror(&["index", text(&from)]).status.success());
    let words = [
        "create",
        "--to",
        text(&to),
        "--from",
        text(&from),
        "deb/",
        "tool",
        "-o",
        "json",
    ];
    let made = mirror(&words);
    assert!(made.status.success(), "{made:?}");
    let told: Value = serde_json::from_slice(&made.stdout).unwrap();
    let states = |told: &Value| -> Vec<String> {
        let rows = told["artifacts"].as_array().unwrap().iter();
        let row = |row: &Value| format!("{} {}", row["name"], row["state"]).replace('"', "");
        rows.map(row).collect()
    };
    assert_eq!(states(&told), ["deb/a.deb fetched", "tool fetched"]);
    assert!(mirror(&["verify", text(&to)]).status.success());
    let listed = mirror(&["list", text(&to)]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("2 of 2 artifacts, 7 B"));
    // Spoiled, it is found; and mended by the same words.
    std::fs::write(to.join("tool"), "evil").unwrap();
    let spoiled = mirror(&["verify", text(&to), "-o", "json"]);
    assert_eq!(spoiled.status.code(), Some(1));
    let said = String::from_utf8_lossy(&spoiled.stderr).into_owned();
    assert!(said.contains("(ARTIFACT-001)\nhint: "), "{said}");
    let told: Value = serde_json::from_slice(&spoiled.stdout).unwrap();
    assert_eq!(states(&told), ["deb/a.deb good", "tool wrong"]);
    let mended: Value = serde_json::from_slice(&mirror(&words).stdout).unwrap();
    assert_eq!(states(&mended), ["deb/a.deb there", "tool fetched"]);
}

#[test]
fn a_mirror_is_filled_with_kubernetes() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&home.path().join(name)).to_owned();
    let (from, to, images) = (at("from"), at("to"), at("images"));
    let below = format!("{from}/kubernetes/v1.34.4/linux-arm64");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir_all(&images).unwrap();
    for program in ["kubeadm", "kubelet", "kubectl"] {
        std::fs::write(format!("{below}/{program}"), program).unwrap();
    }
    let archives = [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "etcd",
        "kube-proxy",
        "coredns",
    ];
    for image in archives {
        std::fs::write(format!("{images}/{image}.tar"), image).unwrap();
    }
    assert!(mirror(&["index", &from]).status.success());
    // Nobody is asked but the mirror: where the makers should be there is nobody.
    let words = |version: &'static str| {
        let mut words = vec![
            "create",
            "--to",
            &to,
            "--from",
            &from,
            "--kubernetes",
            version,
        ];
        words.extend([
            "--architecture",
            "arm64",
            "--upstream",
            "http://127.0.0.1:1/x",
        ]);
        words.extend(["--images", &images, "-o", "json"]);
        mirror(&words)
    };
    let lacking = words("v1.34.4");
    let said = String::from_utf8_lossy(&lacking.stderr).into_owned();
    assert!(said.contains("pause.tar (ARTIFACT-002)"), "{said}");
    std::fs::write(format!("{images}/pause.tar"), "pause").unwrap();
    for state in ["fetched", "there"] {
        let made = words("v1.34.4");
        assert!(made.status.success(), "{made:?}");
        let told: Value = serde_json::from_slice(&made.stdout).unwrap();
        let rows = told["artifacts"].as_array().unwrap();
        assert_eq!(rows.len(), 10);
        assert!(rows.iter().all(|row| row["state"] == state), "{told}");
    }
    let etcd = format!("{to}/kubernetes/v1.34.4/linux-arm64/images/etcd.tar");
    assert_eq!(std::fs::read_to_string(etcd).unwrap(), "etcd");
    assert!(mirror(&["verify", &to]).status.success());
    let away = words("v1.35.0");
    let said = String::from_utf8_lossy(&away.stderr).into_owned();
    assert!(said.contains("(ARTIFACT-008)"), "{said}");
}

#[test]
fn bad_words_and_bad_places_say_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let (here, to) = (text(home.path()), home.path().join("to"));
    let to = text(&to);
    for (words, exit, part) in [
        (&["create", "--to", to, "a"][..], 2, "--from"),
        (
            &["create", "--to", to, "--from", here, "../a"],
            2,
            "cannot be the name",
        ),
        (
            &["create", "--to", to, "--from", "https://m.example", "a"],
            2,
            "is not spoken here",
        ),
        (
            &["create", "--to", to, "--from", here, "a"],
            1,
            "ARTIFACT-002",
        ),
        (
            &["create", "--to", to, "--from", "http://127.0.0.1:1", "a"],
            1,
            "ARTIFACT-003",
        ),
        (&["verify", here], 1, "ARTIFACT-005"),
        (&["verify", "/proc/version"], 1, "ARTIFACT-005"),
        (&["index", "/proc/version"], 1, "ARTIFACT-004"),
        (&["list", "/nowhere"], 1, "ARTIFACT-003"),
        (&["serve", here], 1, "ARTIFACT-005"),
        (&["serve", "/nowhere"], 1, "ARTIFACT-003"),
        (&["packages"], 2, "--to"),
        (&["packages", "--to", "/proc/1/x"], 1, "ARTIFACT-004"),
    ] {
        let output = mirror(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn without_a_place_it_lists_what_hosts_are_brought() {
    let listed = mirror(&["list", "-o", "json"]);
    let told: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let artifacts = told["artifacts"].as_array().unwrap();
    assert!(artifacts.iter().all(|row| row["sha256"].is_string()));
    assert!(
        artifacts
            .iter()
            .any(|row| row["name"].as_str().unwrap().starts_with("envoy/"))
    );
}

/// Answers one request with a head and hangs; says when, and hears when the other side left.
fn stuck(listener: &TcpListener, index: &str) -> TcpStream {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let (length, body) = if first.contains("index.json") {
            (index.len(), index)
        } else {
            (4, "to")
        };
        let head =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        if body == "to" {
            return stream;
        }
    }
}

#[test]
fn interrupted_it_says_how_to_go_on() {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("to");
    let good = home.path().join("good");
    std::fs::create_dir(&good).unwrap();
    std::fs::write(good.join("tool"), "tool").unwrap();
    assert!(mirror(&["index", text(&good)]).status.success());
    let index = std::fs::read_to_string(good.join("index.json")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let mut command = slipway();
    command.args([
        "mirror",
        "create",
        "--to",
        text(&to),
        "--from",
        &server,
        "tool",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = stuck(&listener, &index);
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("give the same command again"), "{said}");
    drop(stream.read(&mut [0]));
    assert!(!to.join("tool").exists());
    let words = ["create", "--to", text(&to), "--from", text(&good), "tool"];
    assert!(mirror(&words).status.success());
    assert!(mirror(&["verify", text(&to)]).status.success());
    assert!(!to.join(".parts").exists());
}

/// Answers every request with what is published at its path, for as long as anybody asks.
fn publisher(path: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
            let there = asked.starts_with(&format!("GET {path} "));
            let (status, body) = if there {
                ("200 OK", body)
            } else {
                ("404 Not Found", "")
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    server
}

#[test]
fn a_mirror_is_filled_with_the_objects_of_add_ons() {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("to");
    let path = "/flannel-io/flannel/v0.27.4/Documentation/kube-flannel.yml";
    let server = publisher(path, "kind: Namespace\n");
    let create = |addon: &str| {
        let words = ["create", "--to", text(&to), "--addon", addon];
        mirror(&[&words[..], &["--addon-upstream", &server]].concat())
    };
    let made = create("flannel");
    assert!(made.status.success(), "{made:?}");
    let file = to.join("addons/flannel/v0.27.4.yaml");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kind: Namespace\n");
    assert!(mirror(&["verify", text(&to)]).status.success());
    assert!(create("flannel").status.success(), "a second time");
    let absent = create("flannel=v9.9.9");
    assert!(!absent.status.success());
    let said = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(
        said.contains("ARTIFACT-009") && said.contains("v9.9.9"),
        "{said}"
    );
    assert!(
        !create("node-exporter").status.success(),
        "ours is not fetched"
    );
}
