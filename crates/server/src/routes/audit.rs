//! The audit chain: what was done, by whom, and whether the record is as it was written.

use api::audit::EXPORT_MEDIA_TYPE;
use api::{AuditView, Verification};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use model::audit::Audited;
use model::name::Name;
use serde::Deserialize;
use store::Store;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Query};
use crate::problem::Problem;
use crate::view;

/// Entries that an export reads at once: it holds no more of the chain than these.
const READ: u32 = 500;

/// Which entries, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those of this project.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    project: Option<String>,
}

/// What was done, newest first.
#[utoipa::path(
    get, path = "/api/v1/audit", operation_id = "listAudit", tag = "audit", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<AuditView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<AuditView>>, Problem> {
    let page = extract::page(query.limit, query.cursor)?;
    let project = caller.narrowed(extract::name_of("project", query.project.as_deref())?)?;
    let listed = app.store().audit(project.as_ref(), page).await?;
    Ok(Json(view::listed(listed, AuditView::from)))
}

/// Walks along the whole chain and names the first entry that is not as it was written.
#[utoipa::path(
    get, path = "/api/v1/audit/verification", operation_id = "verifyAudit", tag = "audit",
    responses((status = 200, description = "what was found", body = Verification)),
)]
pub(crate) async fn verification(State(app): State<App>) -> Result<Json<Verification>, Problem> {
    Ok(Json(app.store().verify_audit().await?.into()))
}

/// Which entries are exported.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// Only those of this project. They are no chain any more: only all of them can be
    /// verified.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    project: Option<String>,
}

/// The chain, oldest first, one entry per line, up to what was written when it began or later.
#[utoipa::path(
    get, path = "/api/v1/audit/export", operation_id = "exportAudit", tag = "audit", params(ExportQuery),
    responses((status = 200, description = "one entry of JSON per line", body = AuditView, content_type = "application/x-ndjson")),
)]
pub(crate) async fn export(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let project = caller.narrowed(extract::name_of("project", query.project.as_deref())?)?;
    let mut chain = Chain {
        store: app.store().clone(),
        project,
        after: 0,
        ended: false,
    };
    // The first piece is read before anything is answered, so that a store that cannot be
    // read is still a problem and not a connection that breaks.
    let first = chain.next().await?;
    let rest = stream::try_unfold(chain, async |mut chain| {
        let piece = chain.next().await?;
        Ok::<_, store::Error>(piece.map(|piece| (piece, chain)))
    });
    let pieces = stream::iter(first.map(Ok));
    let body = Body::from_stream(futures_util::StreamExt::chain(pieces, rest));
    Ok(([(header::CONTENT_TYPE, EXPORT_MEDIA_TYPE)], body).into_response())
}

/// The place of an export in the chain.
struct Chain {
    store: Store,
    project: Option<Name>,
    after: u64,
    ended: bool,
}

impl Chain {
    /// The next lines; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, store::Error> {
        while !self.ended {
            let entries = self.store.audit_after(self.after, READ).await?;
            self.ended = u32::try_from(entries.len()).is_ok_and(|len| len < READ);
            self.after = entries.last().map_or(self.after, |entry| entry.seq);
            let mut lines = Vec::new();
            for entry in entries.into_iter().filter(|entry| self.tells(entry)) {
                write_line(&mut lines, entry);
            }
            if !lines.is_empty() {
                return Ok(Some(lines.into()));
            }
        }
        Ok(None)
    }

    fn tells(&self, entry: &Audited) -> bool {
        let project = self.project.as_ref().map(Name::as_str);
        project.is_none() || project == entry.project.as_deref()
    }
}

fn write_line(lines: &mut Vec<u8>, entry: Audited) {
    // JSON of our own types has no line breaks, and cannot fail to be written to memory.
    if serde_json::to_writer(&mut *lines, &AuditView::from(entry)).is_ok() {
        lines.push(b'\n');
    }
}
