//! Settings that nobody should see, on their way to a script.
//!
//! *Files*: `SLIPWAY_SECRETS` names a directory that only its user can enter, with one file for
//! each setting. Its file `index` has a line for each: level, key and file name, with tabs between
//! them.
//!
//! *Variables*: `SLIPWAY_SECRET_APPLICATION_` or `SLIPWAY_SECRET_DEPLOYMENT_` and the key. ASCII
//! letters and digits of the key stay as they are, a dot becomes `__`, and every other byte `_` and
//! two hexadecimal digits. No two keys become one name: `db.pass-word` is `db__pass_2Dword`.
//!
//! *Arguments*: as any other setting, for scripts that know nothing else.
//!
//! The way to the cluster that a project is placed on is secret, too: `KUBECONFIG` names a file,
//! whichever way settings go.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use driver::deploy::Subject;
use driver::{Context, Unopened};
use model::environment::config::{Edits, Given, Key, Level};
use model::environment::settings::SecretDelivery;
use model::id::EnvironmentId;
use model::name::Name;
use model::sealed::Owner;
use model::secret::Secret;

use crate::error::{Error, Kind};

/// Where scripts find the directory with what is secret.
pub(crate) const DIRECTORY: &str = "SLIPWAY_SECRETS";

/// What programs of Kubernetes call the way to a cluster.
pub(crate) const KUBECONFIG: &str = "KUBECONFIG";

/// The file with the way to a cluster.
const WAY: &str = "kubeconfig";

/// What is secret in such a file.
const WAY_SECRETS: [&str; 3] = ["client-key-data:", "token:", "password:"];

/// The file that says which file is which setting.
const INDEX: &str = "index";

/// The secret settings of one environment, opened, and how they are handed over.
pub(crate) struct Opened {
    delivery: Option<SecretDelivery>,
    values: Vec<(Level, Key, Secret)>,
    /// Whole files with something secret in them, by name.
    files: Vec<(&'static str, Secret)>,
}

impl Opened {
    /// Nothing.
    pub(crate) const fn none() -> Self {
        Self {
            delivery: None,
            values: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Opens all that is secret of an environment, and the way to the cluster that it is placed on.
    pub(crate) async fn open(cx: &Context, subject: &Subject) -> Result<Self, Error> {
        let opened = Self::settings_of(cx, subject).await?;
        let Some(cluster) = &subject.settings.place.cluster else {
            return Ok(opened);
        };
        Ok(opened.with_way(way(cx, cluster).await?))
    }

    /// Opens settings that are secret. An environment that is not there yet has none sealed.
    async fn settings_of(cx: &Context, subject: &Subject) -> Result<Self, Error> {
        let Some(id) = subject.id else {
            return Ok(Self::none());
        };
        let wanted: Vec<_> = secret(subject).collect();
        let Some((_, first)) = wanted.first() else {
            return Ok(Self::none());
        };
        let Some(delivery) = subject.settings.secret_delivery else {
            let what = format!(
                "could not hand over {first} of environment {}: project {} does not say how",
                subject.name, subject.project
            );
            return Err(Error::new(Kind::NoDelivery, what));
        };
        let mut values = Vec::new();
        for (level, key) in wanted {
            let value = opened(cx, subject, id, level, key).await?;
            fits(delivery, key, &value)?;
            values.push((level, key.clone(), value));
        }
        Ok(Self {
            delivery: Some(delivery),
            values,
            files: Vec::new(),
        })
    }

    /// Opens all that is secret of an environment for somebody who puts it into files. Where they
    /// may be, values that are not there yet are left out.
    pub(crate) async fn texts_of(
        cx: &Context,
        subject: &Subject,
        may_lack: bool,
    ) -> Result<Self, Error> {
        let mut all = Self::none();
        let Some(id) = subject.id else {
            return Ok(all);
        };
        for (level, key) in secret(subject) {
            match opened(cx, subject, id, level, key).await {
                Err(error) if may_lack && error.kind == Kind::NoSecret => {}
                value => {
                    let value = value?;
                    fits(SecretDelivery::Env, key, &value)?;
                    all.values.push((level, key.clone(), value));
                }
            }
        }
        Ok(all)
    }

    /// The same with a file more.
    #[must_use]
    pub(crate) fn with_file(mut self, name: &'static str, content: Secret) -> Self {
        self.files.push((name, content));
        self
    }

    /// The same with the way to a cluster.
    #[must_use]
    pub(crate) fn with_way(self, kubeconfig: Secret) -> Self {
        self.with_file(WAY, kubeconfig)
    }

    /// The way to a cluster, where there is one.
    fn way(&self) -> Option<&Secret> {
        let mut files = self.files.iter();
        files.find_map(|(name, content)| (*name == WAY).then_some(content))
    }

    /// The value of a setting, where it is text.
    pub(crate) fn text(&self, level: Level, key: &Key) -> Option<&str> {
        let mut values = self.values.iter();
        let found = values.find(|(of, name, _)| (*of, name) == (level, key));
        found.and_then(|(_, _, value)| value.expose_text())
    }

    /// The value of a setting, where values are arguments.
    pub(crate) fn argument(&self, level: Level, key: &Key) -> Option<&str> {
        if self.delivery != Some(SecretDelivery::Argv) {
            return None;
        }
        self.text(level, key)
    }

    /// The values, where they are variables, with their names.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        let wanted = self.delivery == Some(SecretDelivery::Env);
        let values = self.values.iter().filter(move |_| wanted);
        values.filter_map(|(level, key, value)| Some((variable(*level, key), value.expose_text()?)))
    }

    /// What tells a program of the files in a directory.
    pub(crate) fn leading(&self, directory: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = Vec::new();
        if self.wants_files() {
            variables.push(pair(DIRECTORY, directory));
        }
        if self.way().is_some() {
            variables.push(pair(KUBECONFIG, directory.join(WAY)));
        }
        variables
    }

    /// Whether there are files to be written.
    pub(crate) fn wants_files(&self) -> bool {
        self.delivery == Some(SecretDelivery::File) || !self.files.is_empty()
    }

    /// Makes the directory with the values.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(directory)?;
        for (name, content) in &self.files {
            private(&directory.join(name))?.write_all(content.expose())?;
        }
        if self.delivery != Some(SecretDelivery::File) {
            return Ok(());
        }
        let mut index = String::new();
        for (at, (level, key, value)) in self.values.iter().enumerate() {
            let name = (at + 1).to_string();
            private(&directory.join(&name))?.write_all(value.expose())?;
            index.push_str(&format!("{}\t{key}\t{name}\n", level.as_str()));
        }
        private(&directory.join(INDEX))?.write_all(index.as_bytes())
    }

    /// All values as text, for those who must not repeat them: as they are, and as they stand in
    /// JSON and in the Secrets of Kubernetes.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        let way = self.way().and_then(Secret::expose_text).unwrap_or_default();
        let of_settings = self.values.iter().flat_map(|(_, _, value)| {
            let text = String::from_utf8_lossy(value.expose()).into_owned();
            let quoted = serde_json::Value::from(text.as_str()).to_string();
            let inside = quoted
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'));
            let quoted = inside.unwrap_or(&quoted).to_owned();
            let coded = base64::engine::general_purpose::STANDARD.encode(value.expose());
            [text, quoted, coded]
        });
        of_settings.chain(secrets_of_way(way))
    }
}

/// What is secret in the way to a cluster.
pub(crate) fn secrets_of_way(way: &str) -> impl Iterator<Item = String> {
    way.lines().filter_map(|line| {
        let mut names = WAY_SECRETS.iter();
        let value = names.find_map(|name| line.trim().strip_prefix(name))?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// The variable of a setting.
fn variable(level: Level, key: &Key) -> String {
    let mut name = match level {
        Level::Application => "SLIPWAY_SECRET_APPLICATION_".to_owned(),
        Level::Deployment => "SLIPWAY_SECRET_DEPLOYMENT_".to_owned(),
    };
    for byte in key.as_str().bytes() {
        match byte {
            b'.' => name.push_str("__"),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("_{byte:02X}")),
        }
    }
    name
}

/// A new file that nobody else can read.
pub(crate) fn private(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)
}

/// The way to a cluster of ours.
pub(crate) async fn way(cx: &Context, cluster: &Name) -> Result<Secret, Error> {
    let opened = cx.kubeconfig(cluster).await;
    opened.map_err(|unopened| {
        let (Unopened::Retry(error) | Unopened::Stuck(error)) = unopened;
        Error::new(Kind::NoWay, error.attempted)
    })
}

/// Which settings are secret.
fn secret(subject: &Subject) -> impl Iterator<Item = (Level, &Key)> {
    let levels = [
        (Level::Application, &subject.application),
        (Level::Deployment, &subject.deployment),
    ];
    let levels = levels.into_iter();
    let all = levels.flat_map(|(level, settings)| settings.iter().map(move |one| (level, one)));
    all.filter(|(_, setting)| setting.value == Given::Secret)
        .map(|(level, setting)| (level, &setting.key))
}

/// The value of one setting.
async fn opened(
    cx: &Context,
    subject: &Subject,
    id: EnvironmentId,
    level: Level,
    key: &Key,
) -> Result<Secret, Error> {
    let (owner, entry) = (Owner::Environment(id), Edits::entry(level, key));
    let kept = cx.kept(&owner, &entry).await.map_err(unopened)?;
    kept.ok_or_else(|| {
        let what = format!(
            "{key} of environment {} is secret and not set",
            subject.name
        );
        Error::new(Kind::NoSecret, what)
    })
}

/// Whether a value can be handed over in this way.
fn fits(delivery: SecretDelivery, key: &Key, value: &Secret) -> Result<(), Error> {
    let bytes = value.expose();
    let text = value.expose_text().is_some() && !bytes.contains(&0);
    if text || delivery == SecretDelivery::File {
        return Ok(());
    }
    let what = format!("the value of {key} is not text without NUL");
    Err(Error::new(Kind::UnfitSecret, what))
}

/// Why a value could not be opened, in our words.
pub(crate) fn unopened(unopened: Unopened) -> Error {
    let (kind, error) = match unopened {
        Unopened::Retry(error) => (Kind::SecretAway, error),
        Unopened::Stuck(error) => (Kind::NoSecret, error),
    };
    Error::new(kind, error.to_string())
}

/// A variable as programs are given it.
pub(crate) fn pair(name: impl Into<OsString>, value: impl Into<OsString>) -> (OsString, OsString) {
    (name.into(), value.into())
}

#[cfg(test)]
mod tests;
