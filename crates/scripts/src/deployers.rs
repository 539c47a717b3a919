//! All who deploy environments, as one: each project says which of them it wants.

use driver::Context;
use driver::deploy::{Acted, Deployer, Following, Judged, Looked, Of, Subject, Work};
use model::environment::config::Defaults;
use model::environment::schema::KnownKey;
use model::environment::settings::{Deploy, Settings};
use model::environment::status::Look;
use model::id::ActionId;

use crate::deployer::Scripts;
use crate::helm::Helm;

/// Scripts or Helm, as the settings of each project say.
///
/// Both must keep what is begun in the same directory: an action is found there whoever began it.
pub struct Deployers {
    scripts: Scripts,
    helm: Helm,
}

impl Deployers {
    /// Both of them; nothing if they are not in the same place.
    pub fn new(scripts: Scripts, helm: Helm) -> Option<Self> {
        let together = scripts.place() == helm.place();
        together.then_some(Self { scripts, helm })
    }

    /// Those that are control scripts, for what only scripts are told.
    pub const fn scripts(&self) -> &Scripts {
        &self.scripts
    }
}

impl Deployer for Deployers {
    fn place(&self) -> &str {
        self.scripts.place()
    }

    async fn init(&self, cx: &Context, settings: &Settings) -> Result<(), driver::Error> {
        match &settings.deploy {
            Deploy::Scripts => Deployer::init(&self.scripts, cx, settings).await,
            Deploy::Helm(_) => self.helm.init(cx, settings).await,
        }
    }

    async fn act(&self, cx: &Context, work: &Work, following: &Following<'_>) -> Acted {
        match &work.subject.settings.deploy {
            Deploy::Scripts => self.scripts.act(cx, work, following).await,
            Deploy::Helm(_) => Box::pin(self.helm.act(cx, work, following)).await,
        }
    }

    async fn left(&self) -> Vec<ActionId> {
        self.scripts.left().await
    }

    async fn forget(&self, action: ActionId) {
        self.scripts.forget(action).await;
    }

    async fn look(
        &self,
        cx: &Context,
        subject: &Subject,
        look: Look,
    ) -> Result<Looked, driver::Error> {
        match &subject.settings.deploy {
            Deploy::Scripts => self.scripts.look(cx, subject, look).await,
            Deploy::Helm(_) => self.helm.look(cx, subject, look).await,
        }
    }

    async fn defaults(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Defaults, driver::Error> {
        match &settings.deploy {
            Deploy::Scripts => self.scripts.defaults(cx, settings, of).await,
            Deploy::Helm(_) => self.helm.defaults(cx, settings, of).await,
        }
    }

    async fn keys(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Vec<KnownKey>, driver::Error> {
        match &settings.deploy {
            Deploy::Scripts => self.scripts.keys(cx, settings, of).await,
            Deploy::Helm(_) => self.helm.keys(cx, settings, of).await,
        }
    }

    async fn lacking(&self, settings: &Settings) -> Vec<driver::Error> {
        match &settings.deploy {
            Deploy::Scripts => self.scripts.lacking(settings).await,
            Deploy::Helm(_) => self.helm.lacking(settings).await,
        }
    }

    async fn judge(&self, cx: &Context, subject: &Subject) -> Result<Judged, driver::Error> {
        match &subject.settings.deploy {
            Deploy::Scripts => self.scripts.judge(cx, subject).await,
            Deploy::Helm(_) => self.helm.judge(cx, subject).await,
        }
    }
}
