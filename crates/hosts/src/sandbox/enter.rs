//! Becoming root of namespaces of our own, for users who are not root of the machine.
//!
//! All other code knows one case: this process is root of its user namespace and may make network
//! devices. Who is not runs the whole program again inside of new namespaces, with the sockets that
//! listen outside handed over.

use super::record::Process;
use crate::error::{Error, Kind};
use crate::tool;
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells the program that it was entered, and that its standard input holds sockets.
const ENTERED: &str = "SLIPWAY_ENTERED";
/// How many sockets can be handed over.
const SOCKETS: usize = 16;
/// The namespaces of one host, for a trial.
const HOST: [&str; 7] = [
    "--net",
    "--mount",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--mount-proc",
];
/// How to become root of a user namespace that has other users, too.
const USER: [&str; 3] = ["--user", "--map-root-user", "--map-auto"];

/// How this process can have sandbox hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// As it is.
    Here,
    /// By running itself again as [`entering`] says.
    ByEntering,
}

/// Finds out how this process can have sandbox hosts, by trying.
pub fn means() -> Result<Means, Error> {
    if is_root() {
        let options = if is_real_root() { "" } else { ",userxattr" };
        // It changes nothing where the loopback is up, and is refused where we may change nothing.
        return tried("ip", &["link", "set", "lo", "up"])
            .and_then(|()| trial(&[], options))
            .map(|()| Means::Here)
            .map_err(|said| no_sandbox(&said));
    }
    trial(&USER, ",userxattr")
        .map(|()| Means::ByEntering)
        .map_err(|said| no_sandbox(&said))
}

/// The command that runs a program as root of namespaces of its own.
///
/// `keep` is the state directory of a sandbox whose hosts are to outlive the program: then the
/// namespaces do too, and who enters again with the same directory finds them. The program gets the
/// `sockets` from [`inherited`], in this order.
pub fn entering<I, S>(
    keep: Option<&Path>,
    program: &Path,
    arguments: I,
    sockets: &[BorrowedFd<'_>],
) -> Result<Command, Error>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let keeper = keep.map(|directory| directory.join("keeper"));
    let kept = keeper.as_deref().and_then(Process::recorded);
    let mut command = if let Some(Process { pid, .. }) = kept {
        let mut command = Command::new("nsenter");
        let target = pid.to_string();
        command.args(["--target", &target, "--user", "--net", "--mount", "--"]);
        command
    } else {
        if let Some(directory) = keep {
            let unmade = |error| no_sandbox(&format!("{}: {error}", directory.display()));
            std::fs::create_dir_all(directory).map_err(unmade)?;
        }
        let mut command = Command::new("unshare");
        let script = include_str!("enter.sh");
        command
            .args(USER)
            .args(["--net", "--mount", "--", "sh", "-c", script, "sh"])
            .arg(keeper.unwrap_or_default());
        command
    };
    let sent = handed(sockets).map_err(|error| no_sandbox(&error.to_string()))?;
    command
        .arg(program)
        .args(arguments)
        .env("PATH", tool::path())
        .env(ENTERED, "1")
        .stdin(Stdio::from(sent));
    Ok(command)
}

/// Whether this program was run as [`entering`] says.
pub fn entered() -> bool {
    std::env::var_os(ENTERED).is_some()
}

/// The sockets that were handed over; none where the program was not entered, or asked before.
pub fn inherited() -> io::Result<Vec<OwnedFd>> {
    if !entered() {
        return Ok(Vec::new());
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SOCKETS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let into = &mut [IoSliceMut::new(&mut word)];
    match recvmsg(io::stdin(), into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
        // They were taken before.
        Err(Errno::NOTSOCK) => return Ok(Vec::new()),
        received => received?,
    };
    let mut sockets = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors);
        }
    }
    // What we start must not hold on to the other end, and there is nothing more to read.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(sockets)
}

/// A stream in which sockets wait for whoever gets it as its standard input.
fn handed(sockets: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(SOCKETS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::other("too many sockets to hand over"));
    }
    let word = &[IoSlice::new(b".")];
    sendmsg(ours.as_fd(), word, &mut ancillary, SendFlags::empty())?;
    Ok(theirs.into())
}

/// Whether this process is root of its user namespace.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether it is root of the machine: all users are its own.
pub(super) fn is_real_root() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn trial(before: &[&str], options: &str) -> Result<(), String> {
    let mut arguments = before.to_vec();
    arguments.extend(HOST);
    arguments.extend(["--", "sh", "-c", include_str!("probe.sh"), "sh", options]);
    tried("unshare", &arguments)
}

fn tried(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=1", "20", program])
        .args(arguments)
        .env("PATH", tool::path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| tool::unstarted(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(last.map_or_else(
        || format!("{program} ended with {}", output.status),
        str::to_owned,
    ))
}

fn no_sandbox(why: &str) -> Error {
    Error::new(
        Kind::NoSandbox,
        format!("making hosts of namespaces: {why}"),
    )
}
