//! Speaks the public contract: one method per route.
//!
//! Every question has a deadline, except live streams, which have one for silence. Answers
//! are bounded in size, because a wrong address may be anybody's server.

mod access;
mod backup;
mod environment;
mod error;
mod guest;
mod health;
mod log;
mod secret;
mod stream;
mod wire;

use crate::cluster::{ClusterGeneration, ClusterHead, ClusterState, ClusterView, WhyView};
use crate::event::EventView;
use crate::intent::{IntentRequest, IntentView};
use crate::machine::{ChangeView, MachineView};
use crate::manifest::{Accepted, GenerationView, ManifestGeneration, ManifestView};
use crate::page::Listed;
use crate::plan::JourneyView;
use crate::problem::{self, Problem};
use crate::recovery::RecoveryView;
use crate::secret::Secret;
use crate::simulation::SimulationView;
use crate::task::{LogView, TaskState, TaskView};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use std::time::Duration;

pub use access::Export;
pub use backup::Backup;
pub use environment::{
    ActionOutput, DeliveryFilter, EnvironmentFilter, EnvironmentVerb, OutputSignal,
};
pub use error::Error;
pub use health::Health;
pub use log::{LogSignal, TaskLog};
pub use stream::{Events, Signal};

/// How long a server may take to accept a connection: it is near, or it is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server may take for an ordinary answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take to expand, plan or rehearse a whole manifest.
const WORK_TIMEOUT: Duration = Duration::from_mins(5);

/// The largest answer that is read: a page of the largest clusters is far below it.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A connection to one project on one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
    project: String,
    /// Marked as sensitive, so that printing the client prints no token.
    authorization: Option<HeaderValue>,
}

/// Which page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// How many items at most; the server's default when absent.
    pub limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    pub cursor: Option<String>,
}

impl Page {
    fn query(&self) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        limit.into_iter().chain(cursor).collect()
    }
}

/// What a change may take away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allow {
    /// The share of machines, in per cent, that may be removed at once.
    pub blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    pub data_loss: bool,
}

impl Allow {
    fn query(self) -> Vec<(&'static str, String)> {
        let blast = self
            .blast
            .map(|percent| ("allowBlast", percent.to_string()));
        let loss = self.data_loss.then(|| ("allowDataLoss", true.to_string()));
        blast.into_iter().chain(loss).collect()
    }
}

/// How a manifest is to be taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Submit {
    /// What it may take away.
    pub allow: Allow,
    /// The journey that was shown; what goes beyond it is refused.
    pub plan: Option<String>,
    /// The generation this change is based on; refused when there is a newer one.
    pub parent: Option<u64>,
    /// Makes a repeat of the same request harmless.
    pub key: Option<String>,
}

/// Which clusters to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFilter {
    /// Only those of this manifest.
    pub manifest: Option<String>,
    /// Only those that stand so.
    pub state: Option<ClusterState>,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only those of this cluster.
    pub cluster: Option<String>,
    /// Only those that stand so.
    pub state: Option<TaskState>,
}

impl Client {
    /// Prepares to speak to `server`, e.g. `http://127.0.0.1:7077`; nothing is sent yet.
    pub fn new(server: &str, token: Option<&str>, project: &str) -> Result<Self, Error> {
        let refused = || Error::Address {
            server: server.to_owned(),
        };
        let url: Url = server
            .trim_end_matches('/')
            .parse()
            .map_err(|_| refused())?;
        if url.scheme() != "http" || url.cannot_be_a_base() || !url.has_host() {
            return Err(refused());
        }
        let authorization = token
            .map(|token| {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::Token)?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if is_here(&url) {
            // What runs on this machine is never behind the network's proxy.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|_| refused())?;
        Ok(Self {
            http,
            server: url,
            project: project.to_owned(),
            authorization,
        })
    }

    /// Where the server is, for messages.
    pub fn server(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    /// Whether it shows a token.
    pub const fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// The project that is spoken of.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Whether the server is there and ready for work.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut url = self.server.clone();
        url.set_path("/readyz");
        let request = self.http.get(url).timeout(ANSWER_TIMEOUT);
        self.send(request).await.map(drop)
    }

    /// All that would follow if the manifest were applied.
    pub async fn plan(&self, text: &str, allow: Allow) -> Result<JourneyView, Error> {
        self.ask(self.manuscript(&["plans"], text).query(&allow.query()))
            .await
    }

    /// A journey that was shown before.
    pub async fn journey(&self, id: &str) -> Result<JourneyView, Error> {
        self.ask(self.get(&["plans", id])).await
    }

    /// Declares a manifest.
    pub async fn submit(&self, text: &str, submit: &Submit) -> Result<Accepted, Error> {
        let Submit {
            allow,
            plan,
            parent,
            key,
        } = submit;
        let mut request = self.manuscript(&["manifests"], text).query(&allow.query());
        if let Some(plan) = plan {
            request = request.query(&[("plan", plan)]);
        }
        if let Some(parent) = parent {
            request = request.header(IF_MATCH, parent.to_string());
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.ask(request).await
    }

    /// The manifests.
    pub async fn manifests(&self, page: &Page) -> Result<Listed<ManifestView>, Error> {
        self.ask(self.get(&["manifests"]).query(&page.query()))
            .await
    }

    /// One manifest.
    pub async fn manifest(&self, name: &str) -> Result<ManifestView, Error> {
        self.ask(self.get(&["manifests", name])).await
    }

    /// Removes a manifest and, with it, all its clusters.
    pub async fn delete_manifest(&self, name: &str) -> Result<Accepted, Error> {
        self.ask(self.request(Method::DELETE, &["manifests", name]))
            .await
    }

    /// The history of a manifest, newest first.
    pub async fn manifest_generations(
        &self,
        name: &str,
        page: &Page,
    ) -> Result<Listed<GenerationView>, Error> {
        self.ask(
            self.get(&["manifests", name, "generations"])
                .query(&page.query()),
        )
        .await
    }

    /// A manifest as it was declared at one time.
    pub async fn manifest_generation(
        &self,
        name: &str,
        generation: u64,
    ) -> Result<ManifestGeneration, Error> {
        self.ask(self.get(&["manifests", name, "generations", &generation.to_string()]))
            .await
    }

    /// The clusters.
    pub async fn clusters(
        &self,
        filter: &ClusterFilter,
        page: &Page,
    ) -> Result<Listed<ClusterHead>, Error> {
        let ClusterFilter { manifest, state } = filter;
        let mut query = page.query();
        query.extend(manifest.clone().map(|manifest| ("manifest", manifest)));
        query.extend(state.map(|state| ("state", state.to_string())));
        self.ask(self.get(&["clusters"]).query(&query)).await
    }

    /// One cluster.
    pub async fn cluster(&self, name: &str) -> Result<ClusterView, Error> {
        self.ask(self.get(&["clusters", name])).await
    }

    /// What opens the API of a cluster.
    pub async fn kubeconfig(&self, cluster: &str) -> Result<Secret, Error> {
        let answer = self.send(self.get(&["clusters", cluster, "kubeconfig"]));
        Ok(Secret::from(self.body(answer.await?).await?))
    }

    /// Why a cluster stands where it stands.
    pub async fn why(&self, cluster: &str) -> Result<WhyView, Error> {
        self.ask(self.get(&["clusters", cluster, "why"])).await
    }

    /// The history of a cluster, newest first.
    pub async fn cluster_generations(
        &self,
        name: &str,
        page: &Page,
    ) -> Result<Listed<GenerationView>, Error> {
        self.ask(
            self.get(&["clusters", name, "generations"])
                .query(&page.query()),
        )
        .await
    }

    /// A cluster as it should have been at one time.
    pub async fn cluster_generation(
        &self,
        name: &str,
        generation: u64,
    ) -> Result<ClusterGeneration, Error> {
        self.ask(self.get(&["clusters", name, "generations", &generation.to_string()]))
            .await
    }

    /// The machines, of one cluster or of all.
    pub async fn machines(
        &self,
        cluster: Option<&str>,
        page: &Page,
    ) -> Result<Listed<MachineView>, Error> {
        let mut query = page.query();
        query.extend(cluster.map(|cluster| ("cluster", cluster.to_owned())));
        self.ask(self.get(&["machines"]).query(&query)).await
    }

    /// One machine.
    pub async fn machine(&self, name: &str) -> Result<MachineView, Error> {
        self.ask(self.get(&["machines", name])).await
    }

    /// What was seen to change about a machine, newest first.
    pub async fn machine_changes(
        &self,
        name: &str,
        page: &Page,
    ) -> Result<Listed<ChangeView>, Error> {
        self.ask(
            self.get(&["machines", name, "changes"])
                .query(&page.query()),
        )
        .await
    }

    /// The tasks.
    pub async fn tasks(&self, filter: &TaskFilter, page: &Page) -> Result<Listed<TaskView>, Error> {
        let TaskFilter { cluster, state } = filter;
        let mut query = page.query();
        query.extend(cluster.clone().map(|cluster| ("cluster", cluster)));
        query.extend(state.map(|state| ("state", state.to_string())));
        self.ask(self.get(&["tasks"]).query(&query)).await
    }

    /// One task.
    pub async fn task(&self, id: &str) -> Result<TaskView, Error> {
        self.ask(self.get(&["tasks", id])).await
    }

    /// What a task wrote after the line `after`.
    pub async fn task_log(&self, id: &str, after: u64, limit: u32) -> Result<LogView, Error> {
        let query = [("after", after), ("limit", limit.into())];
        self.ask(self.get(&["tasks", id, "log"]).query(&query))
            .await
    }

    /// What a task wrote after the line `after`, and what it writes, until it has ended.
    pub fn follow_task_log(&self, id: &str, after: u64) -> TaskLog {
        TaskLog::new(self.clone(), id, after)
    }

    /// Stores a wish.
    pub async fn wish(&self, wish: &IntentRequest) -> Result<IntentView, Error> {
        self.ask(self.request(Method::POST, &["intents"]).json(wish))
            .await
    }

    /// The wishes that count.
    pub async fn intents(&self, page: &Page) -> Result<Listed<IntentView>, Error> {
        self.ask(self.get(&["intents"]).query(&page.query())).await
    }

    /// Takes a wish back, though as much as is allowed goes with it.
    pub async fn withdraw(&self, intent: &str, allow: Allow) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &["intents", intent]);
        self.send(request.query(&allow.query())).await.map(drop)
    }

    /// Sets aside what the server cannot read of a cluster. Machines that it knows by name alone and that
    /// are listed, or all of them where it is given up, are left to themselves.
    pub async fn recover(
        &self,
        cluster: &str,
        leave: &[String],
        abandon: bool,
        allow: Allow,
    ) -> Result<RecoveryView, Error> {
        let request = self.request(Method::POST, &["clusters", cluster, "recovery"]);
        let mut request = request.query(&allow.query());
        if !leave.is_empty() {
            request = request.query(&[("leave", leave.join(","))]);
        }
        if abandon {
            request = request.query(&[("abandon", true)]);
        }
        self.ask(request).await
    }

    /// What happened after the event `after`, oldest first.
    pub async fn events_after(&self, after: u64, limit: u32) -> Result<Listed<EventView>, Error> {
        let query = [("after", after), ("limit", limit.into())];
        self.ask(self.get(&["events"]).query(&query)).await
    }

    /// What happens from now on, or after the event `after`, as it happens.
    pub fn events(&self, after: Option<u64>) -> Events {
        Events::new(self.clone(), after)
    }

    /// Rehearses a manifest against a twin of what is stored.
    pub async fn simulate(
        &self,
        text: &str,
        seed: Option<u64>,
        faults: Option<&str>,
    ) -> Result<SimulationView, Error> {
        let mut request = self.manuscript(&["simulations"], text);
        if let Some(seed) = seed {
            request = request.query(&[("seed", seed)]);
        }
        if let Some(faults) = faults {
            request = request.query(&[("faults", faults)]);
        }
        self.ask(request).await
    }

    fn get(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    /// A request whose body is a whole manifest; JSON is YAML too.
    fn manuscript(&self, path: &[&str], text: &str) -> RequestBuilder {
        self.request(Method::POST, path)
            .timeout(WORK_TIMEOUT)
            .header(CONTENT_TYPE, "application/yaml")
            .body(text.to_owned())
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.endless(method, path).timeout(ANSWER_TIMEOUT)
    }

    /// A request whose answer may take for ever.
    fn endless(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let path: Vec<&str> = ["projects", &self.project]
            .into_iter()
            .chain(path.iter().copied())
            .collect();
        self.everywhere(method, &path)
    }

    /// A request about what belongs to no single project.
    fn whole(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.everywhere(method, path).timeout(ANSWER_TIMEOUT)
    }

    /// The same, whose answer may take for ever.
    fn everywhere(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Segments are escaped as they are added: a name cannot lead elsewhere.
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        let request = self.http.request(method, url);
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        }
    }

    /// Sends a request and reads what the contract promises.
    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let answer = self
            .send(request.header(ACCEPT, "application/json"))
            .await?;
        let body = self.body(answer).await?;
        serde_json::from_slice(&body).map_err(|cause| Error::Answer {
            server: self.server().to_owned(),
            cause,
        })
    }

    /// Sends a request; an answer that is not a success becomes an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let answer = request
            .send()
            .await
            .map_err(|cause| self.transport(cause))?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let kind = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let ours = kind.is_some_and(|kind| kind.starts_with(problem::MEDIA_TYPE));
        let foreign = || Error::Foreign {
            server: self.server().to_owned(),
            status: status.as_u16(),
        };
        if !ours {
            return Err(foreign());
        }
        let body = self.body(answer).await?;
        let problem: Problem = serde_json::from_slice(&body).map_err(|_| foreign())?;
        Err(Error::Problem(Box::new(problem)))
    }

    async fn body(&self, mut answer: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(piece) = answer
            .chunk()
            .await
            .map_err(|cause| self.transport(cause))?
        {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(Error::TooLong {
                    server: self.server().to_owned(),
                });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn transport(&self, cause: reqwest::Error) -> Error {
        let server = self.server().to_owned();
        let cause = cause.without_url();
        // A connection that takes too long to begin is both; nobody being there says more.
        if cause.is_connect() {
            Error::Unreachable { server, cause }
        } else if cause.is_timeout() {
            Error::Timeout { server, cause }
        } else {
            Error::Broken { server, cause }
        }
    }
}

/// Whether `server` is on this very machine, where files beside it can be found.
pub fn is_local(server: &str) -> bool {
    server.parse().is_ok_and(|url| is_here(&url))
}

fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost"
            || bare
                .parse()
                .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_address_is_refused_before_anything_is_sent() {
        for server in [
            "",
            "127.0.0.1:7077",
            "ftp://a",
            "https://a",
            "http://",
            "mailto:a@b",
        ] {
            let refused = Client::new(server, None, "default");
            assert!(matches!(refused, Err(Error::Address { .. })), "{server}");
        }
    }

    #[test]
    fn a_token_is_never_printed() {
        let client = Client::new("http://127.0.0.1:1/", Some("s3cret"), "default").unwrap();
        assert!(!format!("{client:?}").contains("s3cret"));
        assert!(Client::new("http://a", Some("a\nb"), "default").is_err());
    }

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let client = Client::new("http://127.0.0.1:1/below/", None, "default").unwrap();
        let request = client.get(&["clusters", "../a?b"]).build().unwrap();
        assert_eq!(
            request.url().path(),
            "/below/api/v1/projects/default/clusters/..%2Fa%3Fb"
        );
    }

    #[test]
    fn only_this_machine_is_here() {
        for here in ["http://localhost:1", "http://127.9.9.9", "http://[::1]:1"] {
            assert!(is_local(here), "{here}");
        }
        for there in ["http://10.0.0.1", "http://localhost.example", "localhost"] {
            assert!(!is_local(there), "{there}");
        }
    }
}
