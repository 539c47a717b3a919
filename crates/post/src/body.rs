//! What a webhook is told: one document, the same for everything that happens.

use driver::deliver::Parcel;
use model::environment::link::Link;
use model::environment::notify::{About, Action, Message};
use model::environment::status::Status;
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    id: String,
    kind: &'static str,
    at: String,
    project: &'a str,
    because: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Done<'a>>,
}

/// The environment that it is about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Environment<'a> {
    id: String,
    name: &'a str,
    status: &'static str,
    before: Option<&'static str>,
    tag: Option<&'a str>,
    owner: &'a str,
    labels: &'a BTreeMap<String, String>,
    links: &'a [Link],
    expires_at: Option<String>,
}

/// What was done to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done<'a> {
    id: String,
    deed: &'static str,
    error: &'a str,
}

/// The text of a message.
pub(crate) fn of(parcel: &Parcel, message: &Message) -> String {
    let Message {
        occasion,
        at,
        because,
        environment,
        action,
    } = message;
    let body = Body {
        id: parcel.id.to_string(),
        kind: occasion.as_str(),
        at: at.to_rfc3339(),
        project: parcel.project.as_str(),
        because,
        environment: environment.as_ref().map(about),
        action: action.as_ref().map(done),
    };
    // Nothing in it can fail to be written.
    serde_json::to_string(&body).unwrap_or_default()
}

fn about(about: &About) -> Environment<'_> {
    let About {
        id,
        name,
        status,
        before,
        tag,
        owner,
        labels,
        links,
        expires_at,
    } = about;
    Environment {
        id: id.to_string(),
        name: name.as_str(),
        status: status.map_or("gone", Status::as_str),
        before: before.map(Status::as_str),
        tag: tag.as_deref(),
        owner,
        labels,
        links,
        expires_at: expires_at.map(model::time::Timestamp::to_rfc3339),
    }
}

fn done(action: &Action) -> Done<'_> {
    let Action { id, deed, error } = action;
    Done {
        id: id.to_string(),
        deed: deed.as_str(),
        error,
    }
}
