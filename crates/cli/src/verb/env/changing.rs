//! `slipway env create` and `slipway env update`.

use super::Named;
use super::follow::{self, Waiting};
use super::values::{Settings, from_file, label};
use crate::context::Context;
use crate::error::Error;
use crate::verb::apply::lifetime;
use crate::view;
use api::{EnvironmentAccepted, EnvironmentChangeRequest, EnvironmentRequest, Exit, TrialView};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `slipway env create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env create orange -t v1.2 -e replicas=2 --wait
  slipway env create orange -o chart_version=12.1.0 --secret db.password --expires 7d
  slipway env create --from-file orange.yaml -o json

-e sets what the application is given, -o with a `=` how it is deployed; -o json, yaml or table is
how to show the answer, as everywhere. A secret value never stands on the command line: it is asked
for, unseen, or read from standard input or from a file.")]
pub struct Create {
    /// The name of the environment
    #[arg(value_name = "NAME", value_parser = api::argument::environment)]
    name: Option<String>,

    /// The same, as an option
    #[arg(id = "named", short = 'n', long = "name", value_name = "NAME", conflicts_with = "name", value_parser = api::argument::environment)]
    named: Option<String>,

    #[command(flatten)]
    settings: Settings,

    #[command(flatten)]
    said: Said,

    /// Archive it after this time, e.g. 90m, 8h, 7d
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,

    #[command(flatten)]
    how: How,
}

/// Arguments of `slipway env update`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env update orange -t v1.3 --wait
  slipway env update orange -e replicas=3 -E debug -O chart_version
  slipway env update orange --remove-app ingress.enabled --label team=web --dry-run

-E and -O forget what was edited, so that the default counts again; --remove-app and
--remove-deployment leave a default out. Everything happens at once or not at all. What says nothing
of settings runs no script.")]
pub struct Update {
    #[command(flatten)]
    named: Named,

    #[command(flatten)]
    settings: Settings,

    /// Forget what was edited of what the application is given
    #[arg(
        short = 'E',
        long = "unset-app-config",
        alias = "unset-app-env-override",
        value_name = "KEY",
        value_parser = api::argument::key
    )]
    unset_app: Vec<String>,

    /// Forget what was edited of how it is deployed
    #[arg(
        short = 'O',
        long = "unset-deployment-config",
        alias = "unset-deployment-override",
        value_name = "KEY",
        value_parser = api::argument::key
    )]
    unset_deployment: Vec<String>,

    #[command(flatten)]
    said: Said,

    /// Put this in place of all that there is, instead of changing it
    #[arg(long, conflicts_with_all = ["unset_app", "unset_deployment"])]
    replace: bool,

    /// Refuse it unless the environment has this generation
    #[arg(long, value_name = "N")]
    generation: Option<u64>,

    #[command(flatten)]
    how: How,
}

/// What is said of an environment besides its settings.
#[derive(Debug, clap::Args)]
struct Said {
    /// What it is found by; NAME- removes one
    #[arg(short, long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, Option<String>)>,

    /// Whose it is
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// What else there is to know
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,

    /// Keep it: it is not archived or removed unless that is forced
    #[arg(long)]
    protect: bool,

    /// Keep it no longer
    #[arg(long, conflicts_with = "protect")]
    no_protect: bool,
}

impl Said {
    const fn protected(&self) -> Option<bool> {
        match (self.protect, self.no_protect) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// How it is done.
#[derive(Debug, clap::Args)]
struct How {
    /// Read what is asked from this file too: YAML with the fields of the API; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,

    /// Show what it would be configured with, and change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,

    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn create(arguments: Create, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Create {
        name,
        named,
        settings,
        said,
        expires,
        how,
    } = arguments;
    let mut request: EnvironmentRequest = from_file(how.from_file.as_ref())?;
    request.name = name.or(named).or(request.name);
    if request.name.is_none() {
        return Err(Error::Usage {
            what: "nobody says what the environment is called".to_owned(),
            hint: "write `slipway env create NAME`, or `name:` in the file".to_owned(),
        });
    }
    whole(&mut request, &settings, said, context)?;
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    request.expires_in_seconds = expires.map(seconds).or(request.expires_in_seconds);
    let client = context.client()?;
    if how.dry_run {
        return tried(&client.try_environment(&request).await?, context);
    }
    let accepted = client.create_environment(&request).await?;
    follow::begun(&client, &accepted, &how.waiting, context).await
}

/// A whole request, with what stands on the command line.
fn whole(
    request: &mut EnvironmentRequest,
    settings: &Settings,
    said: Said,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    let protected = said.protected();
    let Said {
        labels,
        owner,
        notes,
        ..
    } = said;
    request.tag = settings.tag.clone().or(request.tag.take());
    settings.values(&mut request.set)?;
    settings.removed(&mut request.remove);
    settings.hidden(&mut request.secret, context)?;
    for (label, value) in labels {
        match value {
            Some(value) => drop(request.labels.insert(label, value)),
            None => drop(request.labels.remove(&label)),
        }
    }
    request.owner = owner.or(request.owner.take());
    request.notes = notes.or(request.notes.take());
    request.protected = protected.or(request.protected);
    Ok(())
}

pub(super) async fn update(arguments: Update, context: &mut Context<'_>) -> Result<Exit, Error> {
    if arguments.replace {
        return replace(arguments, context).await;
    }
    let Update {
        named,
        settings,
        unset_app,
        unset_deployment,
        said,
        replace: _,
        generation,
        how,
    } = arguments;
    let name = named.get();
    let mut change: EnvironmentChangeRequest = from_file(how.from_file.as_ref())?;
    change.tag = settings.tag.clone().or(change.tag);
    settings.values(&mut change.set)?;
    settings.removed(&mut change.remove);
    settings.hidden(&mut change.secret, context)?;
    change.unset.application.extend(unset_app);
    change.unset.deployment.extend(unset_deployment);
    change.protected = said.protected().or(change.protected);
    change.labels.extend(said.labels);
    change.owner = said.owner.or(change.owner);
    change.notes = said.notes.or(change.notes);
    let nothing = !change.edits()
        && change.labels.is_empty()
        && change.owner.is_none()
        && change.notes.is_none()
        && change.protected.is_none();
    if nothing && !how.dry_run {
        return Err(Error::Usage {
            what: "nothing is said that would change anything".to_owned(),
            hint: "`slipway env update --help` lists what can be; `slipway env redeploy` does an earlier action again"
                .to_owned(),
        });
    }
    let client = context.client()?;
    if how.dry_run {
        return tried(
            &client.try_environment_change(&name, &change).await?,
            context,
        );
    }
    let accepted = client
        .change_environment(&name, &change, generation)
        .await?;
    follow::begun(&client, &accepted, &how.waiting, context).await
}

async fn replace(arguments: Update, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Update {
        named,
        settings,
        said,
        generation,
        how,
        ..
    } = arguments;
    let name = named.get();
    let mut request: EnvironmentRequest = from_file(how.from_file.as_ref())?;
    whole(&mut request, &settings, said, context)?;
    let client = context.client()?;
    if how.dry_run {
        return tried(&client.try_put_environment(&name, &request).await?, context);
    }
    let put = client.put_environment(&name, &request, generation);
    let accepted: EnvironmentAccepted = put.await?;
    follow::begun(&client, &accepted, &how.waiting, context).await
}

/// Shows what would come of it.
fn tried(trial: &TrialView, context: &mut Context<'_>) -> Result<Exit, Error> {
    context.show(trial, |_| view::configuration(&trial.configuration))?;
    if trial.accepted {
        context.out().say("nothing was changed");
        return Ok(Exit::Done);
    }
    let said = trial.said.as_deref().unwrap_or_default().trim();
    context
        .out()
        .say("error: the project's check does not take this configuration (ENV-010)");
    if !said.is_empty() {
        context.out().say(said);
    }
    Ok(Exit::Failed)
}
