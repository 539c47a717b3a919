//! What is written line by line, as a piece or as it is written: logs of tasks, output of scripts.
//!
//! Lines make no events, so a stream looks for them: twice a second while somebody writes, and not
//! at all while nobody does. That a writer begins or ends is an event.

use std::time::Duration;

use api::task::{END, LINE};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use super::{Kind, Seat, Source, frame};
use crate::app::App;
use crate::extract;
use crate::problem::Problem;

/// How often a stream looks for new lines. Whoever writes hands lines over once a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Lines read at once by a stream.
const READ: u32 = 500;

/// Which piece of what was written.
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

/// What a client asks for, understood.
pub(crate) struct Asked {
    after: Option<u64>,
    last: Option<u64>,
    limit: u32,
    follows: bool,
}

impl Asked {
    pub(crate) fn of(query: &LogQuery, headers: &HeaderMap) -> Result<Self, Problem> {
        Ok(Self {
            limit: extract::limit(query.limit)?,
            after: super::place(query.after.as_deref())?,
            last: super::last_event_id(headers)?,
            follows: super::wanted(query.stream, headers),
        })
    }
}

/// Something that is written line by line.
pub(crate) trait Written: Send + Sync + 'static {
    /// One line, as clients see it.
    type Line: Serialize + Send;
    /// How whoever writes it stands.
    type Stand: Copy + Send + Sync;

    /// Lines behind a place, oldest first.
    fn lines(
        &self,
        app: &App,
        after: u64,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Self::Line>, store::Error>> + Send;

    /// How whoever writes it stands now; nothing where that cannot be read.
    fn stand(&self, app: &App) -> impl Future<Output = Option<Self::Stand>> + Send;

    /// The place of a line.
    fn place(line: &Self::Line) -> u64;

    /// Whether lines are written now.
    fn is_writing(stand: Self::Stand) -> bool;

    /// A piece of it, and where the next begins.
    fn piece(lines: Vec<Self::Line>, next: u64) -> impl Serialize;

    /// The last word, where no line will be written any more.
    fn end(stand: Self::Stand, next: u64) -> Option<impl Serialize>;

    /// That it ends before a place.
    fn short_of(&self, place: u64) -> String;
}

/// Answers with a piece, or with a stream that ends when its writer has.
pub(crate) async fn answer<W: Written>(
    app: App,
    (written, stand): (W, W::Stand),
    asked: Asked,
) -> Result<Response, Problem> {
    if asked.follows {
        let (parameter, after) = match (asked.last, asked.after) {
            (Some(last), _) => ("Last-Event-ID", last),
            (None, after) => ("after", after.unwrap_or(0)),
        };
        reached(&app, &written, parameter, after).await?;
        let seat = app.seat(Kind::Log)?;
        let follower = Follower::new(app, written, stand, after, seat);
        return Ok(super::answer(follower));
    }
    let after = asked.after.unwrap_or(0);
    let lines = written.lines(&app, after, asked.limit).await?;
    if lines.is_empty() {
        reached(&app, &written, "after", after).await?;
    }
    let next = lines.last().map_or(after, W::place);
    Ok(Json(W::piece(lines, next)).into_response())
}

/// Refuses a place that was not reached: who is there has seen something else.
async fn reached<W: Written>(
    app: &App,
    written: &W,
    parameter: &str,
    place: u64,
) -> Result<(), Problem> {
    let Some(before) = place.checked_sub(1) else {
        return Ok(());
    };
    if written.lines(app, before, 1).await?.is_empty() {
        return Err(Problem::place(parameter, written.short_of(place)));
    }
    Ok(())
}

/// One client that follows what is written.
struct Follower<W: Written> {
    app: App,
    written: W,
    after: u64,
    /// How the writer stood when `seen` was the newest event.
    stand: W::Stand,
    seen: Option<u64>,
    newest: watch::Receiver<u64>,
    /// Before when it need not look again; absent when there is more to read.
    rests_until: Option<Instant>,
    ended: bool,
    _seat: Seat,
}

impl<W: Written> Follower<W> {
    fn new(app: App, written: W, stand: W::Stand, after: u64, seat: Seat) -> Self {
        Self {
            newest: app.store().subscribe(),
            app,
            written,
            after,
            stand,
            seen: None,
            rests_until: None,
            ended: false,
            _seat: seat,
        }
    }

    /// Waits until there may be something new; false when the server stops first.
    async fn due(&mut self) -> bool {
        let seen = self.seen;
        let writing = W::is_writing(self.stand);
        let waiting = async {
            let Some(until) = self.rests_until else {
                return true;
            };
            sleep_until(until).await;
            // The store outlives us: its sender is never gone while we wait.
            writing || self.newest.wait_for(|id| Some(*id) != seen).await.is_ok()
        };
        tokio::select! {
            biased;
            () = self.app.stop().cancelled() => false,
            due = waiting => due,
        }
    }

    /// Looks at the writer, then at the lines: what an ended one wrote is there by then.
    async fn look(&mut self) -> Option<Bytes> {
        let newest = *self.newest.borrow();
        if self.seen != Some(newest) {
            self.stand = self.written.stand(&self.app).await?;
            self.seen = Some(newest);
        }
        let read = self.written.lines(&self.app, self.after, READ).await.ok()?;
        let full = u32::try_from(read.len()).is_ok_and(|len| len >= READ);
        let mut frames = Vec::new();
        for line in read {
            let place = W::place(&line);
            frame(&mut frames, Some(place), LINE, &line);
            self.after = place;
        }
        self.rests_until = (!full).then(|| Instant::now() + LOOK_EVERY);
        if let Some(end) = W::end(self.stand, self.after).filter(|_| !full) {
            self.ended = true;
            frame(&mut frames, None, END, &end);
        }
        Some(frames.into())
    }
}

impl<W: Written> Source for Follower<W> {
    /// None when the writer has ended, the server stops or the store cannot be read; but for the
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
