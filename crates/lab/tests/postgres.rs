//! A real PostgreSQL server starts, keeps its data and leaves nothing behind.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::postgres::{Error, Options, Postgres, shared_or_skip};

/// Makes [`somebody_else`] hold a server instead of doing nothing.
const HOLD: &str = "LAB_HOLD_A_SERVER";

/// How long the kernel and a shell may take to clean up.
const CLEAN_MAX: Duration = Duration::from_mins(1);

/// A server of the test's own, which it may stop.
fn own(test: &str, options: Options) -> Option<Postgres> {
    match Postgres::start(options) {
        Err(Error::Missing { .. }) => {
            // Says why, once for all.
            assert!(shared_or_skip(test).is_none());
            None
        }
        started => Some(started.unwrap()),
    }
}

/// The processes whose working directory is in `directory`: a server works in its data.
fn processes_in(directory: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let at = std::fs::read_link(entry.path().join("cwd")).ok()?;
            at.starts_with(directory)
                .then(|| entry.file_name().into_string().unwrap())
        })
        .collect()
}

#[test]
fn every_database_is_its_own() {
    let Some(postgres) = shared_or_skip("every_database_is_its_own") else {
        return;
    };
    let one = postgres.create_database().unwrap();
    let other = postgres.create_database().unwrap();
    assert_ne!(one, other);
    postgres
        .psql(&one, "create table boat (name text)")
        .unwrap();
    let error = postgres.psql(&other, "select * from boat").unwrap_err();
    assert!(
        error.to_string().contains("\"boat\" does not exist"),
        "{error}"
    );
    let name = one.rsplit('/').next().unwrap();
    assert_eq!(postgres.url(name), one);
}

#[test]
fn data_outlive_the_end_of_the_server() {
    let Some(mut postgres) = own("data_outlive_the_end_of_the_server", Options::default()) else {
        return;
    };
    let url = postgres.create_database().unwrap();
    let first = postgres.pid().unwrap();
    let count = |postgres: &Postgres| postgres.psql(&url, "select count(*) from boat").unwrap();
    postgres
        .psql(
            &url,
            "create table boat (name text); insert into boat values ('a')",
        )
        .unwrap();

    postgres.restart().unwrap();
    assert_ne!(postgres.pid().unwrap(), first);
    assert_eq!(count(&postgres), "1");

    postgres
        .psql(&url, "insert into boat values ('b')")
        .unwrap();
    postgres.kill().unwrap();
    assert_eq!(postgres.pid(), None);
    assert!(processes_in(&postgres.directory().join("data")).is_empty());
    postgres.begin().unwrap();
    assert_eq!(count(&postgres), "2");
}

#[test]
fn a_server_is_durable_when_asked() {
    let Some(durable) = own("a_server_is_durable_when_asked", Options { durable: true }) else {
        return;
    };
    let show = "select string_agg(setting, ' ' order by name) from pg_settings \
                where name in ('fsync', 'full_page_writes', 'synchronous_commit')";
    assert_eq!(
        durable.psql(&durable.url("postgres"), show).unwrap(),
        "on on on"
    );
    let hasty = shared_or_skip("a_server_is_durable_when_asked").unwrap();
    assert_eq!(
        hasty.psql(&hasty.url("postgres"), show).unwrap(),
        "off off on"
    );
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let Some(postgres) = own("a_dropped_server_leaves_nothing", Options::default()) else {
        return;
    };
    let directory = postgres.directory().to_path_buf();
    assert!(processes_in(&directory).len() > 1);
    drop(postgres);
    assert!(!directory.exists());
    assert_eq!(processes_in(&directory), Vec::<String>::new());
}

#[test]
fn a_killed_server_leaves_nothing_either() {
    let Some(mut postgres) = own("a_killed_server_leaves_nothing_either", Options::default())
    else {
        return;
    };
    let directory = postgres.directory().to_path_buf();
    let lock = std::fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1);
    let segment = segment.unwrap().to_owned();
    postgres.kill().unwrap();
    drop(postgres);
    assert!(!directory.exists());
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let ids: Vec<_> = segments
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert!(!ids.contains(&segment.as_str()), "{segments}");
}

/// Does nothing, unless the test below runs it as a process of its own.
#[test]
fn somebody_else() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let postgres = shared_or_skip("somebody_else").unwrap();
    println!("holding {}", postgres.directory().display());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_server_does_not_outlive_a_killed_test() {
    if shared_or_skip("a_server_does_not_outlive_a_killed_test").is_none() {
        return;
    }
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "somebody_else", "--nocapture"])
        .env(HOLD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let directory = lines
        .map(Result::unwrap)
        .find_map(|line| Some(line.split_once("holding ")?.1.to_owned()))
        .unwrap();
    let directory = Path::new(&directory);
    assert!(!processes_in(directory).is_empty());

    other.kill().unwrap();
    other.wait().unwrap();
    let deadline = Instant::now() + CLEAN_MAX;
    while directory.exists() || !processes_in(directory).is_empty() {
        assert!(Instant::now() < deadline, "left: {directory:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
