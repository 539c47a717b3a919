//! The scripts of projects, as those who deploy environments.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Deployer, Following, Judged, Looked, Of, Subject, Work};
use model::environment::config::Defaults;
use model::environment::schema::KnownKey;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Look, Seen, Status};
use model::id::ActionId;

use crate::asking::{Asking, Notified, bad};
use crate::bench::{Bench, Prepare, patience};
use crate::cache::{Cache, Question};
use crate::contract::{self, Script};
use crate::error::Error;
use crate::output::{self, Redactor};
use crate::process::{self, How, Keep};
use crate::runner::Prepared;
use crate::secrets::Opened;
use crate::surroundings::Surroundings;

/// How much is kept of what a look or a judge said.
const SAID: usize = 16 * 1024;

/// Deploys environments by the control scripts of their projects.
pub struct Scripts {
    bench: Bench,
    asking: Asking,
    defaults: Cache<Defaults>,
    keys: Cache<Vec<String>>,
}

impl Scripts {
    /// Keeps what is begun in a directory, which belongs to this server alone. Runners are started
    /// with the words of a command line, to which a directory is added.
    pub fn open(
        home: &Path,
        runner: Vec<OsString>,
        surroundings: Surroundings,
    ) -> Result<Self, Error> {
        let bench = Bench::open(home, runner)?;
        let passing = bench.passing().to_owned();
        Ok(Self {
            bench,
            asking: Asking {
                surroundings,
                passing,
            },
            defaults: Cache::default(),
            keys: Cache::default(),
        })
    }

    /// The same with another time that scripts have to end when they are asked to.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.bench.grace = grace;
        self
    }

    /// Runs what is to be run before everything else, where a project has such a script.
    pub async fn init(&self, settings: &Settings) -> Result<Notified, driver::Error> {
        let patience = settings.patience.action;
        let told = self.asking.tell(settings, Script::Init, &[], patience);
        Ok(told.await?)
    }

    /// Tells the script that wants to know what became of an environment, where there is one.
    pub async fn notify(
        &self,
        subject: &Subject,
        was: Status,
        became: Status,
    ) -> Result<Notified, driver::Error> {
        let words = contract::notification(subject, was, became);
        let patience = subject.settings.patience.check;
        let told = self
            .asking
            .tell(&subject.settings, Script::Notifications, &words, patience);
        Ok(told.await?)
    }
}

/// A script, and whose it is.
struct Scripted<'a> {
    of: &'a Scripts,
    script: Script,
}

impl Prepare for Scripted<'_> {
    async fn prepare(&self, cx: &Context, work: &Work) -> Result<Prepared, Acted> {
        let Scripts { bench, asking, .. } = self.of;
        let unbegun = |error: Error| Acted::Unbegun(error.into());
        let subject = &work.subject;
        let program = process::find(&subject.settings, self.script).map_err(unbegun)?;
        let opened = Opened::open(cx, subject).await.map_err(unbegun)?;
        let links = if matches!(work.deed, Deed::Create | Deed::Update | Deed::Restore) {
            let told = asking.links(subject, &opened).await;
            Some(told.map_err(|error| error.to_string()))
        } else {
            None
        };
        Ok(Prepared {
            program,
            arguments: contract::lifecycle(subject, &opened),
            variables: asking.surroundings.of(&subject.settings, &opened),
            opened,
            patience: patience(cx, work)?,
            grace: bench.grace,
            links,
        })
    }
}

impl Deployer for Scripts {
    fn place(&self) -> &str {
        &self.bench.place
    }

    async fn init(&self, _: &Context, settings: &Settings) -> Result<(), driver::Error> {
        Self::init(self, settings).await.map(|_| ())
    }

    async fn act(&self, cx: &Context, work: &Work, following: &Following<'_>) -> Acted {
        let Some(script) = Script::of_deed(work.deed) else {
            return Acted::Exited { status: 0 };
        };
        let scripted = Scripted { of: self, script };
        self.bench.act(cx, work, following, &scripted).await
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
        let script = Script::of_look(look);
        let opened = Opened::open(cx, subject).await?;
        let ended = self
            .asking
            .about(subject, script, &opened, Keep::Last(SAID));
        let ended = ended.await?;
        let redactor = Redactor::new(opened.texts());
        let said = ended.said(&redactor);
        let (exit, said) = match ended.how {
            How::Exited(status) => (Some(status), said),
            How::Signal(_) | How::TimedOut => {
                let patience = subject.settings.patience.check;
                let why = bad(script, &ended, patience, &redactor);
                (
                    None,
                    format!("{said}\nslipway: {why}").trim_start().to_owned(),
                )
            }
        };
        let seen = Seen::from_exit(exit);
        Ok(Looked { seen, said })
    }

    async fn defaults(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Defaults, driver::Error> {
        let scripts = [Script::DeploymentConfig, Script::ApplicationConfig];
        let (question, script, words) = asked(settings, of, scripts);
        let (asking, settings) = (self.asking.clone(), settings.clone());
        let ask = async move {
            let told = asking.told(&settings, script, &words, output::defaults);
            told.await
        };
        Ok(self.defaults.get(cx, question, ask).await?)
    }

    async fn keys(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Vec<KnownKey>, driver::Error> {
        let scripts = [Script::DeploymentKeys, Script::ApplicationKeys];
        let (question, script, words) = asked(settings, of, scripts);
        let (asking, settings) = (self.asking.clone(), settings.clone());
        let ask = async move { asking.told(&settings, script, &words, output::keys).await };
        let names = self.keys.get(cx, question, ask).await?;
        Ok(names.into_iter().map(KnownKey::named).collect())
    }

    async fn lacking(&self, settings: &Settings) -> Vec<driver::Error> {
        process::lacking(settings)
            .into_iter()
            .map(Into::into)
            .collect()
    }

    async fn judge(&self, cx: &Context, subject: &Subject) -> Result<Judged, driver::Error> {
        let script = Script::ConfigCheck;
        let opened = Opened::open(cx, subject).await?;
        let ended = self
            .asking
            .about(subject, script, &opened, Keep::First(SAID));
        let ended = ended.await?;
        let redactor = Redactor::new(opened.texts());
        match ended.how {
            How::Exited(0) => Ok(Judged::Good),
            How::Exited(_) => {
                // What is meant for people is on standard output; some scripts say it elsewhere.
                let said = match ended.out.text(&redactor) {
                    said if said.is_empty() => ended.err.text(&redactor),
                    said => said,
                };
                Ok(Judged::Bad(said))
            }
            How::Signal(_) | How::TimedOut => {
                let patience = subject.settings.patience.check;
                Err(bad(script, &ended, patience, &redactor).into())
            }
        }
    }
}

/// Which of two scripts is asked, what it is told, and what its answer depends on.
fn asked(
    settings: &Settings,
    of: Of<'_>,
    scripts: [Script; 2],
) -> ((Question, Option<Question>), Script, Vec<String>) {
    let [of_deployment, of_application] = scripts;
    let (script, words) = match of {
        Of::Deployment => (of_deployment, contract::service(settings)),
        Of::Application(deployment) => {
            let words = contract::application(settings, deployment);
            (of_application, words)
        }
    };
    let cluster = settings
        .place
        .cluster
        .as_ref()
        .map_or("", |name| name.as_str());
    let first = [script.name(), settings.scripts.as_str(), cluster];
    let all = first.into_iter().chain(words.iter().map(String::as_str));
    let question = Question::new(all);
    let file = process::state(settings, script);
    let file = file.map(|state| Question::new([state.as_str()]));
    ((question, file), script, words)
}
