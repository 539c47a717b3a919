//! Secrets: values go in and never come out.
//!
//! Nothing of a value is in an answer, a problem, an event or a log line: of what comes in,
//! only names and places of entries are ever told.

mod body;

use api::{SecretRequest, SecretView};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::name::Name;
use model::secret::EntryName;
use serde::Deserialize;
use store::SecretRow;
use utoipa::IntoParams;
use vault::Changes;

use crate::access::Caller;
use crate::app::App;
use crate::credentials;
use crate::extract::{Project, Query, Within};
use crate::problem::Problem;
use crate::routes::manifests::Page;
use crate::view;

pub(crate) use body::{Values, whole};

/// The secrets of a project: their entries, never their values.
#[utoipa::path(
    get, path = "/secrets", operation_id = "listSecrets", tag = "secrets", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<SecretView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<SecretView>>, Problem> {
    let listed = app.store().secrets(&project, page.checked()?).await?;
    Ok(Json(view::listed(listed, shown)))
}

/// One secret: its entries, never their values.
#[utoipa::path(
    get, path = "/secrets/{name}", operation_id = "getSecret", tag = "secrets",
    responses((status = 200, description = "the secret", body = SecretView)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, name): Within<Name>,
) -> Result<Json<SecretView>, Problem> {
    let row = app.store().secret(&project, &name).await?;
    let row = row.ok_or_else(|| Problem::missing("secret", &name))?;
    Ok(Json(shown(row)))
}

/// How strictly values are judged.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SetQuery {
    /// Also values with which a manifest could not open its account any more.
    force: Option<bool>,
}

/// How strictly a removal is judged.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Also where clusters need it: their machines stay as they are until it is set again.
    force: Option<bool>,
}

/// Sets a secret; entries that are not named, or have no value, go.
///
/// Work that waits for the secret goes on by itself.
#[utoipa::path(
    put, path = "/secrets/{name}", operation_id = "putSecret", tag = "secrets", params(SetQuery), request_body = SecretRequest,
    responses(
        (status = 200, description = "set", body = SecretView),
        (status = 409, description = "a manifest could not open its account with it", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "the secret would have too many entries", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
    Query(query): Query<SetQuery>,
    Values(entries): Values,
) -> Result<Json<SecretView>, Problem> {
    let changes = Changes {
        entries,
        only: true,
    };
    let force = query.force.unwrap_or(false);
    set(&app, caller, (project, name), &changes, force).await
}

/// Sets entries of a secret; those without a value go, and the others stay.
///
/// Work that waits for the secret goes on by itself.
#[utoipa::path(
    patch, path = "/secrets/{name}", operation_id = "changeSecret", tag = "secrets", params(SetQuery), request_body = SecretRequest,
    responses(
        (status = 200, description = "changed", body = SecretView),
        (status = 409, description = "a manifest could not open its account with it", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "the secret would have too many entries", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
    Query(query): Query<SetQuery>,
    Values(entries): Values,
) -> Result<Json<SecretView>, Problem> {
    let changes = Changes {
        entries,
        only: false,
    };
    let force = query.force.unwrap_or(false);
    set(&app, caller, (project, name), &changes, force).await
}

async fn set(
    app: &App,
    caller: Caller,
    (project, name): (Name, Name),
    changes: &Changes,
    force: bool,
) -> Result<Json<SecretView>, Problem> {
    if !force {
        let of = (&project, &name);
        let faults = credentials::would_shut(app, of, &changes.entries).await?;
        if !faults.is_empty() {
            return Err(Problem::opens_nothing(&name, faults));
        }
        let goes = |entry: &EntryName| {
            let mut named = changes.entries.iter().filter(|(named, _)| named == entry);
            named
                .next()
                .map_or(changes.only, |(_, value)| value.is_none())
        };
        refuse_stranding(app, of, goes).await?;
    }
    let set = app.vault().set((&project, &name), changes, &caller.actor);
    Ok(Json(shown(set.await?)))
}

/// Removes a secret with all its entries.
///
/// What names it and is not done yet waits until it is set again.
#[utoipa::path(
    delete, path = "/secrets/{name}", operation_id = "deleteSecret", tag = "secrets", params(DeleteQuery),
    responses(
        (status = 204, description = "removed"),
        (status = 409, description = "clusters need it", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, Problem> {
    if !query.force.unwrap_or(false) {
        refuse_stranding(&app, (&project, &name), |_| true).await?;
    }
    let deleted = app
        .store()
        .delete_secret(&project, &name, caller.actor, app.now());
    if deleted.await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::missing("secret", &name))
    }
}

/// Refuses to remove entries that are set and without which clusters could not be changed any more, nor
/// their machines removed.
async fn refuse_stranding(
    app: &App,
    of: (&Name, &Name),
    goes: impl Fn(&EntryName) -> bool,
) -> Result<(), Problem> {
    let Some(row) = app.store().secret(of.0, of.1).await? else {
        return Ok(());
    };
    let (going, kept): (Vec<_>, Vec<_>) = row.entries.into_iter().partition(goes);
    let faults = credentials::would_strand(app, of, &going, kept.is_empty()).await?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::needed(of.1, faults))
    }
}

fn shown(row: SecretRow) -> SecretView {
    let SecretRow {
        name,
        entries,
        version,
        updated_by,
        updated_at,
    } = row;
    SecretView {
        name: name.into(),
        entries: entries.into_iter().map(String::from).collect(),
        version,
        updated_by,
        updated_at: updated_at.into(),
    }
}
