//! Two servers on one PostgreSQL, killed and started again at random while environments are driven
//! from their making to their end.
//!
//! Each server has a data directory of its own, so what one has begun only that one finds again.
//! Whatever is done is done once, and never two things at one environment. The seed of the moments
//! is printed; `SLIPWAY_KILL_SEED` repeats them.

use super::{CHANGING, House, serve, wire};
use crate::secrets::until;
use crate::server::Server;
use lab::postgres::Postgres;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is driven.
const NAMES: [&str; 8] = [
    "apple", "cherry", "fig", "grape", "lemon", "lime", "orange", "plum",
];

/// What is done to each, one after the other: the word for it, and how it is asked for, with what.
/// The path begins behind the name.
const STEPS: [(&str, &str, &str, &str); 4] = [
    ("update", "PATCH", "", "{\"tag\":\"v2\"}"),
    ("archive", "POST", "/archive", ""),
    ("restore", "POST", "/restore", ""),
    ("cleanup", "POST", "/cleanup?force=true", ""),
];

/// How long servers are killed. What is left alone by its server meanwhile is taken up again when
/// its lease is over, which takes longer than this, so that each environment suffers about once.
const KILLING: Duration = Duration::from_secs(12);

/// Where the environments of a project are.
const PATH: &str = "/api/v1/projects/default/environments";

/// A server that is killed now and then.
struct Member {
    directory: PathBuf,
    server: Mutex<Server>,
}

impl Member {
    /// Kills it with no time to tidy up, and starts another.
    fn kill(&self, database: &str) {
        let mut server = self.server.lock().unwrap();
        drop(server.child.kill());
        drop(server.child.wait());
        *server = serve(&self.directory, Some(database));
    }

    /// Where it listens, if it does.
    fn listens(&self) -> Option<String> {
        self.server.lock().unwrap().listens()
    }
}

/// A second server with a data directory of its own, and the key and the token of the first.
fn second(house: &House, database: &str) -> Member {
    let first = house.directory.path();
    let directory = first.join("second");
    std::fs::create_dir_all(directory.join("data")).unwrap();
    for file in ["data/slipway.key", "data/admin.token"] {
        std::fs::copy(first.join(file), directory.join(file)).unwrap();
    }
    std::fs::create_dir_all(first.join("state")).unwrap();
    symlink(first.join("state"), directory.join("state")).unwrap();
    let server = Mutex::new(serve(&directory, Some(database)));
    Member { directory, server }
}

/// Has each script that changes something note for which action it runs, and that another runs for
/// the same environment at the same time, should that ever be.
fn watch(directory: &Path) {
    let here = directory.display();
    for name in CHANGING {
        let script = directory.join("scripts").join(name);
        let text = std::fs::read_to_string(&script).unwrap();
        let (before, last) = text.rsplit_once("exec ").unwrap();
        let lock = format!("'{here}/locks/'\"$8\"");
        let text = format!(
            "{before}echo \"$SLIPWAY_ACTION\" >>'{here}/actions'\nmkdir {lock} || echo \"{name} $8\" >>'{here}/twice'\n{}\nstatus=$?\nrmdir {lock}\nexit $status\n",
            last.trim_end()
        );
        std::fs::write(&script, text).unwrap();
    }
    std::fs::create_dir(directory.join("locks")).unwrap();
}

/// Whoever wants environments, and asks any server that answers.
struct Person<'a> {
    members: &'a [Member],
    headers: Vec<(&'static str, String)>,
    /// Who was there at some time.
    met: BTreeSet<&'static str>,
    asked: usize,
}

impl Person<'_> {
    /// What one of the servers answers, if it does; the other is asked next time.
    fn ask(&mut self, way: (&str, &str), body: &str) -> Option<(u16, Value)> {
        self.asked += 1;
        let address = self.members[self.asked % self.members.len()].listens()?;
        let (status, answer) = wire::try_send(&address, way, &self.headers, body).ok()?;
        Some((status, serde_json::from_str(&answer).ok()?))
    }

    /// Has everybody go on who is at rest; answers whether all are gone.
    fn go_on(&mut self) -> bool {
        let Some((200, listed)) = self.ask(("GET", PATH), "") else {
            return false;
        };
        let listed: BTreeMap<&str, &Value> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["name"].as_str().unwrap(), one))
            .collect();
        for name in NAMES {
            let Some(seen) = listed.get(name) else {
                if !self.met.contains(name) {
                    self.ask(("POST", PATH), &wanted(name));
                }
                continue;
            };
            self.met.insert(name);
            let status = seen["status"].as_str().unwrap();
            if seen["busy"].is_null() && !status.ends_with("-pending") {
                self.next(name);
            }
        }
        listed.is_empty() && self.met.len() == NAMES.len()
    }

    /// Asks for the first thing that was not done to an environment yet. Whoever is not answered
    /// does not know whether it will be, and looks again.
    fn next(&mut self, name: &str) {
        let actions = format!("{PATH}/{name}/actions");
        let Some((200, actions)) = self.ask(("GET", &actions), "") else {
            return;
        };
        let actions = actions["items"].as_array().unwrap();
        let done = |what: &str| {
            let mut of = actions.iter().filter(|action| action["kind"] == what);
            of.any(|action| action["state"] == "done")
        };
        if let Some((_, method, path, body)) = STEPS.iter().find(|step| !done(step.0)) {
            self.ask((method, &format!("{PATH}/{name}{path}")), body);
        }
    }
}

/// An environment whose scripts take a moment, so that servers are killed while they run.
fn wanted(name: &str) -> String {
    let slow = json!({"application": {"demo.slow": "1"}});
    json!({"name": name, "tag": "v1", "set": slow}).to_string()
}

/// Kills one server after the other for a while; answers how often.
fn kill_for_a_while(members: &[Member], database: &str, mut random: fastrand::Rng) -> u32 {
    let began = Instant::now();
    let mut kills = 0;
    while began.elapsed() < KILLING {
        let member = &members[random.usize(0..members.len())];
        // Some die before they listen, most in the middle of their work.
        if random.u8(0..4) > 0 {
            until("it listens", || member.listens());
        }
        std::thread::sleep(Duration::from_millis(random.u64(100..1_500)));
        member.kill(database);
        kills += 1;
    }
    kills
}

/// Every action has ended, its script has run at most once, and once if it is done; answers how
/// many there were, and how many of them somebody took up again after their server was killed.
fn check_actions(postgres: &Postgres, database: &str, directory: &Path) -> (usize, usize) {
    let rows = "SELECT id, name, deed, state, fence FROM environment_actions ORDER BY seq";
    let rows = postgres.psql(database, rows).unwrap();
    let noted = std::fs::read_to_string(directory.join("actions")).unwrap();
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for action in noted.lines() {
        *runs.entry(action).or_default() += 1;
    }
    let mut done: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut again = 0;
    for row in rows.lines() {
        let columns: Vec<_> = row.split('|').collect();
        let [id, name, deed, state, fence] = columns[..].try_into().unwrap();
        let ran = runs.remove(id).unwrap_or_default();
        let ended = !["waiting", "running"].contains(&state);
        assert!(ended && ran <= 1, "{row}: its script ran {ran} times");
        assert!(state != "done" || ran == 1, "{row}: nothing was run for it");
        again += usize::from(fence != "1");
        done.extend((state == "done").then_some((name, deed)));
    }
    assert!(runs.is_empty(), "of nobody: {runs:?}");
    for name in NAMES {
        for (step, ..) in STEPS {
            assert!(done.contains(&(name, step)), "{name}, {step}: {rows}");
        }
    }
    (rows.lines().count(), again)
}

#[test]
fn servers_killed_on_one_database_do_everything_once_and_nothing_at_the_same_time() {
    let Some(postgres) = lab::postgres::shared_or_skip("program::environments") else {
        return;
    };
    let seed = match std::env::var("SLIPWAY_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("SLIPWAY_KILL_SEED={seed}");
    let database = postgres.create_database().unwrap();
    let mut house = House::on(Some(database.clone()), "file");
    // A look that died with its server is made again soon, and nobody becomes a failure only
    // because that takes a while.
    let times = ["--check-time", "3s", "--pending-time", "5m"];
    house.env(&[&["settings", "set"], times.as_slice()].concat());
    let directory = house.directory.path().to_owned();
    watch(&directory);
    let headers = vec![house.bearer()];
    let mut next = second(&house, &database);
    next.server.get_mut().unwrap().address();
    let first = Member {
        directory: directory.clone(),
        server: Mutex::new(house.server),
    };
    let members = [first, next];
    let mut person = Person {
        members: &members,
        headers,
        met: BTreeSet::new(),
        asked: 0,
    };
    let random = fastrand::Rng::with_seed(seed);
    let kills = std::thread::scope(|scope| {
        let killing = scope.spawn(|| kill_for_a_while(&members, &database, random));
        until("all are gone", || person.go_on().then_some(()));
        killing.join().unwrap()
    });

    let twice = std::fs::read_to_string(directory.join("twice")).unwrap_or_default();
    assert_eq!(twice, "", "two scripts ran at the same time");
    let (actions, again) = check_actions(postgres, &database, &directory);
    let left = "SELECT name FROM environments WHERE gone = 0";
    assert_eq!(postgres.psql(&database, left).unwrap().trim(), "");
    for name in NAMES {
        assert!(!directory.join("state/shop").join(name).exists(), "{name}");
        assert!(!directory.join("locks").join(name).exists(), "{name}");
    }
    crate::figure(&format!(
        "{kills} kills of 2 servers on one PostgreSQL: {} environments made, changed, archived, restored and removed by \
         {actions} actions, {again} of them taken up again, each script run once, no two at the same time",
        NAMES.len()
    ));
}
