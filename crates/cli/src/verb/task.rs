//! `slipway task`: the log of a task, and wishes about it.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use crate::global::Format;
use crate::{context, view};
use api::page::LIMIT_MAX;
use api::{Client, Exit, LogLine, LogSignal, LogView, WishRequest};

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
#[command(after_help = "Examples:
  slipway task log task-0c5w3k9qj2m4x --follow
  slipway task log task-0c5w3k9qj2m4x --after 200 -o json")]
pub struct Log {
    /// The id of the task
    #[arg(value_parser = api::argument::task)]
    id: String,

    /// Go on until the task has ended, also when the connection breaks
    #[arg(long)]
    follow: bool,

    /// Begin after this line instead of with the first
    #[arg(
        long,
        value_name = "LINE",
        default_value_t = 0,
        hide_default_value = true
    )]
    after: u64,
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
    let Log { id, follow, after } = arguments;
    let client = context.client()?;
    if follow {
        return self::follow(&client, &id, after, context).await;
    }
    let whole = rest(&client, &id, after).await?;
    if context.global().output() == Format::Table {
        for line in &whole.lines {
            show(line, context)?;
        }
    } else {
        context.show(&whole, |_| String::new())?;
        for line in &whole.lines {
            miss(line, context);
        }
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

/// Shows lines as they are written, until the task has ended.
async fn follow(
    client: &Client,
    id: &str,
    after: u64,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let mut log = client.follow_task_log(id, after);
    let mut away = false;
    loop {
        match log.next().await? {
            LogSignal::Open => {
                if std::mem::take(&mut away) {
                    context.out().say("the server is back");
                }
            }
            LogSignal::Line(line) => show(&line, context)?,
            LogSignal::End(end) => {
                context.out().say(&format!("task {id} is {}", end.state));
                return Ok(Exit::Done);
            }
            LogSignal::Unknown => context
                .out()
                .say("something was written that this version cannot read"),
            LogSignal::Lost(error) => {
                if !std::mem::replace(&mut away, true) {
                    context.out().say(&format!("{error}; trying again"));
                }
            }
        }
    }
}

/// Shows one line: to people, as a line of JSON, or as a document of YAML.
fn show(line: &LogLine, context: &mut Context<'_>) -> Result<(), Error> {
    miss(line, context);
    let text = match context.global().output() {
        // What is missing was not written: it is no part of the data.
        Format::Table if line.dropped.is_some() => return Ok(()),
        Format::Table => view::lines(std::slice::from_ref(line)),
        Format::Json => {
            let text = serde_json::to_string(line).map_err(std::io::Error::other)?;
            format!("{text}\n")
        }
        Format::Yaml => format!("---\n{}", context::yaml(line)?),
    };
    Ok(context.out().data(&text)?)
}

/// Says where lines are missing.
fn miss(line: &LogLine, context: &mut Context<'_>) {
    let Some(dropped) = line.dropped else {
        return;
    };
    let lines = match dropped {
        1 => format!("line {} is", line.seq),
        many => {
            let first = line.seq.saturating_sub(many - 1);
            format!("{many} lines, {first} to {}, are", line.seq)
        }
    };
    context.out().say(&format!(
        "{lines} missing here: of a long log the beginning and the end are kept"
    ));
}
