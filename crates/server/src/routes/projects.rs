//! Projects: who owns things, and how much of each kind they may have.

use api::{ProjectRequest, ProjectView};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use model::name::Name;
use store::{ProjectRow, Quota};

use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Named, Query};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::view;

/// The projects that the token may see, in the order of their names.
#[utoipa::path(
    get, path = "/api/v1/projects", operation_id = "listProjects", tag = "projects", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<ProjectView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<ProjectView>>, Problem> {
    let page = page.checked()?;
    let listed = app.store().projects(caller.project.as_ref(), page).await?;
    Ok(Json(view::listed(listed, view::project)))
}

/// One project, its limits, and how much of them is used.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}", operation_id = "getProject", tag = "projects",
    responses((status = 200, description = "the project", body = ProjectView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Named(name): Named,
) -> Result<Json<ProjectView>, Problem> {
    Ok(Json(view::project(find(&app, &name).await?)))
}

/// Makes a project, or changes its limits.
///
/// Limits below what there is take nothing away: they refuse what would come. With
/// `If-None-Match: *` a project that exists is left as it is.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}", operation_id = "putProject", tag = "projects", request_body = ProjectRequest,
    params(("If-None-Match" = Option<String>, Header, pattern = "^\\*$", description = "`*`: only if there is no such project")),
    responses(
        (status = 200, description = "changed", body = ProjectView),
        (status = 201, description = "made", body = ProjectView, headers(("Location" = String, description = "where it is"))),
        (status = 412, description = "there is such a project", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    headers: HeaderMap,
    extract::Json(request): extract::Json<ProjectRequest>,
) -> Result<impl IntoResponse, Problem> {
    if only_new(&headers)? && app.store().project(&name).await?.is_some() {
        return Err(Problem::project_exists(&name));
    }
    let api::Quota {
        clusters,
        machines,
        environments,
    } = request.quota;
    let quota = Quota {
        clusters,
        machines,
        environments,
    };
    let put = app
        .store()
        .put_project(&name, quota, caller.actor, app.now());
    let status = if put.await? {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let row = find(&app, &name).await?;
    Ok((status, [location(&name)], Json(view::project(row))))
}

/// Removes a project that has nothing left.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}", operation_id = "deleteProject", tag = "projects",
    responses(
        (status = 204, description = "removed"),
        (status = 409, description = "it still has something", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
) -> Result<StatusCode, Problem> {
    let deleted = app.store().delete_project(&name, caller.actor, app.now());
    deleted.await?;
    app.known().forget_project(&name);
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, name: &Name) -> Result<ProjectRow, Problem> {
    let row = app.store().project(name).await?;
    row.ok_or_else(|| Problem::no_project(name))
}

/// Whether the project must be new.
fn only_new(headers: &HeaderMap) -> Result<bool, Problem> {
    match extract::text_of(headers, &header::IF_NONE_MATCH, "If-None-Match")? {
        None => Ok(false),
        Some("*") => Ok(true),
        Some(_) => Err(Problem::parameter("If-None-Match", "allowed: `*`")),
    }
}

fn location(name: &Name) -> (HeaderName, String) {
    (header::LOCATION, format!("/api/v1/projects/{name}"))
}
