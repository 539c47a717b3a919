//! `slipway task`: the log of a task, and wishes about it.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use crate::global::Format;
use crate::view;
use api::page::LIMIT_MAX;
use api::{Client, Exit, LogView, WishRequest};
use std::time::Duration;

/// How often a followed log is read.
const FOLLOW: Duration = Duration::from_secs(1);

/// Verbs about tasks.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show what a task wrote
    Log(Log),
    /// Ask for another attempt, now
    #[command(
        after_help = "Example:\n  slipway task retry task-0c5w3k9qj2m4x --reason 'quota raised'"
    )]
    Retry(One),
    /// Ask for no further attempt
    #[command(
        after_help = "Example:\n  slipway task cancel task-0c5w3k9qj2m4x --reason 'wrong region'"
    )]
    Cancel(One),
}

/// Arguments of `slipway task log`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway task log task-0c5w3k9qj2m4x --follow")]
pub struct Log {
    /// The id of the task
    #[arg(value_parser = api::argument::task)]
    id: String,

    /// Go on until the task has ended
    #[arg(long)]
    follow: bool,
}

/// Arguments of `slipway task retry` and `slipway task cancel`.
#[derive(Debug, clap::Args)]
pub struct One {
    /// The id of the task
    #[arg(value_parser = api::argument::task)]
    id: String,

    #[command(flatten)]
    reason: Reason,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::Log(arguments) => log(arguments, context).await,
        Verb::Retry(One { id, reason }) => {
            let client = context.client()?;
            let task = client.task(&id).await?;
            wish(
                &client,
                task.cluster,
                WishRequest::Retry { task: id },
                reason,
                context,
            )
            .await
        }
        Verb::Cancel(One { id, reason }) => {
            let client = context.client()?;
            let task = client.task(&id).await?;
            wish(
                &client,
                task.cluster,
                WishRequest::Cancel { task: id },
                reason,
                context,
            )
            .await
        }
    }
}

async fn log(arguments: Log, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Log { id, follow } = arguments;
    let client = context.client()?;
    let live = context.global().output == Format::Table;
    let mut whole = LogView {
        lines: Vec::new(),
        next: 0,
    };
    loop {
        // Asked before the log is read, so that the last lines of an ended task are not missed.
        let ended = !follow || client.task(&id).await?.state.ended();
        let news = rest(&client, &id, whole.next).await?;
        whole.next = news.next;
        if live {
            context.out().data(&view::lines(&news.lines))?;
        } else {
            whole.lines.extend(news.lines);
        }
        if ended {
            break;
        }
        tokio::time::sleep(FOLLOW).await;
    }
    if !live {
        context.show(&whole, |_| String::new())?;
    }
    Ok(Exit::Done)
}

/// Everything after the line `after`.
async fn rest(client: &Client, id: &str, after: u64) -> Result<LogView, Error> {
    let mut rest = LogView {
        lines: Vec::new(),
        next: after,
    };
    loop {
        let page = client.task_log(id, rest.next, LIMIT_MAX).await?;
        let (empty, still) = (page.lines.is_empty(), page.next <= rest.next);
        rest.lines.extend(page.lines);
        rest.next = rest.next.max(page.next);
        if empty || still {
            return Ok(rest);
        }
    }
}
