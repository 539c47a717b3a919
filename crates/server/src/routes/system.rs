//! The server's own health, for those who watch over it: no token, no secret.

use api::page::LIMIT_DEFAULT;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::app::App;
use crate::metrics;
use crate::problem::Problem;

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
    app.store().events(None, u64::MAX, LIMIT_DEFAULT).await?;
    Ok("ok\n")
}

/// How long requests take and how much there is of everything, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "system", security(()),
    responses((status = 200, description = "in the text format of Prometheus", body = String, content_type = "text/plain")),
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Problem> {
    match app.store().counts().await {
        Ok(counts) => metrics::count(&counts),
        // What was measured is worth telling all the more when the store is in trouble.
        Err(error) => tracing::warn!(code = error.code(), %error, "could not count for the metrics"),
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics().render()))
}
