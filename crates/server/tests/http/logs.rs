//! The log of a task, as a piece and as it is written.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::id::TaskId;
use store::{Claim, Ended, Recorded};

use crate::reader::Reader;
use crate::world::{HELLO, PROJECT, World, request};

/// A world with one attempt under way.
async fn working() -> (World, Claim, TaskId) {
    let world = World::with_hello().await;
    world.plan().await;
    let claim = world.claim(1).await.pop().unwrap();
    let id = claim.task.id;
    (world, claim, id)
}

/// Writes lines with these numbers.
async fn write(world: &World, claim: &Claim, numbers: std::ops::RangeInclusive<u64>) {
    let lines = numbers.map(|number| (world.now(), format!("line {number}")));
    let lines = lines.collect();
    let recorded = world.store.append_log(claim, lines).await.unwrap();
    assert_eq!(recorded, Recorded::Yes);
}

/// What a stream tells until it ends, a line each.
async fn picture(reader: &mut Reader) -> String {
    let mut text = String::new();
    while let Some(frame) = reader.frame().await {
        let id = frame.id.map_or("-".to_owned(), |id| id.to_string());
        let said = frame.data["text"].as_str().map_or_else(
            || format!("{} at {}", frame.data["state"], frame.data["next"]),
            ToOwned::to_owned,
        );
        let dropped = frame.data.get("dropped");
        let dropped = dropped.map_or(String::new(), |many| format!(" (dropped: {many})"));
        text.push_str(&format!("{id} {}: {said}{dropped}\n", frame.event));
    }
    text
}

#[tokio::test(start_paused = true)]
async fn lines_are_told_as_they_are_written_until_the_task_has_ended() {
    let (world, claim, id) = working().await;
    write(&world, &claim, 1..=2).await;
    let mut reader = Reader::open(&world, &format!("/tasks/{id}/log"), None).await;
    assert_eq!(reader.next().await, Some(1));
    assert_eq!(reader.next().await, Some(2));
    let waited = tokio::time::Instant::now();
    write(&world, &claim, 3..=4).await;
    let frame = reader.frame().await.unwrap();
    assert_eq!(
        (frame.id, frame.event.as_str(), &frame.data["text"]),
        (Some(3), "line", &"line 3".into())
    );
    assert!(
        waited.elapsed().as_millis() <= 500,
        "{:?}",
        waited.elapsed()
    );
    let mut back = Reader::open(&world, &format!("/tasks/{id}/log?after=1"), Some(3)).await;
    world.end(claim, Ended::Done).await;
    expect![[r#"
        4 line: line 4
        5 line: create <first-brain-01>
        - end: "done" at 5
    "#]]
    .assert_eq(&picture(&mut back).await);
    let mut late = Reader::open(&world, &format!("/tasks/{id}/log?after=4"), None).await;
    expect![[r#"
        5 line: create <first-brain-01>
        - end: "done" at 5
    "#]]
    .assert_eq(&picture(&mut late).await);
    let mut told = Reader::open(&world, &format!("/tasks/{id}/log?stream=true"), Some(5)).await;
    expect![[r#"
        - end: "done" at 5
    "#]]
    .assert_eq(&picture(&mut told).await);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_followed_from_before_its_first_line_to_the_end_of_its_task() {
    let world = World::with_hello().await;
    world.plan().await;
    let task = world.get("/tasks?limit=1").await.json()["items"][0]["id"].clone();
    let path = format!("/tasks/{}/log", task.as_str().unwrap());
    let mut reader = Reader::open(&world, &path, None).await;
    let working = async {
        // Nothing of it for a while: a task that waits writes nothing.
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
        for claim in world.claim(100).await {
            if claim.task.id.to_string() == task {
                write(&world, &claim, 1..=1).await;
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                let error = "try again".to_owned();
                let not_before = world.now();
                world.end(claim, Ended::Retry { error, not_before }).await;
            }
        }
        let removed = world
            .send(request(
                Method::DELETE,
                &format!("{PROJECT}/manifests/hello"),
            ))
            .await;
        assert_eq!(removed.status, StatusCode::ACCEPTED);
        world.plan().await;
    };
    let (told, ()) = tokio::join!(picture(&mut reader), working);
    let told = told
        .split_once(" create")
        .map_or(told.clone(), |(before, rest)| {
            let rest = rest.split_once('\n').unwrap().1;
            format!("{before} create …\n{rest}")
        });
    expect![[r#"
        1 line: line 1
        2 line: create …
        - end: "withdrawn" at 2
    "#]]
    .assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_in_the_middle_is_counted() {
    let (world, claim, id) = working().await;
    write(&world, &claim, 1..=1_001).await;
    let path = |after: u64| format!("/tasks/{id}/log?after={after}");
    let dropped = |text: &str| {
        let page: api::LogView = serde_json::from_str(text).unwrap();
        let missing = page.lines.iter().filter_map(|line| {
            let many = line.dropped?;
            Some(format!("{many} up to {}; ", line.seq))
        });
        missing.collect::<String>()
    };
    let mut told = String::new();
    for after in [0, 199, 200] {
        let page = world.get(&format!("{}&limit=500", path(after))).await;
        told.push_str(&format!("after {after}: {}\n", dropped(&page.text)));
    }
    write(&world, &claim, 1_002..=1_300).await;
    for after in [0, 200, 201, 499, 500] {
        let page = world.get(&format!("{}&limit=500", path(after))).await;
        told.push_str(&format!("after {after}: {}\n", dropped(&page.text)));
    }
    expect![[r"
        after 0: 1 up to 201; 
        after 199: 1 up to 201; 
        after 200: 1 up to 201; 
        after 0: 300 up to 500; 
        after 200: 300 up to 500; 
        after 201: 299 up to 500; 
        after 499: 1 up to 500; 
        after 500: 
    "]]
    .assert_eq(&told);
    world.end(claim, Ended::Done).await;
    let mut reader = Reader::open(&world, &path(199), None).await;
    let told = picture(&mut reader).await;
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "200 line: line 200",
            "501 line: … 301 lines were dropped here … (dropped: 301)",
            "502 line: line 502"
        ]
    );
    assert_eq!(lines.len(), 1 + 1 + 800 + 1, "and the whole end of it");
}

#[tokio::test(start_paused = true)]
async fn a_place_that_the_log_has_not_reached_is_a_problem() {
    let (world, claim, id) = working().await;
    write(&world, &claim, 1..=3).await;
    let page = world.get(&format!("/tasks/{id}/log?after=3")).await.json();
    assert_eq!(page, serde_json::json!({"lines": [], "next": 3}));
    let mut told = String::new();
    for query in ["after=4", "after=4&stream=true", "after=-1", "after=line"] {
        let answer = world.get(&format!("/tasks/{id}/log?{query}")).await;
        assert!(answer.text.contains(r#""code":"place""#), "{}", answer.text);
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    let mut back = request(
        Method::GET,
        &format!("{PROJECT}/tasks/{id}/log?stream=true"),
    );
    back.headers_mut()
        .insert("last-event-id", "18446744073709551615".parse().unwrap());
    told.push_str(&world.send(back).await.picture());
    let told = told.replace(&id.to_string(), "TASK");
    expect![[r"
        400 STREAM-002: after: the log of TASK ends before line 4
        400 STREAM-002: after: the log of TASK ends before line 4
        400 STREAM-002: after: `-1` is not a place, which is a whole number
        400 STREAM-002: after: `line` is not a place, which is a whole number
        400 STREAM-002: Last-Event-ID: the log of TASK ends before line 18446744073709551615
          Last-Event-ID [place] the log of TASK ends before line 18446744073709551615
          hint: give the id of the last event or the place of the last line you have seen, or nothing to begin anew
    "]]
    .assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn a_followed_log_ends_when_the_server_stops_and_can_be_taken_up_again() {
    let (world, claim, id) = working().await;
    write(&world, &claim, 1..=1).await;
    let path = format!("/tasks/{id}/log");
    let mut reader = Reader::open(&world, &path, None).await;
    assert_eq!(reader.next().await, Some(1));
    let (ended, ()) = tokio::join!(reader.frame(), async { world.stop.cancel() });
    assert_eq!(ended, None, "without the word that says it is over");
}

#[tokio::test]
async fn a_log_of_no_task_cannot_be_followed() {
    let world = World::new();
    assert_eq!(world.submit(HELLO).await.status, StatusCode::ACCEPTED);
    let path = "/tasks/task-0000000000000/log?stream=true";
    assert_eq!(world.get(path).await.status, StatusCode::NOT_FOUND);
}
