//! Releases of charts, as those who deploy environments.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Deployer, Following, Judged, Looked, Of, Subject, Work};
use model::environment::config::{Defaults, Key, Level};
use model::environment::link::Link;
use model::environment::schema::{KnownKey, faults};
use model::environment::settings::{self, Deploy, Settings};
use model::environment::status::{Deed, Look, Seen};
use model::fault::{Code, Fault};
use model::id::ActionId;
use model::secret::Secret;

use super::acting::{Acting, verb};
use super::chart::Chart;
use super::cluster::{self, Asker, Questions, Variables, Way, complaint, ran};
use super::error::{Error, Kind};
use super::given::{Handed, given, tag};
use super::programs::{Finder, HelmProgram, Programs};
use super::state;
use super::values::{Facts, Made, flatten};
use crate::bench::Bench;
use crate::cache::{Cache, Question};
use crate::output::{ROWS_MAX, Redactor};
use crate::process::{How, Keep};
use crate::secrets::Opened;
use crate::surroundings::Surroundings;

/// What runs under the runner.
const ACT: &str = include_str!("act.sh");

/// The file with the values of a release, among what is secret.
pub(super) const VALUES: &str = "values.json";

/// How much is kept of what a judge said.
const SAID: usize = 16 * 1024;

/// Deploys environments as releases of the charts of their projects.
pub struct Helm {
    pub(super) bench: Bench,
    pub(super) surroundings: Surroundings,
    pub(super) finder: Finder,
    /// What Helm and kubectl remember for themselves.
    pub(super) own: PathBuf,
    facts: Cache<Arc<Facts>, Error>,
    questions: Questions,
}

impl Helm {
    /// Keeps what is begun in a directory, which belongs to this server alone; it may be that of
    /// [`crate::Scripts`]. Runners are started with the words of a command line, to which a
    /// directory is added.
    pub fn open(
        home: &Path,
        runner: Vec<OsString>,
        surroundings: Surroundings,
        programs: Programs,
    ) -> Result<Self, driver::Error> {
        let bench = Bench::open(home, runner)?;
        let own = home.join("helm");
        set_up(&own).map_err(|cause| {
            let what = format!(
                "could not keep Helm's own files in {}: {cause}",
                own.display()
            );
            Error::new(Kind::OurSide, what)
        })?;
        Ok(Self {
            bench,
            finder: Finder::new(programs, surroundings.path().to_owned()),
            surroundings,
            own,
            facts: Cache::default(),
            questions: Questions::default(),
        })
    }

    /// The same with another time that programs have to end when they are asked to.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.bench.grace = grace;
        self
    }

    /// What a look shows, however long that takes.
    async fn looked(
        &self,
        cx: &Context,
        subject: &Subject,
        look: Look,
    ) -> Result<Looked, driver::Error> {
        let asker = self.asker(cx, subject).await?;
        let workloads = asker.workloads(subject.name.as_str()).await?;
        let (mut seen, mut said) = match look {
            Look::Up => state::up(&workloads, tag(subject)),
            Look::Down => state::down(&workloads),
        };
        if look == Look::Down && seen == Seen::Good {
            let pods = asker.pods(&workloads).await?;
            if pods > 0 {
                seen = Seen::from_exit(Some(1));
                said.push_str(&format!("\n{pods} pods are about to end"));
            }
        }
        Ok(Looked { seen, said })
    }

    /// Where an environment is reached now.
    pub async fn links(&self, cx: &Context, subject: &Subject) -> Result<Vec<Link>, driver::Error> {
        let asker = self.asker(cx, subject).await?;
        Ok(asker.links(subject.name.as_str()).await?)
    }

    pub(super) fn variables(&self) -> Variables {
        cluster::variables(&self.surroundings, &self.own)
    }

    async fn asker<'a>(
        &'a self,
        cx: &Context,
        subject: &'a Subject,
    ) -> Result<Asker<'a>, driver::Error> {
        let settings = &subject.settings;
        let chart = chart_of(settings)?;
        Ok(Asker {
            questions: &self.questions,
            kubectl: self.finder.kubectl()?,
            variables: self.variables(),
            settings,
            passing: self.bench.passing().to_owned(),
            way: Way::find(cx, subject, chart).await?,
        })
    }

    /// What the chart of a project says of its values, with who read it.
    pub(super) async fn facts(
        &self,
        cx: &Context,
        settings: &Settings,
    ) -> Result<(Arc<Facts>, Chart, HelmProgram), Error> {
        let chart = Chart::find(&chart_of(settings)?.chart)?;
        let variables = self.variables();
        let helm = self.finder.helm(&variables).await?;
        let program = helm.path.to_string_lossy();
        let question = Question::new([&program, chart.path.as_str(), &chart.fingerprint]);
        let (of, by, settings) = (chart.clone(), helm.path.clone(), settings.clone());
        let ask = async move { Ok(Arc::new(of.facts(&by, &settings, &variables).await?)) };
        let facts = self.facts.get(cx, (question, None), ask).await?;
        Ok((facts, chart, helm))
    }
}

/// Makes the directories of Helm and kubectl, and writes what runs under the runner. One that runs
/// now keeps the file that it has.
fn set_up(own: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(own)?;
    let file = own.join("act.sh");
    // Whoever starts on a full disk has it already.
    if std::fs::read(&file).is_ok_and(|there| there == ACT.as_bytes()) {
        return Ok(());
    }
    let mut draft = tempfile::NamedTempFile::new_in(own)?;
    draft.write_all(ACT.as_bytes())?;
    draft.persist(file)?;
    Ok(())
}

/// What the project says of its chart.
pub(super) fn chart_of(settings: &Settings) -> Result<&settings::Chart, Error> {
    match &settings.deploy {
        Deploy::Helm(chart) => Ok(chart),
        Deploy::Scripts => {
            let what = "the project has control scripts and no chart";
            Err(Error::new(Kind::NoChart, what))
        }
    }
}

/// Why nobody finds Kubernetes, as far as that can be seen from here.
fn no_way(settings: &Settings, chart: &settings::Chart) -> Option<Error> {
    let what = match &chart.kubeconfig {
        Some(settings::Kubeconfig::File(file)) if !Path::new(file).is_file() => {
            format!("there is no kubeconfig {file}")
        }
        None if settings.place.cluster.is_none() => {
            "neither a kubeconfig nor a cluster is named".to_owned()
        }
        Some(_) | None => return None,
    };
    Some(Error::new(Kind::NoCluster, what))
}

/// A path as an argument.
pub(super) fn text(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let what = format!("the name of {} is not UTF-8", path.display());
        Error::new(Kind::OurSide, what)
    })
}

/// All that is wrong with settings by what a chart says of them, before Helm is asked.
fn wrong(made: &Made, facts: &Facts, given: &Handed) -> Vec<Fault> {
    let contradictions = made.contradictions.iter().map(|why| {
        let owner = given.owners.get(why.key());
        let level = owner.map_or(Level::Application, |owner| owner.level);
        Fault {
            path: format!("{}.{}", level.as_str(), why.key()),
            code: Code::Type,
            message: why.to_string(),
        }
    });
    let misfits = faults(&facts.misfits(&made.values), &given.owners);
    contradictions.chain(misfits).collect()
}

impl Deployer for Helm {
    fn place(&self) -> &str {
        &self.bench.place
    }

    async fn init(&self, _: &Context, _: &Settings) -> Result<(), driver::Error> {
        Ok(())
    }

    async fn act(&self, cx: &Context, work: &Work, following: &Following<'_>) -> Acted {
        let Some(verb) = verb(work.deed) else {
            return Acted::Exited { status: 0 };
        };
        let acting = Acting { of: self, verb };
        let acted = self.bench.act(cx, work, following, &acting).await;
        let came = matches!(work.deed, Deed::Create | Deed::Update | Deed::Restore);
        if came && acted == (Acted::Exited { status: 0 }) {
            match self.links(cx, &work.subject).await {
                Ok(links) => following.output.links(&links),
                Err(error) => {
                    tracing::warn!(environment = %work.subject.name, %error, "could not learn links");
                }
            }
        }
        acted
    }

    async fn left(&self) -> Vec<ActionId> {
        self.bench.left()
    }

    async fn forget(&self, action: ActionId) {
        self.bench.forget(action).await;
    }

    async fn look(
        &self,
        cx: &Context,
        subject: &Subject,
        look: Look,
    ) -> Result<Looked, driver::Error> {
        // Those of one namespace wait for each other's questions, too.
        let patience = subject.settings.patience.check;
        let looked = tokio::time::timeout(patience, self.looked(cx, subject, look));
        looked.await.unwrap_or_else(|_| {
            let seconds = patience.as_secs_f64();
            let what = format!("the cluster did not answer within {seconds} s");
            Err(Error::new(Kind::Hung, what).into())
        })
    }

    async fn defaults(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Defaults, driver::Error> {
        let (facts, ..) = self.facts(cx, settings).await?;
        Ok(match of {
            // All that the chart has is what the application is given.
            Of::Deployment => Defaults::default(),
            Of::Application(_) => Defaults::new(flatten(&facts.defaults)),
        })
    }

    async fn keys(
        &self,
        cx: &Context,
        settings: &Settings,
        _: Of<'_>,
    ) -> Result<Vec<KnownKey>, driver::Error> {
        let (facts, ..) = self.facts(cx, settings).await?;
        let mut keys = facts.schema.known(&facts.texts(), ROWS_MAX);
        keys.retain(|known| known.key.parse::<Key>().is_ok());
        Ok(keys)
    }

    async fn lacking(&self, settings: &Settings) -> Vec<driver::Error> {
        let chart = chart_of(settings).and_then(|chart| Chart::find(&chart.chart).map(|_| chart));
        let mut lacking: Vec<Error> = Vec::new();
        match chart {
            Err(error) => lacking.push(error),
            Ok(chart) => lacking.extend(no_way(settings, chart)),
        }
        lacking.extend(self.finder.helm(&self.variables()).await.err());
        lacking.extend(self.finder.kubectl().err());
        lacking.into_iter().map(Into::into).collect()
    }

    async fn judge(&self, cx: &Context, subject: &Subject) -> Result<Judged, driver::Error> {
        let settings = &subject.settings;
        let (facts, chart, helm) = self.facts(cx, settings).await?;
        let opened = Opened::texts_of(cx, subject, true).await?;
        let given = given(subject, chart_of(settings)?, &opened, &facts);
        let made = facts.made(&given.texts);
        let wrong = wrong(&made, &facts, &given);
        if !wrong.is_empty() {
            return Ok(Judged::Wrong(wrong));
        }
        let values = made.values;
        let redactor = Redactor::new(opened.texts());
        let opened = opened.with_file(VALUES, Secret::from_text(values.to_string()));
        let passed = tempfile::tempdir_in(self.bench.passing()).and_then(|above| {
            let directory = above.path().join("secrets");
            opened.write(&directory)?;
            Ok((directory.join(VALUES), above))
        });
        let (file, _above) = passed.map_err(|cause| {
            let what = format!("could not hand over values: {cause}");
            Error::new(Kind::OurSide, what)
        })?;
        let (name, namespace) = (subject.name.as_str(), settings.place.namespace.as_str());
        let file = text(&file)?;
        let words = ["template", name, &chart.path, "--namespace", namespace];
        let words = words.into_iter().chain(["--values", &file]);
        let words: Vec<String> = words.map(str::to_owned).collect();
        let variables = self.variables();
        let keep = Keep::First(SAID);
        let ended = ran(&helm.path, &words, &variables, settings, keep).await?;
        match ended.how {
            How::Exited(0) => Ok(Judged::Good),
            How::Exited(_) => {
                let said = ended.err.text(&redactor);
                let said = said.strip_prefix("Error: ").unwrap_or(&said);
                Ok(Judged::Bad(said.to_owned()))
            }
            How::Signal(_) | How::TimedOut => {
                let what = format!("Helm did not judge: {}", complaint(&ended, &redactor));
                Err(Error::new(Kind::Hung, what).into())
            }
        }
    }
}
