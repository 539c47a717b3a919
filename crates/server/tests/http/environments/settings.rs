//! What a project says of its environments, and what its scripts tell.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};

use super::{lines, usual};
use crate::world::World;

#[tokio::test]
async fn what_is_left_out_is_as_usual() {
    let world = World::new();
    let none = world.env(Method::GET, "-settings", Value::Null).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert!(none.text.contains("ENV-012"), "{}", none.text);
    let put = world.env(Method::PUT, "-settings", usual()).await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text);
    let shown = world.env_get("-settings").await;
    assert_eq!(shown, put.json());
    expect![[r#"
        {
          "settings": {
            "actionSeconds": 1800,
            "baseDomain": "shop.example.org",
            "checkSeconds": 60,
            "contract": "current",
            "everySeconds": 15,
            "namespace": "shop",
            "pendingSeconds": 600,
            "projectName": "Shop",
            "retentionSeconds": 1209600,
            "scripts": "/scripts",
            "tagKey": "image.tag"
          },
          "updatedAt": "2026-01-01T00:00:00Z",
          "updatedBy": "admin",
          "version": 1,
          "warnings": []
        }
    "#]]
    .assert_eq(&format!("{shown:#}\n"));
    let argv = World::with_settings(json!({"secretDelivery": "argv", "upMax": 3})).await;
    let shown = argv.env_get("-settings").await;
    let warning = shown["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("everybody on the machine can read"),
        "{warning}"
    );
}

#[tokio::test]
async fn what_is_said_of_helm_idleness_and_hours_is_kept_as_it_was_said() {
    let world = World::new();
    let settings = json!({
        "projectName": "Shop", "baseDomain": "shop.example.org", "namespace": "shop",
        "helm": {"chart": "/srv/chart", "kubeconfig": {"secret": "way/config"}, "host": "ingress.host"},
        "idleSeconds": 3600, "hours": ["Mon,Tue 08:00-19:00 +01:00"],
    });
    let answer = world.env(Method::PUT, "-settings", settings.clone()).await;
    let shown = answer.json();
    for field in ["helm", "idleSeconds", "hours"] {
        assert_eq!(shown["settings"][field], settings[field], "{shown}");
    }
    assert_eq!(shown["settings"]["scripts"], Value::Null);
    for (field, value) in [
        ("scripts", json!("/scripts")),
        ("helm", json!(null)),
        ("helm", json!({"chart": "chart"})),
        (
            "helm",
            json!({"chart": "/c", "kubeconfig": {"secret": "way"}}),
        ),
        ("helm", json!({"chart": "/c", "kubeconfig": {"file": "f"}})),
        ("helm", json!({"chart": "/c", "host": "a..b"})),
        ("hours", json!(["always"])),
    ] {
        let mut wrong = settings.clone();
        wrong[field] = value;
        let answer = world.env(Method::PUT, "-settings", wrong).await;
        assert_eq!(answer.status, 400, "{}", answer.picture());
    }
    assert_eq!(world.env_get("-settings").await["version"], 1);
}

#[tokio::test]
async fn settings_that_scripts_cannot_be_told_are_refused() {
    let world = World::new();
    let mut told = String::new();
    for (field, value) in [
        ("projectName", json!("")),
        ("projectName", json!("a\u{0}b")),
        ("baseDomain", json!("x".repeat(2000))),
        ("baseDomain", json!("https://shop.example.org/")),
        ("baseDomain", json!("shop.example.org:0")),
        ("namespace", json!("Not A Name")),
        ("scripts", json!("scripts")),
        ("tagKey", json!("image..tag")),
        ("secretDelivery", json!("mail")),
        ("actionSeconds", json!(0)),
        ("retentionSeconds", json!(-1)),
        ("colour", json!("red")),
    ] {
        let mut settings = usual();
        settings[field] = value;
        let answer = world.env(Method::PUT, "-settings", settings).await;
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        400 API-008: projectName: found nothing; scripts are told this
        400 API-008: projectName: found control characters, allowed: one line of plain text
        400 API-008: baseDomain: a name of DNS has at most 253 characters, not 2000; allowed: a name like shop.example.org
        400 API-008: baseDomain: found `https://shop.example.org/`, allowed: a name like shop.example.org, for scripts also with a port behind a colon
        400 API-008: baseDomain: found `shop.example.org:0`, allowed: a name like shop.example.org, for scripts also with a port behind a colon
        400 API-008: namespace: `N` is upper case; allowed are a-z, 0-9 and, inside, hyphens
        400 API-008: scripts: allowed: an absolute path on the server
        400 API-008: tagKey: key `image..tag` has a dot or a blank too many; `image.tag` would do
        400 API-001: secretDelivery: found `mail`, allowed: file, env, argv
        400 API-008: actionSeconds: found 0, allowed: 1 or more
        400 API-001: retentionSeconds: found -1, allowed: a whole number from 0 to 4294967295
        400 API-001: colour: unknown field; allowed: projectName, baseDomain, namespace, cluster, scripts, helm, contract, tagKey, secretDelivery, actionSeconds, checkSeconds, pendingSeconds, everySeconds, retentionSeconds, idleSeconds, hours, upMax, sources, notify
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn defaults_and_keys_are_told_by_level_and_by_how_it_is_deployed() {
    let world = World::with_settings(json!({})).await;
    world
        .running(
            "orange",
            json!({"set": {"deployment": {"chart_version": "13"}}}),
        )
        .await;
    let mut told = String::new();
    for query in [
        "level=deployment",
        "level=application",
        "level=application&environment=orange",
    ] {
        let answer = world.env_get(&format!("-defaults?{query}")).await;
        told.push_str(&format!("{query}\n{}", lines(&answer["settings"])));
        let answer = world.env_get(&format!("-keys?{query}")).await;
        told.push_str(&format!("{}\n", answer["keys"]));
    }
    expect![[r#"
        level=deployment
        chart_name = "shop" (default)
        chart_version = "12.0.0" (default)
        ["chart_name","chart_version"]
        level=application
        ingress.enabled = "true" (default)
        image.tag = "" (default)
        chart = "12.0.0" (default)
        ["image.tag","replicas"]
        level=application&environment=orange
        ingress.enabled = "true" (default)
        image.tag = "" (default)
        chart = "13" (default)
        ["image.tag","replicas"]
    "#]]
    .assert_eq(&told);
    let mut told = String::new();
    for path in [
        "-defaults",
        "-defaults?level=middle",
        "-keys?level=application&environment=lemon",
        "-keys?level=application&environment=L",
    ] {
        let answer = world.env(Method::GET, path, Value::Null).await;
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        400 API-008: query: missing field `level`
        400 API-008: query: level: unknown variant `middle`, expected `application` or `deployment`
        404 ENV-003: there is no environment `lemon`
        400 API-008: environment: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `l`
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn scripts_that_do_not_answer_are_told_and_nothing_is_changed() {
    let world = World::with_settings(json!({"scripts": "/broken"})).await;
    let mut told = String::new();
    for (method, path, body) in [
        (Method::GET, "-defaults?level=application", Value::Null),
        (Method::GET, "-keys?level=deployment", Value::Null),
        (Method::POST, "s", json!({"name": "orange"})),
    ] {
        told.push_str(&world.env(method, path, body).await.picture());
    }
    expect![[r#"
        409 ENV-036: deployment_config exited with status 7 (SCRIPT-005)
          hint: correct the script; nothing was changed. `slipway env scripts check DIR` tries all scripts of a directory
        409 ENV-036: deployment_config exited with status 7 (SCRIPT-005)
          hint: correct the script; nothing was changed. `slipway env scripts check DIR` tries all scripts of a directory
        409 ENV-036: deployment_config exited with status 7 (SCRIPT-005)
          hint: correct the script; nothing was changed. `slipway env scripts check DIR` tries all scripts of a directory
    "#]]
    .assert_eq(&told);
    assert_eq!(world.env_get("s").await["items"], json!([]));
    let world = World::new();
    let answer = world
        .env(Method::POST, "s", json!({"name": "orange"}))
        .await;
    expect![[r#"
        409 ENV-012: project `default` has no settings for environments
          hint: let an operator say where they are placed and who deploys them: `slipway env settings set`
    "#]].assert_eq(&answer.picture());
}

#[tokio::test]
async fn what_is_not_there_yet_is_warned_of_and_not_refused() {
    let more = json!({"scripts": "/nowhere", "cluster": "edge"});
    let world = World::with_settings(more).await;
    let warnings = world.env_get("-settings").await["warnings"].clone();
    let warnings = warnings.as_array().unwrap().iter();
    let warnings: String = warnings
        .map(|text| format!("{}\n", text.as_str().unwrap()))
        .collect();
    expect![[r#"
        there is no directory of scripts /nowhere (SCRIPT-003); correct the directory
        project default has no cluster edge; declare it with `slipway apply`, or name another with `slipway env settings set --cluster` (`slipway get clusters` lists them)
    "#]].assert_eq(&warnings);
}
