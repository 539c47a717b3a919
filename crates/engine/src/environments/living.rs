//! Ends what has been there for long enough.

use super::Shared;
use super::configuring::{configuration, context};
use driver::deploy::Deployer;
use std::sync::Arc;
use store::{ActionDraft, Actor, EnvironmentError, Outlived};
use tokio_util::sync::CancellationToken;

/// Environments of one project and kind that are ended at once.
const AT_ONCE: u32 = 100;

/// Who asks where nobody does.
const NOBODY: &str = "slipway";

/// Begins what age asks for, now and then.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    loop {
        let swept = async {
            // What is begun is not asked for again, so this ends.
            while sweep(&shared, &stop).await > 0 {}
            tell(&shared).await;
            tokio::time::sleep(shared.settings.living_every).await;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = swept => {}
        }
    }
}

/// Has those told who want to know what will end soon.
async fn tell<D: Deployer>(shared: &Shared<D>) {
    match shared.store.tell_of_ends(shared.clock.now()).await {
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "could not tell what will end soon: {error}"),
    }
}

/// One look at all there is; answers how much was begun.
async fn sweep<D: Deployer>(shared: &Shared<D>, stop: &CancellationToken) -> usize {
    let now = shared.clock.now();
    let outlived = match shared.store.outlived_environments(AT_ONCE, now).await {
        Ok(outlived) => outlived,
        Err(error) => {
            tracing::error!(%error, "could not read whose time has come: {error}");
            return 0;
        }
    };
    let mut begun = 0;
    for one in outlived {
        match begin(shared, &one, stop).await {
            Ok(true) => begun += 1,
            Ok(false) => {}
            Err(why) => tracing::warn!(
                environment = %one.name,
                "could not {} {} of {}, whose time has come: {why}",
                one.deed,
                one.name,
                one.project
            ),
        }
    }
    begun
}

/// Begins what one's age asks for, unless somebody was quicker.
async fn begin<D: Deployer>(
    shared: &Shared<D>,
    one: &Outlived,
    stop: &CancellationToken,
) -> Result<bool, String> {
    let origin = format!("environment/{}", one.name);
    let cx = context(shared, &one.project, origin, (stop.child_token(), 0));
    let configured = configuration(&*shared.deployer, &cx, &one.settings, &one.edits);
    let limit = one.settings.patience.check.saturating_mul(2);
    let configured = tokio::time::timeout(limit, configured).await;
    let configured = configured.map_err(|_| "its defaults took too long".to_owned())?;
    let draft = ActionDraft {
        project: one.project.clone(),
        name: one.name.clone(),
        deed: one.deed,
        force: false,
        generation: Some(one.generation),
        edits: None,
        sealed: Vec::new(),
        effective: configured.map_err(|error| error.to_string())?,
        actor: Actor::new(NOBODY, one.cause.as_str()),
        cause: Some(one.cause),
        origin: None,
    };
    match shared.store.begin_action(draft, shared.clock.now()).await {
        Ok(_) => Ok(true),
        // Somebody was quicker, with this or something else.
        Err(EnvironmentError::Stale { .. } | EnvironmentError::Refused(_)) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}
