//! Follows what was begun with an environment: its output as it is printed, then the environment
//! until it is as it should be, or is not.

use crate::context::Context;
use crate::error::Error;
use crate::table::plain;
use crate::verb::apply::lifetime;
use api::client::{Error as ClientError, OutputSignal};
use api::{
    ActionKind, ActionState, Client, EnvironmentAccepted, EnvironmentStatus, EnvironmentView, Exit,
};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How often to look how an environment is.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// More than anybody waits.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Whether to wait, and for how long.
#[derive(Debug, clap::Args)]
pub(super) struct Waiting {
    /// Wait until it is done, and show what scripts print
    #[arg(long)]
    wait: bool,

    /// Wait no longer than this, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = lifetime)]
    timeout: Option<Duration>,
}

/// What an environment is waited for to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Goal {
    /// Up, as it should be.
    Running,
    /// In the archive.
    Archived,
    /// Removed, or forgotten.
    Gone,
    /// At rest, however it is.
    Settled,
}

/// Says what was begun, or waits for its end.
pub(super) async fn begun(
    client: &Client,
    accepted: &EnvironmentAccepted,
    waiting: &Waiting,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let name = &accepted.name;
    let (Some(action), Some(kind)) = (&accepted.action, accepted.kind) else {
        context.show(accepted, |_| format!("environment {name} is noted\n"))?;
        return Ok(Exit::Done);
    };
    if waiting.wait {
        let work = to_the_end(client, (name, action), kind, context);
        let ended = unless_stopped(waiting.timeout, work).await;
        return told(ended, name, context);
    }
    let state = accepted.state.map_or("waiting", ActionState::as_str);
    context.show(accepted, |_| {
        format!("environment {name}: {kind} is {state}, {action}\n")
    })?;
    if accepted.state.is_none_or(|state| !state.ended()) {
        context.out().say(&format!(
            "follow it with `slipway env logs {name} --follow`, wait for it with `slipway env wait {name}`"
        ));
    }
    Ok(Exit::Done)
}

/// Why waiting ends before its goal.
pub(super) enum Stop {
    Interrupted,
    TimedOut,
}

/// Does the work unless the clock or somebody says stop.
pub(super) async fn unless_stopped(
    time: Option<Duration>,
    work: impl Future<Output = Result<Exit, Error>>,
) -> Result<Result<Exit, Error>, Stop> {
    let deadline = Instant::now() + time.unwrap_or(FOREVER);
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler for the signal the process ends as it always did.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = timeout_at(deadline, work) => ended.map_err(|_| Stop::TimedOut),
        () = interrupted => Err(Stop::Interrupted),
    }
}

/// Says why waiting ended before its goal.
pub(super) fn told(
    ended: Result<Result<Exit, Error>, Stop>,
    name: &str,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let (what, exit) = match ended {
        Ok(ended) => return ended,
        Err(Stop::Interrupted) => ("stopped waiting", Exit::Interrupted),
        Err(Stop::TimedOut) => ("not done in time", Exit::Failed),
    };
    context.out().say(&format!(
        "{what}; the server goes on. Follow it with `slipway env wait {name}`"
    ));
    Ok(exit)
}

async fn to_the_end(
    client: &Client,
    (name, action): (&str, &str),
    kind: ActionKind,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let state = printed(client, (name, action), context).await?;
    if state != ActionState::Done {
        let detail = client.environment_action(name, action).await?;
        let why = detail.head.error.clone().unwrap_or_default();
        context.show(&detail.head, |_| String::new())?;
        // Somebody wanted it so.
        let error = if state == ActionState::Cancelled {
            ""
        } else {
            "error: "
        };
        context
            .out()
            .say(&format!("{error}{kind} {name} is {state}: {}", plain(&why)));
        return Ok(Exit::Failed);
    }
    let goal = match kind {
        ActionKind::Create | ActionKind::Update | ActionKind::Restore => Goal::Running,
        ActionKind::Archive => Goal::Archived,
        ActionKind::Cleanup | ActionKind::Delete => Goal::Gone,
    };
    until(client, name, goal, context).await
}

/// Shows what an action prints until it has ended; answers how.
async fn printed(
    client: &Client,
    of: (&str, &str),
    context: &mut Context<'_>,
) -> Result<ActionState, Error> {
    let mut output = client.follow_action(of, 0);
    let mut away = false;
    loop {
        match output.next().await? {
            OutputSignal::Open => {
                if std::mem::take(&mut away) {
                    context.out().say("the server is back");
                }
            }
            OutputSignal::Line(line) => context.out().say(&plain(&line.text)),
            OutputSignal::End(end) => return Ok(end.state),
            OutputSignal::Unknown => context
                .out()
                .say("something was printed that this version cannot read"),
            OutputSignal::Lost(error) => {
                if !std::mem::replace(&mut away, true) {
                    context.out().say(&format!("{error}; trying again"));
                }
            }
        }
    }
}

/// Waits until an environment is so, or cannot become so any more.
pub(super) async fn until(
    client: &Client,
    name: &str,
    goal: Goal,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let mut told = None;
    loop {
        let view = match client.environment(name).await {
            Ok(view) => view,
            Err(ClientError::Problem(problem)) if problem.code == "ENV-003" => {
                return gone(name, goal, context);
            }
            Err(error) if error.passes() => {
                sleep(LOOK_EVERY).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if told != Some(view.status) && view.status.is_pending() {
            context
                .out()
                .say(&format!("environment {name} is {}", view.status));
        }
        told = Some(view.status);
        if let Some(good) = judged(&view, goal) {
            let status = view.status;
            context.show(&view, |_| format!("environment {name} is {status}\n"))?;
            return Ok(if good { Exit::Done } else { Exit::Failed });
        }
        sleep(LOOK_EVERY).await;
    }
}

fn gone(name: &str, goal: Goal, context: &mut Context<'_>) -> Result<Exit, Error> {
    if goal != Goal::Gone {
        return Err(Error::NotFound {
            kind: "environment",
            name: name.to_owned(),
        });
    }
    let wire = serde_json::json!({"name": name, "gone": true});
    context.show(&wire, |_| format!("environment {name} is gone\n"))?;
    Ok(Exit::Done)
}

/// Whether an environment is as it was waited for; nothing while it may still become so.
fn judged(view: &EnvironmentView, goal: Goal) -> Option<bool> {
    if view.busy.is_some() || view.status.is_pending() {
        return None;
    }
    let good = match goal {
        Goal::Running => view.status == EnvironmentStatus::Running,
        Goal::Archived => view.status == EnvironmentStatus::Archived,
        Goal::Gone => false,
        Goal::Settled => {
            let well = [EnvironmentStatus::Running, EnvironmentStatus::Archived];
            well.contains(&view.status)
        }
    };
    Some(good)
}
