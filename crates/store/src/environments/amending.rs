//! What people say of an environment: whose it is, what it is found by, how long it may be there.
//!
//! What stays is what there is in the transaction that changes the rest: of many who say something at
//! once nobody takes back what another said.

use super::creating::store_labels;
use super::{About, EnvironmentError, enter, given, known_by_name, object, store_body};
use crate::Store;
use crate::audit::{self, Actor};
use crate::body::{Scope, Tx};
use crate::events::note;
use model::environment::{EnvironmentName, LABELS_MAX};
use model::name::Name;
use model::time::Timestamp;
use std::collections::BTreeMap;

/// What is to be said of an environment from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amendment {
    /// This, and nothing else.
    Whole(About),
    /// This; the rest stays.
    Partly {
        /// Whose it is.
        owner: Option<String>,
        /// What it is found by; a label without a value goes.
        labels: BTreeMap<String, Option<String>>,
        /// What else there is to know.
        notes: Option<String>,
        /// Whether it is to stay.
        protected: Option<bool>,
    },
    /// Until when it may be up; the rest stays.
    Until(Option<Timestamp>),
}

impl From<About> for Amendment {
    fn from(about: About) -> Self {
        Self::Whole(about)
    }
}

impl Amendment {
    /// What is said after it.
    pub fn applied(&self, before: &About) -> About {
        let mut about = before.clone();
        match self {
            Self::Whole(whole) => about.clone_from(whole),
            Self::Partly {
                owner,
                labels,
                notes,
                protected,
            } => {
                for (label, value) in labels {
                    match value {
                        Some(value) => drop(about.labels.insert(label.clone(), value.clone())),
                        None => drop(about.labels.remove(label)),
                    }
                }
                about.owner = owner.clone().unwrap_or(about.owner);
                about.notes = notes.clone().unwrap_or(about.notes);
                about.protected = protected.unwrap_or(about.protected);
            }
            Self::Until(end) => about.expires_at = *end,
        }
        about
    }
}

impl Store {
    /// Changes what people say of an environment; nothing is done to it. Answers its generation.
    pub async fn amend_environment(
        &self,
        (project, name): (&Name, &EnvironmentName),
        generation: Option<u64>,
        amendment: impl Into<Amendment>,
        actor: Actor,
        now: Timestamp,
    ) -> Result<u64, EnvironmentError> {
        let (project, name) = (project.clone(), name.clone());
        let amendment = amendment.into();
        let question = move |tx: &mut dyn Tx| {
            amend(tx, (&project, &name), generation, &amendment, &actor, now)
        };
        self.runner.write(Scope::Rows, question).await
    }
}

pub(super) fn amend(
    tx: &mut dyn Tx,
    (project, name): (&Name, &EnvironmentName),
    generation: Option<u64>,
    amendment: &Amendment,
    actor: &Actor,
    now: Timestamp,
) -> Result<u64, EnvironmentError> {
    let known = known_by_name(tx, project, name)?;
    let mut known = known.ok_or_else(|| EnvironmentError::NotFound { name: name.clone() })?;
    let found = known.generation;
    if let Some(expected) = generation.filter(|seen| *seen != found) {
        return Err(EnvironmentError::Stale { expected, found });
    }
    let before = About {
        owner: known.owner.clone(),
        labels: known.body.labels.clone(),
        notes: known.body.notes.clone(),
        protected: known.standing.protected,
        expires_at: known.expires_at,
    };
    let about = &amendment.applied(&before);
    if before == *about {
        return Ok(found);
    }
    let labels = about.labels.len();
    if labels > LABELS_MAX && about.labels != before.labels {
        return Err(EnvironmentError::Labels { found: labels });
    }
    tx.execute(
        "UPDATE environments SET generation = $2, owner = $3, protected = $4, expires_at = $5, updated_at = $6,
             used_at = $6 WHERE id = $1",
        &[
            known.id.into(),
            (found + 1).into(),
            (&about.owner).into(),
            about.protected.into(),
            about.expires_at.into(),
            now.into(),
        ],
    )?;
    known.body.labels.clone_from(&about.labels);
    known.body.notes.clone_from(&about.notes);
    if about.expires_at != before.expires_at {
        known.body.given = given(about.expires_at, now);
    }
    store_body(tx, known.id, &known.body)?;
    store_labels(tx, project, known.id, about)?;
    let detail = told(&before, about);
    let message = audit::kept(format!("{}: {detail}", actor.name));
    note(
        tx,
        (project, now),
        "environment.changed",
        object(name),
        message,
    );
    let by = (actor, "environment.amend");
    enter(
        tx,
        (project, name),
        by,
        (Some(found), Some(found + 1)),
        detail,
        now,
    );
    Ok(found + 1)
}

/// What is said otherwise than before.
fn told(before: &About, after: &About) -> String {
    let mut words = Vec::new();
    if before.owner != after.owner {
        words.push(format!("owner {}", after.owner));
    }
    if before.labels != after.labels {
        let labels = after.labels.iter();
        let labels: Vec<_> = labels
            .map(|(label, value)| format!("{label}={value}"))
            .collect();
        words.push(format!("labels {}", labels.join(" ")).trim_end().to_owned());
    }
    if before.notes != after.notes {
        words.push("notes".to_owned());
    }
    if before.protected != after.protected {
        let word = if after.protected {
            "protected"
        } else {
            "not protected"
        };
        words.push(word.to_owned());
    }
    if before.expires_at != after.expires_at {
        let end = after
            .expires_at
            .map_or("never".to_owned(), Timestamp::to_rfc3339);
        words.push(format!("expires {end}"));
    }
    words.join(", ")
}
