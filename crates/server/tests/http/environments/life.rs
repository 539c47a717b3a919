//! What is done to an environment, from its first day to its last.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use serde_json::{Value, json};
use store::ActionEnded;

use super::lines;
use crate::world::{PROJECT, World};

#[tokio::test]
async fn an_environment_comes_with_what_it_is_configured_with() {
    let world = World::with_settings(json!({})).await;
    let body = json!({
        "name": "orange", "tag": "v1", "owner": "ana", "notes": "for the fair",
        "labels": {"team": "web"}, "expiresInSeconds": 3600,
        "set": {"application": {"replicas": "2"}, "deployment": {"chart_version": "13"}},
        "remove": {"application": ["ingress.enabled"]},
    });
    let answer = world.env(Method::POST, "s", body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let accepted = answer.json();
    let action = accepted["action"].as_str().unwrap();
    assert_eq!(
        answer.header("location"),
        format!("{PROJECT}/environments/orange/actions/{action}")
    );
    assert_eq!(
        (&accepted["name"], &accepted["kind"], &accepted["state"]),
        (&json!("orange"), &json!("create"), &json!("waiting"))
    );
    let view = world.env_get("s/orange").await;
    assert_eq!(view["status"], "create-pending");
    assert_eq!(view["busy"]["action"], json!(action));
    assert_eq!(view["exits"], json!([{"verb": "cancel", "force": false}]));
    assert_eq!(
        (&view["owner"], &view["labels"], &view["notes"]),
        (
            &json!("ana"),
            &json!({"team": "web"}),
            &json!("for the fair")
        )
    );
    assert_eq!(view["expiresAt"], "2026-01-01T01:00:00Z");
    let detail = world.env_get(&format!("s/orange/actions/{action}")).await;
    expect![[r#"
        image.tag = "v1" (edited)
        chart = "13" (default)
        replicas = "2" (added)
    "#]]
    .assert_eq(&lines(&detail["configuration"]["application"]));
    expect![[r#"
        chart_name = "shop" (default)
        chart_version = "13" (edited)
    "#]]
    .assert_eq(&lines(&detail["configuration"]["deployment"]));
    world.deployed().await;
    assert_eq!(world.status("orange").await, "running");
}

#[tokio::test]
async fn an_environment_changes_rests_comes_back_and_goes() {
    let world = World::with_settings(json!({})).await;
    let body = json!({
        "tag": "v1", "notes": "for the fair", "labels": {"team": "web"},
        "set": {"application": {"replicas": "2"}, "deployment": {"chart_version": "13"}},
        "remove": {"application": ["ingress.enabled"]},
    });
    world.running("orange", body).await;
    let change = json!({
        "tag": "v2", "set": {"application": {"debug": "on"}},
        "unset": {"application": ["ingress.enabled"], "deployment": ["chart_version"]},
        "labels": {"team": null, "size": "small"}, "owner": "bob",
    });
    world.begun(Method::PATCH, "s/orange", change).await;
    assert_eq!(world.status("orange").await, "update-pending");
    world.deployed().await;
    let view = world.env_get("s/orange").await;
    assert_eq!(
        (&view["owner"], &view["labels"], &view["notes"]),
        (
            &json!("bob"),
            &json!({"size": "small"}),
            &json!("for the fair")
        )
    );
    let whole = world.env_get("s/orange/configuration").await;
    expect![[r#"
        ingress.enabled = "true" (default)
        image.tag = "v2" (edited)
        chart = "12.0.0" (default)
        debug = "on" (added)
        replicas = "2" (added)
    "#]]
    .assert_eq(&lines(&whole["application"]));
    expect![[r#"
        chart_name = "shop" (default)
        chart_version = "12.0.0" (default)
    "#]]
    .assert_eq(&lines(&whole["deployment"]));

    world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    assert_eq!(world.status("orange").await, "archive-pending");
    world.deployed().await;
    assert_eq!(world.status("orange").await, "archived");
    world
        .begun(Method::POST, "s/orange/restore", Value::Null)
        .await;
    world.deployed().await;
    world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    world.deployed().await;
    let last = world
        .begun(Method::POST, "s/orange/cleanup", Value::Null)
        .await;
    world.deployed().await;
    let gone = world.env(Method::GET, "s/orange", Value::Null).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let detail = world.env_get(&format!("s/orange/actions/{last}")).await;
    assert_eq!(
        (&detail["kind"], &detail["state"]),
        (&json!("cleanup"), &json!("done"))
    );
}

#[tokio::test]
async fn what_is_only_tried_changes_nothing() {
    let world = World::with_settings(json!({})).await;
    let body =
        json!({"name": "orange", "tag": "v1", "set": {"deployment": {"chart_version": "13"}}});
    let tried = world.env(Method::POST, "s?dryRun=true", body.clone()).await;
    assert_eq!(tried.status, StatusCode::OK, "{}", tried.text);
    let tried = tried.json();
    assert_eq!(
        (&tried["accepted"], &tried["said"]),
        (&json!(true), &Value::Null)
    );
    let shown = lines(&tried["configuration"]["application"]);
    expect![[r#"
        ingress.enabled = "true" (default)
        image.tag = "v1" (edited)
        chart = "13" (default)
    "#]]
    .assert_eq(&shown);
    assert_eq!(world.env_get("s").await["items"], json!([]));

    world.running("orange", body).await;
    let before = world.env_get("s/orange").await;
    let bad = json!({"set": {"application": {"bad": "no such image"}}});
    let tried = world
        .env(Method::PATCH, "s/orange?dryRun=true", bad.clone())
        .await;
    assert_eq!(tried.status, StatusCode::OK, "{}", tried.text);
    assert_eq!(tried.json()["accepted"], json!(false));
    assert_eq!(tried.json()["said"], "orange: no such image\n");
    let tried = world
        .env(Method::PUT, "s/orange?dryRun=true", json!({}))
        .await;
    expect![[r#"
        ingress.enabled = "true" (default)
        image.tag = "" (default)
        chart = "12.0.0" (default)
    "#]]
    .assert_eq(&lines(&tried.json()["configuration"]["application"]));
    assert_eq!(world.env_get("s/orange").await, before);

    let refused = world.env(Method::PATCH, "s/orange", bad).await;
    expect![[r#"
        422 ENV-010: orange: no such image
          hint: that is what the project's check said: its script `config_check`, or Helm; nothing was changed
    "#]]
    .assert_eq(&refused.picture());
    assert_eq!(world.env_get("s/orange").await, before);
}

#[tokio::test]
async fn a_whole_request_takes_the_place_of_all_edits() {
    let world = World::with_settings(json!({})).await;
    let set = json!({"application": {"a": "1", "b": "2"}});
    world
        .running(
            "orange",
            json!({"set": set, "owner": "ana", "labels": {"x": "y"}}),
        )
        .await;
    let put = json!({"name": "orange", "set": {"application": {"b": "3"}}, "protected": true});
    world.begun(Method::PUT, "s/orange", put).await;
    let view = world.env_get("s/orange").await;
    assert_eq!(
        view["edits"],
        json!({"application": [{"key": "b", "kind": "set", "value": "3"}], "deployment": []})
    );
    assert_eq!(
        (&view["owner"], &view["labels"], &view["protected"]),
        (&json!(""), &json!({}), &json!(true))
    );
    let renamed = world
        .env(Method::PUT, "s/orange", json!({"name": "lemon"}))
        .await;
    assert_eq!(renamed.status, StatusCode::BAD_REQUEST, "{}", renamed.text);
}

#[tokio::test]
async fn what_says_nothing_of_settings_has_nothing_done_to_it() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    for (method, path, body) in [
        (
            Method::PATCH,
            "s/orange",
            json!({"labels": {"team": "web"}}),
        ),
        (Method::POST, "s/orange/extend", json!({"seconds": 60})),
        (Method::POST, "s/orange/extend", json!({"seconds": null})),
    ] {
        let answer = world.env(method, path, body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        assert_eq!(answer.json()["action"], Value::Null);
        assert_eq!(
            answer.header("location"),
            format!("{PROJECT}/environments/orange")
        );
    }
    let view = world.env_get("s/orange").await;
    assert_eq!(
        (&view["status"], &view["generation"], &view["expiresAt"]),
        (&json!("running"), &json!(4), &Value::Null)
    );
}

#[tokio::test]
async fn somebody_elses_change_is_not_overwritten() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    let set = |value: &str| json!({"set": {"application": {"a": value}}});
    let mut told = String::new();
    for (method, path, body) in [
        (Method::PATCH, "s/orange", set("1")),
        (Method::PUT, "s/orange", json!({})),
        (Method::POST, "s/orange/archive", Value::Null),
    ] {
        let answer = world.env_if(method, path, 7, body).await;
        told.push_str(&answer.picture());
    }
    expect![[r#"
        412 ENV-014: it has generation 1, and not 7
          hint: read the environment again, and send the change with its generation in If-Match
        412 ENV-014: it has generation 1, and not 7
          hint: read the environment again, and send the change with its generation in If-Match
        412 ENV-014: it has generation 1, and not 7
          hint: read the environment again, and send the change with its generation in If-Match
    "#]]
    .assert_eq(&told);
    let now = world.env_if(Method::PATCH, "s/orange", 1, set("1")).await;
    assert_eq!(now.status, StatusCode::ACCEPTED, "{}", now.text);
}

#[tokio::test]
async fn what_is_under_way_can_be_called_off() {
    let world = World::with_settings(json!({})).await;
    world
        .begun(Method::POST, "s", json!({"name": "orange"}))
        .await;
    let cancelled = world
        .env(Method::POST, "s/orange/cancel", Value::Null)
        .await;
    assert_eq!(cancelled.status, StatusCode::ACCEPTED, "{}", cancelled.text);
    assert_eq!(
        (&cancelled.json()["state"], &cancelled.json()["generation"]),
        (&json!("cancelled"), &Value::Null)
    );
    let gone = world.env(Method::GET, "s/orange", Value::Null).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);

    world.running("lemon", json!({})).await;
    let none = world.env(Method::POST, "s/lemon/cancel", Value::Null).await;
    expect![[r#"
        409 ENV-017: nothing is being done to environment `lemon`
          hint: see how it is with `slipway env info lemon`
    "#]]
    .assert_eq(&none.picture());
    world
        .begun(Method::POST, "s/lemon/archive", Value::Null)
        .await;
    let claim = world.take_up().await.pop().unwrap();
    let asked = world.env(Method::POST, "s/lemon/cancel", Value::Null).await;
    assert_eq!(asked.json()["state"], "running", "{}", asked.text);
    world.end_action(&claim, ActionEnded::Cancelled).await;
    let view = world.env_get("s/lemon").await;
    assert_eq!(
        (&view["failed"], &view["busy"]),
        (&json!(false), &Value::Null)
    );
    let cancelled = &view["cancelled"];
    assert_eq!(
        (&cancelled["kind"], &cancelled["by"]),
        (&json!("archive"), &json!("admin")),
        "{cancelled}"
    );
    let path = format!("s/lemon/actions/{}", cancelled["action"].as_str().unwrap());
    let action = world.env_get(&path).await;
    assert_eq!(
        (&action["state"], &action["cancelledBy"], &action["error"]),
        (
            &json!("cancelled"),
            &json!("admin"),
            &json!("admin called it off")
        )
    );
    assert_eq!(action["cancelledAt"], cancelled["at"]);
}

#[tokio::test]
async fn an_earlier_action_counts_again_exactly_as_it_was() {
    let world = World::with_settings(json!({})).await;
    let first = world
        .begun(Method::POST, "s", json!({"name": "orange", "tag": "v1"}))
        .await;
    world.deployed().await;
    world
        .begun(Method::PATCH, "s/orange", json!({"tag": "v2"}))
        .await;
    world.deployed().await;
    let again = world
        .begun(Method::POST, "s/orange/redeploy", json!({"action": first}))
        .await;
    let of = async |action: &str| {
        let detail = world.env_get(&format!("s/orange/actions/{action}")).await;
        (
            detail["kind"].clone(),
            detail["configuration"].clone(),
            detail["edits"].clone(),
        )
    };
    let (was, is) = (of(&first).await, of(&again).await);
    assert_eq!((&was.1, &was.2), (&is.1, &is.2));
    assert_eq!(is.0, "update");
    world.deployed().await;

    world.running("lemon", json!({})).await;
    let mut told = String::new();
    for action in [first.as_str(), "action-0000000000000", "nonsense"] {
        let body = json!({"action": action});
        let answer = world.env(Method::POST, "s/lemon/redeploy", body).await;
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        404 ENV-015: environment `lemon` has no action `ACTION`
        404 ENV-015: environment `lemon` has no action `action-0000000000000`
        400 API-008: action: `nonsense` is not an id of the form `action-` and 13 characters
    "#]]
    .assert_eq(&told.replace(&first, "ACTION"));
}

#[tokio::test]
async fn a_copy_has_the_same_edits() {
    let world = World::with_settings(json!({})).await;
    let set = json!({"application": {"a": "1"}, "deployment": {"b": "2"}});
    world
        .running(
            "orange",
            json!({"set": set, "owner": "ana", "protected": true}),
        )
        .await;
    world
        .begun(Method::POST, "s/orange/clone", json!({"name": "lemon"}))
        .await;
    let (of, copy) = (
        world.env_get("s/orange").await,
        world.env_get("s/lemon").await,
    );
    assert_eq!(
        (&of["edits"], &of["owner"]),
        (&copy["edits"], &copy["owner"])
    );
    assert_eq!(copy["protected"], json!(false));
    let mut told = String::new();
    for name in ["orange", "L"] {
        let body = json!({"name": name});
        let answer = world.env(Method::POST, "s/orange/clone", body).await;
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        409 ENV-002: environment `orange` exists already, and is running
        400 ENV-001: name: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `l`
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn somebody_can_look_now() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    world
        .running("lemon", json!({"set": {"application": {"sick": "yes"}}}))
        .await;
    let good = world
        .env(Method::POST, "s/orange/look", Value::Null)
        .await
        .json();
    assert_eq!(
        (&good["seen"], &good["said"]),
        (&json!("good"), &json!("Up"))
    );
    let bad = world
        .env(Method::POST, "s/lemon/look", Value::Null)
        .await
        .json();
    assert_eq!(bad["seen"], "partial-failure");
    assert_eq!(
        world.status("lemon").await,
        "running",
        "what was seen is only told"
    );
    // Whoever looks is told what was deployed, and not what the defaults are by now.
    world.set_up(json!({"scripts": "/newer"})).await;
    let good = world.env(Method::POST, "s/orange/look", Value::Null).await;
    assert_eq!(good.json()["seen"], "good");
}

#[tokio::test]
async fn force_and_forgetting_are_for_operators() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({"protected": true})).await;
    let user = world.give("user", Role::User, None).await;
    let path = format!("{PROJECT}/environments/orange");
    let ask = async |token: &str, method, path: String| {
        let answer = world.ask(token, method, &path, Value::Null).await;
        answer.picture().lines().next().unwrap().to_owned() + "\n"
    };
    let mut told = String::new();
    told += &ask(&user, Method::POST, format!("{path}/archive")).await;
    told += &ask(&user, Method::POST, format!("{path}/archive?force=true")).await;
    told += &ask(&user, Method::POST, format!("{path}/cleanup?force=true")).await;
    told += &ask(&user, Method::DELETE, path.clone()).await;
    let operator = world.give("operator", Role::Operator, None).await;
    told += &ask(&operator, Method::DELETE, path.clone()).await;
    told += &ask(&operator, Method::DELETE, format!("{path}?force=true")).await;
    told += &ask(&operator, Method::GET, path).await;
    expect![[r#"
        409 ENV-006: environment `orange`: it is protected, and archive would end it
        403 AUTH-005: this needs the role operator, and the token has the role user
        403 AUTH-005: this needs the role operator, and the token has the role user
        403 AUTH-005: this needs the role operator, and the token has the role user
        409 ENV-006: environment `orange`: it is protected, and delete would end it
        202 Accepted application/json
        404 ENV-003: there is no environment `orange`
    "#]]
    .assert_eq(&told);
}
