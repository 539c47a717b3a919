//! Events as a list, and as they happen.

use axum::http::StatusCode;
use futures_util::StreamExt as _;

use crate::reader::Reader;
use crate::world::{HELLO, World};

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_that_was_seen() {
    let world = World::with_hello().await;
    let newest = *world.store.subscribe().borrow();
    assert!(newest >= 2, "{newest}");
    let mut all = Reader::open(&world, "/events?after=0", None).await;
    let mut rest = Reader::open(&world, "/events?after=0", Some(1)).await;
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
    let mut stream = Reader::open(&world, "/events", None).await;
    let changed = HELLO.replace("count: 2", "count: 3");
    let (seen, answer) = tokio::join!(stream.next(), world.submit(&changed));
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(seen, Some(newest + 1));
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let world = World::with_hello().await;
    let mut stream = Reader::open(&world, "/events?stream=true", None).await;
    let (ended, ()) = tokio::join!(stream.next(), async { world.stop.cancel() });
    assert_eq!(ended, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_lives() {
    let world = World::new();
    let mut stream = Reader::open(&world, "/events", None).await;
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
