//! Secrets: values go in and never come out; keys are changed while that goes on.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use model::access::Role;
use model::sealed::{Owner, Place};
use serde_json::{Value, json};
use store::Page;
use tokio::task::JoinSet;
use vault::Vault;

use crate::world::{Answer, HELLO, PROJECT, TOKEN, World};

/// What nobody may see.
const VALUE: &str = "correct horse battery staple";

async fn ask(world: &World, method: Method, name: &str, body: Value) -> Answer {
    let path = format!("{PROJECT}/secrets/{name}");
    world.ask(TOKEN, method, &path, body).await
}

async fn get(world: &World, path: &str) -> Answer {
    world.ask(TOKEN, Method::GET, path, Value::Null).await
}

/// What the vault gives to somebody who may have it.
async fn opened(world: &World, name: &str, entry: &str) -> Option<Vec<u8>> {
    let place = Place {
        project: "default".parse().unwrap(),
        owner: Owner::Secret(name.parse().unwrap()),
        entry: entry.parse().unwrap(),
    };
    let opened = world.server.vault.open(&place, &"test".into()).await;
    opened.unwrap().map(|value| value.expose().to_vec())
}

/// Whether a text tells the value, in any form somebody may find.
fn tells(text: &str) -> bool {
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    // Base64 of a part: all but the ends are the same wherever it begins.
    let inside = |cut: usize| {
        let encoded = STANDARD.encode(&VALUE.as_bytes()[cut..]);
        encoded[..encoded.len() - 4].to_owned()
    };
    let forms = [VALUE.to_owned(), hex, inside(0), inside(1), inside(2)];
    forms.iter().any(|form| text.contains(form))
}

#[tokio::test]
async fn values_go_in_and_never_come_out() {
    let world = World::new();
    let bytes = json!({"base64": STANDARD.encode([0xff, 0x00])});
    let entries = json!({"entries": {"token": VALUE, "cert": bytes}});
    let set = ask(&world, Method::PUT, "cloud", entries).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    let shown = ask(&world, Method::GET, "cloud", Value::Null).await;
    assert_eq!(set.json(), shown.json());
    let listed = world.get("/secrets").await;
    assert_eq!(listed.json()["items"], json!([shown.json()]));
    expect![[r#"
        {
          "entries": [
            "cert",
            "token"
          ],
          "name": "cloud",
          "updatedAt": "2026-01-01T00:00:00Z",
          "updatedBy": "admin",
          "version": 1
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&shown.json()).unwrap());
    let audit = get(&world, "/api/v1/audit").await;
    assert!(audit.text.contains("set cert, token"), "{}", audit.text);
    let events = world.get("/events?after=0").await;
    for answer in [set, shown, listed, audit, events] {
        assert!(answer.status.is_success());
        assert!(!tells(&answer.text), "{}", answer.text);
    }
    assert_eq!(
        opened(&world, "cloud", "token").await.unwrap(),
        VALUE.as_bytes()
    );
    assert_eq!(opened(&world, "cloud", "cert").await.unwrap(), [0xff, 0x00]);
    assert!(tells(&format!(
        "..{}..",
        STANDARD.encode(format!("x{VALUE}"))
    )));
}

#[tokio::test]
async fn entries_are_added_replaced_and_removed() {
    let world = World::new();
    let names = |answer: Answer| {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        (
            answer.json()["entries"].clone(),
            answer.json()["version"].clone(),
        )
    };
    let patch = |body: Value| ask(&world, Method::PATCH, "cloud", body);
    let first = patch(json!({"entries": {"a": "1", "b": "2"}})).await;
    assert_eq!(names(first), (json!(["a", "b"]), json!(1)));
    let second = patch(json!({"entries": {"a": null, "c": "3"}})).await;
    assert_eq!(names(second), (json!(["b", "c"]), json!(2)));
    let third = patch(json!({"entries": {"nobody": null}})).await;
    assert_eq!(names(third), (json!(["b", "c"]), json!(3)));
    let put = ask(&world, Method::PUT, "cloud", json!({"entries": {"c": "4"}})).await;
    assert_eq!(names(put), (json!(["c"]), json!(4)));
    assert_eq!(opened(&world, "cloud", "c").await.unwrap(), b"4");
    assert_eq!(opened(&world, "cloud", "b").await, None);

    let gone = ask(&world, Method::DELETE, "cloud", Value::Null).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let told: String = [Method::GET, Method::DELETE]
        .map(|method| ask(&world, method, "cloud", Value::Null))
        .into_iter()
        .map(|answer| {
            futures_util::FutureExt::now_or_never(answer)
                .unwrap()
                .picture()
        })
        .collect();
    expect![[r#"
        404 API-002: there is no secret `cloud`
          hint: list them with `slipway secret list`
        404 API-002: there is no secret `cloud`
          hint: list them with `slipway secret list`
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn a_bad_value_is_refused_by_its_place_alone() {
    let world = World::new();
    let body = json!({"entries": {"token": 7331, "cert": {"base64": VALUE}}, "value": VALUE});
    let refused = ask(&world, Method::PUT, "cloud", body).await;
    assert!(!tells(&refused.text) && !refused.text.contains("7331"));
    let mut told = refused.picture();
    let raw = |kind: &'static str, body: String| {
        let request = Request::put(format!("{PROJECT}/secrets/cloud"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", kind)
            .body(Body::from(body))
            .unwrap();
        world.send(request)
    };
    let json = "application/json";
    told += &raw(json, format!(r#"{{"entries": {{"token": "{VALUE}"#))
        .await
        .picture();
    told += &raw("text/plain", VALUE.to_owned()).await.picture();
    told += &raw(json, "x".repeat((4 << 20) + 1)).await.picture();
    assert!(!tells(&told), "{told}");
    expect![[r#"
        400 API-001: the body has 3 faults
          entries.cert.base64 [format] found something else, allowed: base64 with its padding
          entries.token [type] found a number, allowed: a text, an object with base64, or null
          value [unknown-field] unknown field; allowed: entries
          hint: compare the body with /openapi.json
        400 API-001: the body ends in the middle of its JSON, at line 1 column 51
          hint: compare the body with /openapi.json
        415 API-006: found `text/plain`, allowed: application/json
          hint: set the Content-Type of the request
        413 INPUT-003: the body with the values has more than 4194304 bytes
          hint: one value may have 1048576 bytes; set what there is one by one
    "#]]
    .assert_eq(&told);
    let nothing = ask(&world, Method::GET, "cloud", Value::Null).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_secret_has_so_many_entries_and_no_more() {
    let world = World::new();
    let many = |from: usize| {
        let entries: serde_json::Map<_, _> = (from..from + 60)
            .map(|at| (format!("k{at}"), json!("x")))
            .collect();
        json!({"entries": entries})
    };
    let first = ask(&world, Method::PATCH, "cloud", many(0)).await;
    assert_eq!(first.status, StatusCode::OK);
    let refused = ask(&world, Method::PATCH, "cloud", many(60)).await;
    expect![[r#"
        422 SEAL-013: the secret would have 120 entries, at most 100 are allowed
          hint: remove entries that nobody uses, or set a second secret
    "#]]
    .assert_eq(&refused.picture());
    assert_eq!(opened(&world, "cloud", "k60").await, None);
}

#[tokio::test]
async fn secrets_are_for_those_who_declare() {
    let world = World::new();
    world.make_project("other").await;
    ask(&world, Method::PUT, "cloud", json!({"entries": {"a": "1"}})).await;
    let path = format!("{PROJECT}/secrets");
    let viewer = world.give("vic", Role::Viewer, None).await;
    let stranger = world.give("sue", Role::Admin, Some("other")).await;
    for token in [viewer, stranger] {
        let refused = world.ask(&token, Method::GET, &path, Value::Null).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    let user = world.give("una", Role::User, Some("default")).await;
    let listed = world.ask(&user, Method::GET, &path, Value::Null).await;
    assert_eq!(listed.json()["items"][0]["name"], "cloud");
}

#[tokio::test]
async fn keys_are_rotated_behind_the_scenes() {
    let world = World::new();
    for number in 0..30 {
        let name = format!("secret-{number}");
        let set = ask(&world, Method::PUT, &name, json!({"entries": {"a": VALUE}})).await;
        assert_eq!(set.status, StatusCode::OK);
    }
    let before = get(&world, "/api/v1/keys").await.json();
    assert_eq!(
        (
            &before["left"],
            &before["keys"][0]["values"],
            &before["closed"]
        ),
        (&json!(0), &json!(30), &Value::Null)
    );
    let begun = world
        .ask(TOKEN, Method::POST, "/api/v1/keys/rotation", Value::Null)
        .await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text);
    assert_eq!(begun.header("location"), "/api/v1/keys");
    assert_eq!(begun.json()["left"], 30);
    assert_eq!(begun.json()["keys"][1]["id"], before["keys"][0]["id"]);
    let mut background = JoinSet::new();
    let (vault, stop) = (world.server.vault.clone(), world.stop.clone());
    background.spawn(async move { vault.run(stop).await });
    let after = loop {
        let keys = get(&world, "/api/v1/keys").await.json();
        if keys["keys"].as_array().unwrap().len() == 1 {
            break keys;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(after["left"], 0);
    assert_eq!(after["keys"][0]["values"], 30);
    assert_ne!(after["keys"][0]["id"], before["keys"][0]["id"]);
    for number in 0..30 {
        let name = format!("secret-{number}");
        assert_eq!(opened(&world, &name, "a").await.unwrap(), VALUE.as_bytes());
    }
    world.stop.cancel();
    background.join_all().await;
}

/// The same with `…` for every digest.
fn without_digests(text: &str) -> String {
    let digest = |word: &str| {
        let word = word
            .trim_end_matches([':', ',', '\n'])
            .trim_start_matches("key-");
        word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let words = text.split(' ');
    let words = words.map(|word| if digest(word) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Two servers, of which one was given another key file.
#[tokio::test]
async fn with_the_wrong_key_everything_but_secrets_works() {
    let mut world = World::new();
    ask(
        &world,
        Method::PUT,
        "cloud",
        json!({"entries": {"a": VALUE}}),
    )
    .await;
    let right = world.server.vault.clone();
    let clock = std::sync::Arc::clone(&world.server.clock);
    world.server.vault = Vault::in_memory(world.store.clone(), clock).await;
    world.router = server::router(world.server.clone(), world.stop.clone());

    let entries = json!({"entries": {"a": "2"}});
    let set = ask(&world, Method::PUT, "cloud", entries).await;
    assert_eq!(set.header("retry-after"), "2");
    let rotate = world
        .ask(TOKEN, Method::POST, "/api/v1/keys/rotation", Value::Null)
        .await;
    let told = without_digests(&set.picture());
    expect![[r#"
        503 SEAL-004: the vault is closed: cannot unwrap data key … it was wrapped by master key … and here is master key … in memory
          hint: add the line of the missing key to the end of the key file, or set the key command that wrapped it
    "#]].assert_eq(&told);
    assert_eq!(without_digests(&rotate.picture()), told);
    let keys = get(&world, "/api/v1/keys").await.json();
    assert_eq!(keys["closed"]["code"], "SEAL-004");
    assert_eq!(
        keys["keys"].as_array().unwrap().len(),
        1,
        "no other key was drawn"
    );

    let shown = ask(&world, Method::GET, "cloud", Value::Null).await;
    assert_eq!(shown.json()["entries"], json!(["a"]));
    assert_eq!(world.submit(HELLO).await.status, StatusCode::ACCEPTED);
    let gone = ask(&world, Method::DELETE, "cloud", Value::Null).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    // The other server is not disturbed by any of this.
    assert!(right.closed().is_none());
    let page = Page::default();
    assert!(
        world
            .store
            .secrets(&"default".parse().unwrap(), page)
            .await
            .is_ok()
    );
}

/// Nothing is begun with it, and nothing of it is told; one that is not set is waited for.
#[tokio::test]
async fn what_opens_no_account_is_refused_with_the_manifest() {
    let world = World::new();
    let declared = |secret: &str| {
        let lab = "{name: lab, providerType: simulated}";
        assert!(HELLO.contains(lab), "{HELLO}");
        let cloud = format!("{{name: lab, providerType: hetzner, secretRef: {{name: {secret}}}}}");
        HELLO.replacen(lab, &cloud, 1)
    };
    let entries = json!({"entries": {"credentials": VALUE}});
    ask(&world, Method::PUT, "cloud", entries).await;
    let refused = world.submit(&declared("cloud")).await;
    assert!(!tells(&refused.text), "{}", refused.text);
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.providers[0].secretRef [format] found a secret that opens no account of hetzner: credentials is not 64 letters and digits
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
    let entries = json!({"entries": {"credentials": "x".repeat(64)}});
    ask(&world, Method::PUT, "cloud", entries).await;
    let admitted = world.submit(&declared("cloud")).await;
    assert_eq!(admitted.status, StatusCode::ACCEPTED, "{}", admitted.text);
    let later = world
        .submit(
            &declared("later")
                .replace("name: hello", "name: later")
                .replace("name: first", "name: second"),
        )
        .await;
    assert_eq!(later.status, StatusCode::ACCEPTED, "{}", later.text);
}
