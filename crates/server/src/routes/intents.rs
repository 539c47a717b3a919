//! Intents: wishes outside the manifest, stored for the planner to read.

use std::time::Duration;

use api::{IntentRequest, IntentView, WishRequest};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use model::id::{IntentId, MachineId, TaskId};
use model::intent::{Intent, Wish};
use model::name::Name;
use model::snapshot::SnapshotId;
use serde::Deserialize;
use store::{Draft, Withdrawal};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::routes::{machines, tasks};
use crate::view;

/// The longest reason: a paragraph.
const REASON_LEN_MAX: usize = 1_000;

/// Stores a wish; the planner reads it from now on.
#[utoipa::path(
    post, path = "/intents", operation_id = "wish", tag = "intents", request_body = IntentRequest,
    responses(
        (status = 202, description = "stored; the work follows", body = IntentView, headers(("Location" = String, description = "the cluster to follow"))),
        (status = 409, description = "the wish makes no sense for what there is, or removes too much at once", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn wish(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    extract::Json(request): extract::Json<IntentRequest>,
) -> Result<impl IntoResponse, Problem> {
    let IntentRequest {
        cluster,
        wish,
        reason,
        expires_in_seconds,
    } = request;
    let cluster = extract::name("cluster", &cluster)?;
    check_reason(&reason)?;
    let now = app.now();
    let expires_at = match expires_in_seconds {
        Some(0) => {
            return Err(Problem::parameter(
                "expiresInSeconds",
                "found 0, allowed: 1 or more",
            ));
        }
        Some(seconds) => Some(now.plus(Duration::from_secs(seconds.into()))),
        None => None,
    };
    let wish = meant(&app, &project, &cluster, wish).await?;
    let author = caller.actor;
    let draft = Draft {
        project,
        cluster,
        wish,
        author,
        reason,
        expires_at,
    };
    let cluster = draft.cluster.clone();
    let intent = app.store().wish(draft, now).await;
    let intent = intent.map_err(|error| Problem::from(error).about_cluster(&cluster))?;
    let about = about(&app, &[&intent]).await?.pop().flatten();
    Ok(accepted(&intent, about))
}

/// The wishes that count, oldest first.
#[utoipa::path(
    get, path = "/intents", operation_id = "listIntents", tag = "intents", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<IntentView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<IntentView>>, Problem> {
    let listed = app.store().intents(&project, page.checked()?).await?;
    let intents: Vec<_> = listed.items.iter().collect();
    let about = about(&app, &intents).await?;
    let items = intents.into_iter().zip(about);
    Ok(Json(api::Listed {
        items: items
            .map(|(intent, about)| view::intent(intent, about))
            .collect(),
        next: listed.next.clone(),
    }))
}

/// What wishes are about, in the words that people use.
async fn about(app: &App, intents: &[&Intent]) -> Result<Vec<Option<String>>, Problem> {
    let wishes = intents.iter().map(|intent| intent.wish.clone());
    Ok(app.store().wishes_are_about(wishes.collect()).await?)
}

/// How a wish is taken back.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WithdrawQuery {
    /// The share of machines, in per cent, that may be removed at once.
    #[param(minimum = 0, maximum = 100)]
    allow_blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    allow_data_loss: Option<bool>,
}

/// Takes a wish back.
#[utoipa::path(
    delete, path = "/intents/{id}", operation_id = "withdrawIntent", tag = "intents", params(WithdrawQuery),
    responses(
        (status = 202, description = "withdrawn; the work follows", body = IntentView, headers(("Location" = String, description = "the cluster to follow"))),
        (status = 409, description = "without it too much would be removed at once", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn withdraw(
    State(app): State<App>,
    caller: Caller,
    Within(project, id): Within<IntentId>,
    Query(query): Query<WithdrawQuery>,
) -> Result<impl IntoResponse, Problem> {
    let withdrawal = Withdrawal {
        intent: id,
        allow: extract::allowed(query.allow_blast, query.allow_data_loss)?,
    };
    let missing = || Problem::missing("intent", id);
    let intent = find(&app, &project, id).await?.ok_or_else(missing)?;
    let about = about(&app, &[&intent]).await?.pop().flatten();
    let withdrawn = app
        .store()
        .withdraw_intent(&project, withdrawal, caller.actor, app.now())
        .await
        .map_err(|error| Problem::unallowed(error).about_cluster(&intent.cluster))?;
    if withdrawn {
        Ok(accepted(&intent, about))
    } else {
        Err(missing())
    }
}

/// Others read the reason, on terminals too: it says something, and nothing to obey.
fn check_reason(reason: &str) -> Result<(), Problem> {
    let wrong = if reason.trim().is_empty() {
        "found nothing; say why, others will read it".to_owned()
    } else if reason.len() > REASON_LEN_MAX {
        format!(
            "found {} bytes, allowed: at most {REASON_LEN_MAX}",
            reason.len()
        )
    } else if reason.chars().any(char::is_control) {
        "found control characters, allowed: one line of plain text".to_owned()
    } else {
        return Ok(());
    };
    Err(Problem::parameter("reason", wrong))
}

/// Says which cluster to follow.
fn accepted(
    intent: &Intent,
    about: Option<String>,
) -> (StatusCode, [(HeaderName, String); 1], Json<IntentView>) {
    let follow = format!(
        "/api/v1/projects/{}/clusters/{}",
        intent.project, intent.cluster
    );
    (
        StatusCode::ACCEPTED,
        [(header::LOCATION, follow)],
        Json(view::intent(intent, about)),
    )
}

/// The wish that counts and has that id; there are never many.
async fn find(app: &App, project: &Name, id: IntentId) -> Result<Option<Intent>, Problem> {
    let mut page = extract::page(Some(api::page::LIMIT_MAX), None)?;
    loop {
        let listed = app.store().intents(project, page.clone()).await?;
        if let Some(found) = listed.items.into_iter().find(|intent| intent.id == id) {
            return Ok(Some(found));
        }
        if listed.next.is_none() {
            return Ok(None);
        }
        page.after = listed.next;
    }
}

/// The machine of a cluster that has that name now, or that id.
async fn named(
    app: &App,
    project: &Name,
    cluster: &Name,
    name: &Name,
) -> Result<MachineId, Problem> {
    let mut found = app.store().machines_named(project, name).await?;
    found.retain(|found| found.cluster == *cluster);
    Ok(machines::only(found, name)?.machine.id)
}

/// The wish with ids for names; the store fills in what it repeats of other documents.
async fn meant(
    app: &App,
    project: &Name,
    cluster: &Name,
    wish: WishRequest,
) -> Result<Wish, Problem> {
    let id = |place: &str, text: &str| {
        text.parse::<TaskId>()
            .map_err(|error| Problem::parameter(place, error))
    };
    match wish {
        WishRequest::Scale { pool, count } => Ok(Wish::Scale {
            pool: extract::name("wish.scale.pool", &pool)?,
            count,
            was: 0,
        }),
        WishRequest::Replace { machine } => {
            let name = extract::name("wish.replace.machine", &machine)?;
            let machine = named(app, project, cluster, &name).await?;
            Ok(Wish::Replace { machine })
        }
        WishRequest::Retire { machine } => {
            let name = extract::name("wish.retire.machine", &machine)?;
            let machine = named(app, project, cluster, &name).await?;
            Ok(Wish::Retire { machine })
        }
        WishRequest::Retry { task } => Ok(Wish::Retry {
            task: id("wish.retry.task", &task)?,
        }),
        WishRequest::Cancel { task } => {
            let found = tasks::find(app, project, id("wish.cancel.task", &task)?)
                .await?
                .task;
            Ok(Wish::Cancel {
                task: found.id,
                machine: found.machine.id,
                kind: found.action.kind(),
            })
        }
        WishRequest::Pause {} => Ok(Wish::Pause),
        WishRequest::Snapshot {} => Ok(Wish::Snapshot),
        WishRequest::Restore { snapshot } => {
            let snapshot = snapshot.parse();
            let wrong = |error| Problem::parameter("wish.restore.snapshot", error);
            let snapshot: SnapshotId = snapshot.map_err(wrong)?;
            Ok(Wish::Restore { snapshot })
        }
        WishRequest::Update { pool } => Ok(Wish::Update {
            pool: extract::name("wish.update.pool", &pool)?,
            commit: None,
        }),
    }
}
