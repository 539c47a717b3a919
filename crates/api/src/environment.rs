//! Environments on the wire: copies of a product, each with a configuration of its own.

mod git;
mod import;
mod known;
mod notify;
mod request;
mod settings;

pub use git::{GitAnswer, GitDecision, GitForks, GitService, GitSource, OriginView};
pub use import::{
    IMPORT_MAX, ImportAction, ImportEnvironment, ImportOutcome, ImportRequest, ImportView,
    ImportedView,
};
pub use known::{KnownSettingView, SettingType};
pub use notify::{
    DeliveryState, DeliveryView, NotifyEvent, NotifySlack, NotifyTarget, NotifyWebhook, TestRequest,
};
pub use request::{
    CloneRequest, EnvironmentChangeRequest, EnvironmentRequest, ExtendRequest, Hidden,
    HiddenLevels, KeyLevels, RedeployRequest, ValueLevels,
};
pub use settings::{
    Contract, EnvironmentSettings, EnvironmentSettingsView, HelmSettings, KubeconfigOf,
    SecretDelivery,
};

pub use model::environment::LABELS_MAX;

use crate::time::Time;
use model::environment::action::State;
use model::environment::config::{self, Edit, Edits, Given, Setting};
use model::environment::link::Link;
use model::environment::status::{Deed, Failure, Seen, Sleep, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The longest label, owner and value of a label.
pub const WORD_LEN_MAX: usize = 128;

/// The longest notes.
pub const NOTES_LEN_MAX: usize = 4_000;

/// How an environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentStatus {
    /// It comes, for the first time or again.
    CreatePending,
    /// It becomes another.
    UpdatePending,
    /// It goes to the archive.
    ArchivePending,
    /// It runs as it should.
    Running,
    /// It does not answer, or nobody can tell.
    Failure,
    /// Some of it runs.
    PartialFailure,
    /// Another version runs than was wanted.
    TagMismatch,
    /// It rests: nothing runs, and what it has stored is kept.
    Archived,
    /// What it has stored could not be removed.
    CleanupFailed,
}

impl EnvironmentStatus {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::CreatePending,
        Self::UpdatePending,
        Self::ArchivePending,
        Self::Running,
        Self::Failure,
        Self::PartialFailure,
        Self::TagMismatch,
        Self::Archived,
        Self::CleanupFailed,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreatePending => "create-pending",
            Self::UpdatePending => "update-pending",
            Self::ArchivePending => "archive-pending",
            Self::Running => "running",
            Self::Failure => "failure",
            Self::PartialFailure => "partial-failure",
            Self::TagMismatch => "tag-mismatch",
            Self::Archived => "archived",
            Self::CleanupFailed => "cleanup-failed",
        }
    }

    /// Whether it is on its way from one to another.
    pub const fn is_pending(self) -> bool {
        matches!(
            self,
            Self::CreatePending | Self::UpdatePending | Self::ArchivePending
        )
    }
}

impl std::fmt::Display for EnvironmentStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Status> for EnvironmentStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::CreatePending => Self::CreatePending,
            Status::UpdatePending => Self::UpdatePending,
            Status::ArchivePending => Self::ArchivePending,
            Status::Running => Self::Running,
            Status::Failure(Failure::Generic) => Self::Failure,
            Status::Failure(Failure::Partial) => Self::PartialFailure,
            Status::Failure(Failure::TagMismatch) => Self::TagMismatch,
            Status::Archived => Self::Archived,
            Status::CleanupFailed => Self::CleanupFailed,
        }
    }
}

impl From<EnvironmentStatus> for Status {
    fn from(status: EnvironmentStatus) -> Self {
        match status {
            EnvironmentStatus::CreatePending => Self::CreatePending,
            EnvironmentStatus::UpdatePending => Self::UpdatePending,
            EnvironmentStatus::ArchivePending => Self::ArchivePending,
            EnvironmentStatus::Running => Self::Running,
            EnvironmentStatus::Failure => Self::Failure(Failure::Generic),
            EnvironmentStatus::PartialFailure => Self::Failure(Failure::Partial),
            EnvironmentStatus::TagMismatch => Self::Failure(Failure::TagMismatch),
            EnvironmentStatus::Archived => Self::Archived,
            EnvironmentStatus::CleanupFailed => Self::CleanupFailed,
        }
    }
}

/// What is done to an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    /// Bring it into being.
    Create,
    /// Make it another.
    Update,
    /// Have it rest.
    Archive,
    /// Bring it back from there.
    Restore,
    /// Remove it with all that it has stored.
    Cleanup,
    /// Forget it, and touch nothing of it.
    Delete,
}

impl ActionKind {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Cleanup => "cleanup",
            Self::Delete => "delete",
        }
    }
}

impl std::fmt::Display for ActionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<ActionKind> for Deed {
    fn from(kind: ActionKind) -> Self {
        match kind {
            ActionKind::Create => Self::Create,
            ActionKind::Update => Self::Update,
            ActionKind::Archive => Self::Archive,
            ActionKind::Restore => Self::Restore,
            ActionKind::Cleanup => Self::Cleanup,
            ActionKind::Delete => Self::Delete,
        }
    }
}

impl From<Deed> for ActionKind {
    fn from(deed: Deed) -> Self {
        match deed {
            Deed::Create => Self::Create,
            Deed::Update => Self::Update,
            Deed::Archive => Self::Archive,
            Deed::Restore => Self::Restore,
            Deed::Cleanup => Self::Cleanup,
            Deed::Delete => Self::Delete,
        }
    }
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionState {
    /// Somebody will take it up, for the first time or again.
    Waiting,
    /// Somebody is at it.
    Running,
    /// It did what it should.
    Done,
    /// It did not.
    Failed,
    /// Somebody called it off.
    Cancelled,
    /// It ended, and nobody knows how.
    Lost,
}

impl ActionState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// Whether nothing more comes of it.
    pub const fn ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

impl std::fmt::Display for ActionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<State> for ActionState {
    fn from(state: State) -> Self {
        match state {
            State::Waiting => Self::Waiting,
            State::Running => Self::Running,
            State::Done => Self::Done,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
            State::Lost => Self::Lost,
        }
    }
}

/// One environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentView {
    /// Which one, in which of its lives.
    pub id: String,
    /// Who owns it.
    pub project: String,
    /// What people call it.
    pub name: String,
    /// Grows whenever somebody changes it or has something done to it; give it as `If-Match`.
    pub generation: u64,
    /// How it is.
    pub status: EnvironmentStatus,
    /// Since when.
    pub since: Time,
    /// Whether the last thing that was done to it failed; not where somebody cancelled it.
    pub failed: bool,
    /// Who cancelled the last thing that was done to it; null unless somebody did.
    #[serde(default)]
    pub cancelled: Option<CancelledView>,
    /// What is being done to it; null when nothing is.
    pub busy: Option<BusyView>,
    /// What can be done about it now.
    pub exits: Vec<ExitView>,
    /// Whose it is, in people's words; empty where nobody said.
    pub owner: String,
    /// What it is found by.
    pub labels: BTreeMap<String, String>,
    /// What else there is to know.
    pub notes: String,
    /// Whether it is to stay.
    pub protected: bool,
    /// Until when it may be up; null means without end.
    pub expires_at: Option<Time>,
    /// What people made of the defaults.
    pub edits: EditLevels,
    /// Where it is reached.
    pub links: Vec<LinkView>,
    /// What the last look showed; null before the first.
    pub checked: Option<CheckedView>,
    /// When it came.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// Since when it rests, or when it last began to; null if it never did.
    pub archived_at: Option<Time>,
    /// When somebody last wanted something of it.
    pub used_at: Time,
    /// Why it rests, or is about to, where nobody asked for it; null where somebody did, or it is up.
    pub asleep: Option<SleepReason>,
    /// Which request of a git service it is of, or a copy of one that is; null otherwise.
    pub origin: Option<OriginView>,
}

/// That somebody cancelled what was being done to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelledView {
    /// Which action.
    pub action: String,
    /// What it was to do.
    pub kind: ActionKind,
    /// Who cancelled it.
    pub by: String,
    /// When they did.
    pub at: Time,
}

/// Why an environment sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SleepReason {
    /// Nobody used it.
    Idle,
    /// It is not the time of day, or of the week.
    Hours,
}

impl SleepReason {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Hours => "hours",
        }
    }
}

impl From<Sleep> for SleepReason {
    fn from(sleep: Sleep) -> Self {
        match sleep {
            Sleep::Idle => Self::Idle,
            Sleep::Hours => Self::Hours,
        }
    }
}

/// What is being done to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BusyView {
    /// Which action.
    pub action: String,
    /// What it does.
    pub kind: ActionKind,
    /// How far it has come.
    pub state: ActionState,
    /// What it waits for; null where it waits for nothing but its turn.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Whether somebody wants it to be ended.
    #[serde(default)]
    pub cancelled: bool,
}

/// Something that can be done about an environment now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExitView {
    /// The verb: `cancel`, or the word of an action.
    pub verb: String,
    /// Whether it has to be forced, because something is lost by it.
    pub force: bool,
}

impl std::fmt::Display for ExitView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let force = if self.force { " by force" } else { "" };
        write!(f, "{}{force}", self.verb)
    }
}

/// One way to reach an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkView {
    /// What people call it; empty where the address says it all.
    pub name: String,
    /// The address.
    pub url: String,
}

impl From<Link> for LinkView {
    fn from(Link { name, url }: Link) -> Self {
        Self { name, url }
    }
}

/// What a look at an environment showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeenView {
    /// It is as it should be: up, or, of one that should rest, down.
    Good,
    /// It is not.
    Failure,
    /// Some of it is.
    PartialFailure,
    /// Another version runs than was wanted.
    TagMismatch,
}

impl SeenView {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Failure => "failure",
            Self::PartialFailure => "partial-failure",
            Self::TagMismatch => "tag-mismatch",
        }
    }
}

impl From<Seen> for SeenView {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Good => Self::Good,
            Seen::Bad(Failure::Generic) => Self::Failure,
            Seen::Bad(Failure::Partial) => Self::PartialFailure,
            Seen::Bad(Failure::TagMismatch) => Self::TagMismatch,
        }
    }
}

/// What a look at an environment showed, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedView {
    /// When.
    pub at: Time,
    /// What was seen; null where nobody could look.
    pub seen: Option<SeenView>,
    /// Since when nobody could look: the status is what was known then.
    pub unseen_since: Option<Time>,
    /// The end of what the look printed, or why nobody could look; lists leave it out.
    pub said: String,
}

/// What people made of the defaults, on both levels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditLevels {
    /// Of what the application is given.
    pub application: Vec<EditView>,
    /// Of how it is deployed.
    pub deployment: Vec<EditView>,
}

impl From<Edits> for EditLevels {
    fn from(edits: Edits) -> Self {
        let level = |of: config::LevelEdits| of.into_iter().map(EditView::from).collect();
        let Edits {
            application,
            deployment,
        } = edits;
        Self {
            application: level(application),
            deployment: level(deployment),
        }
    }
}

/// What was made of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditKind {
    /// It has a value that everybody may see.
    Set,
    /// It has a value that nobody sees.
    Secret,
    /// It is left out, although there may be a default.
    Removed,
}

/// What somebody made of one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditView {
    /// The setting.
    pub key: String,
    /// What was made of it.
    pub kind: EditKind,
    /// Its value; null unless everybody may see it.
    pub value: Option<String>,
}

impl From<(config::Key, Edit)> for EditView {
    fn from((key, edit): (config::Key, Edit)) -> Self {
        let (kind, value) = match edit {
            Edit::Set(value) => (EditKind::Set, Some(value.into())),
            Edit::Secret => (EditKind::Secret, None),
            Edit::Removed => (EditKind::Removed, None),
        };
        Self {
            key: key.into(),
            kind,
            value,
        }
    }
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingSource {
    /// The scripts told it, and nobody edited it.
    Default,
    /// The scripts told another value.
    Edited,
    /// Nobody but an editor knows it.
    Added,
}

impl SettingSource {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Edited => "edited",
            Self::Added => "added",
        }
    }
}

/// One setting as it counts in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingView {
    /// Its name.
    pub key: String,
    /// Its value; null where it is secret.
    pub value: Option<String>,
    /// Whether it is set to something that nobody sees.
    pub secret: bool,
    /// Where it comes from.
    pub source: SettingSource,
}

impl From<Setting> for SettingView {
    fn from(Setting { key, value, source }: Setting) -> Self {
        let (value, secret) = match value {
            Given::Plain(value) => (Some(value.into()), false),
            Given::Secret => (None, true),
        };
        let source = match source {
            config::Source::Default => SettingSource::Default,
            config::Source::Edited => SettingSource::Edited,
            config::Source::Added => SettingSource::Added,
        };
        Self {
            key: key.into(),
            value,
            secret,
            source,
        }
    }
}

/// The configuration of an environment as it counts in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationView {
    /// What the application is given.
    pub application: Vec<SettingView>,
    /// How it is deployed.
    pub deployment: Vec<SettingView>,
}

/// What would come of a change that was only tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialView {
    /// The configuration as it would count in the end.
    pub configuration: ConfigurationView,
    /// Whether the project's check takes it.
    pub accepted: bool,
    /// What the check said against it; null if it takes it.
    pub said: Option<String>,
}

/// What the defaults are, of one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsView {
    /// The settings, in the order of the scripts.
    pub settings: Vec<SettingView>,
}

/// Settings that may be edited, of one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysOfLevelView {
    /// Their names, in the order of the scripts.
    pub keys: Vec<String>,
    /// The same with what is known of each, in the same order.
    #[serde(default)]
    pub settings: Vec<KnownSettingView>,
}

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingLevel {
    /// What the application is given.
    Application,
    /// How it is deployed.
    Deployment,
}

impl SettingLevel {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Deployment => "deployment",
        }
    }
}

/// What was begun with an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentAccepted {
    /// The environment.
    pub name: String,
    /// Its generation; null where it is not there any more.
    pub generation: Option<u64>,
    /// What is done to it, to be followed; null where nothing has to be done.
    pub action: Option<String>,
    /// What that is; null likewise.
    pub kind: Option<ActionKind>,
    /// How far it has come; null likewise.
    pub state: Option<ActionState>,
}

/// Something that was, is or will be done to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionView {
    /// Which.
    pub id: String,
    /// What the environment is called.
    pub environment: String,
    /// What is done.
    pub kind: ActionKind,
    /// How far it has come.
    pub state: ActionState,
    /// Whether somebody cancelled it, or wants it to be.
    pub cancelled: bool,
    /// Who did; null if nobody did.
    #[serde(default)]
    pub cancelled_by: Option<String>,
    /// When they did; null if nobody did.
    #[serde(default)]
    pub cancelled_at: Option<Time>,
    /// Who asked.
    pub author: String,
    /// Whether they took what may be lost.
    pub forced: bool,
    /// The status of its script; null unless that exited.
    pub exit: Option<i32>,
    /// What went wrong; null if nothing did.
    pub error: Option<String>,
    /// When they asked.
    pub created_at: Time,
    /// When it was taken up; null before that.
    pub started_at: Option<Time>,
    /// When it is ended, whether or not it is done; null before it was taken up.
    pub deadline: Option<Time>,
    /// When it ended; null before that.
    pub ended_at: Option<Time>,
    /// Whether it was done elsewhere, before the environment was taken over: then nobody knows what
    /// came of defaults and edits.
    #[serde(default)]
    pub imported: bool,
}

/// An action with all that it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDetail {
    /// The action.
    #[serde(flatten)]
    pub head: ActionView,
    /// What people had made of the defaults then.
    pub edits: EditLevels,
    /// Exactly what its script was given.
    pub configuration: ConfigurationView,
}

/// Which of the two streams of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputStream {
    /// What it prints.
    Stdout,
    /// What it complains about.
    Stderr,
}

impl OutputStream {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// One line that the script of an action printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputLineView {
    /// Its place among all lines of both streams.
    pub seq: u64,
    /// Where it was printed.
    pub stream: OutputStream,
    /// When it was read.
    pub at: Time,
    /// What it says; where lines are missing, how many, in words.
    pub text: String,
}

/// A piece of what the script of an action printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputView {
    /// The lines, oldest first.
    pub lines: Vec<OutputLineView>,
    /// What to give as `?after=` to read on, now or when there is more.
    pub next: u64,
}

/// The last word of followed output: the action has ended, and no line will be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputEnd {
    /// How the action ended.
    pub state: ActionState,
    /// The place of the last line.
    pub next: u64,
}

/// That an environment became another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusChangeView {
    /// Its number: newer ones have greater.
    pub id: u64,
    /// When.
    pub at: Time,
    /// How it was; null where it was not.
    pub was: Option<EnvironmentStatus>,
    /// How it became; null where it is gone.
    pub became: Option<EnvironmentStatus>,
    /// Why.
    pub because: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_wire_are_those_of_the_model() {
        for status in Status::ALL {
            let wire = EnvironmentStatus::from(status);
            assert_eq!(wire.as_str(), status.as_str());
            assert_eq!(serde_json::to_value(wire).unwrap(), status.as_str());
            assert_eq!(Status::from(wire), status);
            assert_eq!(wire.is_pending(), status.is_pending());
        }
        for deed in Deed::ALL {
            let wire = ActionKind::from(deed);
            assert_eq!(wire.as_str(), deed.as_str());
            assert_eq!(serde_json::to_value(wire).unwrap(), deed.as_str());
        }
        for state in State::ALL {
            let wire = ActionState::from(state);
            assert_eq!(wire.as_str(), state.as_str());
            assert_eq!(serde_json::to_value(wire).unwrap(), state.as_str());
            assert_eq!(wire.ended(), state.is_ended());
        }
    }
}
