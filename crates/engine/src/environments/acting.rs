//! One action, from the claim to the record.

use super::Shared;
use super::beating::Ears;
use super::configuring::context;
use super::initialising::{initialised, is_initialised};
use super::lines::Lines;
use driver::Context;
use driver::deploy::{Acted, Because, Deployer, Following, Subject, Work};
use futures_util::FutureExt as _;
use model::environment::status::Seen;
use model::time::Timestamp;
use plan::environment::{Ended, proof, verified};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::{ActionClaim, ActionEnd, ActionEnded, Recorded};
use tokio_util::sync::CancellationToken;

/// How long whoever follows a script may take to let go of it.
const LET_GO_WITHIN: Duration = Duration::from_secs(5);

/// When somebody follows a script again of which we had to let go.
const FOLLOW_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How long to wait before an end is recorded again.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What is told of something that is not begun yet.
pub(super) const WAITS_FOR_INIT: &str = "it waits for the project's script `init` to end";

/// What a look may take besides its script.
const LOOK_MARGIN: Duration = Duration::from_secs(5);

/// Has one action done and records how it ended.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, claim: ActionClaim, ears: Ears) {
    let beat = shared.beats.hold((claim.action, claim.fence()));
    let origin = format!("action/{}", claim.action);
    let key = (ears.leave.clone(), claim.fence());
    let cx = context(&shared, &claim.project, origin, key);
    if claim.cancel {
        ears.end.cancel();
    }
    let Some(deadline) = set_out(&shared, &claim, &ears).await else {
        let_go(&shared, &claim, &cx).await;
        return;
    };
    let lines = Lines::new(shared.clock, claim.lines);
    let work = work(&claim, deadline);
    let acted = follow(&shared, &cx, (&claim, &work), &lines, &ears).await;
    let end = match acted {
        Acted::Left => {
            lines.flush(&shared.store, &claim).await;
            let_go(&shared, &claim, &cx).await;
            return;
        }
        Acted::Lost => {
            let looked = async {
                initialised(&shared, &claim.project, &claim.settings).await;
                lost(&shared, &cx, &work).await
            };
            tokio::select! {
                biased;
                () = ears.leave.cancelled() => {
                    let_go(&shared, &claim, &cx).await;
                    return;
                }
                end = looked => end,
            }
        }
        Acted::Exited { .. } | Acted::Killed { .. } => ended(acted, &claim),
        Acted::Unbegun(_) | Acted::Withdrawn { .. } => {
            // It is reached as it was before.
            lines.forget_links();
            ended(acted, &claim)
        }
    };
    let recorded = record(&shared, &claim, end, &lines, &ears).await;
    // What has ended has no lease to lose.
    drop(beat);
    if recorded == Some(Recorded::Yes) {
        shared.deployer.forget(claim.action).await;
    }
    shared.bell.notify_one();
}

/// Has everything been run that comes before it, and says that it is begun here; answers when it is
/// ended. None where it is not ours to begin, or not now.
///
/// What may have begun is looked for at once, however long that takes which comes before; what has not
/// is ended by whoever calls it off, and our lease with it.
async fn set_out<D: Deployer>(
    shared: &Shared<D>,
    claim: &ActionClaim,
    ears: &Ears,
) -> Option<Timestamp> {
    let (action, place) = (claim.action, shared.deployer.place());
    let ready = async {
        if claim.begun_at.is_some() {
            return;
        }
        if !is_initialised(shared, &claim.project, &claim.settings) {
            let now = shared.clock.now();
            let told = shared.store.delay_action(claim, WAITS_FOR_INIT, now).await;
            if let Err(error) = told {
                tracing::error!(%error, %action, "could not say that {action} waits: {error}");
            }
        }
        initialised(shared, &claim.project, &claim.settings).await;
    };
    tokio::select! {
        biased;
        () = ears.leave.cancelled() => return None,
        () = ears.end.cancelled() => {}
        () = ready => {}
    }
    let now = shared.clock.now();
    match shared.store.set_out_action(claim, place, now).await {
        Ok(deadline) => deadline,
        Err(error) => {
            tracing::error!(%error, %action, "could not say that {action} is begun: {error}");
            None
        }
    }
}

fn work(claim: &ActionClaim, deadline: Timestamp) -> Work {
    Work {
        action: claim.action,
        deed: claim.deed,
        subject: Subject {
            id: Some(claim.environment),
            project: claim.project.clone(),
            name: claim.name.clone(),
            settings: claim.settings.clone(),
            application: claim.application.clone(),
            deployment: claim.deployment.clone(),
        },
        begun_at: claim.begun_at.clone(),
        deadline,
    }
}

/// Follows what is done to its end, while what it prints is stored for people to read.
async fn follow<D: Deployer>(
    shared: &Shared<D>,
    cx: &Context,
    (claim, work): (&ActionClaim, &Work),
    lines: &Lines,
    ears: &Ears,
) -> Acted {
    let following = Following {
        output: lines,
        end: ears.end.clone(),
        may_begin: CancellationToken::new(),
    };
    let ready = async {
        initialised(shared, &claim.project, &claim.settings).await;
        following.may_begin.cancel();
        std::future::pending().await
    };
    let acted = async {
        tokio::select! {
            biased;
            acted = shared.deployer.act(cx, work, &following) => acted,
            never = ready => never,
        }
    };
    let acted = AssertUnwindSafe(acted).catch_unwind();
    tokio::pin!(acted);
    let given_up = async {
        ears.leave.cancelled().await;
        tokio::time::sleep(LET_GO_WITHIN).await;
    };
    tokio::pin!(given_up);
    loop {
        tokio::select! {
            biased;
            acted = &mut acted => return acted.unwrap_or_else(|_| {
                // What it had begun may run: somebody finds it again.
                tracing::error!("the deployer broke down; this is a defect of Slipway");
                Acted::Left
            }),
            () = &mut given_up => return Acted::Left,
            () = lines.due() => lines.flush(&shared.store, claim).await,
        }
    }
}

/// Lets somebody else follow it, or us again.
async fn let_go<D>(shared: &Shared<D>, claim: &ActionClaim, cx: &Context) {
    let now = shared.clock.now();
    let again = if cx.is_cancelled() {
        now
    } else {
        now.plus(FOLLOW_AGAIN_AFTER)
    };
    if let Err(error) = shared.store.release_action(claim, again, now).await {
        let action = claim.action;
        tracing::error!(%error, %action, "could not give {action} back: {error}");
    }
}

/// What a script that ended leaves to be recorded.
fn ended(acted: Acted, claim: &ActionClaim) -> ActionEnd {
    let (ended, exit, error) = match acted {
        Acted::Exited { status: 0 } => (ActionEnded::Done, Some(0), None),
        Acted::Exited { status } => {
            let error = format!("its script exited with status {status}");
            (ActionEnded::Failed, Some(status), Some(error))
        }
        Acted::Killed {
            because: Because::Cancelled,
        } => {
            let error = "somebody called it off".to_owned();
            (ActionEnded::Cancelled, None, Some(error))
        }
        Acted::Killed { because } => {
            let patience = told(claim.settings.patience.action);
            let error = match because {
                Because::Signal(signal) => format!("its script was killed by signal {signal}"),
                Because::TimedOut | Because::Cancelled => {
                    format!("it took longer than {patience} and was ended")
                }
            };
            (ActionEnded::Failed, None, Some(error))
        }
        Acted::Unbegun(error) => (ActionEnded::Unbegun, None, Some(error.to_string())),
        Acted::Withdrawn {
            because: Because::Cancelled,
        } => {
            let error = "somebody called it off".to_owned();
            (ActionEnded::Withdrawn, None, Some(error))
        }
        Acted::Withdrawn { .. } => {
            let error = "its time was over before it began".to_owned();
            (ActionEnded::Unbegun, None, Some(error))
        }
        Acted::Lost | Acted::Left => {
            let error = "nobody knows how it ended".to_owned();
            (ActionEnded::Lost(Ended::Failed), None, Some(error))
        }
    };
    ActionEnd {
        ended,
        exit,
        error,
        links: None,
        look_at: Timestamp::default(),
    }
}

/// How long somebody said that it may take: in minutes, where those are whole.
fn told(patience: Duration) -> String {
    let seconds = patience.as_secs();
    let (count, unit) = if seconds >= 60 && seconds.is_multiple_of(60) {
        (seconds / 60, "minute")
    } else {
        (seconds, "second")
    };
    let several = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{several}")
}

/// Looks what became of something of which nobody knows how it ended.
async fn lost<D: Deployer>(shared: &Shared<D>, cx: &Context, work: &Work) -> ActionEnd {
    let (seen, said) = match proof(work.deed) {
        None => (None, "it cannot be seen whether it was done".to_owned()),
        Some(look) => {
            let limit = work.subject.settings.patience.check + LOOK_MARGIN;
            let looked = AssertUnwindSafe(shared.deployer.look(cx, &work.subject, look));
            match tokio::time::timeout(limit, looked.catch_unwind()).await {
                Ok(Ok(Ok(looked))) if looked.seen == Seen::Good => {
                    (Some(looked.seen), "a look found it done".to_owned())
                }
                Ok(Ok(Ok(looked))) => (Some(looked.seen), "a look found it not done".to_owned()),
                Ok(Ok(Err(error))) => (None, format!("and nobody could look: {error}")),
                Ok(Err(_)) | Err(_) => (None, "and nobody could look in time".to_owned()),
            }
        }
    };
    ActionEnd {
        ended: ActionEnded::Lost(verified(seen)),
        exit: None,
        error: Some(format!("nobody knows how its script ended; {said}")),
        links: None,
        look_at: Timestamp::default(),
    }
}

/// Records how it ended, for as long as it is ours: what a script did is not lost because the
/// database is away for a moment.
async fn record<D>(
    shared: &Shared<D>,
    claim: &ActionClaim,
    mut end: ActionEnd,
    lines: &Lines,
    ears: &Ears,
) -> Option<Recorded> {
    end.links = lines.told_links();
    loop {
        lines.flush(&shared.store, claim).await;
        let now = shared.clock.now();
        end.look_at = now;
        let ended = shared
            .store
            .end_action(claim, end.clone(), lines.copy(), now);
        match ended.await {
            Ok(recorded) => {
                if recorded == Recorded::LeaseLost {
                    let action = claim.action;
                    tracing::warn!(%action, "{action} ended after its lease; somebody else records it");
                }
                return Some(recorded);
            }
            Err(error) => {
                let action = claim.action;
                tracing::error!(%error, %action, "could not record {action}: {error}");
            }
        }
        tokio::select! {
            biased;
            () = ears.leave.cancelled() => return None,
            () = tokio::time::sleep(RECORD_AGAIN_AFTER) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::told;
    use std::time::Duration;

    #[test]
    fn how_long_something_may_take_is_told_as_somebody_said_it() {
        let spans = [1, 30, 60, 90, 1_800].map(Duration::from_secs);
        assert_eq!(
            spans.map(told),
            [
                "1 second",
                "30 seconds",
                "1 minute",
                "90 seconds",
                "30 minutes"
            ]
        );
    }
}
