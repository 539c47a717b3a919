//! Asks Kubernetes about releases, and runs the programs that do so.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::Context;
use driver::deploy::Subject;
use model::environment::link::Link;
use model::environment::settings::{Chart, Kubeconfig, Settings};
use model::secret::Secret;

use super::error::{Error, Kind};
use super::state::{self, Workload, Workloads};
use super::turns::Turns;
use crate::asking;
use crate::output::Redactor;
use crate::process::{Ended, How, Keep};
use crate::secrets::{KUBECONFIG, pair, secrets_of_way, unopened, way};
use crate::surroundings::Surroundings;

/// The most bytes of a list of objects.
const LIST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of a complaint is told.
const COMPLAINT_BYTES_MAX: usize = 500;

/// Objects that Helm looks after; an annotation says of which release each is.
const OURS: &str = "app.kubernetes.io/managed-by=Helm";

/// Variables of a program, by name.
pub(super) type Variables = Vec<(OsString, OsString)>;

/// The way to a cluster.
pub(super) enum Way {
    /// A file that somebody else looks after.
    File(PathBuf),
    /// What is in a file that is written for each who needs it, and whose it is.
    Sealed(Secret, String),
}

impl Way {
    /// Finds it: what the project names, else what is known of the cluster it is placed on.
    pub(super) async fn find(
        cx: &Context,
        subject: &Subject,
        chart: &Chart,
    ) -> Result<Self, driver::Error> {
        let settings = &subject.settings;
        let none = |what: String| Err(Error::new(Kind::NoCluster, what).into());
        match (&chart.kubeconfig, &settings.place.cluster) {
            (Some(Kubeconfig::File(path)), _) => {
                let file = PathBuf::from(path);
                if file.is_absolute() && file.is_file() {
                    return Ok(Self::File(file));
                }
                none(format!(
                    "the kubeconfig of the project's settings is no file: {path}"
                ))
            }
            (Some(Kubeconfig::Secret(secret)), _) => {
                let opened = cx.secret(secret).await.map_err(unopened)?;
                let name = format!("{} {secret:?}", subject.project);
                Ok(Self::Sealed(opened, name))
            }
            (None, Some(cluster)) => {
                let opened = way(cx, cluster).await?;
                let name = format!("{} cluster {cluster}", subject.project);
                Ok(Self::Sealed(opened, name))
            }
            (None, None) => none("the project names neither a kubeconfig nor a cluster".to_owned()),
        }
    }

    /// What is secret of it, as text.
    fn texts(&self) -> impl Iterator<Item = String> {
        let content = match self {
            Self::File(_) => None,
            Self::Sealed(content, _) => content.expose_text(),
        };
        secrets_of_way(content.unwrap_or_default())
    }

    /// What tells it from others.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Sealed(_, name) => format!("sealed {name}"),
        }
    }
}

/// All variables of Helm and kubectl: nothing that the server happens to have decides what they do.
pub(super) fn variables(surroundings: &Surroundings, home: &Path) -> Variables {
    let all = surroundings.of_program().into_iter();
    let decides = |name: &OsStr| {
        name.as_bytes().starts_with(b"HELM_") || name == KUBECONFIG || name == "KUBECACHEDIR"
    };
    let mut all: Variables = all.filter(|(name, _)| !decides(name)).collect();
    all.extend([
        pair("HELM_CACHE_HOME", home.join("cache")),
        pair("HELM_CONFIG_HOME", home.join("config")),
        pair("HELM_DATA_HOME", home.join("data")),
        pair("HELM_NO_PLUGINS", "1"),
        pair("KUBECACHEDIR", home.join("kube")),
    ]);
    all
}

/// The same for programs that are to find a cluster.
pub(super) fn leading(mut variables: Variables, kubeconfig: &Path) -> Variables {
    variables.push(pair(KUBECONFIG, kubeconfig));
    variables
}

/// Runs a program that looks or tells, to its end.
pub(super) async fn ran(
    program: &Path,
    arguments: &[String],
    variables: &[(OsString, OsString)],
    settings: &Settings,
    keep: Keep,
) -> Result<Ended, Error> {
    let ended = asking::run(settings, program, arguments, variables, keep).await?;
    if ended.how == How::TimedOut {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let seconds = settings.patience.check.as_secs_f64();
        let what = format!("{name} took longer than {seconds} s, and was ended");
        return Err(Error::new(Kind::Hung, what));
    }
    Ok(ended)
}

/// The end of what a program complained about, without what is secret.
pub(super) fn complaint(ended: &Ended, redactor: &Redactor) -> String {
    let said = ended.err.clean(redactor);
    let said = said.trim();
    let begin = said.len().saturating_sub(COMPLAINT_BYTES_MAX);
    let said = &said[said.ceil_char_boundary(begin)..];
    match (said.is_empty(), ended.how) {
        (false, _) => said.to_owned(),
        (true, How::Exited(status)) => format!("it ended with status {status}"),
        (true, How::Signal(signal)) => format!("it was ended by signal {signal}"),
        (true, How::TimedOut) => "it took too long".to_owned(),
    }
}

/// What is asked of clusters, by many at once.
#[derive(Default)]
pub(super) struct Questions {
    workloads: Turns<Result<Arc<Workloads>, Error>>,
    pods: Turns<Result<Arc<Vec<Labels>>, Error>>,
}

/// The labels of a pod.
type Labels = BTreeMap<String, String>;

/// One who asks a cluster.
pub(super) struct Asker<'a> {
    pub(super) questions: &'a Questions,
    pub(super) kubectl: PathBuf,
    pub(super) variables: Variables,
    pub(super) settings: &'a Settings,
    /// Where what is sealed is written for as long as somebody asks.
    pub(super) passing: PathBuf,
    pub(super) way: Way,
}

impl Asker<'_> {
    /// What has pods in a release.
    pub(super) async fn workloads(&self, release: &str) -> Result<Vec<Workload>, Error> {
        let kinds = "deployments.apps,statefulsets.apps,daemonsets.apps,cronjobs.batch";
        let ask = async {
            let words = ["get", kinds, "--selector", OURS, "--output", "json"];
            let told = self.ask(&words).await?;
            let read = state::workloads(&told).map_err(|cause| unreadable(&cause));
            Ok(Arc::new(read?))
        };
        let all = self.questions.workloads.get(&self.place(), ask).await?;
        Ok(all.get(release).cloned().unwrap_or_default())
    }

    /// How many pods there are of those that should rest, also such as are about to end.
    pub(super) async fn pods(&self, resting: &[Workload]) -> Result<usize, Error> {
        let ask = async {
            let labels = "jsonpath={range .items[*]}{.metadata.labels}{\"\\n\"}{end}";
            let told = self.ask(&["get", "pods", "--output", labels]).await?;
            let lines = told.split(|byte| *byte == b'\n');
            let lines = lines.filter(|line| !line.is_empty());
            let read: Result<Vec<Labels>, _> = lines.map(serde_json::from_slice).collect();
            Ok(Arc::new(read.map_err(|cause| unreadable(&cause))?))
        };
        let all = self.questions.pods.get(&self.place(), ask).await?;
        let of_one = |labels: &&Labels| state::resting(resting).any(|one| one.selects(labels));
        Ok(all.iter().filter(of_one).count())
    }

    /// Where a release is reached.
    pub(super) async fn links(&self, release: &str) -> Result<Vec<Link>, Error> {
        let kind = "ingresses.networking.k8s.io";
        let words = ["get", kind, "--selector", OURS, "--output", "json"];
        let told = self.ask(&words).await?;
        state::links(&told, release).map_err(|cause| unreadable(&cause))
    }

    /// Which cluster and namespace it is.
    fn place(&self) -> String {
        let namespace = &self.settings.place.namespace;
        format!("{}\n{namespace}", self.way.name())
    }

    /// What kubectl prints.
    async fn ask(&self, words: &[&str]) -> Result<Vec<u8>, Error> {
        let namespace = self.settings.place.namespace.as_str();
        let words = [words, &["--namespace", namespace]].concat();
        let all: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let (variables, _written) = self.leading()?;
        let keep = Keep::First(LIST_BYTES_MAX);
        let ended = ran(&self.kubectl, &all, &variables, self.settings, keep).await?;
        if ended.how != How::Exited(0) || ended.out.dropped > 0 {
            let redactor = Redactor::new(self.way.texts());
            let what = format!(
                "could not ask the cluster: {}",
                complaint(&ended, &redactor)
            );
            return Err(Error::new(Kind::NoAnswer, what));
        }
        Ok(ended.out.bytes)
    }

    /// The variables, and what must be there as long as they are used.
    fn leading(&self) -> Result<(Variables, Option<tempfile::NamedTempFile>), Error> {
        let variables = self.variables.clone();
        match &self.way {
            Way::File(path) => Ok((leading(variables, path), None)),
            Way::Sealed(content, _) => {
                // Only its user can read such a file.
                let written = tempfile::NamedTempFile::new_in(&self.passing).and_then(|file| {
                    std::fs::write(file.path(), content.expose())?;
                    Ok(file)
                });
                let written = written.map_err(|cause| {
                    let what = format!("could not hand over a kubeconfig: {cause}");
                    Error::new(Kind::OurSide, what)
                })?;
                Ok((leading(variables, written.path()), Some(written)))
            }
        }
    }
}

fn unreadable(cause: &serde_json::Error) -> Error {
    let what = format!("could not read what the cluster answered: {cause}");
    Error::new(Kind::NoAnswer, what)
}
