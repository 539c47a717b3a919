//! What an environment is configured with: defaults that scripts tell, and edits that people make.
//!
//! Two levels: how it is deployed, and what the application is given. What the application would
//! take by itself depends on how it is deployed, so the deployment level is put together first.

use crate::fault::{Code, Faults};
use crate::secret::EntryName;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// What the application is given.
    Application,
    /// How it is deployed.
    Deployment,
}

impl Level {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Application, Self::Deployment];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Deployment => "deployment",
        }
    }
}

/// The name of one setting: a path whose parts are joined by dots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key(String);

impl Key {
    /// The tag of an image, as most charts and scripts call it.
    pub fn image_tag() -> Self {
        Self("image.tag".to_owned())
    }
}

/// Why a text is not a [`Key`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// Nothing was given.
    #[error("key is empty")]
    Empty,
    /// Longer than allowed.
    #[error("key has {len} bytes, at most {} are allowed", Key::LEN_MAX)]
    TooLong {
        /// How many were given.
        len: usize,
    },
    /// A dot with nothing before or behind it, or blanks around one.
    #[error("key `{found}` has a dot or a blank too many; `{meant}` would do")]
    Dots {
        /// What was given.
        found: String,
        /// The same without them.
        meant: String,
    },
    /// An equals sign would end the key, and control characters are not seen.
    #[error("key `{key}` has {found:?}, which keys cannot have")]
    Character {
        /// What was given, without it.
        key: String,
        /// The offending character.
        found: char,
    },
}

impl Key {
    /// The longest key.
    pub const LEN_MAX: usize = 512;

    /// Reads a key as scripts write it: parts are trimmed, and empty ones left out.
    pub fn lenient(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<_> = text.split('.').map(str::trim).collect();
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let key = parts.join(".");
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > Self::LEN_MAX {
            return Err(KeyError::TooLong { len: key.len() });
        }
        match key.chars().find(|c| *c == '=' || c.is_control()) {
            Some(found) => Err(KeyError::Character {
                key: key.replace(|c: char| c == '=' || c.is_control(), ""),
                found,
            }),
            None => Ok(Self(key)),
        }
    }

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let key = Self::lenient(text)?;
        if key.0 == text {
            return Ok(key);
        }
        Err(KeyError::Dots {
            found: text.to_owned(),
            meant: key.0,
        })
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

/// What a setting is set to: any text that a program can be given as an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Value(String);

/// Why a text is not a [`Value`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ValueError {
    /// No argument of a program can have it.
    #[error("value has a NUL at position {at}, which no program can be given")]
    Nul {
        /// Its index, counted from zero.
        at: usize,
    },
    /// No argument of a program can be so long.
    #[error("value has {len} bytes, at most {} are allowed", Value::LEN_MAX)]
    TooLong {
        /// How many were given.
        len: usize,
    },
}

impl Value {
    /// The longest value: with its key it is one argument, of which Linux allows 128 KiB.
    pub const LEN_MAX: usize = 128 * 1024 - Key::LEN_MAX - 2;

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Value {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        if text.len() > Self::LEN_MAX {
            return Err(ValueError::TooLong { len: text.len() });
        }
        match text.find('\0') {
            Some(at) => Err(ValueError::Nul { at }),
            None => Ok(Self(text)),
        }
    }
}

impl std::str::FromStr for Value {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        text.to_owned().try_into()
    }
}

impl From<Value> for String {
    fn from(value: Value) -> Self {
        value.0
    }
}

/// Settings as a script tells them, in its order, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Defaults(Vec<(Key, Value)>);

impl Defaults {
    /// Of settings that are told twice the first counts.
    pub fn new(told: impl IntoIterator<Item = (Key, Value)>) -> Self {
        let mut known = BTreeSet::new();
        let told = told.into_iter();
        Self(told.filter(|(key, _)| known.insert(key.clone())).collect())
    }

    /// Them all.
    pub fn iter(&self) -> impl Iterator<Item = &(Key, Value)> {
        self.0.iter()
    }
}

/// What somebody made of one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edit {
    /// It has this value.
    Set(Value),
    /// It has a value that is sealed elsewhere, under the environment and this setting.
    Secret,
    /// It is left out, although there is a default.
    Removed,
}

/// The edits of one level.
pub type LevelEdits = BTreeMap<Key, Edit>;

/// What people made of the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// Of what the application is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub application: LevelEdits,
    /// Of how it is deployed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deployment: LevelEdits,
}

impl Edits {
    /// More settings than anybody edits.
    pub const COUNT_MAX: usize = 4096;

    /// Those of one level.
    pub const fn of(&self, level: Level) -> &LevelEdits {
        match level {
            Level::Application => &self.application,
            Level::Deployment => &self.deployment,
        }
    }

    /// Those of one level, to be changed.
    pub const fn of_mut(&mut self, level: Level) -> &mut LevelEdits {
        match level {
            Level::Application => &mut self.application,
            Level::Deployment => &mut self.deployment,
        }
    }

    /// The settings whose values are sealed.
    pub fn secrets(&self) -> impl Iterator<Item = (Level, &Key)> {
        let of = |level| self.of(level).iter().map(move |edit| (level, edit));
        let all = Level::ALL.into_iter().flat_map(of);
        all.filter(|(_, (_, edit))| **edit == Edit::Secret)
            .map(|(level, (key, _))| (level, key))
    }

    /// The entry under which the value of a setting is sealed with its environment. Keys may have
    /// characters that entries cannot, so it is a digest of them.
    ///
    /// # Panics
    ///
    /// Never: a word and hexadecimal digits are a name.
    pub fn entry(level: Level, key: &Key) -> EntryName {
        let digest = Sha256::digest(key.as_str().as_bytes());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        #[expect(
            clippy::expect_used,
            reason = "a word and hexadecimal digits are a name"
        )]
        format!("{}.{digits}", level.as_str())
            .try_into()
            .expect("a word and hexadecimal digits are a name")
    }

    /// The same after a change.
    #[must_use]
    pub fn changed(&self, change: &Change) -> Self {
        let mut edits = self.clone();
        for (level, key, edit) in &change.set {
            edits.of_mut(*level).insert(key.clone(), edit.clone());
        }
        for (level, key) in &change.unset {
            edits.of_mut(*level).remove(key);
        }
        edits
    }
}

/// A change of edits: all of it, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What is set, sealed or removed.
    pub set: Vec<(Level, Key, Edit)>,
    /// Which edits are forgotten, so that the default counts again.
    pub unset: Vec<(Level, Key)>,
}

impl Change {
    /// Notes which settings it names twice.
    pub fn check(&self, faults: &mut Faults) {
        let mut known = BTreeSet::new();
        let set = self.set.iter().map(|(level, key, _)| (*level, key));
        let unset = self.unset.iter().map(|(level, key)| (*level, key));
        for (level, key) in set.chain(unset) {
            if !known.insert((level, key)) {
                let path = format!("{}.{key}", level.as_str());
                faults.note(path, Code::Duplicate, "is named twice in one change");
            }
        }
    }
}

/// The value of a setting as it counts in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Given {
    /// Everybody may see it.
    Plain(Value),
    /// It is sealed.
    Secret,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The script told it, and nobody edited it.
    Default,
    /// The script told another value.
    Edited,
    /// Nobody but an editor knows it.
    Added,
}

/// One setting as it counts in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name.
    pub key: Key,
    /// Its value.
    pub value: Given,
    /// Where that comes from.
    pub source: Source,
}

/// The configuration of one level: what scripts told, and what people made of it.
pub fn effective(defaults: &Defaults, edits: &LevelEdits) -> Vec<Setting> {
    let told = defaults.iter().filter_map(|(key, value)| {
        let (value, source) = match edits.get(key) {
            None => (Given::Plain(value.clone()), Source::Default),
            Some(Edit::Set(value)) => (Given::Plain(value.clone()), Source::Edited),
            Some(Edit::Secret) => (Given::Secret, Source::Edited),
            Some(Edit::Removed) => return None,
        };
        let key = key.clone();
        Some(Setting { key, value, source })
    });
    let known: BTreeSet<_> = defaults.iter().map(|(key, _)| key).collect();
    let added = edits.iter().filter(|(key, _)| !known.contains(key));
    let added = added.filter_map(|(key, edit)| {
        let value = match edit {
            Edit::Set(value) => Given::Plain(value.clone()),
            Edit::Secret => Given::Secret,
            Edit::Removed => return None,
        };
        Some(Setting {
            key: key.clone(),
            value,
            source: Source::Added,
        })
    });
    told.chain(added).collect()
}

#[cfg(test)]
mod tests;
