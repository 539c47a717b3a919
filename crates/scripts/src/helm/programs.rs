//! The programs that are called, and which Helm it is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::error::{Error, Kind};
use crate::output::Redactor;
use crate::process::{self, Call, GRACE, How, Keep};

/// Where the programs are; those that are not named are looked for in `PATH`.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Helm.
    pub helm: Option<PathBuf>,
    /// What asks Kubernetes.
    pub kubectl: Option<PathBuf>,
}

/// The oldest Helm 3 that knows all the options that are used.
const OLDEST: (u32, u32) = (3, 14);

/// How long Helm may take to say which one it is.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is kept of what it says.
const SAID: usize = 4096;

/// A Helm that can do what is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HelmProgram {
    pub(super) path: PathBuf,
    /// The first number of its version.
    pub(super) major: u32,
}

/// Finds the programs, and remembers what they said of themselves.
pub(super) struct Finder {
    programs: Programs,
    path: OsString,
    known: Mutex<BTreeMap<(PathBuf, SystemTime), HelmProgram>>,
}

impl Finder {
    pub(super) fn new(programs: Programs, path: OsString) -> Self {
        Self {
            programs,
            path,
            known: Mutex::default(),
        }
    }

    /// The program that asks Kubernetes.
    pub(super) fn kubectl(&self) -> Result<PathBuf, Error> {
        self.find("kubectl", self.programs.kubectl.as_deref(), Kind::NoKubectl)
    }

    /// Helm, if it can do what is needed. It is asked again when its file has changed.
    pub(super) async fn helm(
        &self,
        variables: &[(OsString, OsString)],
    ) -> Result<HelmProgram, Error> {
        let path = self.find("helm", self.programs.helm.as_deref(), Kind::NoHelm)?;
        let changed = std::fs::metadata(&path).and_then(|found| found.modified());
        let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
        let question = (path, changed);
        if let Some(known) = self.lock().get(&question) {
            return Ok(known.clone());
        }
        let helm = ask(&question.0, variables).await?;
        self.lock().insert(question, helm.clone());
        Ok(helm)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(PathBuf, SystemTime), HelmProgram>> {
        // Whoever panicked left at worst a program that is asked again.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a program is.
    fn find(&self, name: &str, named: Option<&Path>, kind: Kind) -> Result<PathBuf, Error> {
        if let Some(named) = named {
            let found = is_program(named).then(|| named.to_owned());
            return found.ok_or_else(|| {
                let what = format!("{} is no program that can be run", named.display());
                Error::new(kind, what)
            });
        }
        let mut places = std::env::split_paths(&self.path).filter(|place| place.is_absolute());
        let found = places.find_map(|place| Some(place.join(name)).filter(|path| is_program(path)));
        found.ok_or_else(|| {
            let what = format!("there is no program {name} in the PATH of the server");
            Error::new(kind, what)
        })
    }
}

/// Whether anybody may run a file.
fn is_program(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Asks a program which Helm it is.
async fn ask(path: &Path, variables: &[(OsString, OsString)]) -> Result<HelmProgram, Error> {
    let arguments = ["version", "--template", "{{.Version}}"].map(str::to_owned);
    let call = Call {
        program: path,
        arguments: &arguments,
        variables,
        patience: PATIENCE,
        grace: GRACE,
        keep: Keep::First(SAID),
    };
    let failed = |why: &str| {
        let what = format!("{} does not say which Helm it is: {why}", path.display());
        Error::new(Kind::OtherHelm, what)
    };
    let ended = process::run(&call)
        .await
        .map_err(|error| failed(&error.what))?;
    let said = ended.said(&Redactor::default());
    match ended.how {
        How::Exited(0) => {}
        How::TimedOut => return Err(failed("it took too long")),
        How::Exited(_) | How::Signal(_) => return Err(failed(&said)),
    }
    let version = version(&said).ok_or_else(|| failed(&said))?;
    if version < OLDEST || version.0 > 4 {
        let what = format!("{} is Helm {}", path.display(), said.trim());
        return Err(Error::new(Kind::OtherHelm, what));
    }
    Ok(HelmProgram {
        path: path.to_owned(),
        major: version.0,
    })
}

/// The first two numbers of a version such as `v3.19.5`.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().strip_prefix('v')?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_are_read_and_nothing_else_is() {
        assert_eq!(version("v3.19.5\n"), Some((3, 19)));
        assert_eq!(version("v4.0.0-rc.1"), Some((4, 0)));
        for text in ["", "3.19.5", "v3", "version.BuildInfo{}"] {
            assert_eq!(version(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_no_helm_or_another_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let helm = |text: &str| {
            let file = place.path().join("helm");
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
            Finder::new(Programs::default(), place.path().into())
        };
        let code = async |finder: Finder| finder.helm(&[]).await.map_err(|error| error.kind.code());
        let nobody = Finder::new(Programs::default(), "/nowhere:relative".into());
        assert_eq!(code(nobody).await, Err("HELM-001"));
        for other in [
            "echo v2.17.0",
            "echo v3.13.9",
            "echo v5.0.0",
            "echo hello",
            "exit 1",
        ] {
            assert_eq!(code(helm(other)).await, Err("HELM-002"), "{other}");
        }
        let path = place.path().join("helm");
        for (text, major) in [("echo v3.14.0", 3), ("echo v4.1.4", 4)] {
            let path = path.clone();
            assert_eq!(code(helm(text)).await, Ok(HelmProgram { path, major }));
        }
        let named = Programs {
            helm: Some("/nowhere/helm".into()),
            kubectl: Some(place.path().to_owned()),
        };
        let named = Finder::new(named, place.path().into());
        assert_eq!(named.kubectl().unwrap_err().kind, Kind::NoKubectl);
        assert_eq!(code(named).await, Err("HELM-001"));
    }
}
