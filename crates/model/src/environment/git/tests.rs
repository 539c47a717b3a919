//! What services write is read, what is odd is told, and names are never the same.

use super::event::{Event, Told, Unread, read};
use super::*;
use crate::environment::EnvironmentName;
use crate::time::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const GITHUB: &str = include_str!("payloads/github.json");
const GITLAB: &str = include_str!("payloads/gitlab.json");
const GITEA: &str = include_str!("payloads/gitea.json");

const NEW: &str = "c4295bd74fb0f4fda03689c3df3f2803b658fd85";
const OLD: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

fn kind(service: Service) -> &'static str {
    match service {
        Service::Github | Service::Gitea => "pull_request",
        Service::Gitlab => "Merge Request Hook",
    }
}

fn payload(service: Service) -> Value {
    let text = match service {
        Service::Github => GITHUB,
        Service::Gitlab => GITLAB,
        Service::Gitea => GITEA,
    };
    serde_json::from_str(text).unwrap()
}

fn told(service: Service, tree: &Value) -> Result<Event, Unread> {
    match read(service, kind(service), tree.to_string().as_bytes())? {
        Told::Request(event) => Ok(*event),
        Told::Other(other) => panic!("{other}"),
    }
}

/// The same payload with something else in one place; null takes it away.
fn with(service: Service, pointer: &str, value: Value) -> Result<Event, Unread> {
    let mut tree = payload(service);
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = tree.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(field).unwrap();
    } else {
        parent.insert(field.to_owned(), value);
    }
    told(service, &tree)
}

fn basket() -> Event {
    told(Service::Github, &payload(Service::Github)).unwrap()
}

fn source() -> Source {
    Source {
        name: "shop".parse().unwrap(),
        service: Service::Github,
        repository: "acme/shop".parse().unwrap(),
        secret: SecretRef {
            name: "git".parse().unwrap(),
            key: Some("hook".parse().unwrap()),
        },
        report: None,
        rules: Rules::default(),
        environment: NameTemplate::default(),
        tag: TagTemplate::default(),
        beginning: Beginning::default(),
    }
}

#[test]
fn three_services_are_read_alike() {
    let github = basket();
    assert_eq!(
        github,
        Event {
            repository: "acme/shop".parse().unwrap(),
            request: 12,
            action: "synchronize".to_owned(),
            open: true,
            branch: "feature/basket".to_owned(),
            sha: NEW.to_owned(),
            before: Some(OLD.to_owned()),
            author: Some("ana".to_owned()),
            labels: vec!["preview".to_owned()],
            fork: false,
            url: "https://github.com/acme/shop/pull/12".to_owned(),
            at: Timestamp::from_millis(1_772_849_106_000),
        }
    );
    let gitlab = told(Service::Gitlab, &payload(Service::Gitlab)).unwrap();
    assert_eq!(
        gitlab,
        Event {
            repository: "acme/web/shop".parse().unwrap(),
            action: "update".to_owned(),
            url: "https://gitlab.example.org/acme/web/shop/-/merge_requests/12".to_owned(),
            ..github.clone()
        }
    );
    let gitea = told(Service::Gitea, &payload(Service::Gitea)).unwrap();
    assert_eq!(
        gitea,
        Event {
            action: "synchronized".to_owned(),
            before: None,
            fork: true,
            url: "https://gitea.example.org/acme/shop/pulls/12".to_owned(),
            ..github
        }
    );
}

#[test]
fn closed_and_merged_are_not_open() {
    let open = |service, pointer, word: &str| with(service, pointer, json!(word)).unwrap().open;
    for service in [Service::Github, Service::Gitea] {
        assert!(!open(service, "/pull_request/state", "closed"));
    }
    let state = "/object_attributes/state";
    for (word, expected) in [("closed", false), ("merged", false), ("locked", true)] {
        assert_eq!(open(Service::Gitlab, state, word), expected, "{word}");
    }
}

#[test]
fn a_fork_is_known_by_its_repository_and_what_nobody_knows_is_one() {
    let head = "/pull_request/head/repo";
    let fork = |service, pointer, value| with(service, pointer, value).unwrap().fork;
    assert!(fork(
        Service::Github,
        head,
        json!({ "full_name": "mallory/shop" })
    ));
    assert!(!fork(
        Service::Github,
        head,
        json!({ "full_name": "Acme/Shop" })
    ));
    assert!(fork(Service::Github, head, Value::Null), "it was removed");
    let from = "/object_attributes/source_project_id";
    assert!(fork(Service::Gitlab, from, json!(16)));
    assert!(fork(Service::Gitlab, from, Value::Null));
}

#[test]
fn gitlab_tells_the_author_when_they_did_it_themselves() {
    let other = with(Service::Gitlab, "/user/id", json!(32)).unwrap();
    assert_eq!(other.author, None);
    let nobody = with(Service::Gitlab, "/user/id", Value::Null).unwrap();
    assert_eq!(nobody.author, None);
    let mut tree = payload(Service::Gitlab);
    tree["user"] = json!({});
    tree["object_attributes"]["author_id"] = Value::Null;
    assert_eq!(told(Service::Gitlab, &tree).unwrap().author, None);
}

#[test]
fn what_is_about_something_else_is_told() {
    let ping = read(Service::Github, "ping", b"{}").unwrap();
    assert_eq!(ping, Told::Other("ping".to_owned()));
    let push = read(Service::Gitlab, "Push Hook", b"not json").unwrap();
    assert_eq!(push, Told::Other("Push Hook".to_owned()));
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_and_nothing_of_it() {
    let why = |service, pointer, value| with(service, pointer, value).unwrap_err().to_string();
    let table = [
        (
            "/pull_request/number",
            json!("12"),
            "`pull_request.number` is missing, or is not a number",
        ),
        (
            "/pull_request/head/sha",
            json!("hunter2"),
            "`pull_request.head.sha` is missing, or is not a commit",
        ),
        (
            "/pull_request/head/ref",
            json!(""),
            "`pull_request.head.ref` is missing, or is not a short text",
        ),
        (
            "/pull_request/head/ref",
            json!("a\u{1b}[2J"),
            "`pull_request.head.ref` is missing, or is not a short text",
        ),
        (
            "/pull_request/updated_at",
            json!("soon"),
            "`pull_request.updated_at` is missing, or is not a time",
        ),
        (
            "/pull_request/html_url",
            json!("javascript:alert(1)"),
            "`pull_request.html_url` is missing, or is not an address",
        ),
        (
            "/repository/full_name",
            json!("../etc"),
            "`repository.full_name` is missing, or is not the path of a repository",
        ),
        (
            "/pull_request/state",
            Value::Null,
            "`pull_request.state` is missing, or is not a short text",
        ),
    ];
    for (pointer, value, expected) in table {
        assert_eq!(why(Service::Github, pointer, value), expected);
    }
    let json = read(Service::Gitea, "pull_request", b"{\"hunter2").unwrap_err();
    assert_eq!(json.to_string(), "it is not JSON: see line 1 column 9");
}

#[test]
fn rules_fit_what_fits_every_list() {
    let rules = |branches: &[&str], labels: &[&str], authors: &[&str], forks| Rules {
        branches: branches.iter().map(|one| one.parse().unwrap()).collect(),
        labels: labels.iter().map(|&one| one.to_owned()).collect(),
        authors: authors.iter().map(|&one| one.to_owned()).collect(),
        forks,
    };
    let own = basket();
    let fork = Event {
        fork: true,
        ..own.clone()
    };
    let unknown = Event {
        author: None,
        ..own.clone()
    };
    let (no, yes) = (Forks::Ignore, Forks::WithoutSecrets);
    let table = [
        (rules(&[], &[], &[], no), &own, Ok(())),
        (
            rules(&["main", "feature/*"], &["preview"], &["Ana"], no),
            &own,
            Ok(()),
        ),
        (rules(&["main"], &[], &[], no), &own, Err(Unfit::Branch)),
        (rules(&[], &["Preview"], &[], no), &own, Err(Unfit::Label)),
        (rules(&[], &[], &["bob"], no), &own, Err(Unfit::Author)),
        (rules(&[], &[], &["ana"], no), &unknown, Err(Unfit::Author)),
        (rules(&[], &[], &[], no), &fork, Err(Unfit::Fork)),
        (rules(&[], &[], &[], yes), &fork, Ok(())),
        (rules(&[], &["x"], &[], yes), &fork, Err(Unfit::Label)),
    ];
    for (rules, event, expected) in table {
        assert_eq!(rules.fit(event), expected, "{rules:?}");
    }
}

fn names(template: &str, branch: &str, request: u64) -> Vec<String> {
    let event = Event {
        branch: branch.to_owned(),
        request,
        ..basket()
    };
    let template: NameTemplate = template.parse().unwrap();
    let names = template.names(&"shop".parse().unwrap(), &event);
    names.into_iter().map(Into::into).collect()
}

#[test]
fn names_come_from_branches() {
    let first = |branch| names("{branch}", branch, 12).remove(0);
    assert_eq!(first("basket"), "basket");
    assert_eq!(first("feature/basket"), "feature-basket");
    assert_eq!(first("Feature__Basket!"), "feature-basket");
    assert_eq!(first("12-basket"), "r-12-basket");
    assert_eq!(first("x"), "r-x");
    assert_eq!(first("ÄÖÜ"), "request");
    assert_eq!(names("pr-{number}", "x", 12)[0], "pr-12");
    assert_eq!(
        names("{source}-{short}-{number}", "x", 1)[0],
        "shop-c4295bd-1"
    );
}

#[test]
fn what_is_cut_ends_in_a_digest_of_the_request() {
    let long = names("{branch}", "feature/basket-with-discounts", 12);
    assert_eq!(long[0], "feature-ba-fd8wc");
    assert_eq!(long, names("{branch}", "feature/basket-with-discounts", 12));
    let other = names("{branch}", "feature/basket-with-cheese", 12);
    assert_eq!(&other[0][..11], &long[0][..11]);
    assert_ne!(other[0], long[0]);
    let alike = names("{branch}", "feature/basket-with-discounts", 13);
    assert_ne!(alike[0], long[0], "of another request of the same branch");
}

#[test]
fn tags_are_commits_or_branches() {
    let tag = |template: &str| {
        let template: TagTemplate = template.parse().unwrap();
        String::from(template.fill(&"shop".parse().unwrap(), &basket()))
    };
    assert_eq!(tag("{sha}"), NEW);
    assert_eq!(tag("sha-{short}"), "sha-c4295bd");
    assert_eq!(tag("{branch}"), "feature-basket");
    assert_eq!(tag("pr-{number}"), "pr-12");
}

#[test]
fn what_is_no_template_is_told() {
    let why = |text: &str| text.parse::<NameTemplate>().unwrap_err().to_string();
    assert_eq!(why(""), "found 0 bytes, allowed: 1 to 200");
    assert_eq!(
        why("{brnch}"),
        "found `{brnch}`, allowed: `{branch}`, `{number}`, `{sha}`, `{short}`, `{source}`"
    );
    for brace in ["{branch", "branch}", "{branch}}", "a}{branch}"] {
        assert_eq!(
            why(brace),
            "found a brace without its other, allowed: words like `{branch}`",
            "{brace}"
        );
    }
    assert_eq!(
        why("preview"),
        "found neither `{branch}` nor `{number}`, so all would be called the same"
    );
    assert!(why("a b{branch}").starts_with("found ' '"));
}

#[test]
fn a_fork_is_lent_nothing() {
    let mut source = source();
    source
        .beginning
        .edits
        .deployment
        .insert("replicas".parse().unwrap(), Edit::Set("2".parse().unwrap()));
    source.beginning.secrets.push(Lent {
        level: Level::Application,
        key: "db.password".parse().unwrap(),
        secret: source.secret.clone(),
    });
    let tag = "image.tag".parse().unwrap();
    let own = source.edits(&basket(), &tag);
    assert_eq!(own.secrets().count(), 1);
    assert_eq!(own.application[&tag], Edit::Set(NEW.parse().unwrap()));
    let fork = Event {
        fork: true,
        ..basket()
    };
    let theirs = source.edits(&fork, &tag);
    assert_eq!(theirs.secrets().count(), 0);
    assert_eq!(theirs.deployment, own.deployment);
    assert!(source.origin(&fork).fork);
}

#[test]
fn sources_are_read_as_they_are_written() {
    let least = r#"{"name":"shop","service":"github","repository":"acme/shop","secret":{"name":"git","key":"hook"}}"#;
    let read: Source = serde_json::from_str(least).unwrap();
    assert_eq!(read, source());
    let again = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Source>(&again).unwrap(), read);
    assert!(
        serde_json::from_str::<Source>(&least.replace("\"name\":\"shop\"", "\"nam\":1")).is_err()
    );
}

proptest! {
    /// Whatever a branch is called, it has names, a tag, and no two of its names are the same.
    #[test]
    fn every_branch_has_names(branch in "\\PC{1,80}", request in 0_u64..1_000_000) {
        let event = Event { request, branch, ..basket() };
        let names = NameTemplate::default().names(&source().name, &event);
        let several: BTreeSet<&EnvironmentName> = names.iter().collect();
        prop_assert!(names.len() >= 8);
        prop_assert_eq!(several.len(), names.len());
        let tag = String::from("{branch}".parse::<TagTemplate>().unwrap().fill(&source().name, &event));
        prop_assert!(tag.len() <= 128);
    }

    /// Nothing that is sent has the reader fall.
    #[test]
    fn anything_is_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        for service in Service::ALL {
            let read = read(service, kind(service), &body);
            prop_assert!(read.is_err());
        }
    }
}
