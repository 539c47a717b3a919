//! What the attempts at a task wrote, as a piece or line by line as it is written.
//!
//! Lines make no events, so a stream looks for them: twice a second while the task runs,
//! and not at all while it does not, because only an attempt writes. That a task starts or
//! ends is an event.

use std::time::Duration;

use api::task::{END, LINE};
use api::{LogEnd, LogView};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use model::id::TaskId;
use model::name::Name;
use model::task::State as Stand;
use serde::Deserialize;
use store::TaskRow;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use super::tasks::find;
use crate::app::App;
use crate::extract::{self, Query, Within};
use crate::problem::Problem;
use crate::streams::{self, Kind, Seat, Source};
use crate::view;

/// How often a stream looks for new lines. Workers hand theirs over once a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Lines read at once by a stream.
const READ: u32 = 500;

/// Which piece of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// The line after which to begin: the `next` of the piece before.
    #[param(value_type = Option<u64>, minimum = 0, default = 0)]
    after: Option<String>,
    /// How many lines at most; a stream tells all.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Whether to follow lines as they are written; so does `Accept: text/event-stream`.
    stream: Option<bool>,
}

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
    let limit = extract::limit(query.limit)?;
    let after = streams::place(query.after.as_deref())?;
    let last = streams::last_event_id(&headers)?;
    let task = find(&app, &project, id).await?;
    if streams::wanted(query.stream, &headers) {
        let (parameter, after) = match (last, after) {
            (Some(last), _) => ("Last-Event-ID", last),
            (None, after) => ("after", after.unwrap_or(0)),
        };
        reached(&app, id, parameter, after).await?;
        let seat = app.seat(Kind::Log)?;
        return Ok(streams::answer(Follower::new(
            app, project, &task, after, seat,
        )));
    }
    let after = after.unwrap_or(0);
    let lines = app.store().task_log(id, after, limit).await?;
    if lines.is_empty() {
        reached(&app, id, "after", after).await?;
    }
    let next = lines.last().map_or(after, |line| line.seq);
    let lines = view::lines(after, lines);
    Ok(Json(LogView { lines, next }).into_response())
}

/// Refuses a place that the log has not reached: who is there has seen another log.
async fn reached(app: &App, task: TaskId, parameter: &str, place: u64) -> Result<(), Problem> {
    let Some(before) = place.checked_sub(1) else {
        return Ok(());
    };
    let there = app.store().task_log(task, before, 1).await?;
    if there.is_empty() {
        let detail = format!("the log of {task} ends before line {place}");
        return Err(Problem::place(parameter, detail));
    }
    Ok(())
}

/// One client that follows a log.
struct Follower {
    app: App,
    project: Name,
    task: TaskId,
    after: u64,
    /// How the task stood when `seen` was the newest event.
    state: Stand,
    seen: Option<u64>,
    newest: watch::Receiver<u64>,
    /// Before when it need not look again; absent when there is more to read.
    rests_until: Option<Instant>,
    ended: bool,
    _seat: Seat,
}

impl Follower {
    fn new(app: App, project: Name, task: &TaskRow, after: u64, seat: Seat) -> Self {
        Self {
            newest: app.store().subscribe(),
            app,
            project,
            task: task.task.id,
            after,
            state: task.state,
            seen: None,
            rests_until: None,
            ended: false,
            _seat: seat,
        }
    }

    /// Waits until there may be something new; false when the server stops first.
    async fn due(&mut self) -> bool {
        let seen = self.seen;
        let written = self.state == Stand::Running;
        let waiting = async {
            let Some(until) = self.rests_until else {
                return true;
            };
            sleep_until(until).await;
            // The store outlives us: its sender is never gone while we wait.
            written || self.newest.wait_for(|id| Some(*id) != seen).await.is_ok()
        };
        tokio::select! {
            biased;
            () = self.app.stop().cancelled() => false,
            due = waiting => due,
        }
    }

    /// Looks at the task, then at its log: what an ended task wrote is there by then.
    async fn look(&mut self) -> Option<Bytes> {
        let newest = *self.newest.borrow();
        if self.seen != Some(newest) {
            let found = self.app.store().task(&self.project, self.task).await;
            self.state = found.ok()??.state;
            self.seen = Some(newest);
        }
        let read = self.app.store().task_log(self.task, self.after, READ).await;
        let read = read.ok()?;
        let full = u32::try_from(read.len()).is_ok_and(|len| len >= READ);
        let mut frames = Vec::new();
        for line in view::lines(self.after, read) {
            streams::frame(&mut frames, Some(line.seq), LINE, &line);
            self.after = line.seq;
        }
        let state = api::TaskState::from(self.state);
        self.rests_until = (!full).then(|| Instant::now() + LOOK_EVERY);
        self.ended = !full && state.ended();
        if self.ended {
            let next = self.after;
            streams::frame(&mut frames, None, END, &LogEnd { state, next });
        }
        Some(frames.into())
    }
}

impl Source for Follower {
    /// None when the task has ended, the server stops or the store cannot be read; but for
    /// the first, the client comes back by itself with the place it has.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.ended || !self.due().await {
                return None;
            }
            let frames = self.look().await?;
            if !frames.is_empty() {
                return Some(frames);
            }
        }
    }
}
