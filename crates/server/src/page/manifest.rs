//! One manifest: what was declared, and where its clusters stand.

use askama::Template;
use axum::extract::State;
use model::name::Name;
use plan::{Phase, Summary};
use serde::Deserialize;

use super::signs::{Bar, Sign, Stamp};
use super::{Frame, Shown, render};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{Query, Within};
use crate::problem::Problem;

/// What is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct ManifestQuery {
    fragment: Option<String>,
}

#[derive(Template)]
#[template(path = "manifest.html", blocks = ["main"])]
struct Page {
    frame: Frame,
    name: Name,
    state: Sign,
    deleted: bool,
    generation: u64,
    author: String,
    accepted: Stamp,
    clusters: Vec<Line>,
    text: String,
}

/// One of its clusters.
struct Line {
    name: Name,
    state: Sign,
    control: Bar,
    compute: Bar,
    message: String,
}

impl From<(Name, Summary)> for Line {
    fn from((name, summary): (Name, Summary)) -> Self {
        Self {
            name,
            state: summary.phase.into(),
            control: summary.control.into(),
            compute: summary.compute.into(),
            message: summary.message,
        }
    }
}

/// Shows a manifest.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    named: Result<Within<Name>, Problem>,
    query: Result<Query<ManifestQuery>, Problem>,
) -> Shown {
    let (Within(project, name), Query(query)) = (named?, query?);
    let now = app.now();
    let frame = Frame::new(&app, caller, &project, query.fragment.is_some()).await?;
    let row = app.store().manifest(&project, &name).await?;
    let row = row.ok_or_else(|| Problem::missing("manifest", &name))?;
    let page = Page {
        frame,
        name: row.name,
        state: Phase::of_manifest(row.clusters.iter().map(|(_, summary)| summary.phase)).into(),
        deleted: row.deleted,
        generation: row.generation.0,
        author: row.author,
        accepted: Stamp::new(row.created_at, now),
        clusters: row.clusters.into_iter().map(Line::from).collect(),
        text: row.text,
    };
    if query.fragment.is_some() {
        render(&page.as_main())
    } else {
        render(&page)
    }
}
