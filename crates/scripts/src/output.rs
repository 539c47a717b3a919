//! Reads what scripts print: settings and links as CSV, keys as lines, and whatever else as text.
//!
//! CSV is that of RFC 4180 with two columns and no header; blank lines are skipped. All of it is
//! bounded, and whatever cannot be read is told with its line and column.

mod csv;
mod redact;

pub use redact::Redactor;

use std::borrow::Cow;
use std::collections::BTreeSet;

use model::environment::config::{Defaults, Key, Value};
use model::environment::link::Link;

/// The most bytes of settings, keys or links.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The most settings or keys.
pub const ROWS_MAX: usize = 50_000;

/// The most links of one environment: more than anybody follows.
pub const LINKS_MAX: usize = 100;

/// What some programs begin a text in UTF-8 with; it belongs to no setting.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest name or address of a link.
const LINK_BYTES_MAX: usize = 2048;

/// Addresses that would run in the reader's browser.
const NO_LINKS: [&str; 3] = ["javascript:", "data:", "vbscript:"];

/// Why something printed cannot be used, and where: both are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct Unreadable {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

impl Unreadable {
    fn new(line: usize, column: usize, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { line, column, why }
    }
}

/// Reads settings; of those that are told twice the first counts.
pub fn defaults(printed: &[u8]) -> Result<Defaults, Unreadable> {
    let mut told = Vec::new();
    for row in pairs(printed, ROWS_MAX)? {
        let [key, value] = row;
        let at = |why: String| Unreadable::new(key.line, key.column, why);
        let name = Key::lenient(&key.text).map_err(|error| at(error.to_string()))?;
        let content = Value::try_from(value.text)
            .map_err(|error| Unreadable::new(value.line, value.column, error.to_string()))?;
        told.push((name, content));
    }
    Ok(Defaults::new(told))
}

/// Settings that are told again, each with its line: who tells them may think that the last counts.
pub fn repeated(printed: &[u8]) -> Result<Vec<(Key, usize)>, Unreadable> {
    let mut known = BTreeSet::new();
    let mut again = Vec::new();
    for [key, _] in pairs(printed, ROWS_MAX)? {
        let name = Key::lenient(&key.text);
        let name =
            name.map_err(|error| Unreadable::new(key.line, key.column, error.to_string()))?;
        if !known.insert(name.clone()) {
            again.push((name, key.line));
        }
    }
    Ok(again)
}

/// Reads keys, one on each line, each once.
pub fn keys(printed: &[u8]) -> Result<Vec<String>, Unreadable> {
    let text = text(printed)?;
    let mut known = BTreeSet::new();
    let mut keys = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let key = Key::lenient(line);
        let key = key.map_err(|error| Unreadable::new(at + 1, 1, error.to_string()))?;
        if known.insert(key.clone()) {
            keys.push(String::from(key));
        }
        if keys.len() > ROWS_MAX {
            let why = format!("more than {ROWS_MAX} keys");
            return Err(Unreadable::new(at + 1, 1, why));
        }
    }
    Ok(keys)
}

/// Reads links: a name, which may be empty, and an address.
pub fn links(printed: &[u8]) -> Result<Vec<Link>, Unreadable> {
    let rows = pairs(printed, LINKS_MAX)?;
    let link = |[name, url]: [csv::Field; 2]| {
        for field in [&name, &url] {
            let at = |why: &str| Err(Unreadable::new(field.line, field.column, why));
            if field.text.len() > LINK_BYTES_MAX {
                return at("longer than a link may be");
            }
            if field.text.chars().any(char::is_control) {
                return at("a control character in a link");
            }
        }
        let address = url.text.trim();
        let lower = address.to_ascii_lowercase();
        let at = |why: &str| Err(Unreadable::new(url.line, url.column, why));
        if address.is_empty() {
            return at("a link without an address");
        }
        if NO_LINKS.iter().any(|scheme| lower.starts_with(scheme)) {
            return at("an address that browsers would run as a program");
        }
        Ok(Link {
            name: name.text.trim().to_owned(),
            url: address.to_owned(),
        })
    };
    rows.into_iter().map(link).collect()
}

/// Reads rows of two fields.
fn pairs(printed: &[u8], most: usize) -> Result<Vec<[csv::Field; 2]>, Unreadable> {
    let rows = csv::rows(text(printed)?, most)?;
    let pair = |row: Vec<csv::Field>| {
        let (line, count) = (row.first().map_or(1, |field| field.line), row.len());
        let why = || match count {
            1 => "one column, and there should be two: a name, a comma, and the rest".to_owned(),
            _ => format!(
                "{count} columns, and there should be two; what has a comma in it stands in double quotes"
            ),
        };
        row.try_into().map_err(|_| Unreadable::new(line, 1, why()))
    };
    rows.into_iter().map(pair).collect()
}

/// What was printed, if it is text and not too long.
fn text(printed: &[u8]) -> Result<&str, Unreadable> {
    let place = |end: usize| {
        let before = printed.get(..end).unwrap_or_default();
        let mut lines = before.split(|byte| *byte == b'\n');
        let line = lines.clone().count();
        let last = lines.next_back().unwrap_or_default();
        (line, String::from_utf8_lossy(last).chars().count() + 1)
    };
    if printed.len() > BYTES_MAX {
        let (line, column) = place(BYTES_MAX);
        let why = format!("more than {BYTES_MAX} bytes");
        return Err(Unreadable::new(line, column, why));
    }
    let printed = printed.strip_prefix(BYTE_ORDER_MARK).unwrap_or(printed);
    std::str::from_utf8(printed).map_err(|error| {
        let (line, column) = place(error.valid_up_to());
        Unreadable::new(line, column, "not UTF-8")
    })
}

/// What was printed, as text that can be shown and stored, whatever it was.
pub fn legible(printed: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(printed);
    if text.contains('\0') {
        return Cow::Owned(text.replace('\0', "\u{fffd}"));
    }
    text
}

#[cfg(test)]
mod tests;
