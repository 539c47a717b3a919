//! What is done to environments that are there.

use super::Named;
use super::follow::{self, Goal, Waiting};
use crate::context::Context;
use crate::error::Error;
use crate::verb::apply::lifetime;
use api::client::EnvironmentVerb;
use api::{ActionState, Exit, RedeployRequest};
use std::time::Duration;

/// Arguments of `slipway env archive`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway env archive orange --wait")]
pub struct Archive {
    #[command(flatten)]
    named: Named,

    /// Also if it is protected; for operators
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `slipway env restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway env restore orange --wait")]
pub struct Restore {
    #[command(flatten)]
    named: Named,

    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `slipway env cleanup`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway env cleanup orange --wait\n  slipway env cleanup orange --force --yes"
)]
pub struct Cleanup {
    #[command(flatten)]
    named: Named,

    /// Also if it is up or protected; for operators
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `slipway env delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway env delete orange --force --yes

No script is run: what the environment has stays where it is. To remove that too, use
`slipway env cleanup`.")]
pub struct Delete {
    #[command(flatten)]
    named: Named,

    /// Also if something of it may be left
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Arguments of `slipway env cancel`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway env cancel orange\n  slipway env cancel orange --force"
)]
pub struct Cancel {
    #[command(flatten)]
    named: Named,

    /// Do not wait for a silent server that began it: a look judges what came of it. Its script may
    /// still run there until its time is over
    #[arg(long)]
    force: bool,
}

/// Arguments of `slipway env redeploy`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway env redeploy orange --action action-0c5w3k9qj2m4x --wait"
)]
pub struct Redeploy {
    #[command(flatten)]
    named: Named,

    /// The action; `slipway env info` lists them
    #[arg(short, long, value_name = "ID", value_parser = api::argument::action)]
    action: String,

    /// Have secret settings that changed since then with the values of now
    #[arg(long)]
    secrets_as_now: bool,

    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `slipway env clone`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway env clone orange lemon --wait")]
pub struct Clone {
    /// The name of the environment
    #[arg(value_name = "NAME", value_parser = api::argument::environment)]
    name: String,

    /// The name of the copy
    #[arg(value_name = "COPY", value_parser = api::argument::environment)]
    copy: String,

    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `slipway env extend`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway env extend orange --for 3d\n  slipway env extend orange --forever"
)]
pub struct Extend {
    #[command(flatten)]
    named: Named,

    /// For so long, e.g. 90m, 8h, 3d
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = lifetime,
        required_unless_present = "forever"
    )]
    span: Option<Duration>,

    /// Without end
    #[arg(long, conflicts_with = "span")]
    forever: bool,
}

/// Arguments of `slipway env wait`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway env wait orange\n  slipway env wait orange --for archived --timeout 10m"
)]
pub struct Wait {
    #[command(flatten)]
    named: Named,

    /// What it is waited for to be [default: running or archived]
    #[arg(
        long = "for",
        value_name = "WHAT",
        value_enum,
        default_value_t = Goal::Settled,
        hide_default_value = true
    )]
    goal: Goal,

    /// Wait no longer than this, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    timeout: Option<Duration>,
}

pub(super) async fn archive(arguments: Archive, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Archive {
        named,
        force,
        waiting,
    } = arguments;
    act(
        (named.get(), EnvironmentVerb::Archive, force),
        &waiting,
        context,
    )
    .await
}

pub(super) async fn restore(arguments: Restore, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Restore { named, waiting } = arguments;
    act(
        (named.get(), EnvironmentVerb::Restore, false),
        &waiting,
        context,
    )
    .await
}

pub(super) async fn cleanup(arguments: Cleanup, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Cleanup {
        named,
        force,
        yes,
        waiting,
    } = arguments;
    let name = named.get();
    let what = format!("remove environment {name} with all that it has stored?");
    if !yes && !sure(&what, context)? {
        return Ok(Exit::Failed);
    }
    act((name, EnvironmentVerb::Cleanup, force), &waiting, context).await
}

async fn act(
    (name, verb, force): (String, EnvironmentVerb, bool),
    waiting: &Waiting,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let client = context.client()?;
    let accepted = client.act_on_environment(&name, verb, force).await?;
    follow::begun(&client, &accepted, waiting, context).await
}

/// Whether somebody says that it is meant.
fn sure(question: &str, context: &mut Context<'_>) -> Result<bool, Error> {
    match context.out().ask(question) {
        Some(true) => Ok(true),
        Some(false) => {
            context.out().say("nothing was removed");
            Ok(false)
        }
        None => Err(Error::Usage {
            what: "removing needs a yes, and nobody is here to give it".to_owned(),
            hint: "say it with --yes".to_owned(),
        }),
    }
}

pub(super) async fn delete(arguments: Delete, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Delete { named, force, yes } = arguments;
    let name = named.get();
    let what = format!("forget environment {name}, and leave whatever it has where it is?");
    if !yes && !sure(&what, context)? {
        return Ok(Exit::Failed);
    }
    let client = context.client()?;
    let accepted = client.delete_environment(&name, force).await?;
    context.show(&accepted, |_| format!("forgot environment {name}\n"))?;
    Ok(Exit::Done)
}

pub(super) async fn cancel(arguments: Cancel, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Cancel { named, force } = arguments;
    let name = named.get();
    let client = context.client()?;
    let verb = EnvironmentVerb::Cancel;
    let accepted = client.act_on_environment(&name, verb, force).await?;
    let state = accepted.state;
    let kind = accepted.kind.map_or("it", api::ActionKind::as_str);
    context.show(&accepted, |_| {
        let how = match state {
            Some(ActionState::Cancelled) => "had not begun, and never will",
            Some(ActionState::Waiting) if force => "counts as ended; a look judges what came of it",
            Some(ActionState::Waiting) => {
                "is ended when the server that began it is back; `--force` does not wait for that"
            }
            _ => "is being ended",
        };
        format!("environment {name}: {kind} {how}\n")
    })?;
    Ok(Exit::Done)
}

pub(super) async fn redeploy(
    arguments: Redeploy,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let Redeploy {
        named,
        action,
        secrets_as_now,
        waiting,
    } = arguments;
    let client = context.client()?;
    let request = RedeployRequest {
        action,
        secrets_as_now: secrets_as_now.then_some(true),
    };
    let accepted = client.redeploy_environment(&named.get(), &request).await?;
    follow::begun(&client, &accepted, &waiting, context).await
}

pub(super) async fn clone(arguments: Clone, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Clone {
        name,
        copy,
        waiting,
    } = arguments;
    let client = context.client()?;
    let accepted = client.clone_environment(&name, &copy).await?;
    follow::begun(&client, &accepted, &waiting, context).await
}

pub(super) async fn extend(arguments: Extend, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Extend {
        named,
        span,
        forever: _,
    } = arguments;
    let name = named.get();
    let seconds = span.map(|span| u32::try_from(span.as_secs()).unwrap_or(u32::MAX));
    let client = context.client()?;
    client.extend_environment(&name, seconds).await?;
    let view = client.environment(&name).await?;
    context.show(&view, |now| match view.expires_at {
        Some(end) => {
            let left = crate::view::ago(end, now);
            // To the second: nobody asks for less.
            let moment = end.aligned();
            let moment = moment.get(..19).unwrap_or(&moment);
            format!("environment {name} ends {left}, at {moment}Z\n")
        }
        None => format!("environment {name} has no end\n"),
    })?;
    Ok(Exit::Done)
}

pub(super) async fn wait(arguments: Wait, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Wait {
        named,
        goal,
        timeout,
    } = arguments;
    let name = named.get();
    let client = context.client()?;
    let work = follow::until(&client, &name, goal, context);
    let ended = follow::unless_stopped(timeout, work).await;
    follow::told(ended, &name, context)
}
