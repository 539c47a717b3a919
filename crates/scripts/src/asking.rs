//! Runs scripts that look or tell, with what is secret as long as they run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::deploy::Subject;
use model::environment::link::Link;
use model::environment::settings::Settings;

use crate::contract::{self, Script};
use crate::error::{Error, Kind};
use crate::home;
use crate::output::{self, Redactor, Unreadable};
use crate::process::{self, Call, Ended, GRACE, How, Keep};
use crate::secrets::Opened;
use crate::surroundings::Surroundings;

/// How much of a complaint is told.
const COMPLAINT_BYTES_MAX: usize = 500;

/// Whether a script was told that a project may do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notified {
    /// It was.
    Told,
    /// There is none.
    Nobody,
}

/// Runs scripts that look or tell.
#[derive(Clone)]
pub(crate) struct Asking {
    pub(crate) surroundings: Surroundings,
    /// Where what is secret is put for as long as a script runs.
    pub(crate) passing: PathBuf,
}

impl Asking {
    /// Asks a script about an environment.
    pub(crate) async fn about(
        &self,
        subject: &Subject,
        script: Script,
        opened: &Opened,
        keep: Keep,
    ) -> Result<Ended, Error> {
        let settings = &subject.settings;
        let program = process::find(settings, script)?;
        let mut variables = self.variables(settings, opened);
        let passed = self.pass(opened)?;
        if let Some((directory, _)) = &passed {
            variables.extend(opened.leading(directory));
        }
        let words = contract::lifecycle(subject, opened);
        run(settings, &program, &words, &variables, keep).await
    }

    fn variables(&self, settings: &Settings, opened: &Opened) -> Vec<(OsString, OsString)> {
        let mut variables = self.surroundings.of(settings, opened);
        variables.push(home::mark(&self.passing));
        variables
    }

    /// Puts what is secret where the script finds it, until the answer is dropped.
    fn pass(&self, opened: &Opened) -> Result<Option<(PathBuf, tempfile::TempDir)>, Error> {
        if !opened.wants_files() {
            return Ok(None);
        }
        let passed = tempfile::tempdir_in(&self.passing).and_then(|above| {
            let directory = above.path().join("secrets");
            opened.write(&directory)?;
            Ok(Some((directory, above)))
        });
        passed.map_err(|cause| {
            let what = format!("could not hand over what is secret: {cause}");
            Error::new(Kind::OurSide, what)
        })
    }

    /// Has a script tell something about a project.
    pub(crate) async fn told<T>(
        &self,
        settings: &Settings,
        script: Script,
        words: &[String],
        read: fn(&[u8]) -> Result<T, Unreadable>,
    ) -> Result<T, Error> {
        let program = process::find(settings, script)?;
        let variables = self.variables(settings, &Opened::none());
        let keep = Keep::First(output::BYTES_MAX);
        let ended = run(settings, &program, words, &variables, keep).await?;
        // It is given nothing that is secret.
        let redactor = Redactor::default();
        good(script, &ended, settings.patience.check, &redactor)?;
        understood(script, &ended, read)
    }

    /// Where an environment is reached.
    pub(crate) async fn links(
        &self,
        subject: &Subject,
        opened: &Opened,
    ) -> Result<Vec<Link>, Error> {
        let script = Script::Info;
        let keep = Keep::First(output::BYTES_MAX);
        let ended = self.about(subject, script, opened, keep).await?;
        let redactor = Redactor::new(opened.texts());
        let clean = |error: Error| {
            let what = redactor.clean(&error.what).into_owned();
            Error { what, ..error }
        };
        good(script, &ended, subject.settings.patience.check, &redactor)?;
        let mut links = understood(script, &ended, output::links).map_err(clean)?;
        for link in &mut links {
            link.name = redactor.clean(&link.name).into_owned();
            link.url = redactor.clean(&link.url).into_owned();
        }
        Ok(links)
    }

    /// Runs a script that a project may do without.
    pub(crate) async fn tell(
        &self,
        settings: &Settings,
        script: Script,
        words: &[String],
        patience: Duration,
    ) -> Result<Notified, Error> {
        let program = match process::find(settings, script) {
            Err(error) if error.kind == Kind::Missing => return Ok(Notified::Nobody),
            found => found?,
        };
        let variables = self.variables(settings, &Opened::none());
        let call = Call {
            program: &program,
            arguments: words,
            variables: &variables,
            patience,
            grace: GRACE,
            keep: Keep::Last(COMPLAINT_BYTES_MAX),
        };
        let ended = process::run(&call).await?;
        good(script, &ended, patience, &Redactor::default())?;
        Ok(Notified::Told)
    }
}

/// Runs a program that looks or tells, in the time that the project gives it.
pub(crate) async fn run(
    settings: &Settings,
    program: &Path,
    arguments: &[String],
    variables: &[(OsString, OsString)],
    keep: Keep,
) -> Result<Ended, Error> {
    let call = Call {
        program,
        arguments,
        variables,
        patience: settings.patience.check,
        grace: GRACE,
        keep,
    };
    process::run(&call).await
}

/// Reads what a script printed.
fn understood<T>(
    script: Script,
    ended: &Ended,
    read: fn(&[u8]) -> Result<T, Unreadable>,
) -> Result<T, Error> {
    if ended.out.dropped > 0 {
        let most = output::BYTES_MAX / (1024 * 1024);
        let what = format!("script {script} printed more than {most} MiB");
        return Err(Error::new(Kind::Flood, what));
    }
    read(&ended.out.bytes).map_err(|error| {
        let what = format!("could not read what script {script} printed: {error}");
        let text = std::str::from_utf8(&ended.out.bytes).is_ok();
        Error::new(if text { Kind::Garbage } else { Kind::NotText }, what)
    })
}

/// Nothing, if a script ended well.
fn good(
    script: Script,
    ended: &Ended,
    patience: Duration,
    redactor: &Redactor,
) -> Result<(), Error> {
    match ended.how {
        How::Exited(0) => Ok(()),
        How::Exited(_) | How::Signal(_) | How::TimedOut => {
            Err(bad(script, ended, patience, redactor))
        }
    }
}

/// Why a script that ended badly did, without what is secret.
pub(crate) fn bad(script: Script, ended: &Ended, patience: Duration, redactor: &Redactor) -> Error {
    let (kind, how) = match ended.how {
        How::Exited(status) => (Kind::Failed, format!("ended with status {status}")),
        How::Signal(signal) => (Kind::Failed, format!("was ended by signal {signal}")),
        How::TimedOut => {
            let seconds = patience.as_secs_f64();
            (
                Kind::Hung,
                format!("took longer than {seconds} s, and was ended"),
            )
        }
    };
    // Only what is clean is cut: what is secret is not known by a part of it.
    let complaint = ended.err.clean(redactor);
    let complaint = complaint.trim();
    let begin = complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
    let complaint = &complaint[complaint.ceil_char_boundary(begin)..];
    let said = if complaint.is_empty() { "" } else { ": " };
    Error::new(kind, format!("script {script} {how}{said}{complaint}"))
}
