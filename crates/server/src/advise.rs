//! What the server needs of those who deploy environments, whom it does not know: their advice.

use futures_util::future::BoxFuture;
use model::environment::EnvironmentName;
use model::environment::config::{Defaults, Setting};
use model::environment::schema::KnownKey;
use model::environment::settings::Settings;
use model::environment::status::{Look, Seen};
use model::fault::Fault;
use model::id::EnvironmentId;
use model::name::Name;
use model::secret::{EntryName, Secret};
use std::sync::Arc;
use store::Actor;

/// Tells what environments would be configured with, and judges it. Nothing is changed by that.
pub trait Advise: Send + Sync {
    /// What would be configured if nobody edited anything.
    fn defaults<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Defaults>;

    /// Settings that may be edited, whether or not they have defaults, with what is known of them.
    fn keys<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Vec<KnownKey>>;

    /// What is not there that environments of these settings need: each with what to do.
    fn lacking<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Vec<Unadvised>>;

    /// Whether a configuration makes sense.
    fn judge<'a>(&'a self, candidate: &'a Candidate) -> Advice<'a, Verdict>;

    /// Looks at an environment now.
    fn look<'a>(&'a self, candidate: &'a Candidate, look: Look) -> Advice<'a, Glance>;
}

/// Advice on its way.
pub type Advice<'a, T> = BoxFuture<'a, Result<T, Unadvised>>;

/// Which configuration is asked about.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// How environments are deployed.
    Deployment,
    /// What the application is given where it is deployed so.
    Application(&'a [Setting]),
}

/// An environment as it is, or as somebody wants it to be.
pub struct Candidate {
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// Which it is, or will be: what is secret of it is sealed for that id.
    pub id: EnvironmentId,
    /// What its project says.
    pub settings: Settings,
    /// What the application is given.
    pub application: Vec<Setting>,
    /// How it is deployed.
    pub deployment: Vec<Setting>,
    /// Secret values that nobody has stored yet; they count before those that are.
    pub fresh: Arc<Vec<(EntryName, Secret)>>,
    /// In whose name whatever has to be opened is opened.
    pub actor: Actor,
}

/// What a judge of configurations said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It makes sense.
    Good,
    /// It does not, and this is why.
    Bad(String),
    /// These settings have values that they cannot have, of which nothing secret is told.
    Wrong(Vec<Fault>),
}

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Whether it is as it should be.
    pub seen: Seen,
    /// The end of what the look printed, without anything secret.
    pub said: String,
}

/// Whose matter it is that there is no advice, and what has to be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A script told something that is no configuration.
    Unreadable,
    /// A script told something that is no text.
    NotText,
    /// A script told more than anybody can use.
    TooMuch,
    /// A script did not end in time.
    Hung,
    /// What is to be run before all other scripts has not ended.
    Early,
    /// A script ended with an error.
    Failed,
    /// What deploys environments is not there, or cannot be used.
    Missing,
    /// What the environment is configured with cannot be handed over.
    Unfit,
    /// Ours: it may work later.
    Ours,
}

/// Why there is no advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unadvised {
    /// Whose matter it is.
    pub trouble: Trouble,
    /// What was attempted, and how it ended, as one clause.
    pub what: String,
    /// What would help.
    pub hint: String,
}
