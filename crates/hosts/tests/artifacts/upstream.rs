//! Programs of Kubernetes from where their makers publish them, each with its checksum beside it.

use crate::web::Server;
use crate::{bytes, index_of, name, patient, put};
use hosts::artifacts::{Artifact, Cache, Digest, Handle, Source, mirror, quiet};
use hosts::error::{Error, Kind};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NAME: &str = "kubernetes/v1.34.4/linux-amd64/kubelet";
const PATH: &str = "release/v1.34.4/bin/linux/amd64/kubelet";

fn upstream(server: &Server) -> Source {
    let base = format!("{}release", server.source());
    Source::Upstream(base.parse().unwrap())
}

async fn fetch(sources: &[Source], text: &str) -> Result<Handle, Error> {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::with_limits(home.path(), patient()).unwrap();
    let artifact = Artifact::named(name(text));
    let handle = cache.fetch(sources, &artifact, &quiet).await?;
    let content = std::fs::read(handle.path()).unwrap();
    assert_eq!(handle.sha256(), Digest::of(&content));
    Ok(handle)
}

#[tokio::test]
async fn a_program_is_what_its_makers_say() {
    let content = bytes(1, 3_000_000);
    let (sum, wrong) = (
        Digest::of(&content).to_string(),
        Digest::of(b"x").to_string(),
    );
    let beside = format!("{PATH}.sha256");
    let good = Server::of(&[(PATH, &content), (&beside, sum.as_bytes())]);
    let handle = fetch(&[upstream(&good)], NAME).await.unwrap();
    assert_eq!(handle.sha256().to_string(), sum);
    // With the name of the file behind it, as sha256sum writes.
    let told = format!("{sum}  kubelet\n");
    let server = Server::of(&[(PATH, &content), (&beside, told.as_bytes())]);
    fetch(&[upstream(&server)], NAME).await.unwrap();
    for (told, kind) in [
        (wrong.as_bytes(), Kind::WrongChecksum),
        (b"<html>".as_slice(), Kind::BadIndex),
        (&[b'0'; 9000], Kind::BadIndex),
    ] {
        let server = Server::of(&[(PATH, &content), (&beside, told)]);
        let error = fetch(&[upstream(&server)], NAME).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
    for (missing, kind) in [
        (NAME.replace("4.4", "4.99"), Kind::NoVersion),
        (NAME.replace("kubelet", "images/etcd.tar"), Kind::NoArtifact),
    ] {
        let error = fetch(&[upstream(&good)], &missing).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[tokio::test]
async fn a_mirror_that_lists_a_program_comes_first() {
    let (ours, theirs) = (bytes(2, 1000), bytes(3, 1000));
    let sum = Digest::of(&theirs).to_string();
    let beside = format!("{PATH}.sha256");
    let server = Server::of(&[(PATH, &theirs), (&beside, sum.as_bytes())]);
    let mirror = tempfile::tempdir().unwrap();
    put(mirror.path(), NAME, &ours);
    let both = [crate::directory(mirror.path()), upstream(&server)];
    put(mirror.path(), "index.json", index_of(&[]).as_bytes());
    let handle = fetch(&both, NAME).await.unwrap();
    assert_eq!(handle.sha256(), Digest::of(&theirs), "it is not listed");
    let asked = server.asked().len();
    put(
        mirror.path(),
        "index.json",
        index_of(&[(NAME, &ours)]).as_bytes(),
    );
    let handle = fetch(&both, NAME).await.unwrap();
    assert_eq!(handle.sha256(), Digest::of(&ours));
    assert_eq!(server.asked().len(), asked);
}

/// Serves the files of a directory over TLS, and says on which port.
const TLS: &str = "import http.server, ssl
s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain('cert.pem', 'key.pem')
s.socket = c.wrap_socket(s.socket, server_side=True)
print(s.server_port, flush=True)
s.serve_forever()";

struct Tls(Child, u16);

impl Drop for Tls {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().unwrap();
    }
}

impl Tls {
    /// None where its parts are missing.
    fn start(directory: &Path) -> Option<Self> {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2"])
            .args([
                "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=test",
            ])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .current_dir(directory)
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|made| made.success()) {
            return None;
        }
        let mut child = Command::new("python3")
            .args(["-c", TLS])
            .current_dir(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
        read.unwrap();
        Some(Self(child, line.trim().parse().unwrap()))
    }
}

#[tokio::test]
async fn behind_an_air_gap_a_version_that_the_mirror_lacks_does_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), NAME, b"kubelet");
    mirror::index(directory.path(), &quiet).await.unwrap();
    // Nobody listens there.
    let gone = Source::Upstream("http://127.0.0.1:1/release".parse().unwrap());
    let sources = [Source::Directory(directory.path().to_owned()), gone.clone()];
    let missing = NAME.replace("4.4", "4.99");
    let error = fetch(&sources, &missing).await.unwrap_err();
    assert_eq!(error.kind, Kind::NoVersion, "{error}");
    // Without a mirror for Kubernetes it may only be silent for a moment.
    let other = tempfile::tempdir().unwrap();
    put(other.path(), "envoy/1.0.0/linux-amd64/envoy", b"envoy");
    mirror::index(other.path(), &quiet).await.unwrap();
    let sources = [Source::Directory(other.path().to_owned()), gone];
    let error = fetch(&sources, &missing).await.unwrap_err();
    assert_eq!(error.kind, Kind::SourceAway, "{error}");
}

/// Where a test that runs itself again finds the server.
const AT: &str = "SLIPWAY_TEST_UPSTREAM";

#[tokio::test]
async fn tls_is_spoken_and_who_cannot_prove_who_they_are_is_not_believed() {
    let this = "upstream::tls_is_spoken_and_who_cannot_prove_who_they_are_is_not_believed";
    if let Ok(at) = std::env::var(AT) {
        let source = Source::Upstream(at.parse().unwrap());
        let handle = fetch(std::slice::from_ref(&source), NAME).await.unwrap();
        assert_eq!(handle.size(), 300_000);
        let missing = NAME.replace("4.4", "4.99");
        let error = fetch(&[source], &missing).await.unwrap_err();
        assert_eq!(error.kind, Kind::NoVersion, "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let content = bytes(4, 300_000);
    put(directory.path(), PATH, &content);
    let sum = Digest::of(&content).to_string();
    put(directory.path(), &format!("{PATH}.sha256"), sum.as_bytes());
    let curl = Command::new("curl").arg("--version").output().is_ok();
    let Some(server) = Tls::start(directory.path()).filter(|_| curl) else {
        lab::skip(this, "curl, openssl or python3 is missing");
        return;
    };
    let at = format!("https://127.0.0.1:{}/release", server.1);
    let error = fetch(&[Source::Upstream(at.parse().unwrap())], NAME).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::SourceAway, "{error}");
    assert!(error.what.contains("certificate"), "{error}");
    // Who trusts it is another process: certificates are named by its environment.
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture"])
        .env(AT, &at)
        .env("CURL_CA_BUNDLE", directory.path().join("cert.pem"))
        .status();
    assert!(again.unwrap().success());
}
