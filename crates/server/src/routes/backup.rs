//! The whole installation as one file, taken while everybody goes on working.
//!
//! It is first written to a file of the server's own, so that a slow client keeps nobody
//! waiting but itself, and then sent. The file has no name: however the request or the process
//! ends, nothing is left of it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use crate::access::Caller;
use crate::app::App;
use crate::problem::Problem;

/// How much is read from the file at once.
const PIECE_BYTES: usize = 256 << 10;

/// Everything there is, as it is at one moment, in one file: manifests, clusters, tasks, tokens
/// and the audit chain. What is sealed stays sealed.
#[utoipa::path(
    get, path = "/api/v1/backup", operation_id = "createBackup", tag = "backup",
    responses((status = 200, description = "the backup: one JSON value per line, the last one with a digest of all others",
        body = serde_json::Value, content_type = "application/x-ndjson")),
)]
pub(crate) async fn create(
    State(app): State<App>,
    method: Method,
    caller: Caller,
) -> Result<Response, Problem> {
    // Who asks only for the head of the answer gets no backup made for it.
    if method == Method::HEAD {
        return Ok([(header::CONTENT_TYPE, api::backup::MEDIA_TYPE)].into_response());
    }
    let turn = app.backup_turn()?;
    let file = unnamed(&app).await?;
    let written = file.try_clone().map_err(Problem::no_scratch)?;
    let now = app.now();
    // The turn goes along: a dump whose client went away still keeps one who reads busy.
    let turn = Arc::new(turn);
    let dumped = app.store().dump_to(written, now, turn.clone()).await?;
    let detail = format!("{} rows", dumped.rows);
    app.store()
        .enter_audit(
            None,
            caller.actor,
            "backup.create",
            ("backup", &detail),
            now,
        )
        .await?;
    let (length, pieces) = begin(file, turn).map_err(Problem::no_scratch)?;
    let headers = [
        (header::CONTENT_TYPE, api::backup::MEDIA_TYPE.to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    let body = Body::from_stream(stream::try_unfold(pieces, Pieces::next));
    Ok((headers, body).into_response())
}

/// A file that nobody else can open and that goes with its last handle.
async fn unnamed(app: &App) -> Result<File, Problem> {
    let scratch = app.scratch().to_owned();
    crate::aside(move || tempfile::tempfile_in(scratch).map_err(Problem::no_scratch)).await
}

/// A written file, to be read from its beginning.
struct Pieces {
    file: File,
    /// Kept until the last byte was taken, or nobody wants it any more.
    _turn: Arc<OwnedSemaphorePermit>,
}

fn begin(mut file: File, turn: Arc<OwnedSemaphorePermit>) -> std::io::Result<(u64, Pieces)> {
    let length = file.metadata()?.len();
    file.rewind()?;
    Ok((length, Pieces { file, _turn: turn }))
}

impl Pieces {
    /// The next piece; none at the end.
    async fn next(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        let read = move || {
            let mut piece = vec![0; PIECE_BYTES];
            let length = self.file.read(&mut piece)?;
            piece.truncate(length);
            Ok((length > 0).then(|| (Bytes::from(piece), self)))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|fallen| Err(std::io::Error::other(fallen)))
    }
}
