//! Secrets on the wire: values go in and never come out, and the keys they are sealed with.
//!
//! [`SecretRequest`] has no `Debug` and no `Serialize`: whoever would log it or answer with
//! it does not compile. Its text for the wire is itself a secret.

use crate::time::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

pub use model::secret::{EntryName, Error as EntryError, Secret};

/// The longest value: as much as Kubernetes keeps in a secret.
pub const VALUE_BYTES_MAX: usize = 1 << 20;

/// The most entries of one secret.
pub const ENTRIES_MAX: usize = 100;

/// The largest request: several of the longest values, in base64.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// What to put into a secret, by the names of its entries; an entry without a value goes.
#[derive(Default)]
pub struct SecretRequest {
    /// The entries.
    pub entries: BTreeMap<EntryName, Option<Secret>>,
}

impl SecretRequest {
    /// The request as JSON: text as text, and everything else in base64.
    pub fn to_json(&self) -> Secret {
        // Of its final size from the start: memory that grows leaves copies behind.
        let size = |value: &Secret| 6 * value.expose().len() + 16;
        let entries = self.entries.iter();
        let sizes =
            entries.map(|(name, value)| name.as_str().len() + 8 + value.as_ref().map_or(4, size));
        let mut json = Vec::with_capacity(16 + sizes.sum::<usize>());
        json.extend_from_slice(b"{\"entries\":{");
        for (at, (name, value)) in self.entries.iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            // The characters of a name need no escaping.
            json.extend_from_slice(format!("\"{name}\":").as_bytes());
            match value.as_ref().map(|value| (value, value.expose_text())) {
                None => json.extend_from_slice(b"null"),
                Some((_, Some(text))) => quote(text, &mut json),
                Some((value, None)) => {
                    let encoded = Secret::from_text(STANDARD.encode(value.expose()));
                    json.extend_from_slice(b"{\"base64\":\"");
                    json.extend_from_slice(encoded.expose());
                    json.extend_from_slice(b"\"}");
                }
            }
        }
        json.extend_from_slice(b"}}");
        Secret::from(json)
    }
}

/// Writes a text as JSON does.
pub(crate) fn quote(text: &str, json: &mut Vec<u8>) {
    json.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => json.extend_from_slice(&[b'\\', byte]),
            0..=0x1f => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => json.push(byte),
        }
    }
    json.push(b'"');
}

impl PartialSchema for SecretRequest {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let base64 = text()
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte)))
            .max_length(Some(VALUE_BYTES_MAX.div_ceil(3) * 4));
        let bytes = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("base64", base64)
            .required("base64")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .description(Some("a value that is not text"));
        let value = OneOfBuilder::new()
            .item(
                text()
                    .max_length(Some(VALUE_BYTES_MAX))
                    .description(Some("a value that is text")),
            )
            .item(bytes)
            .item(
                ObjectBuilder::new()
                    .schema_type(Type::Null)
                    .description(Some("the entry goes")),
            );
        let entries = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("values by the names of their entries"))
            .property_names(Some(Schema::from(
                text().pattern(Some(r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,251}$")),
            )))
            .additional_properties(Some(Schema::from(value)))
            .min_properties(Some(1))
            .max_properties(Some(ENTRIES_MAX))
            .write_only(true);
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "What to put into a secret; values are never answered.",
            ))
            .property("entries", entries)
            .required("entries")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .examples([serde_json::json!({"entries": {"token": "correct horse battery staple"}})])
            .into()
    }
}

impl ToSchema for SecretRequest {
    fn name() -> Cow<'static, str> {
        "SecretRequest".into()
    }
}

/// A secret as everybody may see it: what it has, never what that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// What people call it.
    pub name: String,
    /// The names of its entries.
    pub entries: Vec<String>,
    /// How often it was changed.
    pub version: u64,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    pub updated_at: Time,
}

/// The data keys, and how far a rotation has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysView {
    /// The data keys, the one in use first. A rotation is over when there is one.
    pub keys: Vec<KeyView>,
    /// Values that are still sealed with an older key.
    pub left: u64,
    /// Why nothing can be sealed or opened on the server that answers; null if it can.
    pub closed: Option<ClosedView>,
}

/// One data key, without the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// Which key.
    pub id: String,
    /// Who can unwrap it: the fingerprint of a master key, or `command`.
    pub wrapped_by: String,
    /// Whether new values are sealed with it.
    pub in_use: bool,
    /// Values that are sealed with it.
    pub values: u64,
    /// Since when there is one.
    pub created_at: Time,
}

/// Why nothing can be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedView {
    /// The stable name of the error.
    pub code: String,
    /// What is wrong.
    pub detail: String,
    /// What would help.
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_json_that_the_contract_describes() {
        let mut request = SecretRequest::default();
        let mut put = |name: &str, value: Option<&[u8]>| {
            let value = value.map(|bytes| Secret::from(bytes.to_vec()));
            request.entries.insert(name.parse().unwrap(), value);
        };
        put("a", Some("say \"grün\"\\\n\u{7f}\u{1}".as_bytes()));
        put("b", Some(&[0xff, 0]));
        put("c", None);
        put("d", Some(b""));
        let json = request.to_json();
        let read: serde_json::Value = serde_json::from_slice(json.expose()).unwrap();
        let expected = serde_json::json!({"entries": {
            "a": "say \"grün\"\\\n\u{7f}\u{1}",
            "b": {"base64": "/wA="},
            "c": null,
            "d": "",
        }});
        assert_eq!(read, expected);
        let empty = SecretRequest::default().to_json();
        assert_eq!(empty.expose_text(), Some(r#"{"entries":{}}"#));
    }
}
