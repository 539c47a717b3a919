//! Events as a list, and as they happen.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode, header};
use futures_util::StreamExt as _;

use crate::world::{HELLO, PROJECT, TOKEN, World};

/// A stream of events, read line by line.
struct Stream {
    body: BodyDataStream,
    text: String,
}

impl Stream {
    async fn open(world: &World, query: &str, last: Option<u64>) -> Self {
        let mut request = Request::get(format!("{PROJECT}/events{query}"))
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

    /// The id of the next event; none when the stream has ended.
    async fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let rest = rest.len();
                let id = event
                    .lines()
                    .find_map(|line| line.strip_prefix("id: "))
                    .map(|id| id.parse().unwrap());
                self.text.drain(..self.text.len() - rest);
                if id.is_some() {
                    return id;
                }
                continue;
            }
            let piece = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_that_was_seen() {
    let world = World::with_hello().await;
    let newest = *world.store.subscribe().borrow();
    assert!(newest >= 2, "{newest}");
    let mut all = Stream::open(&world, "?after=0", None).await;
    let mut rest = Stream::open(&world, "?after=0", Some(1)).await;
    for id in 1..=newest {
        assert_eq!(all.next().await, Some(id));
    }
    assert_eq!(
        rest.next().await,
        Some(2),
        "the header tells more than the query"
    );
}

#[tokio::test]
async fn a_stream_without_a_place_begins_now() {
    let world = World::with_hello().await;
    let newest = *world.store.subscribe().borrow();
    let mut stream = Stream::open(&world, "", None).await;
    let changed = HELLO.replace("count: 2", "count: 3");
    let (seen, answer) = tokio::join!(stream.next(), world.submit(&changed));
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(seen, Some(newest + 1));
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let world = World::with_hello().await;
    let mut stream = Stream::open(&world, "?stream=true", None).await;
    let (ended, ()) = tokio::join!(stream.next(), async { world.stop.cancel() });
    assert_eq!(ended, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_lives() {
    let world = World::new();
    let mut stream = Stream::open(&world, "", None).await;
    let hello = stream.body.next().await.unwrap().unwrap();
    assert_eq!(hello, "retry: 2000\n\n");
    let begun = tokio::time::Instant::now();
    let alive = stream.body.next().await.unwrap().unwrap();
    assert_eq!(
        (alive.as_ref(), begun.elapsed().as_secs()),
        (b":\n\n".as_slice(), 15)
    );
}

#[tokio::test]
async fn the_list_says_where_it_goes_on() {
    let world = World::with_hello().await;
    let page = world.get("/events?limit=1").await.json();
    let event = &page["items"][0];
    assert_eq!(page["next"], event["id"].to_string());
    assert_eq!(
        (&event["kind"], &event["object"]),
        (&"cluster".into(), &"first".into()),
        "{event}"
    );
}

#[tokio::test]
async fn an_event_says_what_happened_and_to_what() {
    let world = World::with_hello().await;
    let events = world.get("/events?limit=1").await.json();
    let event = &events["items"][0];
    assert_eq!(
        (&event["what"], &event["kind"], &event["object"]),
        (
            &"cluster.changed".into(),
            &"cluster".into(),
            &"first".into()
        )
    );
}
