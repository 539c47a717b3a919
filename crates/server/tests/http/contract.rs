//! What is written about plans for programs is what they are given.

use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/plans.md");

/// The fields of each type in the document of the API, and whether they are always there.
fn promised(name: &str) -> BTreeMap<String, bool> {
    let document = serde_json::to_value(server::document()).unwrap();
    let schema = &document["components"]["schemas"][name];
    let required = schema["required"].as_array();
    let required: BTreeSet<&str> = required
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let fields = schema["properties"].as_object();
    let fields = fields.unwrap_or_else(|| panic!("there is no type {name}"));
    fields
        .keys()
        .map(|field| (field.clone(), required.contains(field.as_str())))
        .collect()
}

/// The fields that a section of the page tells of, by the type in its heading.
fn written() -> BTreeMap<String, BTreeMap<String, bool>> {
    let mut types: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
    let mut current = None;
    for line in PAGE.lines() {
        if line.starts_with('#') {
            let named = line
                .rsplit_once("(`")
                .and_then(|(_, end)| end.split_once("`)"));
            current = named.map(|(name, _)| name.to_owned());
        } else if let Some(name) = &current
            && let Some((field, meaning)) = line
                .strip_prefix("| `")
                .and_then(|line| line.split_once("` |"))
        {
            let fields = types.entry(name.clone()).or_default();
            fields.insert(field.to_owned(), !meaning.contains("(maybe)"));
        }
    }
    types
}

#[test]
fn every_field_of_a_plan_is_written_about_and_no_other() {
    let written = written();
    let types: Vec<_> = written.keys().map(String::as_str).collect();
    assert_eq!(
        types,
        [
            "HeldView",
            "JourneyBlock",
            "JourneyCluster",
            "JourneyCost",
            "JourneyDisturbed",
            "JourneyMonth",
            "JourneyPace",
            "JourneyStep",
            "JourneyView",
            "JourneyWait",
        ]
    );
    for (name, fields) in &written {
        assert_eq!(*fields, promised(name), "{name}");
    }
}

#[test]
fn the_example_is_a_plan() {
    let (_, example) = PAGE.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let plan: api::JourneyView = serde_json::from_str(example).unwrap();
    let written: serde_json::Value = serde_json::from_str(example).unwrap();
    assert_eq!(serde_json::to_value(&plan).unwrap(), written);
}
