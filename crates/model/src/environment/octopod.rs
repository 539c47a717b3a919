//! Environments as the database of Octopod has them, and what becomes of them here.
//!
//! Whatever cannot be taken is told with its reason, and keeps nothing else: a name that is none
//! here leaves its environment behind, a setting that cannot be leaves only itself behind.

use super::config::{Edit, Edits, Key, Level, Value as Text};
use super::link::Link;
use super::status::{Deed, Status};
use super::taken::{Taken, TakenAction, bounded};
use crate::time::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// A row of the table `deployments`; what may not be missing there may be missing here, because
/// nobody knows who wrote to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    /// Its number.
    pub id: i64,
    /// What it is called.
    pub name: String,
    /// How it is, in Octopod's words.
    pub status: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it came.
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// Overrides of both levels, as JSON.
    pub overrides: Overrides,
    /// Links, as JSON.
    pub links: Option<String>,
}

/// Overrides of both levels, each as JSON: `[["key", {"tag": "ValueAdded", "contents": "v"}], …]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Of what the application is given.
    pub application: Option<String>,
    /// Of how it is deployed.
    pub deployment: Option<String>,
}

/// A row of the table `deployment_logs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: i64,
    /// The number of the deployment that it is about.
    pub deployment: i64,
    /// What was done; old rows say nothing, or other words.
    pub action: Option<String>,
    /// The status of the script.
    pub exit: i32,
    /// When the script ended.
    pub at: Option<Timestamp>,
    /// How long it took.
    pub took: Duration,
    /// Overrides at that time.
    pub overrides: Overrides,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Something that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// What, as the subject of a sentence.
    pub what: String,
    /// Why, as its clause.
    pub why: String,
}

/// Who did what is in Octopod's log: nobody wrote down more.
pub const AUTHOR: &str = "octopod";

/// The most of a foreign word that is repeated to people.
const SHOWN_MAX: usize = 64;

/// The environment that a deployment becomes, without its log, and what of it cannot be taken.
pub fn environment(row: &Deployment, now: Timestamp) -> (Option<Taken>, Vec<Left>) {
    let subject = format!("environment `{}`", shown(&row.name));
    let mut left = Vec::new();
    let mut leave = |why: String| {
        let what = subject.clone();
        left.push(Left { what, why });
    };
    let name = match row.name.parse() {
        Ok(name) => name,
        Err(error) => {
            leave(format!("{error}"));
            return (None, left);
        }
    };
    let Some(status) = status(&row.status) else {
        leave(format!(
            "its status `{}` is none that is known",
            shown(&row.status)
        ));
        return (None, left);
    };
    let edits = edits(&row.overrides, &mut leave);
    let links = links(row.links.as_deref(), &mut leave);
    let created_at = sensible(row.created_at, now).unwrap_or(now);
    let updated_at = sensible(row.updated_at, now).unwrap_or(created_at);
    let since = sensible(row.since, now).unwrap_or(updated_at);
    // One that came back keeps the date at which it last rested; here as there.
    let archived_at = sensible(row.archived_at, now);
    let taken = Taken {
        name,
        origin: format!("octopod/{}/{}", row.id, created_at.as_millis()),
        status,
        since,
        created_at,
        updated_at,
        archived_at: archived_at.or((status == Status::Archived).then_some(since)),
        edits,
        links,
        actions: Vec::new(),
    };
    (Some(taken), left)
}

/// The action that an entry of the log of an environment becomes, and what of it cannot be taken.
pub fn action(name: &str, row: Entry, now: Timestamp) -> (Option<TakenAction>, Vec<Left>) {
    let what = format!("entry {} in the log of `{}`", row.id, shown(name));
    let mut left = Vec::new();
    let mut leave = |why: String| {
        let what = what.clone();
        left.push(Left { what, why });
    };
    let said = row.action.as_deref().unwrap_or_default();
    let Some(deed) = deed(said) else {
        leave(match &row.action {
            Some(action) => format!("its action `{}` is none that is known", shown(action)),
            None => "it does not say what was done".to_owned(),
        });
        return (None, left);
    };
    let Ok(number) = u64::try_from(row.id) else {
        leave("its number is negative".to_owned());
        return (None, left);
    };
    let Some(ended_at) = sensible(row.at, now) else {
        leave("nobody knows when it was".to_owned());
        return (None, left);
    };
    let edits = edits(&row.overrides, &mut leave);
    let action = TakenAction {
        number,
        deed,
        author: AUTHOR.to_owned(),
        exit: row.exit,
        ended_at,
        took: row.took,
        edits,
        stdout: bounded(row.stdout),
        stderr: bounded(row.stderr),
    };
    (Some(action), left)
}

/// What Octopod's word for a status means here.
fn status(word: &str) -> Option<Status> {
    Status::ALL
        .into_iter()
        .find(|status| status.to_scripts() == word)
}

/// What Octopod's word for an action means here.
fn deed(word: &str) -> Option<Deed> {
    Some(match word {
        "create" => Deed::Create,
        "update" => Deed::Update,
        "archive" => Deed::Archive,
        "restore" => Deed::Restore,
        "cleanup" => Deed::Cleanup,
        _ => return None,
    })
}

/// The last day that a four-digit year has, and some; later dates are nobody's.
const END: Timestamp = Timestamp::from_millis(253_402_200_000_000);

/// A point in time that makes sense: not before there were computers, and not in the future,
/// where it would keep whoever counts from it waiting.
fn sensible(at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let at = at.filter(|at| (Timestamp::from_millis(0)..END).contains(at))?;
    Some(at.min(now))
}

fn edits(overrides: &Overrides, leave: &mut impl FnMut(String)) -> Edits {
    let mut edits = Edits::default();
    for level in Level::ALL {
        let text = match level {
            Level::Application => &overrides.application,
            Level::Deployment => &overrides.deployment,
        };
        let Some(text) = text else { continue };
        let word = level.as_str();
        let Ok(Value::Array(pairs)) = serde_json::from_str(text) else {
            leave(format!(
                "its {word} overrides are no list, and are left out"
            ));
            continue;
        };
        for pair in pairs {
            match edit(&pair) {
                // Of keys that are told twice the first counts, there as here.
                Ok((key, edit)) => drop(edits.of_mut(level).entry(key).or_insert(edit)),
                Err(why) => leave(format!("one of its {word} overrides is left out: {why}")),
            }
        }
    }
    edits
}

fn edit(pair: &Value) -> Result<(Key, Edit), String> {
    let strange = || "it is no pair of a key and a value".to_owned();
    let [Value::String(key), value] = pair.as_array().ok_or_else(strange)?.as_slice() else {
        return Err(strange());
    };
    let key = Key::lenient(key).map_err(|error| error.to_string())?;
    let contents = value.get("contents").and_then(Value::as_str);
    match (value.get("tag").and_then(Value::as_str), contents) {
        (Some("ValueAdded"), Some(text)) => {
            let text = text.parse::<Text>();
            let text = text.map_err(|error| format!("`{key}`: {error}"))?;
            Ok((key, Edit::Set(text)))
        }
        (Some("ValueDeleted"), _) => Ok((key, Edit::Removed)),
        (_, _) => Err(format!("`{key}` is neither added nor deleted")),
    }
}

fn links(text: Option<&str>, leave: &mut impl FnMut(String)) -> Vec<Link> {
    let Some(text) = text else { return Vec::new() };
    let Ok(Value::Array(items)) = serde_json::from_str(text) else {
        leave("its links are no list, and are left out".to_owned());
        return Vec::new();
    };
    let mut links = Vec::new();
    for item in items {
        let word = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
        let fits = |text: &String| {
            text.len() <= Taken::LINK_LEN_MAX && !text.chars().any(char::is_control)
        };
        let name = word("name").unwrap_or_default();
        match word("link").filter(|url| fits(url) && fits(&name)) {
            Some(url) if links.len() < Taken::LINKS_MAX => links.push(Link { name, url }),
            Some(_) | None => leave("one of its links is left out".to_owned()),
        }
    }
    links
}

/// A foreign word as people are shown it.
fn shown(text: &str) -> String {
    let plain = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut shown: String = plain.take(SHOWN_MAX).collect();
    if text.chars().count() > SHOWN_MAX {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
