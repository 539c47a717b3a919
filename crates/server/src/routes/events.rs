//! Events: what happened, as a list or as it happens.
//!
//! The stream is driven by a level: the store says which event is the newest, and the
//! stream reads on from where its client is, a bounded batch at a time. A slow client is
//! therefore never ahead of what it has read and costs no memory here.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use api::EventView;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use model::name::Name;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query};
use crate::problem::Problem;
use crate::view;

/// Events read from the store at once: enough to catch up quickly, little enough to hold.
const BATCH: u32 = 100;

/// How often a silent stream shows that it lives, before proxies take it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a client should wait before it comes back after the stream ended.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);

/// Which events, and how they are told.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The event after which to begin. A list begins with the oldest event there is, a
    /// stream with what happens from now on.
    after: Option<u64>,
    /// How many events at most; a stream has no end.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Whether to follow events as they happen; so does `Accept: text/event-stream`.
    stream: Option<bool>,
}

/// What happened, oldest first; with `stream`, as it happens.
///
/// A stream resumes after the event of `Last-Event-ID`, or of `after`.
#[utoipa::path(
    get, path = "/events", operation_id = "listEvents", tag = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<u64>, Header, description = "the last event a stream has shown")),
    responses((status = 200, description = "one page, or a stream", content(
        (api::Listed<EventView> = "application/json"),
        (serde_json::Value = "text/event-stream"),
    ))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = extract::limit(query.limit)?;
    let last = last_event_id(&headers)?;
    if query.stream.unwrap_or_else(|| wants_stream(&headers)) {
        return follow(&app, project, last.or(query.after)).map(IntoResponse::into_response);
    }
    let after = query.after.unwrap_or(0);
    let events = app.store().events(Some(&project), after, limit).await?;
    let full = u32::try_from(events.len()).is_ok_and(|len| len == limit);
    let next = events
        .last()
        .filter(|_| full)
        .map(|event| event.id.to_string());
    let items = events.into_iter().map(view::event).collect();
    Ok(Json(api::Listed { items, next }).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    accepts
        .split(',')
        .any(|kind| kind.trim().starts_with(api::event::MEDIA_TYPE))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let name = HeaderName::from_static("last-event-id");
    let Some(text) =
        extract::text_of(headers, &name, "Last-Event-ID")?.filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let id = extract::number(text)
        .ok_or_else(|| Problem::parameter("Last-Event-ID", "not the id of an event"))?;
    Ok(Some(id))
}

/// Follows events from `after` on, or from now.
fn follow(app: &App, project: Name, after: Option<u64>) -> Result<impl IntoResponse, Problem> {
    let permit = app
        .streams()
        .clone()
        .try_acquire_owned()
        .map_err(|_| Problem::busy("too many clients follow events"))?;
    let newest = app.store().subscribe();
    let after = after.unwrap_or(*newest.borrow());
    let follower = Follower {
        app: app.clone(),
        project,
        after,
        newest,
        read: VecDeque::new(),
        _permit: permit,
    };
    let hello = stream::iter([Ok::<_, Infallible>(Event::default().retry(RECONNECT_AFTER))]);
    Ok(Sse::new(hello.chain(follower.events())).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// One client that follows events.
struct Follower {
    app: App,
    project: Name,
    after: u64,
    newest: watch::Receiver<u64>,
    read: VecDeque<EventView>,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut follower| async {
            let event = follower.next().await?;
            let told = Event::default()
                .id(event.id.to_string())
                .event(&event.kind)
                .json_data(&event)
                .ok()?;
            Some((Ok(told), follower))
        })
    }

    /// The next event; none when the server stops or the store cannot be read, and the
    /// client comes back by itself with the id it has.
    async fn next(&mut self) -> Option<EventView> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.after = event.id;
                return Some(event);
            }
            // Marked as seen before reading: what comes meanwhile wakes us again.
            self.newest.borrow_and_update();
            let events = self
                .app
                .store()
                .events(Some(&self.project), self.after, BATCH)
                .await
                .ok()?;
            self.read.extend(events.into_iter().map(view::event));
            if self.read.is_empty() {
                tokio::select! {
                    changed = self.newest.changed() => changed.ok()?,
                    () = self.app.stop().cancelled() => return None,
                }
            }
        }
    }
}
