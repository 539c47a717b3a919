//! What is asked of environments. Secret values go in and never come out.
//!
//! Requests have no `Serialize`: their text for the wire is itself a secret ([`EnvironmentRequest::to_json`]).

use crate::secret::{Secret, quote};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A value that nobody sees.
pub struct Hidden(pub Secret);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(Self(Secret::from_text(text)))
    }
}

impl PartialSchema for Hidden {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .write_only(true)
            .description(Some("A value that goes in and never comes out."))
            .into()
    }
}

impl ToSchema for Hidden {
    fn name() -> Cow<'static, str> {
        "Hidden".into()
    }
}

/// Values of settings, by level and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueLevels {
    /// Of what the application is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub application: BTreeMap<String, String>,
    /// Of how it is deployed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deployment: BTreeMap<String, String>,
}

impl ValueLevels {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.application.is_empty() && self.deployment.is_empty()
    }
}

/// Names of settings, by level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyLevels {
    /// Of what the application is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub application: Vec<String>,
    /// Of how it is deployed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deployment: Vec<String>,
}

impl KeyLevels {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.application.is_empty() && self.deployment.is_empty()
    }
}

/// Secret values of settings, by level and name.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HiddenLevels {
    /// Of what the application is given.
    #[serde(default)]
    pub application: BTreeMap<String, Hidden>,
    /// Of how it is deployed.
    #[serde(default)]
    pub deployment: BTreeMap<String, Hidden>,
}

impl HiddenLevels {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.application.is_empty() && self.deployment.is_empty()
    }

    /// What is named, without the values.
    fn names(&self) -> KeyLevels {
        KeyLevels {
            application: self.application.keys().cloned().collect(),
            deployment: self.deployment.keys().cloned().collect(),
        }
    }
}

/// An environment as it is to be, whole: to create one, or in place of what there is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentRequest {
    /// What it is called; needed to create one, and left out where the path says it.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$")]
    #[serde(default)]
    pub name: Option<String>,
    /// The version of the application: the setting that the project says is its tag.
    #[serde(default)]
    pub tag: Option<String>,
    /// Values that everybody may see.
    #[serde(default)]
    pub set: ValueLevels,
    /// Values that nobody sees. In place of an environment that is there, a setting that is
    /// secret and named with no value is named in `keep`.
    #[serde(default)]
    pub secret: HiddenLevels,
    /// Settings that stay secret with the value that they have; only in place of what there is.
    #[serde(default)]
    pub keep: KeyLevels,
    /// Settings that are left out, although there are defaults.
    #[serde(default)]
    pub remove: KeyLevels,
    /// What it is found by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whose it is, in people's words.
    #[serde(default)]
    pub owner: Option<String>,
    /// What else there is to know.
    #[serde(default)]
    pub notes: Option<String>,
    /// Whether it is to stay: it is not archived or removed unless that is forced.
    #[serde(default)]
    pub protected: Option<bool>,
    /// For how long it may be up, from now on; absent means without end.
    #[serde(default)]
    pub expires_in_seconds: Option<u32>,
}

impl EnvironmentRequest {
    /// The request as JSON.
    pub fn to_json(&self) -> Secret {
        self.plain().with(&self.secret)
    }

    /// The request as JSON, with the names of secret settings and without their values.
    pub fn to_public_json(&self) -> String {
        self.plain().with_names(&self.secret)
    }

    fn plain(&self) -> Plain {
        let Self {
            name,
            tag,
            set,
            secret: _,
            keep,
            remove,
            labels,
            owner,
            notes,
            protected,
            expires_in_seconds,
        } = self;
        let mut plain = Plain::default();
        plain.put("name", name);
        plain.put("tag", tag);
        plain.put("set", set);
        plain.put("keep", keep);
        plain.put("remove", remove);
        plain.put("labels", labels);
        plain.put("owner", owner);
        plain.put("notes", notes);
        plain.put("protected", protected);
        plain.put("expiresInSeconds", expires_in_seconds);
        plain
    }
}

/// A change of an environment: all of it, or nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentChangeRequest {
    /// Another version of the application: the setting that the project says is its tag.
    #[serde(default)]
    pub tag: Option<String>,
    /// Values that everybody may see.
    #[serde(default)]
    pub set: ValueLevels,
    /// Values that nobody sees.
    #[serde(default)]
    pub secret: HiddenLevels,
    /// Settings that are left out, although there are defaults.
    #[serde(default)]
    pub remove: KeyLevels,
    /// Edits that are forgotten: the defaults count again.
    #[serde(default)]
    pub unset: KeyLevels,
    /// Labels that are set; those without a value go, and the others stay.
    #[serde(default)]
    pub labels: BTreeMap<String, Option<String>>,
    /// Whose it is, in people's words.
    #[serde(default)]
    pub owner: Option<String>,
    /// What else there is to know.
    #[serde(default)]
    pub notes: Option<String>,
    /// Whether it is to stay.
    #[serde(default)]
    pub protected: Option<bool>,
}

impl EnvironmentChangeRequest {
    /// Whether it says anything of settings, so that something has to be done.
    pub fn edits(&self) -> bool {
        let Self {
            tag,
            set,
            secret,
            remove,
            unset,
            labels: _,
            owner: _,
            notes: _,
            protected: _,
        } = self;
        let nothing = tag.is_none()
            && set.is_empty()
            && secret.is_empty()
            && remove.is_empty()
            && unset.is_empty();
        !nothing
    }

    /// The request as JSON.
    pub fn to_json(&self) -> Secret {
        self.plain().with(&self.secret)
    }

    /// The request as JSON, with the names of secret settings and without their values.
    pub fn to_public_json(&self) -> String {
        self.plain().with_names(&self.secret)
    }

    fn plain(&self) -> Plain {
        let Self {
            tag,
            set,
            secret: _,
            remove,
            unset,
            labels,
            owner,
            notes,
            protected,
        } = self;
        let mut plain = Plain::default();
        plain.put("tag", tag);
        plain.put("set", set);
        plain.put("remove", remove);
        plain.put("unset", unset);
        plain.put("labels", labels);
        plain.put("owner", owner);
        plain.put("notes", notes);
        plain.put("protected", protected);
        plain
    }
}

/// The part of a request that everybody may see.
#[derive(Default)]
struct Plain(Map<String, Value>);

impl Plain {
    /// Adds a field, unless there is nothing to say.
    fn put<T: Serialize>(&mut self, name: &str, value: &T) {
        // Texts and numbers always serialise.
        let value = serde_json::to_value(value).unwrap_or_default();
        let empty = match &value {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if !empty {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// The request without the values that nobody sees.
    fn with_names(mut self, secret: &HiddenLevels) -> String {
        self.put("secret", &secret.names());
        Value::Object(self.0).to_string()
    }

    /// The whole request.
    fn with(self, secret: &HiddenLevels) -> Secret {
        let nothing = self.0.is_empty();
        let plain = Value::Object(self.0).to_string();
        if secret.is_empty() {
            return Secret::from_text(plain);
        }
        let levels = [
            ("application", &secret.application),
            ("deployment", &secret.deployment),
        ];
        let values = levels.iter().flat_map(|(_, values)| values.iter());
        let sizes = values.map(|(key, value)| 6 * (key.len() + value.0.expose().len()) + 8);
        // Of its final size from the start: memory that grows leaves copies behind.
        let mut json = Vec::with_capacity(plain.len() + 64 + sizes.sum::<usize>());
        json.extend_from_slice(plain.trim_end_matches('}').as_bytes());
        // What was inside of braces of its own keeps them.
        let inner = plain.len() - plain.trim_end_matches('}').len();
        json.extend(std::iter::repeat_n(b'}', inner - 1));
        json.extend_from_slice(if nothing {
            b"\"secret\":{"
        } else {
            b",\"secret\":{"
        });
        for (at, (level, values)) in levels.into_iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            quote(level, &mut json);
            json.extend_from_slice(b":{");
            for (at, (key, value)) in values.iter().enumerate() {
                if at > 0 {
                    json.push(b',');
                }
                quote(key, &mut json);
                json.push(b':');
                // Whoever makes a request has a text; anything else is refused as an empty one.
                quote(value.0.expose_text().unwrap_or_default(), &mut json);
            }
            json.push(b'}');
        }
        json.extend_from_slice(b"}}");
        Secret::from(json)
    }
}

/// Which earlier action is done again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedeployRequest {
    /// The action whose configuration counts again.
    pub action: String,
    /// Whether secret settings that have changed since then may have the values of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_as_now: Option<bool>,
}

/// What a copy of an environment is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloneRequest {
    /// The name of the copy.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$")]
    pub name: String,
}

/// How long an environment may be up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtendRequest {
    /// For so long, from now on; null means without end.
    #[schema(required)]
    pub seconds: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Hidden {
        Hidden(Secret::from_text(text.to_owned()))
    }

    #[test]
    fn a_request_is_the_json_that_it_is_read_from() {
        let mut request = EnvironmentRequest {
            name: Some("orange".to_owned()),
            ..EnvironmentRequest::default()
        };
        assert_eq!(
            request.to_json().expose_text(),
            Some(r#"{"name":"orange"}"#)
        );
        request.set.application = BTreeMap::from([("a".to_owned(), "{}".to_owned())]);
        let secret = &mut request.secret.application;
        secret.insert("b.\"c\"".to_owned(), hidden("say \"grün\"\n}"));
        secret.insert("d".to_owned(), hidden(""));
        let json = request.to_json();
        let tree: Value = serde_json::from_slice(json.expose()).unwrap();
        let expected = serde_json::json!({
            "name": "orange",
            "set": {"application": {"a": "{}"}},
            "secret": {"application": {"b.\"c\"": "say \"grün\"\n}", "d": ""}, "deployment": {}},
        });
        assert_eq!(tree, expected);
        let read: EnvironmentRequest = serde_json::from_slice(json.expose()).unwrap();
        let value = &read.secret.application["b.\"c\""].0;
        assert_eq!(value.expose_text(), Some("say \"grün\"\n}"));
        assert!(!format!("{read:?}").contains("grün"));
        assert_eq!(
            read.to_public_json(),
            r#"{"name":"orange","secret":{"application":["b.\"c\"","d"]},"set":{"application":{"a":"{}"}}}"#
        );
    }

    #[test]
    fn a_change_may_be_nothing_but_a_secret() {
        let mut change = EnvironmentChangeRequest::default();
        assert!(!change.edits());
        assert_eq!(change.to_json().expose_text(), Some("{}"));
        change.secret.deployment = BTreeMap::from([("k".to_owned(), hidden("v"))]);
        assert!(change.edits());
        assert_eq!(
            change.to_json().expose_text(),
            Some(r#"{"secret":{"application":{},"deployment":{"k":"v"}}}"#)
        );
        change.secret = HiddenLevels::default();
        change.labels = BTreeMap::from([("team".to_owned(), None)]);
        assert!(!change.edits());
        assert_eq!(
            change.to_json().expose_text(),
            Some(r#"{"labels":{"team":null}}"#)
        );
    }

    #[test]
    fn fields_that_nobody_reads_are_refused() {
        for text in [
            r#"{"colour":"red"}"#,
            r#"{"set":{"app":{}}}"#,
            r#"{"secret":{"application":{"a":1}}}"#,
        ] {
            assert!(serde_json::from_str::<EnvironmentRequest>(text).is_err());
            assert!(serde_json::from_str::<EnvironmentChangeRequest>(text).is_err());
        }
    }
}
