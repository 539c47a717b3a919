//! The scripts of projects, as those who deploy environments.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Because, Deployer, Following, Judged, Looked, Of, Subject, Work};
use model::environment::config::Defaults;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Look, Seen, Status};
use model::id::ActionId;
use tokio::time::sleep;

use crate::asking::{Asking, bad};
use crate::cache::{Cache, Question};
use crate::contract::{self, Script};
use crate::error::{Error, Kind};
use crate::output::{self, Redactor};
use crate::process::{self, How, Keep};
use crate::runner::{self, Follower, Found, Prepared, Runner};
use crate::secrets::Opened;
use crate::surroundings::Surroundings;

/// How much is kept of what a look or a judge said.
const SAID: usize = 16 * 1024;

/// How long to wait before somebody looks again at a directory that could not be read.
const UNREADABLE_WAIT: Duration = Duration::from_secs(1);

/// Deploys environments by the control scripts of their projects.
pub struct Scripts {
    place: String,
    home: PathBuf,
    runner: Runner,
    grace: Duration,
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
        let opened = open(home).map_err(|cause| {
            let what = format!("could not keep scripts in {}: {cause}", home.display());
            Error::new(Kind::OurSide, what)
        });
        let (place, passing) = opened?;
        Ok(Self {
            place,
            home: home.to_owned(),
            runner: Runner(runner),
            grace: runner::GRACE,
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
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Runs what is to be run before everything else, where a project has such a script.
    pub async fn init(&self, settings: &Settings) -> Result<(), driver::Error> {
        Ok(self.asking.tell(settings, Script::Init, &[]).await?)
    }

    /// Tells the script that wants to know what became of an environment, where there is one.
    pub async fn notify(
        &self,
        subject: &Subject,
        was: Status,
        became: Status,
    ) -> Result<(), driver::Error> {
        let words = contract::notification(subject, was, became);
        let told = self
            .asking
            .tell(&subject.settings, Script::Notifications, &words);
        Ok(told.await?)
    }

    fn directory(&self, action: ActionId) -> PathBuf {
        self.home.join(action.to_string())
    }

    /// Finds, begins and follows, until there is something to tell.
    async fn acted(
        &self,
        cx: &Context,
        work: &Work,
        script: Script,
        following: &Following<'_>,
    ) -> io::Result<Acted> {
        let mut follower = match Follower::new(self.directory(work.action), following) {
            Ok(follower) => follower,
            Err(cause) => {
                let what = format!("could not make a directory for the script: {cause}");
                return Ok(Acted::Unbegun(Error::new(Kind::OurSide, what).into()));
            }
        };
        loop {
            match follower.find()? {
                Found::Ended(end) => return follower.conclude(end).await,
                Found::Died(began) => return follower.lose(&began).await,
                Found::Held => {}
                Found::Free(lock) => {
                    let prepared = tokio::select! {
                        biased;
                        () = cx.cancelled() => return Ok(Acted::Left),
                        () = following.end.cancelled() => Err(killed(Because::Cancelled)),
                        prepared = self.prepared(cx, work, script) => prepared,
                    };
                    let prepared = match prepared {
                        Ok(prepared) => prepared,
                        Err(acted) => {
                            follower.void(&lock)?;
                            return Ok(acted);
                        }
                    };
                    if let Err(error) = follower.begin(lock, &prepared, &self.runner).await {
                        tracing::warn!(%error, "could not begin a script");
                        return follower.give_up(error).await;
                    }
                }
            }
            if let Some(acted) = follower.follow(cx).await? {
                return Ok(acted);
            }
        }
    }

    /// All that a runner needs, or why there is nothing to begin.
    async fn prepared(&self, cx: &Context, work: &Work, script: Script) -> Result<Prepared, Acted> {
        let unbegun = |error: Error| Acted::Unbegun(error.into());
        let subject = &work.subject;
        let program = process::find(&subject.settings, script).map_err(unbegun)?;
        let opened = Opened::open(cx, subject).await.map_err(unbegun)?;
        let links = if matches!(work.deed, Deed::Create | Deed::Update | Deed::Restore) {
            let told = self.asking.links(subject, &opened).await;
            Some(told.map_err(|error| error.to_string()))
        } else {
            None
        };
        let patience = work.deadline.since(cx.now());
        if patience.is_zero() {
            return Err(killed(Because::TimedOut));
        }
        Ok(Prepared {
            program,
            arguments: contract::lifecycle(subject, &opened),
            variables: self.asking.surroundings.of(&subject.settings, &opened),
            opened,
            patience,
            grace: self.grace,
            links,
        })
    }

    /// What was begun elsewhere is not to be seen from here: nobody knows more than that it has
    /// ended when its time is over.
    async fn elsewhere(&self, cx: &Context, work: &Work) -> Acted {
        let over = work.deadline.plus(self.grace * 2);
        loop {
            let left = over.since(cx.now());
            if left.is_zero() {
                return Acted::Lost;
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Acted::Left,
                () = sleep(left) => {}
            }
        }
    }
}

/// Makes the directory, and answers which place it is and where secrets pass through.
fn open(home: &Path) -> io::Result<(String, PathBuf)> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(home)?;
    // What a program that was killed has left there.
    let passing = home.join("passing");
    match std::fs::remove_dir_all(&passing) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        Ok(()) | Err(_) => builder.create(&passing)?,
    }
    let file = home.join("place");
    match std::fs::read_to_string(&file) {
        Ok(place) if !place.trim().is_empty() => return Ok((place.trim().to_owned(), passing)),
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        Ok(_) | Err(_) => {}
    }
    let place = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let draft = tempfile::NamedTempFile::new_in(home)?;
    std::fs::write(draft.path(), &place)?;
    draft.as_file().sync_all()?;
    draft.persist(&file)?;
    std::fs::File::open(home)?.sync_all()?;
    Ok((place.trim().to_owned(), passing))
}

const fn killed(because: Because) -> Acted {
    Acted::Killed { because }
}

impl Deployer for Scripts {
    fn place(&self) -> &str {
        &self.place
    }

    async fn act(&self, cx: &Context, work: &Work, following: &Following<'_>) -> Acted {
        let Some(script) = Script::of_deed(work.deed) else {
            return Acted::Exited {
                status: 0,
                links: None,
            };
        };
        if work.begun_at.as_ref().is_some_and(|at| *at != self.place) {
            return self.elsewhere(cx, work).await;
        }
        // It is large, and those who work on many hold one for each.
        match Box::pin(self.acted(cx, work, script, following)).await {
            Ok(acted) => acted,
            Err(cause) => {
                // Nobody knows what is there: whoever asks again may see more.
                tracing::warn!(action = %work.action, %cause, "could not follow a script");
                sleep(UNREADABLE_WAIT).await;
                Acted::Left
            }
        }
    }

    async fn forget(&self, action: ActionId) {
        if let Err(cause) = runner::forget(self.directory(action)).await {
            tracing::warn!(%action, %cause, "could not remove what is left of a script");
        }
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
        let said = Redactor::new(opened.texts())
            .clean(&ended.said())
            .into_owned();
        let (exit, said) = match ended.how {
            How::Exited(status) => (Some(status), said),
            How::Signal(_) | How::TimedOut => {
                let why = bad(script, &ended, subject.settings.patience.check);
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
    ) -> Result<Vec<String>, driver::Error> {
        let scripts = [Script::DeploymentKeys, Script::ApplicationKeys];
        let (question, script, words) = asked(settings, of, scripts);
        let (asking, settings) = (self.asking.clone(), settings.clone());
        let ask = async move { asking.told(&settings, script, &words, output::keys).await };
        Ok(self.keys.get(cx, question, ask).await?)
    }

    async fn judge(&self, cx: &Context, subject: &Subject) -> Result<Judged, driver::Error> {
        let script = Script::ConfigCheck;
        let opened = Opened::open(cx, subject).await?;
        let ended = self
            .asking
            .about(subject, script, &opened, Keep::First(SAID));
        let ended = ended.await?;
        match ended.how {
            How::Exited(0) => Ok(Judged::Good),
            How::Exited(_) => {
                // What is meant for people is on standard output; some scripts say it elsewhere.
                let said = match ended.out.text() {
                    said if said.is_empty() => ended.err.text(),
                    said => said,
                };
                let said = Redactor::new(opened.texts()).clean(&said).into_owned();
                Ok(Judged::Bad(said))
            }
            How::Signal(_) | How::TimedOut => {
                Err(bad(script, &ended, subject.settings.patience.check).into())
            }
        }
    }
}

/// Which of two scripts is asked, what it is told, and what its answer depends on.
fn asked(settings: &Settings, of: Of<'_>, scripts: [Script; 2]) -> (Question, Script, Vec<String>) {
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
    (Question::new(all), script, words)
}
