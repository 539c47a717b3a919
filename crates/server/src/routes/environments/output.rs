//! What the scripts of actions print, as a piece or line by line as it is printed.
//!
//! Lines make no events, so a stream looks for them: twice a second while the action runs, and not
//! at all while it does not. That an action begins or ends is an event.

use std::time::Duration;

use api::task::{END, LINE};
use api::{OutputEnd, OutputView};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use model::environment::EnvironmentName;
use model::environment::action::State as Stand;
use model::id::ActionId;
use model::name::Name;
use serde::Deserialize;
use store::{ActionRow, OutputLine};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use super::reading::find_action;
use crate::app::App;
use crate::environments;
use crate::extract::{self, Query, Within};
use crate::problem::Problem;
use crate::streams::{self, Kind, Seat, Source};

/// How often a stream looks for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Lines read at once by a stream.
const READ: u32 = 500;

/// Which piece of the output.
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
    /// Whether to follow lines as they are printed; so does `Accept: text/event-stream`.
    stream: Option<bool>,
}

/// What the script of an action printed, on both streams, oldest first; with `stream`, as it is
/// printed.
///
/// In a stream each line is a `line`, whose id is its place, and the last word is an `end`, after
/// which nothing will be printed. It resumes after the line of `Last-Event-ID`, or of `after`. A
/// place that the output has not reached is refused.
#[utoipa::path(
    get, path = "/environments/{name}/actions/{id}/log", operation_id = "getEnvironmentActionLog", tag = "environments",
    params(LogQuery, ("Last-Event-ID" = Option<u64>, Header, description = "the last line a stream has shown")),
    responses((status = 200, description = "a piece of the output, or a stream", content(
        (OutputView = "application/json"),
        (serde_json::Value = "text/event-stream"),
    ))),
)]
pub(crate) async fn log(
    State(app): State<App>,
    Within(project, (name, id)): Within<(EnvironmentName, ActionId)>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = extract::limit(query.limit)?;
    let after = streams::place(query.after.as_deref())?;
    let last = streams::last_event_id(&headers)?;
    let action = find_action(&app, &project, &name, id).await?;
    if streams::wanted(query.stream, &headers) {
        let (parameter, after) = match (last, after) {
            (Some(last), _) => ("Last-Event-ID", last),
            (None, after) => ("after", after.unwrap_or(0)),
        };
        reached(&app, (&project, id), parameter, after).await?;
        let seat = app.seat(Kind::Log)?;
        let follower = Follower::new(app, project, &action, after, seat);
        return Ok(streams::answer(follower));
    }
    let after = after.unwrap_or(0);
    let lines = lines(&app, (&project, id), after, limit).await?;
    if lines.is_empty() {
        reached(&app, (&project, id), "after", after).await?;
    }
    let next = lines.last().map_or(after, |line| line.seq);
    let lines = lines.into_iter().map(environments::line).collect();
    Ok(Json(OutputView { lines, next }).into_response())
}

/// Lines of an action that is there.
async fn lines(
    app: &App,
    (project, id): (&Name, ActionId),
    after: u64,
    limit: u32,
) -> Result<Vec<OutputLine>, store::Error> {
    let read = app.store().action_output(project, id, after, limit).await?;
    Ok(read.unwrap_or_default())
}

/// Refuses a place that the output has not reached: who is there has seen another one.
async fn reached(
    app: &App,
    (project, id): (&Name, ActionId),
    parameter: &str,
    place: u64,
) -> Result<(), Problem> {
    let Some(before) = place.checked_sub(1) else {
        return Ok(());
    };
    if lines(app, (project, id), before, 1).await?.is_empty() {
        let detail = format!("what {id} printed ends before line {place}");
        return Err(Problem::place(parameter, detail));
    }
    Ok(())
}

/// One client that follows output.
struct Follower {
    app: App,
    project: Name,
    action: ActionId,
    after: u64,
    /// How the action stood when `seen` was the newest event.
    state: Stand,
    seen: Option<u64>,
    newest: watch::Receiver<u64>,
    /// Before when it need not look again; absent when there is more to read.
    rests_until: Option<Instant>,
    ended: bool,
    _seat: Seat,
}

impl Follower {
    fn new(app: App, project: Name, action: &ActionRow, after: u64, seat: Seat) -> Self {
        Self {
            newest: app.store().subscribe(),
            app,
            project,
            action: action.id,
            after,
            state: action.state,
            seen: None,
            rests_until: None,
            ended: false,
            _seat: seat,
        }
    }

    /// Waits until there may be something new; false when the server stops first.
    async fn due(&mut self) -> bool {
        let seen = self.seen;
        let printed = self.state == Stand::Running;
        let waiting = async {
            let Some(until) = self.rests_until else {
                return true;
            };
            sleep_until(until).await;
            // The store outlives us: its sender is never gone while we wait.
            printed || self.newest.wait_for(|id| Some(*id) != seen).await.is_ok()
        };
        tokio::select! {
            biased;
            () = self.app.stop().cancelled() => false,
            due = waiting => due,
        }
    }

    /// Looks at the action, then at its output: what an ended one printed is there by then.
    async fn look(&mut self) -> Option<Bytes> {
        let newest = *self.newest.borrow();
        if self.seen != Some(newest) {
            let found = self.app.store().action(&self.project, self.action).await;
            self.state = found.ok()??.state;
            self.seen = Some(newest);
        }
        let of = (&self.project, self.action);
        let read = lines(&self.app, of, self.after, READ).await.ok()?;
        let full = u32::try_from(read.len()).is_ok_and(|len| len >= READ);
        let mut frames = Vec::new();
        for line in read.into_iter().map(environments::line) {
            streams::frame(&mut frames, Some(line.seq), LINE, &line);
            self.after = line.seq;
        }
        self.rests_until = (!full).then(|| Instant::now() + LOOK_EVERY);
        self.ended = !full && self.state.is_ended();
        if self.ended {
            let (state, next) = (self.state.into(), self.after);
            streams::frame(&mut frames, None, END, &OutputEnd { state, next });
        }
        Some(frames.into())
    }
}

impl Source for Follower {
    /// None when the action has ended, the server stops or the store cannot be read; but for the
    /// first, the client comes back by itself with the place it has.
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
