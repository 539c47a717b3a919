//! Looks at every environment now and then, each by itself.
//!
//! What was seen is recorded in batches: most looks show what the last one did, and cost little.

use super::Shared;
use super::configuring::{configuration, context_of_look};
use super::initialising::is_initialised;
use driver::Context;
use driver::deploy::{Deployer, Looked, Subject};
use futures_util::FutureExt as _;
use model::environment::settings::Settings;
use model::environment::status::{Failure, Seen};
use model::id::EnvironmentId;
use model::name::Name;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::{DueCheck, Effective, LookPlaces, LookRecord, LookRoom};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Looks that are recorded at once.
const RECORDS_MAX: usize = 500;

/// How long a look may wait to be recorded.
const RECORD_WITHIN: Duration = Duration::from_millis(500);

/// The shortest pause between two questions who is due: those that fall due one by one are taken
/// together.
const TAKE_EVERY: Duration = Duration::from_millis(20);

/// The longest pause: whoever falls due earlier has been busy until now.
const TAKE_WITHIN: Duration = Duration::from_secs(1);

/// What a look may take besides its script.
const MARGIN: Duration = Duration::from_secs(5);

/// How long a look waits, at a time, for the script `init` of its project to end.
const EARLY_FOR: Duration = Duration::from_secs(5);

/// How long after its next look was due it is asked whether somebody whose look did not end in time is
/// still there.
const THERE_EVERY: Duration = Duration::from_hours(1);

/// How far a look may be from when it would be due, of the time between two: so many that were
/// made together shall not be looked at together for ever.
const JITTER: f64 = 0.2;

/// Looks that are under way, and what is known of those that were.
#[derive(Default)]
struct Looks {
    /// At environments whose last look ended in time.
    usual: Lane,
    /// At others, apart: however many there are, they keep nobody else waiting.
    slow: Lane,
    /// Who these others are, and when their next look was due.
    late: BTreeMap<EnvironmentId, Timestamp>,
    /// Who is looked at, and until when nobody else does.
    held: BTreeMap<EnvironmentId, Timestamp>,
}

/// Looks of one kind, and whose they are.
#[derive(Default)]
struct Lane {
    looks: JoinSet<Ended>,
    taken: BTreeMap<Name, u32>,
}

/// A look that ended, whose it was, and whether it did in time.
struct Ended {
    project: Name,
    record: LookRecord,
    in_time: bool,
}

impl Lane {
    fn places(&self, most: u32) -> LookPlaces {
        let taken = self.taken.clone();
        LookPlaces { most, taken }
    }

    fn begin(&mut self, project: Name, look: impl Future<Output = Ended> + Send + 'static) {
        *self.taken.entry(project).or_default() += 1;
        self.looks.spawn(look);
    }

    /// The next that ends; none where there is none.
    async fn next(&mut self) -> Option<Result<Ended, JoinError>> {
        let ended = self.looks.join_next().await?;
        if self.looks.is_empty() {
            self.taken.clear();
        }
        if let Ok(ended) = &ended
            && let Some(taken) = self.taken.get_mut(&ended.project)
        {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&ended.project);
            }
        }
        Some(ended)
    }
}

impl Looks {
    /// What there is room for, if there is any.
    fn room(&self, most: u32) -> Option<LookRoom> {
        let slow = most / 4;
        let running = self.usual.looks.len() + self.slow.looks.len();
        (running < usize::try_from(most).unwrap_or(usize::MAX)).then(|| LookRoom {
            usual: self.usual.places(most - slow),
            slow: self.slow.places(slow),
            apart: self.late.keys().copied().collect(),
        })
    }

    /// The next that ends; never where there is none.
    async fn ended(&mut self) -> Option<LookRecord> {
        let ended = tokio::select! {
            Some(ended) = self.usual.next() => ended,
            Some(ended) = self.slow.next() => ended,
            else => std::future::pending().await,
        };
        let Ended {
            record, in_time, ..
        } = ended.ok()?;
        self.held.remove(&record.environment);
        if in_time {
            self.late.remove(&record.environment);
        } else {
            self.late.insert(record.environment, record.due);
        }
        Some(record)
    }
}

/// Looks at whoever is due, many at once, none of them waiting for another.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut random = fastrand::Rng::with_seed(shared.settings.seed ^ 0x000E_7A11);
    let mut looks = Looks::default();
    let mut seen: Vec<LookRecord> = Vec::new();
    let mut oldest = Instant::now();
    let mut take_at = Instant::now();
    loop {
        if Instant::now() >= take_at {
            let taken = take(&shared, &stop, &mut looks, &mut random).await;
            take_at = Instant::now() + if taken { TAKE_EVERY } else { TAKE_WITHIN };
        }
        let record_at = oldest + RECORD_WITHIN;
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            looked = looks.ended() => {
                if seen.is_empty() {
                    oldest = Instant::now();
                }
                seen.extend(looked);
                // There is room for others again.
                take_at = take_at.min(Instant::now() + TAKE_EVERY);
            }
            () = tokio::time::sleep_until(record_at), if !seen.is_empty() => {}
            () = tokio::time::sleep_until(take_at) => {}
        }
        if seen.len() >= RECORDS_MAX || (!seen.is_empty() && Instant::now() >= record_at) {
            record(&shared, std::mem::take(&mut seen)).await;
        }
    }
    record(&shared, seen).await;
    put_off(&shared, looks.held, Duration::ZERO).await;
}

/// Takes who is due, as many as there is room for; answers whether there may be more.
async fn take<D: Deployer>(
    shared: &Arc<Shared<D>>,
    stop: &CancellationToken,
    looks: &mut Looks,
    random: &mut fastrand::Rng,
) -> bool {
    forget_gone(shared, looks).await;
    let Some(room) = looks.room(shared.settings.looks_max) else {
        return false;
    };
    let now = shared.clock.now();
    let due = match shared.store.due_checks_within(room, now).await {
        Ok(due) => due,
        Err(error) => {
            tracing::error!(%error, "could not read which environments are due: {error}");
            return false;
        }
    };
    let taken = !due.checks.is_empty();
    let mut early = BTreeMap::new();
    for check in due.checks {
        if let Some(settings) = due.settings.get(&check.project) {
            if !is_initialised(shared, &check.project, settings) {
                early.insert(check.id, check.held);
                continue;
            }
            let (shared, settings) = (shared.clone(), settings.clone());
            let every = jittered(settings.patience.every, random);
            let beside = if looks.late.contains_key(&check.id) {
                &mut looks.slow
            } else {
                &mut looks.usual
            };
            let project = check.project.clone();
            looks.held.insert(check.id, check.held);
            beside.begin(
                project,
                look(shared, check, settings, every, stop.child_token()),
            );
        }
    }
    put_off(shared, early, EARLY_FOR).await;
    taken
}

/// Forgets those of whom it was known that their looks do not end in time, where they are gone.
async fn forget_gone<D>(shared: &Shared<D>, looks: &mut Looks) {
    let now = shared.clock.now();
    let old = looks
        .late
        .iter()
        .filter(|(_, due)| now.since(**due) > THERE_EVERY);
    let old: BTreeSet<EnvironmentId> = old.map(|(id, _)| *id).collect();
    if old.is_empty() {
        return;
    }
    match shared.store.looked_after(old.clone()).await {
        Ok(there) => {
            looks
                .late
                .retain(|id, _| !old.contains(id) || there.contains(id));
            looks.late.extend(there.into_iter().map(|id| (id, now)));
        }
        Err(error) => tracing::error!(%error, "could not read who is still there: {error}"),
    }
}

/// Has looks be made later that are not made now: they come before what is to be run before everything
/// else, or after the end.
async fn put_off<D>(shared: &Shared<D>, held: BTreeMap<EnvironmentId, Timestamp>, pause: Duration) {
    if held.is_empty() {
        return;
    }
    let due = shared.clock.now().plus(pause);
    if let Err(error) = shared.store.put_off_looks(held, due).await {
        // They are due again when nobody holds them any more.
        tracing::error!(%error, "could not put looks off: {error}");
    }
}

/// The time between two looks, more or less.
fn jittered(every: Duration, random: &mut fastrand::Rng) -> Duration {
    every.mul_f64(1.0 - JITTER / 2.0 + JITTER * random.f64())
}

/// Looks at one environment, within the time that is given to it.
async fn look<D: Deployer>(
    shared: Arc<Shared<D>>,
    mut check: DueCheck,
    settings: Settings,
    every: Duration,
    leave: CancellationToken,
) -> Ended {
    // Whoever takes too long is told, and left if that does not help.
    let cx = context_of_look(&shared, &check, leave.clone());
    let limit = settings.patience.check;
    let began = shared.clock.now();
    let looked = AssertUnwindSafe(seen(&shared, &cx, &mut check, settings)).catch_unwind();
    // Two scripts for what it is configured with, and one to look.
    let bound = limit.saturating_mul(3) + MARGIN;
    let (seen, said) = match tokio::time::timeout(bound, looked).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(_)) => (
            None,
            "the look broke down; this is a defect of Slipway".to_owned(),
        ),
        Err(_) => (Some(Seen::Bad(Failure::Generic)), too_long(limit)),
    };
    leave.cancel();
    let now = shared.clock.now();
    Ended {
        project: check.project,
        record: LookRecord {
            environment: check.id,
            held: check.held,
            seen,
            said,
            due: now.plus(every),
        },
        in_time: now.since(began) < limit,
    }
}

fn too_long(limit: Duration) -> String {
    format!("the look took longer than {} seconds", limit.as_secs())
}

/// What an environment is configured with: what it was last deployed with, whatever the defaults
/// are by now. Of one that was taken over from elsewhere that is not known.
async fn configured<D: Deployer>(
    shared: &Shared<D>,
    cx: &Context,
    check: &mut DueCheck,
    settings: &Settings,
) -> Result<Effective, String> {
    if let Some(effective) = check.effective.take() {
        return Ok(effective);
    }
    let configured = configuration(&*shared.deployer, cx, settings, &check.edits).await;
    configured.map_err(|why| format!("could not look: {why}"))
}

/// What a look shows; nothing where nobody knows how the environment is configured.
async fn seen<D: Deployer>(
    shared: &Shared<D>,
    cx: &Context,
    check: &mut DueCheck,
    settings: Settings,
) -> (Option<Seen>, String) {
    let limit = settings.patience.check;
    let configured = match configured(shared, cx, check, &settings).await {
        Ok(configured) => configured,
        Err(why) => return (None, why),
    };
    let subject = Subject {
        id: Some(check.id),
        project: check.project.clone(),
        name: check.name.clone(),
        settings,
        application: configured.application,
        deployment: configured.deployment,
    };
    let looked = shared.deployer.look(cx, &subject, check.look);
    match tokio::time::timeout(limit + MARGIN, looked).await {
        Ok(Ok(Looked { seen, said })) => (Some(seen), said),
        // That nobody could look says nothing of the environment.
        Ok(Err(error)) => (None, error.to_string()),
        Err(_) => (Some(Seen::Bad(Failure::Generic)), too_long(limit)),
    }
}

async fn record<D>(shared: &Shared<D>, seen: Vec<LookRecord>) {
    let looks = u64::try_from(seen.len()).unwrap_or(u64::MAX);
    if looks == 0 {
        return;
    }
    match shared.store.record_looks(seen, shared.clock.now()).await {
        Ok(recorded) => tracing::debug!(
            unchanged = recorded.unchanged,
            changed = recorded.changed,
            dropped = recorded.dropped,
            "looked at environments"
        ),
        // They are due again when nobody holds them any more.
        Err(error) => tracing::error!(%error, "could not record {looks} looks: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spread_around_their_time() {
        let mut random = fastrand::Rng::with_seed(7);
        let every = Duration::from_secs(10);
        let times: Vec<_> = (0..1000).map(|_| jittered(every, &mut random)).collect();
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*least >= Duration::from_secs(9) && *most <= Duration::from_secs(11));
        assert!(*most > *least + Duration::from_secs(1));
    }
}
