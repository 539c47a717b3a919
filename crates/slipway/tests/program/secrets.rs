//! Secrets through the whole program: set by a person, used by work, sealed on the disk, and told
//! to nobody. And what a server does that was given the wrong key.

use crate::server::{Server, slipway};
use lab::traces::{found, traces};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long something may take that takes a moment; only a server that is stuck reaches it.
const SOON: Duration = Duration::from_mins(2);

const MANIFEST: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: hello}
spec:
  providers:
    - {name: lab, providerType: simulated, secretRef: {name: cloud, key: token}}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: north}, count: 1, serverType: small, image: debian-12}
    static:
      - {name: attic, nodes: [{endpoint: 203.0.113.7, secretRef: {name: door}}]}
  kubernetes:
    clusters:
      - {name: hello, version: v1.34.0, network: 10.30.0.0/24, pools: {control: [brain], compute: [attic]}}
";

/// A value that nobody else has.
pub(crate) fn drawn(len: usize) -> String {
    std::iter::repeat_with(fastrand::alphanumeric)
        .take(len)
        .collect()
}

/// Every file below a directory but the key file, and those that go while somebody looks.
pub(crate) fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in still_there(std::fs::read_dir(directory))
        .into_iter()
        .flatten()
    {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() && path.file_name().unwrap() != "slipway.key" {
            let read = still_there(std::fs::read(&path));
            found.extend(read.map(|content| (path.display().to_string(), content)));
        }
    }
    found
}

fn still_there<T>(answer: std::io::Result<T>) -> Option<T> {
    match answer {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        answer => Some(answer.unwrap()),
    }
}

/// A server that says all it can say.
fn start(directory: &Path) -> Server {
    let data = directory.join("data");
    let mut command = slipway();
    command
        .env("SLIPWAY_LOG", "trace")
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data);
    Server::run(command, directory, data)
}

/// What a client said, in all.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    let said = said(output);
    assert!(output.status.success(), "{said}");
    said
}

/// Pipes a value into a client.
fn piped(mut client: Command, value: &str) -> Output {
    let mut child = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(value.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Asks until the answer is as it should be.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < SOON, "{what} never happens");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_secret_is_set_and_used_and_told_to_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = start(directory.path());
    let manifest = directory.path().join("manifest.yaml");
    std::fs::write(&manifest, MANIFEST).unwrap();
    let manifest = manifest.to_str().unwrap();
    let mut heard = done(&server.client(&["apply", "-f", manifest]));
    // Nobody has set them yet: the work waits, and says what to do.
    heard += &until("the hint", || {
        let why = done(&server.client(&["why", "cluster", "hello"]));
        let hint = "slipway secret set cloud token";
        (why.contains(hint) && why.contains("slipway secret set door privatekey")).then_some(why)
    });

    let (token, key) = (drawn(40), format!("-----BEGIN KEY-----\n{}\n", drawn(200)));
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("key");
    std::fs::write(&file, &key).unwrap();
    let entry = format!("privatekey={}", file.display());
    heard += &done(&server.client(&["secret", "set", "door", &entry]));
    let mut set = slipway();
    set.args(["--server", &server.address(), "--data-dir"])
        .arg(directory.path().join("data"))
        .args(["secret", "set", "cloud", "token"]);
    heard += &done(&piped(set, &format!("{token}\n")));
    let value = format!("token={token}");
    let refused = server.client(&["secret", "set", "cloud", &value]);
    assert_eq!(refused.status.code(), Some(2));
    heard += &said(&refused);

    // The work goes on by itself.
    heard += &done(&server.client(&["apply", "-f", manifest, "--wait", "--timeout", "2m"]));
    heard += &done(&server.client(&["secret", "rotate-keys", "--wait"]));
    heard += &done(&server.client(&["secret", "get-keys", "cloud"]));
    heard += &done(&server.client(&["secret", "list", "-o", "json"]));
    heard += &done(&server.client(&["get", "events", "-o", "json"]));
    let audit = done(&server.client(&["audit", "list", "-o", "json"]));
    for action in [
        "secret.set",
        "secret.open",
        "output.set",
        "key.use",
        "key.drop",
    ] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    heard += &audit;
    heard += &done(&server.client(&["get", "tasks", "-o", "json"]));
    heard += &done(&server.client(&["get", "manifest", "hello", "-o", "json"]));

    // What was set, and the keys of the cluster, which nobody has ever seen.
    let mut told: Vec<Vec<u8>> = [token.as_bytes(), key.as_bytes()]
        .iter()
        .flat_map(|value| traces(value))
        .collect();
    for private in ["client-key-data", "BEGIN EC PRIVATE KEY"] {
        told.extend(traces(format!("----------{private}----------").as_bytes()));
        told.push(private.as_bytes().to_vec());
    }
    assert!(found(heard.as_bytes(), &told).is_empty(), "{heard}");
    let mut seen = String::new();
    for (path, bytes) in files(directory.path()) {
        assert!(found(&bytes, &told).is_empty(), "{path}");
        seen += &format!("{path}\n");
    }
    for file in ["slipway.db", "slipway.db-wal", "server.log", "world.jsonl"] {
        assert!(seen.contains(file), "{file} was looked at");
    }
    assert!(
        !found(format!("x{token}").as_bytes(), &told).is_empty(),
        "it can be found"
    );
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("DEBUG"), "the log says all it can");
}

#[test]
fn with_the_wrong_key_everything_but_secrets_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let empty = directory.path().join("value");
    std::fs::write(&empty, "hunter2").unwrap();
    let entry = format!("token={}", empty.display());
    let set = ["secret", "set", "cloud", &entry];
    let mut server = start(directory.path());
    done(&server.client(&set));
    drop(server);

    let right = std::fs::read(data.join("slipway.key")).unwrap();
    let wrong = "slipway-key-1 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n";
    std::fs::write(data.join("slipway.key"), wrong).unwrap();
    let mut server = start(directory.path());
    let refused = server.client(&set);
    assert_eq!(refused.status.code(), Some(1));
    let told = said(&refused);
    assert!(
        told.contains("(SEAL-004)") && told.contains("hint: add the line"),
        "{told}"
    );
    done(&server.client(&["secret", "list"]));
    let manifest = directory.path().join("manifest.yaml");
    std::fs::write(&manifest, MANIFEST).unwrap();
    done(&server.client(&["apply", "-f", manifest.to_str().unwrap()]));
    done(&server.client(&["get", "clusters"]));
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("SEAL-004"), "{log}");

    // It is found out without another start that the key file was put back.
    std::fs::write(data.join("slipway.key"), right).unwrap();
    until("the right key", || {
        let set = server.client(&set);
        set.status.success().then(|| said(&set))
    });
}
