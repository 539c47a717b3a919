//! A healthy machine, and one deviation per test.

use super::super::seen::{KeyPlace, Space, TOOLS, Token};
use super::super::show::{Report, picture};
use super::*;
use expect_test::{Expect, expect};
use store::Looked;

const NOW: Timestamp = Timestamp::from_millis(1_772_366_400_000);

fn file(path: &str, mode: u32) -> Entry {
    Entry {
        path: path.into(),
        is: Is::There {
            directory: false,
            owner: 1000,
            mode,
            writable: true,
        },
    }
}

fn looked(format: u64) -> Looked {
    Looked {
        format,
        needed: 2,
        used: true,
        keys: Vec::new(),
    }
}

fn postgresql() -> LookedServer {
    LookedServer {
        database: looked(2),
        version: 150_004,
        connections_max: 100,
        connections_reserved: 3,
        connections: 6,
        durable: vec![("fsync", true), ("synchronous_commit", true)],
        now: NOW,
    }
}

/// A machine on which nothing is wrong and no server runs.
fn healthy() -> Seen {
    Seen {
        user: 1000,
        lease: Duration::from_secs(30),
        connections: 5,
        now: NOW,
        directory: Entry {
            path: "/data".into(),
            is: Is::There {
                directory: true,
                owner: 1000,
                mode: 0o700,
                writable: true,
            },
        },
        space: Some(Space {
            free: 40 << 30,
            files_free: 1_000_000,
        }),
        barred: None,
        token: Token {
            file: file("/data/admin.token", 0o600),
            useless: None,
        },
        key: Key {
            place: KeyPlace::File(file("/data/slipway.key", 0o600)),
            opens: Opens::Yes,
        },
        database: Database::File(looked(2)),
        listen: ([127, 0, 0, 1], 7077).into(),
        port: Port::Free,
        url: "http://127.0.0.1:7077".to_owned(),
        server: Server::Alive {
            clocks: Some((NOW, NOW)),
            unready: None,
        },
        unread: Vec::new(),
        files_max: Some(65_536),
        tools: TOOLS
            .map(|tool| (tool, Some("/usr/bin/it".into())))
            .to_vec(),
    }
}

/// A machine that differs from a healthy one, and what is found that is not good.
#[track_caller]
fn check(differ: impl FnOnce(&mut Seen), expected: &Expect) {
    let mut seen = healthy();
    differ(&mut seen);
    let findings = judge(&seen);
    let text: String = findings
        .iter()
        .filter(|finding| finding.standing != Standing::Good)
        .map(|finding| {
            let word = match finding.standing {
                Standing::Good => "good",
                Standing::Note => "note",
                Standing::Wrong => "wrong",
            };
            format!(
                "{word} {}: {}\n  → {}\n",
                finding.check,
                finding.found,
                finding.mend.as_deref().unwrap_or("nothing")
            )
        })
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn the_whole_picture() {
    let mut seen = healthy();
    seen.database = Database::Server(Box::new(postgresql()), NOW);
    seen.server = Server::Silent;
    seen.token.file = file("/data/admin.token", 0o644);
    seen.tools[3].1 = None;
    let findings = judge(&seen);
    expect![[r#"
        ok     data directory    /data is this user's alone and can be written
        ok     disk              40 GiB are free
        ok     database          PostgreSQL 15.4 answers, and the database has format 2
        ok     connections       91 of 100 are free, and a process takes 5
        ok     durability        fsync, synchronous_commit are on
        ok     master key        /data/slipway.key opens what is sealed
        WRONG  token             /data/admin.token can be read by others (mode 644)
                                 → chmod 600 /data/admin.token, and think of it as known to them
        ok     clock             it agrees with the database
        ok     port              127.0.0.1:7077 is free
        note   server            nobody answers at http://127.0.0.1:7077
                                 → start one with `slipway serve`, or name another with --server
        ok     open files        a process may have 65536 files open
        note   tools             not installed: wg to connect machines across clouds
                                 → install them when you use what needs them

        One thing is wrong.
    "#]]
    .assert_eq(&picture(&findings));
    assert!(!Report::of(&findings).good);
}

#[test]
fn a_healthy_machine_gives_no_reason_to_complain() {
    check(|_| {}, &expect![""]);
    assert!(Report::of(&judge(&healthy())).good);
}

#[test]
fn programs_read_the_same() {
    let mut seen = healthy();
    seen.files_max = Some(100);
    let findings: Vec<_> = judge(&seen).split_off(8);
    let text = serde_json::to_string_pretty(&Report::of(&findings)).unwrap();
    expect![[r#"
        {
          "good": false,
          "findings": [
            {
              "check": "open files",
              "standing": "wrong",
              "found": "a process may have 100 files open",
              "mend": "raise it to 4352 or more: `ulimit -n`, or LimitNOFILE= in the systemd unit"
            },
            {
              "check": "tools",
              "standing": "good",
              "found": "ssh, tofu or terraform, git, wg are installed"
            }
          ]
        }"#]]
    .assert_eq(&text);
}

/// The data directory with another mode, owner or right to write.
fn directory(seen: &mut Seen, new: (u32, u32, bool)) {
    let (mode, owner, writable) = new;
    seen.directory.is = Is::There {
        directory: true,
        owner,
        mode,
        writable,
    };
}

#[test]
fn a_directory_belongs_to_the_server_alone() {
    check(
        |seen| directory(seen, (0o777, 1000, true)),
        &expect![[r#"
            wrong data directory: /data can be written by others (mode 777)
              → chmod 700 /data
        "#]],
    );
    check(
        |seen| directory(seen, (0o755, 1000, true)),
        &expect![[r#"
            note data directory: /data can be listed by others (mode 755)
              → chmod 700 /data
        "#]],
    );
    check(
        |seen| directory(seen, (0o700, 0, false)),
        &expect![[r#"
            wrong data directory: /data cannot be written by this user (it belongs to user 0)
              → look as the user who runs the server, or chown /data to that user
        "#]],
    );
    check(
        |seen| {
            seen.user = 0;
            seen.directory.is = Is::There {
                directory: true,
                owner: 1000,
                mode: 0o700,
                writable: true,
            };
        },
        &expect![[r#"
            note data directory: /data belongs to user 1000, and user 0 looks
              → look as the user who runs the server: this one may do more, or less
        "#]],
    );
}

#[test]
fn a_directory_that_is_not_there_is_no_fault_and_a_file_is() {
    check(
        |seen| seen.directory.is = Is::Missing,
        &expect![[r#"
            note data directory: /data is not there
              → the first start makes it; if there should be data, name its place with --data-dir
        "#]],
    );
    check(
        |seen| {
            seen.directory.is = Is::Missing;
            seen.barred = Some("the file system of / keeps no files".to_owned());
        },
        &expect![[r#"
            wrong data directory: cannot use /data as data directory: the file system of / keeps no files (SERVE-003)
              → choose a directory you may write with --data-dir or SLIPWAY_DATA
        "#]],
    );
    check(
        |seen| seen.directory = file("/data", 0o600),
        &expect![[r#"
            wrong data directory: /data is no directory
              → name a directory with --data-dir
        "#]],
    );
    check(
        |seen| seen.directory.is = Is::Hidden("Permission denied".to_owned()),
        &expect![[r#"
            wrong data directory: /data cannot be looked at: Permission denied
              → look as the user who runs the server, or let this one into /data
        "#]],
    );
}

#[test]
fn room_is_needed_for_bytes_and_for_files() {
    let room = |free, files_free| {
        move |seen: &mut Seen| {
            seen.space = Some(Space { free, files_free });
        }
    };
    check(
        room(100 << 20, 1_000_000),
        &expect![[r#"
            wrong disk: 100 MiB are free where the data directory is
              → make room: writes fail when it is full
        "#]],
    );
    check(
        room(1 << 30, 1_000_000),
        &expect![[r#"
            note disk: 1024 MiB are free where the data directory is
              → make room before it is needed
        "#]],
    );
    check(
        room(40 << 30, 10),
        &expect![[r#"
            wrong disk: 10 more files can be made where the data directory is
              → remove small files: the file system counts them
        "#]],
    );
}

#[test]
fn a_database_that_is_not_there_yet_or_old_mends_itself() {
    check(
        |seen| seen.database = Database::None,
        &expect![[r#"
            note database: there is none yet
              → the first start makes it; `slipway backup restore` puts an old one there
        "#]],
    );
    check(
        |seen| seen.database = Database::Lost,
        &expect![[r#"
        wrong database: the database slipway.db is missing from /data (SERVE-004)
          → put it back from a backup; to start anew, move admin.token away too; if the database is on a server, name it with --database
    "#]],
    );
    check(
        |seen| seen.database = Database::File(looked(1)),
        &expect![[r#"
            note database: it has format 1 of 2
              → the next start brings it up to date; take a backup before
        "#]],
    );
    check(
        |seen| {
            seen.database = Database::Unusable(Trouble {
                what: "could not reach the database server (STORE-010)".to_owned(),
                hint: "check that PostgreSQL runs".to_owned(),
            });
        },
        &expect![[r#"
            wrong database: could not reach the database server (STORE-010)
              → check that PostgreSQL runs
        "#]],
    );
}

/// The server of the database differs.
fn on_postgresql(differ: impl FnOnce(&mut LookedServer)) -> impl FnOnce(&mut Seen) {
    move |seen| {
        let mut looked = postgresql();
        differ(&mut looked);
        seen.database = Database::Server(Box::new(looked), NOW);
    }
}

#[test]
fn a_database_on_a_server_is_judged_with_its_server() {
    check(
        on_postgresql(|looked| looked.database.format = 1),
        &expect![[r#"
            wrong database: it has format 1 and this program needs 2
              → take a backup, then run `slipway migrate`
        "#]],
    );
    check(
        on_postgresql(|looked| looked.version = 120_018),
        &expect![[r#"
            wrong database version: it is PostgreSQL 12.18
              → use PostgreSQL 13 or newer
        "#]],
    );
    check(
        on_postgresql(|looked| looked.connections = 95),
        &expect![[r#"
            wrong connections: 2 of 100 are free
              → raise max_connections of PostgreSQL: each server and each worker takes 5
        "#]],
    );
    check(
        on_postgresql(|looked| looked.durable[0].1 = false),
        &expect![[r#"
            wrong durability: fsync off: a power cut loses what was answered
              → run `ALTER SYSTEM SET fsync = on` and reload PostgreSQL
        "#]],
    );
}

#[test]
fn clocks_may_differ_by_a_third_of_a_lease() {
    let off = |seconds: u64| {
        on_postgresql(move |looked| {
            looked.now = NOW.plus(Duration::from_secs(seconds));
        })
    };
    check(off(10), &expect![""]);
    check(
        off(11),
        &expect![[r#"
            wrong clock: the clock of the database is 11 s off ours, and 10 s are allowed
              → set the clock, and keep it right with NTP (chrony, systemd-timesyncd)
        "#]],
    );
    check(
        |seen| {
            let theirs = Timestamp::from_millis(NOW.as_millis() - 60_000);
            seen.server = Server::Alive {
                clocks: Some((theirs, NOW)),
                unready: None,
            };
        },
        &expect![[r#"
            wrong clock: the clock of the server is 60 s off ours, and 10 s are allowed
              → set the clock, and keep it right with NTP (chrony, systemd-timesyncd)
        "#]],
    );
    check(
        |seen| seen.now = Timestamp::from_millis(0),
        &expect![[r#"
            wrong clock: this machine believes that it is 1970-01-01T00:00:00Z
              → set the clock, and keep it right with NTP (chrony, systemd-timesyncd)
        "#]],
    );
}

#[test]
fn a_cluster_that_cannot_be_read_is_wrong() {
    check(
        |seen| {
            seen.unread.push(Trouble {
                what: "nothing is done to east: it cannot be read".to_owned(),
                hint: "recover it".to_owned(),
            });
        },
        &expect![[r#"
            wrong clusters: nothing is done to east: it cannot be read
              → recover it
        "#]],
    );
}

#[test]
fn a_key_is_private_there_and_the_right_one() {
    let opens = |opens: Opens, is: Option<Is>| {
        move |seen: &mut Seen| {
            let mut file = file("/data/slipway.key", 0o600);
            file.is = is.unwrap_or(file.is);
            seen.key = Key {
                place: KeyPlace::File(file),
                opens,
            };
        }
    };
    let open = file("", 0o640).is;
    check(
        opens(Opens::Unknown, Some(open)),
        &expect![[r#"
            wrong master key: /data/slipway.key can be read by others (mode 640)
              → chmod 600 /data/slipway.key, and think of it as known to them
        "#]],
    );
    check(
        opens(Opens::Nothing, Some(Is::Missing)),
        &expect![[r#"
            note master key: /data/slipway.key is not there, and nothing is sealed yet
              → the first start makes it: keep a copy of it apart from the backups
        "#]],
    );
    check(
        opens(Opens::Unknown, Some(Is::Missing)),
        &expect![[r#"
            wrong master key: /data/slipway.key is not there
              → put it back: without it nothing that is sealed can be opened
        "#]],
    );
    let wrong = Trouble {
        what: "another key wrapped it (SEAL-004)".to_owned(),
        hint: "put the right one back".to_owned(),
    };
    check(
        opens(Opens::No(wrong), None),
        &expect![[r#"
            wrong master key: another key wrapped it (SEAL-004)
              → put the right one back
        "#]],
    );
}

#[test]
fn a_token_must_be_one() {
    check(
        |seen| {
            seen.token.useless = Some(Trouble {
                what: "/data/admin.token does not hold a token (API-015)".to_owned(),
                hint: "delete the file".to_owned(),
            });
        },
        &expect![[r#"
            wrong token: /data/admin.token does not hold a token (API-015)
              → delete the file
        "#]],
    );
}

#[test]
fn a_server_that_hangs_is_told_from_one_that_is_not_there() {
    check(
        |seen| {
            seen.database = Database::Held;
            seen.port = Port::Ours;
        },
        &expect![""],
    );
    check(
        |seen| {
            seen.database = Database::Held;
            seen.server = Server::Silent;
        },
        &expect![[r#"
            wrong server: a process works with the data directory, and nobody answers at http://127.0.0.1:7077
              → name the server with --server; if it hangs, keep its log, end it and start it again
        "#]],
    );
    check(
        |seen| {
            seen.server = Server::Alive {
                clocks: None,
                unready: Some(Trouble {
                    what: "its disk is full (STORE-001)".to_owned(),
                    hint: "make room".to_owned(),
                }),
            };
        },
        &expect![[r#"
            wrong server: http://127.0.0.1:7077 answers and is not ready: its disk is full (STORE-001)
              → make room
        "#]],
    );
    check(
        |seen| seen.port = Port::Taken,
        &expect![[r#"
            wrong port: another program listens on 127.0.0.1:7077
              → `ss -ltnp` shows which; end it, or choose another address with --listen
        "#]],
    );
}
