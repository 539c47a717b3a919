//! Judges what was seen. A function: equal sights give equal findings, in equal order.

use super::seen::{Database, Entry, Is, Key, KeyPlace, Opens, Port, Seen, Server, Trouble};
use model::time::Timestamp;
use serde::Serialize;
use std::time::Duration;
use store::LookedServer;

/// How things stand with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    /// As it should be.
    Good,
    /// Worth knowing, and no fault.
    Note,
    /// Not as it should be.
    Wrong,
}

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Which thing.
    pub(super) check: &'static str,
    /// How things stand with it.
    pub(super) standing: Standing,
    /// What was found.
    pub(super) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mend: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            standing: Standing::Good,
            found: found.into(),
            mend: None,
        }
    }

    fn note(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            standing: Standing::Note,
            mend: Some(mend.into()),
            ..Self::good(check, found)
        }
    }

    fn wrong(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            standing: Standing::Wrong,
            ..Self::note(check, found, mend)
        }
    }

    fn trouble(check: &'static str, trouble: &Trouble) -> Self {
        Self::wrong(check, &trouble.what, &trouble.hint)
    }
}

/// What to do about a data directory that cannot be made, and about a database that is gone: what
/// a server says that does not start for it (`tests/program/doctor.rs`).
const UNMADE: &str = "choose a directory you may write with --data-dir or SLIPWAY_DATA";
const LOST: &str = "put it back from a backup; to start anew, move admin.token away too; if the \
                    database is on a server, name it with --database";

/// Less than this, and the next write may not fit.
const SPACE_MIN: u64 = 256 << 20;

/// Less than this will not last long: logs and backups want room too.
const SPACE_WANTED: u64 = 2 << 30;

/// Fewer files than this, and the database cannot make its own.
const FILES_FREE_MIN: u64 = 1_000;

/// A server under load has as many connections as this, each of them an open file.
const FILES_WANTED: u64 = 4_096 + 256;

/// With fewer the first dozens of clients find no room.
const FILES_MIN: u64 = 256;

/// The oldest PostgreSQL that the questions of the store were tried on, as it numbers itself.
const POSTGRESQL_MIN: u32 = 130_000;

/// No clock of a machine that runs this program shows less: 2026-01-01.
const EARLIEST: i64 = 1_767_225_600_000;

/// Nor more: 2100-01-01.
const LATEST: i64 = 4_102_444_800_000;

/// Judges everything.
pub(super) fn judge(seen: &Seen) -> Vec<Finding> {
    let mut findings = vec![directory(seen)];
    findings.extend(seen.space.map(|space| disk(space.free, space.files_free)));
    findings.extend(database(seen));
    findings.push(key(&seen.key, seen.user));
    findings.push(token(seen));
    findings.push(clock(seen));
    findings.push(port(seen));
    findings.push(server(seen));
    let unread = seen.unread.iter();
    findings.extend(unread.map(|trouble| Finding::trouble("clusters", trouble)));
    findings.extend(seen.files_max.map(files));
    findings.push(tools(seen));
    findings
}

fn directory(seen: &Seen) -> Finding {
    const CHECK: &str = "data directory";
    let path = seen.directory.path.display();
    let (is_directory, owner, mode, writable) = match &seen.directory.is {
        Is::Missing => {
            if let Some(why) = &seen.barred {
                let found = format!("cannot use {path} as data directory: {why} (SERVE-003)");
                return Finding::wrong(CHECK, found, UNMADE);
            }
            return Finding::note(
                CHECK,
                format!("{path} is not there"),
                "the first start makes it; if there should be data, name its place with --data-dir",
            );
        }
        Is::Hidden(said) => {
            let mend = format!("look as the user who runs the server, or let this one into {path}");
            return Finding::wrong(CHECK, format!("{path} cannot be looked at: {said}"), mend);
        }
        Is::There {
            directory,
            owner,
            mode,
            writable,
        } => (*directory, *owner, *mode, *writable),
    };
    if !is_directory {
        let mend = "name a directory with --data-dir";
        return Finding::wrong(CHECK, format!("{path} is no directory"), mend);
    }
    if mode & 0o022 != 0 {
        let found = format!("{path} can be written by others (mode {mode:03o})");
        return Finding::wrong(CHECK, found, format!("chmod 700 {path}"));
    }
    if !writable {
        let found = format!("{path} cannot be written by this user (it belongs to user {owner})");
        let mend = format!("look as the user who runs the server, or chown {path} to that user");
        return Finding::wrong(CHECK, found, mend);
    }
    if owner != seen.user {
        let found = format!(
            "{path} belongs to user {owner}, and user {} looks",
            seen.user
        );
        let mend = "look as the user who runs the server: this one may do more, or less";
        return Finding::note(CHECK, found, mend);
    }
    if mode & 0o055 != 0 {
        let found = format!("{path} can be listed by others (mode {mode:03o})");
        return Finding::note(CHECK, found, format!("chmod 700 {path}"));
    }
    Finding::good(
        CHECK,
        format!("{path} is this user's alone and can be written"),
    )
}

fn disk(free: u64, files_free: u64) -> Finding {
    const CHECK: &str = "disk";
    let mib = free >> 20;
    if free < SPACE_MIN {
        let found = format!("{mib} MiB are free where the data directory is");
        return Finding::wrong(CHECK, found, "make room: writes fail when it is full");
    }
    if files_free < FILES_FREE_MIN {
        let found = format!("{files_free} more files can be made where the data directory is");
        return Finding::wrong(
            CHECK,
            found,
            "remove small files: the file system counts them",
        );
    }
    if free < SPACE_WANTED {
        let found = format!("{mib} MiB are free where the data directory is");
        return Finding::note(CHECK, found, "make room before it is needed");
    }
    Finding::good(CHECK, format!("{} GiB are free", free >> 30))
}

fn database(seen: &Seen) -> Vec<Finding> {
    const CHECK: &str = "database";
    match &seen.database {
        Database::None => vec![Finding::note(
            CHECK,
            "there is none yet",
            "the first start makes it; `slipway backup restore` puts an old one there",
        )],
        Database::Lost => {
            let directory = seen.directory.path.display();
            let found = format!(
                "the database {} is missing from {directory} (SERVE-004)",
                store::FILE
            );
            vec![Finding::wrong(CHECK, found, LOST)]
        }
        Database::Held => vec![Finding::good(
            CHECK,
            "a server works with it; what follows was asked of the server",
        )],
        Database::Unusable(trouble) => vec![Finding::trouble(CHECK, trouble)],
        Database::File(looked) if looked.format < looked.needed => vec![Finding::note(
            CHECK,
            format!("it has format {} of {}", looked.format, looked.needed),
            "the next start brings it up to date; take a backup before",
        )],
        Database::File(looked) => vec![Finding::good(
            CHECK,
            format!("it is whole and has format {}", looked.format),
        )],
        Database::Server(looked, _) => on_server(looked, seen.connections),
    }
}

fn on_server(looked: &LookedServer, needed: u32) -> Vec<Finding> {
    const CHECK: &str = "database";
    let (major, minor) = (looked.version / 10_000, looked.version % 10_000);
    let format = match (looked.database.format, looked.database.needed) {
        (0, _) => Finding::note(
            CHECK,
            "the database is empty",
            "the first start makes its tables; `slipway backup restore` fills it",
        ),
        (found, needed) if found < needed => Finding::wrong(
            CHECK,
            format!("it has format {found} and this program needs {needed}"),
            "take a backup, then run `slipway migrate`",
        ),
        (format, _) => Finding::good(
            CHECK,
            format!("PostgreSQL {major}.{minor} answers, and the database has format {format}"),
        ),
    };
    let mut findings = vec![format];
    if looked.version < POSTGRESQL_MIN {
        let found = format!("it is PostgreSQL {major}.{minor}");
        let mend = "use PostgreSQL 13 or newer";
        findings.push(Finding::wrong("database version", found, mend));
    }
    findings.push(connections(looked, needed));
    findings.push(durability(looked));
    findings
}

fn connections(looked: &LookedServer, needed: u32) -> Finding {
    const CHECK: &str = "connections";
    let taken = looked
        .connections
        .saturating_add(looked.connections_reserved);
    let free = looked.connections_max.saturating_sub(taken);
    let found = format!("{free} of {} are free", looked.connections_max);
    let mend =
        format!("raise max_connections of PostgreSQL: each server and each worker takes {needed}");
    if free < needed {
        Finding::wrong(CHECK, found, mend)
    } else if free < needed.saturating_mul(2) {
        Finding::note(CHECK, found, mend)
    } else {
        Finding::good(CHECK, format!("{found}, and a process takes {needed}"))
    }
}

fn durability(looked: &LookedServer) -> Finding {
    const CHECK: &str = "durability";
    let settings = |on: bool| {
        let chosen = looked.durable.iter().filter(|(_, is)| *is == on);
        chosen.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let off = settings(false);
    if off.is_empty() {
        return Finding::good(CHECK, format!("{} are on", settings(true).join(", ")));
    }
    let mend: Vec<String> = off
        .iter()
        .map(|name| format!("ALTER SYSTEM SET {name} = on"))
        .collect();
    Finding::wrong(
        CHECK,
        format!(
            "{} off: a power cut loses what was answered",
            off.join(", ")
        ),
        format!("run `{}` and reload PostgreSQL", mend.join("; ")),
    )
}

fn key(key: &Key, user: u32) -> Finding {
    const CHECK: &str = "master key";
    if let KeyPlace::File(file) = &key.place
        && let Some(finding) = private(CHECK, file, user)
    {
        return finding;
    }
    let missing = match &key.place {
        KeyPlace::File(file) => file.is == Is::Missing,
        KeyPlace::Command(_) => false,
    };
    let place = match &key.place {
        KeyPlace::File(file) => file.path.display().to_string(),
        KeyPlace::Command(program) => format!("the command `{program}`"),
    };
    match &key.opens {
        Opens::No(trouble) => Finding::trouble(CHECK, trouble),
        Opens::Yes => Finding::good(CHECK, format!("{place} opens what is sealed")),
        Opens::Nothing if missing => Finding::note(
            CHECK,
            format!("{place} is not there, and nothing is sealed yet"),
            "the first start makes it: keep a copy of it apart from the backups",
        ),
        Opens::Nothing => Finding::good(CHECK, format!("{place} is there; nothing is sealed yet")),
        Opens::Unknown if missing => Finding::wrong(
            CHECK,
            format!("{place} is not there"),
            "put it back: without it nothing that is sealed can be opened",
        ),
        Opens::Unknown => Finding::note(
            CHECK,
            format!("whether {place} opens what is sealed was not found out"),
            "look again when the database can be read, or with a token of the server",
        ),
    }
}

/// What is wrong with a file that only its owner may read; nothing when it is not there either.
fn private(check: &'static str, file: &Entry, user: u32) -> Option<Finding> {
    let path = file.path.display();
    match &file.is {
        Is::Hidden(said) => Some(Finding::wrong(
            check,
            format!("{path} cannot be looked at: {said}"),
            "look as the user who runs the server",
        )),
        Is::There {
            directory: true, ..
        } => Some(Finding::wrong(
            check,
            format!("{path} is a directory"),
            "move it away",
        )),
        Is::There { mode, .. } if mode & 0o077 != 0 => Some(Finding::wrong(
            check,
            format!("{path} can be read by others (mode {mode:03o})"),
            format!("chmod 600 {path}, and think of it as known to them"),
        )),
        Is::There { owner, .. } if *owner != user && user != 0 => Some(Finding::wrong(
            check,
            format!("{path} belongs to user {owner}, and user {user} looks"),
            "look as the user who runs the server, or chown the file to that user",
        )),
        Is::Missing | Is::There { .. } => None,
    }
}

fn token(seen: &Seen) -> Finding {
    const CHECK: &str = "token";
    let path = seen.token.file.path.display();
    if let Some(finding) = private(CHECK, &seen.token.file, seen.user) {
        return finding;
    }
    if let Some(trouble) = &seen.token.useless {
        return Finding::trouble(CHECK, trouble);
    }
    if seen.token.file.is == Is::Missing {
        return Finding::note(
            CHECK,
            format!("{path} is not there"),
            "a server that starts makes it; elsewhere use --token-file or SLIPWAY_TOKEN",
        );
    }
    Finding::good(CHECK, format!("{path} is its owner's alone"))
}

fn clock(seen: &Seen) -> Finding {
    const CHECK: &str = "clock";
    let now = seen.now.as_millis();
    let mend = "set the clock, and keep it right with NTP (chrony, systemd-timesyncd)";
    if !(EARLIEST..LATEST).contains(&now) {
        let found = format!(
            "this machine believes that it is {}",
            api::Time::from(seen.now)
        );
        return Finding::wrong(CHECK, found, mend);
    }
    // Leases are given by one clock and judged by another; a third of one is what the lease
    // loop leaves for all that can go wrong.
    let most = seen.lease / 3;
    let database = match &seen.database {
        Database::Server(looked, ours) => Some(("the database", looked.now, *ours)),
        Database::None
        | Database::Lost
        | Database::Held
        | Database::File(_)
        | Database::Unusable(_) => None,
    };
    let server = match &seen.server {
        Server::Alive { clocks, .. } => clocks.map(|(theirs, ours)| ("the server", theirs, ours)),
        Server::Silent | Server::Foreign(_) => None,
    };
    let others: Vec<_> = database.into_iter().chain(server).collect();
    for (whose, theirs, ours) in &others {
        let apart = apart(*theirs, *ours);
        if apart > most {
            let found = format!(
                "the clock of {whose} is {} s off ours, and {} s are allowed",
                apart.as_secs(),
                most.as_secs()
            );
            return Finding::wrong(CHECK, found, mend);
        }
    }
    if others.is_empty() {
        return Finding::good(CHECK, "it is plausible");
    }
    let whose: Vec<_> = others.iter().map(|(whose, ..)| *whose).collect();
    Finding::good(CHECK, format!("it agrees with {}", whose.join(" and ")))
}

fn apart(one: Timestamp, other: Timestamp) -> Duration {
    // One of the two is nothing: time before a point counts as none.
    one.since(other).max(other.since(one))
}

fn port(seen: &Seen) -> Finding {
    const CHECK: &str = "port";
    let listen = seen.listen;
    match &seen.port {
        Port::Free => Finding::good(CHECK, format!("{listen} is free")),
        Port::Ours => Finding::good(CHECK, format!("a server of ours listens on {listen}")),
        Port::Taken => Finding::wrong(
            CHECK,
            format!("another program listens on {listen}"),
            "`ss -ltnp` shows which; end it, or choose another address with --listen",
        ),
        Port::Refused(said) => Finding::wrong(
            CHECK,
            format!("nobody can listen on {listen}: {said}"),
            "choose an address of this machine, and a port from 1024 on, with --listen",
        ),
    }
}

fn server(seen: &Seen) -> Finding {
    const CHECK: &str = "server";
    let url = &seen.url;
    match (&seen.server, &seen.database) {
        (Server::Alive { unready: None, .. }, _) => {
            Finding::good(CHECK, format!("{url} answers and is ready for work"))
        }
        (
            Server::Alive {
                unready: Some(trouble),
                ..
            },
            _,
        ) => Finding::wrong(
            CHECK,
            format!("{url} answers and is not ready: {}", trouble.what),
            &trouble.hint,
        ),
        (Server::Foreign(said), _) => Finding::wrong(
            CHECK,
            format!("what answers at {url} is no server of ours: {said}"),
            "name the server with --server or SLIPWAY_SERVER",
        ),
        (Server::Silent, Database::Held) => Finding::wrong(
            CHECK,
            format!("a process works with the data directory, and nobody answers at {url}"),
            "name the server with --server; if it hangs, keep its log, end it and start it again",
        ),
        (Server::Silent, _) => Finding::note(
            CHECK,
            format!("nobody answers at {url}"),
            "start one with `slipway serve`, or name another with --server",
        ),
    }
}

fn files(max: u64) -> Finding {
    const CHECK: &str = "open files";
    let found = format!("a process may have {max} files open");
    let mend = format!(
        "raise it to {FILES_WANTED} or more: `ulimit -n`, or LimitNOFILE= in the systemd unit"
    );
    if max < FILES_MIN {
        Finding::wrong(CHECK, found, mend)
    } else if max < FILES_WANTED {
        Finding::note(
            CHECK,
            format!("{found}, which is enough for few clients"),
            mend,
        )
    } else {
        Finding::good(CHECK, found)
    }
}

fn tools(seen: &Seen) -> Finding {
    const CHECK: &str = "tools";
    let found = |there: bool| {
        let chosen = seen
            .tools
            .iter()
            .filter(move |(_, path)| path.is_some() == there);
        chosen.map(|(tool, _)| tool)
    };
    let here: Vec<_> = found(true).map(|tool| tool.names.join(" or ")).collect();
    let missing: Vec<_> = found(false)
        .map(|tool| format!("{} {}", tool.names.join(" or "), tool.purpose))
        .collect();
    if missing.is_empty() {
        return Finding::good(CHECK, format!("{} are installed", here.join(", ")));
    }
    Finding::note(
        CHECK,
        format!("not installed: {}", missing.join(", ")),
        "install them when you use what needs them",
    )
}

#[cfg(test)]
mod tests;
