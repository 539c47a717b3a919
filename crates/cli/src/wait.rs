//! Waits until a manifest is as declared or a wish is fulfilled, showing how it goes.
//!
//! The event stream says when to look; what is shown and judged is always fetched whole. When
//! the stream is gone, a slow poll does its work, so that a restart of the server in the
//! middle costs nothing but patience.

pub(crate) mod wish;

use crate::context::Context;
use crate::error::Error;
use crate::global::Format;
use crate::live::Show;
use crate::progress::{Goal, Scene, Verdict};
use crate::table::indent;
use crate::view;
use api::client::{ClusterFilter, Page, TaskFilter};
use api::{Client, ClusterState, Events, Exit, ManifestView, Signal, TaskState};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How often to look although nothing was heard.
const POLL: Duration = Duration::from_secs(5);

/// The shortest time between two looks: faster than this nobody reads.
const PACE: Duration = Duration::from_millis(200);

/// How many times as long as a look takes to rest after it, so that waiting for a large
/// manifest does not keep the server from building it.
const REST: u32 = 4;

/// How long the server may be away before waiting for it ends.
const AWAY_MAX: Duration = Duration::from_mins(5);

/// How many running tasks are fetched: more than any terminal has lines.
const TASKS_MAX: u32 = 200;

/// How many clusters in error are told about when waiting ends.
const ERRORS_TOLD_MAX: u32 = 5;

/// What to wait for, and for how long.
pub(crate) struct Wait<'a> {
    /// Which manifest.
    pub(crate) manifest: &'a str,
    /// When it is as wanted.
    pub(crate) goal: Goal,
    /// The longest wait; absent means without end.
    pub(crate) timeout: Option<Duration>,
    /// The command that waits again.
    pub(crate) again: String,
}

/// Why waiting ends before its goal.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Interrupted,
    TimedOut,
}

/// Waits; shows the manifest as it is in the end.
pub(crate) async fn wait(
    context: &mut Context<'_>,
    client: &Client,
    wait: Wait<'_>,
) -> Result<Exit, Error> {
    let Wait {
        manifest,
        mut goal,
        timeout,
        again,
    } = wait;
    let start = Instant::now();
    let judged = async || {
        let scene = look(client, manifest).await?;
        let verdict = goal.judge(&scene, start.elapsed());
        Ok((scene, verdict))
    };
    match watched(context, client, (timeout, &again), judged).await? {
        Ok((scene, verdict)) => conclude(context, client, &scene.manifest, verdict).await,
        Err(exit) => Ok(exit),
    }
}

/// Looks until there is a verdict, and shows every scene; answers the last one with its verdict, or
/// how the program ends because somebody or the clock says stop.
async fn watched<T>(
    context: &mut Context<'_>,
    client: &Client,
    (timeout, again): (Option<Duration>, &str),
    mut judged: impl AsyncFnMut() -> Result<(Scene, Option<T>), api::client::Error>,
) -> Result<Result<(Scene, T), Exit>, Error> {
    let quiet = context.global().output() != Format::Table;
    let mut show = Show::new(context.out(), quiet);
    let mut patience = Patience::new(client, timeout);
    let start = Instant::now();
    let mut away: Option<Instant> = None;
    let stop = loop {
        let looked = Instant::now();
        let seen = match patience.unless_stopped(judged()).await {
            Ok(seen) => seen,
            Err(stop) => break stop,
        };
        match seen {
            Ok((scene, verdict)) => {
                if away.take().is_some() {
                    show.remark("the server is back", context.out());
                }
                show.scene(&scene, context.out());
                if let Some(verdict) = verdict {
                    show.finish();
                    return Ok(Ok((scene, verdict)));
                }
            }
            Err(error) if error.passes() && away.is_none_or(|since| since.elapsed() < AWAY_MAX) => {
                if away.is_none() {
                    away = Some(looked);
                    show.remark(&format!("{error}; trying again"), context.out());
                }
            }
            Err(error) => {
                show.finish();
                return Err(error.into());
            }
        }
        let rest = PACE.max(looked.elapsed() * REST);
        if let Err(stop) = patience.listen(rest).await {
            break stop;
        }
    };
    show.finish();
    let (ended, exit) = match stop {
        Stop::Interrupted => ("stopped waiting".to_owned(), Exit::Interrupted),
        Stop::TimedOut => {
            let waited = span(timeout.unwrap_or_else(|| start.elapsed()));
            (format!("not done after {waited}"), Exit::Failed)
        }
    };
    context.out().say(&format!(
        "{ended}; the server goes on. Follow it with `{again}`"
    ));
    Ok(Err(exit))
}

/// A span to the second, as somebody would write it: `1m 40s`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [
        (seconds / 3_600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let told: Vec<_> = units
        .into_iter()
        .filter(|(many, _)| *many > 0)
        .map(|(many, unit)| format!("{many}{unit}"))
        .collect();
    if told.is_empty() {
        return "0s".to_owned();
    }
    told.join(" ")
}

/// Fetches the whole scene.
async fn look(client: &Client, manifest: &str) -> Result<Scene, api::client::Error> {
    let manifest = client.manifest(manifest).await?;
    let filter = TaskFilter {
        cluster: None,
        state: Some(TaskState::Running),
    };
    let page = Page {
        limit: Some(TASKS_MAX),
        cursor: None,
    };
    let running = client.tasks(&filter, &page).await?.items;
    Ok(Scene { manifest, running })
}

/// Whoever says "look soon", or "stop".
struct Patience {
    /// Absent when the server will not let us listen.
    events: Option<Events>,
    /// One future for the whole wait: a signal that comes while nobody listens is kept.
    interrupted: Pin<Box<dyn Future<Output = ()>>>,
    deadline: Option<Instant>,
}

impl Patience {
    fn new(client: &Client, timeout: Option<Duration>) -> Self {
        let interrupted = Box::pin(async {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without a handler for the signal the process ends as it always did.
                std::future::pending::<()>().await;
            }
        });
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        Self {
            events: Some(client.events(None)),
            interrupted,
            deadline,
        }
    }

    /// Does the work unless somebody or the clock says stop.
    async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Err(Stop::TimedOut);
        }
        let end = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = &mut self.interrupted => Err(Stop::Interrupted),
            () = end => Err(Stop::TimedOut),
            done = work => Ok(done),
        }
    }

    /// Waits for a reason to look, and at least for `rest`.
    async fn listen(&mut self, rest: Duration) -> Result<(), Stop> {
        let mut events = self.events.take();
        let heard = self
            .unless_stopped(async {
                tokio::select! {
                    ((), ()) = async { tokio::join!(something(&mut events), sleep(rest)) } => {}
                    () = sleep(rest.max(POLL)) => {}
                }
            })
            .await;
        self.events = events;
        heard
    }
}

/// Waits until the stream says anything worth a look.
async fn something(stream: &mut Option<Events>) {
    loop {
        let Some(events) = stream else {
            return std::future::pending().await;
        };
        match events.next().await {
            Ok(Signal::Open | Signal::Event(_) | Signal::Unknown) => return,
            // The stream connects again by itself; whether the server is away is seen by
            // those who look.
            Ok(Signal::Lost(_)) => {}
            Err(error) if error.passes() => {}
            Err(_) => *stream = None,
        }
    }
}

/// Says how it ended.
async fn conclude(
    context: &mut Context<'_>,
    client: &Client,
    manifest: &ManifestView,
    verdict: Verdict,
) -> Result<Exit, Error> {
    let name = &manifest.name;
    match verdict {
        Verdict::Done => {
            let ended = if manifest.deleted { "gone" } else { "done" };
            context.show(manifest, |_| {
                format!(
                    "manifest {name} is {ended} at generation {}\n",
                    manifest.generation
                )
            })?;
            Ok(Exit::Done)
        }
        Verdict::Overtaken => {
            let what = if manifest.deleted {
                "deleted"
            } else {
                "declared again"
            };
            context.out().say(&format!(
                "error: manifest {name} was {what} by {} meanwhile, at generation {}",
                manifest.author, manifest.generation
            ));
            Ok(Exit::Conflict)
        }
        Verdict::Failing => {
            context.show(manifest, |_| String::new())?;
            tell_errors(context, client, name).await?;
            Ok(Exit::Failed)
        }
    }
}

/// Says what is held in the clusters that need a person, and how to learn more.
async fn tell_errors(
    context: &mut Context<'_>,
    client: &Client,
    manifest: &str,
) -> Result<(), Error> {
    let filter = ClusterFilter {
        manifest: Some(manifest.to_owned()),
        state: Some(ClusterState::Error),
    };
    let page = Page {
        limit: Some(ERRORS_TOLD_MAX),
        cursor: None,
    };
    let listed = client.clusters(&filter, &page).await?;
    context.out().say(&format!(
        "error: manifest {manifest} has trouble that lasts; this is where it stands"
    ));
    for head in &listed.items {
        let name = &head.summary.name;
        let held = view::held(&head.held);
        let why = if held.is_empty() {
            format!("{}\n", head.summary.message)
        } else {
            held
        };
        context.out().say(&format!("cluster {name}"));
        context.out().complain(&indent(&why));
        context.out().say(&format!(
            "hint: `slipway why cluster {name}` shows the whole chain"
        ));
    }
    if listed.next.is_some() {
        context.out().say(&format!(
            "and more: `slipway get clusters --manifest {manifest} --state error`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_to_the_second() {
        let told = [0, 40, 100, 1_800, 7_205].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(told, ["0s", "40s", "1m 40s", "30m", "2h 5s"]);
    }
}
