//! Where whatever changes environments is begun, found again and followed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Because, Following, Work};
use model::id::ActionId;
use tokio::time::sleep;

use crate::error::{Error, Kind};
use crate::home::{self, Home};
use crate::runner::{self, Follower, Found, Prepared, Runner};

/// How long to wait before somebody looks again at a directory that could not be read.
const UNREADABLE_WAIT: Duration = Duration::from_secs(1);

/// Puts together what is to be begun.
pub(crate) trait Prepare: Sync {
    /// All that a runner needs, or why there is nothing to begin.
    fn prepare(
        &self,
        cx: &Context,
        work: &Work,
    ) -> impl Future<Output = Result<Prepared, Acted>> + Send;
}

/// A directory in which each action has one, and how runners are started there.
pub(crate) struct Bench {
    pub(crate) place: String,
    home: PathBuf,
    passing: PathBuf,
    #[expect(dead_code, reason = "its lock is held for as long as it is open")]
    held: File,
    pub(crate) grace: Duration,
    runner: Runner,
}

impl Bench {
    /// Makes the directory where it is not there.
    pub(crate) fn open(home: &Path, runner: Vec<OsString>) -> Result<Self, Error> {
        let opened = home::open(home).map_err(|cause| {
            let what = format!("could not keep scripts in {}: {cause}", home.display());
            Error::new(Kind::OurSide, what)
        });
        let Home {
            place,
            passing,
            held,
        } = opened?;
        Ok(Self {
            place,
            home: home.to_owned(),
            passing,
            held,
            grace: runner::GRACE,
            runner: Runner(runner),
        })
    }

    /// Actions that have a directory.
    pub(crate) fn left(&self) -> Vec<ActionId> {
        let entries = match std::fs::read_dir(&self.home) {
            Ok(entries) => entries,
            Err(cause) => {
                tracing::warn!(home = %self.home.display(), %cause, "could not look what is left of scripts");
                return Vec::new();
            }
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).collect()
    }

    /// Where what is secret is put for as long as somebody looks.
    pub(crate) fn passing(&self) -> &Path {
        &self.passing
    }

    /// Where an action is, whoever prepared it.
    fn directory(&self, action: ActionId) -> PathBuf {
        self.home.join(action.to_string())
    }

    /// Where what is secret is while an action runs.
    pub(crate) fn secrets(&self, action: ActionId) -> PathBuf {
        runner::secrets(self.directory(action))
    }

    /// Begins what is to be done, or finds what was begun, and follows it to its end.
    pub(crate) async fn act(
        &self,
        cx: &Context,
        work: &Work,
        following: &Following<'_>,
        prepare: &impl Prepare,
    ) -> Acted {
        if work.begun_at.as_ref().is_some_and(|at| *at != self.place) {
            return self.elsewhere(cx, work).await;
        }
        // It is large, and those who work on many hold one for each.
        match Box::pin(self.acted(cx, work, following, prepare)).await {
            Ok(acted) => acted,
            Err(cause) => {
                // Nobody knows what is there: whoever asks again may see more.
                tracing::warn!(action = %work.action, %cause, "could not follow a script");
                sleep(UNREADABLE_WAIT).await;
                Acted::Left
            }
        }
    }

    /// Forgets what is left here of an action whose end is recorded.
    pub(crate) async fn forget(&self, action: ActionId) {
        if let Err(cause) = runner::forget(self.directory(action)).await {
            tracing::warn!(%action, %cause, "could not remove what is left of a script");
        }
    }

    /// Finds, begins and follows, until there is something to tell.
    async fn acted(
        &self,
        cx: &Context,
        work: &Work,
        following: &Following<'_>,
        prepare: &impl Prepare,
    ) -> io::Result<Acted> {
        let mut follower = match Follower::new(self.directory(work.action), following) {
            Ok(follower) => follower,
            Err(cause) => {
                let what = format!("could not make a directory for the script: {cause}");
                return Ok(Acted::Unbegun(Error::new(Kind::OurSide, what).into()));
            }
        };
        loop {
            match follower.find()? {
                Found::Ended(end) => return follower.conclude(end).await,
                Found::Died(began) => return follower.lose(&began).await,
                Found::Held => {}
                Found::Free(lock) => {
                    let prepared = tokio::select! {
                        biased;
                        () = cx.cancelled() => return Ok(Acted::Left),
                        () = following.end.cancelled() => Err(withdrawn(Because::Cancelled)),
                        prepared = once_allowed(cx, work, following, prepare) => prepared,
                    };
                    let prepared = match prepared {
                        Ok(prepared) => prepared,
                        Err(acted) => {
                            follower.void(&lock)?;
                            return Ok(acted);
                        }
                    };
                    if let Err(error) = follower.begin(lock, &prepared, &self.runner).await {
                        tracing::warn!(%error, "could not begin a script");
                        return follower.give_up(error).await;
                    }
                }
            }
            let over = work.deadline.since(cx.now());
            if let Some(acted) = follower.follow(cx, over, self.grace).await? {
                return Ok(acted);
            }
        }
    }

    /// What was begun elsewhere is not to be seen from here: nobody knows more than that it has
    /// ended when its time is over.
    async fn elsewhere(&self, cx: &Context, work: &Work) -> Acted {
        let over = work.deadline.plus(self.grace * 2);
        loop {
            let left = over.since(cx.now());
            if left.is_zero() {
                return Acted::Lost;
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Acted::Left,
                () = sleep(left) => {}
            }
        }
    }
}

/// Prepares what is to be begun, once it may be.
async fn once_allowed(
    cx: &Context,
    work: &Work,
    following: &Following<'_>,
    prepare: &impl Prepare,
) -> Result<Prepared, Acted> {
    following.may_begin.cancelled().await;
    prepare.prepare(cx, work).await
}

/// How long what is begun now may take, if it may be begun at all.
pub(crate) fn patience(cx: &Context, work: &Work) -> Result<Duration, Acted> {
    let patience = work.deadline.since(cx.now());
    if patience.is_zero() {
        return Err(withdrawn(Because::TimedOut));
    }
    Ok(patience)
}

const fn withdrawn(because: Because) -> Acted {
    Acted::Withdrawn { because }
}
