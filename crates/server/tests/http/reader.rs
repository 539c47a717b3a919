//! Reads a live stream as a client does, frame by frame.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode, header};
use futures_util::StreamExt as _;

use crate::world::{PROJECT, TOKEN, World};

/// A stream that was opened.
pub(crate) struct Reader {
    pub(crate) body: BodyDataStream,
    text: String,
}

/// One frame of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: serde_json::Value,
}

impl Reader {
    /// Opens a stream of the project, resumed after `last`.
    pub(crate) async fn open(world: &World, path: &str, last: Option<u64>) -> Self {
        let mut request = Request::get(format!("{PROJECT}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = world.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/event-stream"
        );
        Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    /// The next frame with data; none when the stream has ended.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.pending() {
                return Some(frame);
            }
            self.piece().await?;
        }
    }

    /// The id of the next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<u64> {
        self.frame().await.map(|frame| frame.id.unwrap())
    }

    /// A frame that was received whole and not looked at yet.
    pub(crate) fn pending(&mut self) -> Option<Frame> {
        while let Some((frame, rest)) = self.text.split_once("\n\n") {
            let field = |name: &str| {
                let mut lines = frame.lines();
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            let frame = field("data").map(|data| Frame {
                id: field("id").map(|id| id.parse().unwrap()),
                event: field("event").unwrap_or_default().to_owned(),
                data: serde_json::from_str(data).unwrap(),
            });
            self.text = rest.to_owned();
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// Receives what is written at once.
    pub(crate) async fn piece(&mut self) -> Option<()> {
        let piece = self.body.next().await?.unwrap();
        self.text.push_str(std::str::from_utf8(&piece).unwrap());
        Some(())
    }
}
