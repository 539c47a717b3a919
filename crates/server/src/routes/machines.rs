//! Machines: as they should be, beside what was last seen of them.

use api::{ChangeView, MachineView};
use axum::Json;
use axum::extract::State;
use model::name::Name;
use serde::Deserialize;
use store::MachineFilter;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::view;

/// Which machines, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those of this cluster.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    cluster: Option<String>,
}

/// The machines, in the order of their names.
#[utoipa::path(
    get, path = "/machines", operation_id = "listMachines", tag = "machines", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<MachineView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<MachineView>>, Problem> {
    let page = extract::page(query.limit, query.cursor)?;
    let filter = MachineFilter {
        cluster: extract::name_of("cluster", query.cluster.as_deref())?,
    };
    let listed = app.store().machines(&project, filter, page).await?;
    Ok(Json(view::listed(listed, |row| view::machine(&row))))
}

/// One machine, as it should be and as it was last seen.
#[utoipa::path(
    get, path = "/machines/{name}", operation_id = "getMachine", tag = "machines",
    responses((status = 200, description = "the machine", body = MachineView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, name): Within<Name>,
) -> Result<Json<MachineView>, Problem> {
    let row = app.store().machine(&project, &name).await?;
    row.map(|row| Json(view::machine(&row)))
        .ok_or_else(|| Problem::missing("machine", name))
}

/// What was seen to change about a machine, newest first, for as long as changes are kept.
#[utoipa::path(
    get, path = "/machines/{name}/changes", operation_id = "listMachineChanges", tag = "machines", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<ChangeView>)),
)]
pub(crate) async fn changes(
    State(app): State<App>,
    Within(project, name): Within<Name>,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<ChangeView>>, Problem> {
    let page = page.checked()?;
    let row = app.store().machine(&project, &name).await?;
    let row = row.ok_or_else(|| Problem::missing("machine", name))?;
    let listed = app.store().machine_changes(row.machine.id, page).await?;
    Ok(Json(view::listed(listed, view::change)))
}
