//! The demo from the outside: real hosts for root and for ordinary users, else the reason why not.

use crate::apart::{missing, rootfs};
use crate::envoy;
use crate::server::slipway;
use hosts::sandbox::Level;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs its arguments in namespaces that end with it, and tells who is still there afterwards.
const APART: &str = r#"
ip link set lo up
"$@"; ended=$?
there=$(ps -e -o stat=,comm=)
echo "$there" | grep -v -e '^Z' -e ' sh$' -e ' ps$' | sed 's/^/left behind: /'
ls -A "$TMPDIR" | sed 's/^/left behind: /'
exit "$ended"
"#;

/// Becomes an ordinary user, known to nobody outside, and runs the program that lies in `$HOME`.
/// The files of the machine stay as they are: others are seen in their place.
const AS_USER: &str = r#"
set -e
seen() { mount --bind "$HOME/$1" "$2"; }
{ cat /etc/passwd; echo "slipwaydemo:x:54322:54322::$HOME:/bin/sh"; } >"$HOME/passwd"
seen passwd /etc/passwd
seen subordinate /etc/subuid
seen subordinate /etc/subgid
# What is built may lie where only root can go.
mount --bind "$1" "$HOME/slipway"; mount --bind "$2" "$HOME/mirror"
chown 54322:54322 "$HOME" "$TMPDIR" "$HOME/.cache" "$HOME/.cache/slipway" "$HOME/.cache/slipway/rootfs"
cd "$HOME"
exec setpriv --reuid=54322 --regid=54322 --clear-groups -- \
    "$HOME/slipway" demo --once --mirror "$HOME/mirror"
"#;

/// What a demo with real hosts takes: a mirror that has Envoy, and the hosts' root filesystem. Where
/// it cannot be had, the test is skipped.
fn possible(test: &str) -> Option<(PathBuf, PathBuf)> {
    let mirror = envoy::mirror(test)?;
    if let Some(reason) = missing(Level::Lite) {
        lab::skip(test, &reason);
        return None;
    }
    Some((mirror, rootfs(Level::Lite)))
}

/// Runs a command in namespaces of its own; what it writes goes to a directory.
fn apart(words: &[&str], directory: &Path, home: Option<&Path>) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "--", "sh", "-c", APART, "sh"]);
    command.args(words).env("TMPDIR", directory);
    if let Some(home) = home {
        command.env("HOME", home);
    }
    command.output().unwrap()
}

/// A mirror that has nothing but the proxy of this one, whatever else was built.
fn without_kubernetes(mirror: &Path, directory: &Path) -> PathBuf {
    let bare = directory.join("mirror");
    std::fs::create_dir(&bare).unwrap();
    std::os::unix::fs::symlink(mirror.join("envoy"), bare.join("envoy")).unwrap();
    let index = std::fs::read_to_string(mirror.join("index.json")).unwrap();
    let mut index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let artifacts = index["artifacts"].as_array_mut().unwrap();
    artifacts.retain(|one| one["name"].as_str().unwrap().starts_with("envoy/"));
    std::fs::write(bare.join("index.json"), index.to_string()).unwrap();
    bare
}

/// Both targets answered over the mesh, all was deleted, and nothing stays.
fn shown(output: &Output) {
    let (told, out) = (text(&output.stderr), text(&output.stdout));
    assert!(output.status.success(), "{told}{out}");
    for word in [
        "Kubernetes on them is simulated",
        "over the mesh it was answered by shed-compute-01 ",
        "× and shed-compute-02 ",
        "manifest sandbox is gone",
    ] {
        assert!(format!("{told}{out}").contains(word), "{word}: {told}{out}");
    }
    assert!(!out.contains("left behind"), "{out}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn root_sees_real_hosts_behind_a_load_balancer_and_how_to_get_kubernetes() {
    let test = "demo::root_sees_real_hosts_behind_a_load_balancer_and_how_to_get_kubernetes";
    let Some((mirror, _)) = possible(test) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = slipway().get_program().to_str().unwrap().to_owned();
    let bare = tempfile::tempdir().unwrap();
    let mirror = without_kubernetes(&mirror, bare.path());
    let mirror = mirror.to_str().unwrap();
    let words = [&program, "demo", "--once", "--mirror", mirror];
    let output = apart(&words, directory.path(), None);
    shown(&output);
    let told = text(&output.stderr);
    for word in [
        "because no mirror has all of v1.",
        "`make demo KUBERNETES=1` builds it first",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

/// Runs the demo as a user with these lines in the files of subordinate numbers.
fn as_user(test: &str, subordinate: &str) -> Option<Output> {
    let (mirror, archive) = possible(test)?;
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("home");
    let rootfs = home.join(".cache/slipway/rootfs");
    std::fs::create_dir_all(&rootfs).unwrap();
    std::fs::copy(&archive, rootfs.join(archive.file_name().unwrap())).unwrap();
    for (file, content) in [
        ("passwd", ""),
        ("subordinate", subordinate),
        ("slipway", ""),
    ] {
        std::fs::write(home.join(file), content).unwrap();
    }
    std::fs::create_dir(home.join("mirror")).unwrap();
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let program = slipway().get_program().to_str().unwrap().to_owned();
    let mirror = mirror.to_str().unwrap();
    let words = ["sh", "-c", AS_USER, "sh", &program, mirror];
    Some(apart(&words, &temporary, Some(&home)))
}

#[test]
fn an_ordinary_user_sees_the_same() {
    let test = "demo::an_ordinary_user_sees_the_same";
    if !Path::new("/usr/bin/newuidmap").exists() {
        return lab::skip(test, "the program newuidmap is missing");
    }
    if let Some(output) = as_user(test, "slipwaydemo:400000:65536\n") {
        shown(&output);
        let told = text(&output.stderr);
        assert!(told.contains("it takes root of the machine"), "{told}");
    }
}

#[test]
fn without_subordinate_users_the_world_is_simulated_and_the_reason_told() {
    let test = "demo::without_subordinate_users_the_world_is_simulated_and_the_reason_told";
    let Some(output) = as_user(test, "") else {
        return;
    };
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    for word in [
        "Its machines are of the simulated world, because",
        "(SANDBOX-001)",
        "uidmap",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let out = text(&output.stdout);
    assert!(!out.contains("left behind"), "{out}");
}

/// The demo's own verbs hear Ctrl-C, too: whoever does so first, it is no failure.
#[test]
fn whoever_ends_it_in_the_middle_is_not_told_that_it_failed() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let mut demo = slipway()
            .args(["demo", "--simulated"])
            .env("TMPDIR", directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        for line in BufReader::new(demo.stderr.take().unwrap()).lines() {
            said.push(line.unwrap());
            // From here on somebody waits for the clusters.
            if said.last().unwrap().contains(" compute — ") {
                let pid = demo.id().to_string();
                let told = Command::new("kill").args(["-INT", &pid]).status();
                assert!(told.unwrap().success());
            }
        }
        let status = demo.wait().unwrap();
        assert!(status.success(), "{status}: {said:#?}");
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "files are left: {said:#?}");
    }
}
