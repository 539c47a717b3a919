//! Environments and what was done to them, as they are stored.

use api::{ActionDetail, ActionView, ConfigurationView, EnvironmentView, StatusChangeView};
use axum::Json;
use axum::extract::State;
use model::environment::EnvironmentName;
use model::environment::status::Status;
use model::id::ActionId;
use model::name::Name;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use store::{ActionRow, EnvironmentFilter, EnvironmentOrder};
use utoipa::IntoParams;

use crate::app::App;
use crate::environments;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::view;

/// Which environments, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those that are one of these, joined by commas.
    #[param(example = "running,failure")]
    status: Option<String>,
    /// Only those that rest or are about to, or only the others.
    archived: Option<bool>,
    /// Only those of this owner.
    owner: Option<String>,
    /// Only those with all of these labels, joined by commas, each `name` or `name=value`.
    #[param(example = "team=web")]
    label: Option<String>,
    /// Only those with this in their name or owner.
    text: Option<String>,
    /// In which order.
    #[param(inline)]
    sort: Option<Sort>,
}

/// In which order environments are listed.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sort {
    /// By name.
    Name,
    /// Those that changed last come first.
    Changed,
}

/// The environments that are there, archived ones included.
#[utoipa::path(
    get, path = "/environments", operation_id = "listEnvironments", tag = "environments", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<EnvironmentView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<EnvironmentView>>, Problem> {
    let ListQuery {
        limit,
        cursor,
        status,
        archived,
        owner,
        label,
        text,
        sort,
    } = query;
    let page = extract::page(limit, cursor)?;
    let filter = EnvironmentFilter {
        status: statuses(status.as_deref())?,
        archived,
        owner,
        labels: labels(label.as_deref())?,
        text,
    };
    let order = match sort {
        Some(Sort::Changed) => EnvironmentOrder::Changed,
        Some(Sort::Name) | None => EnvironmentOrder::Name,
    };
    let listed = app
        .store()
        .environments(&project, filter, order, page)
        .await?;
    Ok(Json(view::listed(listed, environments::environment)))
}

fn statuses(text: Option<&str>) -> Result<BTreeSet<Status>, Problem> {
    let read = |word: &str| {
        word.parse::<Status>().map_err(|error| {
            let all = Status::ALL.map(Status::as_str).join(", ");
            Problem::parameter("status", format!("{error}; allowed: {all}"))
        })
    };
    text.map_or_else(
        || Ok(BTreeSet::new()),
        |text| text.split(',').map(read).collect(),
    )
}

fn labels(text: Option<&str>) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let Some(text) = text else {
        return Ok(BTreeMap::new());
    };
    let mut labels = BTreeMap::new();
    for part in text.split(',') {
        let (label, value) = match part.split_once('=') {
            Some((label, value)) => (label, Some(value.to_owned())),
            None => (part, None),
        };
        if label.is_empty() {
            return Err(Problem::parameter(
                "label",
                "allowed: `name` or `name=value`",
            ));
        }
        if labels.insert(label.to_owned(), value).is_some() {
            return Err(Problem::parameter("label", "a label is named twice"));
        }
    }
    Ok(labels)
}

/// One environment.
#[utoipa::path(
    get, path = "/environments/{name}", operation_id = "getEnvironment", tag = "environments",
    responses((status = 200, description = "the environment", body = EnvironmentView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, name): Within<EnvironmentName>,
) -> Result<Json<EnvironmentView>, Problem> {
    let row = environments::find(&app, &project, &name).await?;
    Ok(Json(environments::environment(row)))
}

/// The configuration of an environment as it counts in the end: defaults of scripts and edits.
#[utoipa::path(
    get, path = "/environments/{name}/configuration", operation_id = "getEnvironmentConfiguration", tag = "environments",
    responses(
        (status = 200, description = "both levels", body = ConfigurationView),
        (status = 409, description = "the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn configuration(
    State(app): State<App>,
    Within(project, name): Within<EnvironmentName>,
) -> Result<Json<ConfigurationView>, Problem> {
    let row = environments::find(&app, &project, &name).await?;
    let settings = environments::settings(&app, &project).await?;
    let effective = environments::worked_out(&app, &settings, &row.edits).await?;
    Ok(Json(environments::configuration(effective)))
}

/// What was done to an environment, newest first.
#[utoipa::path(
    get, path = "/environments/{name}/actions", operation_id = "listEnvironmentActions", tag = "environments", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<ActionView>)),
)]
pub(crate) async fn actions(
    State(app): State<App>,
    Within(project, name): Within<EnvironmentName>,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<ActionView>>, Problem> {
    let page = page.checked()?;
    let row = environments::find(&app, &project, &name).await?;
    let listed = app.store().actions(row.id, page).await?;
    Ok(Json(view::listed(listed, environments::action)))
}

/// One action at an environment, with exactly what its script was given.
///
/// It can be read also when the environment is gone.
#[utoipa::path(
    get, path = "/environments/{name}/actions/{id}", operation_id = "getEnvironmentAction", tag = "environments",
    responses((status = 200, description = "the action", body = ActionDetail)),
)]
pub(crate) async fn action(
    State(app): State<App>,
    Within(project, (name, id)): Within<(EnvironmentName, ActionId)>,
) -> Result<Json<ActionDetail>, Problem> {
    let row = find_action(&app, &project, &name, id).await?;
    Ok(Json(environments::action_detail(row)))
}

/// An action at an environment of that name, which may be gone.
pub(crate) async fn find_action(
    app: &App,
    project: &Name,
    name: &EnvironmentName,
    id: ActionId,
) -> Result<ActionRow, Problem> {
    let row = app.store().action(project, id).await?;
    let row = row.filter(|row| row.name == *name);
    row.ok_or_else(|| Problem::no_action(name, id))
}

/// How an environment became what it is, newest first.
#[utoipa::path(
    get, path = "/environments/{name}/changes", operation_id = "listEnvironmentChanges", tag = "environments", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<StatusChangeView>)),
)]
pub(crate) async fn changes(
    State(app): State<App>,
    Within(project, name): Within<EnvironmentName>,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<StatusChangeView>>, Problem> {
    let page = page.checked()?;
    let row = environments::find(&app, &project, &name).await?;
    let listed = app.store().environment_changes(row.id, page).await?;
    Ok(Json(view::listed(listed, environments::status_change)))
}
