//! The document of the API is what is committed, and what the router does.

use axum::http::{Method, StatusCode};
use expect_test::{expect, expect_file};

use crate::world::{World, filled, operations, request};

#[tokio::test]
async fn the_document_is_the_committed_one() {
    let served = World::new()
        .send(request(Method::GET, "/openapi.json"))
        .await;
    assert_eq!(served.header("content-type"), "application/json");
    expect_file!["../../../../openapi/v1.json"].assert_eq(&served.text);
}

/// Some of the routes in the document.
fn told(of: impl Fn(&str) -> bool) -> String {
    operations()
        .into_iter()
        .filter(|(path, ..)| of(path))
        .map(|(path, method, closed)| {
            let path = path.replace("/api/v1/projects/{project}", "…");
            format!(
                "{:<6} {path}{}\n",
                method.as_str(),
                if closed { "" } else { "  (no token)" }
            )
        })
        .collect()
}

#[test]
fn every_route_is_in_the_document() {
    let told = told(|path| !path.contains("/environment"));
    expect![[r#"
        GET    /api/v1/audit
        GET    /api/v1/audit/export
        GET    /api/v1/audit/verification
        GET    /api/v1/backup
        GET    /api/v1/keys
        POST   /api/v1/keys/rotation
        GET    /api/v1/projects
        DELETE …
        GET    …
        PUT    …
        GET    …/clusters
        GET    …/clusters/{name}
        GET    …/clusters/{name}/generations
        GET    …/clusters/{name}/generations/{generation}
        GET    …/clusters/{name}/kubeconfig
        POST   …/clusters/{name}/recovery
        GET    …/clusters/{name}/why
        GET    …/events
        POST   …/git/{source}  (no token)
        GET    …/intents
        POST   …/intents
        DELETE …/intents/{id}
        GET    …/machines
        GET    …/machines/{name}
        GET    …/machines/{name}/changes
        POST   …/machines/{name}/guests
        POST   …/machines/{name}/relay
        GET    …/manifests
        POST   …/manifests
        DELETE …/manifests/{name}
        GET    …/manifests/{name}
        GET    …/manifests/{name}/generations
        GET    …/manifests/{name}/generations/{generation}
        POST   …/plans
        GET    …/plans/{id}
        GET    …/secrets
        DELETE …/secrets/{name}
        GET    …/secrets/{name}
        PATCH  …/secrets/{name}
        PUT    …/secrets/{name}
        POST   …/simulations
        GET    …/tasks
        GET    …/tasks/{id}
        GET    …/tasks/{id}/log
        GET    /api/v1/tokens
        POST   /api/v1/tokens
        DELETE /api/v1/tokens/{id}
        GET    /healthz  (no token)
        GET    /metrics  (no token)
        GET    /openapi.json  (no token)
        GET    /readyz  (no token)
    "#]]
    .assert_eq(&told);
}

#[test]
fn every_route_about_environments_is_in_the_document() {
    let told = told(|path| path.contains("/environment"));
    expect![[r#"
        GET    …/environment-defaults
        GET    …/environment-deliveries
        POST   …/environment-deliveries
        GET    …/environment-deliveries/{id}
        POST   …/environment-deliveries/{id}/retry
        POST   …/environment-import
        GET    …/environment-keys
        GET    …/environment-settings
        PUT    …/environment-settings
        GET    …/environments
        POST   …/environments
        DELETE …/environments/{name}
        GET    …/environments/{name}
        PATCH  …/environments/{name}
        PUT    …/environments/{name}
        GET    …/environments/{name}/actions
        GET    …/environments/{name}/actions/{id}
        GET    …/environments/{name}/actions/{id}/log
        POST   …/environments/{name}/archive
        POST   …/environments/{name}/cancel
        GET    …/environments/{name}/changes
        POST   …/environments/{name}/cleanup
        POST   …/environments/{name}/clone
        GET    …/environments/{name}/configuration
        POST   …/environments/{name}/extend
        POST   …/environments/{name}/look
        POST   …/environments/{name}/redeploy
        POST   …/environments/{name}/restore
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn every_operation_of_the_document_is_answered_by_a_route() {
    let world = World::with_hello().await;
    for (path, method, _) in operations() {
        let answer = world.send(request(method.clone(), &filled(&path))).await;
        assert_ne!(
            answer.status,
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        assert!(
            !answer.text.contains("there is no route"),
            "{method} {path}"
        );
        let document = serde_json::to_value(server::document()).unwrap();
        let told = &document["paths"][&path][method.as_str().to_lowercase()]["responses"];
        assert!(
            told.get(answer.status.as_str()).is_some(),
            "{method} {path} does not tell of {}",
            answer.status
        );
    }
}
