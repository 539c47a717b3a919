//! What is played on the nodes of a cluster besides: playbooks that the user brings.

use super::fields::Fields;
use crate::fault::{Code, Faults};
use crate::host::{Playbook, Playbooks};
use crate::name::Name;
use crate::source::{self, Value};
use std::collections::BTreeMap;

/// The most playbooks at one point: they are played one after the other on every node.
const PLAYBOOKS_MAX: usize = 20;

/// The longest playbook.
const TEXT_MAX: usize = 256 * 1024;

/// The playbooks that a cluster declares.
pub(super) fn of_cluster(fields: &mut Fields<'_>, faults: &mut Faults) -> Playbooks {
    let Some(mut points) = fields.mapping("playbooks", faults) else {
        return Playbooks::default();
    };
    // A host remembers each under its name, whenever it was played.
    let mut names = BTreeMap::new();
    let before_joining = played(&mut points, "beforeJoining", &mut names, faults);
    let after_joining = played(&mut points, "afterJoining", &mut names, faults);
    points.finish(faults);
    Playbooks {
        before_joining,
        after_joining,
        made_before: BTreeMap::new(),
    }
}

/// The playbooks of one point, in their order.
fn played(
    points: &mut Fields<'_>,
    point: &'static str,
    names: &mut BTreeMap<Name, String>,
    faults: &mut Faults,
) -> Vec<Playbook> {
    let mut playbooks = Vec::new();
    for (path, value) in points.items(point, PLAYBOOKS_MAX, faults) {
        let Some(mut fields) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let name = fields.name("name", Name::LEN_MAX, faults);
        let text = text_of(&mut fields, faults);
        fields.finish(faults);
        let Some(name) = name else { continue };
        if let Some(first) = names.get(&name) {
            let message = format!("found `{name}` again; the playbook at {first} has this name");
            faults.note(format!("{path}.name"), Code::Duplicate, message);
        } else {
            names.insert(name.clone(), path);
        }
        playbooks.extend(text.map(|text| Playbook { name, text }));
    }
    playbooks
}

/// The text of a playbook. What its plays may say is for Ansible to judge; that they are plays
/// is seen here, before a machine is made for them.
fn text_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<String> {
    let value = fields.required("text", faults)?;
    let path = fields.path("text");
    match value {
        Value::Text(text) if text.len() > TEXT_MAX => {
            let message = format!("found {} bytes, allowed: at most {TEXT_MAX}", text.len());
            faults.note(path, Code::Range, message);
            None
        }
        Value::Text(text) => match unplayable(text) {
            None => Some(text.clone()),
            Some(found) => {
                let message = format!("found {found}, allowed: a list of plays, in YAML");
                faults.note(path, Code::Format, message);
                None
            }
        },
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::List(_)
        | Value::Map(_) => {
            let message = format!("found {value}, allowed: a list of plays, in YAML, as one text");
            faults.note(path, Code::Type, message);
            None
        }
    }
}

/// What a text is instead of a list of plays.
fn unplayable(text: &str) -> Option<String> {
    match source::parse(text) {
        Ok(Value::List(plays)) if plays.is_empty() => Some("no play".to_owned()),
        Ok(Value::List(plays)) => {
            let play = |value: &&Value| !matches!(value, Value::Map(_));
            let other = plays.iter().find(play);
            other.map(|other| format!("{other} among the plays"))
        }
        Ok(
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Map(_)),
        ) => Some(other.to_string()),
        Err(source::Error::Syntax { reason }) => Some(format!("a text that is no YAML ({reason})")),
        Err(error @ source::Error::TooLong { .. }) => Some(error.to_string()),
    }
}
