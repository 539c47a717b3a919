//! What is wrong with an input: every fault at once, each with its place.

use serde::{Deserialize, Serialize};

/// One thing wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fault {
    /// Where: `spec.nodePools.dynamic[2].count`.
    pub path: String,
    /// Which rule was broken.
    pub code: Code,
    /// What was found and what is allowed.
    pub message: String,
}

/// The rules a field can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A field that must be there is not.
    Required,
    /// A field that nothing reads.
    UnknownField,
    /// A text where a number belongs, and the like.
    Type,
    /// A number outside its limits, or too many of something.
    Range,
    /// A text not of the wanted form.
    Format,
    /// Used twice where once is allowed.
    Duplicate,
    /// Names something that is not defined.
    Reference,
    /// Defined, and used by nobody.
    Unused,
    /// Understood, but this build has no hands for it.
    Unsupported,
    /// May not change during the life of the thing.
    Immutable,
}

impl Code {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::UnknownField => "unknown-field",
            Self::Type => "type",
            Self::Range => "range",
            Self::Format => "format",
            Self::Duplicate => "duplicate",
            Self::Reference => "reference",
            Self::Unused => "unused",
            Self::Unsupported => "unsupported",
            Self::Immutable => "immutable",
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() {
            "the document"
        } else {
            &self.path
        };
        write!(f, "{path}: {}", self.message)
    }
}

/// More faults than anybody mends in one go; the rest are only counted.
const FAULTS_MAX: usize = 200;

/// Collects faults while a document is read to its end.
#[derive(Debug, Default)]
pub struct Faults {
    found: Vec<Fault>,
    beyond: usize,
}

impl Faults {
    /// Notes one fault.
    pub fn note(&mut self, path: impl Into<String>, code: Code, message: impl Into<String>) {
        if self.found.len() < FAULTS_MAX {
            self.found.push(Fault {
                path: path.into(),
                code,
                message: message.into(),
            });
        } else {
            self.beyond += 1;
        }
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The faults in the order of the document, with a last line for those beyond counting.
    pub fn into_vec(mut self) -> Vec<Fault> {
        if self.beyond > 0 {
            self.found.push(Fault {
                path: String::new(),
                code: Code::Range,
                message: format!("and {} more faults", self.beyond),
            });
        }
        self.found
    }
}
