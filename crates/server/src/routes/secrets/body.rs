//! Reads the values of a secret out of a body, straight to where they cannot be printed.
//!
//! What is wrong is told by its place alone: a value that stands where another belongs may
//! still be somebody's secret. The whole body is wiped when it was read.

use std::collections::BTreeMap;
use std::fmt;

use api::secret::{BODY_BYTES_MAX, ENTRIES_MAX, VALUE_BYTES_MAX};
use axum::extract::{FromRequest, Request};
use axum::http::header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use model::fault::{Code, Fault, Faults};
use model::secret::{EntryName, Secret};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::extract;
use crate::problem::Problem;

/// How much of a name is repeated to whoever sent it.
const SHOWN_LEN_MAX: usize = 40;

/// Entries with their values; those without one go.
pub(crate) struct Values(pub(crate) Vec<(EntryName, Option<Secret>)>);

impl<S: Send + Sync> FromRequest<S> for Values {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        extract::media_type(request.headers(), &["application/json"])?;
        let body = whole(request).await?;
        match read(body.expose()) {
            Ok(Ok(entries)) => Ok(Self(entries)),
            Ok(Err(faults)) => Err(Problem::shape(faults)),
            Err(error) => Err(extract::not_json(&error)),
        }
    }
}

/// The whole body, in memory that does not grow: that would leave copies behind.
pub(crate) async fn whole(request: Request) -> Result<Secret, Problem> {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let size = declared.map_or(BODY_BYTES_MAX, |size| size.min(BODY_BYTES_MAX));
    let mut kept = Vec::with_capacity(size);
    let mut broken = false;
    let mut seen = 0_usize;
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else {
            broken = true;
            break;
        };
        seen = seen.saturating_add(piece.len());
        if seen <= BODY_BYTES_MAX {
            kept.extend_from_slice(&piece);
        } else if seen > extract::DISCARDED_BYTES_MAX {
            break;
        }
    }
    let kept = Secret::from(kept);
    if broken {
        Err(Problem::body("the body ended before its end"))
    } else if seen > BODY_BYTES_MAX {
        Err(Problem::values_too_large(BODY_BYTES_MAX, VALUE_BYTES_MAX))
    } else {
        Ok(kept)
    }
}

/// What was read.
type Entries = Vec<(EntryName, Option<Secret>)>;

/// Reads a body: its entries, or all that is wrong with them, or where it is not JSON.
fn read(json: &[u8]) -> Result<Result<Entries, Vec<Fault>>, serde_json::Error> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_slice(json);
    Place::document(&mut found).deserialize(&mut json)?;
    json.end()?;
    let Found {
        entries,
        mut faults,
        named,
    } = found;
    if faults.is_empty() {
        match named {
            None => faults.note(
                "entries",
                Code::Required,
                "found nothing; this field is required",
            ),
            Some(0) => faults.note("entries", Code::Range, "found no entry, allowed: 1 or more"),
            Some(1..=ENTRIES_MAX) => {}
            Some(many) => faults.note(
                "entries",
                Code::Range,
                format!("found {many} entries, allowed: at most {ENTRIES_MAX}"),
            ),
        }
    }
    Ok(if faults.is_empty() {
        Ok(entries.into_iter().collect())
    } else {
        Err(faults.into_vec())
    })
}

/// What was found so far.
#[derive(Default)]
struct Found {
    entries: BTreeMap<EntryName, Option<Secret>>,
    faults: Faults,
    /// How many entries were named; none while there is no field for them.
    named: Option<usize>,
}

/// What belongs in one place of the body.
enum Want {
    /// The whole: an object with `entries`.
    Document,
    /// The entries by their names.
    Entries,
    /// The value of an entry, if its name is one.
    Value(Option<EntryName>),
    /// A value in base64.
    Base64(Option<EntryName>),
}

impl Want {
    const fn told(&self) -> &'static str {
        match self {
            Self::Document => "an object with entries",
            Self::Entries => "an object with the values of the entries by their names",
            Self::Value(_) => "a text, an object with base64, or null",
            Self::Base64(_) => "a text in base64",
        }
    }
}

/// One place of the body, which is read whatever is there.
struct Place<'a> {
    path: String,
    want: Want,
    found: &'a mut Found,
}

impl<'a> Place<'a> {
    fn document(found: &'a mut Found) -> Self {
        Self {
            path: String::new(),
            want: Want::Document,
            found,
        }
    }

    /// The place of that name within this one.
    fn below(&mut self, name: &str, want: Want) -> Place<'_> {
        Place {
            path: self.path_of(name),
            want,
            found: self.found,
        }
    }

    fn path_of(&self, name: &str) -> String {
        let shown: String = name.escape_debug().take(SHOWN_LEN_MAX).collect();
        if self.path.is_empty() {
            shown
        } else {
            format!("{}.{shown}", self.path)
        }
    }

    fn wrong(self, kind: &str) {
        let message = format!("found {kind}, allowed: {}", self.want.told());
        self.found.faults.note(self.path, Code::Type, message);
    }

    fn keep(self, name: Option<EntryName>, value: Option<Secret>) {
        let Self { path, found, .. } = self;
        let long = value.as_ref().map_or(0, |value| value.expose().len());
        if long > VALUE_BYTES_MAX {
            let message = format!("found {long} bytes, allowed: at most {VALUE_BYTES_MAX}");
            found.faults.note(path, Code::Range, message);
        } else if let Some(name) = name
            && found.entries.insert(name, value).is_some()
        {
            found
                .faults
                .note(path, Code::Duplicate, "given more than once");
        }
    }

    fn text(self, text: &str) {
        match self.want {
            Want::Value(ref name) => {
                let name = name.clone();
                self.keep(name, Some(Secret::from(text.as_bytes().to_vec())));
            }
            Want::Base64(ref name) => {
                if let Some(value) = decoded(text) {
                    let name = name.clone();
                    self.keep(name, Some(value));
                } else {
                    let message = "found something else, allowed: base64 with its padding";
                    self.found.faults.note(self.path, Code::Format, message);
                }
            }
            Want::Document | Want::Entries => self.wrong("a text"),
        }
    }

    /// Reads one field of an object.
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let want = match &self.want {
            Want::Document if name == "entries" => {
                if self.found.named.replace(0).is_some() {
                    let path = self.path_of(name);
                    self.found
                        .faults
                        .note(path, Code::Duplicate, "given more than once");
                }
                Want::Entries
            }
            Want::Value(entry) if name == "base64" => Want::Base64(entry.clone()),
            Want::Entries => {
                *self.found.named.get_or_insert(0) += 1;
                let entry = name.parse::<EntryName>();
                if let Err(error) = &entry {
                    let path = self.path_of(name);
                    self.found
                        .faults
                        .note(path, Code::Format, error.to_string());
                }
                Want::Value(entry.ok())
            }
            Want::Document | Want::Value(_) | Want::Base64(_) => {
                let allowed = match self.want {
                    Want::Document => "entries",
                    Want::Entries | Want::Value(_) | Want::Base64(_) => "base64",
                };
                let path = self.path_of(name);
                let message = format!("unknown field; allowed: {allowed}");
                self.found.faults.note(path, Code::UnknownField, message);
                return map.next_value::<IgnoredAny>().map(drop);
            }
        };
        map.next_value_seed(self.below(name, want))
    }
}

fn decoded(text: &str) -> Option<Secret> {
    let mut bytes = vec![0; base64::decoded_len_estimate(text.len())];
    let len = STANDARD.decode_slice(text, &mut bytes).ok();
    bytes.truncate(len.unwrap_or(0));
    let bytes = Secret::from(bytes);
    len.map(|_| bytes)
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.want.told())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.wrong("true or false");
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.wrong("a number");
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.wrong("a number");
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.wrong("a number");
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.text(text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        match &self.want {
            Want::Value(name) => {
                let name = name.clone();
                self.keep(name, None);
            }
            Want::Document | Want::Entries | Want::Base64(_) => self.wrong("null"),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.wrong("a list");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut fields = 0;
        let leaf = matches!(self.want, Want::Base64(_));
        while let Some(name) = map.next_key::<String>()? {
            fields += 1;
            if leaf {
                map.next_value::<IgnoredAny>()?;
            } else {
                self.field(&name, &mut map)?;
            }
        }
        if leaf || (fields == 0 && matches!(self.want, Want::Value(_))) {
            self.wrong(if fields == 0 {
                "an empty object"
            } else {
                "an object"
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn entries(json: &str) -> Entries {
        read(json.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn values_are_texts_or_bytes_or_nothing() {
        let read = entries(
            r#"{"entries": {"b": {"base64": "/wA="}, "a": "gr\u00fcn", "c": null, "d": "", "e": {"base64": ""}}}"#,
        );
        let shown: Vec<_> = read
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref().map(Secret::expose)))
            .collect();
        let expected: [(&str, Option<&[u8]>); 5] = [
            ("a", Some("grün".as_bytes())),
            ("b", Some(&[0xff, 0])),
            ("c", None),
            ("d", Some(b"")),
            ("e", Some(b"")),
        ];
        assert_eq!(shown, expected);
    }

    /// Whatever is wrong, and wherever somebody put their password.
    #[test]
    fn every_fault_is_told_with_its_place_and_without_the_value() {
        let told: String = [
            "[]",
            r#""hunter2""#,
            "{}",
            r#"{"entries": {}}"#,
            r#"{"entries": "hunter2"}"#,
            r#"{"entries": null, "token": "hunter2"}"#,
            r#"{"entries": {"a": 7331, "b": true, "c": ["hunter2"], "d": -1.5, "e": {}}}"#,
            r#"{"entries": {"a": {"base64": "hunter2!"}, "b": {"base64": 7331}, "c": {"base64": {"x": 1}}}}"#,
            r#"{"entries": {"a": {"base64": null}, "b": {"base64": "AA==", "text": "hunter2"}, "c": {"base64": []}}}"#,
            r#"{"entries": {"a/b": "hunter2", "..": "hunter2", "": "hunter2"}}"#,
            r#"{"entries": {"a": "hunter2", "a": "hunter3"}}"#,
            r#"{"entries": {"a": "x"}, "entries": {"b": "x"}}"#,
        ]
        .into_iter()
        .map(|json| {
            let faults = read(json.as_bytes()).unwrap().err().unwrap();
            let faults: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
            for value in ["hunter", "7331", "1.5"] {
                assert!(!faults.contains(value), "{faults}");
            }
            format!("{json}\n{faults}")
        })
        .collect();
        expect![[r#"
            []
              the document: found a list, allowed: an object with entries
            "hunter2"
              the document: found a text, allowed: an object with entries
            {}
              entries: found nothing; this field is required
            {"entries": {}}
              entries: found no entry, allowed: 1 or more
            {"entries": "hunter2"}
              entries: found a text, allowed: an object with the values of the entries by their names
            {"entries": null, "token": "hunter2"}
              entries: found null, allowed: an object with the values of the entries by their names
              token: unknown field; allowed: entries
            {"entries": {"a": 7331, "b": true, "c": ["hunter2"], "d": -1.5, "e": {}}}
              entries.a: found a number, allowed: a text, an object with base64, or null
              entries.b: found true or false, allowed: a text, an object with base64, or null
              entries.c: found a list, allowed: a text, an object with base64, or null
              entries.d: found a number, allowed: a text, an object with base64, or null
              entries.e: found an empty object, allowed: a text, an object with base64, or null
            {"entries": {"a": {"base64": "hunter2!"}, "b": {"base64": 7331}, "c": {"base64": {"x": 1}}}}
              entries.a.base64: found something else, allowed: base64 with its padding
              entries.b.base64: found a number, allowed: a text in base64
              entries.c.base64: found an object, allowed: a text in base64
            {"entries": {"a": {"base64": null}, "b": {"base64": "AA==", "text": "hunter2"}, "c": {"base64": []}}}
              entries.a.base64: found null, allowed: a text in base64
              entries.b.text: unknown field; allowed: base64
              entries.c.base64: found a list, allowed: a text in base64
            {"entries": {"a/b": "hunter2", "..": "hunter2", "": "hunter2"}}
              entries.a/b: entry name has `/`; allowed are a-z, A-Z, 0-9, `.`, `_` and `-`
              entries...: entry name must not be `.` nor begin with `..`
              entries.: entry name is empty
            {"entries": {"a": "hunter2", "a": "hunter3"}}
              entries.a: given more than once
            {"entries": {"a": "x"}, "entries": {"b": "x"}}
              entries: given more than once
        "#]].assert_eq(&told);
    }

    #[test]
    fn what_is_not_json_is_told_by_its_place() {
        for json in ["", "{", r#"{"entries": {"a": "hunter2"#, "{} {}", "hunter2"] {
            let error = read(json.as_bytes()).err().unwrap();
            let told = format!("{:?}", extract::not_json(&error));
            assert!(told.contains("line 1 column"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn values_and_their_number_are_bounded() {
        let of = |len: usize| format!(r#"{{"entries": {{"a": "{}"}}}}"#, "x".repeat(len));
        assert_eq!(entries(&of(VALUE_BYTES_MAX)).len(), 1);
        let faults = read(of(VALUE_BYTES_MAX + 1).as_bytes()).unwrap().err();
        assert_eq!(
            faults.unwrap()[0].to_string(),
            "entries.a: found 1048577 bytes, allowed: at most 1048576"
        );
        let many = |count: usize| {
            let fields: Vec<_> = (0..count).map(|at| format!(r#""k{at}": "x""#)).collect();
            format!(r#"{{"entries": {{{}}}}}"#, fields.join(","))
        };
        assert_eq!(entries(&many(ENTRIES_MAX)).len(), ENTRIES_MAX);
        let faults = read(many(ENTRIES_MAX + 1).as_bytes()).unwrap().err();
        assert_eq!(
            faults.unwrap()[0].to_string(),
            "entries: found 101 entries, allowed: at most 100"
        );
        assert_eq!(ENTRIES_MAX, store::SECRET_ENTRIES_MAX);
    }
}
