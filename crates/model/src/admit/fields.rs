//! Reads one mapping field by field, and notices what nobody read.

use crate::fault::{Code, Faults};
use crate::source::Value;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A mapping that is being read; [`Fields::finish`] reports what nobody asked for.
pub(super) struct Fields<'v> {
    path: String,
    entries: &'v [(String, Value)],
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    /// Opens the mapping at `path`; anything else is a fault.
    pub(super) fn open(
        value: &'v Value,
        path: impl Into<String>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let path = path.into();
        match value {
            Value::Map(entries) => Some(Self {
                path,
                entries,
                known: Vec::new(),
            }),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)) => {
                wrong(faults, path, other, "a mapping");
                None
            }
        }
    }

    /// The path of a field of this mapping.
    pub(super) fn path(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// What is written there, if anything is.
    fn written(&self, field: &str) -> Option<&'v Value> {
        let found = self.entries.iter().find(|(key, _)| key == field);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != Value::Null)
    }

    /// The text that is written there, whether or not it is of use.
    pub(super) fn raw(&self, field: &str) -> Option<&'v str> {
        match self.written(field)? {
            Value::Text(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => None,
        }
    }

    /// Whether a list is written there that has no items: not the same as no list.
    pub(super) fn empty_list(&self, field: &str) -> bool {
        matches!(self.written(field), Some(Value::List(items)) if items.is_empty())
    }

    /// Whether a mapping is written there that has no entries.
    pub(super) fn empty_map(&self, field: &str) -> bool {
        matches!(self.written(field), Some(Value::Map(entries)) if entries.is_empty())
    }

    /// Whether anything is written there.
    pub(super) fn has(&self, field: &str) -> bool {
        self.written(field).is_some()
    }

    /// The mapping in a field that may be absent; nothing written counts as absent.
    pub(super) fn mapping(&mut self, field: &'static str, faults: &mut Faults) -> Option<Self> {
        let path = self.path(field);
        let value = self.optional(field)?;
        Self::open(value, path, faults)
    }

    /// A field that may be absent; nothing written counts as absent.
    pub(super) fn optional(&mut self, field: &'static str) -> Option<&'v Value> {
        if !self.known.contains(&field) {
            self.known.push(field);
        }
        self.written(field)
    }

    /// A field that must be there.
    pub(super) fn required(
        &mut self,
        field: &'static str,
        faults: &mut Faults,
    ) -> Option<&'v Value> {
        let found = self.optional(field);
        if found.is_none() {
            faults.note(
                self.path(field),
                Code::Required,
                "found nothing; this field is required",
            );
        }
        found
    }

    /// A required text.
    pub(super) fn text(&mut self, field: &'static str, faults: &mut Faults) -> Option<&'v str> {
        let value = self.required(field, faults)?;
        self.as_text(field, value, faults)
    }

    /// A text that may be absent.
    pub(super) fn optional_text(
        &mut self,
        field: &'static str,
        faults: &mut Faults,
    ) -> Option<&'v str> {
        let value = self.optional(field)?;
        self.as_text(field, value, faults)
    }

    fn as_text(&self, field: &str, value: &'v Value, faults: &mut Faults) -> Option<&'v str> {
        /// Longer than any region, type or image is called.
        const LEN_MAX: usize = 253;
        match value {
            Value::Text(text) if text.is_empty() || text.len() > LEN_MAX => {
                let message = format!(
                    "found {} characters, allowed: 1 to {LEN_MAX}",
                    text.chars().count()
                );
                faults.note(self.path(field), Code::Range, message);
                None
            }
            Value::Text(text) if text.trim() != text || text.chars().any(char::is_control) => {
                let message = format!(
                    "found {value}, allowed: a text without control characters or outer blanks"
                );
                faults.note(self.path(field), Code::Format, message);
                None
            }
            Value::Text(text) => Some(text),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_)) => {
                wrong(faults, self.path(field), other, "a text");
                None
            }
        }
    }

    /// A required text that parses into `T`.
    pub(super) fn parsed<T: std::str::FromStr>(
        &mut self,
        field: &'static str,
        faults: &mut Faults,
    ) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let value = self.required(field, faults)?;
        self.parse(field, value, faults)
    }

    /// A text that parses into `T`, or `None` where the field is absent.
    pub(super) fn optional_parsed<T: std::str::FromStr>(
        &mut self,
        field: &'static str,
        faults: &mut Faults,
    ) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let value = self.optional(field)?;
        self.parse(field, value, faults)
    }

    /// Reads a text; of a number where a text should be, whoever reads `T` says what is wrong.
    fn parse<T: std::str::FromStr>(
        &self,
        field: &'static str,
        value: &'v Value,
        faults: &mut Faults,
    ) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let written = match value {
            Value::Bool(written) => written.to_string(),
            Value::Int(written) => written.to_string(),
            Value::Float(written) => written.to_string(),
            Value::Null | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                let text = self.as_text(field, value, faults)?;
                return self.judge(field, text, text.parse(), faults);
            }
        };
        if self
            .judge(field, &written, written.parse::<T>(), faults)
            .is_some()
        {
            wrong(faults, self.path(field), value, "a text, in quotes");
        }
        None
    }

    /// A required yes or no.
    pub(super) fn flag(&mut self, field: &'static str, faults: &mut Faults) -> Option<bool> {
        let value = self.required(field, faults)?;
        self.as_flag(field, value, faults)
    }

    /// A yes or no that may be absent.
    pub(super) fn optional_flag(
        &mut self,
        field: &'static str,
        faults: &mut Faults,
    ) -> Option<bool> {
        let value = self.optional(field)?;
        self.as_flag(field, value, faults)
    }

    fn as_flag(&self, field: &str, value: &Value, faults: &mut Faults) -> Option<bool> {
        match value {
            Value::Bool(flag) => Some(*flag),
            other @ (Value::Null
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_)) => {
                let message = format!("found {other}, allowed: true or false");
                faults.note(self.path(field), Code::Type, message);
                None
            }
        }
    }

    /// A required name of at most `max` characters.
    pub(super) fn name(
        &mut self,
        field: &'static str,
        max: usize,
        faults: &mut Faults,
    ) -> Option<crate::name::Name> {
        let text = self.text(field, faults)?;
        self.judge(field, text, crate::name::Name::checked(text, max), faults)
    }

    fn judge<T, E: std::fmt::Display>(
        &self,
        field: &str,
        text: &str,
        judged: Result<T, E>,
        faults: &mut Faults,
    ) -> Option<T> {
        match judged {
            Ok(value) => Some(value),
            Err(error) => {
                let found = Value::Text(text.to_owned());
                faults.note(
                    self.path(field),
                    Code::Format,
                    format!("found {found}: {error}"),
                );
                None
            }
        }
    }

    /// A whole number within `allowed`, or `None` where the field is absent.
    pub(super) fn optional_number(
        &mut self,
        field: &'static str,
        allowed: RangeInclusive<u32>,
        faults: &mut Faults,
    ) -> Option<u32> {
        let value = self.optional(field)?;
        self.number_in(field, value, &allowed, faults)
    }

    /// A required whole number within `allowed`.
    pub(super) fn number(
        &mut self,
        field: &'static str,
        allowed: RangeInclusive<u32>,
        faults: &mut Faults,
    ) -> Option<u32> {
        let value = self.required(field, faults)?;
        self.number_in(field, value, &allowed, faults)
    }

    fn number_in(
        &self,
        field: &str,
        value: &Value,
        allowed: &RangeInclusive<u32>,
        faults: &mut Faults,
    ) -> Option<u32> {
        let wanted = format!(
            "a whole number from {} to {}",
            allowed.start(),
            allowed.end()
        );
        match value {
            Value::Int(number) => {
                let inside = u32::try_from(*number)
                    .ok()
                    .filter(|number| allowed.contains(number));
                if inside.is_none() {
                    faults.note(
                        self.path(field),
                        Code::Range,
                        format!("found {value}, allowed: {wanted}"),
                    );
                }
                inside
            }
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => {
                wrong(faults, self.path(field), value, &wanted);
                None
            }
        }
    }

    /// The items of a list with their paths; absent counts as empty.
    pub(super) fn items(
        &mut self,
        field: &'static str,
        most: usize,
        faults: &mut Faults,
    ) -> Vec<(String, &'v Value)> {
        let path = self.path(field);
        match self.optional(field) {
            None => Vec::new(),
            Some(Value::List(items)) if items.len() > most => {
                faults.note(
                    path,
                    Code::Range,
                    format!("found {} items, allowed: at most {most}", items.len()),
                );
                Vec::new()
            }
            Some(Value::List(items)) => {
                let numbered = items.iter().enumerate();
                numbered
                    .map(|(at, item)| (format!("{path}[{at}]"), item))
                    .collect()
            }
            Some(
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Text(_)
                | Value::Map(_)),
            ) => {
                wrong(faults, path, other, "a list");
                Vec::new()
            }
        }
    }

    /// Reports every field that nobody asked for.
    pub(super) fn finish(self, faults: &mut Faults) {
        for (key, _) in self.entries {
            if !self.known.contains(&key.as_str()) {
                let meant = self.known.iter().find(|known| alike(known, key));
                let hint = meant
                    .map(|known| format!("did you mean `{known}`? "))
                    .unwrap_or_default();
                let allowed = self.known.join(", ");
                let shown: String = key.chars().take(60).collect();
                faults.note(
                    self.path(&shown),
                    Code::UnknownField,
                    format!("unknown field; {hint}allowed: {allowed}"),
                );
            }
        }
    }
}

/// A whole number of minutes, hours or days.
pub(super) fn span(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = digits.parse().ok().filter(|_| plain)?;
    let minutes: u64 = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        _ => return None,
    };
    Some(Duration::from_mins(minutes * u64::from(number)))
}

/// Notes that something else is written there than belongs there.
pub(super) fn wrong(faults: &mut Faults, path: String, found: &Value, wanted: &str) {
    let kind = match found {
        Value::Null | Value::List(_) | Value::Map(_) => String::new(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {
            format!(" ({})", found.kind())
        }
    };
    faults.note(
        path,
        Code::Type,
        format!("found {found}{kind}, allowed: {wanted}"),
    );
}

/// Whether somebody may have meant `known` when writing `found`: case, separators and
/// one wrong letter or two in the wrong order aside, they are the same.
pub(crate) fn alike(known: &str, found: &str) -> bool {
    let plain = |text: &str| -> Vec<char> {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let (known, found) = (plain(known), plain(found));
    if known.len().abs_diff(found.len()) > 1 {
        return false;
    }
    let same = known.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let rest =
        |text: &[char], skip: usize| text.iter().skip(same + skip).copied().collect::<Vec<_>>();
    rest(&known, 0) == rest(&found, 0)
        || rest(&known, 1) == rest(&found, 1)
        || rest(&known, 1) == rest(&found, 0)
        || rest(&known, 0) == rest(&found, 1)
        || rest(&known, 2) == rest(&found, 2) && swapped(&known[same..], &found[same..])
}

/// Whether two texts begin with the same two letters in another order.
fn swapped(known: &[char], found: &[char]) -> bool {
    matches!((known, found), ([a, b, ..], [c, d, ..]) if (a, b) == (d, c))
}
