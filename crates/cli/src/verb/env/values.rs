//! Settings as they stand on the command line. A secret value never does: everybody on the
//! machine could read it there.

use crate::context::Context;
use crate::error::Error;
use crate::global::{Output, settings_or_formats};
use crate::source;
use crate::verb::secret;
use api::Hidden;
use api::environment::{HiddenLevels, KeyLevels, ValueLevels};
use api::secret::Secret;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is made of settings.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// The version of the application: sets what the project says is its tag
    #[arg(short, long, value_name = "TAG")]
    pub(super) tag: Option<String>,

    /// Set what the application is given; the value begins behind the first `=`
    #[arg(
        short = 'e',
        long = "set-app-config",
        value_name = "KEY=VALUE",
        value_parser = api::argument::setting
    )]
    set_app: Vec<(String, String)>,

    /// With a `=`, set how it is deployed; without, how to show the answer (table, json, yaml)
    #[arg(
        id = "output",
        short = 'o',
        long = "output",
        alias = "set-deployment-config",
        value_name = "KEY=VALUE|FORMAT",
        value_parser = settings_or_formats()
    )]
    output: Vec<Output>,

    /// Leave out what the application would be given by default
    #[arg(long = "remove-app", value_name = "KEY", value_parser = api::argument::key)]
    remove_app: Vec<String>,

    /// Leave out of how it is deployed what would be there by default
    #[arg(long = "remove-deployment", value_name = "KEY", value_parser = api::argument::key)]
    remove_deployment: Vec<String>,

    /// Set what the application is given and nobody sees; asked for, or piped in, or in a file
    #[arg(long = "secret", value_name = "KEY[=@FILE]")]
    secret_app: Vec<String>,

    /// The same of how it is deployed
    #[arg(long = "secret-deployment", value_name = "KEY[=@FILE]")]
    secret_deployment: Vec<String>,
}

impl Settings {
    /// Adds the values that everybody may see.
    pub(super) fn values(&self, levels: &mut ValueLevels) -> Result<(), Error> {
        for (key, value) in &self.set_app {
            once(&mut levels.application, key, value.clone())?;
        }
        for output in &self.output {
            if let Output::Setting(key, value) = output {
                once(&mut levels.deployment, key, value.clone())?;
            }
        }
        Ok(())
    }

    /// Adds the settings that are left out.
    pub(super) fn removed(&self, levels: &mut KeyLevels) {
        levels.application.extend(self.remove_app.iter().cloned());
        levels
            .deployment
            .extend(self.remove_deployment.iter().cloned());
    }

    /// Adds the values that nobody sees.
    pub(super) fn hidden(
        &self,
        levels: &mut HiddenLevels,
        context: &mut Context<'_>,
    ) -> Result<(), Error> {
        let asked = |texts: &[String]| texts.iter().filter(|text| !text.contains('=')).count();
        let many = asked(&self.secret_app) + asked(&self.secret_deployment);
        for text in &self.secret_app {
            let (key, value) = whispered(text, many > 1, context)?;
            once(&mut levels.application, &key, value)?;
        }
        for text in &self.secret_deployment {
            let (key, value) = whispered(text, many > 1, context)?;
            once(&mut levels.deployment, &key, value)?;
        }
        Ok(())
    }
}

/// Adds a setting that is not there yet on the command line; one of a file gives way.
fn once<T>(settings: &mut BTreeMap<String, T>, key: &str, value: T) -> Result<(), Error> {
    if settings.insert(key.to_owned(), value).is_some() {
        return Err(Error::Usage {
            what: format!("setting `{key}` is named twice"),
            hint: "write each setting once, here or in the file".to_owned(),
        });
    }
    Ok(())
}

/// One secret setting with its value. What is wrong is told without what was written: it may be a
/// value.
fn whispered(text: &str, more: bool, context: &mut Context<'_>) -> Result<(String, Hidden), Error> {
    let (key, file) = match text.split_once('=') {
        Some((key, rest)) => (key, Some(rest.strip_prefix('@'))),
        None => (text, None),
    };
    let key = api::argument::key(key).map_err(|_| Error::Usage {
        what: "the name of a secret setting cannot be used".to_owned(),
        hint: "write KEY, or KEY=@FILE".to_owned(),
    })?;
    let value = match file {
        Some(Some(file)) => secret::from_file(&key, Path::new(file)).map_err(in_our_words)?,
        Some(None) => {
            return Err(Error::Usage {
                what: format!("what stands behind `{key}=` does not begin with `@`"),
                hint: format!(
                    "a secret never stands on the command line, where every user of this machine can read it; \
                     write `{key}` alone and be asked for it, or `{key}=@FILE`"
                ),
            });
        }
        None => {
            let asked = secret::from_person(&key, "this environment", more, context.out());
            asked.map_err(in_our_words)?
        }
    };
    Ok((key.clone(), Hidden(text_of(value, &key)?)))
}

/// Files are named with a `@` here, because a value may stand behind every other `=`.
fn in_our_words(error: Error) -> Error {
    let Error::Usage { what, hint } = error else {
        return error;
    };
    let hint = hint.replace("=FILE", "=@FILE").replace("=/dev", "=@/dev");
    Error::Usage { what, hint }
}

fn text_of(value: Secret, key: &str) -> Result<Secret, Error> {
    if value.expose_text().is_some() {
        return Ok(value);
    }
    Err(Error::Usage {
        what: format!("the value of `{key}` is not text in UTF-8"),
        hint: "encode it, in base64 for example, and have the application decode it".to_owned(),
    })
}

/// What a file says of an environment; it is not repeated, because it may have secrets in it.
pub(super) fn from_file<T: DeserializeOwned + Default>(file: Option<&PathBuf>) -> Result<T, Error> {
    let Some(file) = file else {
        return Ok(T::default());
    };
    let text = source::read(file)?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.to_string();
        let known = error.lines().find(|line| line.contains("unknown field"));
        Error::Usage {
            what: format!(
                "`{}` does not have the form of a request{}",
                file.display(),
                known.map_or_else(String::new, |known| format!(": {known}"))
            ),
            hint: "it is YAML with the fields of the API: name, tag, set, secret, remove, labels, owner, notes, protected"
                .to_owned(),
        }
    })
}

/// Labels as they stand on the command line: `name=value`, or, to remove one, `name-`.
pub(super) fn label(text: &str) -> Result<(String, Option<String>), String> {
    match (text.split_once('='), text.strip_suffix('-')) {
        (Some((label, value)), _) if !label.is_empty() => {
            Ok((label.to_owned(), Some(value.to_owned())))
        }
        (None, Some(label)) if !label.is_empty() => Ok((label.to_owned(), None)),
        (_, _) => Err("write NAME=VALUE, or NAME- to remove it".to_owned()),
    }
}
