//! The kinds of things that verbs are about.

use crate::error::Error;

/// A kind of thing; singular and plural are the same to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// What a person declared.
    #[value(alias = "manifests")]
    Manifest,
    /// A Kubernetes cluster.
    #[value(alias = "clusters")]
    Cluster,
    /// A computer.
    #[value(alias = "machines")]
    Machine,
    /// A piece of work.
    #[value(alias = "tasks")]
    Task,
    /// A wish outside the manifest.
    #[value(alias = "intents")]
    Intent,
    /// Something that happened.
    #[value(alias = "events")]
    Event,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Cluster => "cluster",
            Self::Machine => "machine",
            Self::Task => "task",
            Self::Intent => "intent",
            Self::Event => "event",
        }
    }

    /// The error of a verb that has nothing to say about this kind.
    pub(crate) fn unfit(self, verb: &str, fit: &str) -> Error {
        Error::Usage {
            what: format!("`slipway {verb}` is not for a single {}", self.as_str()),
            hint: format!("it is for {fit}"),
        }
    }
}
