//! Settings that can be edited, as people see them.

use super::environment::short;
use crate::table::{Table, count};
use api::{KeysOfLevelView, KnownSettingView, SettingType};
use serde_json::Number;

pub(crate) fn setting_keys(view: &KeysOfLevelView) -> String {
    let bare = |key: &String| KnownSettingView {
        key: key.clone(),
        ..KnownSettingView::default()
    };
    // Whoever knows only names tells only those.
    if view.settings.iter().all(|known| *known == bare(&known.key)) {
        let mut table = Table::new(["SETTING"]);
        for key in &view.keys {
            table.row([key.clone()]);
        }
        return table.render();
    }
    let mut table = Table::new(["SETTING", "TYPE", "DEFAULT", "ALLOWED", "DESCRIPTION"]);
    for known in &view.settings {
        let types = known.types.iter().map(|kind| kind.as_str());
        let types = types.collect::<Vec<_>>().join("|");
        let default = known.default.as_deref().unwrap_or_default();
        let description = known.description.as_deref().unwrap_or_default();
        table.row([
            known.key.clone(),
            if types.is_empty() {
                "any".to_owned()
            } else {
                types
            },
            short(default),
            allowed(known),
            short(description),
        ]);
    }
    table.render()
}

/// What a value may be beside its type.
fn allowed(known: &KnownSettingView) -> String {
    let mut words = Vec::new();
    words.extend(known.required.then(|| "required".to_owned()));
    if !known.allowed.is_empty() {
        words.push(short(&known.allowed.join("|")));
    }
    words.extend(between(
        known.minimum.as_ref().map(Number::to_string),
        known.maximum.as_ref().map(Number::to_string),
    ));
    let limits = [
        ("above", &known.exclusive_minimum),
        ("below", &known.exclusive_maximum),
        ("multiple of", &known.multiple_of),
    ];
    for (word, number) in limits {
        words.extend(number.as_ref().map(|number| format!("{word} {number}")));
    }
    let (least, most) = (known.min_length, known.max_length);
    let noun = if known.types == [SettingType::Array] {
        "item"
    } else {
        "character"
    };
    let last = most.or(least).unwrap_or_default();
    let counted = count(usize::try_from(last).unwrap_or(usize::MAX), noun);
    words.extend(match (least, most) {
        (Some(least), Some(most)) if least < most => Some(format!("{least} to {counted}")),
        (Some(_), Some(_)) => Some(counted),
        (Some(_), None) => Some(format!("at least {counted}")),
        (None, Some(_)) => Some(format!("at most {counted}")),
        (None, None) => None,
    });
    let pattern = known.pattern.as_deref().map(short);
    words.extend(pattern.map(|pattern| format!("matches {pattern}")));
    words.extend(known.format.clone());
    words.join(", ")
}

fn between(least: Option<String>, most: Option<String>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}
