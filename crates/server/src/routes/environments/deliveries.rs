//! Messages to those who are told what becomes of environments.

use api::DeliveryView;
use api::environment::{DeliveryState, TestRequest};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::environment::EnvironmentName;
use model::environment::notify::{Message, Occasion};
use model::id::{DeliveryId, Origin};
use serde::Deserialize;
use store::{DeliveryDraft, DeliveryError, DeliveryFilter, DeliveryRow};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::environments;
use crate::extract::{self, Project, Query, Within};
use crate::problem::Problem;
use crate::view;

/// Which messages, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those that have come so far.
    #[param(inline)]
    state: Option<DeliveryState>,
    /// Only those to this target.
    target: Option<String>,
    /// Only those about this environment.
    #[param(pattern = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$")]
    environment: Option<String>,
}

/// Messages to those who are told what becomes of environments, newest first.
#[utoipa::path(
    get, path = "/environment-deliveries", operation_id = "listEnvironmentDeliveries", tag = "environments", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<DeliveryView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<DeliveryView>>, Problem> {
    let ListQuery {
        limit,
        cursor,
        state,
        target,
        environment,
    } = query;
    let page = extract::page(limit, cursor)?;
    let environment = match environment {
        Some(name) => {
            let name = name.parse::<EnvironmentName>();
            let name = name.map_err(|error| Problem::parameter("environment", error))?;
            Some(environments::find(&app, &project, &name).await?.id)
        }
        None => None,
    };
    let filter = DeliveryFilter {
        state: state.map(Into::into),
        target,
        environment,
    };
    let listed = app.store().deliveries(&project, filter, page).await?;
    Ok(Json(view::listed(listed, shown)))
}

/// One message.
#[utoipa::path(
    get, path = "/environment-deliveries/{id}", operation_id = "getEnvironmentDelivery", tag = "environments",
    responses((status = 200, description = "the message", body = DeliveryView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, id): Within<DeliveryId>,
) -> Result<Json<DeliveryView>, Problem> {
    let row = app.store().delivery(&project, id).await?;
    let row = row.ok_or_else(|| Problem::no_delivery(id))?;
    Ok(Json(shown(row)))
}

/// Has a message that has not arrived be sent now.
#[utoipa::path(
    post, path = "/environment-deliveries/{id}/retry", operation_id = "retryEnvironmentDelivery", tag = "environments",
    responses(
        (status = 202, description = "it is sent", body = DeliveryView),
        (status = 409, description = "it has arrived already", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    Within(project, id): Within<DeliveryId>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    let retried = app
        .store()
        .retry_delivery(&project, id, caller.actor, app.now());
    retried.await.map_err(|error| match error {
        DeliveryError::NotFound { delivery } => Problem::no_delivery(delivery),
        DeliveryError::Delivered { delivery } => Problem::delivered(delivery),
        DeliveryError::Store(error) => error.into(),
    })?;
    let row = app.store().delivery(&project, id).await?;
    let row = row.ok_or_else(|| Problem::no_delivery(id))?;
    Ok((StatusCode::ACCEPTED, Json(shown(row))))
}

/// Sends a message to a target that tells of nothing, to see whether it arrives. It is sent once.
#[utoipa::path(
    post, path = "/environment-deliveries", operation_id = "testEnvironmentDelivery", tag = "environments", request_body = TestRequest,
    responses((status = 202, description = "it is sent", body = DeliveryView)),
)]
pub(crate) async fn test(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    extract::Json(request): extract::Json<TestRequest>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    let settings = environments::settings(&app, &project).await?;
    let mut targets = settings.notify.iter();
    let target = targets.find(|target| target.name.as_str() == request.target);
    let target = target.ok_or_else(|| Problem::no_target(&request.target))?;
    let now = app.now();
    let message = Message {
        occasion: Occasion::Test,
        at: now,
        because: format!("{} tries whether messages arrive", caller.actor.name),
        environment: None,
        action: None,
    };
    let id = DeliveryId::derive(Origin {
        parent: project.as_str(),
        name: &format!("{}/{}", target.name, Occasion::Test),
        ordinal: u64::try_from(now.as_millis()).unwrap_or_default(),
        incarnation: 0,
    });
    let draft = DeliveryDraft {
        id,
        project: project.clone(),
        kind: target.way.as_str().to_owned(),
        target: target.name.to_string(),
        environment: None,
        occasion: Occasion::Test.as_str().to_owned(),
        document: serde_json::to_string(&message)
            .map_err(|_| Problem::no_target(&request.target))?,
    };
    app.store().post_delivery(draft, now).await?;
    let row = app.store().delivery(&project, id).await?;
    let row = row.ok_or_else(|| Problem::no_delivery(id))?;
    Ok((StatusCode::ACCEPTED, Json(shown(row))))
}

fn shown(row: DeliveryRow) -> DeliveryView {
    let DeliveryRow {
        id,
        kind,
        target,
        environment,
        occasion,
        state,
        tries,
        due,
        said,
        created_at,
        ended_at,
    } = row;
    let waits = state == model::environment::delivery::State::Waiting;
    DeliveryView {
        id: id.to_string(),
        kind,
        target,
        environment: environment.map(Into::into),
        event: occasion,
        state: state.into(),
        tries,
        next_at: waits.then(|| due.into()),
        said,
        created_at: created_at.into(),
        ended_at: ended_at.map(Into::into),
    }
}
