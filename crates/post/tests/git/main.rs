//! Statuses of commits, told to a git service that writes down what it is asked.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use driver::deliver::{Carried, Parcel};
use driver::{Clock, Context, Keeping, Log, Open, Opening};
use expect_test::expect;
use model::environment::delivery::Answer;
use model::environment::settings::Settings;
use model::id::{DeliveryId, Origin};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use post::Post;
use post::web::{Patience, Web};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "correct-horse-battery";

/// Nobody reads it.
struct Silent;

impl Log for Silent {
    fn line(&self, _: Timestamp, _: &str) {}
}

/// Every secret is the token, as a file has it.
struct Tokens;

impl Open for Tokens {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        Box::pin(async { Ok(Secret::from_text(format!("{TOKEN}\n"))) })
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(async { Ok(None) })
    }
}

/// Answers one request so; gives back what was asked.
async fn service(answer: &'static str) -> (String, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut served = JoinSet::new();
    served.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        loop {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).await.unwrap();
            asked.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&asked).into_owned();
            let length = text.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let length = name.eq_ignore_ascii_case("content-length");
                length.then(|| value.parse::<usize>().unwrap())
            });
            let body = text
                .split_once("\r\n\r\n")
                .map_or(0, |(_, body)| body.len());
            if read == 0 || length.is_some_and(|length| body >= length) {
                break;
            }
        }
        let (status, body) = answer.split_once('|').unwrap();
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(reply.as_bytes()).await.unwrap();
        String::from_utf8(asked).unwrap()
    });
    (format!("http://{address}/api"), served)
}

fn settings(kind: &str, api: &str) -> Settings {
    let text = format!(
        r#"{{"place":{{"project_name":"Shop","base_domain":"x","namespace":"shop"}},"scripts":"/s",
        "tag":"image.tag","patience":{{"action":{{"secs":1,"nanos":0}},"check":{{"secs":1,"nanos":0}},
        "pending":{{"secs":1,"nanos":0}},"every":{{"secs":1,"nanos":0}}}},"retention":{{"secs":1,"nanos":0}},
        "sources":[{{"name":"shop","service":"{kind}","repository":"acme/web/shop",
        "secret":{{"name":"git","key":"hook"}},
        "report":{{"api":"{api}","token":{{"name":"git","key":"token"}}}}}}]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

async fn carried(settings: Settings, document: &str) -> Carried {
    let clock = Clock::starting_at(Timestamp::from_millis(0));
    let cx = Context::new(
        clock,
        Arc::new(Silent),
        Arc::new(Tokens),
        CancellationToken::new(),
        0,
    );
    let parcel = Parcel {
        id: DeliveryId::derive(Origin {
            parent: "",
            name: "",
            ordinal: 0,
            incarnation: 0,
        }),
        project: Name::default_project(),
        kind: "git".to_owned(),
        target: "shop".to_owned(),
        environment: None,
        document: document.to_owned(),
        settings: Some(settings),
    };
    let post = Post::new(Web::new(Patience::default()).unwrap());
    post.report(&cx, &parcel).await
}

const FAILED: &str = r#"{"repository":"acme/web/shop","sha":"c4295bd74fb0f4fda03689c3df3f2803b658fd85",
    "verdict":"failure","description":"basket is in failure","url":"https://basket.example.org"}"#;

const RUNNING: &str = r#"{"repository":"acme/web/shop","sha":"c4295bd74fb0f4fda03689c3df3f2803b658fd85",
    "verdict":"success","description":"basket is running"}"#;

/// What a service of this kind is asked: its line, what opens it, and the body.
async fn asked(kind: &str, document: &str) -> String {
    let (api, mut served) = service("201 Created|{}").await;
    let carried = carried(settings(kind, &api), document).await;
    assert_eq!(carried.answer, Answer::Taken, "{}", carried.said);
    let asked = served.join_next().await.unwrap().unwrap();
    let line = asked.lines().next().unwrap().to_owned();
    let opens = asked.lines().find(|line| line.contains(TOKEN)).unwrap();
    let (_, body) = asked.split_once("\r\n\r\n").unwrap();
    format!("{line}\n{opens}\n{body}\n")
}

#[tokio::test]
async fn each_service_is_told_as_it_wants_to_be() {
    let mut picture = String::new();
    for kind in ["github", "gitlab", "gitea"] {
        picture.push_str(&asked(kind, FAILED).await);
    }
    picture.push_str(&asked("github", RUNNING).await);
    expect![[r#"
        POST /api/repos/acme/web/shop/statuses/c4295bd74fb0f4fda03689c3df3f2803b658fd85 HTTP/1.1
        authorization: Bearer correct-horse-battery
        {"context":"slipway/default/shop","description":"basket is in failure","state":"failure","target_url":"https://basket.example.org"}
        POST /api/projects/acme%2Fweb%2Fshop/statuses/c4295bd74fb0f4fda03689c3df3f2803b658fd85 HTTP/1.1
        private-token: correct-horse-battery
        {"description":"basket is in failure","name":"slipway/default/shop","state":"failed","target_url":"https://basket.example.org"}
        POST /api/repos/acme/web/shop/statuses/c4295bd74fb0f4fda03689c3df3f2803b658fd85 HTTP/1.1
        authorization: token correct-horse-battery
        {"context":"slipway/default/shop","description":"basket is in failure","state":"failure","target_url":"https://basket.example.org"}
        POST /api/repos/acme/web/shop/statuses/c4295bd74fb0f4fda03689c3df3f2803b658fd85 HTTP/1.1
        authorization: Bearer correct-horse-battery
        {"context":"slipway/default/shop","description":"basket is running","state":"success"}
    "#]].assert_eq(&picture);
}

#[tokio::test]
async fn what_a_service_says_decides_whether_it_is_told_again_and_reveals_nothing() {
    let table = [
        (
            "500 Oops|correct-horse-battery is not good",
            Answer::Later(None),
        ),
        ("404 Not Found|no such commit", Answer::Refused),
        ("401 Unauthorized|Bad credentials", Answer::Refused),
        (
            "400 Bad Request|{\"message\":\"Cannot transition status via :enqueue from :pending\"}",
            Answer::Taken,
        ),
        ("400 Bad Request|{\"message\":\"no\"}", Answer::Refused),
    ];
    for (answer, expected) in table {
        let (api, mut served) = service(answer).await;
        let carried = carried(settings("gitlab", &api), RUNNING).await;
        assert_eq!(carried.answer, expected, "{}", carried.said);
        assert!(!carried.said.contains(TOKEN), "{}", carried.said);
        served.join_next().await.unwrap().unwrap();
    }
    let gone = carried(settings("github", "http://127.0.0.1:1/api"), RUNNING).await;
    assert_eq!(gone.answer, Answer::Later(None), "{}", gone.said);
    let mut none = settings("github", "http://127.0.0.1:1/api");
    none.sources.clear();
    let nobody = carried(none, RUNNING).await;
    assert_eq!(nobody.answer, Answer::Never, "{}", nobody.said);
}
