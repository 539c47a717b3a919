//! Where in a file something is that a path names: faults are told from the top to the bottom.

use super::templates;
use crate::source::Value;

/// Which of the documents is the manifest.
pub(super) fn manifest(documents: &[Value]) -> usize {
    let mut numbered = documents.iter();
    let found = numbered.position(|document| !templates::describes(document));
    found.unwrap_or(0)
}

/// The place of a path in the documents of a file, comparable with that of another. What is not
/// there has the place of what it should be in.
pub(super) fn place(documents: &[Value], manifest: usize, path: &str) -> Vec<usize> {
    let named = path.strip_prefix("documents[");
    let named = named.and_then(|rest| rest.split_once(']'));
    let named = named.and_then(|(at, rest)| Some((at.parse().ok()?, rest)));
    let (at, path) = named.unwrap_or((manifest, path));
    let mut place = vec![at];
    if let Some(document) = documents.get(at) {
        descend(document, path, &mut place);
    }
    place
}

fn descend(value: &Value, path: &str, place: &mut Vec<usize>) {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return;
    }
    let found = match value {
        Value::List(items) => in_list(items, path),
        Value::Map(entries) => in_map(entries, path),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => None,
    };
    if let Some((at, inner, rest)) = found {
        place.push(at);
        descend(inner, rest, place);
    }
}

fn in_list<'v, 'p>(items: &'v [Value], path: &'p str) -> Option<(usize, &'v Value, &'p str)> {
    let (at, rest) = path.strip_prefix('[')?.split_once(']')?;
    let at = at.parse().ok()?;
    Some((at, items.get(at)?, rest))
}

/// The entry whose key a path begins with; the longest, because keys may have dots in them. People's own
/// keys stand in brackets.
fn in_map<'v, 'p>(
    entries: &'v [(String, Value)],
    path: &'p str,
) -> Option<(usize, &'v Value, &'p str)> {
    let own = path.strip_prefix('[');
    let rest = |key: &str| {
        if let Some(own) = own {
            let key = key.escape_debug().to_string();
            return own.strip_prefix(key.as_str())?.strip_prefix(']');
        }
        let rest = path.strip_prefix(key)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    let numbered = entries.iter().enumerate();
    let fitting = numbered.filter_map(|(at, (key, value))| Some((at, value, rest(key)?)));
    fitting.min_by_key(|(_, _, rest)| rest.len())
}
