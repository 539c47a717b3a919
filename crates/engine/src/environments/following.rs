//! Follows the requests of git services: has done what is decided about those that wait.
//!
//! What a service told is in the store; here it is looked at until nothing is left to be done. One
//! whose environment is busy waits on, and what was told last counts when that has ended.

mod carrying;

use super::Shared;
use super::initialising::is_initialised;
use carrying::{Carried, carry};
use driver::deploy::Deployer;
use model::name::Name;
use plan::environment::git::pause;
use plan::environment::share;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{GitEnd, GitRequest};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Requests of one project that are looked at by one question.
const AT_ONCE: u32 = 100;

/// Requests for which scripts are asked at the same time: one whose scripts hang delays no other, and a
/// project with many of them has its share.
const ASKED_MAX: u32 = 32;

/// The longest sleep between two looks; whatever is told meanwhile is news.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Which request.
type Which = (Name, Name, u64);

/// Has done what waits, and sleeps until something may.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut news = shared.store.subscribe();
    let mut carried = JoinSet::new();
    let mut under_way = BTreeSet::new();
    let mut inits = shared.inits.subscribe();
    loop {
        news.mark_unchanged();
        inits.mark_unchanged();
        take_up(&shared, &stop, &mut carried, &mut under_way).await;
        let pause = until_due(&shared).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            Some(ended) = carried.join_next(), if !carried.is_empty() => match ended {
                Ok(which) => drop(under_way.remove(&which)),
                Err(error) => {
                    tracing::error!(%error, "following a request ended badly: {error}");
                    // Nobody knows which one it was: all are looked at again.
                    carried.abort_all();
                    under_way.clear();
                }
            },
            _ = news.changed() => {}
            _ = inits.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Begins with those that wait, while there is room.
async fn take_up<D: Deployer>(
    shared: &Arc<Shared<D>>,
    stop: &CancellationToken,
    carried: &mut JoinSet<Which>,
    under_way: &mut BTreeSet<Which>,
) {
    let due = shared.store.due_git_requests(AT_ONCE, shared.clock.now());
    let due = match due.await {
        Ok(due) => due,
        Err(error) => {
            tracing::error!(%error, "could not read which requests wait: {error}");
            return;
        }
    };
    let mut early = BTreeMap::new();
    for request in due {
        let project = &request.project;
        if !early.contains_key(project) {
            early.insert(project.clone(), is_early(shared, project).await);
        }
        if early.get(project) == Some(&true) {
            continue;
        }
        let which = (
            request.project.clone(),
            request.source.clone(),
            request.event.request,
        );
        let count = |project: Option<&Name>| {
            let of = under_way
                .iter()
                .filter(|(of, ..)| project.is_none_or(|project| project == of));
            u32::try_from(of.count()).unwrap_or(u32::MAX)
        };
        let own = count(Some(&request.project));
        if own >= share(ASKED_MAX, count(None) - own) {
            continue;
        }
        if under_way.insert(which.clone()) {
            let (shared, stop) = (Arc::clone(shared), stop.clone());
            carried.spawn(async move {
                follow(&shared, &request, &stop).await;
                which
            });
        }
    }
}

/// Whether scripts of a project are not to be asked yet: what is run before them has not ended.
async fn is_early<D>(shared: &Shared<D>, project: &Name) -> bool {
    // Whoever follows a request reads it again, and says what is wrong.
    match shared.store.environment_settings(project).await {
        Ok(Some(row)) => !is_initialised(shared, project, &row.settings),
        Ok(None) | Err(_) => false,
    }
}

/// How long until a request is due that was put off.
async fn until_due<D>(shared: &Shared<D>) -> Duration {
    let now = shared.clock.now();
    match shared.store.next_git_request(now).await {
        Ok(Some(due)) => due.since(now).min(LOOK_EVERY),
        Ok(None) => LOOK_EVERY,
        Err(error) => {
            tracing::error!(%error, "could not read when requests are due: {error}");
            LOOK_EVERY
        }
    }
}

/// Has done what is decided about one request, and writes down what came of it.
async fn follow<D: Deployer>(shared: &Shared<D>, request: &GitRequest, stop: &CancellationToken) {
    let now = shared.clock.now();
    let (end, said) = match carry(shared, request, stop).await {
        Carried::Settled(settled, said) => (GitEnd::Settled(settled), said),
        Carried::Begun(settled, said) => (GitEnd::Begun(settled), said),
        Carried::Held(said) => (GitEnd::Held, said),
        // Whatever ends is news.
        Carried::Busy => return,
        Carried::Refused(why) => (GitEnd::Failed, why),
        Carried::Failed(why) => match pause(request.tries) {
            Some(pause) => (GitEnd::Again(now.plus(pause)), why),
            None => (GitEnd::Failed, format!("given up: {why}")),
        },
    };
    let settled = shared
        .store
        .settle_git_request(request, end, said, shared.clock.now());
    if let Err(error) = settled.await {
        tracing::error!(%error, "could not write down what came of a request: {error}");
    }
}
