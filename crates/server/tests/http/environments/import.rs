//! Environments that are taken over from elsewhere.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};

use crate::world::World;

fn action(number: u64, kind: &str, exit: i32) -> Value {
    json!({
        "number": number, "kind": kind, "author": "octopod", "exit": exit, "endedAt": "2022-06-06T10:21:00Z",
        "millis": 5210, "set": {"application": {"image.tag": "v6"}}, "stdout": "one\ntwo", "stderr": "three",
    })
}

fn orange() -> Value {
    json!({
        "name": "orange", "origin": "octopod/1", "status": "running", "since": "2022-06-07T00:00:00Z",
        "createdAt": "2022-06-06T10:20:37.123Z", "updatedAt": "2022-06-07T00:00:00Z",
        "set": {"application": {"image.tag": "v7"}, "deployment": {"chart_version": "12.1.0"}},
        "remove": {"application": ["ingress.enabled"]},
        "links": [{"name": "app", "url": "https://orange.example.org"}],
        "actions": [action(11, "create", 0), action(12, "update", 1)],
    })
}

fn lemon() -> Value {
    let mut lemon = orange();
    lemon["name"] = json!("lemon");
    lemon["origin"] = json!("octopod/2");
    lemon["status"] = json!("archived");
    lemon["archivedAt"] = json!("2022-06-07T00:00:00Z");
    lemon["actions"] = json!([]);
    lemon
}

async fn import(world: &World, all: Value, dry: bool) -> Value {
    let path = if dry {
        "-import?dryRun=true"
    } else {
        "-import"
    };
    let answer = world
        .env(Method::POST, path, json!({"environments": all}))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()["environments"].clone()
}

fn outcomes(views: &Value) -> String {
    let line = |view: &Value| {
        let because = view["because"].as_str().unwrap_or("-");
        let name = view["name"].as_str().unwrap();
        let outcome = view["outcome"].as_str().unwrap();
        format!("{name} {outcome} {} {because}\n", view["actions"])
    };
    views.as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn they_come_as_they_are_and_nothing_is_done_to_them() {
    let world = World::with_settings(json!({})).await;
    world.running("fig", json!({})).await;
    let mut fig = lemon();
    fig["name"] = json!("fig");
    let all = json!([orange(), lemon(), fig]);
    let said = "orange taken 2 -\nlemon taken 0 -\nfig exists 0 there is another of that name, which is running\n";
    assert_eq!(outcomes(&import(&world, all.clone(), true).await), said);
    let names = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&world.env_get("s").await),
        ["fig"],
        "it was only tried"
    );
    assert_eq!(outcomes(&import(&world, all.clone(), false).await), said);
    assert_eq!(world.take_up().await.len(), 0, "no script is run");

    let view = world.env_get("s/orange").await;
    assert_eq!(view["status"], "running");
    assert_eq!(view["createdAt"], "2022-06-06T10:20:37.123Z");
    assert_eq!(view["links"][0]["url"], "https://orange.example.org");
    assert_eq!(view["edits"]["application"][1]["kind"], "removed");
    assert_eq!(view["failed"], true);
    let log = world.env_get("s/orange/actions").await;
    let newest = &log["items"][0];
    assert_eq!(
        (&newest["kind"], &newest["exit"]),
        (&json!("update"), &json!(1))
    );
    assert_eq!(
        (&newest["author"], &newest["imported"]),
        (&json!("octopod"), &json!(true))
    );
    assert_eq!(newest["startedAt"], "2022-06-06T10:20:54.79Z");
    let id = newest["id"].as_str().unwrap();
    let printed = world.env_get(&format!("s/orange/actions/{id}/log")).await;
    assert_eq!(printed["lines"][2]["text"], "three");
    assert_eq!(printed["lines"][2]["stream"], "stderr");
    assert_eq!(
        world.env_get("s/lemon").await["archivedAt"],
        "2022-06-07T00:00:00Z"
    );

    let again = outcomes(&import(&world, all, false).await);
    let known = "orange known 0 it was taken over before\nlemon known 0 it was taken over before\nfig exists 0 there is another of that name, which is running\n";
    assert_eq!(again, known);
    assert_eq!(world.env_get("s/orange").await, view);
    assert_eq!(world.env_get("s/orange/actions").await, log);
}

#[tokio::test]
async fn what_was_done_elsewhere_is_never_taken_for_all_that_counted() {
    let world = World::with_settings(json!({})).await;
    import(&world, json!([orange()]), false).await;
    let log = world.env_get("s/orange/actions").await;
    let id = log["items"][0]["id"].as_str().unwrap();
    let body = json!({"action": id});
    let refused = world.env(Method::POST, "s/orange/redeploy", body).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let picture = refused.picture();
    assert!(
        picture.contains("IMPORT-006") && picture.contains("slipway env update orange"),
        "{picture}"
    );
    // Who archives it is told the defaults, too.
    let action = world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    let detail = world.env_get(&format!("s/orange/actions/{action}")).await;
    let told = super::lines(&detail["configuration"]["application"]);
    expect![[r#"
        image.tag = "v7" (edited)
        chart = "12.1.0" (default)
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_whole_with_every_place() {
    let world = World::with_settings(json!({})).await;
    let mut bad = orange();
    bad["name"] = json!("Too-Long-For-Anybody");
    bad["origin"] = json!("");
    bad["set"]["application"] = json!({"a..b": "1", "c": "\u{0}"});
    bad["remove"]["deployment"] = json!(["chart_version", "x="]);
    bad["links"][0]["url"] = json!("\u{1b}[2J");
    bad["actions"][1]["author"] = json!("a\nb");
    let body = json!({"environments": [lemon(), bad]});
    let answer = world.env(Method::POST, "-import", body).await;
    expect![[r#"
        400 IMPORT-004: 8 settings cannot be used
          environments[1].name [format] name has 20 characters, at most 16 are allowed
          environments[1].origin [format] allowed: 1 to 128 bytes in one line
          environments[1].links[0] [format] allowed: at most 4096 bytes in one line
          environments[1].set.application.a..b [format] key `a..b` has a dot or a blank too many; `a.b` would do
          environments[1].set.application.c [format] value has a NUL at position 0, which no program can be given
          environments[1].remove.deployment.x= [format] key `x` has '=', which keys cannot have
          environments[1].deployment.chart_version [duplicate] is named twice in one change
          environments[1].actions[1].author [format] allowed: at most 128 bytes in one line
          hint: correct or leave out what is listed, and send the rest again; nothing was taken over
    "#]].assert_eq(&answer.picture());
    let mut odd = orange();
    odd["since"] = json!("yesterday");
    odd["status"] = json!("gone");
    odd["actions"][0]["exit"] = json!(1.5);
    odd["actions"][1]["number"] = json!(-1);
    odd["colour"] = json!("red");
    let body = json!({"environments": [odd]});
    let answer = world.env(Method::POST, "-import", body).await;
    expect![[r#"
        400 API-001: the body has 5 faults
          environments[0].status [format] found `gone`, allowed: create-pending, update-pending, archive-pending, running, failure, partial-failure, tag-mismatch, archived, cleanup-failed
          environments[0].since [type] found a text, allowed: a point in time like 2026-03-07T02:00:00Z
          environments[0].actions[0].exit [type] found 1.5, allowed: a whole number from -2147483648 to 2147483647
          environments[0].actions[1].number [type] found -1, allowed: a whole number from 0 to 9223372036854775807
          environments[0].colour [unknown-field] unknown field; allowed: name, origin, status, since, createdAt, updatedAt, archivedAt, set, remove, links, actions
          hint: compare the body with /openapi.json
    "#]].assert_eq(&answer.picture());
    let many: Vec<_> = (0..201).map(|_| orange()).collect();
    let body = json!({"environments": many});
    let answer = world.env(Method::POST, "-import", body).await;
    assert!(
        answer.picture().contains("allowed: at most 200"),
        "{}",
        answer.text
    );
    assert_eq!(world.env_get("s").await["items"], json!([]));
    let nothing = World::new();
    let body = json!({"environments": [orange()]});
    let answer = nothing.env(Method::POST, "-import", body).await;
    assert!(
        answer.picture().starts_with("409 ENV-012"),
        "{}",
        answer.text
    );
}
