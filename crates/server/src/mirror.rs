//! A directory of files for whoever may ask, and nothing else: what `slipway mirror serve` runs.
//!
//! **Invariant:** a request reads plain files below the directory, by names without hidden parts,
//! and changes nothing; a link that leads elsewhere is not followed (`tests/http/mirror.rs`).

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{connections, layers};

/// How much is read from a file at once.
const PIECE_BYTES: u64 = 256 << 10;

/// Serves a directory until `stop` is cancelled; answers under way get a moment to end.
pub async fn run(listener: TcpListener, directory: PathBuf, stop: CancellationToken) {
    connections::serve_until(listener, router(directory), &stop).await;
}

/// The files of a directory.
pub fn router(directory: PathBuf) -> Router {
    Router::new()
        .fallback(give)
        .layer(axum::middleware::from_fn(layers::guard))
        .with_state(Arc::new(directory))
}

async fn give(State(directory): State<Arc<PathBuf>>, request: Request) -> Response {
    if !layers::reads(request.method()) {
        let allowed = [(header::ALLOW, "GET, HEAD")];
        return (StatusCode::METHOD_NOT_ALLOWED, allowed, "only reading\n").into_response();
    }
    let Some(path) = below(&directory, request.uri().path()) else {
        return absent();
    };
    let opened = tokio::task::spawn_blocking(move || open(&directory, &path)).await;
    match opened {
        Ok(Ok(Some((file, size)))) => answer(request.method(), request.headers(), file, size),
        Ok(Ok(None)) => absent(),
        Ok(Err(cause)) => {
            tracing::warn!(%cause, path = request.uri().path(), "could not read a file of the mirror");
            (StatusCode::INTERNAL_SERVER_ERROR, "could not read it\n").into_response()
        }
        Err(cause) => {
            tracing::error!(%cause, "a thread that reads files broke down");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn absent() -> Response {
    (StatusCode::NOT_FOUND, "there is no such file\n").into_response()
}

/// The path of a file that an address names; `None` where it names none that is ours to give.
fn below(directory: &Path, asked: &str) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for part in asked.strip_prefix('/')?.split('/') {
        let part = decoded(part)?;
        if part.is_empty() || part.starts_with('.') || part.contains(['/', '\0']) {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// A part of an address with its `%` escapes read.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Opens a plain file below a directory, and says how long it is.
fn open(directory: &Path, path: &Path) -> std::io::Result<Option<(File, u64)>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let look = || {
        // Where links lead decides, not where they lie.
        let (root, real) = (directory.canonicalize()?, path.canonicalize()?);
        let metadata = std::fs::metadata(&real)?;
        if !real.starts_with(&root) || !metadata.is_file() {
            return Ok(None);
        }
        std::io::Result::Ok(Some((File::open(&real)?, metadata.len())))
    };
    match look() {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        found => found,
    }
}

/// A file, or the part of it that was asked for.
fn answer(method: &Method, headers: &HeaderMap, mut file: File, size: u64) -> Response {
    let part = match asked_part(headers, size) {
        Asked::All => 0..size,
        Asked::Part(part) => part,
        Asked::Outside => {
            let known = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, known).into_response();
        }
    };
    if let Err(cause) = file.seek(SeekFrom::Start(part.start)) {
        tracing::warn!(%cause, "could not read a file of the mirror");
        return (StatusCode::INTERNAL_SERVER_ERROR, "could not read it\n").into_response();
    }
    let length = part.end - part.start;
    let whole = length == size;
    let body = if *method == Method::HEAD {
        Body::empty()
    } else {
        let pieces = Pieces { file, left: length };
        Body::from_stream(stream::try_unfold(pieces, Pieces::next))
    };
    let mut response = body.into_response();
    let told = response.headers_mut();
    let mut tell = |name, value: String| {
        if let Ok(value) = value.try_into() {
            told.insert(name, value);
        }
    };
    tell(header::CONTENT_TYPE, "application/octet-stream".to_owned());
    tell(header::CONTENT_LENGTH, length.to_string());
    tell(header::ACCEPT_RANGES, "bytes".to_owned());
    if !whole {
        let last = part.end.saturating_sub(1);
        let range = format!("bytes {}-{last}/{size}", part.start);
        tell(header::CONTENT_RANGE, range);
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// Which part of a file is asked for.
enum Asked {
    All,
    Part(std::ops::Range<u64>),
    Outside,
}

/// Reads `Range: bytes=5-`, `bytes=5-9` and `bytes=-5`. What is none of these, or several at once,
/// is answered with all of it, as the protocol allows.
fn asked_part(headers: &HeaderMap, size: u64) -> Asked {
    // Without a validator of ours nobody can know that the rest is of the same file.
    if headers.contains_key(header::IF_RANGE) {
        return Asked::All;
    }
    let range = headers.get(header::RANGE).and_then(|range| {
        let (first, last) = range
            .to_str()
            .ok()?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        let number = |text: &str| match text {
            "" => Some(None),
            text => text.parse::<u64>().ok().map(Some),
        };
        Some((number(first)?, number(last)?))
    });
    match range {
        None | Some((None, None)) => Asked::All,
        Some((Some(first), Some(last))) if last < first => Asked::All,
        Some((Some(first), _)) if first >= size => Asked::Outside,
        Some((None, Some(0))) => Asked::Outside,
        Some((Some(first), last)) => {
            let end = last.map_or(size, |last| last.saturating_add(1).min(size));
            Asked::Part(first..end)
        }
        Some((None, Some(last))) => Asked::Part(size.saturating_sub(last)..size),
    }
}

/// What is still to be read of a file.
struct Pieces {
    file: File,
    left: u64,
}

impl Pieces {
    /// The next piece; none at the end. A file that became shorter meanwhile breaks the answer
    /// off, so that nobody takes it for whole.
    async fn next(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let read = move || {
            let most = self.left.min(PIECE_BYTES);
            let mut piece = Vec::new();
            (&mut self.file).take(most).read_to_end(&mut piece)?;
            let read = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if read < most {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.left -= read;
            Ok(Some((Bytes::from(piece), self)))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|fallen| Err(std::io::Error::other(fallen)))
    }
}
