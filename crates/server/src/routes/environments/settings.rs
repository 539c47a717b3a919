//! What a project says of its environments, and what its scripts tell of their settings.

use std::num::NonZeroU16;
use std::time::Duration;

use api::environment::{HelmSettings, KubeconfigOf};
use api::{
    DefaultsView, EnvironmentSettings, EnvironmentSettingsView, KeysOfLevelView, SettingLevel,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::disruption::Windows;
use model::dns::Domain;
use model::environment::EnvironmentName;
use model::environment::config::{Edits, Key, Setting, effective};
use model::environment::hours::Hours;
use model::environment::settings::{
    Chart, Deploy, Kubeconfig, Patience, Place, SecretDelivery, Settings,
};
use model::name::Name;
use model::secret::SecretRef;
use serde::Deserialize;
use store::SettingsRow;
use utoipa::IntoParams;

use super::{notify, sources};
use crate::access::Caller;
use crate::advise::{Of, Unadvised};
use crate::app::App;
use crate::environments;
use crate::extract::{self, Project, Query};
use crate::problem::Problem;

/// The longest text that scripts are told of a project: a name, a path.
const TEXT_LEN_MAX: usize = 1_024;

/// The most spans of the week: two for each day are fourteen.
const HOURS_MAX: usize = 50;

/// What the project says of its environments.
#[utoipa::path(
    get, path = "/environment-settings", operation_id = "getEnvironmentSettings", tag = "environments",
    responses((status = 200, description = "the settings", body = EnvironmentSettingsView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Project(project): Project,
) -> Result<Json<EnvironmentSettingsView>, Problem> {
    Ok(Json(
        shown(&app, find(&app, &project).await?, &project).await?,
    ))
}

async fn find(app: &App, project: &Name) -> Result<SettingsRow, Problem> {
    let row = app.store().environment_settings(project).await?;
    row.ok_or_else(|| Problem::no_environment_settings(project, StatusCode::NOT_FOUND))
}

/// Says how environments of the project are made; what is left out is as usual.
///
/// What is under way goes on as it was begun.
#[utoipa::path(
    put, path = "/environment-settings", operation_id = "putEnvironmentSettings", tag = "environments", request_body = EnvironmentSettings,
    responses((status = 200, description = "changed", body = EnvironmentSettingsView)),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    extract::Json(request): extract::Json<EnvironmentSettings>,
) -> Result<Json<EnvironmentSettingsView>, Problem> {
    let settings = checked(request)?;
    let put = app
        .store()
        .put_environment_settings(&project, settings, caller.actor, app.now());
    match put.await {
        Ok(_) => Ok(Json(
            shown(&app, find(&app, &project).await?, &project).await?,
        )),
        Err(store::EnvironmentError::Store(error)) => Err(error.into()),
        Err(_) => Err(Problem::no_project(&project)),
    }
}

async fn shown(
    app: &App,
    row: SettingsRow,
    project: &Name,
) -> Result<EnvironmentSettingsView, Problem> {
    let SettingsRow {
        settings,
        version,
        updated_by,
        updated_at,
    } = row;
    let mut warnings = sources::unset(app, project, &settings).await?;
    warnings.extend(notify::unset(app, project, &settings).await?);
    if settings.secret_delivery == Some(SecretDelivery::Argv) {
        warnings.push(
            "secrets are given to scripts as arguments, which everybody on the machine can read; \
             `file` or `env` is better for scripts that know them"
                .to_owned(),
        );
    }
    warnings.extend(lacking(app, project, &settings).await?);
    let inits = app.store().inits(project).await?;
    // What failed before somebody changed the settings may have been mended by that.
    let inits = inits.into_iter().filter(|init| init.at >= updated_at);
    warnings.extend(inits.filter_map(|init| {
        let error = init.error?;
        Some(format!("the script init failed at {}: {error}", init.place))
    }));
    Ok(EnvironmentSettingsView {
        settings: settings.into(),
        version,
        updated_by,
        updated_at: updated_at.into(),
        warnings,
    })
}

/// What is not there yet that environments of these settings need. It may come later: nothing is
/// refused for it.
async fn lacking(app: &App, project: &Name, settings: &Settings) -> Result<Vec<String>, Problem> {
    let lacking = app.advise().lacking(settings).await.into_iter();
    let mut told: Vec<_> = lacking
        .map(|Unadvised { what, hint, .. }| format!("{what}; {hint}"))
        .collect();
    if let Some(cluster) = &settings.place.cluster {
        let known = app.store().cluster(project, cluster).await?;
        if known.is_none() {
            told.push(format!(
                "project {project} has no cluster {cluster}; declare it with `slipway apply`, or name another with \
                 `slipway env settings set --cluster` (`slipway get clusters` lists them)"
            ));
        }
    }
    Ok(told)
}

/// Settings that scripts can be told.
fn checked(request: EnvironmentSettings) -> Result<Settings, Problem> {
    let EnvironmentSettings {
        project_name,
        base_domain,
        namespace,
        cluster,
        scripts,
        helm,
        contract,
        tag_key,
        secret_delivery,
        action_seconds,
        check_seconds,
        pending_seconds,
        every_seconds,
        retention_seconds,
        idle_seconds,
        hours,
        up_max,
        sources: given,
        notify,
    } = request;
    text("projectName", &project_name)?;
    domain(&base_domain, helm.is_some())?;
    let (deploy, scripts) = match (scripts, helm) {
        (Some(scripts), None) => (Deploy::Scripts, path("scripts", scripts)?),
        (None, Some(helm)) => (Deploy::Helm(chart(helm)?), String::new()),
        (Some(_), Some(_)) => {
            let detail = "found both scripts and helm, allowed: one of them";
            return Err(Problem::parameter("helm", detail));
        }
        (None, None) => {
            let detail = "found nothing, allowed: a directory of scripts, or helm with a chart";
            return Err(Problem::parameter("scripts", detail));
        }
    };
    let tag = tag_key.map(|key| key.parse()).transpose();
    let tag = tag.map_err(|error| Problem::parameter("tagKey", error))?;
    let usual = Patience::default();
    let settings = Settings {
        place: Place {
            project_name,
            base_domain,
            namespace: extract::name("namespace", &namespace)?,
            cluster: extract::name_of("cluster", cluster.as_deref())?,
        },
        deploy,
        scripts,
        contract: contract.unwrap_or_default().into(),
        tag: tag.unwrap_or_else(Key::image_tag),
        secret_delivery: secret_delivery.map(Into::into),
        patience: Patience {
            action: span("actionSeconds", action_seconds, usual.action)?,
            check: span("checkSeconds", check_seconds, usual.check)?,
            pending: span("pendingSeconds", pending_seconds, usual.pending)?,
            every: span("everySeconds", every_seconds, usual.every)?,
        },
        retention: span("retentionSeconds", retention_seconds, Settings::RETENTION)?,
        idle: idle_seconds
            .map(|_| span("idleSeconds", idle_seconds, Duration::ZERO))
            .transpose()?,
        hours: windows(&hours)?,
        up_max,
        sources: sources::checked(given)?,
        notify: notify::checked(notify)?,
    };
    sources::handed_over(&settings)?;
    Ok(settings)
}

/// A name that environments are reached below; scripts may be told a port with it.
fn domain(given: &str, by_helm: bool) -> Result<(), Problem> {
    let wrong = |why: String| Problem::parameter("baseDomain", why);
    let (name, port) = match given.split_once(':') {
        Some((name, port)) if !by_helm => (name, Some(port)),
        Some(_) | None => (given, None),
    };
    name.parse::<Domain>()
        .map_err(|error| wrong(format!("{error}; allowed: a name like shop.example.org")))?;
    match port.map(str::parse::<NonZeroU16>) {
        Some(Err(_)) => Err(wrong(format!(
            "found `{}`, allowed: a name like shop.example.org, for scripts also with a port behind a colon",
            given.escape_debug()
        ))),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// A chart that Helm can be told of.
fn chart(helm: HelmSettings) -> Result<Chart, Problem> {
    let HelmSettings {
        chart,
        kubeconfig,
        host,
    } = helm;
    Ok(Chart {
        chart: path("helm.chart", chart)?,
        kubeconfig: match kubeconfig {
            None => None,
            Some(KubeconfigOf::File(file)) => {
                Some(Kubeconfig::File(path("helm.kubeconfig.file", file)?))
            }
            Some(KubeconfigOf::Secret(text)) => {
                let secret = secret("helm.kubeconfig.secret", &text)?;
                Some(Kubeconfig::Secret(secret))
            }
        },
        host: host
            .map(|key| key.parse())
            .transpose()
            .map_err(|error| Problem::parameter("helm.host", error))?,
    })
}

/// An entry of a secret of the project.
pub(super) fn secret(place: &str, text: &str) -> Result<SecretRef, Problem> {
    let (name, key) = text.split_once('/').ok_or_else(|| {
        let detail = "allowed: a secret and its entry, like NAME/ENTRY";
        Problem::parameter(place, detail)
    })?;
    let key = key.parse();
    Ok(SecretRef {
        name: extract::name(place, name)?,
        key: Some(key.map_err(|error| Problem::parameter(place, error))?),
    })
}

/// Whether somebody has set it.
pub(super) async fn is_set(app: &App, project: &Name, secret: &SecretRef) -> Result<bool, Problem> {
    let row = app.store().secret(project, &secret.name).await?;
    let entries = row.map(|row| row.entries).unwrap_or_default();
    let mut entries = entries.iter();
    Ok(entries.any(|entry| Some(entry) == secret.key.as_ref()))
}

/// A path on the server.
fn path(place: &str, given: String) -> Result<String, Problem> {
    text(place, &given)?;
    if !given.starts_with('/') {
        let detail = "allowed: an absolute path on the server";
        return Err(Problem::parameter(place, detail));
    }
    Ok(given)
}

/// When environments are up.
fn windows(hours: &[String]) -> Result<Windows, Problem> {
    if hours.len() > HOURS_MAX {
        let detail = format!("found {}, allowed: at most {HOURS_MAX}", hours.len());
        return Err(Problem::parameter("hours", detail));
    }
    let read = hours.iter().map(|text| text.parse::<Hours>());
    let read = read.map(|hours| hours.map(|Hours(window)| window));
    let windows = read.collect::<Result<_, _>>();
    let windows = windows.map_err(|error| Problem::parameter("hours", error))?;
    Ok(Windows(windows))
}

fn text(place: &str, text: &str) -> Result<(), Problem> {
    let wrong = if text.trim().is_empty() {
        "found nothing; scripts are told this".to_owned()
    } else if text.len() > TEXT_LEN_MAX {
        format!(
            "found {} bytes, allowed: at most {TEXT_LEN_MAX}",
            text.len()
        )
    } else if text.chars().any(char::is_control) {
        "found control characters, allowed: one line of plain text".to_owned()
    } else {
        return Ok(());
    };
    Err(Problem::parameter(place, wrong))
}

fn span(place: &str, seconds: Option<u32>, usual: Duration) -> Result<Duration, Problem> {
    match seconds {
        Some(0) => Err(Problem::parameter(place, "found 0, allowed: 1 or more")),
        Some(seconds) => Ok(Duration::from_secs(seconds.into())),
        None => Ok(usual),
    }
}

/// Of which settings.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LevelQuery {
    /// Which of the two configurations.
    #[param(inline)]
    level: SettingLevel,
    /// An environment, as which it is deployed; without it, as one that nobody edited.
    #[param(pattern = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$")]
    environment: Option<String>,
}

/// What would be configured if nobody edited anything, as scripts tell it.
#[utoipa::path(
    get, path = "/environment-defaults", operation_id = "getEnvironmentDefaults", tag = "environments", params(LevelQuery),
    responses(
        (status = 200, description = "the defaults", body = DefaultsView),
        (status = 409, description = "the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn defaults(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<LevelQuery>,
) -> Result<Json<DefaultsView>, Problem> {
    let (settings, deployment) = asked(&app, &project, &query).await?;
    let of = of(query.level, &deployment);
    let told = app.advise().defaults(&settings, of).await;
    let told = told.map_err(Problem::unadvised)?;
    let told = effective(&told, &Edits::default().application);
    let settings = told.into_iter().map(Into::into).collect();
    Ok(Json(DefaultsView { settings }))
}

/// Settings that may be edited, whether or not they have defaults, with what is known of them.
///
/// Scripts tell only their names. Where environments are deployed by Helm, the schema of the chart
/// tells what their values may be.
#[utoipa::path(
    get, path = "/environment-keys", operation_id = "getEnvironmentKeys", tag = "environments", params(LevelQuery),
    responses(
        (status = 200, description = "their names, and what is known of them", body = KeysOfLevelView),
        (status = 409, description = "the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn keys(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<LevelQuery>,
) -> Result<Json<KeysOfLevelView>, Problem> {
    let (settings, deployment) = asked(&app, &project, &query).await?;
    let of = of(query.level, &deployment);
    let keys = app.advise().keys(&settings, of).await;
    let keys = keys.map_err(Problem::unadvised)?;
    Ok(Json(KeysOfLevelView {
        keys: keys.iter().map(|known| known.key.clone()).collect(),
        settings: keys.into_iter().map(Into::into).collect(),
    }))
}

fn of(level: SettingLevel, deployment: &[Setting]) -> Of<'_> {
    match level {
        SettingLevel::Application => Of::Application(deployment),
        SettingLevel::Deployment => Of::Deployment,
    }
}

/// What the project says, and how it is deployed where that matters.
async fn asked(
    app: &App,
    project: &Name,
    query: &LevelQuery,
) -> Result<(Settings, Vec<Setting>), Problem> {
    let edits = match &query.environment {
        Some(name) => {
            let name = name.parse::<EnvironmentName>();
            let name = name.map_err(|error| Problem::parameter("environment", error))?;
            environments::find(app, project, &name).await?.edits
        }
        None => Edits::default(),
    };
    let settings = environments::settings(app, project).await?;
    if query.level == SettingLevel::Deployment {
        return Ok((settings, Vec::new()));
    }
    let told = app.advise().defaults(&settings, Of::Deployment).await;
    let told = told.map_err(Problem::unadvised)?;
    let deployment = effective(&told, &edits.deployment);
    Ok((settings, deployment))
}
