//! A thousand clients who follow events while a hundred things a second change.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::body::Body;
use super::client::Client;
use super::latency::millis;
use super::process::Usage;
use super::sse::Follower;
use super::{Row, cluster, fresh, manifest};

/// What was promised: so many streams, so many changes a second, on less than one core.
const STREAMS: usize = 1_000;
const CHANGES_PER_SECOND: u32 = 100;
const CORES_MAX: f64 = 1.0;

/// How long things change.
const CHANGING: Duration = Duration::from_secs(10);

/// A rate that is a little missed was still kept; clocks and schedulers are what they are.
const RATE_MIN: f64 = 0.95;

/// How long streams may take to begin, and to tell the last event.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is read at once.
const BUFFER: usize = 64 * 1024;

/// Measures on each body.
pub(super) fn measure(program: &Path, bodies: &[Body], rows: &mut Vec<Row>) -> Result<()> {
    for body in bodies {
        eprintln!("following events {STREAMS} times on {}", body.name());
        rows.push(measure_on(program, body)?);
    }
    Ok(())
}

fn measure_on(program: &Path, body: &Body) -> Result<Row> {
    let server = body.serve(program, &fresh("streams")?)?;
    let client = Client::new(&server)?;
    client.apply(&changed(0))?;
    client.wait_until_done("many", Duration::from_mins(1))?;
    // Resuming at a known event: what comes before the last stream has begun is not lost.
    let first = client.newest_event()?;
    let mut followers = Followers::new(&client, first)?;

    let before = Usage::of(server.process())?;
    let began = Instant::now();
    let (changes, changing) = std::thread::scope(|scope| {
        let changes = scope.spawn(|| change(&client));
        while !changes.is_finished() {
            followers.read()?;
        }
        let Ok(changes) = changes.join() else {
            anyhow::bail!("the one who changes things broke down");
        };
        Ok((changes?, began.elapsed()))
    })?;
    let events = client.events_after(first)?;
    let last = *events.last().context("nothing changed")?;
    let late = followers.read_until(last)?;
    let took = began.elapsed();
    let after = Usage::of(server.process())?;

    let complete = followers.count_complete(&events);
    let cores = after.cpu.saturating_sub(before.cpu).as_secs_f64() / took.as_secs_f64();
    let rate = f64::from(changes) / changing.as_secs_f64();
    eprintln!(
        "{changes} changes at {rate:.0}/s were {} events; {complete} of {STREAMS} streams told all, \
         the last of them {} after the last change; {} MiB",
        events.len(),
        millis(late),
        after.resident_mib
    );
    Ok(Row {
        what: format!("1,000 event streams, 100 changes/s, {}", body.name()),
        ours: format!("{cores:.2} core, {complete} complete"),
        rival: "none published".to_owned(),
        budget: "< 1 core, all complete",
        met: cores < CORES_MAX
            && complete == STREAMS
            && rate >= RATE_MIN * f64::from(CHANGES_PER_SECOND),
    })
}

/// A manifest that differs in nothing but a remark: a generation and an event each.
fn changed(number: u32) -> String {
    let text = manifest("many", 1, 1, &[cluster("many", "v1.34.0", "10.16.0.0/24")]);
    format!("{text}# change {number}\n")
}

/// Changes something at the promised rate; answers how often.
fn change(client: &Client) -> Result<u32> {
    let mut connection = client.connection()?;
    let pause = Duration::from_secs(1) / CHANGES_PER_SECOND;
    let began = Instant::now();
    let mut changes = 0;
    while began.elapsed() < CHANGING {
        changes += 1;
        connection.post("/manifests", &changed(changes))?;
        // To the plan and not to the last answer: a slow one is made up for.
        let due = began + pause * changes;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(changes)
}

/// All who follow.
struct Followers {
    all: Vec<Follower>,
    buffer: Vec<u8>,
}

impl Followers {
    fn new(client: &Client, after: u64) -> Result<Self> {
        let all: Result<Vec<_>> = (0..STREAMS)
            .map(|_| Follower::new(client.follow(after)?))
            .collect();
        let mut followers = Self {
            all: all?,
            buffer: vec![0; BUFFER],
        };
        let began = Instant::now();
        while !followers.all.iter().all(Follower::has_begun) {
            followers.read()?;
            ensure!(began.elapsed() < PATIENCE, "some streams did not begin");
        }
        Ok(followers)
    }

    /// Reads what there is, and rests a little: the machine belongs to the server.
    fn read(&mut self) -> Result<()> {
        for follower in &mut self.all {
            follower.read(&mut self.buffer)?;
        }
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    }

    /// Reads until every stream has told an event; answers how long that took.
    fn read_until(&mut self, event: u64) -> Result<Duration> {
        let began = Instant::now();
        while self.all.iter().any(|follower| follower.last() < event) {
            if began.elapsed() > PATIENCE {
                break; // Who is not complete is counted.
            }
            self.read()?;
        }
        Ok(began.elapsed())
    }

    fn count_complete(&self, events: &[u64]) -> usize {
        let complete = |follower: &&Follower| follower.events() == events;
        self.all.iter().filter(complete).count()
    }
}
