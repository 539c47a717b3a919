//! The processes of a session: all that a runner and its script have started.
//!
//! A process leaves the session of its parent only if it says so itself. What changed its group is
//! found here all the same.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How long those may take to be gone that were ended.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Which start of the machine this is: numbers of processes mean nothing after another one.
pub(super) fn boot() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Who is in a session, without this process.
pub(super) fn members(session: i32) -> io::Result<Vec<Pid>> {
    let all = all()?.into_iter();
    let members = all.filter(|(_, stat)| is_of(stat, session));
    Ok(members.map(|(pid, _)| pid).collect())
}

/// Every process but this one, with what its file in /proc says.
fn all() -> io::Result<Vec<(Pid, String)>> {
    let own = getpid();
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that ends meanwhile has no file any more.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let pid = Pid::from_raw(pid).filter(|pid| *pid != own);
        all.extend(pid.map(|pid| (pid, stat)));
    }
    Ok(all)
}

/// Whether a process lives and is of a session, as its file in /proc says.
fn is_of(stat: &str, session: i32) -> bool {
    // Its name, in parentheses, may have any character.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    let dead = matches!(fields.next(), Some("Z" | "X"));
    !dead && fields.nth(2).and_then(|field| field.parse().ok()) == Some(session)
}

/// Sends a signal to all of a session but this process.
pub(super) fn signal(session: i32, signal: Signal) {
    match members(session) {
        Ok(members) => members.into_iter().for_each(|pid| send(pid, signal)),
        Err(cause) => tracing::warn!(%cause, "could not list processes"),
    }
}

/// Ends at once what a runner that died has left; answers whether there was any. Only processes
/// that carry its mark are touched: the number of its session may be somebody else's by now.
pub(super) fn clear(session: i32, mark: &str) -> bool {
    let members = members(session).unwrap_or_else(|cause| {
        tracing::warn!(%cause, "could not list processes");
        Vec::new()
    });
    let marked = members
        .into_iter()
        .filter(|pid| is_marked(*pid, mark.as_bytes()));
    marked.map(|pid| send(pid, Signal::KILL)).count() > 0
}

/// Ends who leads a session, if somebody still does.
pub(super) fn end_leader(session: i32) {
    if let Some(leader) = Pid::from_raw(session)
        && members(session).is_ok_and(|members| members.contains(&leader))
    {
        send(leader, Signal::KILL);
    }
}

/// Ends all that carry a mark, whatever their session.
pub(crate) fn end_marked((name, value): &(OsString, OsString)) {
    let mark = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let all = all().unwrap_or_else(|cause| {
            tracing::warn!(%cause, "could not list processes");
            Vec::new()
        });
        let marked = all.into_iter().filter(|(pid, _)| is_marked(*pid, &mark));
        if marked.map(|(pid, _)| send(pid, Signal::KILL)).count() == 0 || Instant::now() > until {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process has a variable.
fn is_marked(pid: Pid, mark: &[u8]) -> bool {
    let file = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let Ok(variables) = std::fs::read(file) else {
        return false;
    };
    let mut variables = variables.split(|byte| *byte == 0);
    variables.any(|variable| variable == mark)
}

/// Sends a signal to one process; one that is gone needs none.
fn send(pid: Pid, signal: Signal) {
    if let Err(cause) = kill_process(pid, signal)
        && cause != rustix::io::Errno::SRCH
    {
        tracing::warn!(%cause, %pid, "could not send a signal");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_of_the_session_that_its_file_says() {
        let stat = "12 (a) S 1 (b)) S 7 12 34 0 -1";
        assert!(is_of(stat, 34));
        assert!(!is_of(stat, 12));
        assert!(!is_of("12 (sh) Z 7 12 34 0 -1", 34));
        assert!(!is_of("", 34));
    }
}
