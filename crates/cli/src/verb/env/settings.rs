//! `slipway env settings`: what a project says of its environments.

use super::notify::{Notify, TestNotify, named, tested};
use crate::context::Context;
use crate::error::Error;
use crate::verb::apply::lifetime;
use crate::view;
use api::client::Error as ClientError;
use api::environment::{Contract, EnvironmentSettings, HelmSettings, KubeconfigOf, SecretDelivery};
use api::{EnvironmentSettingsView, Exit};
use std::time::Duration;

/// Verbs about settings.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show how environments of the project are made
    #[command(after_help = "Example:\n  slipway env settings show -o json")]
    Show,
    /// Change how environments of the project are made; what is not named stays
    Set(Box<Set>),
    /// Have the pull or merge requests of a repository be given environments
    Source(Box<super::source::Source>),
    /// Say who else is told what becomes of environments
    Notify(Box<Notify>),
    /// Send a message to a target that tells of nothing, and show what it answers
    TestNotify(TestNotify),
}

/// Arguments of `slipway env settings set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env settings set --project-name Shop --base-domain shop.example.org --namespace shop \\
    --scripts /srv/scripts
  slipway env settings set --secret-delivery file --up-max 20
  slipway env settings set --chart /srv/shop/chart --kubeconfig-file /srv/shop/kubeconfig

The first time, --project-name, --base-domain, --namespace and either --scripts or --chart are needed.")]
pub struct Set {
    /// What the product is called, as scripts are told
    #[arg(long, value_name = "TEXT")]
    project_name: Option<String>,

    /// Below which name environments are reached
    #[arg(long, value_name = "NAME")]
    base_domain: Option<String>,

    /// The namespace of Kubernetes that they are placed in
    #[arg(long, value_name = "NAME", value_parser = api::argument::name)]
    namespace: Option<String>,

    /// The cluster that they are placed on, or `none`
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// The directory of the scripts, an absolute path on the server; in place of a chart
    #[arg(long, value_name = "DIR", conflicts_with = "chart")]
    scripts: Option<String>,

    /// The chart that Helm deploys, an absolute path on the server; in place of scripts
    #[arg(long, value_name = "PATH")]
    chart: Option<String>,

    /// How Helm reaches Kubernetes: a kubeconfig on the server
    #[arg(long, value_name = "FILE", conflicts_with = "kubeconfig_secret")]
    kubeconfig_file: Option<String>,

    /// How Helm reaches Kubernetes: a kubeconfig in a secret of the project
    #[arg(long, value_name = "NAME/ENTRY")]
    kubeconfig_secret: Option<String>,

    /// Which value of the chart is given the name that an environment is reached by, or `none`
    #[arg(long, value_name = "KEY")]
    host_key: Option<String>,

    /// Which arguments scripts are given
    #[arg(long, value_name = "WORD", value_parser = ["current", "legacy"])]
    contract: Option<String>,

    /// Which setting of the application its tag is
    #[arg(long, value_name = "KEY", value_parser = api::argument::key)]
    tag_key: Option<String>,

    /// How scripts are given what is secret; without it nothing secret is taken
    #[arg(long, value_name = "WORD", value_parser = ["file", "env", "argv", "none"])]
    secret_delivery: Option<String>,

    /// How long a script that changes something may take
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    action_time: Option<Duration>,

    /// How long a script that looks may take
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    check_time: Option<Duration>,

    /// How long an environment may be about to become another
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pending_time: Option<Duration>,

    /// How often each environment is looked at
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    every: Option<Duration>,

    /// How long an environment rests in the archive before it is removed
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    retention: Option<Duration>,

    /// For how long nobody may have used an environment before it is put to sleep, or `none`
    #[arg(long, value_name = "TIME", value_parser = idle)]
    idle: Option<Idle>,

    /// When environments are up, like `Mon-Fri 08:00-19:00 +01:00`, or `none` for always; may be
    /// given several times
    #[arg(long, value_name = "HOURS")]
    hours: Vec<String>,

    /// How many environments may be up at once, or `none`
    #[arg(long, value_name = "N", value_parser = limit)]
    up_max: Option<Limit>,
}

/// A number, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<u32>);

/// A time, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle(Option<Duration>);

fn idle(text: &str) -> Result<Idle, String> {
    if text == "none" {
        return Ok(Idle(None));
    }
    lifetime(text).map(Some).map(Idle)
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let number = text.parse().map(Some).map(Limit);
    number.map_err(|_| "write a whole number, or `none`".to_owned())
}

pub(super) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    let view = match verb {
        Verb::Show => client.environment_settings().await?,
        Verb::Source(source) => return super::source::run(*source, context).await,
        Verb::Set(set) => {
            let known = match client.environment_settings().await {
                Ok(known) => Some(known.settings),
                Err(ClientError::Problem(problem)) if problem.code == "ENV-012" => None,
                Err(error) => return Err(error.into()),
            };
            let settings = over(*set, known)?;
            client.put_environment_settings(&settings).await?
        }
        Verb::Notify(notify) => {
            let known = client.environment_settings().await?;
            let settings = named(*notify, known.settings)?;
            client.put_environment_settings(&settings).await?
        }
        Verb::TestNotify(test) => return tested(&test, context).await,
    };
    show(&view, context)?;
    Ok(Exit::Done)
}

pub(super) fn show(view: &EnvironmentSettingsView, context: &mut Context<'_>) -> Result<(), Error> {
    context.show(view, |now| view::environment_settings(view, now))?;
    for warning in &view.warnings {
        context.out().say(&format!("warning: {warning}"));
    }
    Ok(())
}

/// The settings with those that were named in place of what there was.
fn over(set: Set, known: Option<EnvironmentSettings>) -> Result<EnvironmentSettings, Error> {
    let missing = |option: &str| {
        Error::Usage {
        what: format!("the project has no settings yet, and {option} is not given"),
        hint: "the first time, name --project-name, --base-domain, --namespace, and --scripts or --chart"
            .to_owned(),
    }
    };
    if known.is_none() && set.scripts.is_none() && set.chart.is_none() {
        return Err(missing("--scripts or --chart"));
    }
    let mut settings = match known {
        Some(known) => known,
        None => EnvironmentSettings {
            project_name: set
                .project_name
                .clone()
                .ok_or_else(|| missing("--project-name"))?,
            base_domain: set
                .base_domain
                .clone()
                .ok_or_else(|| missing("--base-domain"))?,
            namespace: set
                .namespace
                .clone()
                .ok_or_else(|| missing("--namespace"))?,
            scripts: None,
            helm: None,
            cluster: None,
            contract: None,
            tag_key: None,
            secret_delivery: None,
            action_seconds: None,
            check_seconds: None,
            pending_seconds: None,
            every_seconds: None,
            retention_seconds: None,
            idle_seconds: None,
            hours: Vec::new(),
            up_max: None,
            sources: Vec::new(),
            notify: Vec::new(),
        },
    };
    times(&mut settings, &set);
    deployed(&mut settings, &set)?;
    put(&mut settings.project_name, set.project_name);
    put(&mut settings.base_domain, set.base_domain);
    put(&mut settings.namespace, set.namespace);
    if let Some(cluster) = set.cluster {
        settings.cluster = (cluster != "none").then_some(cluster);
    }
    settings.tag_key = set.tag_key.or(settings.tag_key);
    if let Some(word) = set.contract {
        settings.contract = Some(if word == "legacy" {
            Contract::Legacy
        } else {
            Contract::Current
        });
    }
    if let Some(word) = set.secret_delivery {
        settings.secret_delivery = delivery(&word);
    }
    Ok(settings)
}

/// How scripts are given what is secret.
fn delivery(word: &str) -> Option<SecretDelivery> {
    match word {
        "file" => Some(SecretDelivery::File),
        "env" => Some(SecretDelivery::Env),
        "argv" => Some(SecretDelivery::Argv),
        _ => None,
    }
}

/// The same for who deploys environments: whoever is named last does.
fn deployed(settings: &mut EnvironmentSettings, set: &Set) -> Result<(), Error> {
    if let Some(scripts) = &set.scripts {
        (settings.scripts, settings.helm) = (Some(scripts.clone()), None);
    }
    if let Some(chart) = &set.chart {
        settings.scripts = None;
        let helm = settings.helm.get_or_insert_with(|| HelmSettings {
            chart: String::new(),
            kubeconfig: None,
            host: None,
        });
        helm.chart.clone_from(chart);
    }
    let file = set.kubeconfig_file.clone().map(KubeconfigOf::File);
    let way = file.or(set.kubeconfig_secret.clone().map(KubeconfigOf::Secret));
    match &mut settings.helm {
        Some(helm) => {
            helm.kubeconfig = way.or(helm.kubeconfig.take());
            if let Some(key) = &set.host_key {
                helm.host = (key != "none").then(|| key.clone());
            }
            Ok(())
        }
        None if way.is_some() || set.host_key.is_some() => Err(Error::Usage {
            what: "a kubeconfig and a host are for Helm, and scripts deploy this project"
                .to_owned(),
            hint: "name --chart, too".to_owned(),
        }),
        None => Ok(()),
    }
}

/// The same for what is a time, or a number.
fn times(settings: &mut EnvironmentSettings, set: &Set) {
    let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    settings.action_seconds = set.action_time.map(seconds).or(settings.action_seconds);
    settings.check_seconds = set.check_time.map(seconds).or(settings.check_seconds);
    settings.pending_seconds = set.pending_time.map(seconds).or(settings.pending_seconds);
    settings.every_seconds = set.every.map(seconds).or(settings.every_seconds);
    settings.retention_seconds = set.retention.map(seconds).or(settings.retention_seconds);
    if let Some(Idle(time)) = set.idle {
        settings.idle_seconds = time.map(seconds);
    }
    if let Some(Limit(limit)) = set.up_max {
        settings.up_max = limit;
    }
    if !set.hours.is_empty() {
        settings.hours.clone_from(&set.hours);
        settings.hours.retain(|hours| hours != "none");
    }
}

fn put(place: &mut String, given: Option<String>) {
    if let Some(given) = given {
        *place = given;
    }
}
