//! Lists and single reads over a store that holds a hundred thousand objects.
//!
//! The objects are real: the server built them, and keeps looking after them while we ask.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::body::Body;
use super::client::{Client, Connection};
use super::latency::{Latencies, millis};
use super::{Row, cluster, fresh, manifest};

/// What the server holds: a hundred manifests, ten thousand clusters, ninety thousand machines.
const MANIFESTS: usize = 100;
const CLUSTERS_EACH: usize = 100;
const COMPUTE: u32 = 8;

/// Who asks: so many clients at once, each so often.
const CLIENTS: usize = 4;
const REQUESTS_EACH: usize = 2_500;

/// What was promised.
const P99_MAX: Duration = Duration::from_millis(20);

/// How long building may take; nobody is promised anything about that here.
const BUILD_MAX: Duration = Duration::from_mins(30);

/// Fills a server on each body and asks it.
pub(super) fn measure(program: &Path, bodies: &[Body], rows: &mut Vec<Row>) -> Result<()> {
    for body in bodies {
        eprintln!("building 100,000 objects on {}", body.name());
        let server = body.serve(program, &fresh("lists")?)?;
        let client = Client::new(&server)?;
        let began = Instant::now();
        for number in 0..MANIFESTS {
            client.apply(&manifest_of(number))?;
        }
        for number in 0..MANIFESTS {
            client.wait_until_done(&format!("m{number:03}"), BUILD_MAX)?;
        }
        eprintln!(
            "they took {} s; asking with {CLIENTS} clients",
            began.elapsed().as_secs()
        );
        rows.push(row(body, &ask_all(&client)?));
    }
    Ok(())
}

fn manifest_of(number: usize) -> String {
    let clusters: Vec<_> = (0..CLUSTERS_EACH)
        .map(|n| {
            let all = number * CLUSTERS_EACH + n;
            let network = format!("10.{}.{}.0/24", all / 250, all % 250);
            cluster(&cluster_name(all), "v1.34.0", &network)
        })
        .collect();
    manifest(&format!("m{number:03}"), 1, COMPUTE, &clusters)
}

fn cluster_name(number: usize) -> String {
    format!("c{number:05}")
}

/// One row from the answers to lists and to single reads.
fn row(body: &Body, [lists, reads]: &[Latencies; 2]) -> Row {
    let (list, read) = (lists.percentile(99), reads.percentile(99));
    eprintln!(
        "p50 of {} lists {}, of {} reads {}",
        lists.len(),
        millis(lists.percentile(50)),
        reads.len(),
        millis(reads.percentile(50))
    );
    Row {
        what: format!("list, read at 100,000 objects, p99, {}", body.name()),
        ours: format!("{}, {}", millis(list), millis(read)),
        rival: "Rancher: seconds".to_owned(),
        budget: "< 20 ms",
        met: list < P99_MAX && read < P99_MAX,
    }
}

/// Asks with all clients at once; answers the times of lists and of single reads.
fn ask_all(client: &Client) -> Result<[Latencies; 2]> {
    let known = Known::look(client)?;
    let (mut lists, mut reads) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let known = &known;
                scope.spawn(move || ask(client, known, number))
            })
            .collect();
        for client in clients {
            let Ok(asked) = client.join() else {
                anyhow::bail!("a client broke down");
            };
            let (list, read) = asked?;
            lists.extend(list);
            reads.extend(read);
        }
        Ok(())
    })?;
    Ok([Latencies::new(lists), Latencies::new(reads)])
}

type Times = Vec<Duration>;

/// What one client does: in turn each of the questions, about things all over the place.
fn ask(client: &Client, known: &Known, number: usize) -> Result<(Times, Times)> {
    let mut connection = client.connection()?;
    let (mut lists, mut reads) = (Vec::new(), Vec::new());
    let mut dice = Dice(u64::try_from(number)? + 1);
    for turn in 0..REQUESTS_EACH {
        let (path, is_list) = known.question(turn, &mut dice);
        let began = Instant::now();
        connection.get(&path)?;
        let times = if is_list { &mut lists } else { &mut reads };
        times.push(began.elapsed());
    }
    Ok((lists, reads))
}

/// What questions can be asked about.
struct Known {
    machine_pages: Vec<String>,
    cluster_pages: Vec<String>,
    machines: Vec<String>,
    tasks: Vec<String>,
}

impl Known {
    fn look(client: &Client) -> Result<Self> {
        let mut connection = client.connection()?;
        let (machine_pages, machines) = pages(&mut connection, "machines", "name")?;
        let (cluster_pages, clusters) = pages(&mut connection, "clusters", "name")?;
        let tasks = connection.list("/tasks?limit=500")?;
        ensure!(
            machines.len() + clusters.len() + MANIFESTS >= 100_000,
            "there are only {} machines and {} clusters",
            machines.len(),
            clusters.len()
        );
        Ok(Self {
            machine_pages,
            cluster_pages,
            machines,
            tasks: texts(&tasks, "id")?,
        })
    }

    /// A question, and whether it is about a list.
    fn question(&self, turn: usize, dice: &mut Dice) -> (String, bool) {
        let mut one = |of: &[String]| dice.one_of(of).to_owned();
        let (machine, task) = (one(&self.machines), one(&self.tasks));
        let (machine_page, cluster_page) = (one(&self.machine_pages), one(&self.cluster_pages));
        let cluster = cluster_name(dice.below(MANIFESTS * CLUSTERS_EACH));
        let manifest = format!("m{:03}", dice.below(MANIFESTS));
        let list = |path: String| (path, true);
        let read = |path: String| (path, false);
        match turn % 10 {
            0 => list(format!("/machines?limit=100&cursor={machine_page}")),
            1 => list(format!("/clusters?limit=100&cursor={cluster_page}")),
            2 => list(format!("/machines?cluster={cluster}")),
            3 => list(format!(
                "/clusters?manifest={manifest}&state=done&limit=100"
            )),
            4 => list(format!("/tasks?cluster={cluster}&limit=100")),
            5 => list("/tasks?state=done&limit=100".to_owned()),
            6 => read(format!("/machines/{machine}")),
            7 => read(format!("/clusters/{cluster}")),
            8 => read(format!("/tasks/{task}")),
            _ => read(format!("/manifests/{manifest}")),
        }
    }
}

/// Walks through a list; answers where its pages begin and a text of each item.
fn pages(
    connection: &mut Connection,
    list: &str,
    name: &str,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut cursors, mut items) = (Vec::new(), Vec::new());
    let mut cursor = String::new();
    loop {
        let page = connection.list(&format!("/{list}?limit=500{cursor}"))?;
        items.extend(texts(&page, name)?);
        let Some(next) = page["next"].as_str() else {
            return Ok((cursors, items));
        };
        cursors.push(next.to_owned());
        cursor = format!("&cursor={next}");
    }
}

/// One text of each item of a page.
fn texts(page: &Value, name: &str) -> Result<Vec<String>> {
    let items = page["items"].as_array().context("the answer is no list")?;
    let text = |item: &Value| Ok(item[name].as_str().context("no such text")?.to_owned());
    items.iter().map(text).collect()
}

/// Chooses, and chooses the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // The constants of Knuth's MMIX; the high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).map_or(0, |number| number % end.max(1))
    }

    fn one_of<'a>(&mut self, of: &'a [String]) -> &'a str {
        let at = self.below(of.len());
        of.get(at).map_or("", String::as_str)
    }
}
