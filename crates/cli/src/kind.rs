//! The kinds of things that verbs are about.

use crate::error::Error;
use clap::ValueEnum as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};

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
    /// Who owns things.
    #[value(alias = "projects")]
    Project,
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
            Self::Project => "project",
        }
    }

    /// Reads any kind, and tells only of those that a verb is for: whoever names another one
    /// is told what to do instead.
    pub(crate) fn among(fit: &'static [Self]) -> impl TypedValueParser<Value = Self> {
        let values = Self::value_variants().iter().filter_map(|kind| {
            let value = kind.to_possible_value()?;
            Some(value.hide(!fit.contains(kind)))
        });
        PossibleValuesParser::new(values).try_map(|text| Self::from_str(&text, false))
    }

    /// Whether a text can be the name or the id of such a thing at all.
    pub(crate) fn check(self, name: &str) -> Result<(), Error> {
        let (checked, hint) = match self {
            Self::Manifest | Self::Cluster | Self::Machine | Self::Project => {
                (api::argument::name(name).map(drop), "names")
            }
            Self::Task => (api::argument::task(name).map(drop), "ids"),
            Self::Intent => (api::argument::intent(name).map(drop), "ids"),
            Self::Event => {
                let number = name.parse::<u64>().map(drop);
                let wrong = format!("`{name}` is not the number of an event");
                (number.map_err(|_| wrong), "numbers")
            }
        };
        checked.map_err(|what| Error::Usage {
            what,
            hint: format!("`slipway get {}` lists the {hint}", self.as_str()),
        })
    }

    /// The error of a verb that has nothing to say about this kind.
    pub(crate) fn unfit(self, verb: &str, fit: &str) -> Error {
        Error::Usage {
            what: format!("`slipway {verb}` is not for a single {}", self.as_str()),
            hint: format!("it is for {fit}"),
        }
    }
}
