//! The contract of those who carry messages to somebody outside.
//!
//! A message arrives at least once: whoever dies after it was taken and before that was recorded
//! has it carried again, under the same id. Those who take messages tell them apart by it.

use crate::Context;
use model::environment::EnvironmentName;
use model::environment::delivery::Answer;
use model::environment::settings::Settings;
use model::id::{DeliveryId, EnvironmentId};
use model::name::Name;

/// Carries messages of the kinds that it knows.
pub trait Courier: Send + Sync + 'static {
    /// Carries a message once, and says what became of it.
    ///
    /// Must bear being dropped at any point: whoever takes too long is.
    fn carry(&self, cx: &Context, parcel: &Parcel) -> impl Future<Output = Carried> + Send;
}

/// A message, with all there is to know of how it is carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// Which: the same as ever, however often it is carried.
    pub id: DeliveryId,
    /// Whose.
    pub project: Name,
    /// Who carries it.
    pub kind: String,
    /// Who is told, in the words of the project.
    pub target: String,
    /// Of which environment.
    pub environment: Option<(EnvironmentId, EnvironmentName)>,
    /// What it says: a document of its kind.
    pub document: String,
    /// What the project says now, where that can be read.
    pub settings: Option<Settings>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a message of which nobody records that it arrived is carried again"]
pub struct Carried {
    /// What whoever it is for made of it.
    pub answer: Answer,
    /// What they said, or why nobody could be told; without anything secret.
    pub said: String,
}

impl Carried {
    /// Of a message that nobody will ever take.
    pub fn never(said: impl Into<String>) -> Self {
        Self {
            answer: Answer::Never,
            said: said.into(),
        }
    }

    /// Of a message that may be taken later.
    pub fn later(said: impl Into<String>) -> Self {
        Self {
            answer: Answer::Later(None),
            said: said.into(),
        }
    }
}
