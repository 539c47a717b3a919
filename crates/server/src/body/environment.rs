//! The shape of requests about environments.

use api::{
    CloneRequest, EnvironmentChangeRequest, EnvironmentRequest, EnvironmentSettings, ExtendRequest,
    RedeployRequest,
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

static SETTINGS: [Field; 14] = [
    field("projectName", Want::Text),
    field("baseDomain", Want::Text),
    field("namespace", Want::Text),
    optional("cluster", Want::Text),
    field("scripts", Want::Text),
    optional("contract", Want::Word(&["current", "legacy"])),
    optional("tagKey", Want::Text),
    optional("secretDelivery", Want::Word(&["file", "env", "argv"])),
    optional("actionSeconds", Want::Number),
    optional("checkSeconds", Want::Number),
    optional("pendingSeconds", Want::Number),
    optional("everySeconds", Want::Number),
    optional("retentionSeconds", Want::Number),
    optional("upMax", Want::Number),
];

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

static REDEPLOY: [Field; 1] = [field("action", Want::Text)];

static CLONE: [Field; 1] = [field("name", Want::Text)];

static EXTEND: [Field; 1] = [optional("seconds", Want::Number)];

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
        let extend = serde_json::from_str("{}").unwrap();
        assert_eq!(ExtendRequest::faults(&extend), []);
        assert!(serde_json::from_str::<ExtendRequest>("{}").is_ok());
    }
}
