//! Whose modules the machines of a provider are made with: `templates` and `templatesRef`, and the
//! documents of kind `TemplateGitReference` that the latter names.

use super::fields::Fields;
use super::manifest::{API_VERSIONS, listed, metadata_of, one_of};
use super::secrets;
use crate::fault::{Code, Faults};
use crate::manifest::Named;
use crate::name::Name;
use crate::provider::Provider;
use crate::source::Value;
use crate::templates::{BUILT_IN, Templates};

/// The kind of documents that describe modules under a name.
pub(crate) const KIND: &str = "TemplateGitReference";

/// Where files from elsewhere say that other things are; nothing of that is used.
const OTHER_PATHS: [&str; 4] = ["playbooks", "configLb", "configK8s", "manifestsK8s"];

/// Modules, and the secret that opens their repository, with the place where it is named.
#[derive(Debug, Clone)]
pub(super) struct Modules {
    pub(super) templates: Templates,
    pub(super) secret: Option<Named>,
}

/// Modules that documents of the file describe.
pub(super) struct Described {
    all: Vec<Description>,
}

struct Description {
    path: String,
    name: Name,
    namespace: Option<Name>,
    /// Nothing where what is said of them has faults.
    modules: Option<Modules>,
    used: bool,
}

impl Description {
    /// Whether a reference means it: who names no namespace means any.
    fn is(&self, name: &Name, namespace: Option<&Name>) -> bool {
        let one = self.namespace.as_ref().zip(namespace);
        self.name == *name && one.is_none_or(|(here, there)| here == there)
    }
}

/// Whether a document describes modules.
pub(super) fn describes(document: &Value) -> bool {
    let Value::Map(entries) = document else {
        return false;
    };
    let mut kinds = entries.iter().filter(|(key, _)| key == "kind");
    kinds.any(|(_, kind)| *kind == Value::Text(KIND.to_owned()))
}

impl Described {
    /// Reads documents, each with its place in the file.
    pub(super) fn read(documents: &[(usize, &Value)], faults: &mut Faults) -> Self {
        let mut all: Vec<Description> = Vec::new();
        for (at, document) in documents {
            let path = format!("documents[{at}]");
            let Some(read) = description(document, path, faults) else {
                continue;
            };
            let mut others = all.iter();
            if others.any(|other| other.is(&read.name, read.namespace.as_ref())) {
                let message = format!("found another description of {}, allowed: one", read.name);
                faults.note(&read.path, Code::Duplicate, message);
            } else {
                all.push(read);
            }
        }
        Self { all }
    }

    /// What a reference leads to: nothing where these are the built-in modules.
    fn find(
        &mut self,
        (name, namespace): (&Name, Option<&Name>),
        path: String,
        faults: &mut Faults,
    ) -> Result<Option<Modules>, ()> {
        let mut all = self.all.iter_mut();
        if let Some(found) = all.find(|of| of.is(name, namespace)) {
            found.used = true;
            return found.modules.clone().map(Some).ok_or(());
        }
        if name.as_str() == BUILT_IN {
            return Ok(None);
        }
        let names: Vec<_> = self.all.iter().map(|of| of.name.as_str()).collect();
        let found = Value::Text(name.to_string());
        let message = format!(
            "found {found}, allowed: a {KIND} of the same file ({}), or {BUILT_IN}",
            listed(&names)
        );
        faults.note(path, Code::Reference, message);
        Err(())
    }

    /// Documents that nobody names: somebody meant something by them.
    pub(super) fn refuse_unused(&self, faults: &mut Faults) {
        for unused in self.all.iter().filter(|of| !of.used) {
            let message = format!(
                "{KIND} {} is used by no provider; name it in templatesRef, or remove it",
                unused.name
            );
            faults.note(&unused.path, Code::Unused, message);
        }
    }
}

fn description(document: &Value, path: String, faults: &mut Faults) -> Option<Description> {
    let mut top = Fields::open(document, path.as_str(), faults)?;
    one_of(&mut top, "apiVersion", &API_VERSIONS, faults);
    one_of(&mut top, "kind", &[KIND], faults);
    let within = top.path("metadata");
    let metadata = top
        .required("metadata", faults)
        .map(|metadata| metadata_of(metadata, within, faults));
    let spec = needed(&mut top, "spec", faults);
    top.finish(faults);
    let modules = spec.and_then(|spec| described(spec, faults));
    let (name, namespace) = metadata?;
    Some(Description {
        path,
        name: name?,
        namespace,
        modules,
        used: false,
    })
}

/// A mapping that must be there.
fn needed<'v>(
    fields: &mut Fields<'v>,
    field: &'static str,
    faults: &mut Faults,
) -> Option<Fields<'v>> {
    let path = fields.path(field);
    let found = fields.required(field, faults)?;
    Fields::open(found, path, faults)
}

fn described(mut spec: Fields<'_>, faults: &mut Faults) -> Option<Modules> {
    let endpoint = needed(&mut spec, "endpoint", faults);
    let repository = endpoint.and_then(|mut endpoint| {
        let url = judged(&mut endpoint, "url", repository, faults);
        one_of(&mut endpoint, "protocol", &["https"], faults);
        endpoint.finish(faults);
        url
    });
    let commit = judged(&mut spec, "commit", commit, faults);
    let paths = needed(&mut spec, "paths", faults);
    let path = paths.and_then(|mut paths| {
        let path = judged(&mut paths, "terraformer", path, faults);
        for other in OTHER_PATHS {
            paths.optional_text(other, faults);
        }
        paths.finish(faults);
        path
    });
    let auth = spec.mapping("auth", faults);
    let secret = auth.and_then(|mut auth| {
        let secret = secrets::named_whole(&mut auth, faults);
        auth.finish(faults);
        secret
    });
    spec.finish(faults);
    Some(Modules {
        templates: Templates::Repository {
            repository: repository?,
            commit: commit?,
            path: Some(path?),
            secret: secret.as_ref().map(|named| named.secret.name.clone()),
            pinned: None,
        },
        secret,
    })
}

/// What a repository looks like.
const FOR_EXAMPLE: &str = "for example github.com/org/modules";

/// The modules that a provider names, and whether what it says of them could be read.
pub(super) fn of_provider(
    fields: &mut Fields<'_>,
    via: Option<Provider>,
    modules: &mut Described,
    faults: &mut Faults,
) -> Result<Option<Modules>, ()> {
    let given = ["templates", "templatesRef"].map(|field| fields.has(field));
    let whole = repository_of(fields, faults);
    let named = named_of(fields, modules, faults);
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
    match whole {
        Some(whole) => Ok(Some(whole)),
        None if given[0] => Err(()),
        None => named,
    }
}

fn repository_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Modules> {
    let mut fields = fields.mapping("templates", faults)?;
    let repository = judged(&mut fields, "repository", repository, faults);
    let commit = judged(&mut fields, "commit", commit, faults);
    let absent = !fields.has("path");
    let path = if absent {
        fields.optional_text("path", faults).map(str::to_owned)
    } else {
        judged(&mut fields, "path", path, faults)
    };
    let secret = secrets::named_whole(&mut fields, faults);
    fields.finish(faults);
    let (repository, commit) = (repository?, commit?);
    (absent || path.is_some()).then_some(Modules {
        templates: Templates::Repository {
            repository,
            commit,
            path,
            secret: secret.as_ref().map(|named| named.secret.name.clone()),
            pinned: None,
        },
        secret,
    })
}

/// What `templatesRef` leads to, and whether what it says could be read.
fn named_of(
    fields: &mut Fields<'_>,
    modules: &mut Described,
    faults: &mut Faults,
) -> Result<Option<Modules>, ()> {
    let given = fields.has("templatesRef");
    let Some(mut fields) = fields.mapping("templatesRef", faults) else {
        return if given { Err(()) } else { Ok(None) };
    };
    let name = fields.name("name", Name::LEN_MAX, faults);
    let namespace = if fields.has("namespace") {
        fields.name("namespace", Name::LEN_MAX, faults).map(Some)
    } else {
        fields.optional("namespace").map_or(Some(None), |_| None)
    };
    let path = fields.path("name");
    fields.finish(faults);
    let (name, namespace) = (name.ok_or(())?, namespace.ok_or(())?);
    modules.find((&name, namespace.as_ref()), path, faults)
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
