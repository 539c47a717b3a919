//! A chart, a cluster, and somebody who deploys the one to the other.

use crate::testing::{Known, context, subject};
use driver::Context;
use driver::deploy::{Acted, Deployer as _, Following, Looked, Of, Output, Stream, Subject, Work};
use lab::control_plane::ControlPlane;
use model::environment::config::{Edit, LevelEdits, effective};
use model::environment::link::Link;
use model::environment::settings::{Chart, Deploy, Kubeconfig};
use model::environment::status::{Deed, Look};
use model::id::{ActionId, Origin};
use scripts::Surroundings;
use scripts::helm::{Helm, Programs};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The runner that is built with the tests.
const RUNNER: &str = env!("CARGO_BIN_EXE_run-script");

/// No test waits for longer; the machine may have much else to do.
const PATIENCE: Duration = Duration::from_mins(5);

/// Who makes pods of what a chart has, and takes them away.
const CONTROLLERS: [&str; 5] = [
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
];

/// The Helm of a version; nothing, and a reason, where there is none.
pub(crate) fn helm_or_skip(test: &str, version: &str) -> Option<PathBuf> {
    let found = lab::helm::program(version);
    if found.is_none() {
        lab::skip(test, &lab::helm::missing());
    }
    found
}

/// The control plane of this process; nothing, and a reason, where there is none.
fn plane_or_skip(test: &str) -> Option<&'static ControlPlane> {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    let (Some(programs), Some(_)) = (lab::control_plane::programs(), lab::helm::kubectl()) else {
        lab::skip(test, &lab::kubernetes::missing());
        return None;
    };
    let start = || ControlPlane::start(&programs, &CONTROLLERS).unwrap();
    Some(SHARED.get_or_init(start))
}

/// The chart of the examples.
pub(crate) fn example() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../examples/environments/chart")
        .canonicalize()
        .unwrap()
}

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) helm: Helm,
    pub(crate) programs: Programs,
    pub(crate) subject: Subject,
    pub(crate) edits: LevelEdits,
}

impl World {
    /// One whose cluster is nowhere.
    pub(crate) fn alone(helm: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut subject = subject();
        subject.settings.place.base_domain = String::from("shop.example");
        subject.settings.patience.check = Duration::from_mins(2);
        subject.settings.deploy = Deploy::Helm(Chart {
            chart: example().display().to_string(),
            kubeconfig: None,
            host: Some("ingress.host".parse().unwrap()),
        });
        let programs = Programs {
            helm: Some(helm.to_owned()),
            kubectl: lab::helm::kubectl(),
        };
        Self {
            helm: open(home.path(), programs.clone()),
            home,
            programs,
            subject,
            edits: LevelEdits::new(),
        }
    }

    /// One with a namespace of the cluster to itself.
    pub(crate) fn placed(test: &str, version: &str, namespace: &str) -> Option<Self> {
        let helm = helm_or_skip(test, version)?;
        let plane = plane_or_skip(test)?;
        let mut world = Self::alone(&helm);
        let file = world.home.path().join("kubeconfig");
        std::fs::write(&file, plane.kubeconfig().unwrap()).unwrap();
        world.chart().kubeconfig = Some(Kubeconfig::File(file.display().to_string()));
        world.subject.settings.place.namespace = namespace.parse().unwrap();
        world.wait_for_api();
        Some(world)
    }

    fn wait_for_api(&self) {
        let until = std::time::Instant::now() + PATIENCE;
        while !self
            .try_kubectl(&["get", "--raw", "/readyz"])
            .status
            .success()
        {
            assert!(
                std::time::Instant::now() < until,
                "the API server is not ready"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// From now on it is somebody who may do less.
    pub(crate) fn become_user(&self, user: &str) {
        let plane = plane_or_skip(user).unwrap();
        let text = plane.kubeconfig_of(user, &[]).unwrap();
        std::fs::write(self.kubeconfig(), text).unwrap();
    }

    /// The way to its cluster.
    pub(crate) fn kubeconfig(&self) -> String {
        let Deploy::Helm(chart) = &self.subject.settings.deploy else {
            panic!("it has no chart");
        };
        let Some(Kubeconfig::File(kubeconfig)) = &chart.kubeconfig else {
            panic!("it has no kubeconfig");
        };
        kubeconfig.clone()
    }

    /// Another server at the same place, as after a restart.
    pub(crate) fn again(&self) -> Helm {
        open(self.home.path(), self.programs.clone())
    }

    /// Has a small program stand before Helm; `$HELM` is the real one, `$HERE` a directory for traces.
    pub(crate) fn before_helm(&mut self, text: &str) {
        let real = self.programs.helm.clone().unwrap();
        let file = self.home.path().join("before-helm");
        let (real, here) = (real.display(), self.home.path().display());
        std::fs::write(
            &file,
            format!("#!/bin/sh\nHELM='{real}' HERE='{here}'\n{text}\n"),
        )
        .unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        self.programs.helm = Some(file);
        self.helm = self.again();
    }

    /// A copy of the example that a test may change.
    pub(crate) fn own_chart(&mut self) -> PathBuf {
        let copy = self.home.path().join("chart");
        let copied = Command::new("cp")
            .arg("-r")
            .arg(example())
            .arg(&copy)
            .status();
        assert!(copied.unwrap().success());
        self.chart().chart = copy.display().to_string();
        copy
    }

    pub(crate) fn chart(&mut self) -> &mut Chart {
        match &mut self.subject.settings.deploy {
            Deploy::Helm(chart) => chart,
            Deploy::Scripts => panic!("it has no chart"),
        }
    }

    pub(crate) fn set(&mut self, key: &str, text: &str) {
        let edit = Edit::Set(text.parse().unwrap());
        self.edits.insert(key.parse().unwrap(), edit);
    }

    /// The environment with its settings, as whoever asks for an action puts it together.
    pub(crate) async fn configured(&self, cx: &Context) -> Subject {
        let mut subject = self.subject.clone();
        let of = Of::Application(&[]);
        let defaults = self.helm.defaults(cx, &subject.settings, of).await.unwrap();
        subject.application = effective(&defaults, &self.edits);
        subject
    }

    pub(crate) async fn work(&self, deed: Deed, cx: &Context) -> Work {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let ordinal = COUNT.fetch_add(1, Ordering::Relaxed);
        let origin = Origin {
            parent: "orange-button",
            name: deed.as_str(),
            ordinal,
            incarnation: 0,
        };
        Work {
            action: ActionId::derive(origin),
            deed,
            subject: self.configured(cx).await,
            begun_at: None,
            deadline: cx.now().plus(PATIENCE),
        }
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.home.path().join("runs")
    }

    /// Does it, and answers what became of it and what was printed.
    pub(crate) async fn act(&self, cx: &Context, deed: Deed) -> (Acted, Heard) {
        let work = self.work(deed, cx).await;
        let heard = Heard::default();
        let acted = within(self.helm.act(cx, &work, &following(&heard))).await;
        (acted, heard)
    }

    /// Does it well, and answers where the environment is reached.
    pub(crate) async fn done(&self, cx: &Context, deed: Deed) -> Vec<String> {
        let (acted, heard) = self.act(cx, deed).await;
        assert_eq!(
            acted,
            Acted::Exited { status: 0 },
            "{deed}\n{}",
            heard.all()
        );
        heard.links()
    }

    pub(crate) async fn look(&self, look: Look) -> Looked {
        let cx = nobody_secret();
        let subject = self.configured(&cx).await;
        within(self.helm.look(&cx, &subject, look)).await.unwrap()
    }

    /// Looks until something is seen.
    pub(crate) async fn until(&self, look: Look, is_it: impl Fn(&Looked) -> bool) -> Looked {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let looked = self.look(look).await;
            if is_it(&looked) {
                return looked;
            }
            assert!(tokio::time::Instant::now() < until, "last seen: {looked:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn try_kubectl(&self, words: &[&str]) -> std::process::Output {
        Command::new(self.programs.kubectl.as_ref().unwrap())
            .args([
                "--namespace",
                self.subject.settings.place.namespace.as_str(),
            ])
            .args(words)
            .env("KUBECONFIG", self.kubeconfig())
            .env("KUBECACHEDIR", self.home.path().join("kube"))
            .output()
            .unwrap()
    }

    /// What kubectl prints.
    pub(crate) fn kubectl(&self, words: &[&str]) -> String {
        let output = self.try_kubectl(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words = [words, &["--output", "json"]].concat();
        serde_json::from_str(&self.kubectl(&words)).unwrap()
    }

    /// The names of objects of a kind.
    pub(crate) fn names(&self, kind: &str) -> Vec<String> {
        let listed = self.kubectl(&["get", kind, "--output", "name"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Plays the kubelet: so many pods that are not ready become so.
    pub(crate) fn ready(&self, most: usize) {
        let pods = self.json(&["get", "pods"]);
        let is_new = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
            !ready && pod["metadata"]["deletionTimestamp"].is_null()
        };
        for pod in pods["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(is_new)
            .take(most)
        {
            let status =
                r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
            let name = pod["metadata"]["name"].as_str().unwrap();
            let words = [
                "patch",
                "pod",
                name,
                "--subresource",
                "status",
                "--patch",
                status,
            ];
            // It may have gone meanwhile.
            drop(self.try_kubectl(&words));
        }
    }

    /// Plays the kubelet until everything is up.
    pub(crate) async fn all_ready(&self) -> Looked {
        self.until(Look::Up, |looked| {
            self.ready(usize::MAX);
            looked.seen == model::environment::status::Seen::Good
        })
        .await
    }
}

pub(crate) fn open(home: &Path, programs: Programs) -> Helm {
    let surroundings = Surroundings::new(std::env::vars_os());
    let runner = vec![RUNNER.into()];
    let helm = Helm::open(&home.join("runs"), runner, surroundings, programs);
    helm.unwrap().with_grace(Duration::from_secs(2))
}

pub(crate) fn nobody_secret() -> Context {
    context(Known(Vec::new()))
}

/// What was heard.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<String>>, Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    /// Where the environment is reached.
    fn links(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl Output for Heard {
    fn known(&self, _: Stream) -> u64 {
        0
    }

    fn line(&self, _: Stream, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn links(&self, links: &[Link]) {
        *self.1.lock().unwrap() = links.iter().map(|link| link.url.clone()).collect();
    }
}

pub(crate) fn following(output: &dyn Output) -> Following<'_> {
    let may_begin = CancellationToken::new();
    may_begin.cancel();
    Following {
        output,
        end: CancellationToken::new(),
        may_begin,
    }
}

/// The answer, unless it takes longer than any test should.
pub(crate) async fn within<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.unwrap()
}

/// All files below a directory that have a text in them.
pub(crate) fn with_text(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(with_text(&path, text));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let has = bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            found.extend(has.then_some(path));
        }
    }
    found
}
