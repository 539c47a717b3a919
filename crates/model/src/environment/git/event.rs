//! What git services tell of requests: three ways to write it, and one to read it.
//!
//! Whatever happened, a service tells how the request is afterwards. That is what is read: whoever
//! missed an event, or was told twice, knows the same as everybody else after the next one.

use super::{Repository, Service};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest name of a branch, label or person.
const WORD_LEN_MAX: usize = 255;

/// The longest address.
const URL_LEN_MAX: usize = 2_048;

/// The most labels that are read.
const LABELS_MAX: usize = 100;

/// How a request is, as its service told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Of which repository.
    pub repository: Repository,
    /// Its number there.
    pub request: u64,
    /// What the service says happened, in its word.
    pub action: String,
    /// Whether it is open; merged and closed are alike.
    pub open: bool,
    /// Its branch.
    pub branch: String,
    /// The newest commit of that.
    pub sha: String,
    /// The commit before, where the event is a push and tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Who opened it, where the service tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Whether its branch is in a copy of the repository.
    pub fork: bool,
    /// Where people read it.
    pub url: String,
    /// When it became so, by the clock of the service.
    pub at: Timestamp,
}

/// What was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// How a request is.
    Request(Box<Event>),
    /// Something else, and what.
    Other(String),
}

/// Why nobody can tell what was told.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unread {
    /// It is not JSON.
    #[error("it is not JSON: {why}")]
    Json {
        /// As the parser says it, which repeats nothing of it.
        why: String,
    },
    /// Something is missing, or something else than it should be.
    #[error("`{place}` is missing, or is not {wanted}")]
    Field {
        /// Where.
        place: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
}

/// Reads what a service told; `kind` is what its header says it is about.
pub fn read(service: Service, kind: &str, body: &[u8]) -> Result<Told, Unread> {
    let about = match service {
        Service::Github | Service::Gitea => "pull_request",
        Service::Gitlab => "Merge Request Hook",
    };
    if kind != about {
        let kind: String = kind.chars().filter(|c| !c.is_control()).take(60).collect();
        return Ok(Told::Other(kind));
    }
    let tree: Value = serde_json::from_slice(body).map_err(|error| Unread::Json {
        why: format!("see line {} column {}", error.line(), error.column()),
    })?;
    let event = match service {
        Service::Github | Service::Gitea => pull(&tree),
        Service::Gitlab => merge(&tree),
    };
    event.map(Box::new).map(Told::Request)
}

/// A pull request of GitHub, or of Gitea, which writes the same.
fn pull(tree: &Value) -> Result<Event, Unread> {
    let of = |pointer| tree.pointer(pointer);
    let full = |pointer| of(pointer).and_then(Value::as_str);
    // Of a copy that was removed nobody knows whose it was.
    let head = full("/pull_request/head/repo/full_name");
    let base = full("/pull_request/base/repo/full_name").or(full("/repository/full_name"));
    let fork = match (head, base) {
        (Some(head), Some(base)) => !head.eq_ignore_ascii_case(base),
        (_, _) => true,
    };
    let labels = of("/pull_request/labels").and_then(Value::as_array);
    Ok(Event {
        repository: repository("repository.full_name", full("/repository/full_name"))?,
        request: number("pull_request.number", of("/pull_request/number"))?,
        action: word("action", full("/action"))?,
        open: word("pull_request.state", full("/pull_request/state"))? == "open",
        branch: word("pull_request.head.ref", full("/pull_request/head/ref"))?,
        sha: sha("pull_request.head.sha", full("/pull_request/head/sha"))?,
        before: sha("before", full("/before")).ok(),
        author: word("pull_request.user.login", full("/pull_request/user/login")).ok(),
        labels: names(labels, "name"),
        fork,
        url: url("pull_request.html_url", full("/pull_request/html_url"))?,
        at: time("pull_request.updated_at", full("/pull_request/updated_at"))?,
    })
}

/// A merge request of GitLab.
fn merge(tree: &Value) -> Result<Event, Unread> {
    let of = |pointer| tree.pointer(pointer);
    let text = |pointer| of(pointer).and_then(Value::as_str);
    let id = |pointer| of(pointer).and_then(Value::as_u64);
    let (from, to) = (
        id("/object_attributes/source_project_id"),
        id("/object_attributes/target_project_id"),
    );
    // Who did something is told, and of whom it is only by number: at the first event they are one.
    let theirs = id("/user/id").is_some() && id("/user/id") == id("/object_attributes/author_id");
    let author = text("/user/username").filter(|_| theirs);
    let labels = of("/labels").or(of("/object_attributes/labels"));
    let path = text("/project/path_with_namespace");
    let last = text("/object_attributes/last_commit/id");
    // One that is being merged is locked meanwhile.
    let state = word("object_attributes.state", text("/object_attributes/state"))?;
    Ok(Event {
        repository: repository("project.path_with_namespace", path)?,
        request: number("object_attributes.iid", of("/object_attributes/iid"))?,
        action: word(
            "object_attributes.action",
            text("/object_attributes/action"),
        )
        .unwrap_or_else(|_| "test".to_owned()),
        open: matches!(state.as_str(), "opened" | "locked"),
        branch: word(
            "object_attributes.source_branch",
            text("/object_attributes/source_branch"),
        )?,
        sha: sha("object_attributes.last_commit.id", last)?,
        before: sha(
            "object_attributes.oldrev",
            text("/object_attributes/oldrev"),
        )
        .ok(),
        author: word("user.username", author).ok(),
        labels: names(labels.and_then(Value::as_array), "title"),
        fork: from.is_none() || from != to,
        url: url("object_attributes.url", text("/object_attributes/url"))?,
        at: time(
            "object_attributes.updated_at",
            text("/object_attributes/updated_at"),
        )?,
    })
}

fn names(found: Option<&Vec<Value>>, field: &str) -> Vec<String> {
    let found = found.into_iter().flatten().take(LABELS_MAX);
    let found = found.filter_map(|label| label.get(field).and_then(Value::as_str));
    found.filter_map(|name| word("", Some(name)).ok()).collect()
}

fn word(place: &'static str, found: Option<&str>) -> Result<String, Unread> {
    let fits = |text: &&str| {
        (1..=WORD_LEN_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    let wanted = "a short text";
    let found = found.filter(fits).ok_or(Unread::Field { place, wanted })?;
    Ok(found.to_owned())
}

fn repository(place: &'static str, found: Option<&str>) -> Result<Repository, Unread> {
    let wanted = "the path of a repository";
    let found = found.and_then(|text| text.parse().ok());
    found.ok_or(Unread::Field { place, wanted })
}

fn number(place: &'static str, found: Option<&Value>) -> Result<u64, Unread> {
    let wanted = "a number";
    // What is stored is signed.
    let fits = |number: &u64| i64::try_from(*number).is_ok();
    let found = found.and_then(Value::as_u64).filter(fits);
    found.ok_or(Unread::Field { place, wanted })
}

fn sha(place: &'static str, found: Option<&str>) -> Result<String, Unread> {
    let digits = |text: &&str| {
        matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let wanted = "a commit";
    let found = found
        .filter(digits)
        .ok_or(Unread::Field { place, wanted })?;
    Ok(found.to_ascii_lowercase())
}

fn url(place: &'static str, found: Option<&str>) -> Result<String, Unread> {
    let fits = |text: &&str| {
        let web = text.starts_with("https://") || text.starts_with("http://");
        let plain = !text.chars().any(|c| c.is_control() || c.is_whitespace());
        web && plain && text.len() <= URL_LEN_MAX
    };
    let wanted = "an address";
    let found = found.filter(fits).ok_or(Unread::Field { place, wanted })?;
    Ok(found.to_owned())
}

/// RFC 3339, or as GitLab wrote times for long: `2026-03-07 02:00:00 UTC`.
fn time(place: &'static str, found: Option<&str>) -> Result<Timestamp, Unread> {
    let wanted = "a time";
    let found = found.ok_or(Unread::Field { place, wanted })?;
    let plain = found.strip_suffix(" UTC").map(|text| format!("{text}Z"));
    let text = plain.as_deref().unwrap_or(found);
    let time = text.parse::<jiff::Timestamp>();
    let time = time.map_err(|_| Unread::Field { place, wanted })?;
    Ok(Timestamp::from_millis(time.as_millisecond()))
}
