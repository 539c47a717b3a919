//! The data keys: which there are, and how a new one takes over.

use std::sync::Arc;

use api::{ClosedView, KeyView, KeysView};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use store::SealKeyRow;

use crate::access::Caller;
use crate::app::App;
use crate::problem::Problem;

/// Where a rotation is followed.
const KEYS: &str = "/api/v1/keys";

/// The data keys without the keys, and how many values a rotation has left to move.
#[utoipa::path(
    get, path = "/api/v1/keys", operation_id = "listKeys", tag = "keys",
    responses((status = 200, description = "the keys", body = KeysView)),
)]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<KeysView>, Problem> {
    Ok(Json(shown(&app).await?))
}

/// Puts a new data key to use and moves every value to it, in the background.
///
/// Everything can be sealed and opened meanwhile. It is over when one key is left; a server
/// that ends in the middle goes on at its next start, or another one does.
#[utoipa::path(
    post, path = "/api/v1/keys/rotation", operation_id = "rotateKeys", tag = "keys",
    responses((status = 202, description = "begun; the values follow", body = KeysView, headers(("Location" = String, description = "where to follow it")))),
)]
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Caller,
) -> Result<impl IntoResponse, Problem> {
    let key = app.vault().begin_rotation(&caller.actor).await?;
    tracing::info!(%key, "a new data key is in use; values move to it");
    let follow = [(header::LOCATION, KEYS)];
    Ok((StatusCode::ACCEPTED, follow, Json(shown(&app).await?)))
}

async fn shown(app: &App) -> Result<KeysView, Problem> {
    let rows = app.vault().keys().await?;
    let left = rows.iter().filter(|row| !row.in_use);
    let left = left.map(|row| row.values).sum();
    let closed = app.vault().closed().map(|why| closed(&why));
    Ok(KeysView {
        keys: rows.into_iter().map(key).collect(),
        left,
        closed,
    })
}

fn key(row: SealKeyRow) -> KeyView {
    let SealKeyRow {
        wrapped,
        in_use,
        created_at,
        values,
    } = row;
    KeyView {
        id: wrapped.id.to_string(),
        wrapped_by: wrapped.by,
        in_use,
        values,
        created_at: created_at.into(),
    }
}

fn closed(why: &Arc<vault::Error>) -> ClosedView {
    ClosedView {
        code: why.code().to_owned(),
        detail: why.to_string(),
        hint: why.hint().into_owned(),
    }
}
