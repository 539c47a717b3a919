//! What is wrong with an input: every fault at once, each with its place.

use crate::manifest::within;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// One thing wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A fault unless a living cluster has it already: what it was made with cannot change, and whoever
/// edits something else must not be kept from it by a rule that came later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What is wrong where nobody lives with it.
    pub fault: Fault,
    /// What must be so already.
    pub about: About,
}

/// What a doubt is about. Who knows which clusters live can tell whether it is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The networks of clusters, which lie over one another.
    Apart,
    /// What a cluster is made with.
    Made {
        /// Which cluster.
        cluster: Name,
    },
    /// Machines of a pool in a cluster.
    Pool {
        /// Which cluster.
        cluster: Name,
        /// Which pool.
        pool: Name,
    },
    /// How many machines a pool has in a cluster, or may be scaled to.
    Size {
        /// Which cluster.
        cluster: Name,
        /// Which pool.
        pool: Name,
        /// How many it would have.
        machines: u32,
    },
    /// A given machine in a cluster, or one on the way to it.
    Endpoint {
        /// Which cluster.
        cluster: Name,
        /// Where the machine stands.
        endpoint: Ipv4Addr,
    },
    /// How many machines a cluster has.
    Room {
        /// Which cluster.
        cluster: Name,
        /// How many it would have.
        machines: u32,
    },
}

/// More faults than anybody mends in one go; the rest are only counted.
const FAULTS_MAX: usize = 200;

/// How the line begins and ends that stands for the rest.
const AND: &str = "and ";
const MORE: &str = " more faults";

/// Collects faults while a document is read to its end.
#[derive(Debug, Default)]
pub struct Faults {
    /// Each with what it is about, where it is a doubt.
    found: Vec<(Fault, Option<About>)>,
    /// How many of those are doubts.
    doubts: usize,
    beyond: usize,
    /// What is no fault, and has no effect.
    remarks: Vec<Fault>,
    /// Namespaces that were read beside secrets, each with its place.
    namespaces: Vec<(String, Name)>,
}

impl Faults {
    /// Notes one fault.
    pub fn note(&mut self, path: impl Into<String>, code: Code, message: impl Into<String>) {
        if self.found.len() - self.doubts < FAULTS_MAX {
            let fault = Fault {
                path: path.into(),
                code,
                message: message.into(),
            };
            self.found.push((fault, None));
        } else {
            self.beyond += 1;
        }
    }

    /// Notes what is a fault unless a living cluster has it already.
    pub fn doubt(
        &mut self,
        path: impl Into<String>,
        code: Code,
        message: impl Into<String>,
        about: About,
    ) {
        let fault = Fault {
            path: path.into(),
            code,
            message: message.into(),
        };
        self.doubts += 1;
        self.found.push((fault, Some(about)));
    }

    /// Notes what is let pass though it has no effect: people's files have it.
    pub fn remark(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.remarks.push(Fault {
            path: path.into(),
            code: Code::Unused,
            message: message.into(),
        });
    }

    /// Notes a namespace beside a secret. Only who knows the project can tell whether it is right.
    pub(crate) fn beside(&mut self, path: String, namespace: &Name) {
        self.namespaces.push((path, namespace.clone()));
    }

    /// The namespaces that were read beside secrets.
    pub(crate) fn take_namespaces(&mut self) -> Vec<(String, Name)> {
        std::mem::take(&mut self.namespaces)
    }

    /// What was let pass, which is told where nothing is wrong.
    pub fn take_remarks(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.remarks)
    }

    /// Puts them into an order of their places; those of one place stay as they are.
    pub fn sort_by_place<K: Ord>(&mut self, place: impl Fn(&str) -> K) {
        self.found
            .sort_by_cached_key(|(fault, _)| place(&fault.path));
        self.remarks.sort_by_cached_key(|fault| place(&fault.path));
    }

    /// How many there are so far, doubts included.
    pub fn count(&self) -> usize {
        self.found.len() + self.beyond
    }

    /// Whether something is said of this place.
    pub fn tells(&self, path: &str) -> bool {
        self.found.iter().any(|(fault, _)| fault.path == path)
    }

    /// Whether it is said already that this rule is broken there.
    pub fn tells_of(&self, path: &str, code: Code) -> bool {
        let mut found = self.found.iter();
        found.any(|(fault, _)| fault.path == path && fault.code == code)
    }

    /// Whether nothing is wrong for certain so far.
    pub fn is_empty(&self) -> bool {
        self.found.len() == self.doubts && self.beyond == 0
    }

    /// Whether something is wrong for certain with a part, within it or with all that it is part of. Where
    /// there is more than anybody mends in one go, there may be.
    pub(crate) fn is_wrong(&self, part: &str) -> bool {
        let certain = self.found.iter().filter(|(_, about)| about.is_none());
        let mut paths = certain.map(|(fault, _)| fault.path.as_str());
        self.beyond > 0 || paths.any(|path| within(path, part) || within(part, path))
    }

    /// The places of what is wrong for certain.
    pub(crate) fn places(&self) -> Vec<String> {
        let certain = self.found.iter().filter(|(_, about)| about.is_none());
        certain.map(|(fault, _)| fault.path.clone()).collect()
    }

    /// Takes in what somebody judged who knows more, in the place of all doubts.
    pub(crate) fn settle(&mut self, judged: Vec<Fault>) {
        self.found.retain(|(_, about)| about.is_none());
        self.doubts = 0;
        for Fault {
            path,
            code,
            message,
        } in judged
        {
            self.note(path, code, message);
        }
    }

    /// The doubts alone.
    pub(crate) fn doubts(&self) -> Vec<Doubt> {
        let doubt = |(fault, about): &(Fault, Option<About>)| {
            let (fault, about) = (fault.clone(), about.clone()?);
            Some(Doubt { fault, about })
        };
        self.found.iter().filter_map(doubt).collect()
    }

    /// The faults, with a last line for those beyond counting.
    pub fn into_vec(self) -> Vec<Fault> {
        let beyond = (self.beyond > 0).then(|| Fault {
            path: String::new(),
            code: Code::Range,
            message: format!("{AND}{}{MORE}", self.beyond),
        });
        let found = self.found.into_iter().map(|(fault, _)| fault);
        found.chain(beyond).collect()
    }
}

/// How many faults a list tells of: its last line may stand for many.
pub fn counted(faults: &[Fault]) -> usize {
    let beyond = faults.last().and_then(|last| {
        let number = last.message.strip_prefix(AND)?.strip_suffix(MORE)?;
        let beyond: usize = number.parse().ok()?;
        last.path.is_empty().then_some(beyond)
    });
    beyond.map_or(faults.len(), |beyond| faults.len() - 1 + beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_beyond_those_that_are_listed_count_too() {
        let mut faults = Faults::default();
        for at in 0..2_700 {
            faults.note(format!("nodes[{at}]"), Code::Format, "wrong");
        }
        let faults = faults.into_vec();
        assert_eq!(faults.last().unwrap().message, "and 2500 more faults");
        assert_eq!(counted(&faults), 2_700);
        assert_eq!(counted(&faults[..3]), 3);
    }
}
