//! Git services that tell the real program of their requests, each in its own words, and are told
//! how the environments are.

use super::wire::{self, Service};
use super::{EXAMPLES, House};
use crate::secrets::{done, drawn, until};
use lab::traces::{found, traces};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

const HOOK: &str = "correct-horse-battery";
const TOKEN: &str = "token-of-a-robot";
const A: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";
const B: &str = "c4295bd74fb0f4fda03689c3df3f2803b658fd85";

/// A project whose environments follow the requests of a repository.
struct Followed {
    house: House,
    service: &'static str,
    api: Service,
    /// What the source lends to environments.
    lent: String,
}

impl Followed {
    fn new(service: &'static str) -> Self {
        let mut house = House::new("file");
        let (api, lent) = (Service::start(), drawn(40));
        let secrets = [("hook", HOOK), ("token", TOKEN), ("password", &lent)];
        let files = tempfile::tempdir().unwrap();
        let entries = secrets.map(|(entry, value)| {
            let file = files.path().join(entry);
            std::fs::write(&file, format!("{value}\n")).unwrap();
            format!("{entry}=@{}", file.display())
        });
        let set = [
            "secret",
            "set",
            "git",
            &entries[0],
            &entries[1],
            &entries[2],
        ];
        done(&house.server.client(&set));
        house.env(&[
            "settings",
            "source",
            "shop",
            "--service",
            service,
            "--repository",
            "acme/shop",
            "--secret",
            "git/hook",
            "--token",
            "git/token",
            "--api",
            &api.address,
            "--environment",
            "pr-{number}",
            "--tag",
            "{short}",
            "--forks",
            "without-secrets",
            "--lend",
            "db.password=git/password",
        ]);
        Self {
            house,
            service,
            api,
            lent,
        }
    }

    /// Tells of a request, signed with this; answers the status and what is decided.
    fn tell_as(&mut self, secret: &str, delivery: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let headers = headers(self.service, secret, delivery, &body);
        let address = self.house.server.address();
        let path = "/api/v1/projects/default/git/shop";
        let (status, told) = wire::send(&address, ("POST", path), &headers, &body);
        (status, serde_json::from_str(&told).unwrap())
    }

    /// Tells of a request; answers what is decided.
    #[track_caller]
    fn tell(&mut self, delivery: &str, body: &Value) -> String {
        let (status, told) = self.tell_as(HOOK, delivery, body);
        assert_eq!(status, 202, "{told}");
        told["decision"].as_str().unwrap().to_owned()
    }

    /// What the service was told of commits, without what was told twice: at least once is
    /// promised.
    fn statuses(&self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for sent in self.api.sent() {
            let (sha, state) = (sent.path.rsplit('/').next().unwrap(), &sent.body["state"]);
            let line = format!("{} {}", &sha[..7], state.as_str().unwrap());
            if told.last() != Some(&line) {
                told.push(line);
            }
        }
        told
    }

    fn event(&self, what: &str, number: u64, sha: &str, second: u32) -> Value {
        match self.service {
            "gitlab" => merge(what, number, sha, second),
            _ => pull(what, number, sha, second),
        }
    }

    /// The same of somebody else's copy.
    fn fork(&self, number: u64) -> Value {
        let mut event = self.event("open", number, A, 50);
        if self.service == "gitlab" {
            event["object_attributes"]["source_project_id"] = json!(99);
        } else {
            event["pull_request"]["head"]["repo"] =
                json!({"id": 99, "full_name": "mallory/shop", "fork": true});
        }
        event
    }
}

/// A pull request in the words of GitHub and Gitea, with some of all the rest that they tell.
fn pull(what: &str, number: u64, sha: &str, second: u32) -> Value {
    let (action, state) = match what {
        "open" => ("opened", "open"),
        "push" => ("synchronize", "open"),
        "reopen" => ("reopened", "open"),
        _ => ("closed", "closed"),
    };
    let repository = json!({"id": 35_129_377, "name": "shop", "full_name": "acme/shop", "private": true,
        "owner": {"login": "acme", "id": 6_752_317}, "default_branch": "main", "fork": false});
    let user = json!({"login": "ana", "id": 21_031_067, "type": "User"});
    json!({
        "action": action,
        "number": number,
        "pull_request": {
            "id": 279_147_437, "number": number, "state": state, "title": "A basket", "user": user,
            "html_url": format!("https://git.example.org/acme/shop/pull/{number}"),
            "labels": [{"id": 208_045_946, "name": "preview", "color": "f29513"}],
            "created_at": "2026-03-07T02:00:00Z",
            "updated_at": format!("2026-03-07T02:00:{second:02}Z"),
            "merged": what == "close",
            "head": {"label": "acme:feature/basket", "ref": "feature/basket", "sha": sha, "repo": repository},
            "base": {"label": "acme:main", "ref": "main", "sha": A, "repo": repository},
        },
        "repository": repository,
        "sender": user,
    })
}

/// A merge request in the words of GitLab.
fn merge(what: &str, number: u64, sha: &str, second: u32) -> Value {
    let (action, state) = match what {
        "push" => ("update", "opened"),
        "close" => ("merge", "merged"),
        other => (other, "opened"),
    };
    let mut event = json!({
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": {"id": 7, "name": "Ana", "username": "ana", "email": "[REDACTED]"},
        "project": {"id": 15, "name": "shop", "path_with_namespace": "acme/shop", "default_branch": "main"},
        "object_attributes": {
            "id": 99, "iid": number, "action": action, "state": state, "author_id": 7, "title": "A basket",
            "source_branch": "feature/basket", "target_branch": "main",
            "source_project_id": 15, "target_project_id": 15,
            "last_commit": {"id": sha, "message": "a basket", "timestamp": "2026-03-07T01:59:00+00:00"},
            "url": format!("https://git.example.org/acme/shop/-/merge_requests/{number}"),
            "created_at": "2026-03-07 02:00:00 UTC",
            "updated_at": format!("2026-03-07 02:00:{second:02} UTC"),
        },
        "labels": [{"id": 206, "title": "preview", "color": "#ffffff"}],
        "changes": {},
        "repository": {"name": "shop", "homepage": "https://git.example.org/acme/shop"},
    });
    if what == "push" {
        event["object_attributes"]["oldrev"] = json!(A);
    }
    event
}

/// What each service sends before its body.
fn headers(service: &str, secret: &str, delivery: &str, body: &str) -> Vec<(&'static str, String)> {
    let signed = wire::signed(secret, body);
    let delivery = format!("72d3162e-cc78-11e3-81ab-{delivery:0>12}");
    let of_github = [
        ("x-github-event", "pull_request".to_owned()),
        ("x-github-delivery", delivery.clone()),
        ("x-hub-signature-256", format!("sha256={signed}")),
    ];
    let mut all = vec![("content-type", "application/json".to_owned())];
    match service {
        "github" => {
            all.push(("user-agent", "GitHub-Hookshot/044aadd".to_owned()));
            all.extend(of_github);
        }
        // It signs in the words of others, too.
        "gitea" => {
            all.extend(of_github);
            all.push(("x-gitea-event", "pull_request".to_owned()));
            all.push(("x-gitea-event-type", "pull_request".to_owned()));
            all.push(("x-gitea-delivery", delivery));
            all.push(("x-gitea-signature", signed));
        }
        _ => {
            all.push(("x-gitlab-event", "Merge Request Hook".to_owned()));
            all.push(("x-gitlab-instance", "https://git.example.org".to_owned()));
            all.push(("x-gitlab-event-uuid", delivery.clone()));
            all.push(("idempotency-key", delivery));
            all.push(("x-gitlab-token", secret.to_owned()));
        }
    }
    all
}

fn ran(scripts: &[&str]) -> BTreeMap<String, usize> {
    scripts
        .iter()
        .map(|script| ((*script).to_owned(), 1))
        .collect()
}

/// A request from its opening to its end.
fn walk(service: &'static str) {
    let mut followed = Followed::new(service);
    let (opened, pushed) = (
        followed.event("open", 12, A, 1),
        followed.event("push", 12, B, 2),
    );
    let (status, told) = followed.tell_as("another-secret", "1", &opened);
    assert_eq!((status, &told["code"]), (401, &json!("GIT-001")), "{told}");
    assert!(!followed.house.env(&["list"]).contains("pr-12"));

    assert_eq!(followed.tell("1", &opened), "create");
    until("there is an environment", || {
        followed
            .house
            .env(&["list"])
            .contains("pr-12")
            .then_some(())
    });
    followed.house.is("pr-12", "running");
    let logs = followed.house.env(&["logs", "pr-12"]);
    assert!(
        logs.contains(&format!("created with tag {}", &A[..7])),
        "{logs}"
    );
    assert!(logs.contains("1 secret settings came as files"), "{logs}");
    assert_eq!(followed.tell("1", &opened), "ignore", "it was told before");

    assert_eq!(followed.tell("2", &pushed), "update");
    until("what was pushed is there", || {
        let updated = followed.house.runs("pr-12") == ran(&["create", "update"]);
        updated.then_some(())
    });
    followed.house.env(&["wait", "pr-12"]);
    followed.house.is("pr-12", "running");
    let found = followed.house.env(&["list", "--label", "git/request=12"]);
    assert!(found.contains("pr-12"), "{found}");
    let failure = if service == "gitlab" {
        "failed"
    } else {
        "failure"
    };
    until("the service knows", || {
        let told = followed.statuses();
        let all = [
            "6dcb09b pending",
            "6dcb09b success",
            "c4295bd pending",
            "c4295bd success",
        ];
        assert!(!told.iter().any(|line| line.ends_with(failure)), "{told:?}");
        (told == all).then_some(())
    });
    check_told(&followed);

    assert_eq!(
        followed.tell("3", &followed.event("close", 12, B, 3)),
        "archive"
    );
    followed.house.is("pr-12", "archived");
    assert_eq!(followed.tell("2", &pushed), "ignore", "it was told before");
    assert_eq!(followed.tell("1", &opened), "ignore", "it was told before");
    assert_eq!(
        followed.tell("4", &followed.event("reopen", 12, B, 4)),
        "restore"
    );
    followed.house.is("pr-12", "running");
    let all = ran(&["create", "update", "archive", "unarchive"]);
    assert_eq!(followed.house.runs("pr-12"), all);

    check_fork(&mut followed);
}

/// What the service was told, it was told where and as it wants it.
#[track_caller]
fn check_told(followed: &Followed) {
    let (path, header) = match followed.service {
        "github" => (
            format!("/repos/acme/shop/statuses/{B}"),
            format!("authorization: Bearer {TOKEN}"),
        ),
        "gitea" => (
            format!("/repos/acme/shop/statuses/{B}"),
            format!("authorization: token {TOKEN}"),
        ),
        _ => (
            format!("/projects/acme%2Fshop/statuses/{B}"),
            format!("private-token: {TOKEN}"),
        ),
    };
    let sent = followed.api.sent().pop().unwrap();
    assert_eq!(sent.path, path);
    assert!(sent.headers.contains(&header), "{:?}", sent.headers);
    let name = if followed.service == "gitlab" {
        "name"
    } else {
        "context"
    };
    assert_eq!(sent.body[name], "slipway/default/shop");
    assert_eq!(sent.body["target_url"], "https://pr-12.shop.example.org");
}

/// What comes from somebody else's copy is given nothing secret, also by hand.
fn check_fork(followed: &mut Followed) {
    let forked = followed.fork(13);
    assert_eq!(followed.tell("5", &forked), "create");
    until("there is an environment", || {
        followed
            .house
            .env(&["list"])
            .contains("pr-13")
            .then_some(())
    });
    followed.house.is("pr-13", "running");
    let mut heard = followed.house.env(&["logs", "pr-13"]);
    assert!(heard.contains("0 secret settings came as files"), "{heard}");
    let file = followed.house.directory.path().join("runs");
    let setting = format!("password=@{}", file.display());
    let (_, told) = followed
        .house
        .refused(&["update", "pr-13", "--secret", &setting]);
    assert!(
        told.contains("(GIT-003)") && told.contains("hint: "),
        "{told}"
    );
    for words in [
        &["info", "pr-13", "--effective"][..],
        &["list", "-o", "json"],
    ] {
        heard += &followed.house.env(words);
    }
    heard += &done(
        &followed
            .house
            .server
            .client(&["get", "events", "-o", "json"]),
    );
    let told = traces(followed.lent.as_bytes());
    assert!(found(heard.as_bytes(), &told).is_empty(), "{heard}");
    // The other one, which is lent it, is looked at meanwhile: its script finds it in a file that
    // goes with the look.
    until("nothing of it stays in a file", || {
        let all = crate::secrets::files(followed.house.directory.path());
        let mut told = all.iter().map(|(_, bytes)| found(bytes, &told));
        told.all(|found| found.is_empty()).then_some(())
    });
}

#[test]
fn a_pull_request_of_github_has_an_environment_for_as_long_as_it_is_open() {
    walk("github");
}

#[test]
fn a_merge_request_of_gitlab_has_an_environment_for_as_long_as_it_is_open() {
    walk("gitlab");
}

#[test]
fn a_pull_request_of_gitea_has_an_environment_for_as_long_as_it_is_open() {
    walk("gitea");
}

/// Has what tells defaults wait: what is decided is not begun before.
fn wait_for_defaults(house: &House, wait: bool) {
    let held = house.directory.path().join("defaults.held");
    if !wait {
        std::fs::remove_file(held).unwrap();
        return;
    }
    std::fs::write(&held, "").unwrap();
    let held = held.display();
    let text = format!(
        "#!/bin/sh\n[ ! -e '{held}' ] || echo asked >>'{held}'\nwhile [ -e '{held}' ]; do sleep 0.1; done\nexec '{EXAMPLES}/deployment_config' \"$@\"\n"
    );
    let script = house.directory.path().join("scripts/deployment_config");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_was_accepted_before_the_server_is_killed_is_done_once() {
    let mut followed = Followed::new("github");
    // Between the answer to the service and the work: somebody is about to find out what it would be.
    wait_for_defaults(&followed.house, true);
    assert_eq!(
        followed.tell("1", &followed.event("open", 12, A, 1)),
        "create"
    );
    let held = followed.house.directory.path().join("defaults.held");
    until("somebody is at it", || {
        let asked = std::fs::read_to_string(&held).unwrap();
        asked.contains("asked").then_some(())
    });
    followed.house.kill();
    assert_eq!(followed.house.runs("pr-12").len(), 0, "nothing was begun");
    wait_for_defaults(&followed.house, false);
    until("there is an environment", || {
        followed
            .house
            .env(&["list"])
            .contains("pr-12")
            .then_some(())
    });
    followed.house.is("pr-12", "running");
    // And at whatever point it is right after an answer.
    let mut expected = ran(&["create"]);
    for (second, (what, sha, script, status)) in [
        ("push", B, "update", "running"),
        ("close", B, "archive", "archived"),
        ("reopen", B, "unarchive", "running"),
        ("push", A, "update", "running"),
    ]
    .into_iter()
    .enumerate()
    {
        let event = followed.event(what, 12, sha, 10 + u32::try_from(second).unwrap());
        let delivery = (10 + second).to_string();
        assert_ne!(followed.tell(&delivery, &event), "ignore", "{what}");
        followed.house.kill();
        assert_eq!(followed.tell(&delivery, &event), "ignore", "it is known");
        *expected.entry(script.to_owned()).or_insert(0) += 1;
        until(&format!("{what} is done"), || {
            (followed.house.runs("pr-12") == expected).then_some(())
        });
        followed.house.env(&["wait", "pr-12", "--timeout", "1m"]);
        followed.house.is("pr-12", status);
    }
    assert_eq!(followed.house.runs("pr-12"), expected, "each was done once");
}
