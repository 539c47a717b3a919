//! What proves that a source is who it says, opened once for each of its versions.
//!
//! Each opening of a secret is audited, and strangers may ask as often as they like: what was opened
//! is kept as long as nobody changes it.

use model::name::Name;
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::Actor;

use crate::app::App;
use crate::problem::Problem;

/// The most that are kept at once; beyond it all are forgotten, and opened again.
const KEPT_MAX: usize = 1_000;

/// Which version of a secret: one that was removed begins to count anew.
type Version = (u64, Timestamp);

/// Which entry of which secret.
type Which = (Name, Name, EntryName);

/// What was opened.
#[derive(Default)]
pub(crate) struct Keys(Mutex<BTreeMap<Which, (Version, Arc<Secret>)>>);

impl Keys {
    /// What a source and we know; none where nobody has set it.
    pub(crate) async fn of(
        &self,
        app: &App,
        (project, source): (&Name, &Name),
        secret: &SecretRef,
    ) -> Result<Option<Arc<Secret>>, Problem> {
        let Some(entry) = &secret.key else {
            return Ok(None);
        };
        let Some(row) = app.store().secret(project, &secret.name).await? else {
            return Ok(None);
        };
        let version = (row.version, row.updated_at);
        let which = (project.clone(), secret.name.clone(), entry.clone());
        if let Some(known) = self.known(&which, version) {
            return Ok(Some(known));
        }
        let place = Place {
            project: project.clone(),
            owner: Owner::Secret(secret.name.clone()),
            entry: entry.clone(),
        };
        let actor = Actor::new(format!("git/{source}"), "to know its service by");
        let opened = app.vault().open(&place, &actor).await?.map(Arc::new);
        if let Some(value) = &opened {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(which, (version, Arc::clone(value)));
        }
        Ok(opened)
    }

    fn known(&self, which: &Which, version: Version) -> Option<Arc<Secret>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (opened, value) = kept.get(which)?;
        (*opened == version).then(|| Arc::clone(value))
    }
}
