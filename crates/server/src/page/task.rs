//! One task: where it stands, and what its attempts wrote.

use askama::Template;
use axum::extract::State;
use model::id::TaskId;
use model::name::Name;
use model::task::State as Stand;
use model::time::Timestamp;
use serde::Deserialize;
use store::TaskRow;

use super::signs::{Sign, Stamp, to_the_second};
use super::{Frame, Shown, assets, render};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{Query, Within};
use crate::problem::Problem;
use crate::routes::tasks::find;

/// Lines of the log on one page.
const LINES: u32 = 500;

/// What is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct TaskQuery {
    after: Option<u64>,
    fragment: Option<String>,
}

#[derive(Template)]
#[template(path = "task.html", blocks = ["main"])]
struct Page {
    frame: Frame,
    task: Line,
    cluster: Name,
    effect: &'static str,
    worker: Option<String>,
    made: Stamp,
    due: Option<String>,
    generation: u64,
    lines: Vec<Written>,
    next: Option<String>,
    /// Where further lines come from; absent when there will be none on this page.
    follow: Option<String>,
    log_script: &'static str,
}

/// One line of the log.
struct Written {
    at: Stamp,
    attempt: u32,
    text: String,
}

/// One task in one line.
pub(super) struct Line {
    pub(super) id: TaskId,
    pub(super) kind: &'static str,
    pub(super) machine: Name,
    pub(super) state: Sign,
    pub(super) attempts: u32,
    pub(super) error: Option<String>,
    pub(super) changed: Stamp,
}

impl Line {
    pub(super) fn new(row: TaskRow, now: Timestamp) -> Self {
        Self {
            id: row.task.id,
            kind: row.task.action.kind().as_str(),
            machine: row.task.machine.name,
            state: row.state.into(),
            attempts: row.attempts,
            error: row.error,
            changed: Stamp::new(row.updated_at, now),
        }
    }
}

/// Shows a task.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    named: Result<Within<TaskId>, Problem>,
    query: Result<Query<TaskQuery>, Problem>,
) -> Shown {
    let (Within(project, id), Query(query)) = (named?, query?);
    let now = app.now();
    let frame = Frame::new(&app, caller, &project, query.fragment.is_some()).await?;
    let row = find(&app, &project, id).await?;
    let after = query.after.unwrap_or(0);
    let lines = app.store().task_log(id, after, LINES).await?;
    let full = u32::try_from(lines.len()).is_ok_and(|len| len == LINES);
    let next = lines
        .last()
        .filter(|_| full)
        .map(|line| format!("{}/tasks/{id}?after={}", frame.base, line.seq));
    let last = lines.last().map_or(after, |line| line.seq);
    let follows = next.is_none() && !api::TaskState::from(row.state).ended();
    let follow = follows
        .then(|| format!("/api/v1/projects/{project}/tasks/{id}/log?stream=true&after={last}"));
    let written = |line: store::LogLine| Written {
        at: Stamp::new(line.at, now),
        attempt: line.attempt,
        text: line.text,
    };
    let page = Page {
        frame,
        cluster: row.task.cluster_name.clone(),
        effect: row.task.action.kind().effect().as_str(),
        worker: row.worker.clone(),
        made: Stamp::new(row.created_at, now),
        due: (row.state == Stand::Waiting).then(|| to_the_second(row.not_before)),
        generation: row.task.generation.0,
        lines: lines.into_iter().map(written).collect(),
        next,
        follow,
        log_script: assets::log_script(),
        task: Line::new(row, now),
    };
    if query.fragment.is_some() {
        render(&page.as_main())
    } else {
        render(&page)
    }
}
