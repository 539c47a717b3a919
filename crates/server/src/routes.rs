//! The routes of the public contract, one file per noun, each with what it needs.

mod audit;
mod backup;
pub(crate) mod clusters;
pub(crate) mod environments;
mod events;
mod git;
mod guests;
mod intents;
mod keys;
mod kubeconfig;
mod logs;
mod machines;
mod manifests;
mod plans;
mod projects;
mod recovery;
mod secrets;
mod simulations;
mod system;
pub(crate) mod tasks;
mod tokens;

use axum::middleware::from_fn_with_state;
use model::access::Role;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::access::{self, Need};
use crate::app::App;
use crate::openapi::{ALL_PROJECTS, BEARER, ROLE};

use Need::{Everywhere, Narrowed, Nothing, Within};
use Role::{Admin, Operator, User, Viewer};

/// Where everything that belongs to a project is.
const PROJECT: &str = "/api/v1/projects/{project}";

/// Routes, each of which has said what it needs: there is no other way to add one.
#[derive(Default)]
pub(crate) struct Routes(OpenApiRouter<App>);

impl Routes {
    /// Adds a route; whoever is less than what it needs does not come to it.
    fn needs(self, need: Need, (schemas, mut paths, handlers): UtoipaMethodRouter<App>) -> Self {
        for item in paths.paths.values_mut() {
            operations(item).for_each(|operation| declare(need, operation));
        }
        let handlers = handlers.route_layer(from_fn_with_state(need, access::check));
        Self(self.0.routes((schemas, paths, handlers)))
    }

    /// Puts all of them below a path.
    fn below(self, path: &str) -> Self {
        Self(OpenApiRouter::default().nest(path, self.0))
    }

    /// Both.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0.merge(others.0))
    }

    /// The routes, and what they say of themselves.
    pub(crate) fn into_inner(self) -> OpenApiRouter<App> {
        self.0
    }
}

/// What a path can do.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        options,
        head,
        patch,
        trace,
        ..
    } = item;
    [get, put, post, delete, options, head, patch, trace]
        .into_iter()
        .filter_map(Option::as_mut)
}

/// Writes into the document what the route needs.
fn declare(need: Need, operation: &mut Operation) {
    let Some(role) = need.role() else {
        operation.security = Some(vec![SecurityRequirement::default()]);
        return;
    };
    let scope = match need {
        Need::Nothing | Need::Within(_) | Need::Narrowed(_) => None,
        Need::Everywhere(_) => Some(ALL_PROJECTS),
    };
    let roles = [role.as_str()].into_iter().chain(scope);
    operation.security = Some(vec![SecurityRequirement::new(BEARER, roles)]);
    let extension = ExtensionsBuilder::new().add(ROLE, role.as_str()).build();
    operation
        .extensions
        .get_or_insert_default()
        .merge(extension);
}

/// Routes that ask the store and are answered at once.
pub(crate) fn quick() -> Routes {
    let within = Routes::default()
        .needs(Within(Viewer), routes!(manifests::list))
        .needs(Within(User), routes!(manifests::submit))
        .needs(Within(Viewer), routes!(manifests::show))
        .needs(Within(Operator), routes!(manifests::delete))
        .needs(Within(Viewer), routes!(manifests::generations))
        .needs(Within(Viewer), routes!(manifests::generation))
        .needs(Within(Viewer), routes!(plans::show_again))
        .needs(Within(Viewer), routes!(clusters::list))
        .needs(Within(Viewer), routes!(clusters::show))
        .needs(Within(Viewer), routes!(clusters::why))
        .needs(Within(Operator), routes!(kubeconfig::show))
        .needs(Within(Viewer), routes!(clusters::generations))
        .needs(Within(Viewer), routes!(clusters::generation))
        .needs(Within(Operator), routes!(recovery::recover))
        .needs(Within(Viewer), routes!(machines::list))
        .needs(Within(Viewer), routes!(machines::show))
        .needs(Within(Viewer), routes!(machines::changes))
        .needs(Within(Operator), routes!(guests::let_in))
        .needs(Within(Operator), routes!(guests::relay))
        .needs(Within(Viewer), routes!(tasks::list))
        .needs(Within(Viewer), routes!(tasks::show))
        .needs(Within(Viewer), routes!(logs::log))
        .needs(Within(Viewer), routes!(intents::list))
        .needs(Within(Operator), routes!(intents::wish))
        .needs(Within(Operator), routes!(intents::withdraw))
        .needs(Within(Viewer), routes!(events::list))
        .needs(Within(User), routes!(secrets::list))
        .needs(Within(User), routes!(secrets::show))
        .needs(Within(User), routes!(secrets::put))
        .needs(Within(User), routes!(secrets::change))
        .needs(Within(User), routes!(secrets::delete))
        .below(PROJECT);
    Routes::default()
        .needs(Narrowed(Viewer), routes!(projects::list))
        .needs(Within(Viewer), routes!(projects::show))
        .needs(Everywhere(Admin), routes!(projects::put))
        .needs(Everywhere(Admin), routes!(projects::delete))
        .needs(Narrowed(Admin), routes!(tokens::list))
        .needs(Narrowed(Admin), routes!(tokens::create))
        .needs(Narrowed(Admin), routes!(tokens::revoke))
        .needs(Narrowed(Admin), routes!(audit::list))
        .needs(Narrowed(Admin), routes!(audit::export))
        .needs(Everywhere(Admin), routes!(keys::list))
        .needs(Everywhere(Admin), routes!(keys::rotate))
        .and(within)
}

/// Routes that compute before they answer.
pub(crate) fn slow() -> Routes {
    let within = Routes::default()
        .needs(Within(User), routes!(plans::plan))
        .needs(Within(User), routes!(simulations::simulate))
        .below(PROJECT);
    Routes::default()
        .needs(Everywhere(Admin), routes!(audit::verification))
        .and(within)
}

/// Routes that may take as long as there is something to read.
pub(crate) fn long() -> Routes {
    Routes::default().needs(Everywhere(Admin), routes!(backup::create))
}

/// Routes that need no token and tell no secret.
pub(crate) fn open() -> Routes {
    let within = Routes::default()
        .needs(Nothing, routes!(git::tell))
        .below(PROJECT);
    Routes::default()
        .needs(Nothing, routes!(system::healthz))
        .needs(Nothing, routes!(system::readyz))
        .needs(Nothing, routes!(system::metrics))
        .needs(Nothing, routes!(system::described))
        .and(within)
}
