//! The few requests a measurement needs, over plain HTTP.

use std::collections::BTreeSet;
use std::io::{Read, Write};
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

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.host)
            .with_context(|| format!("could not reach {}", self.host))?;
        let head = format!(
            "{method} {PROJECT}{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/yaml\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.host,
            self.token,
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .context("could not ask")?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .context("could not read the answer")?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("the answer has no end of headers")?;
        if !head.starts_with("HTTP/1.1 2") {
            bail!(
                "{method} {path}: {}: {body}",
                head.lines().next().unwrap_or_default()
            );
        }
        serde_json::from_str(body)
            .with_context(|| format!("the answer to {method} {path} is no JSON"))
    }
}

fn id(task: &Value) -> Result<String> {
    Ok(task["id"].as_str().context("a task has no id")?.to_owned())
}
