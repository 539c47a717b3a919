//! Tasks: where they stand.

use api::TaskView;
use axum::Json;
use axum::extract::State;
use model::id::TaskId;
use model::name::Name;
use model::task::State as Stand;
use serde::Deserialize;
use store::{TaskFilter, TaskRow};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::clusters;
use crate::view;

/// Which tasks, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those of this cluster, by its name or its id.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    cluster: Option<String>,
    /// Only those that stand so.
    #[param(inline)]
    state: Option<api::TaskState>,
}

/// The tasks, newest first.
#[utoipa::path(
    get, path = "/tasks", operation_id = "listTasks", tag = "tasks", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<TaskView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<TaskView>>, Problem> {
    let page = extract::page(query.limit, query.cursor)?;
    let cluster = extract::name_of("cluster", query.cluster.as_deref())?;
    clusters::known(&app, &project, cluster.as_ref()).await?;
    let filter = TaskFilter {
        cluster,
        state: query.state.map(stand),
    };
    let listed = app.store().tasks(&project, filter, page).await?;
    Ok(Json(view::listed(listed, view::task)))
}

/// One task and where it stands.
#[utoipa::path(
    get, path = "/tasks/{id}", operation_id = "getTask", tag = "tasks",
    responses((status = 200, description = "the task", body = TaskView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, id): Within<TaskId>,
) -> Result<Json<TaskView>, Problem> {
    Ok(Json(view::task(find(&app, &project, id).await?)))
}

/// The task of that id, or the problem that there is none.
pub(crate) async fn find(app: &App, project: &Name, id: TaskId) -> Result<TaskRow, Problem> {
    app.store()
        .task(project, id)
        .await?
        .ok_or_else(|| Problem::missing("task", id))
}

const fn stand(state: api::TaskState) -> Stand {
    match state {
        api::TaskState::Waiting => Stand::Waiting,
        api::TaskState::Running => Stand::Running,
        api::TaskState::Stuck => Stand::Stuck,
        api::TaskState::Done => Stand::Done,
        api::TaskState::Withdrawn => Stand::Withdrawn,
    }
}
