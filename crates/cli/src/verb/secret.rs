//! `slipway secret`: sets what must not be seen, and shows only what it is called.
//!
//! A value never stands on the command line, where every user of the machine could read it:
//! it comes from a file, from standard input, or from a prompt that does not show it.

use super::get::list;
use crate::context::Context;
use crate::error::Error;
use crate::out::Out;
use crate::pages::all;
use crate::table::count;
use crate::view;
use api::secret::{EntryError, EntryName, Secret, VALUE_BYTES_MAX};
use api::{Client, Exit, KeysView, SecretRequest, SecretView};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often somebody who waits for a rotation asks how far it has come.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// How often in a row it may be as far as before until nobody waits any longer: a value that
/// cannot be opened stays under its old key, and the server looks once a minute.
const STILL_MAX: u32 = 150;

/// Verbs about secrets.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Set entries of a secret; the others stay
    Set(Set),
    /// Show which entries a secret has, never their values
    GetKeys(GetKeys),
    /// List the secrets of the project
    #[command(after_help = "Example:\n  slipway secret list")]
    List,
    /// Remove a secret, or some of its entries
    Delete(Delete),
    /// Seal everything with a new data key, while all goes on
    RotateKeys(RotateKeys),
}

/// Arguments of `slipway secret set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway secret set cloud token
  slipway secret set attic privatekey=/home/me/.ssh/id_ed25519
  pass show cloud | slipway secret set cloud token

A value never stands on the command line. Without a file it is asked for, unseen, or read
from standard input; a single line there loses its line end.")]
pub struct Set {
    /// The name of the secret
    #[arg(value_parser = api::argument::name)]
    name: String,

    /// An entry, and the file with its value
    #[arg(value_name = "KEY[=FILE]", required = true)]
    entries: Vec<String>,

    /// Also values with which a manifest could not open its account any more
    #[arg(long)]
    force: bool,
}

/// Arguments of `slipway secret get-keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway secret get-keys cloud")]
pub struct GetKeys {
    /// The name of the secret
    #[arg(value_parser = api::argument::name)]
    name: String,
}

/// Arguments of `slipway secret delete`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway secret delete cloud --yes\n  slipway secret delete cloud token"
)]
pub struct Delete {
    /// The name of the secret
    #[arg(value_parser = api::argument::name)]
    name: String,

    /// Only these entries
    #[arg(value_name = "KEY", value_parser = api::argument::entry)]
    entries: Vec<String>,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Also where clusters need it: their machines can neither be changed nor removed until it is set again
    #[arg(long)]
    force: bool,
}

/// Arguments of `slipway secret rotate-keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway secret rotate-keys --wait")]
pub struct RotateKeys {
    /// Wait until every value is sealed with the new key
    #[arg(long)]
    wait: bool,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::Set(arguments) => set(arguments, &client, context).await,
        Verb::GetKeys(GetKeys { name }) => {
            let secret = client.secret(&name).await?;
            context.show(&secret, |_| lines(&secret.entries))?;
            Ok(Exit::Done)
        }
        Verb::List => {
            let listed = all(async |page| client.secrets(page).await).await?;
            list(&listed, "secrets", view::secrets, context)?;
            Ok(Exit::Done)
        }
        Verb::Delete(arguments) => delete(arguments, &client, context).await,
        Verb::RotateKeys(RotateKeys { wait }) => rotate(wait, &client, context).await,
    }
}

fn lines(names: &[String]) -> String {
    names.iter().map(|name| format!("{name}\n")).collect()
}

async fn set(
    Set {
        name,
        entries,
        force,
    }: Set,
    client: &Client,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let entries = entries.iter().map(|entry| Entry::read(entry));
    let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
    let names: BTreeSet<_> = entries.iter().map(|entry| &entry.key).collect();
    if names.len() < entries.len() {
        return Err(Error::Usage {
            what: "an entry is named twice".to_owned(),
            hint: "write each entry once".to_owned(),
        });
    }
    let asked = entries.iter().filter(|entry| entry.file.is_none()).count();
    let mut request = SecretRequest::default();
    for Entry { key, file } in entries {
        let value = match &file {
            Some(file) => from_file(key.as_str(), file)?,
            None => from_person(key.as_str(), &name, asked > 1, context.out())?,
        };
        request.entries.insert(key, Some(value));
    }
    let secret = client.change_secret(&name, &request, force).await?;
    context.show(&secret, |_| changed(&secret))?;
    Ok(Exit::Done)
}

fn changed(secret: &SecretView) -> String {
    let SecretView {
        name,
        entries,
        version,
        ..
    } = secret;
    let entries = if entries.is_empty() {
        "nothing any more".to_owned()
    } else {
        entries.join(", ")
    };
    format!("secret {name}, version {version}, has {entries}\n")
}

/// An entry as it stands on the command line.
struct Entry {
    key: EntryName,
    file: Option<PathBuf>,
}

impl Entry {
    /// What is wrong is told without what was written: it may be a value.
    fn read(text: &str) -> Result<Self, Error> {
        let (key, file) = match text.split_once('=') {
            Some((key, file)) => (key, Some(file)),
            None => (text, None),
        };
        Ok(Self {
            key: key.parse().map_err(|error: EntryError| unusable(&error))?,
            // As settings of environments name files; one that is called so is `./@name`.
            file: file.map(|file| file.strip_prefix('@').unwrap_or(file).into()),
        })
    }
}

fn unusable(error: &impl std::fmt::Display) -> Error {
    Error::Usage {
        what: format!("the name of an entry cannot be used: {error}"),
        hint: "write KEY, or KEY=FILE".to_owned(),
    }
}

pub(super) fn from_file(key: &str, file: &Path) -> Result<Secret, Error> {
    // What is no file may be a value, and is not repeated.
    let found = std::fs::metadata(file).map_err(|_| Error::Usage {
        what: format!("`{key}=` names a file, and there is no such file"),
        hint: format!(
            "a value never stands on the command line, where every user of this machine can read it; \
             write `{key}` alone and be asked for it, or `{key}=FILE`"
        ),
    })?;
    if found.is_dir() {
        return Err(Error::Directory {
            file: file.to_owned(),
        });
    }
    let value = std::fs::File::open(file).and_then(whole);
    let value = value.map_err(|cause| Error::Unreadable {
        file: file.to_owned(),
        cause,
    })?;
    bounded(value, file)
}

/// Asks a person, or reads what is piped in: that can be one value only.
pub(super) fn from_person(
    key: &str,
    name: &str,
    more: bool,
    out: &mut Out,
) -> Result<Secret, Error> {
    if let Some(answer) = out.ask_unseen(&format!("value of {name}/{key}: ")) {
        let value = Secret::from_text(answer.map_err(unread)?);
        return bounded(some(value, key)?, Path::new("-"));
    }
    let Some(input) = out.input() else {
        return Err(Error::Usage {
            what: "a value is needed, and nobody can be asked for it".to_owned(),
            hint: format!("pipe it in, or write `{key}=FILE`"),
        });
    };
    if more {
        return Err(Error::Usage {
            what: "standard input holds one value".to_owned(),
            hint: "write KEY=FILE for the other entries, or set them one by one".to_owned(),
        });
    }
    let value = without_line_end(whole(input).map_err(unread)?);
    bounded(some(value, key)?, Path::new("-"))
}

fn unread(cause: io::Error) -> Error {
    Error::Unreadable {
        file: "-".into(),
        cause,
    }
}

/// A value that is something: whoever pipes in nothing has lost something on the way.
fn some(value: Secret, key: &str) -> Result<Secret, Error> {
    if value.expose().is_empty() {
        return Err(Error::Usage {
            what: "the value is empty".to_owned(),
            hint: format!("if it shall be, write `{key}=/dev/null`"),
        });
    }
    Ok(value)
}

/// A value and one byte more, so that it is known when it is too long.
fn whole(from: impl Read) -> io::Result<Secret> {
    let limit = VALUE_BYTES_MAX + 1;
    // Of its final size from the start: memory that grows leaves copies behind.
    let mut bytes = Vec::with_capacity(limit + 1);
    let read = from
        .take(u64::try_from(limit).unwrap_or(u64::MAX))
        .read_to_end(&mut bytes);
    let value = Secret::from(bytes);
    read.map(|_| value)
}

fn bounded(value: Secret, file: &Path) -> Result<Secret, Error> {
    if value.expose().len() > VALUE_BYTES_MAX {
        return Err(Error::LongValue {
            file: file.to_owned(),
            max: VALUE_BYTES_MAX,
        });
    }
    Ok(value)
}

/// A single line without its end, which is the shell's; several lines as they are, because a
/// key without its last line end is broken.
fn without_line_end(value: Secret) -> Secret {
    let bytes = value.expose();
    let line = bytes.strip_suffix(b"\n");
    let line = line.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    match line {
        Some(line) if !line.contains(&b'\n') => Secret::from(line.to_vec()),
        Some(_) | None => value,
    }
}

async fn delete(
    Delete {
        name,
        entries,
        yes,
        force,
    }: Delete,
    client: &Client,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let secret = client.secret(&name).await?;
    if let Some(missing) = entries.iter().find(|entry| !secret.entries.contains(entry)) {
        return Err(Error::Usage {
            what: format!("secret {name} has no entry `{missing}`"),
            hint: format!("`slipway secret get-keys {name}` lists them"),
        });
    }
    let what = if entries.is_empty() {
        let entries = count(secret.entries.len(), "entry").replace("entrys", "entries");
        format!("secret {name} with {entries}")
    } else {
        format!("{} of secret {name}", entries.join(", "))
    };
    if !yes {
        match context.out().ask(&format!("remove {what}?")) {
            Some(true) => {}
            Some(false) => {
                context.out().say("nothing was removed");
                return Ok(Exit::Failed);
            }
            None => {
                return Err(Error::Usage {
                    what: "removing needs a yes, and nobody is here to give it".to_owned(),
                    hint: "say it with --yes".to_owned(),
                });
            }
        }
    }
    if entries.is_empty() {
        client.delete_secret(&name, force).await?;
        context.show(&secret, |_| format!("removed {what}\n"))?;
        return Ok(Exit::Done);
    }
    let mut request = SecretRequest::default();
    for entry in &entries {
        let key = entry
            .parse()
            .map_err(|error: EntryError| unusable(&error))?;
        request.entries.insert(key, None);
    }
    let secret = client.change_secret(&name, &request, force).await?;
    context.show(&secret, |_| changed(&secret))?;
    Ok(Exit::Done)
}

async fn rotate(wait: bool, client: &Client, context: &mut Context<'_>) -> Result<Exit, Error> {
    let mut keys = client.rotate_keys().await?;
    let mut told = None;
    let mut still = 0;
    while wait && keys.keys.len() > 1 && keys.closed.is_none() && still < STILL_MAX {
        if told == Some(keys.left) {
            still += 1;
        } else {
            still = 0;
            told = Some(keys.left);
            context.out().say(&left(&keys));
        }
        tokio::time::sleep(ASK_EVERY).await;
        keys = client.keys().await?;
    }
    context.show(&keys, |now| view::keys(&keys, now))?;
    if keys.keys.len() > 1 {
        context.out().say(&left(&keys));
    }
    if still == STILL_MAX {
        context.out().say(
            "nothing has moved for a while; the server's log says which values cannot be opened",
        );
    }
    Ok(if wait && keys.keys.len() > 1 {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn left(keys: &KeysView) -> String {
    let left = usize::try_from(keys.left).unwrap_or(usize::MAX);
    format!(
        "{} left to be sealed with the new key",
        count(left, "value")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_loses_its_end_and_several_keep_it() {
        for (given, kept) in [
            ("", ""),
            ("\n", ""),
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n\n"),
            ("a\nb\n", "a\nb\n"),
        ] {
            let value = without_line_end(Secret::from_text(given.to_owned()));
            assert_eq!(value.expose_text(), Some(kept), "{given:?}");
        }
    }
}
