//! The manifest language as a table: every field with its kind and what it is for.
//!
//! [`crate::admit`] decides; this tells people and editors. A test has admission list the fields
//! that it reads and compares.

mod schema;
mod table;

pub use schema::schema;

use crate::admit::fields::alike;
use crate::admit::templates::KIND;
use std::fmt;

/// One field of a mapping.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// What it is called.
    pub name: &'static str,
    /// Whether it must be said.
    pub needed: bool,
    /// What may be said.
    pub is: Is,
    /// What it is for, and what is so where it is not said.
    pub about: &'static str,
}

/// What may stand in a field.
#[derive(Debug, Clone, Copy)]
pub enum Is {
    /// Any text.
    Text,
    /// A name of at most so many characters.
    Name(usize),
    /// A text of a certain form: in words, and an example.
    Form(&'static str, &'static str),
    /// One of a few words.
    One(fn() -> Vec<&'static str>),
    /// A whole number, from and to.
    Number(u32, u32),
    /// Yes or no.
    Flag,
    /// Texts by their names.
    Texts,
    /// What others judge: in words.
    Foreign(&'static str),
    /// A mapping with these fields.
    Mapping(&'static [Field]),
    /// A list.
    Several(&'static Self),
}

/// A field with the place where it stands.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Where, such as `spec.nodePools.dynamic[].count`.
    pub path: String,
    /// What stands there.
    pub field: &'static Field,
}

impl Is {
    /// The fields of the mapping that it is, or that stands in the list that it is.
    pub const fn fields(&self) -> &'static [Field] {
        match self {
            Self::Mapping(fields) => fields,
            Self::Several(inner) => inner.fields(),
            Self::Text
            | Self::Name(_)
            | Self::Form(..)
            | Self::One(_)
            | Self::Number(..)
            | Self::Flag
            | Self::Texts
            | Self::Foreign(_) => &[],
        }
    }

    const fn is_list(&self) -> bool {
        matches!(self, Self::Several(_))
    }
}

impl fmt::Display for Is {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Name(most) => write!(f, "a name of at most {most} characters"),
            Self::Form(form, example) => write!(f, "{form}, such as {example}"),
            Self::One(words) => f.write_str(&words().join(" or ")),
            Self::Number(from, to) => write!(f, "a whole number from {from} to {to}"),
            Self::Flag => f.write_str("true or false"),
            Self::Texts => f.write_str("texts by their names"),
            Self::Foreign(what) => f.write_str(what),
            Self::Mapping(_) => f.write_str("a mapping"),
            Self::Several(Self::Mapping(_)) => f.write_str("a list of mappings"),
            Self::Several(inner) => write!(f, "a list, each {inner}"),
        }
    }
}

/// Every field, those of a mapping after the mapping itself.
pub fn all() -> Vec<Placed> {
    let mut found = Vec::new();
    gather("", table::TOP, &mut found);
    gather(KIND, table::TEMPLATES, &mut found);
    found
}

fn gather(within: &str, fields: &'static [Field], found: &mut Vec<Placed>) {
    for field in fields {
        let dot = if within.is_empty() { "" } else { "." };
        let path = format!("{within}{dot}{}", field.name);
        found.push(Placed {
            path: path.clone(),
            field,
        });
        let each = if field.is.is_list() { "[]" } else { "" };
        gather(&format!("{path}{each}"), field.is.fields(), found);
    }
}

/// A place without what is in brackets, in small letters.
fn bare(path: &str) -> String {
    let mut bare = String::new();
    let mut inside = false;
    for letter in path.trim_matches('.').chars() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => {}
            _ => bare.push(letter.to_ascii_lowercase()),
        }
    }
    bare
}

/// The fields that somebody may mean: the one at this place, else all whose place ends so. What is
/// in brackets does not matter, as faults write it, and neither do capital letters.
pub fn meant(words: &str) -> Vec<Placed> {
    let wanted = bare(words);
    let ends = |path: &str| {
        let rest = path.strip_suffix(&wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let all = all();
    let exact = all.iter().find(|placed| bare(&placed.path) == wanted);
    match exact {
        Some(exact) => vec![exact.clone()],
        None => all
            .into_iter()
            .filter(|placed| ends(&bare(&placed.path)))
            .collect(),
    }
}

/// Words that other tools have for a field, and how its place ends.
const ELSEWHERE: [(&str, &str); 2] = [
    ("maintenance", "disruption.windows"),
    ("maintenancewindows", "disruption.windows"),
];

/// A word that is shorter is a part of too many.
const PART_MIN: usize = 4;

/// The fields that somebody may have meant who wrote a word that is none: all but for one letter
/// they are called so, or the word is a part of what they are called, or other tools call them so.
pub fn near(words: &str) -> Vec<Placed> {
    let words = bare(words);
    let last = words.rsplit('.').next().unwrap_or_default();
    let elsewhere = ELSEWHERE.iter().find(|(word, _)| *word == last);
    if let Some((_, place)) = elsewhere {
        return meant(place);
    }
    let part = |name: &str| last.len() >= PART_MIN && name.to_ascii_lowercase().contains(last);
    let called = |placed: &Placed| alike(placed.field.name, last) || part(placed.field.name);
    all().into_iter().filter(called).collect()
}

#[cfg(test)]
mod tests;
