//! Fifty thousand environments: what a round of looks costs us, and how soon lists answer.
//!
//! They are made by the example `habitat` of the store, and looked at by a real server with a check
//! that ends at once. What the checks themselves take is not ours and is not counted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::body::Body;
use super::client::{Client, Connection};
use super::latency::{Latencies, millis};
use super::process::Usage;
use super::{Row, fresh};
use crate::server::Server;
use crate::workspace;

/// How many there are.
const COUNT: usize = 50_000;

/// Actions that are under way while somebody reads, by how many clients they are asked for at once,
/// and how long each takes: longer than all of the reading, also on a slow machine.
const ACTIONS: usize = 200;
const ASKERS: usize = 40;
const ACTION_SECONDS: u32 = 120;

/// How many of them must be under way before somebody reads, and still be when all is read.
const UNDER_WAY_MIN: usize = 195;

/// How long it may take until they are.
const UNDER_WAY_WITHIN: Duration = Duration::from_mins(2);

/// Who asks: so many clients at once, each so often.
const CLIENTS: usize = 4;
const REQUESTS_EACH: usize = 500;

/// What was promised.
const CPU_MAX: Duration = Duration::from_mins(1);
const P99_MAX: Duration = Duration::from_millis(50);

/// How long a round may take on a slow machine; nobody is promised anything about that here.
const ROUND_MAX: Duration = Duration::from_hours(1);

/// Measures on every body.
pub(super) fn measure(program: &Path, bodies: &[Body], rows: &mut Vec<Row>) -> Result<()> {
    let built = workspace::cargo()
        .args(["build", "--release", "--package", "store"])
        .args(["--example", "habitat"])
        .status();
    ensure!(
        built.context("could not start cargo")?.success(),
        "the release build of the filling program failed"
    );
    for body in bodies {
        let directory = fresh("environments")?;
        let server = fill_and_serve(program, body, &directory)?;
        rows.extend(one(body, &server)?);
    }
    Ok(())
}

/// Scripts of which the check and all that tells ends at once, and those that change take a while.
fn scripts(directory: &Path) -> Result<PathBuf> {
    let scripts = directory.join("scripts");
    std::fs::create_dir(&scripts).context("could not make a directory of scripts")?;
    let slow = format!("#!/bin/sh\nexec sleep {ACTION_SECONDS}\n");
    let quick = "#!/bin/sh\nexit 0\n";
    let telling = [
        "deployment_config",
        "deployment_config_keys",
        "application_config",
        "application_config_keys",
        "config_check",
        "info",
        "archive_check",
    ];
    let changing = ["create", "update", "archive", "unarchive", "cleanup"];
    let all = telling.iter().map(|name| (name, quick));
    for (name, text) in all.chain(changing.iter().map(|name| (name, slow.as_str()))) {
        let file = scripts.join(name);
        std::fs::write(&file, text).context("could not write a script")?;
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755))
            .context("could not make a script executable")?;
    }
    std::fs::copy("/bin/true", scripts.join("check")).context("could not make a check")?;
    Ok(scripts)
}

/// A server on a store that is full.
fn fill_and_serve(program: &Path, body: &Body, directory: &Path) -> Result<Server> {
    eprintln!("making {COUNT} environments on {}", body.name());
    let scripts = scripts(directory)?;
    let data = directory.join("data");
    std::fs::create_dir(&data).context("could not make the data directory")?;
    let database = body.database()?;
    let place = match &database {
        Some(url) => url.clone(),
        None => data.display().to_string(),
    };
    let began = Instant::now();
    let filling = workspace::target_directory()?.join("release/examples/habitat");
    let filled = std::process::Command::new(filling)
        .arg(place)
        .arg(COUNT.to_string())
        .arg(&scripts)
        .status();
    ensure!(
        filled.context("could not fill the store")?.success(),
        "the store could not be filled"
    );
    eprintln!(
        "that took {} s; a round of looks",
        began.elapsed().as_secs()
    );
    Server::start_on(program, directory, database.as_deref())
}

/// The rows of one body: a round of looks, and lists beside what is under way.
fn one(body: &Body, server: &Server) -> Result<Vec<Row>> {
    let client = Client::new(server)?;
    let mut connection = client.connection()?;
    let before = Usage::of(server.process())?;
    let began = Instant::now();
    let last = format!("/environments/e{:05}", COUNT - 1);
    let first = connection.list(&last)?["checked"]["at"].clone();
    while connection.list(&last)?["checked"]["at"] == first {
        ensure!(
            began.elapsed() < ROUND_MAX,
            "a round of looks took too long"
        );
        std::thread::sleep(Duration::from_secs(1));
    }
    // Nobody's turn is fixed: those whose turn is later are looked at soon, or they starve.
    let patience = began.elapsed() * 2;
    let mut starved = unseen(&mut connection, &first)?;
    while starved > 0 && began.elapsed() < patience {
        std::thread::sleep(Duration::from_secs(1));
        starved = unseen(&mut connection, &first)?;
    }
    let (took, after) = (began.elapsed(), Usage::of(server.process())?);
    let own = after.cpu.saturating_sub(before.cpu);
    let round = Row {
        what: format!("a look at {COUNT} environments, {}", body.name()),
        ours: format!(
            "{:.1} s of our CPU, {} s",
            own.as_secs_f64(),
            took.as_secs()
        ),
        rival: format!("one after the other; {starved} starved"),
        budget: "< 60 s of CPU, none starved",
        met: own < CPU_MAX && starved == 0,
    };

    eprintln!("asking with {CLIENTS} clients, alone and beside {ACTIONS} actions");
    let alone = ask_all(&client)?;
    begin_all(&client)?;
    let beside = ask_all(&client)?;
    let left = under_way(&mut client.connection()?)?;
    ensure!(
        left >= UNDER_WAY_MIN,
        "only {left} of {ACTIONS} actions were still under way when all was read"
    );
    let lists = |what: &str, times: &Latencies| {
        let p99 = times.percentile(99);
        eprintln!(
            "p50 of {} lists {}",
            times.len(),
            millis(times.percentile(50))
        );
        Row {
            what: format!("list {COUNT} environments{what}, p99, {}", body.name()),
            ours: millis(p99),
            rival: "no paging, no filter".to_owned(),
            budget: "< 50 ms",
            met: p99 < P99_MAX,
        }
    };
    Ok(vec![
        round,
        lists("", &alone),
        lists(&format!(" beside {ACTIONS} actions"), &beside),
    ])
}

/// How many nobody looked at in the round, which began after this time.
fn unseen(connection: &mut Connection, before: &serde_json::Value) -> Result<usize> {
    let before = before.as_str().unwrap_or_default().to_owned();
    let (mut unseen, mut cursor) = (0, String::new());
    loop {
        let page = connection.list(&format!("/environments?limit=500{cursor}"))?;
        let items = page["items"].as_array().context("the answer is no list")?;
        let old = |item: &&serde_json::Value| {
            item["checked"]["at"]
                .as_str()
                .is_none_or(|at| at <= before.as_str())
        };
        unseen += items.iter().filter(old).count();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(unseen),
        }
    }
}

/// Has all actions begun at once, and waits until nearly all of them are under way.
fn begin_all(client: &Client) -> Result<()> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS)
            .map(|asker| scope.spawn(move || begin(client, asker)))
            .collect();
        for asker in askers {
            let Ok(asked) = asker.join() else {
                anyhow::bail!("a client broke down");
            };
            asked?;
        }
        Ok(())
    })?;
    let mut connection = client.connection()?;
    loop {
        let count = under_way(&mut connection)?;
        if count >= UNDER_WAY_MIN {
            let took = millis(began.elapsed());
            eprintln!("{count} of {ACTIONS} actions were under way after {took}");
            return Ok(());
        }
        ensure!(
            began.elapsed() < UNDER_WAY_WITHIN,
            "only {count} of {ACTIONS} actions were under way in time"
        );
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// What one client has begun.
fn begin(client: &Client, asker: usize) -> Result<()> {
    let mut connection = client.connection()?;
    for number in (asker..ACTIONS).step_by(ASKERS) {
        connection.post(&format!("/environments/e{number:05}/archive"), "{}")?;
    }
    Ok(())
}

/// How many actions are under way.
fn under_way(connection: &mut Connection) -> Result<usize> {
    let page = connection.list("/environments?limit=500&status=archive-pending")?;
    running(&page)
}

/// How many of a page of environments have a script running.
fn running(page: &serde_json::Value) -> Result<usize> {
    let items = page["items"].as_array().context("the answer is no list")?;
    let running = |item: &&serde_json::Value| item["busy"]["state"] == "running";
    Ok(items.iter().filter(running).count())
}

/// Asks with all clients at once.
fn ask_all(client: &Client) -> Result<Latencies> {
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || ask(client, number)))
            .collect();
        for client in clients {
            let Ok(asked) = client.join() else {
                anyhow::bail!("a client broke down");
            };
            times.extend(asked?);
        }
        Ok(())
    })?;
    Ok(Latencies::new(times))
}

/// What one client asks, in turn.
fn ask(client: &Client, number: usize) -> Result<Vec<Duration>> {
    let mut connection = client.connection()?;
    let mut times = Vec::new();
    for turn in 0..REQUESTS_EACH {
        let pick = turn * 7 + number * 13;
        let path = match turn % 6 {
            0 => "/environments?limit=100".to_owned(),
            1 => format!("/environments?limit=100&owner=owner{:02}", pick % 50),
            2 => format!("/environments?limit=100&label=team%3Dt{:02}", pick % 20),
            3 => "/environments?limit=100&status=running".to_owned(),
            4 => "/environments?limit=100&sort=changed".to_owned(),
            _ => format!("/environments?limit=100&text=e{:03}", pick % 500),
        };
        let began = Instant::now();
        connection.get(&path)?;
        times.push(began.elapsed());
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_runs_is_under_way() {
        let page = json!({"items": [
            {"name": "a", "busy": {"kind": "archive", "state": "running"}},
            {"name": "b", "busy": {"kind": "archive", "state": "waiting"}},
            {"name": "c", "busy": null},
        ]});
        assert_eq!(running(&page).unwrap(), 1);
        assert!(running(&json!({})).is_err());
    }
}
