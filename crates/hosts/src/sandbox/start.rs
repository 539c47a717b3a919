//! Starting a host, and waiting until it answers.

use super::network::Lan;
use super::record::{Process, Record, replace};
use super::{Level, disk, enter, inner::Inner};
use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

/// How long a host may take until its sshd answers; systemd has much to do on a busy machine.
const ANSWERING: Duration = Duration::from_mins(3);
/// How long to wait for one connection: an answer comes at once or not at all.
const CONNECTING: Duration = Duration::from_secs(2);
/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(15);

/// How many lines of a host's log an error tells.
const LAST: usize = 3;
/// Where the programs of a host are; they are at the same places on the machine.
const HOST_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts a host that is off, and writes down who it is before it begins.
pub(super) async fn start(inner: &Inner, key: &str, record: &Record) -> Result<Process, Error> {
    let directory = inner.directory(key);
    let store = directory.join("disk");
    disk::first_program(&store, record.level)?;
    fstab(&directory, record)?;
    let log = File::create(directory.join("log"));
    let log = log.map_err(|error| not_started(record, &error.to_string()))?;
    let mut command = tool::command("setsid");
    command.args(["--fork", "unshare", "--mount", "--pid", "--fork"]);
    let lan = &inner.lan;
    let (address, gateway) = (lan.with_prefix(record.address), lan.gateway.to_string());
    match record.level {
        Level::Lite => command
            .args(["--net", "--uts", "--ipc", "--", "sh"])
            .arg(inner.program("lite.sh"))
            .arg(&directory)
            .args([&record.name, &address, &gateway]),
        Level::Systemd => command
            .args(["--", "sh"])
            .arg(inner.program("systemd.sh"))
            .arg(&directory)
            .args([key, &record.name, &lan.bridge, &address, &gateway])
            .arg(Lan::hardware(record.address)),
    };
    // Nothing of our environment is the host's business.
    command
        .env_clear()
        .envs([
            ("PATH", HOST_PATH),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            ("container", "slipway"),
        ])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stderr(log)
        .kill_on_drop(false);
    let spawned = command.spawn();
    let mut child =
        spawned.map_err(|error| not_started(record, &tool::unstarted("setsid", &error)))?;
    let began = tokio::time::timeout(SHORT, begin(inner, key, record, &mut child)).await;
    let began = began.unwrap_or_else(|_| Err(not_started(record, "it did not begin in time")));
    // Whoever waits for our word ends without it; the one that we started has ended already.
    drop(child.stdin.take());
    drop(child.wait().await);
    began.map_err(|error| with_log(error, &directory))
}

/// Speaks with a host's first process until it needs us no more.
async fn begin(
    inner: &Inner,
    key: &str,
    record: &Record,
    child: &mut Child,
) -> Result<Process, Error> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(not_started(record, "it has no standard input"));
    };
    let mut lines = BufReader::new(stdout).lines();
    let line = lines.next_line().await.ok().flatten().unwrap_or_default();
    let process = line.strip_prefix("ready ").and_then(Process::parse);
    let process = process.ok_or_else(|| not_started(record, "it ended before it began"))?;
    let directory = inner.directory(key);
    process.record(&directory.join("init"))?;
    if record.level == Level::Lite {
        let up = !directory.join("partitioned").exists();
        inner
            .lan
            .connect(key, record.address, process.pid, up)
            .await?;
    }
    let lost = |_| not_started(record, "it ended before it had a network");
    stdin.write_all(b"go\n").await.map_err(lost)?;
    drop(stdin);
    // A host that has no address yet does not even refuse a connection: asking would take a second.
    if record.level == Level::Lite && lines.next_line().await.ok().flatten().is_none() {
        return Err(not_started(record, "it ended before it had a network"));
    }
    Ok(process)
}

/// What is mounted before the host sees its own files.
fn fstab(directory: &Path, record: &Record) -> Result<(), Error> {
    let (dir, lower) = (directory.display(), record.lower.display());
    let user = if enter::is_real_root() {
        ""
    } else {
        ",userxattr"
    };
    let mut text = format!(
        "overlay {dir}/root overlay lowerdir={lower},upperdir={dir}/disk/upper,workdir={dir}/disk/work{user} 0 0\n"
    );
    if record.level == Level::Lite {
        text.push_str(&format!(
            "proc {dir}/root/proc proc nosuid,nodev,noexec 0 0\n\
             sysfs {dir}/root/sys sysfs nosuid,nodev,noexec 0 0\n\
             tmpfs {dir}/root/run tmpfs nosuid,nodev,mode=755 0 0\n\
             tmpfs {dir}/root/dev/shm tmpfs nosuid,nodev,mode=1777 0 0\n\
             devpts {dir}/root/dev/pts devpts newinstance,nosuid,noexec,ptmxmode=666,mode=620,gid=5 0 0\n\
             {dir}/boot_id {dir}/root/proc/sys/kernel/random/boot_id none bind 0 0\n"
        ));
        // These are the machine's own, and no business of a host.
        for name in ["fs", "vm"] {
            let path = format!("{dir}/root/proc/sys/{name}");
            text.push_str(&format!("{path} {path} none bind,ro 0 0\n"));
        }
        let there = |name: &&&str| Path::new("/dev").join(name).exists();
        for name in disk::DEVICES.iter().filter(there) {
            text.push_str(&format!(
                "/dev/{name} {dir}/root/dev/{name} none bind 0 0\n"
            ));
        }
        for name in disk::HIDDEN.iter().filter(|_| disk::shows_machine(record)) {
            let own = disk::OWN;
            text.push_str(&format!(
                "{dir}/disk/{own}/{name} {dir}/root/{name} none bind 0 0\n"
            ));
        }
    }
    replace(&directory.join("fstab"), text.as_bytes(), 0o600)
}

/// Waits until a host's sshd says who it is.
pub(super) async fn answers(
    directory: &Path,
    record: &Record,
    process: Process,
) -> Result<(), Error> {
    let waiting = async {
        while !banner(record.address).await {
            if !process.alive() {
                return Err(not_started(record, "it ended"));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    };
    let waited = tokio::time::timeout(ANSWERING, waiting).await;
    let waited = waited.unwrap_or_else(|_| Err(not_started(record, "its sshd does not answer")));
    waited.map_err(|error| with_log(error, directory))
}

async fn banner(address: Ipv4Addr) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((address, 22)).await?;
        let mut start = [0; 8];
        stream.read_exact(&mut start).await?;
        std::io::Result::Ok(&start == b"SSH-2.0-")
    };
    matches!(tokio::time::timeout(CONNECTING, ask).await, Ok(Ok(true)))
}

/// The first process that a systemd host itself knows: our own begins it again at every boot.
pub(super) fn leader(process: Process) -> Option<u32> {
    let mut above = vec![process.pid];
    while let Some(pid) = above.pop() {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let status =
                std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let child = child.parse().ok()?;
            if numbers.is_some_and(|numbers| numbers.split_whitespace().next_back() == Some("1")) {
                return Some(child);
            }
            above.push(child);
        }
    }
    None
}

/// Asks the first process of a systemd host for a reboot.
pub(super) fn interrupt(leader: u32) -> bool {
    let pid = i32::try_from(leader).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
}

/// Lets somebody else log in to a host that runs.
pub(super) async fn authorize(process: Process, record: &Record) -> Result<(), Error> {
    let within = match record.level {
        Level::Lite => Some(process.pid),
        Level::Systemd => leader(process),
    };
    let within = within.ok_or_else(|| not_started(record, "it does not run yet"))?;
    let mut command = tool::command("nsenter");
    let script = "umask 077; cd /root/.ssh && cat >authorized_keys.new && mv authorized_keys.new authorized_keys";
    command.args([
        "--target",
        &within.to_string(),
        "--mount",
        "--",
        "/bin/sh",
        "-c",
        script,
    ]);
    let may = format!("{}\n", record.authorized_key.trim());
    let done = tool::run(&mut command, &may, SHORT).await;
    done.map(drop).map_err(|said| not_started(record, &said))
}

/// The error of a host that does not start.
pub(super) fn not_started(record: &Record, why: &str) -> Error {
    let (name, address) = (&record.name, record.address);
    Error::new(
        Kind::NotStarted,
        format!("starting the sandbox host {name} at {address}: {why}"),
    )
}

fn with_log(mut error: Error, directory: &Path) -> Error {
    let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let lines: Vec<_> = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LAST)..];
    if !last.is_empty() {
        let said: String = last.join("; ").chars().take(500).collect();
        error.what.push_str(&format!("; its last words: {said}"));
    }
    error
}
