//! What people ask of environments: done once, however often it is asked with the same key.

use super::amending::amend;
use super::beginning::{begin, scope};
use super::cancelling::cancel;
use super::changing::change;
use super::creating::create;
use super::{
    ActionDraft, Amendment, Begun, Busy, Cancelled, EnvironmentDraft, EnvironmentError,
    known_by_name,
};
use crate::Store;
use crate::audit::Actor;
use crate::body::{Scope, Tx};
use crate::keys::{self, Keyed, Repeat};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::status::Deed;
use model::id::ActionId;
use model::name::Name;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that somebody asks.
#[derive(Debug, Clone)]
pub enum Ask {
    /// That one comes.
    Create(Box<EnvironmentDraft>),
    /// That something is done to one that is there.
    Begin(Box<ActionDraft>),
    /// The same, and that other things are said of it.
    Change(Box<ActionDraft>, Amendment),
    /// That other things are said of it.
    Amend {
        /// Of which.
        name: EnvironmentName,
        /// The generation that who asks has seen; another is refused.
        generation: Option<u64>,
        /// What is said.
        amendment: Amendment,
        /// Who asks.
        actor: Actor,
    },
    /// That something is called off.
    Cancel {
        /// What is done to which.
        name: EnvironmentName,
        /// What.
        busy: Busy,
        /// Whether nobody waits for the server that began it, where nobody hears of that.
        force: bool,
        /// Who asks.
        actor: Actor,
    },
}

/// What whoever asked is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentAnswer {
    /// Which environment.
    pub name: EnvironmentName,
    /// Its generation, unless it is gone.
    pub generation: Option<u64>,
    /// What is done to it, or was.
    pub action: Option<Undertaken>,
}

/// What is done to an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undertaken {
    /// Which action.
    pub id: ActionId,
    /// What.
    pub deed: Deed,
    /// How far that has come.
    pub state: State,
}

impl Ask {
    /// How much a question has for itself that asks this: of two with one key the second hears what
    /// the first was answered.
    fn scope(&self, keyed: bool) -> Scope {
        match self {
            _ if keyed => Scope::Whole,
            Self::Create(_) => Scope::Whole,
            Self::Begin(draft) | Self::Change(draft, _) => scope(draft.deed),
            Self::Amend { .. } | Self::Cancel { .. } => Scope::Rows,
        }
    }
}

impl Store {
    /// Does what somebody asks; a repeat gets the answer of the first, and nothing is done.
    pub async fn ask(
        &self,
        project: &Name,
        ask: Ask,
        repeat: Option<Repeat>,
        now: Timestamp,
    ) -> Result<EnvironmentAnswer, EnvironmentError> {
        let scope = ask.scope(repeat.is_some());
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let Some(repeat) = &repeat else {
                return act(tx, &project, &ask, now);
            };
            let keyed = Keyed::of(&project, repeat);
            if let Some(answer) = keys::recall::<_, EnvironmentError>(tx, keyed)? {
                return Ok(answer);
            }
            let answer = act(tx, &project, &ask, now)?;
            keys::remember(tx, keyed, &answer, now)?;
            Ok(answer)
        };
        self.runner.write(scope, question).await
    }

    /// What whoever asked the same with the same key was told: whoever repeats it hears that,
    /// whatever would be said to it now.
    pub async fn asked(
        &self,
        project: &Name,
        repeat: &Repeat,
    ) -> Result<Option<EnvironmentAnswer>, EnvironmentError> {
        let (project, repeat) = (project.clone(), repeat.clone());
        let question = move |tx: &mut dyn Tx| keys::recall(tx, Keyed::of(&project, &repeat));
        self.runner.read(question).await
    }
}

fn act(
    tx: &mut dyn Tx,
    project: &Name,
    ask: &Ask,
    now: Timestamp,
) -> Result<EnvironmentAnswer, EnvironmentError> {
    match ask {
        Ask::Create(draft) => {
            let begun = create(tx, draft, now)?;
            Ok(told(&draft.name, Deed::Create, begun))
        }
        Ask::Begin(draft) => {
            let begun = begin(tx, draft, now)?;
            Ok(told(&draft.name, draft.deed, begun))
        }
        Ask::Change(draft, amendment) => {
            let begun = change(tx, draft, amendment, now)?;
            Ok(told(&draft.name, draft.deed, begun))
        }
        Ask::Amend {
            name,
            generation,
            amendment,
            actor,
        } => {
            let of = (project, name);
            let generation = amend(tx, of, *generation, amendment, actor, now)?;
            Ok(EnvironmentAnswer {
                name: name.clone(),
                generation: Some(generation),
                action: None,
            })
        }
        Ask::Cancel {
            name,
            busy,
            force,
            actor,
        } => {
            let state = match cancel(tx, project, busy.action, (actor, *force), now)? {
                Cancelled::AtOnce => State::Cancelled,
                Cancelled::Asked => busy.state,
            };
            // One that was to be created never was.
            let known = known_by_name(tx, project, name)?;
            Ok(EnvironmentAnswer {
                name: name.clone(),
                generation: known.map(|known| known.generation),
                action: Some(Undertaken {
                    id: busy.action,
                    deed: busy.deed,
                    state,
                }),
            })
        }
    }
}

fn told(name: &EnvironmentName, deed: Deed, begun: Begun) -> EnvironmentAnswer {
    EnvironmentAnswer {
        name: name.clone(),
        generation: (deed != Deed::Delete).then_some(begun.generation),
        action: Some(Undertaken {
            id: begun.action,
            deed,
            state: begun.state,
        }),
    }
}
