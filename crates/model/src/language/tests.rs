//! The table is what admission reads, and says it for people.

use super::{Field, Is, all, meant, schema, table};
use crate::admit::templates::KIND;
use crate::admit::{admit, admit_all};
use crate::fault::Fault;
use crate::source;
use expect_test::{expect, expect_file};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What nobody calls a field.
const UNKNOWN: &str = "zzz";

/// A mapping with every field of the table, and one that is in no table where `marked` says.
fn sample(path: &str, fields: &[Field], marked: &str) -> Value {
    let within = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let mut entries: Map<_, _> = fields
        .iter()
        .map(|field| {
            (
                field.name.to_owned(),
                value(&within(field.name), &field.is, marked),
            )
        })
        .collect();
    if path == marked {
        entries.insert(UNKNOWN.to_owned(), json!(1));
    }
    Value::Object(entries)
}

fn value(path: &str, is: &Is, marked: &str) -> Value {
    match is {
        Is::Text | Is::Name(_) => json!("x"),
        Is::Form(_, example) => json!(example.trim_matches('"')),
        Is::One(words) => json!(words()[0]),
        Is::Number(from, _) => json!(from),
        Is::Flag => json!(true),
        Is::Texts => json!({"x": "y"}),
        Is::Foreign(_) => json!({}),
        Is::Mapping(fields) => sample(path, fields, marked),
        Is::Several(inner) => json!([value(&format!("{path}[0]"), inner, marked)]),
    }
}

/// The places of all mappings, as faults name them.
fn mappings(path: &str, fields: &'static [Field], found: &mut Vec<(String, &'static [Field])>) {
    found.push((path.to_owned(), fields));
    for field in fields {
        let inner = field.is.fields();
        if !inner.is_empty() {
            let dot = if path.is_empty() { "" } else { "." };
            let at = if matches!(field.is, Is::Several(_)) {
                "[0]"
            } else {
                ""
            };
            mappings(&format!("{path}{dot}{}{at}", field.name), inner, found);
        }
    }
}

fn faults(marked: &str) -> Vec<Fault> {
    let document = sample("", table::TOP, marked).to_string();
    admit(&source::parse(&document).unwrap()).unwrap_err()
}

#[test]
fn admission_reads_what_the_table_says_and_nothing_else() {
    let mut places = Vec::new();
    mappings("", table::TOP, &mut places);
    assert!(places.len() > 20, "{}", places.len());
    for (path, fields) in places {
        let dot = if path.is_empty() { "" } else { "." };
        let found = faults(&path);
        let unknown: Vec<_> = found
            .iter()
            .filter(|fault| fault.message.contains("unknown field"))
            .collect();
        let [fault] = unknown.as_slice() else {
            panic!("{path}: {unknown:?}");
        };
        assert_eq!(fault.path, format!("{path}{dot}{UNKNOWN}"));
        let (_, allowed) = fault.message.split_once("allowed: ").unwrap();
        let read: BTreeSet<_> = allowed.split(", ").collect();
        let told: BTreeSet<_> = fields.iter().map(|field| field.name).collect();
        assert_eq!(read, told, "{path}");
    }
}

/// A mapping of a document beside a manifest that names it.
fn faults_beside(marked: &str) -> Vec<Fault> {
    let marked = marked.strip_prefix("documents[1]").unwrap();
    let document = sample("", table::TEMPLATES, marked.trim_start_matches('.'));
    let manifest = sample("", table::TOP, "nowhere");
    let documents = [manifest, document].map(|of| source::parse(&of.to_string()).unwrap());
    admit_all(&documents).unwrap_err()
}

#[test]
fn documents_beside_a_manifest_are_read_as_the_table_says() {
    let mut places = Vec::new();
    mappings("documents[1]", table::TEMPLATES, &mut places);
    assert!(places.len() > 5, "{}", places.len());
    for (path, fields) in places {
        let found = faults_beside(&path);
        let unknown = format!("{path}.{UNKNOWN}");
        let fault = found.iter().find(|fault| fault.path == unknown);
        let message = &fault
            .unwrap_or_else(|| panic!("{unknown}: {found:?}"))
            .message;
        let (_, allowed) = message.split_once("allowed: ").unwrap();
        let read: BTreeSet<_> = allowed.split(", ").collect();
        let told: BTreeSet<_> = fields.iter().map(|field| field.name).collect();
        assert_eq!(read, told, "{path}");
    }
}

#[test]
fn what_must_be_said_is_what_admission_asks_for() {
    for placed in all() {
        // Those of documents beside a manifest are read when it names them.
        if placed.path.starts_with(KIND) {
            continue;
        }
        let lists = placed.path.matches("[]").count();
        // What stands alone in a mapping of its own is asked for by other words.
        if lists == 0 && placed.field.needed {
            let mut document = sample("", table::TOP, "nowhere");
            let (within, name) = placed.path.rsplit_once('.').unwrap_or(("", &placed.path));
            let pointer = format!("/{}", within.replace('.', "/"));
            let mapping = if within.is_empty() {
                Some(&mut document)
            } else {
                document.pointer_mut(&pointer)
            };
            mapping.unwrap().as_object_mut().unwrap().remove(name);
            let document = source::parse(&document.to_string()).unwrap();
            let found = admit(&document).unwrap_err();
            assert!(
                found.iter().any(|fault| fault.path == placed.path),
                "{}",
                placed.path
            );
        }
    }
}

#[test]
fn somebody_who_says_little_is_understood() {
    let told = |words: &str| {
        let meant = meant(words);
        meant
            .iter()
            .map(|placed| placed.path.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told("spec.nodePools.dynamic.count"),
        ["spec.nodePools.dynamic[].count"]
    );
    assert_eq!(
        told("spec.nodePools.dynamic[0].COUNT"),
        ["spec.nodePools.dynamic[].count"]
    );
    assert_eq!(told("dynamic[].count"), ["spec.nodePools.dynamic[].count"]);
    assert_eq!(
        told("count"),
        [
            "spec.nodePools.dynamic[].count",
            "spec.nodePools.metal[].count",
            "spec.kubernetes.clusters[].etcdBackup.keep.count"
        ]
    );
    assert_eq!(told("spec"), ["spec"]);
    assert_eq!(told("nobody"), Vec::<String>::new());
    let near = |words: &str| super::near(words).len();
    assert_eq!(
        super::near("spec.kubernetes.clusters[0].upgrade-gate")[0].path,
        "spec.kubernetes.clusters[].upgradeGates"
    );
    assert_eq!((near("nobody"), near("")), (0, 0));
    let first = |words: &str| super::near(words)[0].path.clone();
    assert_eq!(first("backup"), "spec.kubernetes.clusters[].etcdBackup");
    assert!(first("maintenance").ends_with("disruption.windows"));
}

#[test]
fn kinds_are_told_in_words() {
    let kinds = [
        "count", "labels", "taints", "days", "cni", "job", "spot", "command", "duration",
    ];
    let told = kinds.iter().map(|words| {
        let meant = meant(words);
        format!("{words}: {}\n", meant[0].field.is)
    });
    expect![[r#"
        count: a whole number from 1 to 5000
        labels: texts by their names
        taints: a list of mappings
        days: a list, each Mon or Tue or Wed or Thu or Fri or Sat or Sun
        cni: routed or flannel or calico or cilium
        job: a Job as Kubernetes knows it
        spot: true or false
        command: a list, each a text
        duration: a time from 10m to 168h, such as 1h30m
    "#]]
    .assert_eq(&told.collect::<String>());
}

#[test]
fn the_schema_for_editors_is_the_one_that_is_kept() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_file!["../../../../schema/manifest.json"].assert_eq(&text);
}
