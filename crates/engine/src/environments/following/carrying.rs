//! Carries out what is decided about one request.
//!
//! **Invariant:** what is done is written down with the environment in the same transaction, so
//! whoever comes after a crash decides that nothing is left to be done.

use super::super::Shared;
use super::super::configuring::{configuration, context, context_with};
use crate::secrets::{given, opener};
use driver::deploy::{Deployer, Judged, Subject};
use model::environment::EnvironmentName;
use model::environment::config::Edits;
use model::environment::git::{self, Source};
use model::environment::settings::Settings;
use model::environment::status::Deed;
use model::id::EnvironmentId;
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret, SecretRef};
use plan::environment::as_deployed;
use plan::environment::git::{Decision, Settled, There, decide};
use std::sync::Arc;
use store::{
    About, ActionDraft, Actor, Amendment, Effective, EnvironmentDraft, EnvironmentError,
    EnvironmentRow, GitRequest, GitStep, SealedRow,
};
use tokio_util::sync::CancellationToken;

/// The longest name of an owner.
const OWNER_LEN_MAX: usize = 128;

/// What came of a request.
pub(super) enum Carried {
    /// This was made of it, and this is what to tell.
    Settled(Option<Settled>, String),
    /// This was made of it at first: it waits until that has ended.
    Begun(Settled, String),
    /// It waits for somebody to bring its environment back.
    Held(String),
    /// It waits until its environment is no longer busy, or is looked at again at once.
    Busy,
    /// It cannot be done, and trying again would not help.
    Refused(String),
    /// It could not be done, and may be later.
    Failed(String),
}

/// Why something was not done.
enum Unable {
    /// Something was told of the request meanwhile, which is heeded first.
    Overtaken,
    Refused(String),
    Failed(String),
}

fn failed(error: &dyn std::fmt::Display) -> Unable {
    Unable::Failed(error.to_string())
}

/// Why the store did not take it.
fn refused(error: &EnvironmentError) -> Unable {
    if matches!(error, EnvironmentError::Overtaken) {
        Unable::Overtaken
    } else {
        failed(error)
    }
}

/// Decides about a request, and has that done.
pub(super) async fn carry<D: Deployer>(
    shared: &Shared<D>,
    request: &GitRequest,
    stop: &CancellationToken,
) -> Carried {
    match decided(shared, request, stop).await {
        Ok(carried) => carried,
        Err(Unable::Overtaken) => Carried::Busy,
        Err(Unable::Refused(why)) => Carried::Refused(why),
        Err(Unable::Failed(why)) => Carried::Failed(why),
    }
}

async fn decided<D: Deployer>(
    shared: &Shared<D>,
    request: &GitRequest,
    stop: &CancellationToken,
) -> Result<Carried, Unable> {
    let settings = shared.store.environment_settings(&request.project).await;
    let settings = settings.map_err(|error| failed(&error))?;
    let settings = settings.map(|row| row.settings);
    let source = settings
        .as_ref()
        .and_then(|settings| settings.source(&request.source));
    let row = match request.environment {
        Some(id) => shared.store.environment_by_id(id).await,
        None => Ok(None),
    };
    let row = row.map_err(|error| failed(&error))?;
    let there = row.as_ref().map(|row| There {
        standing: row.standing(),
        sha: row.origin.as_ref().map_or("", |origin| &origin.sha),
    });
    let decision = decide(source, &request.event, request.settled.as_ref(), there);
    let settles = decision.settles(&request.event);
    let deed = match decision {
        Decision::Do(deed) => deed,
        Decision::Nothing(idle) => return Ok(Carried::Settled(settles, idle.as_str().to_owned())),
        Decision::Held(rest) => return Ok(Carried::Held(rest.as_str().to_owned())),
        Decision::Later(_) => return Ok(Carried::Busy),
    };
    let (Some(settings), Some(source)) = (&settings, source) else {
        return Ok(Carried::Settled(None, String::new()));
    };
    let has = there.map_or("", |there| there.sha);
    let owes = decision.owes(&request.event, &settings.deploy, has);
    let hand = Hand {
        shared,
        request,
        settings,
        source,
        stop,
        settled: owes.clone().or_else(|| settles.clone()),
        actor: Actor::new(format!("git/{}", source.name), request.event.url.clone()),
    };
    let name = match &row {
        Some(row) => hand.change(row, deed).await?,
        None => hand.create().await?,
    };
    let said = format!("{deed} {name}");
    Ok(match owes {
        Some(owed) => Carried::Begun(owed, said),
        None => Carried::Settled(settles, said),
    })
}

/// What it takes to do something about a request.
struct Hand<'a, D> {
    shared: &'a Shared<D>,
    request: &'a GitRequest,
    settings: &'a Settings,
    source: &'a Source,
    stop: &'a CancellationToken,
    /// What is made of the request.
    settled: Option<Settled>,
    actor: Actor,
}

impl<D: Deployer> Hand<'_, D> {
    /// What is written down with what is done.
    fn step(&self) -> Option<GitStep> {
        let settled = self.settled.clone();
        settled.map(|settled| self.request.step(settled))
    }

    /// Makes an environment for the request, under the first name that is free.
    async fn create(&self) -> Result<EnvironmentName, Unable> {
        let (shared, event) = (self.shared, &self.request.event);
        let name = self.name().await?;
        let project = &self.request.project;
        let id = shared.store.environment_to_be(project, &name).await;
        let id = id.map_err(|error| failed(&error))?;
        let edits = self.source.edits(event, &self.settings.tag);
        let fresh = self.lent().await?;
        let effective = self.defaults(&edits).await?;
        let effective = self
            .approved((&name, id), effective, Arc::clone(&fresh))
            .await?;
        let mut sealed = Vec::with_capacity(fresh.len());
        for (entry, value) in &*fresh {
            let place = Place {
                project: project.clone(),
                owner: Owner::Environment(id),
                entry: entry.clone(),
            };
            let under = shared.vault.seal(&place, value).await;
            let under = under.map_err(|error| failed(&error))?;
            sealed.push(SealedRow {
                place,
                sealed: under,
            });
        }
        let draft = EnvironmentDraft {
            project: project.clone(),
            name: name.clone(),
            id,
            about: self.about(),
            edits,
            sealed,
            effective,
            actor: self.actor.clone(),
            origin: Some(self.source.origin(event)),
            step: self.step(),
        };
        let created = shared.store.create_environment(draft, shared.clock.now());
        created.await.map_err(|error| refused(&error))?;
        Ok(name)
    }

    /// The first name that nobody has.
    async fn name(&self) -> Result<EnvironmentName, Unable> {
        let names = self
            .source
            .environment
            .names(&self.source.name, &self.request.event);
        for name in names {
            let taken = self.shared.store.environment(&self.request.project, &name);
            if taken.await.map_err(|error| failed(&error))?.is_none() {
                return Ok(name);
            }
        }
        Err(Unable::Refused("every name for it is taken".to_owned()))
    }

    fn about(&self) -> About {
        let event = &self.request.event;
        let owner = event.author.clone().unwrap_or_default();
        let owner = owner.chars().take(OWNER_LEN_MAX / 4).collect();
        let mut labels = self.source.beginning.labels.clone();
        labels.insert(
            format!("{}source", git::LABELS),
            self.source.name.to_string(),
        );
        labels.insert(format!("{}request", git::LABELS), event.request.to_string());
        let expires = self.source.beginning.expires;
        About {
            owner,
            labels,
            expires_at: expires.map(|span| self.shared.clock.now().plus(span)),
            ..About::default()
        }
    }

    /// Has an environment that is there become what the request says, where something else comes of
    /// it at all.
    async fn change(&self, row: &EnvironmentRow, deed: Deed) -> Result<EnvironmentName, Unable> {
        let event = &self.request.event;
        let goes = deed == Deed::Archive;
        let as_deployed = as_deployed(deed, &self.settings.deploy);
        let edits =
            (!as_deployed).then(|| self.source.tagged(event, &self.settings.tag, &row.edits));
        let effective = match &edits {
            Some(edits) => self.defaults(edits).await?,
            None => self.recorded(row).await?,
        };
        let effective = if goes {
            effective
        } else {
            let of = (&row.name, row.id);
            self.approved(of, effective, Arc::default()).await?
        };
        let draft = ActionDraft {
            project: row.project.clone(),
            name: row.name.clone(),
            deed,
            force: false,
            generation: Some(row.generation),
            seen: None,
            edits,
            sealed: Vec::new(),
            sealed_until: None,
            effective,
            actor: self.actor.clone(),
            cause: None,
            origin: (!as_deployed).then(|| self.source.origin(event)),
            step: self.step(),
        };
        let now = self.shared.clock.now();
        let expires = self.source.beginning.expires;
        let prolonged = expires.filter(|_| !goes && row.about.expires_at.is_some());
        let begun = match prolonged {
            Some(span) => {
                let until = Amendment::Until(Some(now.plus(span)));
                let changed = self.shared.store.change_environment(draft, until, now);
                changed.await
            }
            None => self.shared.store.begin_action(draft, now).await,
        };
        begun.map_err(|error| refused(&error))?;
        Ok(row.name.clone())
    }

    /// What the settings of the source that are secret are given.
    async fn lent(&self) -> Result<Arc<Vec<(EntryName, Secret)>>, Unable> {
        let lent = &self.source.beginning.secrets;
        let mut fresh = Vec::new();
        for lent in lent.iter().filter(|_| !self.request.event.fork) {
            let SecretRef { name, key } = &lent.secret;
            let unset = || Unable::Failed(format!("secret {} is not set", lent.secret));
            let place = Place {
                project: self.request.project.clone(),
                owner: Owner::Secret(name.clone()),
                entry: key.clone().ok_or_else(unset)?,
            };
            let opened = self.shared.vault.open(&place, &self.actor).await;
            let opened = opened.map_err(|error| failed(&error))?;
            fresh.push((
                Edits::entry(lent.level, &lent.key),
                opened.ok_or_else(unset)?,
            ));
        }
        Ok(Arc::new(fresh))
    }

    /// What an environment was last deployed with: it goes also when nobody can tell defaults.
    async fn recorded(&self, row: &EnvironmentRow) -> Result<Effective, Unable> {
        let recorded = self.shared.store.deployed_with(row.id, &row.edits).await;
        match recorded.map_err(|error| failed(&error))? {
            Some(effective) => Ok(effective),
            None => self.defaults(&row.edits).await,
        }
    }

    /// What comes of edits and defaults.
    async fn defaults(&self, edits: &Edits) -> Result<Effective, Unable> {
        let (shared, request) = (self.shared, self.request);
        let origin = format!("request {}", request.event.url);
        let cx = context(
            shared,
            &request.project,
            origin,
            (self.stop.child_token(), 0),
        );
        let told = configuration(&*shared.deployer, &cx, self.settings, edits).await;
        told.map_err(Unable::Failed)
    }

    /// A configuration, if the project's check takes it.
    async fn approved(
        &self,
        (name, id): (&EnvironmentName, EnvironmentId),
        effective: Effective,
        fresh: Arc<Vec<(EntryName, Secret)>>,
    ) -> Result<Effective, Unable> {
        let subject = Subject {
            id: Some(id),
            project: self.request.project.clone(),
            name: name.clone(),
            settings: self.settings.clone(),
            application: effective.application.clone(),
            deployment: effective.deployment.clone(),
        };
        let (store, vault) = (self.shared.store.clone(), self.shared.vault.clone());
        let stored = opener(
            store,
            vault,
            self.request.project.clone(),
            self.actor.clone(),
        );
        let given = given(Owner::Environment(id), fresh, stored);
        let cx = context_with(self.shared, given, self.stop.child_token());
        let judged = self.shared.deployer.judge(&cx, &subject);
        let limit = self.settings.patience.check.saturating_mul(2);
        let judged = tokio::time::timeout(limit, judged).await;
        let late = |_| Unable::Failed("the project's check took too long".to_owned());
        match judged.map_err(late)?.map_err(|error| failed(&error))? {
            Judged::Good => Ok(effective),
            Judged::Bad(said) => Err(Unable::Refused(format!(
                "the project's check does not take it: {}",
                said.trim()
            ))),
            Judged::Wrong(faults) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                let faults = faults.join("; ");
                Err(Unable::Refused(format!(
                    "settings have values that they cannot have: {faults}"
                )))
            }
        }
    }
}
