//! What the scripts of actions print.

use api::{OutputEnd, OutputLineView, OutputView};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use model::environment::EnvironmentName;
use model::environment::action::State as Stand;
use model::id::ActionId;
use model::name::Name;
use serde::Serialize;

use super::reading::find_action;
use crate::app::App;
use crate::environments;
use crate::extract::{Query, Within};
use crate::problem::Problem;
use crate::streams::lines::{self, Asked, LogQuery, Written};

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
    let asked = Asked::of(&query, &headers)?;
    let action = find_action(&app, &project, &name, id).await?;
    let output = Output {
        project,
        action: id,
    };
    lines::answer(app, (output, action.state), asked).await
}

/// What an action printed.
struct Output {
    project: Name,
    action: ActionId,
}

impl Written for Output {
    type Line = OutputLineView;
    type Stand = Stand;

    async fn lines(
        &self,
        app: &App,
        after: u64,
        limit: u32,
    ) -> Result<Vec<OutputLineView>, store::Error> {
        let (store, id) = (app.store(), self.action);
        let read = store.action_output(&self.project, id, after, limit).await?;
        let read = read.unwrap_or_default().into_iter();
        Ok(read.map(environments::line).collect())
    }

    async fn stand(&self, app: &App) -> Option<Stand> {
        let found = app.store().action(&self.project, self.action).await;
        Some(found.ok()??.state)
    }

    fn place(line: &OutputLineView) -> u64 {
        line.seq
    }

    fn is_writing(stand: Stand) -> bool {
        stand == Stand::Running
    }

    fn piece(lines: Vec<OutputLineView>, next: u64) -> impl Serialize {
        OutputView { lines, next }
    }

    fn end(stand: Stand, next: u64) -> Option<impl Serialize> {
        let state = stand.into();
        stand.is_ended().then_some(OutputEnd { state, next })
    }

    fn short_of(&self, place: u64) -> String {
        format!("what {} printed ends before line {place}", self.action)
    }
}
