//! What Kubernetes says of a release, and what that means. Nothing here asks anybody.

use std::collections::{BTreeMap, BTreeSet};

use model::environment::link::Link;
use model::environment::status::{Failure, Seen};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::output::LINKS_MAX;

/// Which release an object is of, as Helm notes it.
const RELEASE: &str = "meta.helm.sh/release-name";

/// How many replicas something had before it was archived; `act.sh` writes it.
const REPLICAS: &str = "slipway.dev/replicas";

#[derive(Deserialize)]
struct List<T> {
    items: Vec<Object<T>>,
}

#[derive(Deserialize)]
struct Object<T> {
    kind: String,
    metadata: Metadata,
    spec: T,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    generation: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: u64,
    replicas: u64,
    ready_replicas: u64,
    updated_replicas: u64,
    desired_number_scheduled: u64,
    current_number_scheduled: u64,
    number_ready: u64,
    updated_number_scheduled: u64,
    /// What a `CronJob` has under way.
    active: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec {
    replicas: Option<u64>,
    #[serde(default)]
    suspend: bool,
    #[serde(default)]
    selector: Selector,
    template: Option<Template>,
    job_template: Option<JobTemplate>,
}

#[derive(Deserialize)]
struct JobTemplate {
    spec: JobSpec,
}

#[derive(Deserialize)]
struct JobSpec {
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    image: String,
}

#[derive(Deserialize)]
struct IngressSpec {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    tls: Vec<Tls>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(default)]
    host: String,
    http: Option<Http>,
}

#[derive(Deserialize)]
struct Http {
    #[serde(default)]
    paths: Vec<Path>,
}

#[derive(Deserialize)]
struct Path {
    #[serde(default)]
    path: String,
}

#[derive(Deserialize)]
struct Tls {
    #[serde(default)]
    hosts: Vec<String>,
}

/// How something comes to its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has as many as it is told to.
    Scaled,
    /// It has one on every node, and cannot rest.
    Everywhere,
    /// It has some now and then: what it has under way counts for pods, and whether it may begin
    /// more as what is desired.
    Timed,
}

impl Kind {
    fn of(kind: &str) -> Self {
        match kind {
            "DaemonSet" => Self::Everywhere,
            "CronJob" => Self::Timed,
            _ => Self::Scaled,
        }
    }
}

/// Something of a release that has pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workload {
    /// Kind and name, as people write them.
    name: String,
    /// How many pods there should be.
    desired: u64,
    ready: u64,
    /// How many are as they should be now, and not as they were before.
    updated: u64,
    /// How many there are.
    there: u64,
    /// Whether Kubernetes has taken notice of what it was told last.
    noticed: bool,
    kind: Kind,
    archived: bool,
    images: Vec<String>,
    /// Which labels the pods have that are its own.
    selector: BTreeMap<String, String>,
}

/// What has pods, by release.
pub(super) type Workloads = BTreeMap<String, Vec<Workload>>;

/// Reads a list of Deployments, `StatefulSets`, `DaemonSets` and `CronJobs`.
pub(super) fn workloads(json: &[u8]) -> Result<Workloads, serde_json::Error> {
    let list: List<WorkloadSpec> = serde_json::from_slice(json)?;
    let mut found = Workloads::new();
    for object in list.items {
        if let Some(release) = object.metadata.annotations.get(RELEASE) {
            let release = release.clone();
            found.entry(release).or_default().push(workload(object));
        }
    }
    Ok(found)
}

fn workload(object: Object<WorkloadSpec>) -> Workload {
    let Object {
        kind: word,
        metadata,
        spec,
        status,
    } = object;
    let kind = Kind::of(&word);
    let [desired, ready, updated, there] = match kind {
        Kind::Everywhere => [
            status.desired_number_scheduled,
            status.number_ready,
            status.updated_number_scheduled,
            status.current_number_scheduled,
        ],
        Kind::Timed => {
            let jobs = u64::try_from(status.active.len()).unwrap_or(u64::MAX);
            [u64::from(!spec.suspend), 0, 0, jobs]
        }
        Kind::Scaled => [
            spec.replicas.unwrap_or(1),
            status.ready_replicas,
            status.updated_replicas,
            status.replicas,
        ],
    };
    let of_jobs = spec.job_template.map(|job| job.spec.template);
    let templates = spec.template.into_iter().chain(of_jobs);
    let containers = templates.flat_map(|template| template.spec.containers);
    Workload {
        name: format!("{} {}", word.to_ascii_lowercase(), metadata.name),
        desired,
        ready,
        updated,
        there,
        // A `CronJob` does not say.
        noticed: kind == Kind::Timed || status.observed_generation >= metadata.generation,
        kind,
        archived: metadata.annotations.contains_key(REPLICAS),
        images: containers.map(|container| container.image).collect(),
        selector: spec.selector.match_labels,
    }
}

impl Workload {
    /// Whether a pod with these labels is its own.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut wanted = self.selector.iter();
        !self.selector.is_empty() && wanted.all(|(name, value)| labels.get(name) == Some(value))
    }

    /// What is wrong with it, if it should be up.
    fn trouble(&self) -> Option<String> {
        let Self { desired, ready, .. } = self;
        if self.archived && *desired == 0 {
            return Some("is archived".to_owned());
        }
        if self.kind == Kind::Timed {
            return None;
        }
        if !self.noticed {
            return Some("was changed a moment ago".to_owned());
        }
        if ready < desired {
            return Some(format!("{ready} of {desired} ready"));
        }
        if self.updated < *desired || self.there > self.updated {
            let old = self.there.saturating_sub(self.updated);
            return Some(format!("{old} of {} still as before", self.there));
        }
        None
    }
}

/// Whether a release is up, with this tag where one is wanted.
pub(super) fn up(workloads: &[Workload], tag: Option<&str>) -> (Seen, String) {
    if workloads.is_empty() {
        let said = "nothing of it is there that could run".to_owned();
        return (Seen::Bad(Failure::Generic), said);
    }
    let mut said: Vec<String> = Vec::new();
    let mut troubled = false;
    for workload in workloads {
        let trouble = workload.trouble();
        troubled |= trouble.is_some();
        let good = || match workload.kind {
            Kind::Timed => "waits for its time".to_owned(),
            Kind::Scaled | Kind::Everywhere => {
                format!("{} of {} ready", workload.ready, workload.desired)
            }
        };
        let how = trouble.unwrap_or_else(good);
        said.push(format!("{}: {how}", workload.name));
    }
    let images: BTreeSet<&str> = workloads
        .iter()
        .flat_map(|one| one.images.iter().map(String::as_str))
        .collect();
    let other = tag.filter(|tag| !images.iter().any(|image| tag_of(image) == Some(tag)));
    let mut steady = workloads.iter().filter(|one| one.kind != Kind::Timed);
    let runs = steady.any(|one| one.ready > 0);
    let seen = match (runs, other, troubled) {
        (false, _, true) => Seen::Bad(Failure::Generic),
        (_, Some(tag), _) => {
            let images: Vec<&str> = images.into_iter().collect();
            said.push(format!("no image has the tag {tag}: {}", images.join(", ")));
            Seen::Bad(Failure::TagMismatch)
        }
        (true, None, true) => Seen::Bad(Failure::Partial),
        (_, None, false) => Seen::Good,
    };
    (seen, said.join("\n"))
}

/// Whether all of a release that can rest does so; the pods that are still there are for others to
/// count.
pub(super) fn down(workloads: &[Workload]) -> (Seen, String) {
    let mut said: Vec<String> = Vec::new();
    let mut seen = Seen::Good;
    for workload in workloads.iter().filter(|one| one.kind != Kind::Everywhere) {
        if workload.desired > 0 || workload.there > 0 || !workload.noticed {
            seen = Seen::Bad(Failure::Generic);
        }
        let Workload {
            name,
            desired,
            there,
            ..
        } = workload;
        said.push(format!("{name}: {there} there, {desired} wanted"));
    }
    if said.is_empty() {
        said.push("nothing of it is there that could run".to_owned());
    }
    (seen, said.join("\n"))
}

/// Those that must have no pods when they rest.
pub(super) fn resting(workloads: &[Workload]) -> impl Iterator<Item = &Workload> {
    workloads.iter().filter(|one| one.kind != Kind::Everywhere)
}

/// The tag of an image, where it has one.
fn tag_of(image: &str) -> Option<&str> {
    let named = image.split('@').next().unwrap_or(image);
    let last = named.rsplit('/').next().unwrap_or(named);
    last.split_once(':').map(|(_, tag)| tag)
}

/// Where a release is reached: by the hosts of its Ingresses.
pub(super) fn links(json: &[u8], release: &str) -> Result<Vec<Link>, serde_json::Error> {
    let list: List<IngressSpec> = serde_json::from_slice(json)?;
    let mut known = BTreeSet::new();
    let mut links = Vec::new();
    for ingress in list.items {
        if ingress
            .metadata
            .annotations
            .get(RELEASE)
            .map(String::as_str)
            != Some(release)
        {
            continue;
        }
        let safe: BTreeSet<_> = ingress.spec.tls.iter().flat_map(|tls| &tls.hosts).collect();
        for rule in &ingress.spec.rules {
            // What stands for many names leads nowhere.
            if rule.host.is_empty() || rule.host.contains('*') {
                continue;
            }
            let scheme = if safe.contains(&rule.host) {
                "https"
            } else {
                "http"
            };
            let url = format!("{scheme}://{}{}", rule.host, path_of(rule));
            if links.len() < LINKS_MAX && known.insert(url.clone()) {
                let name = ingress.metadata.name.clone();
                links.push(Link { name, url });
            }
        }
    }
    Ok(links)
}

/// The path that people begin with: the whole host where it can be had.
fn path_of(rule: &Rule) -> &str {
    let mut paths = rule.http.iter().flat_map(|http| &http.paths);
    let whole = paths
        .clone()
        .any(|path| matches!(path.path.as_str(), "" | "/"));
    let plain = |path: &&Path| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
        path.path.starts_with('/') && path.path.chars().all(fits)
    };
    let first = paths.find(plain).filter(|_| !whole);
    first.map_or("", |path| path.path.as_str())
}

#[cfg(test)]
mod tests;
