//! What is known of environments.

use super::Named;
use crate::context::{self, Context};
use crate::error::Error;
use crate::global::Format;
use crate::pages::all;
use crate::table::plain;
use crate::verb::get;
use crate::view;
use api::client::{DeliveryFilter, EnvironmentFilter, OutputSignal, Page};
use api::page::LIMIT_MAX;
use api::{
    ActionView, Client, ConfigurationView, DeliveryState, DeliveryView, EnvironmentStatus,
    EnvironmentView, Exit, OutputLineView, OutputStream, SettingLevel,
};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;

/// How many actions are shown with an environment.
const ACTIONS_SHOWN: u32 = 10;

/// How many messages of each kind are shown with it.
const UNTOLD_SHOWN: u32 = 5;

/// Arguments of `slipway env list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env list --owner ana
  slipway env list --status failure --label team=web -o json")]
pub struct List {
    /// Only those that are so
    #[arg(
        long,
        value_name = "STATUS",
        value_parser = PossibleValuesParser::new(EnvironmentStatus::ALL.map(EnvironmentStatus::as_str))
            .map(|word| EnvironmentStatus::ALL.into_iter().find(|one| one.as_str() == word).unwrap_or(EnvironmentStatus::Running))
    )]
    status: Option<EnvironmentStatus>,

    /// Only those of this owner
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// Only those with this label, and, where one is given, with this value
    #[arg(short, long = "label", value_name = "NAME[=VALUE]")]
    labels: Vec<String>,

    /// Only those with this in their name or owner
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Only those that rest in the archive or are about to
    #[arg(long)]
    archived: bool,

    /// Only the others
    #[arg(long, conflicts_with = "archived")]
    active: bool,

    /// Those that changed last first
    #[arg(long)]
    newest: bool,
}

/// Arguments of `slipway env info`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway env info orange\n  slipway env info orange --effective"
)]
pub struct Info {
    #[command(flatten)]
    named: Named,

    /// Show the whole configuration, defaults included
    #[arg(long)]
    effective: bool,
}

/// Arguments of `slipway env keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env keys
  slipway env keys orange --level deployment
  slipway env keys -o json | jq -r '.settings[] | select(.required) | .key'

What is known of settings comes from the schema of the chart, where environments are deployed by
Helm. Control scripts tell only their names.")]
pub struct Keys {
    /// The environment, as which it is deployed [default: one that nobody edited]
    #[arg(value_name = "NAME", value_parser = api::argument::environment)]
    name: Option<String>,

    /// Which of the two configurations
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Application)]
    level: Level,
}

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// What the application is given.
    #[value(alias = "app")]
    Application,
    /// How it is deployed.
    Deployment,
}

impl From<Level> for SettingLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Application => Self::Application,
            Level::Deployment => Self::Deployment,
        }
    }
}

/// Arguments of `slipway env status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  slipway env status orange\n  slipway env status orange --now")]
pub struct Status {
    #[command(flatten)]
    named: Named,

    /// Look now, instead of telling what was seen last
    #[arg(long)]
    now: bool,
}

/// Arguments of `slipway env logs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env logs orange --follow
  slipway env logs orange --action action-0c5w3k9qj2m4x --log-type stderr")]
pub struct Logs {
    #[command(flatten)]
    named: Named,

    /// The action [default: the newest]
    #[arg(short, long, value_name = "ID", value_parser = api::argument::action)]
    action: Option<String>,

    /// Which of the two streams [default: all]
    #[arg(short = 'l', long, value_name = "STREAM", value_enum, default_value_t = LogType::All, hide_default_value = true)]
    log_type: LogType,

    /// Go on until the action has ended, also when the connection breaks
    #[arg(long)]
    follow: bool,
}

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogType {
    /// What scripts print.
    #[value(alias = "out")]
    Stdout,
    /// What they complain about.
    #[value(alias = "err")]
    Stderr,
    /// Both.
    #[value(alias = "both")]
    All,
}

impl LogType {
    fn has(self, line: &OutputLineView) -> bool {
        match self {
            Self::Stdout => line.stream == OutputStream::Stdout,
            Self::Stderr => line.stream == OutputStream::Stderr,
            Self::All => true,
        }
    }
}

pub(super) async fn list(arguments: List, context: &mut Context<'_>) -> Result<Exit, Error> {
    let List {
        status,
        owner,
        labels,
        text,
        archived,
        active,
        newest,
    } = arguments;
    let filter = EnvironmentFilter {
        status,
        archived: match (archived, active) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        owner,
        labels,
        text,
        newest,
    };
    let client = context.client()?;
    let listed = all(async |page| client.environments(&filter, page).await).await?;
    get::list(&listed, "environments", view::environments, context)?;
    Ok(Exit::Done)
}

/// An environment with what was done to it last.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    #[serde(flatten)]
    environment: EnvironmentView,
    actions: Vec<ActionView>,
    /// Messages about it that have not arrived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untold: Vec<DeliveryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<ConfigurationView>,
}

pub(super) async fn info(arguments: Info, context: &mut Context<'_>) -> Result<Exit, Error> {
    let name = arguments.named.get();
    let client = context.client()?;
    let environment = client.environment(&name).await?;
    let actions = newest(&client, &name, ACTIONS_SHOWN).await?;
    let untold = untold(&client, &name).await?;
    let configuration = if arguments.effective {
        Some(client.environment_configuration(&name).await?)
    } else {
        None
    };
    let told = Told {
        environment,
        actions,
        untold,
        configuration,
    };
    context.show(&told, |now| {
        view::environment(
            &told.environment,
            &told.actions,
            &told.untold,
            told.configuration.as_ref(),
            now,
        )
    })?;
    Ok(Exit::Done)
}

pub(super) async fn keys(arguments: Keys, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    let asked = client.environment_keys(arguments.level.into(), arguments.name.as_deref());
    let keys = asked.await?;
    if keys.keys.is_empty() {
        context.out().say("no settings");
    }
    context.show(&keys, |_| view::setting_keys(&keys))?;
    Ok(Exit::Done)
}

/// Messages about an environment that have not arrived, newest first.
async fn untold(client: &Client, name: &str) -> Result<Vec<DeliveryView>, Error> {
    let page = Page {
        limit: Some(UNTOLD_SHOWN),
        ..Page::default()
    };
    let mut untold = Vec::new();
    for state in [DeliveryState::Waiting, DeliveryState::GivenUp] {
        let filter = DeliveryFilter {
            state: Some(state),
            environment: Some(name.to_owned()),
            ..DeliveryFilter::default()
        };
        untold.extend(client.deliveries(&filter, &page).await?.items);
    }
    Ok(untold)
}

async fn newest(client: &Client, name: &str, limit: u32) -> Result<Vec<ActionView>, Error> {
    let page = Page {
        limit: Some(limit),
        cursor: None,
    };
    Ok(client.environment_actions(name, &page).await?.items)
}

pub(super) async fn status(arguments: Status, context: &mut Context<'_>) -> Result<Exit, Error> {
    let name = arguments.named.get();
    let client = context.client()?;
    if arguments.now {
        let seen = client.look_at_environment(&name).await?;
        let word = seen.seen.map_or("unknown", api::SeenView::as_str);
        context.show(&seen, |_| format!("{word}\n"))?;
        if context.global().output() == Format::Table && !seen.said.trim().is_empty() {
            let said: Vec<_> = seen.said.trim_end().lines().map(plain).collect();
            context.out().say(&said.join("\n"));
        }
        return Ok(Exit::Done);
    }
    let view = client.environment(&name).await?;
    context.show(&view, |_| {
        let busy = view.busy.as_ref();
        let busy = busy.map_or_else(String::new, |busy| {
            format!(", {} is {}", busy.kind, busy.state)
        });
        format!("{}{busy}\n", view.status)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn logs(arguments: Logs, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Logs {
        named,
        action,
        log_type,
        follow,
    } = arguments;
    let name = named.get();
    let client = context.client()?;
    let newest = match action {
        Some(_) => None,
        None => newest(&client, &name, 1).await?.pop(),
    };
    let Some(action) = action.or(newest.map(|newest| newest.id)) else {
        let nothing = format!("nothing was ever done to environment {name}");
        context.out().say(&nothing);
        return Ok(Exit::Done);
    };
    if follow {
        return followed(&client, (&name, &action), log_type, context).await;
    }
    let mut after = 0;
    loop {
        let of = (name.as_str(), action.as_str());
        let page = client.action_output(of, after, LIMIT_MAX).await?;
        for line in page.lines.iter().filter(|line| log_type.has(line)) {
            show(line, context)?;
        }
        if page.lines.is_empty() || page.next <= after {
            return Ok(Exit::Done);
        }
        after = page.next;
    }
}

async fn followed(
    client: &Client,
    (name, action): (&str, &str),
    log_type: LogType,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let mut output = client.follow_action((name, action), 0);
    let mut away = false;
    loop {
        match output.next().await? {
            OutputSignal::Open => {
                if std::mem::take(&mut away) {
                    context.out().say("the server is back");
                }
            }
            OutputSignal::Line(line) if log_type.has(&line) => show(&line, context)?,
            OutputSignal::Line(_) => {}
            OutputSignal::End(end) => {
                let state = end.state;
                context.out().say(&format!("action {action} is {state}"));
                return Ok(Exit::Done);
            }
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

/// Shows one line: to people, as a line of JSON, or as a document of YAML.
fn show(line: &OutputLineView, context: &mut Context<'_>) -> Result<(), Error> {
    let text = match context.global().output() {
        Format::Table => format!("{}\n", plain(&line.text)),
        Format::Json => {
            let text = serde_json::to_string(line).map_err(std::io::Error::other)?;
            format!("{text}\n")
        }
        Format::Yaml => format!("---\n{}", context::yaml(line)?),
    };
    Ok(context.out().data(&text)?)
}
