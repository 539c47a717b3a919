//! What scripts are told of an environment, and in whose name its secrets are opened.

use super::Shared;
use super::remembering::Once;
use crate::secrets::Opener;
use driver::deploy::{Deployer, Of};
use driver::{Context, Log, Open};
use model::environment::config::{Edits, effective};
use model::environment::settings::Settings;
use model::name::Name;
use model::time::Timestamp;
use std::sync::Arc;
use store::{Actor, DueCheck, Effective};
use tokio_util::sync::CancellationToken;

/// What a deployer says besides what its scripts print is for whoever runs the server.
struct Told;

impl Log for Told {
    fn line(&self, _: Timestamp, text: &str) {
        tracing::debug!("{text}");
    }
}

/// What a deployer is given besides its work.
pub(super) fn context<D>(
    shared: &Shared<D>,
    project: &Name,
    origin: String,
    (leave, fence): (CancellationToken, u64),
) -> Context {
    let opener = Opener {
        store: shared.store.clone(),
        vault: shared.vault.clone(),
        project: project.clone(),
        actor: Actor::new(&shared.settings.worker, origin),
    };
    Context::new(shared.clock, Arc::new(Told), Arc::new(opener), leave, fence)
}

/// The same with somebody else to open what is secret.
pub(super) fn context_with<D>(
    shared: &Shared<D>,
    opener: Arc<dyn Open>,
    leave: CancellationToken,
) -> Context {
    Context::new(shared.clock, Arc::new(Told), opener, leave, 0)
}

/// The same for a look at one generation of an environment: what is secret is opened now and then.
pub(super) fn context_of_look<D>(
    shared: &Shared<D>,
    check: &DueCheck,
    leave: CancellationToken,
) -> Context {
    let origin = format!("environment/{}", check.name);
    let opener = Opener {
        store: shared.store.clone(),
        vault: shared.vault.clone(),
        project: check.project.clone(),
        actor: Actor::new(&shared.settings.worker, origin),
    };
    let once = Once {
        remembered: shared.remembered.clone(),
        project: check.project.clone(),
        generation: check.generation,
        opener: Arc::new(opener),
    };
    Context::new(shared.clock, Arc::new(Told), Arc::new(once), leave, 0)
}

/// What an environment is configured with by what is told now, in the time that two scripts have.
pub(super) async fn configuration<D: Deployer>(
    deployer: &D,
    cx: &Context,
    settings: &Settings,
    edits: &Edits,
) -> Result<Effective, String> {
    let limit = settings.patience.check.saturating_mul(2);
    let told = worked_out(deployer, cx, settings, edits);
    match tokio::time::timeout(limit, told).await {
        Ok(told) => told.map_err(|error| error.to_string()),
        Err(_) => Err("its defaults took too long".to_owned()),
    }
}

/// What comes of defaults and edits: what its scripts tell, and what people made of it. How
/// it is deployed comes first, because the rest depends on it.
async fn worked_out<D: Deployer>(
    deployer: &D,
    cx: &Context,
    settings: &Settings,
    edits: &Edits,
) -> Result<Effective, driver::Error> {
    let told = deployer.defaults(cx, settings, Of::Deployment).await?;
    let deployment = effective(&told, &edits.deployment);
    let told = deployer.defaults(cx, settings, Of::Application(&deployment));
    let application = effective(&told.await?, &edits.application);
    Ok(Effective {
        application,
        deployment,
    })
}
