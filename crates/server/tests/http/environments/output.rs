//! What scripts print, as a piece and as it is printed.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::json;
use store::{ActionClaim, ActionEnded, OutputStream, Printed, Recorded};

use crate::reader::Reader;
use crate::world::World;

async fn working() -> (World, ActionClaim, String) {
    let world = World::with_settings(json!({})).await;
    let action = world
        .begun(Method::POST, "s", json!({"name": "orange"}))
        .await;
    let claim = world.take_up().await.pop().unwrap();
    (
        world,
        claim,
        format!("/environments/orange/actions/{action}/log"),
    )
}

async fn print(world: &World, claim: &ActionClaim, stream: OutputStream, lines: &[(u64, &str)]) {
    let lines = lines.iter();
    let line = |(number, text): &(u64, &str)| Printed {
        place: *number,
        stream,
        number: *number,
        at: world.now(),
        text: (*text).to_owned(),
    };
    let lines = lines.map(line).collect();
    let recorded = world.store.append_output(claim, lines).await.unwrap();
    assert_eq!(recorded, Recorded::Yes);
}

async fn picture(reader: &mut Reader) -> String {
    let mut text = String::new();
    while let Some(frame) = reader.frame().await {
        let id = frame.id.map_or("-".to_owned(), |id| id.to_string());
        let data = &frame.data;
        let said = data["text"].as_str().map_or_else(
            || format!("{} at {}", data["state"], data["next"]),
            |said| format!("{}: {said}", data["stream"].as_str().unwrap()),
        );
        text.push_str(&format!("{id} {} {said}\n", frame.event));
    }
    text
}

#[tokio::test(start_paused = true)]
async fn both_streams_are_told_as_they_are_printed_until_the_action_has_ended() {
    let (world, claim, path) = working().await;
    print(&world, &claim, OutputStream::Out, &[(1, "one"), (2, "two")]).await;
    let mut reader = Reader::open(&world, &path, None).await;
    assert_eq!(reader.next().await, Some(1));
    assert_eq!(reader.next().await, Some(2));
    print(&world, &claim, OutputStream::Err, &[(1, "<oh>")]).await;
    assert_eq!(reader.next().await, Some(3));
    world.end_action(&claim, ActionEnded::Failed).await;
    expect![[r#"
        - end "failed" at 3
    "#]]
    .assert_eq(&picture(&mut reader).await);
    let mut again = Reader::open(&world, &format!("{path}?after=1"), None).await;
    expect![[r#"
        2 line stdout: two
        3 line stderr: <oh>
        - end "failed" at 3
    "#]]
    .assert_eq(&picture(&mut again).await);
}

#[tokio::test]
async fn a_piece_of_the_output_is_read_on_from_where_it_ended() {
    let (world, claim, path) = working().await;
    print(&world, &claim, OutputStream::Out, &[(1, "one"), (2, "two")]).await;
    let first = world.get(&format!("{path}?limit=1")).await.json();
    assert_eq!(
        (&first["next"], &first["lines"][0]["text"]),
        (&json!(1), &json!("one"))
    );
    let rest = world.get(&format!("{path}?after=1")).await.json();
    assert_eq!(
        (&rest["next"], &rest["lines"][0]["text"]),
        (&json!(2), &json!("two"))
    );
    for query in ["after=3", "after=x", "after=9&stream=true"] {
        let beyond = world.get(&format!("{path}?{query}")).await;
        assert_eq!(beyond.status, StatusCode::BAD_REQUEST, "{}", beyond.text);
        assert!(beyond.text.contains("STREAM-002"), "{}", beyond.text);
    }
}
