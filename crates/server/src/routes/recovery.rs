//! The way out for a cluster of which something is stored that this program cannot read.

use api::RecoveryView;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use model::name::Name;
use serde::Deserialize;
use store::{Recovered, Recovery};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Query, Within};
use crate::problem::Problem;

/// How much is set aside.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecoveryQuery {
    /// Machines that are known by name alone and are left to themselves, with commas between them.
    #[param(pattern = "^[a-z0-9,-]*$")]
    leave: Option<String>,
    /// Gives the whole cluster up, with all its machines left to themselves.
    abandon: Option<bool>,
    /// The share of machines, in per cent, that its manifest may then remove at once.
    #[param(minimum = 0, maximum = 100)]
    allow_blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    allow_data_loss: Option<bool>,
}

/// Sets aside what this version of the program cannot read of a cluster.
///
/// Wishes end, unfinished tasks are planned again, what was seen is looked at again. What is desired is made
/// from the newest generation that can be read and from what is known of each machine.
#[utoipa::path(
    post, path = "/clusters/{name}/recovery", operation_id = "recoverCluster", tag = "clusters", params(RecoveryQuery),
    responses(
        (status = 202, description = "set aside; the work follows", body = RecoveryView, headers(("Location" = String, description = "the cluster to follow"))),
        (status = 409, description = "everything can be read, or machines would be lost", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn recover(
    State(app): State<App>,
    caller: Caller,
    Within(project, cluster): Within<Name>,
    Query(query): Query<RecoveryQuery>,
) -> Result<impl IntoResponse, Problem> {
    let leave = query.leave.unwrap_or_default();
    let leave = leave.split(',').filter(|name| !name.is_empty());
    let leave = leave.map(|name| extract::name("leave", name));
    let follow = format!("/api/v1/projects/{project}/clusters/{cluster}");
    let recovery = Recovery {
        project,
        cluster: cluster.clone(),
        leave: leave.collect::<Result<_, _>>()?,
        abandon: query.abandon.unwrap_or(false),
        allow: extract::allowed(query.allow_blast, query.allow_data_loss)?,
        author: caller.actor,
    };
    let recovered = app.store().recover(recovery, app.now()).await;
    let Recovered {
        generation,
        aside,
        left,
    } = recovered.map_err(|error| Problem::unrecovered(error, &cluster))?;
    let view = RecoveryView {
        cluster: cluster.into(),
        generation: generation.0,
        set_aside: aside,
        left: left.into_iter().map(Into::into).collect(),
        follow: follow.clone(),
    };
    Ok((
        StatusCode::ACCEPTED,
        [(header::LOCATION, follow)],
        Json(view),
    ))
}
