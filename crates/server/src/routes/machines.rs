//! Machines: as they should be, beside what was last seen of them.

use api::{ChangeView, MachineView};
use axum::Json;
use axum::extract::State;
use model::name::Name;
use serde::Deserialize;
use store::{MachineFilter, MachineRow};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::clusters;
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
    /// Only those of this cluster, by its name or its id.
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
    let cluster = extract::name_of("cluster", query.cluster.as_deref())?;
    clusters::known(&app, &project, cluster.as_ref()).await?;
    let filter = MachineFilter { cluster };
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
    let row = named(&app, &project, &name).await?;
    Ok(Json(view::machine(&row)))
}

/// The one machine of that name or id.
pub(crate) async fn named(app: &App, project: &Name, name: &Name) -> Result<MachineRow, Problem> {
    let found = app.store().machines_named(project, name).await?;
    only(found, name)
}

/// The one that is meant: of several nobody can tell, unless one alone is to stay.
pub(crate) fn only(mut found: Vec<MachineRow>, name: &Name) -> Result<MachineRow, Problem> {
    if found.iter().any(|row| !row.leaving) {
        found.retain(|row| !row.leaving);
    }
    if found.len() > 1 {
        let told = found.iter().map(|row| {
            let (id, cluster) = (row.machine.id, row.cluster_id);
            format!("{id} of cluster {} ({cluster})", row.cluster)
        });
        return Err(Problem::ambiguous(name, &told.collect::<Vec<_>>()));
    }
    let first = found.into_iter().next();
    first.ok_or_else(|| Problem::missing("machine", name))
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
    let row = named(&app, &project, &name).await?;
    let listed = app.store().machine_changes(row.machine.id, page).await?;
    Ok(Json(view::listed(listed, view::change)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cluster::{Machine, Origin, Role};
    use model::id::{ClusterId, MachineId};
    use model::observed::Seen;
    use std::net::Ipv4Addr;

    fn row(cluster: &str, leaving: bool) -> MachineRow {
        let origin = || model::id::Origin {
            parent: cluster,
            name: "a-b-c-01",
            ordinal: 1,
            incarnation: 0,
        };
        MachineRow {
            machine: Machine {
                id: MachineId::derive(origin()),
                name: "a-b-c-01".parse().unwrap(),
                pool: "c".parse().unwrap(),
                role: Role::Compute,
                ordinal: 1,
                incarnation: 0,
                address: Ipv4Addr::LOCALHOST,
                balancer: None,
                origin: Origin::Given {
                    endpoint: Ipv4Addr::LOCALHOST,
                    ssh_port: 22,
                    username: "root".to_owned(),
                    secret: None,
                    jump: None,
                },
            },
            cluster: cluster.parse().unwrap(),
            cluster_id: ClusterId::derive(origin()),
            leaving,
            seen: Seen::default(),
        }
    }

    #[test]
    fn of_two_machines_of_one_name_nobody_is_meant_unless_the_other_goes() {
        let name = "a-b-c-01".parse().unwrap();
        let told = only(vec![row("a", false), row("a-b", false)], &name).unwrap_err();
        expect_test::expect!["machine `a-b-c-01` is there 2 times: machine-7fvy7d6rz51me of cluster a (cluster-hkw0bxmhh34sq), machine-38ps78p4nksvz of cluster a-b (cluster-fr9gvbm3mmwnp)"].assert_eq(&told.wire().detail);
        let stays = only(vec![row("a-b", false), row("a", true)], &name).unwrap();
        assert_eq!(stays.cluster.as_str(), "a-b");
        let both_go = only(vec![row("a", true), row("a-b", true)], &name);
        assert_eq!(both_go.unwrap_err().wire().code, "API-022");
        assert_eq!(only(Vec::new(), &name).unwrap_err().wire().code, "API-002");
    }
}
