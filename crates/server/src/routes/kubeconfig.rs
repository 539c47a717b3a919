//! What opens the API of a cluster, for those who may have it: the one value that comes out.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use model::endpoint::Endpoint;
use model::name::Name;
use model::sealed::{Owner, Place};
use model::secret::EntryName;

use crate::access::Caller;
use crate::app::App;
use crate::extract::Within;
use crate::problem::Problem;
use crate::routes::clusters::find;

/// What a kubeconfig is sent as.
const MEDIA_TYPE: &str = "application/yaml";

/// The kubeconfig of a cluster's administrator, as it can be used outside of the cluster.
///
/// It asks at the present address of the API, and expects the one name that its certificates
/// have. That somebody took it is audited.
#[utoipa::path(
    get, path = "/clusters/{name}/kubeconfig", operation_id = "getKubeconfig", tag = "clusters",
    responses(
        (status = 200, description = "the kubeconfig", body = serde_json::Value, content_type = "application/yaml"),
        (status = 409, description = "there is none yet, or nobody knows where the API answers", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    method: Method,
    caller: Caller,
    Within(project, name): Within<Name>,
) -> Result<Response, Problem> {
    let row = find(&app, &project, &name).await?;
    let kind = [(header::CONTENT_TYPE, MEDIA_TYPE)];
    // Who asks only for the head of the answer has nothing opened.
    if method == Method::HEAD {
        return Ok(kind.into_response());
    }
    let seen = app.store().cluster_view(row.id).await?;
    let seen = seen.ok_or_else(|| Problem::missing("cluster", &name))?;
    let place = Place {
        project,
        owner: Owner::Cluster(row.id),
        entry: EntryName::kubeconfig(),
    };
    let kept = app.vault().open(&place, &caller.actor).await?;
    let kubeconfig = kept.ok_or_else(|| Problem::no_kubeconfig(&name))?;
    let endpoint = Endpoint::of(&seen.desired, &seen.observed);
    let given = endpoint.given_out(kubeconfig);
    let given = given.map_err(|_no_address| Problem::no_api_address(&name, &endpoint))?;
    Ok((kind, Body::from(given.expose().to_vec())).into_response())
}
