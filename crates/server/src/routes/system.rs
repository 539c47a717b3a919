//! The server's own health, for those who watch over it: no token, no secret.

use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use model::id::{JourneyId, Origin};
use model::name::Name;
use tokio::time::Instant;

use crate::app::{App, Readiness};
use crate::metrics;
use crate::problem::Problem;

/// How long an answer about writing is good for: anybody may ask, and each answer costs
/// a flush of the disk.
const FRESH: Duration = Duration::from_secs(5);

/// Whether the process runs.
#[utoipa::path(
    get, path = "/healthz", operation_id = "health", tag = "system", security(()),
    responses((status = 200, description = "it runs", body = String, content_type = "text/plain", example = "ok\n")),
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether work can be taken on: the store answers and can be written.
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready", tag = "system", security(()),
    responses((status = 200, description = "it is ready", body = String, content_type = "text/plain", example = "ok\n")),
)]
pub(crate) async fn readyz(State(app): State<App>) -> Result<&'static str, Problem> {
    app.store().events(None, u64::MAX, 1).await?;
    // One at a time: those who wait for the lock then find the fresh answer.
    let mut known = app.readiness().lock().await;
    let problem = match &*known {
        Some(Readiness { found_at, problem }) if found_at.elapsed() < FRESH => problem.clone(),
        Some(_) | None => {
            let problem = write(&app).await.err();
            *known = Some(Readiness {
                found_at: Instant::now(),
                problem: problem.clone(),
            });
            problem
        }
    };
    problem.map_or(Ok("ok\n"), Err)
}

/// Writes something that nobody reads: there is no other way to know that one can.
async fn write(app: &App) -> Result<(), Problem> {
    let origin = Origin {
        parent: "",
        name: "readyz",
        ordinal: 0,
        incarnation: 0,
    };
    let project = Name::default_project();
    Ok(app
        .store()
        .save_journey(
            JourneyId::derive(origin),
            &project,
            String::new(),
            app.now(),
        )
        .await?)
}

/// The document of the API.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "describe", tag = "system", security(()),
    responses((status = 200, description = "this document", body = serde_json::Value)),
)]
pub(crate) async fn described(State(app): State<App>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        app.document().to_owned(),
    )
}

/// How long requests take and how much there is of everything, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "system", security(()),
    responses((status = 200, description = "in the text format of Prometheus", body = String, content_type = "text/plain")),
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Problem> {
    let counted = async {
        metrics::count(&app.store().counts().await?);
        metrics::backlog(&app.store().backlog(app.now()).await?);
        Ok::<_, store::Error>(())
    };
    // What was measured is worth telling all the more when the store is in trouble.
    if let Err(error) = counted.await {
        tracing::warn!(code = error.code(), %error, "could not count for the metrics");
    }
    Ok((
        [(header::CONTENT_TYPE, metrics::MEDIA_TYPE)],
        app.metrics().render(),
    ))
}
