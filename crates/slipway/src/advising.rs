//! Tells the server what environments would be configured with, by the hands of those who deploy
//! them.

use crate::aside;
use driver::deploy::{self, Deployer, Judged, Looked, Subject};
use driver::{Clock, Context, Error};
use engine::Inits;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use model::environment::config::Defaults;
use model::environment::schema::KnownKey;
use model::environment::settings::Settings;
use model::environment::status::Look;
use model::name::Name;
use model::sealed::Owner;
use server::{Advice, Advise, Candidate, Glance, Of, Trouble, Unadvised, Verdict};
use std::sync::Arc;
use std::time::Duration;
use store::{Actor, Store};
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// Those who deploy environments, asked for their advice.
pub(crate) struct Advisers<D> {
    pub(crate) deployer: Arc<D>,
    pub(crate) store: Store,
    pub(crate) vault: Vault,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    /// What is run before they are asked.
    pub(crate) inits: Inits,
}

/// How long somebody who asks waits for what is run before: longer, and they are told.
const INIT_WITHIN: Duration = Duration::from_secs(5);

impl<D> Advisers<D> {
    /// What they get to tell defaults: nothing that is secret.
    fn context(&self) -> Context {
        let nobody = (Name::default_project(), Actor::from("environments"));
        aside::context(
            (&self.store, &self.vault, self.clock),
            nobody,
            self.stop.clone(),
        )
    }

    /// What they get to judge one environment: secrets are opened in the name of who asks, and
    /// those that nobody has stored yet are given.
    fn about(&self, candidate: &Candidate) -> Context {
        let who = (candidate.project.clone(), candidate.actor.clone());
        let stored = engine::opener(self.store.clone(), self.vault.clone(), who.0, who.1);
        let owner = Owner::Environment(candidate.id);
        let opener = engine::given(owner, Arc::clone(&candidate.fresh), stored);
        aside::context_with(self.clock, opener, self.stop.clone())
    }

    /// Has that been run which comes before everything else, when this completes.
    async fn initialised(&self, settings: &Settings) -> Result<(), Unadvised> {
        let ended = tokio::time::timeout(INIT_WITHIN, self.inits.ended(settings)).await;
        ended.map_err(|_| Unadvised {
            trouble: Trouble::Early,
            what: "the project's script `init` has not ended, and comes before all others".to_owned(),
            hint: "try again when it has ended; one that hangs is ended when its time is over (`actionSeconds` of the project's settings)".to_owned(),
        })
    }
}

impl<D: Deployer> Advise for Advisers<D> {
    fn defaults<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Defaults> {
        async move {
            self.initialised(settings).await?;
            let cx = self.context();
            let told = self.deployer.defaults(&cx, settings, which(of));
            told.await.map_err(unadvised)
        }
        .boxed()
    }

    fn keys<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Vec<KnownKey>> {
        async move {
            self.initialised(settings).await?;
            let cx = self.context();
            let told = self.deployer.keys(&cx, settings, which(of));
            told.await.map_err(unadvised)
        }
        .boxed()
    }

    fn lacking<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Vec<Unadvised>> {
        async move {
            let lacking = self.deployer.lacking(settings).await;
            lacking.into_iter().map(unadvised).collect()
        }
        .boxed()
    }

    fn judge<'a>(&'a self, candidate: &'a Candidate) -> Advice<'a, Verdict> {
        async move {
            self.initialised(&candidate.settings).await?;
            let (cx, subject) = (self.about(candidate), subject(candidate));
            let judged = self.deployer.judge(&cx, &subject).await;
            Ok(match judged.map_err(unadvised)? {
                Judged::Good => Verdict::Good,
                Judged::Bad(said) => Verdict::Bad(said),
                Judged::Wrong(faults) => Verdict::Wrong(faults),
            })
        }
        .boxed()
    }

    fn look<'a>(&'a self, candidate: &'a Candidate, look: Look) -> Advice<'a, Glance> {
        async move {
            self.initialised(&candidate.settings).await?;
            let (cx, subject) = (self.about(candidate), subject(candidate));
            let looked = self.deployer.look(&cx, &subject, look).await;
            let Looked { seen, said } = looked.map_err(unadvised)?;
            Ok(Glance { seen, said })
        }
        .boxed()
    }
}

const fn which(of: Of<'_>) -> deploy::Of<'_> {
    match of {
        Of::Deployment => deploy::Of::Deployment,
        Of::Application(deployment) => deploy::Of::Application(deployment),
    }
}

fn subject(candidate: &Candidate) -> Subject {
    Subject {
        id: Some(candidate.id),
        project: candidate.project.clone(),
        name: candidate.name.clone(),
        settings: candidate.settings.clone(),
        application: candidate.application.clone(),
        deployment: candidate.deployment.clone(),
    }
}

fn unadvised(error: Error) -> Unadvised {
    let trouble = error.code().map_or(Trouble::Ours, trouble);
    let Error { attempted, hint } = error;
    Unadvised {
        trouble,
        what: attempted,
        hint,
    }
}

/// Whose matter an error is, by its code.
fn trouble(code: &str) -> Trouble {
    match code {
        "SCRIPT-001" | "SCRIPT-002" | "SCRIPT-003" | "SCRIPT-014" => Trouble::Missing,
        "HELM-001" | "HELM-002" | "HELM-003" | "HELM-004" | "HELM-005" | "HELM-006" => {
            Trouble::Missing
        }
        "SCRIPT-004" | "HELM-009" => Trouble::Hung,
        "SCRIPT-005" => Trouble::Failed,
        "SCRIPT-006" => Trouble::Unreadable,
        "SCRIPT-015" => Trouble::NotText,
        "SCRIPT-007" => Trouble::TooMuch,
        "SCRIPT-008" | "SCRIPT-009" | "SCRIPT-011" | "SCRIPT-012" | "HELM-007" => Trouble::Unfit,
        _ => Trouble::Ours,
    }
}
