//! What git services tell of their requests. They have no token: they sign what they say.

use api::environment::{GitAnswer, GitDecision};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use model::environment::git::Source;
use model::environment::git::event::{Told, read};
use model::environment::settings::Settings;
use model::name::Name;
use plan::environment::git::Idle;
use store::TakenIn;

use crate::access;
use crate::app::App;
use crate::extract::{self, Named, One, SourceName};
use crate::git;
use crate::problem::Problem;

/// What is answered to a service.
type Answer = (StatusCode, Json<GitAnswer>);

/// Tells of a pull or merge request: for the webhooks of git services.
///
/// What is sent is what GitHub, GitLab or Gitea send, signed as they do: `X-Hub-Signature-256`,
/// `X-Gitlab-Token` or `X-Gitea-Signature`. What is decided is done soon after the answer.
#[utoipa::path(
    post, path = "/git/{source}", operation_id = "tellOfRequest", tag = "environments", security(()),
    request_body(content = serde_json::Value, description = "what the service sends"),
    responses(
        (status = 202, description = "what is decided", body = GitAnswer),
        (status = 401, description = "it is not proven that a source of the project sent this", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "it is not what the service sends", body = api::Problem, content_type = "application/problem+json"),
        (status = 429, description = "too many failures", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn tell(
    State(app): State<App>,
    Named(project): Named,
    One(SourceName(name)): One<SourceName>,
    request: Request,
) -> Result<Answer, Problem> {
    let peer = access::peer(request.extensions());
    let headers = request.headers().clone();
    let body = extract::bytes(request).await?;
    let known = known(&app, &project, &name).await?;
    let (settings, source) = match known {
        Some((settings, source, key)) if git::proves(source.service, &key, &headers, &body) => {
            (settings, source)
        }
        Some(_) | None => {
            return Err(match app.failures().count(peer) {
                Some(wait) => Problem::too_many_failures(wait),
                None => Problem::git_unproven(),
            });
        }
    };
    extract::media_type(&headers, &["application/json"])?;
    let kind = git::kind(source.service, &headers);
    let told = read(source.service, kind, &body);
    let event = match told.map_err(|error| Problem::git_unread(source.service, &error))? {
        Told::Request(event) => *event,
        Told::Other(kind) => {
            let reason = format!("`{kind}` is not about a request; it is proven who sent it");
            return Ok(ignored(reason));
        }
    };
    // Its requests have numbers of their own.
    if !event.repository.is(&source.repository) {
        return Ok(ignored(Idle::Elsewhere.as_str().to_owned()));
    }
    let delivery = git::delivery(source.service, &headers, &body);
    let of = (&project, &name);
    let taken = app.store().take_in(of, &delivery, event, app.now()).await?;
    match taken {
        TakenIn::New(request) => {
            let answer = git::decided(&app, &settings, &request).await?;
            Ok((StatusCode::ACCEPTED, Json(answer)))
        }
        TakenIn::Repeated => Ok(ignored("it was told before".to_owned())),
        TakenIn::Older(request) => {
            let number = request.event.request;
            Ok(ignored(format!(
                "something later is known of request {number} already"
            )))
        }
    }
}

fn ignored(reason: String) -> Answer {
    let answer = GitAnswer {
        decision: GitDecision::Ignore,
        environment: None,
        reason,
    };
    (StatusCode::ACCEPTED, Json(answer))
}

/// A source of a project, and what proves that it is them.
async fn known(
    app: &App,
    project: &Name,
    name: &Name,
) -> Result<Option<(Settings, Source, std::sync::Arc<model::secret::Secret>)>, Problem> {
    let Some(row) = app.store().environment_settings(project).await? else {
        return Ok(None);
    };
    let Some(source) = row.settings.source(name).cloned() else {
        return Ok(None);
    };
    let key = app
        .git_keys()
        .of(app, (project, name), &source.secret)
        .await?;
    if key.is_none() {
        tracing::warn!(
            %project,
            source = %name,
            "somebody speaks as source {name} of {project}, and its secret {} is not set",
            source.secret
        );
    }
    Ok(key.map(|key| (row.settings, source, key)))
}
