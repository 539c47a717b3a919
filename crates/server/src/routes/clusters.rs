//! Clusters: where they stand, why, and every generation they ever had.

use api::cluster::CauseView;
use api::{
    ClusterGeneration, ClusterHead, ClusterState, ClusterView, GenerationView, KubernetesView,
    WhyView,
};
use axum::Json;
use axum::extract::State;
use model::cluster::Generation;
use model::id::ClusterId;
use model::name::Name;
use model::observed::MachineFact;
use model::task::State as TaskState;
use plan::{Cause, Held, Phase, Plan, Reason};
use serde::Deserialize;
use store::{Advanced, ClusterFilter, ClusterRow, MachineRow, TaskFilter, TaskRow};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::view;

/// Which clusters, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those of this manifest.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    manifest: Option<String>,
    /// Only those that stand so.
    #[param(inline)]
    state: Option<ClusterState>,
}

/// The clusters, in the order of their names.
#[utoipa::path(
    get, path = "/clusters", operation_id = "listClusters", tag = "clusters", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<ClusterHead>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<ClusterHead>>, Problem> {
    let page = extract::page(query.limit, query.cursor)?;
    let manifest = extract::name_of("manifest", query.manifest.as_deref())?;
    let filter = ClusterFilter {
        manifest,
        phase: query.state.map(phase),
    };
    if let Some(manifest) = &filter.manifest {
        let known = app.store().manifest(&project, manifest).await?;
        known.ok_or_else(|| Problem::missing("manifest", manifest))?;
    }
    let listed = app.store().clusters(&project, filter, page).await?;
    Ok(Json(view::listed(listed, view::head)))
}

/// One cluster with its machines and what is being done to them.
#[utoipa::path(
    get, path = "/clusters/{name}", operation_id = "getCluster", tag = "clusters",
    responses((status = 200, description = "the cluster", body = ClusterView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, name): Within<Name>,
) -> Result<Json<ClusterView>, Problem> {
    let row = find(&app, &project, &name).await?;
    let seen = app
        .store()
        .cluster_view(row.id)
        .await?
        .ok_or_else(|| missing(&name))?;
    let machines = machines(&seen).iter().map(view::machine).collect();
    let open_tasks = open_tasks(&app, &row)
        .await?
        .into_iter()
        .map(view::task)
        .collect();
    let now = app.now();
    let wished = plan::wished(&seen.desired, &seen.intents, now);
    let wished = wished.iter().map(|of| (of.to_string(), of.next_action()));
    let earlier = app.store().earlier_lives(&row).await?;
    let earlier = earlier.iter().map(ClusterRow::still_leaving);
    let notes = wished
        .chain(earlier)
        .map(|(fact, next)| format!("{fact}; {next}"));
    let newer_modules = plan::offers(&seen.view(now));
    let newer_modules = newer_modules
        .iter()
        .map(|of| view::newer_modules(of, &row.name));
    Ok(Json(ClusterView {
        notes: notes.collect(),
        newer_modules: newer_modules.collect(),
        strangers: plan::strangers(&seen.observed).map(str::to_owned).collect(),
        head: view::head(row),
        kubernetes: Some(KubernetesView::new(&seen.desired, &seen.observed)),
        load_balancers: seen.desired.balancers.iter().map(Into::into).collect(),
        machines,
        open_tasks,
    }))
}

/// Why a cluster stands where it stands: from what is wanted to what is waited for.
#[utoipa::path(
    get, path = "/clusters/{name}/why", operation_id = "explainCluster", tag = "clusters",
    responses((status = 200, description = "the causal chain", body = WhyView)),
)]
pub(crate) async fn why(
    State(app): State<App>,
    Within(project, name): Within<Name>,
) -> Result<Json<WhyView>, Problem> {
    let row = find(&app, &project, &name).await?;
    let seen = app
        .store()
        .cluster_view(row.id)
        .await?
        .ok_or_else(|| missing(&name))?;
    let advanced = app.store().advanced(row.id).await?;
    let earlier = app.store().earlier_lives(&row).await?;
    let now = app.now();
    let chain = crate::aside(move || {
        let view = seen.view(now);
        let mut plan = plan::plan(&view);
        tell_stored(&mut plan, &row.held);
        let mut causes = plan::why(&view, &plan).into_iter();
        // How it stands comes first, then how that came about, then what it waits for.
        let state = causes.next();
        let advanced = advanced.map(|advanced| Cause {
            fact: came_about(&advanced),
            next: None,
        });
        let earlier = earlier.iter().map(|life| {
            let (fact, next) = life.still_leaving();
            Cause {
                fact,
                next: Some(next),
            }
        });
        let chain = state.into_iter().chain(advanced);
        let chain = chain.chain(causes).chain(earlier);
        Ok(chain
            .map(|cause| CauseView {
                fact: cause.fact,
                next: cause.next,
            })
            .collect())
    })
    .await?;
    Ok(Json(WhyView { chain }))
}

/// Whose doing the last change was that came by itself.
fn came_about(Advanced { because, follows }: &Advanced) -> String {
    match follows {
        Some((author, asked)) => {
            let asked = asked.as_ref().map(|asked| format!(" ({asked})"));
            format!(
                "its last change is a step of what {author} asked for{}: {because}",
                asked.unwrap_or_default()
            )
        }
        None => format!("nobody asked for its last change: {because}"),
    }
}

/// The history of a cluster, newest first.
#[utoipa::path(
    get, path = "/clusters/{name}/generations", operation_id = "listClusterGenerations", tag = "clusters", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<GenerationView>)),
)]
pub(crate) async fn generations(
    State(app): State<App>,
    Within(project, name): Within<Name>,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<GenerationView>>, Problem> {
    let page = page.checked()?;
    let row = find_ever(&app, &project, &name).await?;
    let listed = app.store().desired_generations(row.id, page).await?;
    Ok(Json(view::listed(listed, view::generation)))
}

/// A cluster as it should have been at one time.
#[utoipa::path(
    get, path = "/clusters/{name}/generations/{generation}", operation_id = "getClusterGeneration", tag = "clusters",
    responses((status = 200, description = "the cluster as it should have been", body = ClusterGeneration)),
)]
pub(crate) async fn generation(
    State(app): State<App>,
    Within(project, (name, generation)): Within<(Name, Generation)>,
) -> Result<Json<ClusterGeneration>, Problem> {
    let row = find_ever(&app, &project, &name).await?;
    let desired = app.store().desired_at(row.id, generation).await?;
    let desired = desired.ok_or_else(|| {
        Problem::missing("generation of the cluster", format!("{name}/{generation}"))
    })?;
    Ok(Json((&desired).into()))
}

/// Tells what was last told and the planner alone cannot know: only the store knows that somebody else
/// has what a task needs, and the planner would call the task due; and the checker is asked by whoever
/// commits.
fn tell_stored(plan: &mut Plan, stored: &[Held]) {
    let stopped = stored
        .iter()
        .filter(|held| matches!(held.reason, Reason::Stopped { .. }));
    for held in stopped {
        plan.tell(held.clone());
    }
    let claimed = stored
        .iter()
        .filter(|held| matches!(held.reason, Reason::Claimed { .. } | Reason::Quota { .. }));
    for held in claimed {
        let task = plan
            .tasks
            .iter()
            .find(|task| task.machine.name == held.machine && task.action.kind() == held.kind);
        if let Some(machine) = task.map(|task| task.machine.id) {
            plan.hold_back(machine, &held.reason);
        }
    }
}

/// The cluster of that name or id, or the problem that there is none.
pub(crate) async fn find(app: &App, project: &Name, name: &Name) -> Result<ClusterRow, Problem> {
    let found = match app.store().cluster(project, name).await? {
        Some(found) => Some(found),
        None => of_id(app, project, name)
            .await?
            .filter(|row| row.summary.phase != Phase::Gone),
    };
    found.ok_or_else(|| missing(name))
}

/// Like [`find`], else the last one that is gone: what it should have been stays readable.
async fn find_ever(app: &App, project: &Name, name: &Name) -> Result<ClusterRow, Problem> {
    let found = match app.store().cluster_ever(project, name).await? {
        Some(found) => Some(found),
        None => of_id(app, project, name).await?,
    };
    found.ok_or_else(|| missing(name))
}

/// The cluster whose id was given in place of its name.
async fn of_id(app: &App, project: &Name, name: &Name) -> Result<Option<ClusterRow>, Problem> {
    match name.as_str().parse::<ClusterId>() {
        Ok(id) => Ok(app.store().cluster_of_id(project, id).await?),
        Err(_) => Ok(None),
    }
}

/// That there is, or was, a cluster whose things a list is to show: one of what was never there is not
/// empty, but a mistake.
pub(crate) async fn known(
    app: &App,
    project: &Name,
    cluster: Option<&Name>,
) -> Result<(), Problem> {
    match cluster {
        Some(cluster) => find_ever(app, project, cluster).await.map(drop),
        None => Ok(()),
    }
}

/// Every machine of a cluster with what was seen of it: those to stay, then those to leave.
pub(crate) fn machines(seen: &store::ClusterView) -> Vec<MachineRow> {
    let row = |machine: &model::cluster::Machine, leaving| MachineRow {
        cluster: seen.desired.name.clone(),
        cluster_id: seen.desired.cluster,
        leaving,
        seen: seen
            .observed
            .machines
            .get(&machine.id)
            .cloned()
            .unwrap_or_default(),
        machine: machine.clone(),
    };
    let stay = seen
        .desired
        .machines
        .iter()
        .map(|machine| row(machine, false));
    let leave = seen
        .desired
        .leaving
        .iter()
        .map(|machine| row(machine, true));
    // One that should go and was seen to be gone is history, though it is still named.
    let gone = |row: &MachineRow| {
        row.leaving && matches!(row.seen.machine, Some((MachineFact::Absent, _)))
    };
    stay.chain(leave).filter(|row| !gone(row)).collect()
}

/// Every task of a cluster that is not finished; at most one per machine.
///
/// The store lists by name, and a name can have had several lives: the others are left out.
pub(crate) async fn open_tasks(app: &App, of: &ClusterRow) -> Result<Vec<TaskRow>, Problem> {
    let mut tasks = Vec::new();
    for state in [TaskState::Stuck, TaskState::Running, TaskState::Waiting] {
        let mut page = extract::page(Some(api::page::LIMIT_MAX), None)?;
        loop {
            let filter = TaskFilter {
                cluster: Some(of.name.clone()),
                state: Some(state),
            };
            let listed = app.store().tasks(&of.project, filter, page.clone()).await?;
            let ours = |row: &TaskRow| row.task.cluster == of.id;
            tasks.extend(listed.items.into_iter().filter(ours));
            if listed.next.is_none() {
                break;
            }
            page.after = listed.next;
        }
    }
    Ok(tasks)
}

fn missing(name: &Name) -> Problem {
    Problem::missing("cluster", name)
}

/// Where a cluster stands, in the words of the planner.
pub(crate) const fn phase(state: ClusterState) -> Phase {
    match state {
        ClusterState::Pending => Phase::Pending,
        ClusterState::Scheduled => Phase::Scheduled,
        ClusterState::Done => Phase::Done,
        ClusterState::Error => Phase::Error,
        ClusterState::Deleting => Phase::Deleting,
        ClusterState::Gone => Phase::Gone,
    }
}
