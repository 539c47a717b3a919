//! The routes of the public contract, one file per noun.

pub(crate) mod clusters;
mod events;
mod intents;
mod machines;
mod manifests;
mod plans;
mod simulations;
mod system;
pub(crate) mod tasks;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// Where everything that belongs to a project is.
const PROJECT: &str = "/api/v1/projects/{project}";

/// Routes that ask the store and are answered at once.
pub(crate) fn quick() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::default()
        .routes(routes!(manifests::list, manifests::submit))
        .routes(routes!(manifests::show, manifests::delete))
        .routes(routes!(manifests::generations))
        .routes(routes!(manifests::generation))
        .routes(routes!(plans::show_again))
        .routes(routes!(clusters::list))
        .routes(routes!(clusters::show))
        .routes(routes!(clusters::why))
        .routes(routes!(clusters::generations))
        .routes(routes!(clusters::generation))
        .routes(routes!(machines::list))
        .routes(routes!(machines::show))
        .routes(routes!(machines::changes))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::show))
        .routes(routes!(tasks::log))
        .routes(routes!(intents::list, intents::wish))
        .routes(routes!(intents::withdraw))
        .routes(routes!(events::list));
    OpenApiRouter::default().nest(PROJECT, routes)
}

/// Routes that compute before they answer.
pub(crate) fn slow() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::default()
        .routes(routes!(plans::plan))
        .routes(routes!(simulations::simulate));
    OpenApiRouter::default().nest(PROJECT, routes)
}

/// Routes that need no token and tell no secret.
pub(crate) fn open() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(system::healthz))
        .routes(routes!(system::readyz))
        .routes(routes!(system::metrics))
        .routes(routes!(system::described))
}
