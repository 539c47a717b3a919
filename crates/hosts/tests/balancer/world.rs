//! A machine of its own for every test: namespaces in which the test runs again, alone with its
//! Envoy and its targets. Whatever it leaves behind ends with them.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Tells a test that it runs inside.
const INSIDE: &str = "SLIPWAY_BALANCER_INSIDE";

/// No test may take longer than this, however slow the machine.
const LIMIT: Duration = Duration::from_secs(400);

/// Runs `body` in namespaces, or says why it cannot.
pub(crate) fn within(test: &str, body: impl Future<Output = ()>) {
    if std::env::var(INSIDE).as_deref() == Ok(test) {
        settle();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let ended = tokio::time::timeout(LIMIT, body).await;
            assert!(ended.is_ok(), "not done after {LIMIT:?}");
        });
        return;
    }
    if !rustix::process::geteuid().is_root() {
        lab::skip(test, "not possible here: needs root for namespaces");
        return;
    }
    let tried = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "true"])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        lab::skip(test, "not possible here: no right to make namespaces");
        return;
    }
    if envoy().is_none() {
        lab::skip(test, "there is no Envoy; `cargo xtask tools` fetches it");
        return;
    }
    // Whoever ends this test also ends what it started, even by SIGKILL.
    let ended = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--ipc",
            "--pid",
        ])
        .args(["--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&ended.stdout));
    println!("{}", String::from_utf8_lossy(&ended.stderr));
    assert!(
        ended.status.success(),
        "{test} failed inside: {}",
        ended.status
    );
}

/// Makes the namespaces a machine: loopback, and an empty `/var/lib` that nobody else sees.
fn settle() {
    for line in [
        "ip link set lo up",
        "mount -t tmpfs -o size=256m tmpfs /var/lib",
        "mkdir -p /var/lib/slipway",
    ] {
        let mut words = line.split(' ');
        let done = Command::new(words.next().unwrap())
            .args(words)
            .status()
            .unwrap();
        assert!(done.success(), "{line}");
    }
}

/// The Envoy to test with.
pub(crate) fn envoy() -> Option<PathBuf> {
    let name = hosts::artifacts::envoy(hosts::artifacts::Platform::of_machine(
        std::env::consts::ARCH,
    )?);
    let mirror = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/mirror/");
    let ours = PathBuf::from(format!("{mirror}{name}"));
    let named = std::env::var_os("SLIPWAY_ENVOY").map(PathBuf::from);
    named.into_iter().chain([ours]).find(|path| path.is_file())
}
