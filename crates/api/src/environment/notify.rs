//! Who is told what becomes of environments, and messages to them, on the wire.

use crate::time::Time;
use model::environment::{delivery, notify};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody may want to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyEvent {
    /// An environment is on its way from one status to another.
    Pending,
    /// It runs as it should.
    Running,
    /// It does not, in whichever way.
    Failing,
    /// It rests.
    Archived,
    /// What it has stored could not be removed.
    CleanupFailed,
    /// It is no more.
    Gone,
    /// What was done to it failed, and it is as it was.
    ActionFailed,
    /// It will not be up for much longer.
    ExpiresSoon,
}

impl NotifyEvent {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        self.occasion().as_str()
    }

    /// The same in the model.
    pub const fn occasion(self) -> notify::Occasion {
        match self {
            Self::Pending => notify::Occasion::Pending,
            Self::Running => notify::Occasion::Running,
            Self::Failing => notify::Occasion::Failing,
            Self::Archived => notify::Occasion::Archived,
            Self::CleanupFailed => notify::Occasion::CleanupFailed,
            Self::Gone => notify::Occasion::Gone,
            Self::ActionFailed => notify::Occasion::ActionFailed,
            Self::ExpiresSoon => notify::Occasion::ExpiresSoon,
        }
    }

    /// The same from the model; none where nobody can want it.
    pub const fn of(occasion: notify::Occasion) -> Option<Self> {
        Some(match occasion {
            notify::Occasion::Pending => Self::Pending,
            notify::Occasion::Running => Self::Running,
            notify::Occasion::Failing => Self::Failing,
            notify::Occasion::Archived => Self::Archived,
            notify::Occasion::CleanupFailed => Self::CleanupFailed,
            notify::Occasion::Gone => Self::Gone,
            notify::Occasion::ActionFailed => Self::ActionFailed,
            notify::Occasion::ExpiresSoon => Self::ExpiresSoon,
            notify::Occasion::Test => return None,
        })
    }
}

/// Where a signed request goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotifyWebhook {
    /// To whom; shown to everybody who may see the settings.
    pub url: String,
    /// What it is signed with: an entry of a secret of the project, as `NAME/ENTRY`.
    pub secret: String,
}

/// Where a sentence goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotifySlack {
    /// The address of the incoming webhook, which is a secret itself: an entry of a secret of the
    /// project, as `NAME/ENTRY`.
    pub secret: String,
}

/// Somebody who is told what becomes of environments: by either a webhook or Slack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotifyTarget {
    /// What people call it.
    pub name: String,
    /// A request with a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<NotifyWebhook>,
    /// A sentence to a channel of Slack, or of whoever takes the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack: Option<NotifySlack>,
    /// What it is told of; without any, all but `pending`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<NotifyEvent>,
    /// Only of environments with all of these labels, each as `LABEL` or `LABEL=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl From<notify::Target> for NotifyTarget {
    fn from(target: notify::Target) -> Self {
        let notify::Target {
            name,
            way,
            events,
            labels,
        } = target;
        let (webhook, slack) = match way {
            notify::Way::Webhook(notify::Webhook { url, secret }) => {
                let secret = secret.to_string();
                let url = url.into();
                (Some(NotifyWebhook { url, secret }), None)
            }
            notify::Way::Slack(secret) => {
                let secret = secret.to_string();
                (None, Some(NotifySlack { secret }))
            }
        };
        let label = |(label, value): (String, Option<String>)| match value {
            Some(value) => format!("{label}={value}"),
            None => label,
        };
        Self {
            name: name.into(),
            webhook,
            slack,
            events: events.into_iter().filter_map(NotifyEvent::of).collect(),
            labels: labels.into_iter().map(label).collect(),
        }
    }
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryState {
    /// It will be sent, for the first time or again.
    Waiting,
    /// It is being sent.
    Sending,
    /// Whoever it is for has taken it.
    Delivered,
    /// It is not sent any more, unless somebody asks for it.
    GivenUp,
}

impl DeliveryState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => delivery::State::Waiting.as_str(),
            Self::Sending => delivery::State::Sending.as_str(),
            Self::Delivered => delivery::State::Delivered.as_str(),
            Self::GivenUp => delivery::State::GivenUp.as_str(),
        }
    }
}

impl From<delivery::State> for DeliveryState {
    fn from(state: delivery::State) -> Self {
        match state {
            delivery::State::Waiting => Self::Waiting,
            delivery::State::Sending => Self::Sending,
            delivery::State::Delivered => Self::Delivered,
            delivery::State::GivenUp => Self::GivenUp,
        }
    }
}

impl From<DeliveryState> for delivery::State {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Waiting => Self::Waiting,
            DeliveryState::Sending => Self::Sending,
            DeliveryState::Delivered => Self::Delivered,
            DeliveryState::GivenUp => Self::GivenUp,
        }
    }
}

/// A message to somebody outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// Its id, which whoever is told sees, too: the same id is the same message.
    pub id: String,
    /// How it is sent: `webhook`, `slack`, `script`.
    pub kind: String,
    /// Who is told.
    pub target: String,
    /// Of which environment; absent where somebody only tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What it is about: `running`, `failing`, and so on.
    pub event: String,
    /// How far it has come.
    pub state: DeliveryState,
    /// How often it was sent.
    pub tries: u32,
    /// When it is sent next, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Time>,
    /// What was answered last, or why nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// When it came.
    pub created_at: Time,
    /// When it arrived, or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// Whom a message is sent to that tells of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestRequest {
    /// A target of the project's settings.
    pub target: String,
}
