//! The little that a process without an API tells those who watch over it.

use axum::Router;
use axum::http::header;
use axum::middleware::from_fn;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{connections, layers, metrics};

/// Serves `/healthz` and `/metrics`, and nothing else, until `stop` is cancelled.
pub async fn watched(listener: TcpListener, told: PrometheusHandle, stop: CancellationToken) {
    let upkeep = metrics::upkeep(told.clone());
    let router = router(told);
    tokio::select! {
        () = connections::serve(listener, router, &stop) => {}
        never = upkeep => match never {},
    }
}

fn router(told: PrometheusHandle) -> Router {
    let metrics = move || {
        let text = told.render();
        async move { ([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text) }
    };
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .fallback(layers::no_route)
        .method_not_allowed_fallback(layers::no_method)
        .layer(from_fn(layers::guard))
        .layer(from_fn(layers::observe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt as _;

    async fn ask(path: &str) -> (StatusCode, String) {
        let recorder = metrics::builder().unwrap().build_recorder();
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router(recorder.handle()).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn it_tells_that_it_lives_and_what_it_counted_and_no_more() {
        assert_eq!(ask("/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
        assert_eq!(ask("/metrics").await.0, StatusCode::OK);
        for path in ["/", "/readyz", "/api/v1/projects"] {
            let (status, text) = ask(path).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
            assert!(text.contains("API-002"), "{text}");
        }
    }
}
