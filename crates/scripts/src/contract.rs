//! The control scripts: what they are called, and what they are told.
//!
//! Users have such scripts, written for another system. Names and arguments are therefore not
//! ours to change; what we add is in the environment.

use driver::deploy::Subject;
use model::environment::config::{Given, Level, Setting};
use model::environment::settings::{Contract, Settings};
use model::environment::status::{Deed, Look, Status};

use crate::secrets::Opened;

/// One of the control scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    /// Run once before the others.
    Init,
    /// Brings an environment into being.
    Create,
    /// Makes it another.
    Update,
    /// Has it rest: what runs is taken away, what is stored is kept.
    Archive,
    /// Brings it back from there.
    Unarchive,
    /// Removes it with all that it has stored.
    Cleanup,
    /// Tells by its exit whether the environment is up as it should be.
    Check,
    /// Tells by its exit whether it is down.
    ArchiveCheck,
    /// Tells whether a configuration makes sense, and what is wrong with it.
    ConfigCheck,
    /// Tells where an environment is reached.
    Info,
    /// Tells how environments are deployed if nobody edits anything.
    DeploymentConfig,
    /// Tells what can be edited there.
    DeploymentKeys,
    /// Tells what the application is given if nobody edits anything.
    ApplicationConfig,
    /// Tells what can be edited there.
    ApplicationKeys,
    /// Is told what became of an environment.
    Notifications,
}

impl Script {
    /// Every one of them.
    pub const ALL: [Self; 15] = [
        Self::Init,
        Self::Create,
        Self::Update,
        Self::Archive,
        Self::Unarchive,
        Self::Cleanup,
        Self::Check,
        Self::ArchiveCheck,
        Self::ConfigCheck,
        Self::Info,
        Self::DeploymentConfig,
        Self::DeploymentKeys,
        Self::ApplicationConfig,
        Self::ApplicationKeys,
        Self::Notifications,
    ];

    /// What its file may be called; of several that are there, the first counts.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Init => &["init"],
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::Archive => &["archive"],
            Self::Unarchive => &["unarchive", "restore"],
            Self::Cleanup => &["cleanup"],
            Self::Check => &["check"],
            Self::ArchiveCheck => &["archive_check"],
            Self::ConfigCheck => &["config_check"],
            Self::Info => &["info"],
            Self::DeploymentConfig => &["deployment_config", "deployment_overrides"],
            Self::DeploymentKeys => &["deployment_config_keys", "deployment_keys"],
            Self::ApplicationConfig => &["application_config", "app_overrides"],
            Self::ApplicationKeys => &["application_config_keys", "app_keys"],
            Self::Notifications => &["notifications", "notification"],
        }
    }

    /// What people call it.
    pub const fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Whether all is well without it.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::Init | Self::Notifications)
    }

    /// Which one does it; nothing is run to forget an environment.
    pub const fn of_deed(deed: Deed) -> Option<Self> {
        match deed {
            Deed::Create => Some(Self::Create),
            Deed::Update => Some(Self::Update),
            Deed::Archive => Some(Self::Archive),
            Deed::Restore => Some(Self::Unarchive),
            Deed::Cleanup => Some(Self::Cleanup),
            Deed::Delete => None,
        }
    }

    /// Which one looks for it.
    pub const fn of_look(look: Look) -> Self {
        match look {
            Look::Up => Self::Check,
            Look::Down => Self::ArchiveCheck,
        }
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What every script is told.
pub fn service(settings: &Settings) -> Vec<String> {
    let place = &settings.place;
    let told = [
        ("--project-name", place.project_name.as_str()),
        ("--base-domain", place.base_domain.as_str()),
        ("--namespace", place.namespace.as_str()),
    ];
    let words = told.into_iter().flat_map(|(option, value)| [option, value]);
    words.map(str::to_owned).collect()
}

/// What scripts are told that tell of the application, where it is deployed so. What is secret of
/// that belongs to an environment, and these are about none.
pub fn application(settings: &Settings, deployment: &[Setting]) -> Vec<String> {
    let opened = Opened::none();
    let mut words = Vec::new();
    configure(&mut words, Level::Deployment, deployment, &opened);
    words.extend(service(settings));
    words
}

/// What scripts are told about one environment. Of what is secret there is only what `opened`
/// hands over as arguments.
pub(crate) fn lifecycle(subject: &Subject, opened: &Opened) -> Vec<String> {
    let mut words = named(subject);
    words.extend(tag(subject, opened));
    configure(&mut words, Level::Application, &subject.application, opened);
    configure(&mut words, Level::Deployment, &subject.deployment, opened);
    words
}

/// What the one is told that is told what became of an environment.
pub fn notification(subject: &Subject, was: Status, became: Status) -> Vec<String> {
    let mut words = named(subject);
    words.extend(tag(subject, &Opened::none()));
    let told = [("--old-status", was), ("--new-status", became)];
    for (option, status) in told {
        words.extend([option.to_owned(), status.to_scripts().to_owned()]);
    }
    words
}

/// Whom it is about.
fn named(subject: &Subject) -> Vec<String> {
    let mut words = service(&subject.settings);
    words.extend(["--name".to_owned(), subject.name.to_string()]);
    words
}

/// The tag, for scripts that know it as an argument of its own.
fn tag(subject: &Subject, opened: &Opened) -> Vec<String> {
    let settings = &subject.settings;
    if settings.contract != Contract::Legacy {
        return Vec::new();
    }
    let mut application = subject.application.iter();
    let setting = application.find(|setting| setting.key == settings.tag);
    let value = setting.and_then(|setting| value(Level::Application, setting, opened));
    value.map_or_else(Vec::new, |value| vec!["--tag".to_owned(), value.to_owned()])
}

/// Adds the settings of one level.
fn configure(words: &mut Vec<String>, level: Level, settings: &[Setting], opened: &Opened) {
    for setting in settings {
        if let Some(value) = value(level, setting, opened) {
            words.push(format!("--{}-config", level.as_str()));
            words.push(format!("{}={value}", setting.key));
        }
    }
}

/// The value of a setting, if it may stand among arguments.
fn value<'a>(level: Level, setting: &'a Setting, opened: &'a Opened) -> Option<&'a str> {
    match &setting.value {
        Given::Plain(value) => Some(value.as_str()),
        Given::Secret => opened.argument(level, &setting.key),
    }
}

#[cfg(test)]
mod tests;
