//! Secrets by what they are called, and the keys they are sealed with.

use super::ago;
use crate::table::Table;
use api::{KeysView, SecretView, Time};

pub(crate) fn secrets(secrets: &[SecretView], now: Time) -> String {
    let mut table = Table::new(["NAME", "ENTRIES", "VERSION", "SET BY", "SET"]);
    for view in secrets {
        table.row([
            view.name.clone(),
            view.entries.join(", "),
            view.version.to_string(),
            view.updated_by.clone(),
            ago(view.updated_at, now),
        ]);
    }
    table.render()
}

pub(crate) fn keys(view: &KeysView, now: Time) -> String {
    let mut table = Table::new(["KEY", "IN USE", "VALUES", "WRAPPED BY", "SINCE"]);
    for key in &view.keys {
        table.row([
            key.id.clone(),
            if key.in_use { "yes" } else { "no" }.to_owned(),
            key.values.to_string(),
            key.wrapped_by.clone(),
            ago(key.created_at, now),
        ]);
    }
    let mut text = table.render();
    if let Some(closed) = &view.closed {
        text.push_str(&format!(
            "{} ({})\n  {}\n",
            closed.detail, closed.code, closed.hint
        ));
    }
    text
}
