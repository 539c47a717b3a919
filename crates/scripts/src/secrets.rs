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

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use driver::deploy::Subject;
use driver::{Context, Unopened};
use model::environment::config::{Edits, Given, Key, Level};
use model::environment::settings::SecretDelivery;
use model::sealed::Owner;
use model::secret::Secret;

use crate::error::{Error, Kind};

/// Where scripts find the directory with what is secret.
pub(crate) const DIRECTORY: &str = "SLIPWAY_SECRETS";

/// The file that says which file is which setting.
const INDEX: &str = "index";

/// The secret settings of one environment, opened, and how they are handed over.
pub(crate) struct Opened {
    delivery: Option<SecretDelivery>,
    values: Vec<(Level, Key, Secret)>,
}

impl Opened {
    /// Nothing.
    pub(crate) const fn none() -> Self {
        Self {
            delivery: None,
            values: Vec::new(),
        }
    }

    /// Opens all that is secret of an environment. One that is not there yet has nothing sealed.
    pub(crate) async fn open(cx: &Context, subject: &Subject) -> Result<Self, Error> {
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
        let owner = Owner::Environment(id);
        let mut values = Vec::new();
        for (level, key) in wanted {
            let kept = cx.kept(&owner, &Edits::entry(level, key)).await;
            let value = kept.map_err(unopened)?.ok_or_else(|| {
                let what = format!(
                    "{key} of environment {} is secret and not set",
                    subject.name
                );
                Error::new(Kind::NoSecret, what)
            })?;
            fits(delivery, key, &value)?;
            values.push((level, key.clone(), value));
        }
        let delivery = Some(delivery);
        Ok(Self { delivery, values })
    }

    /// The value of a setting, where values are arguments.
    pub(crate) fn argument(&self, level: Level, key: &Key) -> Option<&str> {
        if self.delivery != Some(SecretDelivery::Argv) {
            return None;
        }
        let mut values = self.values.iter();
        let found = values.find(|(of, name, _)| (*of, name) == (level, key));
        found.and_then(|(_, _, value)| value.expose_text())
    }

    /// The values, where they are variables, with their names.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        let wanted = self.delivery == Some(SecretDelivery::Env);
        let values = self.values.iter().filter(move |_| wanted);
        values.filter_map(|(level, key, value)| Some((variable(*level, key), value.expose_text()?)))
    }

    /// Whether there are files to be written.
    pub(crate) fn wants_files(&self) -> bool {
        self.delivery == Some(SecretDelivery::File)
    }

    /// Makes the directory with the values.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(directory)?;
        let mut index = String::new();
        for (at, (level, key, value)) in self.values.iter().enumerate() {
            let name = (at + 1).to_string();
            private(&directory.join(&name))?.write_all(value.expose())?;
            index.push_str(&format!("{}\t{key}\t{name}\n", level.as_str()));
        }
        private(&directory.join(INDEX))?.write_all(index.as_bytes())
    }

    /// All values as text, for those who must not repeat them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        let values = self.values.iter();
        values.map(|(_, _, value)| String::from_utf8_lossy(value.expose()).into_owned())
    }
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
fn unopened(unopened: Unopened) -> Error {
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
