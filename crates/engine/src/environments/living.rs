//! Ends what has been there for long enough.
//!
//! Projects do not wait for each other: whose scripts hang, only its own environments stay.

use super::Shared;
use super::configuring::{configuration, context};
use super::initialising::initialised;
use driver::deploy::Deployer;
use model::id::EnvironmentId;
use model::name::Name;
use model::time::Timestamp;
use plan::environment::as_deployed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{ActionDraft, Actor, Effective, EnvironmentError, Outlived};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Environments of one project and kind that are ended at once.
const AT_ONCE: u32 = 100;

/// Environments of one project for which scripts are asked at the same time.
const ASKED_MAX: usize = 32;

/// Who asks where nobody does.
const NOBODY: &str = "slipway";

/// The shortest pause between two looks, however much happens.
const LOOK_MIN: Duration = Duration::from_secs(5);

/// What is done about age, of each project by itself.
#[derive(Default)]
struct Sweeping {
    under_way: JoinSet<Swept>,
    /// Whose that is.
    busy: BTreeSet<Name>,
    /// Those of them of whom more has come meanwhile.
    more: BTreeSet<Name>,
    /// What could not be begun, and when that was tried: whose time has come is no reason to try
    /// all the time.
    failed: BTreeMap<EnvironmentId, Timestamp>,
}

/// What became of those of one project whose time had come.
struct Swept {
    project: Name,
    begun: usize,
    failed: Vec<EnvironmentId>,
}

/// Begins what age asks for, when it does: at the next end that is known, and soon after something
/// happened, which may have brought another.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut news = shared.store.subscribe();
    let mut sweeping = Sweeping::default();
    loop {
        news.mark_unchanged();
        let swept_at = shared.clock.now();
        sweeping.begin(&shared, &stop).await;
        tell(&shared).await;
        let rest = async {
            tokio::time::sleep(LOOK_MIN).await;
            let pause = until_next(&shared, swept_at).await;
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        };
        tokio::pin!(rest);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(swept) = sweeping.under_way.join_next() => {
                    // What is begun is not asked for again, so this ends.
                    if sweeping.ended(swept, shared.clock.now()) {
                        break;
                    }
                }
                () = &mut rest => break,
            }
        }
    }
}

impl Sweeping {
    /// Looks at all there is, and begins with the projects of which nothing is under way.
    async fn begin<D: Deployer>(&mut self, shared: &Arc<Shared<D>>, stop: &CancellationToken) {
        let (now, again) = (shared.clock.now(), shared.settings.living_every);
        self.failed.retain(|_, tried| now.since(*tried) < again);
        // However many of them there are, whoever comes after them is tried, too.
        let but = self.failed.keys().copied().collect();
        let outlived = shared.store.outlived_environments_but(AT_ONCE, but, now);
        let outlived = match outlived.await {
            Ok(outlived) => outlived,
            Err(error) => {
                tracing::error!(%error, "could not read whose time has come: {error}");
                return;
            }
        };
        let mut projects: BTreeMap<Name, Vec<Outlived>> = BTreeMap::new();
        for one in outlived {
            projects.entry(one.project.clone()).or_default().push(one);
        }
        for (project, outlived) in projects {
            if self.busy.insert(project.clone()) {
                let (shared, stop) = (Arc::clone(shared), stop.clone());
                self.under_way.spawn(sweep(shared, project, outlived, stop));
            } else {
                self.more.insert(project);
            }
        }
    }

    /// Learns what became of one project; answers whether there may be more to begin.
    fn ended(&mut self, swept: Result<Swept, JoinError>, now: Timestamp) -> bool {
        match swept {
            Ok(swept) => {
                self.busy.remove(&swept.project);
                let failed = swept.failed.into_iter().map(|id| (id, now));
                self.failed.extend(failed);
                swept.begun > 0 || self.more.remove(&swept.project)
            }
            Err(error) if error.is_cancelled() => false,
            Err(error) => {
                tracing::error!(%error, "ending environments ended badly: {error}");
                // Nobody knows whose they were: all are looked at again.
                self.under_way.abort_all();
                self.busy.clear();
                false
            }
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

/// Begins what the age of environments of one project asks for: first with those of whom it is known
/// what they are told, whatever scripts do meanwhile.
async fn sweep<D: Deployer>(
    shared: Arc<Shared<D>>,
    project: Name,
    outlived: Vec<Outlived>,
    stop: CancellationToken,
) -> Swept {
    let mut swept = Swept {
        project,
        begun: 0,
        failed: Vec::new(),
    };
    let mut unknown = Vec::new();
    for one in outlived {
        match recorded(&shared, &one).await {
            Ok(Some(effective)) => {
                let begun = begin(&shared, &one, effective).await;
                swept.note(&one, begun);
            }
            Ok(None) => unknown.push(one),
            Err(why) => swept.note(&one, Err(why)),
        }
    }
    let mut asked = JoinSet::new();
    for one in unknown {
        if asked.len() >= ASKED_MAX {
            swept.join(&mut asked).await;
        }
        let (shared, stop) = (Arc::clone(&shared), stop.clone());
        asked.spawn(async move {
            let begun = match told(&shared, &one, &stop).await {
                Ok(effective) => begin(&shared, &one, effective).await,
                Err(why) => Err(why),
            };
            (one, begun)
        });
    }
    while !asked.is_empty() {
        swept.join(&mut asked).await;
    }
    swept
}

impl Swept {
    async fn join(&mut self, asked: &mut JoinSet<(Outlived, Result<bool, String>)>) {
        match asked.join_next().await {
            Some(Ok((one, begun))) => self.note(&one, begun),
            Some(Err(error)) => tracing::error!(%error, "ending one ended badly: {error}"),
            None => {}
        }
    }

    /// Notes whether something was begun with one.
    fn note(&mut self, one: &Outlived, begun: Result<bool, String>) {
        match begun {
            Ok(begun) => self.begun += usize::from(begun),
            Err(why) => {
                self.failed.push(one.id);
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
}

/// What one is told that becomes nothing else: what it was last deployed with. None where nobody knows
/// that, and for what comes back with the defaults of then.
async fn recorded<D>(shared: &Shared<D>, one: &Outlived) -> Result<Option<Effective>, String> {
    if !as_deployed(one.deed, &one.settings.deploy) {
        return Ok(None);
    }
    let recorded = shared.store.deployed_with(one.id, &one.edits).await;
    recorded.map_err(|error| error.to_string())
}

/// What one is told by what its scripts tell now.
async fn told<D: Deployer>(
    shared: &Shared<D>,
    one: &Outlived,
    stop: &CancellationToken,
) -> Result<Effective, String> {
    initialised(shared, &one.project, &one.settings).await;
    let origin = format!("environment/{}", one.name);
    let cx = context(shared, &one.project, origin, (stop.child_token(), 0));
    configuration(&*shared.deployer, &cx, &one.settings, &one.edits).await
}

/// Begins what one's age asks for, unless somebody was quicker.
async fn begin<D>(
    shared: &Shared<D>,
    one: &Outlived,
    effective: Effective,
) -> Result<bool, String> {
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
        effective,
        actor: Actor::new(NOBODY, one.cause.as_str()),
        cause: Some(one.cause),
        origin: None,
        step: None,
    };
    match shared.store.begin_action(draft, shared.clock.now()).await {
        Ok(_) => Ok(true),
        // Somebody was quicker, with this or something else.
        Err(EnvironmentError::Stale { .. } | EnvironmentError::Refused(_)) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}
