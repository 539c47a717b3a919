//! The shape of requests about environments.

use api::environment::TestRequest;
use api::{
    CloneRequest, EnvironmentChangeRequest, EnvironmentRequest, EnvironmentSettings, ExtendRequest,
    ImportRequest, RedeployRequest,
};
use model::fault::{Fault, Faults};
use serde_json::Value;

use super::{Body, Field, Want, check, field, optional};

macro_rules! body {
    ($type:ty, $fields:ident) => {
        impl Body for $type {
            fn faults(tree: &Value) -> Vec<Fault> {
                let mut faults = Faults::default();
                check("", tree, Want::Fields(&$fields), &mut faults);
                faults.into_vec()
            }
        }
    };
}

body!(EnvironmentSettings, SETTINGS);
body!(EnvironmentRequest, ENVIRONMENT);
body!(EnvironmentChangeRequest, CHANGE);
body!(RedeployRequest, REDEPLOY);
body!(CloneRequest, CLONE);
body!(ExtendRequest, EXTEND);
body!(TestRequest, TEST);
body!(ImportRequest, IMPORT);

static SETTINGS: [Field; 19] = [
    field("projectName", Want::Text),
    field("baseDomain", Want::Text),
    field("namespace", Want::Text),
    optional("cluster", Want::Text),
    optional("scripts", Want::Text),
    optional("helm", Want::Fields(&HELM)),
    optional("contract", Want::Word(&["current", "legacy"])),
    optional("tagKey", Want::Text),
    optional("secretDelivery", Want::Word(&["file", "env", "argv"])),
    optional("actionSeconds", Want::Number),
    optional("checkSeconds", Want::Number),
    optional("pendingSeconds", Want::Number),
    optional("everySeconds", Want::Number),
    optional("retentionSeconds", Want::Number),
    optional("idleSeconds", Want::Number),
    present("hours", Want::List(&Want::Text)),
    optional("upMax", Want::Number),
    present("sources", Want::List(&Want::Fields(&SOURCE))),
    present("notify", Want::List(&Want::Fields(&NOTIFY))),
];

static SOURCE: [Field; 16] = [
    field("name", Want::Text),
    field("service", Want::Word(&["github", "gitlab", "gitea"])),
    field("repository", Want::Text),
    field("secret", Want::Text),
    optional("api", Want::Text),
    optional("token", Want::Text),
    present("branches", Want::List(&Want::Text)),
    present("labels", Want::List(&Want::Text)),
    present("authors", Want::List(&Want::Text)),
    optional("forks", Want::Word(&["ignore", "without-secrets"])),
    optional("environment", Want::Text),
    optional("tag", Want::Text),
    present("set", Want::Fields(&VALUES)),
    present("secrets", Want::Fields(&VALUES)),
    present("environmentLabels", Want::Map(&Want::Text)),
    optional("expiresInSeconds", Want::Number),
];

static NOTIFY: [Field; 5] = [
    field("name", Want::Text),
    optional("webhook", Want::Fields(&WEBHOOK)),
    optional("slack", Want::Fields(&SLACK)),
    present("events", Want::List(&Want::Word(&EVENTS))),
    present("labels", Want::List(&Want::Text)),
];

static WEBHOOK: [Field; 2] = [field("url", Want::Text), field("secret", Want::Text)];

static SLACK: [Field; 1] = [field("secret", Want::Text)];

static EVENTS: [&str; 8] = [
    "pending",
    "running",
    "failing",
    "archived",
    "cleanup-failed",
    "gone",
    "action-failed",
    "expires-soon",
];

static TEST: [Field; 1] = [field("target", Want::Text)];

static HELM: [Field; 3] = [
    field("chart", Want::Text),
    optional("kubeconfig", Want::OneOf(&KUBECONFIG)),
    optional("host", Want::Text),
];

static KUBECONFIG: [Field; 2] = [field("file", Want::Text), field("secret", Want::Text)];

static ENVIRONMENT: [Field; 11] = [
    optional("name", Want::Text),
    optional("tag", Want::Text),
    present("set", Want::Fields(&VALUES)),
    present("secret", Want::Fields(&HIDDEN)),
    present("keep", Want::Fields(&KEYS)),
    present("remove", Want::Fields(&KEYS)),
    present("labels", Want::Map(&Want::Text)),
    optional("owner", Want::Text),
    optional("notes", Want::Text),
    optional("protected", Want::Truth),
    optional("expiresInSeconds", Want::Number),
];

static CHANGE: [Field; 9] = [
    optional("tag", Want::Text),
    present("set", Want::Fields(&VALUES)),
    present("secret", Want::Fields(&HIDDEN)),
    present("remove", Want::Fields(&KEYS)),
    present("unset", Want::Fields(&KEYS)),
    present("labels", Want::Map(&Want::Perhaps)),
    optional("owner", Want::Text),
    optional("notes", Want::Text),
    optional("protected", Want::Truth),
];

static VALUES: [Field; 2] = [
    present("application", Want::Map(&Want::Text)),
    present("deployment", Want::Map(&Want::Text)),
];

static HIDDEN: [Field; 2] = [
    present("application", Want::Map(&Want::Hidden)),
    present("deployment", Want::Map(&Want::Hidden)),
];

static KEYS: [Field; 2] = [
    present("application", Want::List(&Want::Text)),
    present("deployment", Want::List(&Want::Text)),
];

static REDEPLOY: [Field; 2] = [
    field("action", Want::Text),
    optional("secretsAsNow", Want::Truth),
];

static CLONE: [Field; 1] = [field("name", Want::Text)];

// Whoever forgot it would take away an end that somebody set.
static EXTEND: [Field; 1] = [Field {
    nullable: true,
    ..field("seconds", Want::Number)
}];

static IMPORT: [Field; 1] = [field(
    "environments",
    Want::List(&Want::Fields(&IMPORT_ENVIRONMENT)),
)];

static IMPORT_ENVIRONMENT: [Field; 11] = [
    field("name", Want::Text),
    field("origin", Want::Text),
    field("status", Want::Word(&STATUSES)),
    field("since", Want::Time),
    field("createdAt", Want::Time),
    field("updatedAt", Want::Time),
    optional("archivedAt", Want::Time),
    present("set", Want::Fields(&VALUES)),
    present("remove", Want::Fields(&KEYS)),
    present("links", Want::List(&Want::Fields(&LINK))),
    present("actions", Want::List(&Want::Fields(&IMPORT_ACTION))),
];

static STATUSES: [&str; 9] = [
    "create-pending",
    "update-pending",
    "archive-pending",
    "running",
    "failure",
    "partial-failure",
    "tag-mismatch",
    "archived",
    "cleanup-failed",
];

static LINK: [Field; 2] = [field("name", Want::Text), field("url", Want::Text)];

static IMPORT_ACTION: [Field; 10] = [
    field("number", Want::Count),
    field("kind", Want::Word(&KINDS)),
    field("author", Want::Text),
    field("exit", Want::Exit),
    field("endedAt", Want::Time),
    field("millis", Want::Count),
    present("set", Want::Fields(&VALUES)),
    present("remove", Want::Fields(&KEYS)),
    present("stdout", Want::Text),
    present("stderr", Want::Text),
];

static KINDS: [&str; 6] = [
    "create", "update", "archive", "restore", "cleanup", "delete",
];

/// One that may be left out, and is never null.
const fn present(name: &'static str, want: Want) -> Field {
    Field {
        name,
        want,
        required: false,
        nullable: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn words_of_an_import_are_those_of_the_contract() {
        let statuses = api::EnvironmentStatus::ALL.map(api::EnvironmentStatus::as_str);
        assert_eq!(statuses, STATUSES);
        let kinds =
            model::environment::status::Deed::ALL.map(model::environment::status::Deed::as_str);
        assert_eq!(kinds, KINDS);
    }

    #[test]
    fn every_fault_is_told_with_its_place_and_without_a_secret() {
        let told: String = [
            r#"{"name": 1, "set": {"application": {"a": 2}, "app": {}}, "labels": {"a": null}}"#,
            r#"{"secret": {"application": {"a": 7331, "b": ["hunter2"], "c": null}}}"#,
            r#"{"secret": {"deployment": "hunter2"}}"#,
            r#"{"remove": {"application": {"a": 1}, "deployment": ["a", 1]}, "protected": "yes"}"#,
            r#"{"set": null, "unset": {}, "expiresInSeconds": -1}"#,
        ]
        .into_iter()
        .map(|text| {
            let faults = EnvironmentRequest::faults(&serde_json::from_str(text).unwrap());
            let faults: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
            assert!(
                !faults.contains("hunter2") && !faults.contains("7331"),
                "{faults}"
            );
            format!("{text}\n{faults}")
        })
        .collect();
        expect![[r#"
            {"name": 1, "set": {"application": {"a": 2}, "app": {}}, "labels": {"a": null}}
              name: found 1, allowed: a text
              set.application.a: found 2, allowed: a text
              set.app: unknown field; allowed: application, deployment
              labels.a: found null, allowed: a text
            {"secret": {"application": {"a": 7331, "b": ["hunter2"], "c": null}}}
              secret.application.a: found something else, allowed: a text
              secret.application.b: found something else, allowed: a text
              secret.application.c: found something else, allowed: a text
            {"secret": {"deployment": "hunter2"}}
              secret.deployment: found a text, allowed: an object
            {"remove": {"application": {"a": 1}, "deployment": ["a", 1]}, "protected": "yes"}
              remove.application: found an object with 1 fields, allowed: a list
              remove.deployment[1]: found 1, allowed: a text
              protected: found a text, allowed: true or false
            {"set": null, "unset": {}, "expiresInSeconds": -1}
              set: found null, allowed: an object with application, deployment
              expiresInSeconds: found -1, allowed: a whole number from 0 to 4294967295
              unset: unknown field; allowed: name, tag, set, secret, keep, remove, labels, owner, notes, protected, expiresInSeconds
        "#]].assert_eq(&told);
    }

    #[test]
    fn what_has_no_fault_can_be_read() {
        let whole = r#"{"name": "orange", "tag": null, "set": {"application": {"a": "b"}},
            "secret": {"deployment": {"a": "b"}}, "keep": {}, "remove": {"application": ["c"]},
            "labels": {"a": "b"}, "owner": "ana", "notes": null, "protected": true,
            "expiresInSeconds": null}"#;
        let tree = serde_json::from_str(whole).unwrap();
        assert_eq!(EnvironmentRequest::faults(&tree), []);
        assert!(serde_json::from_str::<EnvironmentRequest>(whole).is_ok());
        let change = r#"{"unset": {"deployment": ["a"]}, "labels": {"a": null, "b": "c"}}"#;
        let tree = serde_json::from_str(change).unwrap();
        assert_eq!(EnvironmentChangeRequest::faults(&tree), []);
        assert!(serde_json::from_str::<EnvironmentChangeRequest>(change).is_ok());
        for (extend, faults) in [
            (r#"{"seconds": null}"#, 0),
            (r#"{"seconds": 60}"#, 0),
            ("{}", 1),
        ] {
            let tree = serde_json::from_str(extend).unwrap();
            assert_eq!(ExtendRequest::faults(&tree).len(), faults, "{extend}");
            let read = serde_json::from_str::<ExtendRequest>(extend);
            assert!(read.is_ok(), "{extend}");
        }
    }
}
