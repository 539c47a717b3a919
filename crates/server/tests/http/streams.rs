//! What following costs: events are read once for all, and nobody misses or repeats one.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use store::Ended;

use crate::reader::Reader;
use crate::world::{HELLO, PROJECT, World, request};

/// Changes the manifest so many times, there and back; each change is an event or more.
async fn change(world: &World, times: u64) {
    for time in 0..times {
        let manifest = HELLO.replace("count: 2", &format!("count: {}", 1 + time % 2));
        let answer = world.submit(&manifest).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    }
}

fn newest(world: &World) -> u64 {
    *world.store.subscribe().borrow()
}

/// How often events were read from the store: by the hub, and by streams.
fn reads(world: &World) -> (u64, u64) {
    let text = world.recorder.handle().render();
    let count = |by: &str| {
        let name = format!("slipway_event_reads_total{{by=\"{by}\"}} ");
        let mut lines = text.lines();
        lines
            .find_map(|line| line.strip_prefix(&name))
            .map_or(0, |count| count.parse().unwrap())
    };
    (count("hub"), count("stream"))
}

/// How many streams there are, as the metrics tell.
fn streams(world: &World) -> String {
    let text = world.recorder.handle().render();
    let lines = text.lines();
    lines
        .filter_map(|line| line.strip_prefix("slipway_streams"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn events_are_read_once_for_all_who_follow_them() {
    let world = World::with_hello().await;
    let _here = metrics::set_default_local_recorder(&world.recorder);
    let mut all = Vec::new();
    for _ in 0..1_000 {
        let mut reader = Reader::open(&world, "/events", None).await;
        reader.piece().await.unwrap();
        all.push(reader);
    }
    assert_eq!(streams(&world), "{kind=\"events\"} 1000");
    assert_eq!(
        reads(&world),
        (0, 0),
        "who begins now needs nothing of the past"
    );
    for batch in 1..=3 {
        let before = newest(&world);
        change(&world, 20).await;
        let expected: Vec<_> = (before + 1..=newest(&world)).collect();
        assert!(expected.len() >= 20, "{expected:?}");
        for reader in &mut all {
            reader.piece().await.unwrap();
            let told: Vec<_> = std::iter::from_fn(|| reader.pending()?.id).collect();
            assert_eq!(told, expected, "a batch is written at once");
        }
        assert_eq!(
            reads(&world),
            (batch, 0),
            "one read per batch, not per stream"
        );
    }
    all.clear();
    assert_eq!(streams(&world), "{kind=\"events\"} 0");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_misses_nothing_and_hears_nothing_twice() {
    let world = World::with_hello().await;
    // Holds the ring open, so that it begins in the middle of what follows.
    let mut first = Reader::open(&world, "/events", None).await;
    change(&world, 8).await;
    first.next().await.unwrap();
    change(&world, 4).await;
    let told = newest(&world);
    let mut all = Vec::new();
    for after in 0..=told {
        all.push((after, Reader::open(&world, "/events", Some(after)).await));
    }
    change(&world, 4).await;
    let last = newest(&world);
    for (after, reader) in &mut all {
        for id in *after + 1..=last {
            assert_eq!(reader.next().await, Some(id), "after {after}");
        }
    }
    change(&world, 1).await;
    for (_, reader) in &mut all {
        assert_eq!(reader.next().await, Some(last + 1));
    }
}

/// Makes attempts fail with the longest messages there are: about 25 kB of events.
async fn fail(world: &World) {
    let error = "x".repeat(4_096);
    for claim in world.claim(5).await {
        let (error, not_before) = (error.clone(), world.now());
        world.end(claim, Ended::Retry { error, not_before }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_that_is_left_behind_reads_on_from_the_store() {
    let world = World::with_hello().await;
    world.plan().await;
    let _here = metrics::set_default_local_recorder(&world.recorder);
    let mut quick = Reader::open(&world, "/events", None).await;
    let mut slow = Reader::open(&world, "/events", None).await;
    let before = newest(&world);
    // More than is kept for those who come back soon.
    for _ in 0..250 {
        fail(&world).await;
        let newest = newest(&world);
        while quick.next().await.unwrap() < newest {}
    }
    assert_eq!(reads(&world).1, 0, "the quick one has never fallen behind");
    let newest = newest(&world);
    for id in before + 1..=newest {
        assert_eq!(slow.next().await, Some(id));
    }
    assert!(reads(&world).1 > 0, "the slow one had to look for itself");
    fail(&world).await;
    assert_eq!(
        slow.next().await,
        Some(newest + 1),
        "and has met the others"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unwatched_server_reads_nothing() {
    let world = World::with_hello().await;
    let _here = metrics::set_default_local_recorder(&world.recorder);
    let mut reader = Reader::open(&world, "/events", None).await;
    change(&world, 1).await;
    let seen = reader.next().await.unwrap();
    drop(reader);
    change(&world, 2).await;
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(reads(&world), (1, 0));
    let mut again = Reader::open(&world, "/events", Some(seen)).await;
    for id in seen + 1..=newest(&world) {
        assert_eq!(again.next().await, Some(id));
    }
    change(&world, 1).await;
    let newest = newest(&world);
    while again.next().await.unwrap() < newest {}
    assert_eq!(
        reads(&world),
        (2, 1),
        "the past by itself, the present with all"
    );
}

/// After a backup was put back the ids of the lost events are given again.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_not_reached_means_from_now_on() {
    let world = World::with_hello().await;
    let before = newest(&world);
    let mut ahead = Reader::open(&world, "/events", Some(before + 1_000)).await;
    change(&world, 1).await;
    assert_eq!(ahead.next().await, Some(before + 1));
}

#[tokio::test]
async fn more_streams_than_there_may_be_are_refused_with_a_reason() {
    let world = World::with_hello().await;
    let mut all = Vec::new();
    for _ in 0..2_000 {
        all.push(Reader::open(&world, "/events", None).await);
    }
    let path = format!("{PROJECT}/events?stream=true");
    let answer = world.send(request(Method::GET, &path)).await;
    assert_eq!(answer.header("retry-after"), "2");
    expect![[r"
        503 STREAM-001: 2000 clients follow events or logs, and no more may
          hint: end streams that nobody reads, or ask for lists with `after` until there is room
    "]]
    .assert_eq(&answer.picture());
    assert_eq!(world.get("/events").await.status, StatusCode::OK);
    all.pop();
    Reader::open(&world, "/events", None).await;
}

#[tokio::test]
async fn a_place_that_is_none_is_a_problem() {
    let world = World::with_hello().await;
    let mut told = String::new();
    for path in [
        "/events?after=now",
        "/events?stream=true&after=-1",
        "/events?after=1e3",
        "/events?after=",
        "/events?after=99999999999999999999",
    ] {
        told.push_str(&world.get(path).await.picture());
    }
    let mut odd = request(Method::GET, &format!("{PROJECT}/events?stream=true"));
    odd.headers_mut()
        .insert("last-event-id", "seven".parse().unwrap());
    told.push_str(&world.send(odd).await.picture());
    let lines: String = told
        .lines()
        .filter(|line| line.starts_with("400"))
        .flat_map(|line| [line, "\n"])
        .collect();
    expect![[r"
        400 STREAM-002: after: `now` is not a place, which is a whole number
        400 STREAM-002: after: `-1` is not a place, which is a whole number
        400 STREAM-002: after: `1e3` is not a place, which is a whole number
        400 STREAM-002: after: `` is not a place, which is a whole number
        400 STREAM-002: after: `99999999999999999999` is not a place, which is a whole number
        400 STREAM-002: Last-Event-ID: `seven` is not a place, which is a whole number
    "]]
    .assert_eq(&lines);
    assert!(
        told.contains("hint: give the id of the last event"),
        "{told}"
    );
}
