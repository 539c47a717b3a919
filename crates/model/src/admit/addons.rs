//! What a cluster has besides Kubernetes.

use super::fields::Fields;
use crate::addon::{AddonName, Named, is_version};
use crate::fault::{Code, Faults};
use crate::kubernetes::Cni;
use crate::source::Value;
use std::collections::BTreeMap;

/// The add-ons that a cluster names.
pub(super) fn of_cluster(
    fields: &mut Fields<'_>,
    cni: Option<Cni>,
    faults: &mut Faults,
) -> Vec<Named> {
    let mut addons: Vec<Named> = Vec::new();
    for (path, value) in fields.items("addons", AddonName::ALL.len() * 2, faults) {
        let Some(mut addon) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let name = name_of(&mut addon, cni, faults);
        let version = version_of(&mut addon, faults);
        let values = values_of(&mut addon, name, faults);
        addon.finish(faults);
        let Some(name) = name else { continue };
        if addons.iter().any(|other| other.name == name) {
            let message = format!("found `{name}` again; a cluster has an add-on once");
            faults.note(format!("{path}.name"), Code::Duplicate, message);
            continue;
        }
        addons.push(Named {
            name,
            version,
            values,
        });
    }
    addons
}

fn name_of(addon: &mut Fields<'_>, cni: Option<Cni>, faults: &mut Faults) -> Option<AddonName> {
    let text = addon.text("name", faults)?;
    let Ok(name) = text.parse::<AddonName>() else {
        let known = AddonName::ALL.map(AddonName::as_str).join(", ");
        let found = Value::Text(text.to_owned());
        let message = format!("found {found}, allowed: {known}");
        faults.note(addon.path("name"), Code::Format, message);
        return None;
    };
    // One that nobody asked to connect pods would fight with the one that does.
    if let Some(cni) = cni
        && name.connects()
        && AddonName::of_cni(cni) != Some(name)
    {
        let message = format!(
            "found `{name}`, which connects pods, beside cni: {}; allowed: what `cni` names",
            cni.as_str()
        );
        faults.note(addon.path("name"), Code::Reference, message);
        return None;
    }
    Some(name)
}

fn version_of(addon: &mut Fields<'_>, faults: &mut Faults) -> Option<String> {
    let text = addon.optional_text("version", faults)?;
    if !is_version(text) {
        let found = Value::Text(text.to_owned());
        let message = format!("found {found}, allowed: a version such as v1.2.3");
        faults.note(addon.path("version"), Code::Format, message);
        return None;
    }
    Some(text.to_owned())
}

fn values_of(
    addon: &mut Fields<'_>,
    name: Option<AddonName>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let path = addon.path("values");
    let mut values = BTreeMap::new();
    let Some(found) = addon.optional("values") else {
        return values;
    };
    let (Some(mut fields), Some(name)) = (Fields::open(found, path.as_str(), faults), name) else {
        return values;
    };
    if name.settings().is_empty() {
        let message = format!("found values, allowed: none; nothing of {name} can be set");
        faults.note(path, Code::UnknownField, message);
        return values;
    }
    for setting in name.settings() {
        let Some(value) = fields.optional(setting.key) else {
            continue;
        };
        if let Some(text) = plain(value).filter(|text| setting.sort.fits(text)) {
            values.insert(setting.key.to_owned(), text);
        } else {
            let message = format!("found {value}, allowed: {}", setting.sort.allowed());
            faults.note(fields.path(setting.key), Code::Format, message);
        }
    }
    fields.finish(faults);
    values
}

/// A value as it is written, where it is one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Float(_) | Value::List(_) | Value::Map(_) => None,
    }
}
