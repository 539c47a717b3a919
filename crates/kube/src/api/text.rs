//! Reads texts of YAML documents that hold objects of Kubernetes.

use kube_client::api::DynamicObject;
use serde_json::Value;

use crate::error::{Error, Kind};

/// The longest text; definitions of kinds alone can have several megabytes.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many values a text may have.
const NODES_MAX: usize = 2_000_000;

/// How deep they may lie.
const DEPTH_MAX: usize = 128;

/// How many documents a text may have.
const DOCUMENTS_MAX: usize = 10_000;

/// A text that cannot be read, and where.
pub(super) fn bad(why: impl std::fmt::Display) -> Error {
    Error::new(
        Kind::BadObjects,
        format!("cannot read the objects to apply: {why}"),
    )
}

/// The objects of a text, in its order; lists are opened and empty documents left out.
pub(super) fn read(text: &str) -> Result<Vec<DynamicObject>, Error> {
    let mut objects = Vec::new();
    for (number, document) in (1..).zip(documents(text)?) {
        gather(document, &mut objects).map_err(|why| bad(format!("document {number} {why}")))?;
    }
    Ok(objects)
}

/// One document.
pub(super) fn one(text: &str) -> Option<Value> {
    documents(text).ok()?.into_iter().next()
}

fn documents(text: &str) -> Result<Vec<Value>, Error> {
    if text.len() > BYTES_MAX {
        return Err(bad(format!("it has more than {BYTES_MAX} bytes")));
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: NODES_MAX * 2,
            max_documents: DOCUMENTS_MAX,
            max_total_scalar_bytes: BYTES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(bad)
}

fn gather(document: Value, into: &mut Vec<DynamicObject>) -> Result<(), &'static str> {
    if document.is_null() {
        return Ok(());
    }
    let kind = document
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind == "List" {
        let items = document.get("items").and_then(Value::as_array).cloned();
        for item in items.unwrap_or_default() {
            gather(item, into)?;
        }
        return Ok(());
    }
    let version = document.get("apiVersion").and_then(Value::as_str);
    if kind.is_empty() || version.unwrap_or_default().is_empty() {
        return Err("has no apiVersion or no kind");
    }
    let name = document.pointer("/metadata/name").and_then(Value::as_str);
    if name.unwrap_or_default().is_empty() {
        return Err("has no metadata.name");
    }
    let object = serde_json::from_value(document).map_err(|_| "has metadata of another form")?;
    into.push(object);
    Ok(())
}
