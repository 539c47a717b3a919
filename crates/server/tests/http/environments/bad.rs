//! What cannot be: each is a problem of its own, with a hint, and changes nothing.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};

use crate::world::{World, filled, operations};

#[tokio::test]
async fn names_that_are_none_are_refused() {
    let world = World::with_settings(json!({})).await;
    let mut told = String::new();
    for name in [
        json!("a"),
        json!("a1234567890abcdef"),
        json!("1a"),
        json!("Orange"),
        json!("or_ange"),
        json!("orange-"),
        json!(""),
        json!("a\u{0}b"),
        Value::Null,
    ] {
        let answer = world.env(Method::POST, "s", json!({"name": name})).await;
        let picture = answer.picture();
        assert!(picture.contains("hint: write 2 to 16"), "{picture}");
        told.push_str(picture.lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        400 ENV-001: name: name has 1 characters, at least 2 are needed
        400 ENV-001: name: name has 17 characters, at most 16 are allowed
        400 ENV-001: name: name begins with '1'; it must begin with one of a-z
        400 ENV-001: name: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `orange`
        400 ENV-001: name: name has `_`; allowed are a-z, 0-9 and, inside, hyphens
        400 ENV-001: name: a name neither begins nor ends with a hyphen; allowed are a-z, 0-9 and, inside, hyphens
        400 ENV-001: name: name is empty
        400 ENV-001: name: name has `\0`; allowed are a-z, 0-9 and, inside, hyphens
        400 ENV-001: name: name is empty
    "#]]
    .assert_eq(&told);
    assert_eq!(world.env_get("s").await["items"], json!([]));
}

#[tokio::test]
async fn a_name_has_one_bearer_also_while_it_rests() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    let again = world
        .env(Method::POST, "s", json!({"name": "orange"}))
        .await;
    let mut told = again.picture();
    world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    world.deployed().await;
    let again = world
        .env(Method::POST, "s", json!({"name": "orange"}))
        .await;
    told.push_str(&again.picture());
    expect![[r#"
        409 ENV-002: environment `orange` exists already, and is running
          hint: change it with `slipway env update orange`, or choose another name
        409 ENV-002: environment `orange` exists already, and is archived
          hint: bring it back with `slipway env restore orange`, remove it with `slipway env cleanup orange`, or choose another name
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn keys_that_are_none_are_told_with_the_right_one() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    let before = world.env_get("s/orange").await;
    let mut told = String::new();
    for body in [
        json!({"set": {"application": {"image..tag": "v1"}}}),
        json!({"set": {"deployment": {" a . b ": "v1", ".c": "d", "": "e"}}}),
        json!({"remove": {"application": ["a=b"]}}),
        json!({"unset": {"deployment": ["a\nb", "x."]}}),
        json!({"set": {"application": {"a": "1"}}, "remove": {"application": ["a"]}}),
        json!({"tag": "v1", "set": {"application": {"image.tag": "v2"}}}),
        json!({"unset": {"application": ["a", "a"]}}),
    ] {
        let answer = world.env(Method::PATCH, "s/orange", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        told.push_str(&answer.picture());
    }
    expect![[r#"
        400 ENV-008: set.application.image..tag: key `image..tag` has a dot or a blank too many; `image.tag` would do
          set.application.image..tag [format] key `image..tag` has a dot or a blank too many; `image.tag` would do
          hint: parts of a name are joined by single dots, as in `image.tag`; nothing was changed
        400 ENV-008: 3 settings cannot be used
          set.deployment. [format] key is empty
          set.deployment. a . b  [format] key ` a . b ` has a dot or a blank too many; `a.b` would do
          set.deployment..c [format] key `.c` has a dot or a blank too many; `c` would do
          hint: parts of a name are joined by single dots, as in `image.tag`; nothing was changed
        400 ENV-008: remove.application.a=b: key `ab` has '=', which keys cannot have
          remove.application.a=b [format] key `ab` has '=', which keys cannot have
          hint: parts of a name are joined by single dots, as in `image.tag`; nothing was changed
        400 ENV-008: 2 settings cannot be used
          unset.deployment.a�b [format] key `ab` has '\n', which keys cannot have
          unset.deployment.x. [format] key `x.` has a dot or a blank too many; `x` would do
          hint: parts of a name are joined by single dots, as in `image.tag`; nothing was changed
        400 API-001: application.a: is named twice in one change
          application.a [duplicate] is named twice in one change
          hint: compare the body with /openapi.json
        400 API-001: application.image.tag: is named twice in one change
          application.image.tag [duplicate] is named twice in one change
          hint: compare the body with /openapi.json
        400 API-001: application.a: is named twice in one change
          application.a [duplicate] is named twice in one change
          hint: compare the body with /openapi.json
    "#]].assert_eq(&told);
    assert_eq!(world.env_get("s/orange").await, before);
}

#[tokio::test]
async fn values_may_be_anything_that_a_program_can_be_given() {
    let world = World::with_settings(json!({})).await;
    let odd = "a=\"b\" 'c'\n\t\u{1b}[2J, ümlaut = $(rm -rf /)";
    let set = json!({"application": {"odd": odd, "empty": ""}});
    world.running("orange", json!({"set": set})).await;
    let view = world.env_get("s/orange").await;
    assert_eq!(view["edits"]["application"][1]["value"], json!(odd));
    assert_eq!(view["edits"]["application"][0]["value"], json!(""));
    let mut told = String::new();
    for value in ["a\u{0}b".to_owned(), "x".repeat(200_000)] {
        let body = json!({"set": {"application": {"a": value}}, "tag": "v\u{0}"});
        told.push_str(&world.env(Method::PATCH, "s/orange", body).await.picture());
    }
    expect![[r#"
        400 ENV-009: 2 settings cannot be used
          tag [format] value has a NUL at position 1, which no program can be given
          set.application.a [format] value has a NUL at position 1, which no program can be given
          hint: any text will do that has no NUL and is shorter; a longer one belongs in a file that the application reads
        400 ENV-009: 2 settings cannot be used
          tag [format] value has a NUL at position 1, which no program can be given
          set.application.a [format] value has 200000 bytes, at most 130558 are allowed
          hint: any text will do that has no NUL and is shorter; a longer one belongs in a file that the application reads
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn bodies_of_another_shape_are_refused_with_every_fault() {
    let world = World::with_settings(json!({})).await;
    world.running("orange", json!({})).await;
    let mut told = String::new();
    for (method, path, body) in [
        (Method::POST, "s", json!([])),
        (
            Method::POST,
            "s",
            json!({"name": 1, "set": {"app": {}}, "colour": "red"}),
        ),
        (
            Method::PATCH,
            "s/orange",
            json!({"set": {"application": {"a": 1}}, "labels": []}),
        ),
        (Method::POST, "s/orange/clone", json!({})),
        (Method::POST, "s/orange/redeploy", json!({"action": 1})),
        (Method::POST, "s/orange/extend", json!({"seconds": 0})),
        (Method::PATCH, "s/orange", json!({"owner": "a\nb"})),
        (Method::PATCH, "s/orange", json!({"labels": {"a b": "c"}})),
        (Method::PATCH, "s/orange", json!({"labels": {"a": "c,d"}})),
        (Method::PATCH, "s/orange", json!({"notes": "\u{1b}[2J"})),
    ] {
        let answer = world.env(method, path, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let picture = answer.picture();
        let lines = picture.lines().filter(|line| !line.contains("hint:"));
        told.extend(lines.flat_map(|line| [line, "\n"]));
    }
    expect![[r#"
        400 API-001: found a list, allowed: an object with name, tag, set, secret, keep, remove, labels, owner, notes, protected, expiresInSeconds
           [type] found a list, allowed: an object with name, tag, set, secret, keep, remove, labels, owner, notes, protected, expiresInSeconds
        400 API-001: the body has 3 faults
          name [type] found 1, allowed: a text
          set.app [unknown-field] unknown field; allowed: application, deployment
          colour [unknown-field] unknown field; allowed: name, tag, set, secret, keep, remove, labels, owner, notes, protected, expiresInSeconds
        400 API-001: the body has 2 faults
          set.application.a [type] found 1, allowed: a text
          labels [type] found a list, allowed: an object
        400 API-001: name: found nothing; this field is required
          name [required] found nothing; this field is required
        400 API-001: action: found 1, allowed: a text
          action [type] found 1, allowed: a text
        400 API-008: seconds: found 0, allowed: 1 or more
          seconds [format] found 0, allowed: 1 or more
        400 API-008: owner: found control characters, allowed: one line of plain text
          owner [format] found control characters, allowed: one line of plain text
        400 API-008: labels.a b: a label is made of a-z, A-Z, 0-9, `.`, `_`, `-` and `/`
          labels.a b [format] a label is made of a-z, A-Z, 0-9, `.`, `_`, `-` and `/`
        400 API-008: labels.a: a value has no commas
          labels.a [format] a value has no commas
        400 API-008: notes: found control characters, allowed: plain text
          notes [format] found control characters, allowed: plain text
    "#]].assert_eq(&told);
}

/// Everything that may be done to an environment that is there.
fn everything() -> [(Method, &'static str, Value); 6] {
    [
        (Method::PATCH, "s/orange", json!({"tag": "v2"})),
        (Method::PUT, "s/orange", json!({})),
        (Method::POST, "s/orange/archive", Value::Null),
        (Method::POST, "s/orange/restore", Value::Null),
        (Method::POST, "s/orange/cleanup", Value::Null),
        (Method::DELETE, "s/orange", Value::Null),
    ]
}

#[tokio::test]
async fn what_does_not_fit_now_is_refused_with_what_does() {
    let world = World::with_settings(json!({})).await;
    world
        .begun(Method::POST, "s", json!({"name": "orange"}))
        .await;
    let mut told = String::new();
    for stage in ["busy", "running", "archived"] {
        told.push_str(&format!("{stage}\n"));
        for (method, path, body) in everything() {
            let fits = match stage {
                "running" => {
                    path == "s/orange" && method != Method::DELETE || path.ends_with("archive")
                }
                "archived" => path.ends_with("restore") || path.ends_with("cleanup"),
                _ => false,
            };
            if fits {
                continue;
            }
            let answer = world.env(method.clone(), path, body).await;
            assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
            let picture = answer.picture().replace("environment `orange`: ", "");
            told.push_str(&format!("{method} {path}: {picture}"));
        }
        if stage == "busy" {
            world.deployed().await;
        }
        if stage == "running" {
            world
                .begun(Method::POST, "s/orange/archive", Value::Null)
                .await;
            world.deployed().await;
        }
    }
    expect![[r#"
        busy
        PATCH s/orange: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        PUT s/orange: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        POST s/orange/archive: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        POST s/orange/restore: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        POST s/orange/cleanup: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        DELETE s/orange: 409 ENV-004: it is busy: create is under way
          hint: wait with `slipway env wait orange`, or end it with `slipway env cancel orange`
        running
        POST s/orange/restore: 409 ENV-005: restore is not possible while it is running
          hint: possible now: `update`, `archive`, `cleanup` with force, `delete` with force
        POST s/orange/cleanup: 409 ENV-005: cleanup is not possible while it is running
          hint: possible now: `update`, `archive`, `cleanup` with force, `delete` with force
        DELETE s/orange: 409 ENV-005: delete is not possible while it is running
          hint: possible now: `update`, `archive`, `cleanup` with force, `delete` with force
        archived
        PATCH s/orange: 409 ENV-005: update is not possible while it is archived
          hint: possible now: `restore`, `cleanup`, `delete` with force
        PUT s/orange: 409 ENV-005: update is not possible while it is archived
          hint: possible now: `restore`, `cleanup`, `delete` with force
        POST s/orange/archive: 409 ENV-005: archive is not possible while it is archived
          hint: possible now: `restore`, `cleanup`, `delete` with force
        DELETE s/orange: 409 ENV-005: delete is not possible while it is archived
          hint: possible now: `restore`, `cleanup`, `delete` with force
    "#]]
    .assert_eq(&told);
    assert_eq!(world.status("orange").await, "archived");
}

#[tokio::test]
async fn one_that_is_protected_and_one_too_many_are_refused() {
    let world = World::with_settings(json!({"upMax": 2})).await;
    world.running("orange", json!({"protected": true})).await;
    world.running("lemon", json!({})).await;
    let mut told = String::new();
    for (path, body) in [
        ("s/orange/archive", Value::Null),
        ("s", json!({"name": "lime"})),
    ] {
        told.push_str(&world.env(Method::POST, path, body).await.picture());
    }
    world
        .begun(Method::POST, "s/lemon/archive", Value::Null)
        .await;
    world.deployed().await;
    world.running("lime", json!({})).await;
    let restored = world
        .env(Method::POST, "s/lemon/restore", Value::Null)
        .await;
    told.push_str(&restored.picture());
    expect![[r#"
        409 ENV-006: environment `orange`: it is protected, and archive would end it
          hint: if it may go, take its protection away with `slipway env update orange --no-protect`, or let an operator force it
        403 ENV-007: there are 2 of 2 environments that are up
          hint: remove what nobody needs, or archive it where only those count that are up; or let an operator raise the limit: that of the quota with `slipway project quota`, that of those that are up with `slipway env settings set --up-max`
        403 ENV-007: there are 2 of 2 environments that are up
          hint: remove what nobody needs, or archive it where only those count that are up; or let an operator raise the limit: that of the quota with `slipway project quota`, that of those that are up with `slipway env settings set --up-max`
    "#]].assert_eq(&told);
}

/// Every route that names an environment says so when there is none.
#[tokio::test]
async fn unknown_names_are_not_found_on_every_route() {
    let world = World::with_settings(json!({})).await;
    let mut asked = 0;
    for (path, method, _) in operations() {
        if !path.contains("/environments/{name}") {
            continue;
        }
        let body = match path.rsplit('/').next().unwrap() {
            "clone" => json!({"name": "lemon"}),
            "redeploy" => json!({"action": "action-0000000000000"}),
            "extend" => json!({"seconds": 60}),
            "{name}" if method != Method::GET && method != Method::DELETE => json!({}),
            _ => Value::Null,
        };
        let answer = world
            .ask(crate::world::TOKEN, method.clone(), &filled(&path), body)
            .await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{method} {path}: {}",
            answer.text
        );
        let code = if path.contains("{id}") {
            "ENV-015"
        } else {
            "ENV-003"
        };
        assert!(
            answer.text.contains(code),
            "{method} {path}: {}",
            answer.text
        );
        asked += 1;
    }
    assert_eq!(asked, 17);
    let odd = world.env(Method::GET, "s/Not-A-Name", Value::Null).await;
    assert!(odd.text.contains("API-008"), "{}", odd.text);
}
