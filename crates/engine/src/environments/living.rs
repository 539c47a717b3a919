//! Ends what has been there for long enough.

use super::Shared;
use super::configuring::{configuration, context};
use driver::deploy::Deployer;
use model::id::EnvironmentId;
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{ActionDraft, Actor, EnvironmentError, Outlived};
use tokio_util::sync::CancellationToken;

/// Environments of one project and kind that are ended at once.
const AT_ONCE: u32 = 100;

/// Who asks where nobody does.
const NOBODY: &str = "slipway";

/// The shortest pause between two looks, however much happens.
const LOOK_MIN: Duration = Duration::from_secs(5);

/// What could not be begun, and when that was tried: whose time has come is no reason to try all the
/// time.
type Failed = BTreeMap<EnvironmentId, Timestamp>;

/// Begins what age asks for, when it does: at the next end that is known, and soon after something
/// happened, which may have brought another.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut news = shared.store.subscribe();
    let mut failed = Failed::new();
    loop {
        let swept = async {
            news.mark_unchanged();
            let mut swept_at = shared.clock.now();
            // What is begun is not asked for again, so this ends.
            while sweep(&shared, &stop, &mut failed).await > 0 {
                swept_at = shared.clock.now();
            }
            tell(&shared).await;
            tokio::time::sleep(LOOK_MIN).await;
            let pause = until_next(&shared, swept_at).await;
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = swept => {}
        }
    }
}

/// How long until the time of somebody comes, of whom nobody knew when there was a look.
async fn until_next<D>(shared: &Shared<D>, looked_at: Timestamp) -> Duration {
    let most = shared.settings.living_every;
    match shared.store.next_outlived(most, looked_at).await {
        Ok(next) => next.map_or(most, |next| next.since(shared.clock.now()).min(most)),
        Err(error) => {
            tracing::error!(%error, "could not read whose time comes next: {error}");
            most
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
async fn sweep<D: Deployer>(
    shared: &Shared<D>,
    stop: &CancellationToken,
    failed: &mut Failed,
) -> usize {
    let now = shared.clock.now();
    failed.retain(|_, tried| now.since(*tried) < shared.settings.living_every);
    let outlived = match shared.store.outlived_environments(AT_ONCE, now).await {
        Ok(outlived) => outlived,
        Err(error) => {
            tracing::error!(%error, "could not read whose time has come: {error}");
            return 0;
        }
    };
    let mut begun = 0;
    for one in outlived {
        if failed.contains_key(&one.id) {
            continue;
        }
        match begin(shared, &one, stop).await {
            Ok(true) => begun += 1,
            Ok(false) => {}
            Err(why) => {
                failed.insert(one.id, now);
                tracing::warn!(
                    environment = %one.name,
                    "could not {} {} of {}, whose time has come: {why}",
                    one.deed,
                    one.name,
                    one.project
                );
            }
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
        seen: None,
        edits: None,
        sealed: Vec::new(),
        sealed_until: None,
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
