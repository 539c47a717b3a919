//! What people say of an environment: whose it is, what it is found by, how long it may be there.

use super::creating::store_labels;
use super::{About, EnvironmentError, enter, given, known_by_name, object, store_body};
use crate::Store;
use crate::audit::{self, Actor};
use crate::body::{Scope, Tx};
use crate::events::note;
use model::environment::EnvironmentName;
use model::name::Name;
use model::time::Timestamp;

impl Store {
    /// Changes what people say of an environment, all of it; nothing is done to it. Answers its
    /// generation.
    pub async fn amend_environment(
        &self,
        (project, name): (&Name, &EnvironmentName),
        generation: Option<u64>,
        about: About,
        actor: Actor,
        now: Timestamp,
    ) -> Result<u64, EnvironmentError> {
        let (project, name) = (project.clone(), name.clone());
        let question =
            move |tx: &mut dyn Tx| amend(tx, (&project, &name), generation, &about, &actor, now);
        self.runner.write(Scope::Rows, question).await
    }
}

pub(super) fn amend(
    tx: &mut dyn Tx,
    (project, name): (&Name, &EnvironmentName),
    generation: Option<u64>,
    about: &About,
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
    if before == *about {
        return Ok(found);
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
