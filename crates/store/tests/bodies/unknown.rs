//! Fields that this version does not know, anywhere in a document: refused, never passed over.

use crate::behind::Place;
use crate::fixture::{at, cluster, name, plan, project};
use crate::furnished::furnish;
use model::cluster::{Desired, Machine};
use model::intent::{Intent, Wish};
use model::manifest::Manifest;
use model::observed::Fact;
use model::task::Task;
use plan::{Held, Summary};
use rusqlite::Connection;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::{Draft, Store, Submitted};

/// Reads a document as a kind; says whether that can be.
type Reads = fn(&Value) -> bool;

/// Every kind of document: its table, its column, and who reads it.
const KINDS: &[(&str, &str, Reads)] = &[
    ("manifest_generations", "body", reads::<Manifest>),
    ("desired", "body", reads::<Desired>),
    ("machines", "body", reads::<Machine>),
    ("tasks", "body", reads::<Task>),
    ("intents", "body", reads::<Intent>),
    ("observations", "fact", reads::<Fact>),
    ("observation_changes", "fact", reads::<Fact>),
    ("clusters", "summary", reads::<Summary>),
    ("clusters", "held", reads::<Vec<Held>>),
    ("idempotency_keys", "answer", reads::<Submitted>),
];

fn reads<T: DeserializeOwned>(document: &Value) -> bool {
    serde_json::from_value::<T>(document.clone()).is_ok()
}

/// The document with one more field in one of its objects, for each of them.
fn with_one_more(document: &Value) -> Vec<Value> {
    let mut grown = Vec::new();
    match document {
        Value::Object(fields) => {
            let mut more = fields.clone();
            // Nothing is no value of any table of ours either.
            more.insert("quark".to_owned(), Value::Null);
            grown.push(Value::Object(more));
            for (name, inner) in fields {
                grown.extend(with_one_more(inner).into_iter().map(|inner| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), inner);
                    Value::Object(fields)
                }));
            }
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                grown.extend(with_one_more(inner).into_iter().map(|inner| {
                    let mut items = items.clone();
                    items[at] = inner;
                    Value::Array(items)
                }));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    grown
}

/// The documents that a column holds.
fn documents(connection: &Connection, table: &str, column: &str) -> Vec<Value> {
    let mut query = connection
        .prepare(&format!("SELECT DISTINCT {column} FROM {table}"))
        .unwrap();
    let texts = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    texts
        .map(|text| serde_json::from_str(&text.unwrap()).unwrap())
        .collect()
}

#[test]
fn one_more_field_is_put_into_every_object() {
    let grown = with_one_more(&json!({"a": [{"b": 1}, {}]}));
    assert_eq!(grown.len(), 3);
    assert!(grown.contains(&json!({"a": [{"b": 1}, {"quark": null}]})));
}

#[tokio::test]
async fn no_document_of_any_kind_is_read_past_a_field_that_nobody_knows() {
    let place = Place::directory();
    let store: Store = place.open();
    furnish(&store).await;
    let waits = cluster(&store, "waits", 1).await;
    let pause = Draft {
        project: project(),
        cluster: name("waits"),
        wish: Wish::Pause,
        author: "ana".into(),
        reason: "because".to_owned(),
        expires_at: None,
    };
    store.wish(pause, at(9)).await.unwrap();
    plan(&store, waits, at(9)).await;
    let connection = Connection::open(place.file()).unwrap();
    for (table, column, reads) in KINDS {
        let mut objects = 0;
        for document in documents(&connection, table, column) {
            assert!(reads(&document), "{table}.{column}: {document}");
            for grown in with_one_more(&document) {
                assert!(!reads(&grown), "{table}.{column} passes over it: {grown}");
                objects += 1;
            }
        }
        assert!(objects > 0, "there is no {table}.{column} to try it with");
    }
}
