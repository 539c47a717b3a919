//! A host that is thrown away: namespaces of its own, and an overlay on this machine's root.

use hosts::program::{Mark, Program, Report};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// Makes the root and stays as the first process. `/proc/sys` is read-only but for the network,
/// which is the namespace's own: the machine's settings are not ours to change.
const INIT: &str = r#"
set -e
d=$1
mount -t tmpfs -o size=256m tmpfs "$d"
mkdir "$d/up" "$d/work" "$d/root" "$d/net"
mount -t overlay overlay -o "lowerdir=/,upperdir=$d/up,workdir=$d/work" "$d/root"
r=$d/root
mount -t proc proc "$r/proc"
mount --bind "$r/proc/sys/net" "$d/net"
mount --bind "$r/proc/sys" "$r/proc/sys"
mount -o remount,ro,bind "$r/proc/sys"
mount --bind "$d/net" "$r/proc/sys/net"
mount --rbind /sys "$r/sys"
mount --rbind /dev "$r/dev"
mount -t tmpfs tmpfs "$r/run"
mount -t tmpfs -o mode=1777 tmpfs "$r/tmp"
mount --bind "$d/up" "$r/mnt"
mount --bind / "$r/media"
exec chroot "$r" sh -c 'echo ready; while :; do sleep 3600; done'
"#;

/// Tells every path that differs from the machine's root, but for what keeps time.
const SNAPSHOT: &str = r#"
cd /mnt
find . \( -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log \
    -o -path ./srv -o -path ./tmp -o -path ./run -o -path ./mnt -o -path ./usr/local/sbin -o -path ./var/lib/swcatalog \) -prune \
    -o -type d -exec test -d '/media/{}' \; -o ! -type f -printf '%y %m %u:%g %p\n' -o -printf '%y %m %u:%g %p ' -exec sha256sum {} \; | sort
"#;

/// One such host; it is gone when dropped.
pub(crate) struct World {
    outer: Child,
    init: String,
    _directory: tempfile::TempDir,
}

/// Whether worlds can be made here; if not, says so for the test.
pub(crate) fn possible(test: &str) -> bool {
    let able = Command::new("unshare")
        .args(["--mount", "--pid", "--net", "--fork", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !able {
        lab::skip(test, "not possible here: namespaces need root");
    }
    able
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut outer = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--fork"])
            .args(["--kill-child", "--propagation", "private"])
            .args(["sh", "-c", INIT, "init"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(outer.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n", "the world did not start");
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let init = std::fs::read_to_string(children).unwrap().trim().to_owned();
        Self {
            outer,
            init,
            _directory: directory,
        }
    }

    /// Runs a command in it with something on its standard input.
    pub(crate) fn enter(&self, command: &[&str], input: &[u8]) -> Report {
        let mut child = Command::new("nsenter")
            .args(["-t", &self.init, "-m", "-p", "-n", "-u", "-i", "-r", "-w"])
            .args(["timeout", "-s", "KILL", "120"])
            .args(command)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Whoever is killed does not read to the end.
        let _sent = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let mut report = Report {
            status: output
                .status
                .code()
                .and_then(|code| u32::try_from(code).ok()),
            ..Report::default()
        };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            match Mark::parse(line) {
                Some(mark) => report.marks.push(mark),
                None => report.tail.push(line.to_owned()),
            }
        }
        report
    }

    /// Runs a program as the SSH driver does.
    pub(crate) fn run(&self, program: &Program) -> Report {
        self.enter(&["sh", "-s"], program.text.as_bytes())
    }

    /// Runs a program that must succeed; how many items it changed.
    pub(crate) fn apply(&self, program: &Program) -> usize {
        let report = self.run(program);
        hosts::recipe::done(&report).unwrap_or_else(|error| panic!("{error}: {report:#?}"));
        report.changed()
    }

    /// Runs a program that must fail; with which code and words.
    pub(crate) fn refuse(&self, program: &Program) -> (String, String) {
        let report = self.run(program);
        let (code, what) = report
            .failure()
            .unwrap_or_else(|| panic!("it did not fail: {report:#?}"));
        (code.to_owned(), what.to_owned())
    }

    /// Runs shell text that must succeed; what it said.
    pub(crate) fn sh(&self, text: &str) -> String {
        let report = self.enter(&["sh", "-es"], text.as_bytes());
        assert_eq!(report.status, Some(0), "{text}: {report:#?}");
        report.tail.join("\n")
    }

    /// Every path that differs from the machine's root.
    pub(crate) fn snapshot(&self) -> String {
        self.sh(SNAPSHOT)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The child of `unshare` dies with it, and everything in its namespaces with that one.
        self.outer.kill().unwrap();
        self.outer.wait().unwrap();
    }
}

/// Waits until something is so, for half a minute at most.
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never came about that {what}");
}

/// Fails with the lines by which two snapshots differ.
pub(crate) fn same(left: &str, right: &str, when: &str) {
    let only = |these: &str, those: &str, sign: char| -> String {
        let missing = these
            .lines()
            .filter(|line| !those.lines().any(|one| one == *line));
        missing.map(|line| format!("{sign} {line}\n")).collect()
    };
    let differ = only(left, right, '+') + &only(right, left, '-');
    assert!(differ.is_empty(), "{when}:\n{differ}");
}
