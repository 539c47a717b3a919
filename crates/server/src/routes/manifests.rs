//! Manifests: declare, read, remove, and every generation they ever had.

use api::{Accepted, GenerationView, ManifestGeneration, ManifestView};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use model::cluster::Generation;
use model::id::JourneyId;
use model::name::Name;
use serde::Deserialize;
use store::{Allowed, Submission, Submitted};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::credentials;
use crate::extract::{self, Admitted, Project, Query, Text, Within};
use crate::problem::Problem;
use crate::routes::plans;
use crate::view;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
}

impl Page {
    /// The page, within its limits.
    pub(crate) fn checked(self) -> Result<store::Page, Problem> {
        extract::page(self.limit, self.cursor)
    }
}

/// What a submission allows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubmitQuery {
    /// The share of machines, in per cent, that may be removed at once.
    #[param(minimum = 0, maximum = 100)]
    allow_blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    allow_data_loss: Option<bool>,
    /// The journey that was shown; what goes beyond it is refused.
    #[param(pattern = "^plan-[0-9bcdfgh][0-9bcdfghjkmnpqrstvwxyzeu]{12}$")]
    plan: Option<String>,
}

/// Declares a manifest.
///
/// The manifest is admitted whole or not at all; the work follows by itself. The same text
/// sent again changes nothing.
#[utoipa::path(
    post, path = "/manifests", operation_id = "submitManifest", tag = "manifests",
    params(
        SubmitQuery,
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$", description = "makes a repeat of the request harmless"),
        ("If-Match" = Option<u64>, Header, description = "the generation this change is based on; refused when there is another"),
    ),
    request_body(description = "the manifest, as YAML or JSON", content = String, content_type = "application/yaml"),
    responses(
        (status = 202, description = "stored; the work follows", body = Accepted, headers(("Location" = String, description = "what to follow"))),
        (status = 409, description = "removes too much at once, exceeds the plan, or a name is taken", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "not based on the current generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "the manifest has faults", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn submit(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    Query(query): Query<SubmitQuery>,
    headers: HeaderMap,
    text: Text,
) -> Result<impl IntoResponse, Problem> {
    let allow = extract::allowed(query.allow_blast, query.allow_data_loss)?;
    let shown: Option<JourneyId> = query
        .plan
        .map(|id| {
            id.parse()
                .map_err(|error| Problem::parameter("plan", error))
        })
        .transpose()?;
    let parent = extract::if_match(&headers)?;
    let key = extract::idempotency_key(&headers)?;
    let admitted = text.admitted(&app, &project, &caller.actor);
    let Admitted {
        manifest,
        text,
        places,
    } = admitted.await?;
    let mut notes = plans::notes::let_pass(&manifest);
    let mut submission = Submission {
        project,
        manifest,
        text,
        author: caller.actor,
        parent,
        allow,
        key,
    };
    // Before anything is judged: what was done since then would be in its own way.
    if let Some(answer) = app.store().answered(&submission).await? {
        return Ok(accepted(answer, notes));
    }
    let judged = judged(&app, &submission).await;
    notes.extend(judged.map_err(|problem| places.order(problem))?);
    if let Some(shown) = shown {
        let of = (&submission.project, &submission.manifest);
        let covered = plans::covers(&app, of, shown).await;
        let covered = covered.map_err(|problem| places.order(problem))?;
        submission.parent = submission.parent.or(Some(covered));
    }
    let submitted = app.store().submit(submission, app.now()).await;
    let submitted = submitted.map_err(|error| places.order(error.into()))?;
    Ok(accepted(submitted, notes))
}

/// Refuses what begins something with an account that its secret cannot open; answers what is to be said
/// of such accounts otherwise.
async fn judged(app: &App, submission: &Submission) -> Result<Vec<String>, Problem> {
    let Submission {
        project,
        manifest,
        author,
        ..
    } = submission;
    let shut = credentials::shut(app, project, &manifest.providers, author).await?;
    if shut.is_empty() {
        return Ok(Vec::new());
    }
    let previews = app
        .store()
        .preview(project, manifest, Allowed::EVERYTHING, app.now());
    match previews.await {
        Ok(previews) => credentials::refuse_begun(shut, &previews.clusters),
        Err(error) => Err(plans::refused(error, shut)),
    }
}

/// The manifests, in the order of their names.
#[utoipa::path(
    get, path = "/manifests", operation_id = "listManifests", tag = "manifests", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<ManifestView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Project(project): Project,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<ManifestView>>, Problem> {
    let listed = app.store().manifests(&project, page.checked()?).await?;
    Ok(Json(view::listed(listed, view::manifest)))
}

/// One manifest and where its clusters stand.
#[utoipa::path(
    get, path = "/manifests/{name}", operation_id = "getManifest", tag = "manifests",
    responses((status = 200, description = "the manifest", body = ManifestView, headers(("ETag" = String, description = "its generation, for If-Match")))),
)]
pub(crate) async fn show(
    State(app): State<App>,
    Within(project, name): Within<Name>,
) -> Result<impl IntoResponse, Problem> {
    let row = app
        .store()
        .manifest(&project, &name)
        .await?
        .ok_or_else(|| missing(&name))?;
    Ok((
        [(header::ETAG, format!("\"{}\"", row.generation))],
        Json(view::manifest(row)),
    ))
}

/// Removes a manifest and, with it, all its clusters and their machines.
#[utoipa::path(
    delete, path = "/manifests/{name}", operation_id = "deleteManifest", tag = "manifests",
    responses(
        (status = 202, description = "stored; the work follows", body = Accepted, headers(("Location" = String, description = "what to follow"))),
        (status = 409, description = "a cluster of it is protected", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
) -> Result<impl IntoResponse, Problem> {
    let submitted = app
        .store()
        .delete_manifest(&project, &name, caller.actor, app.now())
        .await?;
    Ok(accepted(submitted, Vec::new()))
}

/// The history of a manifest, newest first.
#[utoipa::path(
    get, path = "/manifests/{name}/generations", operation_id = "listManifestGenerations", tag = "manifests", params(Page),
    responses((status = 200, description = "one page", body = api::Listed<GenerationView>)),
)]
pub(crate) async fn generations(
    State(app): State<App>,
    Within(project, name): Within<Name>,
    Query(page): Query<Page>,
) -> Result<Json<api::Listed<GenerationView>>, Problem> {
    let page = page.checked()?;
    app.store()
        .manifest(&project, &name)
        .await?
        .ok_or_else(|| missing(&name))?;
    let listed = app
        .store()
        .manifest_generations(&project, &name, page)
        .await?;
    Ok(Json(view::listed(listed, view::generation)))
}

/// A manifest as it was declared at one time.
#[utoipa::path(
    get, path = "/manifests/{name}/generations/{generation}", operation_id = "getManifestGeneration", tag = "manifests",
    responses((status = 200, description = "the manifest as it was", body = ManifestGeneration)),
)]
pub(crate) async fn generation(
    State(app): State<App>,
    Within(project, (name, generation)): Within<(Name, Generation)>,
) -> Result<Json<ManifestGeneration>, Problem> {
    let row = app.store().manifest_at(&project, &name, generation).await?;
    let row = row.ok_or_else(|| {
        Problem::missing("generation of the manifest", format!("{name}/{generation}"))
    })?;
    Ok(Json(view::manifest_generation(row)))
}

fn missing(name: &Name) -> Problem {
    Problem::missing("manifest", name)
}

/// Says what to follow.
fn accepted(
    submitted: Submitted,
    notes: Vec<String>,
) -> (StatusCode, [(HeaderName, String); 1], Json<Accepted>) {
    let Submitted {
        project,
        manifest,
        generation,
        changed,
        unchanged,
        unread,
        notes: told,
    } = submitted;
    let notes = unread.into_iter().chain(told).chain(notes).collect();
    let follow = format!("/api/v1/projects/{project}/manifests/{manifest}");
    let body = Accepted {
        manifest: manifest.into(),
        generation: generation.0,
        changed: changed.into_iter().map(|(_, name)| name.into()).collect(),
        unchanged,
        follow: follow.clone(),
        notes,
    };
    (
        StatusCode::ACCEPTED,
        [(header::LOCATION, follow)],
        Json(body),
    )
}
