//! Git services that tell of their requests: who is believed, and what is decided.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use expect_test::expect;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::world::{Answer, PROJECT, TOKEN, World};

const SECRET: &str = "correct-horse-battery";
const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A source with the least there is to say.
fn source(service: &str) -> Value {
    json!({"name": "shop", "service": service, "repository": "acme/shop", "secret": "git/hook"})
}

/// The same, and something more.
fn with(service: &str, more: &Value) -> Value {
    let mut source = source(service);
    for (field, value) in more.as_object().unwrap() {
        source[field] = value.clone();
    }
    source
}

async fn following(source: Value) -> World {
    let more = json!({"sources": [source], "secretDelivery": "file"});
    let world = World::with_settings(more).await;
    let path = format!("{PROJECT}/secrets/git");
    let body = json!({"entries": {"hook": SECRET, "password": "hunter2"}});
    let put = world.ask(TOKEN, Method::PUT, &path, body).await;
    assert!(put.status.is_success(), "{}", put.text);
    world
}

fn pull(action: &str, sha: &str, second: u32) -> Value {
    let repo = json!({"full_name": "acme/shop"});
    let state = if action == "closed" { "closed" } else { "open" };
    json!({
        "action": action,
        "number": 12,
        "pull_request": {
            "number": 12, "state": state, "html_url": "https://git.example.org/acme/shop/12",
            "user": {"login": "ana"}, "labels": [{"name": "preview"}],
            "updated_at": format!("2026-03-07T02:00:{second:02}Z"),
            "head": {"ref": "feature/basket", "sha": sha, "repo": repo},
            "base": {"ref": "main", "sha": A, "repo": repo},
        },
        "repository": repo,
    })
}

fn merge(action: &str, sha: &str, second: u32) -> Value {
    let state = if action == "close" {
        "closed"
    } else {
        "opened"
    };
    json!({
        "object_kind": "merge_request",
        "user": {"id": 7, "username": "ana"},
        "project": {"id": 15, "path_with_namespace": "acme/shop"},
        "object_attributes": {
            "iid": 12, "action": action, "state": state, "source_branch": "feature/basket",
            "source_project_id": 15, "target_project_id": 15, "author_id": 7,
            "last_commit": {"id": sha}, "url": "https://git.example.org/acme/shop/12",
            "updated_at": format!("2026-03-07 02:00:{second:02} UTC"),
        },
        "labels": [{"title": "preview"}],
    })
}

fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    let digits = mac.finalize().into_bytes();
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a service sends, signed as it does.
fn sent(service: &str, delivery: &str, body: &[u8]) -> Request<Body> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{PROJECT}/git/shop"))
        .header("content-type", "application/json");
    let signed = signature(SECRET, body);
    let request = match service {
        "github" => request
            .header("x-github-event", "pull_request")
            .header("x-github-delivery", delivery)
            .header("x-hub-signature-256", format!("sha256={signed}")),
        "gitea" => request
            .header("x-gitea-event", "pull_request")
            .header("x-gitea-delivery", delivery)
            .header("x-gitea-signature", signed),
        _ => request
            .header("x-gitlab-event", "Merge Request Hook")
            .header("idempotency-key", delivery)
            .header("x-gitlab-token", SECRET),
    };
    request.body(Body::from(body.to_vec())).unwrap()
}

async fn tell(world: &World, service: &str, delivery: &str, body: &Value) -> Answer {
    let request = sent(service, delivery, body.to_string().as_bytes());
    world.send(request).await
}

/// What was decided: decision, environment, reason.
async fn decided(world: &World, service: &str, delivery: &str, body: &Value) -> String {
    let answer = tell(world, service, delivery, body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let told = answer.json();
    let text = |field: &str| told[field].as_str().unwrap_or("–").to_owned();
    format!(
        "{} {}: {}\n",
        text("decision"),
        text("environment"),
        text("reason")
    )
}

#[tokio::test]
async fn each_service_is_believed_that_signs_as_it_does() {
    for service in ["github", "gitea", "gitlab"] {
        let world = following(source(service)).await;
        let body = match service {
            "gitlab" => merge("open", A, 1),
            _ => pull("opened", A, 1),
        };
        let told = decided(&world, service, "one", &body).await;
        let expected = format!("create feature-basket: request 12 is at {A}\n");
        assert_eq!(told, expected, "{service}");
        let waits = world.store.due_git_requests(10, world.now()).await;
        assert_eq!(waits.unwrap().len(), 1, "somebody takes it up");
    }
}

#[tokio::test]
async fn who_cannot_prove_who_they_are_learns_nothing() {
    let world = following(source("github")).await;
    let body = pull("opened", A, 1).to_string();
    let good = || sent("github", "one", body.as_bytes());
    let to = |path: &str| {
        let mut request = good();
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    let header = |name: &'static str, value: &str| {
        let mut request = good();
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let mut bare = good();
    bare.headers_mut().remove("x-hub-signature-256");
    let other = format!("sha256={}", signature("another", body.as_bytes()));
    let mut changed = good();
    *changed.body_mut() = Body::from(body.replace("ana", "eve"));
    let refused = [
        ("no signature", bare),
        ("another secret", header("x-hub-signature-256", &other)),
        ("not hex", header("x-hub-signature-256", "sha256=zz")),
        ("another body", changed),
        ("another service", sent("gitea", "one", body.as_bytes())),
        ("no such source", to(&format!("{PROJECT}/git/other"))),
        ("no such project", to("/api/v1/projects/other/git/shop")),
    ];
    let mut answers = std::collections::BTreeSet::new();
    for (what, request) in refused {
        let answer = world.send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{what}");
        answers.insert(answer.picture());
    }
    let answers: Vec<_> = answers.into_iter().collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    expect![[r#"
        401 GIT-001: there is no such source of a project, or this is not signed with its secret
          hint: compare the address with the sources in `slipway env settings show`, and the secret of the webhook with the one that the source names
    "#]].assert_eq(&answers[0]);
    let of = (&"default".parse().unwrap(), &"shop".parse().unwrap());
    assert_eq!(world.store.git_request(of, 12).await.unwrap(), None);
    assert_eq!(world.send(good()).await.status, StatusCode::ACCEPTED);
    for _ in 0..4 {
        let mut bare = good();
        bare.headers_mut().remove("x-hub-signature-256");
        world.send(bare).await;
    }
    let mut bare = good();
    bare.headers_mut().remove("x-hub-signature-256");
    let answer = world.send(bare).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.send(good()).await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_source_whose_secret_is_not_set_is_nobody() {
    let world = World::with_settings(json!({"sources": [source("github")]})).await;
    let answer = tell(&world, "github", "one", &pull("opened", A, 1)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let settings = world.env_get("-settings").await;
    assert_eq!(
        settings["warnings"],
        json!(["source shop: its secret git/hook is not set, so nobody can speak as its service"])
    );
}

#[tokio::test]
async fn the_secret_is_opened_once_and_again_when_it_is_changed() {
    let world = following(source("github")).await;
    let opened = async || {
        let path = "/api/v1/audit?limit=200";
        let audit = world.ask(TOKEN, Method::GET, path, Value::Null).await;
        let audit = audit.json();
        let entries = audit["items"].as_array().unwrap();
        let opened = entries.iter().filter(|entry| entry["actor"] == "git/shop");
        opened.count()
    };
    for second in 1..5 {
        let body = pull("synchronize", A, second);
        tell(&world, "github", &second.to_string(), &body).await;
    }
    assert_eq!(opened().await, 1);
    let path = format!("{PROJECT}/secrets/git");
    let other = json!({"entries": {"hook": "another"}});
    world.ask(TOKEN, Method::PUT, &path, other).await;
    let body = pull("synchronize", A, 6);
    let answer = tell(&world, "github", "6", &body).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "it was changed");
    assert_eq!(opened().await, 2);
}

#[tokio::test]
async fn what_is_repeated_late_or_about_something_else_is_ignored() {
    let world = following(source("github")).await;
    let mut picture = String::new();
    let table = [
        ("one", pull("opened", A, 10)),
        ("one", pull("opened", A, 10)),
        ("two", pull("synchronize", B, 20)),
        ("three", pull("synchronize", A, 15)),
        ("four", pull("closed", B, 30)),
        ("five", pull("reopened", B, 29)),
    ];
    for (delivery, body) in table {
        picture.push_str(&decided(&world, "github", delivery, &body).await);
    }
    let mut ping = sent("github", "six", b"{\"zen\": \"Speak like a human.\"}");
    let headers = ping.headers_mut();
    headers.insert("x-github-event", "ping".parse().unwrap());
    let answer = world.send(ping).await;
    picture.push_str(answer.json()["reason"].as_str().unwrap());
    expect![[r#"
        create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        ignore –: it was told before
        create feature-basket: request 12 is at bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        ignore –: something later is known of request 12 already
        ignore –: it is closed, and has no environment
        ignore –: something later is known of request 12 already
        `ping` is not about a request; it is proven who sent it"#]]
    .assert_eq(&picture);
}

#[tokio::test]
async fn rules_decide_which_requests_have_environments() {
    let fork = |body: &mut Value| {
        body["pull_request"]["head"]["repo"]["full_name"] = json!("mallory/shop");
    };
    let table = [
        (json!({"branches": ["feature/*"]}), false),
        (json!({"branches": ["release/*"]}), false),
        (json!({"labels": ["preview"]}), false),
        (json!({"labels": ["deploy"]}), false),
        (json!({"authors": ["ana", "bob"]}), false),
        (json!({"authors": ["bob"]}), false),
        (json!({}), true),
        (json!({"forks": "without-secrets"}), true),
        (json!({"repository": "acme/other"}), false),
        (
            json!({"environment": "pr-{number}", "tag": "{short}"}),
            false,
        ),
    ];
    let mut picture = String::new();
    for (rules, forked) in table {
        let world = following(with("github", &rules)).await;
        let mut body = pull("opened", A, 1);
        if forked {
            fork(&mut body);
        }
        let told = decided(&world, "github", "one", &body).await;
        picture.push_str(&format!("{rules} {told}"));
    }
    expect![[r#"
        {"branches":["feature/*"]} create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        {"branches":["release/*"]} ignore –: its branch fits none of the source's patterns
        {"labels":["preview"]} create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        {"labels":["deploy"]} ignore –: it has none of the labels that the source asks for
        {"authors":["ana","bob"]} create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        {"authors":["bob"]} ignore –: the source does not take requests of its author
        {} ignore –: it comes from a fork, and the source ignores forks
        {"forks":"without-secrets"} create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        {"repository":"acme/other"} ignore –: it is of another repository than the source
        {"environment":"pr-{number}","tag":"{short}"} create pr-12: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    "#]].assert_eq(&picture);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_nothing_of_it_is_kept() {
    let world = following(source("github")).await;
    let large = format!("{{\"action\": \"{}\"}}", "x".repeat(2 << 20));
    let table: [(&str, &[u8]); 4] = [
        ("nothing", b""),
        ("no JSON", b"payload=%7B%7D"),
        ("no request", b"{\"action\": \"opened\"}"),
        ("too large", large.as_bytes()),
    ];
    let mut picture = String::new();
    for (what, body) in table {
        let answer = world.send(sent("github", what, body)).await;
        picture.push_str(&format!("{what}: {}", answer.picture()));
    }
    let mut form = sent("github", "form", b"payload=%7B%7D");
    let kind = "application/x-www-form-urlencoded".parse().unwrap();
    form.headers_mut().insert("content-type", kind);
    picture.push_str(&format!("a form: {}", world.send(form).await.picture()));
    expect![[r#"
        nothing: 422 GIT-002: this cannot be read as a request of github: it is not JSON: see line 1 column 0
          hint: compare the `service` of the source with who sends this; a webhook of another service needs a source of its own
        no JSON: 422 GIT-002: this cannot be read as a request of github: it is not JSON: see line 1 column 1
          hint: compare the `service` of the source with who sends this; a webhook of another service needs a source of its own
        no request: 422 GIT-002: this cannot be read as a request of github: `repository.full_name` is missing, or is not the path of a repository
          hint: compare the `service` of the source with who sends this; a webhook of another service needs a source of its own
        too large: 413 INPUT-003: the body has more than 1048576 bytes
          hint: send less; a manifest can be split, because clusters that share nothing may live in manifests of their own, and of an environment a part can be set at a time
        a form: 415 API-006: found `application/x-www-form-urlencoded`, allowed: application/json
          hint: set the Content-Type of the request
    "#]].assert_eq(&picture);
}

/// An environment that was made for a request, as the engine makes them.
async fn made(world: &World, name: &str, fork: bool) {
    let project = "default".parse().unwrap();
    let name = name.parse().unwrap();
    let origin = model::environment::git::Origin {
        source: "shop".parse().unwrap(),
        repository: "acme/shop".parse().unwrap(),
        request: 12,
        branch: "feature/basket".to_owned(),
        sha: A.to_owned(),
        url: "https://git.example.org/acme/shop/12".to_owned(),
        fork,
    };
    let request = world
        .store
        .git_request((&project, &origin.source), 12)
        .await;
    let settled = plan::environment::git::Settled {
        up: true,
        sha: A.to_owned(),
        owed: false,
    };
    let draft = store::EnvironmentDraft {
        step: request.unwrap().map(|request| request.step(settled)),
        id: world
            .store
            .environment_to_be(&project, &name)
            .await
            .unwrap(),
        project,
        name,
        about: store::About::default(),
        edits: model::environment::config::Edits::default(),
        sealed: Vec::new(),
        effective: store::Effective::default(),
        actor: "git/shop".into(),
        origin: Some(origin),
    };
    let created = world.store.create_environment(draft, world.now()).await;
    created.unwrap();
    world.deployed().await;
}

#[tokio::test]
async fn what_follows_depends_on_how_the_environment_is() {
    let world = following(source("github")).await;
    let mut picture = decided(&world, "github", "0", &pull("opened", A, 0)).await;
    made(&world, "feature-basket", false).await;
    picture.push_str(&decided(&world, "github", "1", &pull("labeled", A, 1)).await);
    picture.push_str(&decided(&world, "github", "2", &pull("synchronize", B, 2)).await);
    picture.push_str(&decided(&world, "github", "3", &pull("closed", B, 3)).await);
    world
        .begun(Method::POST, "s/feature-basket/archive", Value::Null)
        .await;
    picture.push_str(&decided(&world, "github", "4", &pull("closed", B, 4)).await);
    world.deployed().await;
    picture.push_str(&decided(&world, "github", "5", &pull("closed", B, 5)).await);
    picture.push_str(&decided(&world, "github", "6", &pull("synchronize", B, 6)).await);
    expect![[r#"
        create feature-basket: request 12 is at aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        ignore feature-basket: the environment was given that commit already
        update feature-basket: request 12 is at bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
        archive feature-basket: request 12 is not to have an environment
        later feature-basket: archive is under way, and is waited for
        ignore feature-basket: the environment rests already
        later feature-basket: the environment is archived, and is given the commit when somebody restores it
    "#]].assert_eq(&picture);
    let view = world.env_get("s/feature-basket").await;
    assert_eq!(
        view["origin"],
        json!({"source": "shop", "repository": "acme/shop", "request": 12, "branch": "feature/basket",
            "sha": A, "url": "https://git.example.org/acme/shop/12", "fork": false})
    );
}

#[tokio::test]
async fn nobody_gives_a_secret_to_what_a_fork_deploys() {
    let world = following(with("github", &json!({"forks": "without-secrets"}))).await;
    made(&world, "theirs", true).await;
    let secret = json!({"secret": {"application": {"db.password": "refuse me"}}});
    let refused = world.env(Method::PATCH, "s/theirs", secret.clone()).await;
    expect![[r#"
        409 GIT-003: environment `theirs`: the application setting `db.password` is secret, and it is of a fork
          hint: what a fork deploys could tell the secret to its author; push the branch to the repository itself, or create an environment by hand
    "#]].assert_eq(&refused.picture());
    for path in ["s/theirs", "s/theirs?dryRun=true"] {
        let put = world.env(Method::PUT, path, secret.clone()).await;
        assert!(put.text.contains("GIT-003"), "{}", put.text);
    }
    world
        .begun(Method::POST, "s/theirs/clone", json!({"name": "copy"}))
        .await;
    world.deployed().await;
    let copied = world.env(Method::PATCH, "s/copy", secret).await;
    assert!(copied.text.contains("GIT-003"), "a copy is no better");
    let plain = json!({"set": {"application": {"replicas": "2"}}});
    world.begun(Method::PATCH, "s/theirs", plain).await;
}

#[tokio::test]
async fn sources_are_shown_as_they_were_said() {
    let whole = json!({"name": "shop", "service": "gitlab", "repository": "acme/web/shop",
        "secret": "git/hook", "api": "https://gitlab.example.org/api/v4", "token": "git/token",
        "branches": ["feature/**"], "labels": ["preview"], "authors": ["ana"],
        "forks": "without-secrets", "environment": "mr-{number}", "tag": "{short}",
        "set": {"deployment": {"replicas": "1"}}, "secrets": {"application": {"db.password": "git/password"}},
        "environmentLabels": {"team": "web"}, "expiresInSeconds": 3600});
    let world = following(whole.clone()).await;
    let shown = world.env_get("-settings").await;
    assert_eq!(shown["settings"]["sources"], json!([whole]));
}

#[tokio::test]
async fn what_is_wrong_with_a_source_is_told_with_its_place() {
    let world = World::new();
    let table = [
        json!({"repository": "shop"}),
        json!({"secret": "git"}),
        json!({"branches": [""]}),
        json!({"environment": "preview"}),
        json!({"tag": "{commit}"}),
        json!({"api": "https://api.github.com"}),
        json!({"api": "ftp://x", "token": "git/token"}),
        json!({"service": "gitea", "token": "git/token"}),
        json!({"set": {"application": {"a": "1"}}, "secrets": {"application": {"a": "git/a"}}}),
        json!({"secrets": {"application": {"a": "git/a"}}}),
        json!({"expiresInSeconds": 0}),
        json!({"service": "svn"}),
    ];
    let mut picture = String::new();
    for more in table {
        let mut settings = super::usual();
        settings["sources"] = json!([with("github", &more)]);
        let answer = world.env(Method::PUT, "-settings", settings).await;
        let told = answer.picture();
        picture.push_str(told.lines().next().unwrap());
        picture.push('\n');
    }
    let mut twice = super::usual();
    twice["sources"] = json!([source("github"), source("gitea")]);
    let answer = world.env(Method::PUT, "-settings", twice).await;
    picture.push_str(answer.picture().lines().next().unwrap());
    expect![[r#"
        400 API-008: sources[0].repository: a repository is written like `owner/name`, of a-z, A-Z, 0-9, `.`, `_` and `-`, in at most 255 characters
        400 API-008: sources[0].secret: allowed: a secret and its entry, like NAME/ENTRY
        400 API-008: sources[0].branches: found nothing, allowed: a pattern like `feature/*`
        400 API-008: sources[0].environment: found neither `{branch}` nor `{number}`, so all would be called the same
        400 API-008: sources[0].tag: found `{commit}`, allowed: `{branch}`, `{number}`, `{sha}`, `{short}`, `{source}`
        400 API-008: sources[0].token: found nothing, and something must open the API
        400 API-008: sources[0].api: allowed: where the API begins, like https://git.example.org/api/v1
        400 API-008: sources[0].api: allowed: where the API begins, like https://git.example.org/api/v1
        400 API-008: sources[0].secrets: found `a`, which is in `set`, too; allowed: one of them
        400 API-008: sources[0].secrets: found secrets, and secretDelivery does not say how scripts are given such
        400 API-008: sources[0].expiresInSeconds: found 0, allowed: 1 or more
        400 API-001: sources[0].service: found `svn`, allowed: github, gitlab, gitea
        400 API-008: sources[1].name: found `shop` twice, allowed: once"#]].assert_eq(&picture);
}
