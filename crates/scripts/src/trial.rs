//! Tries a directory of control scripts before anything depends on it.
//!
//! What only looks or tells is run, about an environment that nobody has; what would change
//! something, or tell somebody, is looked at and left alone.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use driver::deploy::Subject;
use model::environment::config::{Defaults, LevelEdits, Setting, effective};
use model::environment::settings::{Patience, Place, Settings};

use crate::asking::{Asking, bad};
use crate::contract::{self, Script};
use crate::error::{Error, Kind};
use crate::output::{self, Redactor};
use crate::process::{self, Ended, How, Keep};
use crate::secrets::Opened;
use crate::surroundings::Surroundings;

/// How much is kept of what a script said.
const SAID: usize = 4096;

/// How much of a script is looked at to learn who runs it: what the system reads of it.
const FIRST_LINE: u64 = 256;

/// How files begin that the system runs by itself.
const PROGRAM: &[u8] = b"\x7fELF";

/// What was found of one script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which script.
    pub script: Script,
    /// Whether it is as it should be.
    pub verdict: Verdict,
    /// What was seen, as one clause.
    pub seen: String,
}

/// Whether a script is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was run, and did what it should.
    Good,
    /// It is there and was not run, because it would change something.
    Untried,
    /// It is not there, and need not be.
    Absent,
    /// It is not as it should be.
    Wrong(Kind),
}

/// Tries the scripts of a directory, each for so long.
pub async fn directory(
    directory: &Path,
    patience: Duration,
    surroundings: Surroundings,
) -> Result<Vec<Finding>, Error> {
    let path = std::path::absolute(directory).ok();
    let path = path.filter(|path| path.is_dir());
    let text = path.as_ref().and_then(|path| path.to_str());
    let text = text.ok_or_else(|| {
        let what = format!("there is no directory of scripts {}", directory.display());
        Error::new(Kind::NoDirectory, what)
    })?;
    let trial = Trial {
        asking: Asking {
            surroundings,
            passing: std::env::temp_dir(),
        },
        subject: made_up(text, patience)?,
    };
    Ok(trial.run().await)
}

/// An environment that nobody has.
fn made_up(scripts: &str, patience: Duration) -> Result<Subject, Error> {
    let unnamed = |cause: &dyn std::error::Error| {
        let what = format!("could not make an environment up: {cause}");
        Error::new(Kind::OurSide, what)
    };
    let place = Place {
        project_name: "Slipway trial".to_owned(),
        base_domain: "trial.example".to_owned(),
        namespace: "slipway-trial".parse().map_err(|cause| unnamed(&cause))?,
        cluster: None,
    };
    let settings = Settings {
        patience: Patience {
            check: patience,
            ..Patience::default()
        },
        ..Settings::usual(place, scripts)
    };
    Ok(Subject {
        id: None,
        project: "default".parse().map_err(|cause| unnamed(&cause))?,
        name: "trial".parse().map_err(|cause| unnamed(&cause))?,
        settings,
        application: Vec::new(),
        deployment: Vec::new(),
    })
}

/// How many settings are named that are told again.
const REPEATED_MAX: usize = 3;

struct Trial {
    asking: Asking,
    subject: Subject,
}

impl Trial {
    /// Each script in turn; what one tells, the next ones are told.
    async fn run(mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for script in ORDER {
            let found = process::find(&self.subject.settings, script);
            let (verdict, seen) = match found {
                Ok(file) => match self.tried(script, &file).await {
                    Ok(found) => found,
                    Err(error) => (Verdict::Wrong(error.kind), error.what),
                },
                Err(error) if error.kind == Kind::Missing && script.is_optional() => {
                    (Verdict::Absent, "is not there, and need not be".to_owned())
                }
                Err(error) => (Verdict::Wrong(error.kind), error.what),
            };
            findings.push(Finding {
                script,
                verdict,
                seen,
            });
        }
        findings
    }

    /// Runs a script, if that is harmless.
    async fn tried(&mut self, script: Script, file: &Path) -> Result<(Verdict, String), Error> {
        match script {
            Script::DeploymentConfig => {
                let words = contract::service(&self.subject.settings);
                let (told, seen) = self.settings(script, &words).await?;
                self.subject.deployment = told;
                Ok(seen)
            }
            Script::ApplicationConfig => {
                let words = self.of_application();
                let (told, seen) = self.settings(script, &words).await?;
                self.subject.application = told;
                Ok(seen)
            }
            Script::DeploymentKeys => {
                let words = contract::service(&self.subject.settings);
                self.keys(script, &words).await
            }
            Script::ApplicationKeys => {
                let words = self.of_application();
                self.keys(script, &words).await
            }
            Script::Info => {
                let links = self.asking.links(&self.subject, &Opened::none()).await?;
                Ok(count(links.len(), "links"))
            }
            Script::ConfigCheck | Script::Check | Script::ArchiveCheck => self.asked(script).await,
            Script::Init
            | Script::Create
            | Script::Update
            | Script::Archive
            | Script::Unarchive
            | Script::Cleanup
            | Script::Notifications => {
                interpreted(file)?;
                let seen = "is there, and was not run: it would change something";
                Ok((Verdict::Untried, seen.to_owned()))
            }
        }
    }

    fn of_application(&self) -> Vec<String> {
        contract::application(&self.subject.settings, &self.subject.deployment)
    }

    /// What a script tells, and what is to be said of that.
    async fn settings(
        &self,
        script: Script,
        words: &[String],
    ) -> Result<(Vec<Setting>, (Verdict, String)), Error> {
        let settings = &self.subject.settings;
        let told = self.asking.told(settings, script, words, |printed| {
            Ok((output::defaults(printed)?, output::repeated(printed)?))
        });
        let (told, repeated): (Defaults, _) = told.await?;
        let told = effective(&told, &LevelEdits::new());
        let (verdict, mut seen) = count(told.len(), "settings");
        for (key, line) in repeated.iter().take(REPEATED_MAX) {
            seen.push_str(&format!(
                "; `{key}` again in line {line}, where it does not count"
            ));
        }
        Ok((told, (verdict, seen)))
    }

    async fn keys(&self, script: Script, words: &[String]) -> Result<(Verdict, String), Error> {
        let settings = &self.subject.settings;
        let told = self.asking.told(settings, script, words, output::keys);
        Ok(count(told.await?.len(), "keys"))
    }

    /// Asks about the environment that nobody has. However a script ends, it is an answer.
    async fn asked(&self, script: Script) -> Result<(Verdict, String), Error> {
        let (subject, opened) = (&self.subject, Opened::none());
        let redactor = Redactor::default();
        let ended = self
            .asking
            .about(subject, script, &opened, Keep::Last(SAID));
        let ended: Ended = ended.await?;
        match ended.how {
            How::Exited(status) => {
                let said = ended.said(&redactor);
                let said = said.lines().last().unwrap_or_default();
                let between = if said.is_empty() { "" } else { ": " };
                let seen = format!("ended with status {status}{between}{said}");
                Ok((Verdict::Good, seen))
            }
            How::Signal(_) | How::TimedOut => {
                let patience = subject.settings.patience.check;
                Err(bad(script, &ended, patience, &redactor))
            }
        }
    }
}

/// What tells comes first: the others are told of it.
const ORDER: [Script; 15] = [
    Script::DeploymentConfig,
    Script::DeploymentKeys,
    Script::ApplicationConfig,
    Script::ApplicationKeys,
    Script::ConfigCheck,
    Script::Info,
    Script::Check,
    Script::ArchiveCheck,
    Script::Create,
    Script::Update,
    Script::Archive,
    Script::Unarchive,
    Script::Cleanup,
    Script::Notifications,
    Script::Init,
];

/// Refuses a script that is no program and whose first line names nobody who is there: it would not
/// even be begun.
fn interpreted(file: &Path) -> Result<(), Error> {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FIRST_LINE).read_to_end(&mut beginning));
    let wrong = |what: String| {
        let what = format!("script {} {what}", file.display());
        Err(Error::new(Kind::NotExecutable, what))
    };
    if let Err(cause) = read {
        return wrong(format!("cannot be read: {cause}"));
    }
    let Some(named) = beginning.strip_prefix(b"#!") else {
        if beginning.starts_with(PROGRAM) {
            return Ok(());
        }
        return wrong("has no first line that says who runs it".to_owned());
    };
    let line = named.split(|byte| *byte == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    if line.ends_with('\r') {
        return wrong("has a first line that ends in a carriage return".to_owned());
    }
    let interpreter = line.split_whitespace().next().unwrap_or_default();
    if Path::new(interpreter).is_file() {
        return Ok(());
    }
    wrong(format!(
        "is to be run by {interpreter:?}, which is not there"
    ))
}

fn count(count: usize, noun: &str) -> (Verdict, String) {
    (Verdict::Good, format!("told {count} {noun}"))
}
