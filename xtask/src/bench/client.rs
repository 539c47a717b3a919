//! The few requests a measurement needs, over plain HTTP.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::server::Server;

/// Where the things of the default project are.
const PROJECT: &str = "/api/v1/projects/default";

/// Speaks to one server.
pub(super) struct Client {
    host: String,
    token: String,
    data: PathBuf,
}

impl Client {
    pub(super) fn new(server: &Server) -> Result<Self> {
        let host = server.address().trim_start_matches("http://").to_owned();
        Ok(Self {
            host,
            token: server.token()?,
            data: server.data().to_owned(),
        })
    }

    /// A command of the program, aimed at this server.
    pub(super) fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(["--server", &format!("http://{}", self.host), "--data-dir"])
            .arg(&self.data)
            .args(words);
        command
    }

    /// Submits a manifest.
    pub(super) fn apply(&self, text: &str) -> Result<()> {
        self.ask("POST", "/manifests", text).map(drop)
    }

    /// Waits until every cluster of a manifest is as declared.
    pub(super) fn wait_until_done(&self, manifest: &str, most: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            let open = ["pending", "scheduled", "error"]
                .iter()
                .try_fold(0, |sum, state| {
                    let list = self.ask(
                        "GET",
                        &format!("/clusters?manifest={manifest}&state={state}&limit=1"),
                        "",
                    )?;
                    anyhow::Ok(sum + list["items"].as_array().map_or(0, Vec::len))
                })?;
            if open == 0 {
                return Ok(());
            }
            ensure!(
                began.elapsed() < most,
                "{manifest} was not done after {} s",
                most.as_secs()
            );
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Every task of a cluster.
    pub(super) fn task_ids(&self, cluster: &str) -> Result<BTreeSet<String>> {
        self.tasks(cluster, id)
    }

    /// The task that was planned last.
    pub(super) fn newest_task(&self, cluster: &str) -> Result<String> {
        let list = self.ask("GET", &format!("/tasks?cluster={cluster}&limit=1"), "")?;
        id(&list["items"][0])
    }

    /// How many machines tasks touched that were planned since `before`.
    pub(super) fn machines_touched(
        &self,
        cluster: &str,
        before: &BTreeSet<String>,
    ) -> Result<usize> {
        let touched = self.tasks(cluster, |task| {
            let machine = task["machine"]
                .as_str()
                .context("a task names no machine")?;
            Ok(if before.contains(&id(task)?) {
                String::new()
            } else {
                machine.to_owned()
            })
        })?;
        Ok(touched.iter().filter(|machine| !machine.is_empty()).count())
    }

    fn tasks(
        &self,
        cluster: &str,
        take: impl Fn(&Value) -> Result<String>,
    ) -> Result<BTreeSet<String>> {
        let mut taken = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let list = self.ask(
                "GET",
                &format!("/tasks?cluster={cluster}&limit=500{cursor}"),
                "",
            )?;
            for task in list["items"].as_array().context("the answer is no list")? {
                taken.insert(take(task)?);
            }
            match list["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(taken),
            }
        }
    }

    /// The newest event; 0 when there was none.
    pub(super) fn newest_event(&self) -> Result<u64> {
        Ok(self.events_after(0)?.last().copied().unwrap_or(0))
    }

    /// The ids of all events after one.
    pub(super) fn events_after(&self, after: u64) -> Result<Vec<u64>> {
        let mut connection = self.connection()?;
        let mut ids: Vec<u64> = Vec::new();
        loop {
            let after = ids.last().copied().unwrap_or(after);
            let list = connection.list(&format!("/events?after={after}&limit=500"))?;
            let items = list["items"].as_array().context("the answer is no list")?;
            if items.is_empty() {
                return Ok(ids);
            }
            for event in items {
                ids.push(event["id"].as_u64().context("an event has no id")?);
            }
        }
    }

    /// A connection on which the events after one were asked for, as a stream.
    pub(super) fn follow(&self, after: u64) -> Result<TcpStream> {
        let mut connection = self.connection()?;
        connection.send("GET", &format!("/events?stream=true&after={after}"), "")?;
        Ok(connection.stream.into_inner())
    }

    /// A connection for many requests.
    pub(super) fn connection(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.host)
            .with_context(|| format!("could not reach {}", self.host))?;
        stream
            .set_nodelay(true)
            .context("could not switch off the delay of small packets")?;
        Ok(Connection {
            stream: BufReader::new(stream),
            host: self.host.clone(),
            token: self.token.clone(),
        })
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let answer = self.connection()?.ask(method, path, body)?;
        parse(path, &answer)
    }
}

/// A connection that is kept between requests.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Connection {
    /// Reads something; the answer is received whole and not looked at.
    pub(super) fn get(&mut self, path: &str) -> Result<()> {
        self.ask("GET", path, "").map(drop)
    }

    /// Reads something that is JSON.
    pub(super) fn list(&mut self, path: &str) -> Result<Value> {
        parse(path, &self.ask("GET", path, "")?)
    }

    /// Submits something.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<()> {
        self.ask("POST", path, body).map(drop)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        self.send(method, path, body)?;
        let status = self.line()?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            ensure!(
                !line.starts_with("transfer-encoding:"),
                "the answer to {method} {path} has no length"
            );
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().context("a strange length")?;
            }
        }
        let mut answer = vec![0; length];
        self.stream
            .read_exact(&mut answer)
            .context("could not read the answer")?;
        if !status.starts_with("HTTP/1.1 2") {
            bail!(
                "{method} {path}: {status}: {}",
                String::from_utf8_lossy(&answer)
            );
        }
        Ok(answer)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let request = format!(
            "{method} {PROJECT}{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/yaml\r\n\
             content-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream
            .write_all(request.as_bytes())
            .context("could not ask")
    }

    /// One line of the head of an answer.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        ensure!(
            read.context("could not read the answer")? > 0,
            "the server closed the connection"
        );
        Ok(line.trim_end().to_owned())
    }
}

fn parse(path: &str, answer: &[u8]) -> Result<Value> {
    serde_json::from_slice(answer).with_context(|| format!("the answer to {path} is no JSON"))
}

fn id(task: &Value) -> Result<String> {
    Ok(task["id"].as_str().context("a task has no id")?.to_owned())
}
