//! What the attempts at a task wrote.

use api::{LogEnd, LogLine, LogView};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use model::id::TaskId;
use model::name::Name;
use model::task::State as Stand;
use serde::Serialize;

use super::tasks::find;
use crate::app::App;
use crate::extract::{Query, Within};
use crate::problem::Problem;
use crate::streams::lines::{self, Asked, LogQuery, Written};
use crate::view;

/// What the attempts at a task wrote, oldest first; with `stream`, as it is written.
///
/// In a stream each line is a `line`, whose id is its place, and the last word is an `end`,
/// after which nothing will be written. It resumes after the line of `Last-Event-ID`, or of
/// `after`. A place that the log has not reached is refused.
#[utoipa::path(
    get, path = "/tasks/{id}/log", operation_id = "getTaskLog", tag = "tasks",
    params(LogQuery, ("Last-Event-ID" = Option<u64>, Header, description = "the last line a stream has shown")),
    responses((status = 200, description = "a piece of the log, or a stream", content(
        (LogView = "application/json"),
        (serde_json::Value = "text/event-stream"),
    ))),
)]
pub(crate) async fn log(
    State(app): State<App>,
    Within(project, id): Within<TaskId>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asked = Asked::of(&query, &headers)?;
    let task = find(&app, &project, id).await?;
    let log = Log { project, task: id };
    lines::answer(app, (log, task.state), asked).await
}

/// The log of a task.
struct Log {
    project: Name,
    task: TaskId,
}

impl Written for Log {
    type Line = LogLine;
    type Stand = Stand;

    async fn lines(&self, app: &App, after: u64, limit: u32) -> Result<Vec<LogLine>, store::Error> {
        let read = app.store().task_log(self.task, after, limit).await?;
        Ok(view::lines(after, read))
    }

    async fn stand(&self, app: &App) -> Option<Stand> {
        let found = app.store().task(&self.project, self.task).await;
        Some(found.ok()??.state)
    }

    fn place(line: &LogLine) -> u64 {
        line.seq
    }

    fn is_writing(stand: Stand) -> bool {
        stand == Stand::Running
    }

    fn piece(lines: Vec<LogLine>, next: u64) -> impl Serialize {
        LogView { lines, next }
    }

    fn end(stand: Stand, next: u64) -> Option<impl Serialize> {
        let state = api::TaskState::from(stand);
        state.ended().then_some(LogEnd { state, next })
    }

    fn short_of(&self, place: u64) -> String {
        format!("the log of {} ends before line {place}", self.task)
    }
}
