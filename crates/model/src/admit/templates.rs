//! Whose modules the machines of a provider are made with: `templates` and `templatesRef`.

use super::fields::Fields;
use crate::fault::{Code, Faults};
use crate::name::Name;
use crate::provider::Provider;
use crate::source::Value;
use crate::templates::Templates;

/// What a repository looks like.
const FOR_EXAMPLE: &str = "for example github.com/org/modules";

/// The modules that a provider names, and whether what it says of them could be read.
pub(super) fn of_provider(
    fields: &mut Fields<'_>,
    via: Option<Provider>,
    faults: &mut Faults,
) -> Result<Option<Templates>, ()> {
    let given = ["templates", "templatesRef"].map(|field| fields.has(field));
    let whole = repository_of(fields, faults);
    let named = named_of(fields, faults);
    if given == [true, true] {
        let message = "found templatesRef beside templates, allowed: one of them";
        faults.note(fields.path("templatesRef"), Code::Duplicate, message);
    }
    if let Some(Provider::Sandbox) = via
        && given.contains(&true)
    {
        let field = if given[0] {
            "templates"
        } else {
            "templatesRef"
        };
        let message = "found modules on a provider of type sandbox, allowed: none; \
                       its machines are made without";
        faults.note(fields.path(field), Code::Unsupported, message);
    }
    let read = whole.or(named);
    if given.contains(&true) && read.is_none() {
        return Err(());
    }
    Ok(read)
}

fn repository_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Templates> {
    let mut fields = fields.mapping("templates", faults)?;
    let repository = judged(&mut fields, "repository", repository, faults);
    let commit = judged(&mut fields, "commit", commit, faults);
    let absent = !fields.has("path");
    let path = if absent {
        fields.optional_text("path", faults).map(str::to_owned)
    } else {
        judged(&mut fields, "path", path, faults)
    };
    fields.finish(faults);
    let (repository, commit) = (repository?, commit?);
    (absent || path.is_some()).then_some(Templates::Repository {
        repository,
        commit,
        path,
    })
}

fn named_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Templates> {
    let mut fields = fields.mapping("templatesRef", faults)?;
    let name = fields.name("name", Name::LEN_MAX, faults);
    let namespace = if fields.has("namespace") {
        fields.name("namespace", Name::LEN_MAX, faults).map(Some)
    } else {
        fields.optional("namespace").map_or(Some(None), |_| None)
    };
    fields.finish(faults);
    Some(Templates::Named {
        name: name?,
        namespace: namespace?,
    })
}

/// A text of which `rule` says what is wrong with it, if anything is.
fn judged(
    fields: &mut Fields<'_>,
    field: &'static str,
    rule: fn(&str) -> Option<String>,
    faults: &mut Faults,
) -> Option<String> {
    let text = fields.text(field, faults)?;
    match rule(text) {
        None => Some(text.to_owned()),
        Some(allowed) => {
            let found = Value::Text(text.to_owned());
            let message = format!("found {found}, allowed: {allowed}");
            faults.note(fields.path(field), Code::Format, message);
            None
        }
    }
}

/// What git and the programs around it take as one plain word.
fn plain(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/~+:".contains(&byte);
    text.bytes().all(letter) && !text.starts_with('-') && !text.contains("..")
}

fn repository(text: &str) -> Option<String> {
    if text.contains("://") {
        return Some(format!(
            "a repository without a scheme, {FOR_EXAMPLE}; it is fetched by https"
        ));
    }
    let (host, rest) = text.split_once('/').unwrap_or((text, ""));
    let fits = plain(text) && host.contains('.') && !rest.is_empty() && !rest.starts_with('/');
    (!fits).then(|| format!("a host and what is there, {FOR_EXAMPLE}"))
}

fn commit(text: &str) -> Option<String> {
    let fits = plain(text) && !text.contains([':', '~']) && !text.ends_with('/');
    (!fits).then(|| "a hash, a tag or a branch".to_owned())
}

fn path(text: &str) -> Option<String> {
    let fits = plain(text) && !text.starts_with('/');
    (!fits).then(|| "a path within the repository".to_owned())
}
