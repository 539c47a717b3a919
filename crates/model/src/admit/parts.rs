//! What was read of the parts of a manifest, and of what they say of each other.
//!
//! A part with faults is kept with all of it that could be understood: what others say of it is not
//! wrong for that reason, and what is wrong with it besides is told at once.

use super::fields::{Fields, alike};
use super::manifest::{ENTRIES_MAX, listed};
use crate::fault::{Code, Faults};
use crate::name::Name;
use crate::source::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Texts that are no names, and names of nobody, of which is guessed whom they mean: more mistakes of this
/// kind than anybody makes, and few enough to be compared with every name of a large manifest.
const GUESSES_MAX: usize = 20;

/// How a part is called.
pub(super) enum Title {
    Name(Name),
    /// By a text that is no name; nobody can refer to it, and somebody may have meant it.
    Text(String),
}

/// A part, with the place it was read from.
pub(super) struct Read<T> {
    pub(super) path: String,
    pub(super) title: Title,
    pub(super) value: T,
}

/// The parts of one kind.
pub(super) struct Parts<T> {
    pub(super) all: Vec<Read<T>>,
    by_name: BTreeMap<Name, usize>,
    /// What some are called whose names cannot be read.
    texts: Vec<String>,
    /// Whether there are others that could not be told apart: any reference may mean one of them.
    lost: bool,
}

/// The names in a list, each with its place.
#[derive(Default)]
pub(super) struct Names {
    pub(super) read: Vec<(String, Name)>,
    /// Texts beside them that are no names.
    texts: Vec<String>,
    /// Whether something else is there, of which nobody knows whom it means.
    lost: bool,
}

impl Title {
    /// What a part is called in a field of its own.
    pub(super) fn of(
        fields: &mut Fields<'_>,
        field: &'static str,
        max: usize,
        faults: &mut Faults,
    ) -> Self {
        match fields.name(field, max, faults) {
            Some(name) => Self::Name(name),
            None => Self::Text(fields.raw(field).unwrap_or_default().to_owned()),
        }
    }

    /// The name, where it is one.
    pub(super) const fn name(&self) -> Option<&Name> {
        match self {
            Self::Name(name) => Some(name),
            Self::Text(_) => None,
        }
    }
}

impl<T> Read<T> {
    /// What it is called, where that is a name.
    pub(super) const fn name(&self) -> Option<&Name> {
        self.title.name()
    }
}

impl<T> Parts<T> {
    /// No parts, as far as anybody knows.
    const fn empty(lost: bool) -> Self {
        Self {
            all: Vec::new(),
            by_name: BTreeMap::new(),
            texts: Vec::new(),
            lost,
        }
    }

    /// No parts.
    pub(super) const fn none() -> Self {
        Self::empty(false)
    }

    /// Parts of which nobody knows how many there are.
    pub(super) const fn lost() -> Self {
        Self::empty(true)
    }

    /// Reads the items of a list, each as a mapping.
    pub(super) fn of(
        fields: &mut Fields<'_>,
        field: &'static str,
        faults: &mut Faults,
        mut read: impl FnMut(Fields<'_>, &str, &mut Faults) -> (Title, T),
    ) -> Self {
        let before = faults.count();
        let items = fields.items(field, ENTRIES_MAX, faults);
        let mut parts = Self::empty(faults.count() > before);
        for (path, value) in items {
            let Some(fields) = Fields::open(value, path.as_str(), faults) else {
                parts.lost = true;
                continue;
            };
            let (title, value) = read(fields, &path, faults);
            parts.push(Read { path, title, value });
        }
        parts
    }

    fn push(&mut self, part: Read<T>) {
        match &part.title {
            Title::Name(name) => {
                self.by_name.insert(name.clone(), self.all.len());
            }
            Title::Text(text) if self.texts.len() < GUESSES_MAX => self.texts.push(text.clone()),
            Title::Text(_) => {}
        }
        self.all.push(part);
    }

    /// Adds those of another list.
    pub(super) fn extend(&mut self, others: Self) {
        self.lost |= others.lost;
        for part in others.all {
            self.push(part);
        }
    }

    /// Whether there may be parts that could not be told apart.
    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    /// The part of a name; the last one, where several have it.
    pub(super) fn get(&self, name: &Name) -> Option<&Read<T>> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// Whether somebody may be meant by a name: a part that has it, or one whose own name cannot be
    /// read.
    pub(super) fn may_be(&self, name: &Name) -> bool {
        let meant = |text: &String| alike(text, name.as_str());
        self.lost || self.by_name.contains_key(name) || self.texts.iter().any(meant)
    }

    /// Their names, for a message.
    fn listed(&self) -> String {
        let names: Vec<_> = self.by_name.keys().map(Name::as_str).collect();
        listed(&names)
    }

    /// Notes a reference that leads nowhere.
    pub(super) fn refuse_unknown(&self, name: &Name, path: &str, what: &str, faults: &mut Faults) {
        if !self.may_be(name) {
            let known = self.listed();
            let message = format!("found `{name}`, allowed: a {what} of this manifest ({known})");
            faults.note(path, Code::Reference, message);
        }
    }

    /// Notes names that are there twice.
    pub(super) fn refuse_twins(&self, what: &str, faults: &mut Faults) {
        let mut seen: BTreeMap<&Name, &str> = BTreeMap::new();
        for part in &self.all {
            let Some(name) = part.name() else { continue };
            if let Some(first) = seen.insert(name, &part.path) {
                let message = format!("found `{name}` again; the {what} at {first} has this name");
                faults.note(format!("{}.name", part.path), Code::Duplicate, message);
            }
        }
    }

    /// Notes parts that nobody names: neither in one of these lists, nor by a name with a typing error.
    /// Where nobody knows whom a text means, it may be any of them.
    pub(super) fn refuse_unused(&self, lists: &[&Names], why: &str, faults: &mut Faults) {
        let texts = lists.iter().flat_map(|names| &names.texts);
        let texts: Vec<_> = texts.take(GUESSES_MAX).map(String::as_str).collect();
        let somebody = |text: &&str| {
            let names = self.by_name.keys().map(Name::as_str);
            let mut called = names.chain(self.texts.iter().map(String::as_str));
            called.any(|name| alike(text, name))
        };
        if lists.iter().any(|names| names.lost) || !texts.iter().all(somebody) {
            return;
        }
        let used: BTreeSet<_> = lists.iter().flat_map(|names| names.iter()).collect();
        let nobody = used
            .iter()
            .filter(|name| !self.by_name.contains_key(**name));
        let meant: Vec<_> = nobody.take(GUESSES_MAX).map(|name| name.as_str()).collect();
        for part in &self.all {
            let Some(name) = part.name().filter(|name| !used.contains(name)) else {
                continue;
            };
            let mut guesses = texts.iter().chain(&meant);
            if !guesses.any(|text| alike(text, name.as_str())) {
                let message = format!("found `{name}`, {why}");
                faults.note(format!("{}.name", part.path), Code::Unused, message);
            }
        }
    }
}

impl Names {
    /// Names of which nobody knows any.
    pub(super) const fn lost() -> Self {
        Self {
            read: Vec::new(),
            texts: Vec::new(),
            lost: true,
        }
    }

    /// Reads the names in a list.
    pub(super) fn of(
        fields: &mut Fields<'_>,
        field: &'static str,
        (what, max): (&str, usize),
        faults: &mut Faults,
    ) -> Self {
        let before = faults.count();
        let items = fields.items(field, ENTRIES_MAX, faults);
        let mut names = Self {
            lost: faults.count() > before,
            ..Self::default()
        };
        for (path, item) in items {
            names.add(path, item, (what, max), faults);
        }
        names
    }

    /// Reads the one name that a field may have.
    pub(super) fn one(
        fields: &mut Fields<'_>,
        field: &'static str,
        (what, max): (&str, usize),
        faults: &mut Faults,
    ) -> Self {
        let mut names = Self::default();
        if let Some(item) = fields.optional(field) {
            names.add(fields.path(field), item, (what, max), faults);
        }
        names
    }

    fn add(&mut self, path: String, item: &Value, (what, max): (&str, usize), faults: &mut Faults) {
        match item {
            Value::Text(text) => match Name::checked(text, max) {
                Ok(name) => self.read.push((path, name)),
                Err(error) => {
                    faults.note(path, Code::Format, format!("found {item}: {error}"));
                    self.texts.push(text.clone());
                }
            },
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => {
                let message = format!("found {item}, allowed: the name of a {what}");
                faults.note(path, Code::Type, message);
                self.lost = true;
            }
        }
    }

    /// Each as often as it is written.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> + Clone {
        self.read.iter().map(|(_, name)| name)
    }

    /// Each once; that one is there twice is a fault of its own.
    pub(super) fn distinct(&self) -> BTreeSet<&Name> {
        self.iter().collect()
    }

    /// How many texts are there of which nobody knows whom they mean; nothing where there may be any
    /// number of them.
    pub(super) fn unread(&self) -> Option<usize> {
        (!self.lost).then_some(self.texts.len())
    }

    /// Whether the list has a name, or something that may mean it.
    pub(super) fn may_have(&self, name: &Name) -> bool {
        let meant = |text: &String| alike(text, name.as_str());
        self.lost || self.iter().any(|own| own == name) || self.texts.iter().any(meant)
    }

    /// The names alone.
    pub(super) fn whole(&self) -> Vec<Name> {
        self.iter().cloned().collect()
    }

    /// Notes names that lead nowhere, or are there twice.
    pub(super) fn refuse<T>(&self, parts: &Parts<T>, what: &str, faults: &mut Faults) {
        let mut seen = BTreeSet::new();
        for (path, name) in &self.read {
            parts.refuse_unknown(name, path, what, faults);
            if !seen.insert(name) {
                let message = format!("found `{name}` twice in one list");
                faults.note(path, Code::Duplicate, message);
            }
        }
    }
}
