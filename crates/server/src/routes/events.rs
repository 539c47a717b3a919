//! Events: what happened, as a list or as it happens.

mod socket;

use api::EventView;
use axum::Json;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Project, Query};
use crate::problem::Problem;
use crate::streams::{self, Follower, Kind, Seat, Source};
use crate::view;

/// Which events, and how they are told.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The event after which to begin. A list begins with the oldest event there is, a
    /// stream with what happens from now on.
    #[param(value_type = Option<u64>, minimum = 0)]
    after: Option<String>,
    /// How many events at most; a stream has no end.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Whether to follow events as they happen; so does `Accept: text/event-stream`.
    stream: Option<bool>,
}

/// What happened, oldest first; with `stream`, as it happens.
///
/// A stream resumes after the event of `Last-Event-ID`, or of `after`. With
/// `Upgrade: websocket` the same events come over a WebSocket, each as one text message with
/// the JSON of an event; it resumes with `after`, is pinged when it is silent, and has
/// nothing to hear: any message but a close ends it with code 1003. A cookie opens it to
/// pages of the same origin alone. What a server that stops has not told is told by the next one.
#[utoipa::path(
    get, path = "/events", operation_id = "listEvents", tag = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<u64>, Header, description = "the last event a stream has shown")),
    responses(
        (status = 101, description = "a stream over a WebSocket"),
        (status = 200, description = "one page, or a stream", content(
            (api::Listed<EventView> = "application/json"),
            (serde_json::Value = "text/event-stream"),
        )),
        (status = 403, description = "a WebSocket with the cookie of this site, asked for by another one",
            body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let limit = extract::limit(query.limit)?;
    let after = streams::place(query.after.as_deref())?;
    let last = streams::last_event_id(&headers)?;
    if socket::wanted(&headers) {
        let upgrade = socket::admit(upgrade, &headers)?;
        let seat = app.seat(Kind::Socket)?;
        let follower = app.hub().follow(project, last.or(after)).await?;
        let until = caller.turned_out(app.clone());
        return Ok(socket::answer(upgrade, follower, seat, until));
    }
    if streams::wanted(query.stream, &headers) {
        let seat = app.seat(Kind::Events)?;
        let follower = app.hub().follow(project, last.or(after)).await?;
        return Ok(streams::answer(Events {
            follower,
            _seat: seat,
        }));
    }
    let after = after.unwrap_or(0);
    let events = app.store().events(Some(&project), after, limit).await?;
    let full = u32::try_from(events.len()).is_ok_and(|len| len == limit);
    let next = events
        .last()
        .filter(|_| full)
        .map(|event| event.id.to_string());
    let items = events.into_iter().map(view::event).collect();
    Ok(Json(api::Listed { items, next }).into_response())
}

/// One client that follows events.
struct Events {
    follower: Follower,
    _seat: Seat,
}

impl Source for Events {
    async fn next(&mut self) -> Option<Bytes> {
        self.follower.next().await.map(|told| told.frames())
    }
}
