//! Environments that come, and those that become another: what is asked is judged, then stored
//! whole or not at all.

use api::{
    CloneRequest, EnvironmentAccepted, EnvironmentChangeRequest, EnvironmentRequest, ExtendRequest,
    TrialView,
};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use model::environment::EnvironmentName;
use model::environment::config::Edits;
use model::environment::git::{self, Origin};
use model::environment::settings::Settings;
use model::environment::status::Deed;
use model::name::Name;
use model::secret::{EntryName, Secret};
use serde::Deserialize;
use std::sync::Arc;
use store::{
    ActionDraft, Amendment, Ask, Effective, EnvironmentDraft, EnvironmentError, EnvironmentRow,
    Repeat,
};
use utoipa::IntoParams;

use super::body::Whispered;
use crate::access::Caller;
use crate::advise::Candidate;
use crate::app::App;
use crate::environments::{self, About, Head, KeyHeader, MatchHeader, TRIES_MAX, Wanted};
use crate::extract::{self, NoQuery, Project, Query, Within};
use crate::problem::Problem;

/// Whether something is only tried.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TryQuery {
    /// Whether to answer what would come of it, and change nothing.
    dry_run: Option<bool>,
}

/// An environment on its way in.
struct Coming {
    project: Name,
    name: EnvironmentName,
    settings: Settings,
    edits: Edits,
    fresh: Arc<Vec<(EntryName, Secret)>>,
    about: About,
    /// Where it comes from, where that counts for it, too.
    origin: Option<Origin>,
    repeat: Option<Repeat>,
}

/// Creates an environment.
///
/// With `dryRun`, nothing is created: the answer is what it would be configured with, and what the
/// project's check says to that. What would keep it from being created is the answer either way.
#[utoipa::path(
    post, path = "/environments", operation_id = "createEnvironment", tag = "environments", params(TryQuery, KeyHeader), request_body = EnvironmentRequest,
    responses(
        (status = 200, description = "what would come of it", body = TrialView),
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "there is one of that name, or the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    Query(query): Query<TryQuery>,
    head: Head,
    Whispered(mut request): Whispered<EnvironmentRequest>,
) -> Result<Response, Problem> {
    if head.expected.is_some() {
        let detail = "allowed: nothing; what is to be created has no generation yet";
        return Err(Problem::parameter("If-Match", detail));
    }
    let name = named(request.name.as_deref().unwrap_or_default())?;
    let dry = query.dry_run.unwrap_or(false);
    let repeat = head.repeat(&request.to_public_json()).filter(|_| !dry);
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    free(&app, &project, &name).await?;
    let settings = environments::settings(&app, &project).await?;
    let wanted = Wanted::whole(&project, &settings, &mut request)?;
    let nothing = Edits::default();
    let coming = Coming {
        edits: wanted.applied(&nothing, &nothing)?,
        fresh: wanted.fresh,
        about: said(&app, request)?,
        origin: None,
        project,
        name,
        settings,
        repeat,
    };
    come(&app, &caller, coming, dry).await
}

fn named(text: &str) -> Result<EnvironmentName, Problem> {
    text.parse()
        .map_err(|error| Problem::environment_name(&error))
}

/// Refuses a name that somebody has, and one more than there may be.
async fn free(app: &App, project: &Name, name: &EnvironmentName) -> Result<(), Problem> {
    let free = app.store().may_create_environment(project, name).await;
    free.map_err(|error| Problem::environment(name, error))
}

/// What a whole request says of an environment besides its settings.
fn said(app: &App, request: EnvironmentRequest) -> Result<About, Problem> {
    let expires = request.expires_in_seconds;
    environments::about(About {
        owner: request.owner.unwrap_or_default(),
        labels: request.labels,
        notes: request.notes.unwrap_or_default(),
        protected: request.protected.unwrap_or(false),
        expires_at: environments::expiry("expiresInSeconds", expires, app.now())?,
    })
}

/// Creates an environment that the project's check takes.
async fn come(app: &App, caller: &Caller, coming: Coming, dry: bool) -> Result<Response, Problem> {
    let Coming {
        project,
        name,
        settings,
        edits,
        fresh,
        about,
        origin,
        repeat,
    } = coming;
    environments::lent(&name, origin.as_ref(), &edits)?;
    let effective = environments::worked_out(app, &settings, &edits).await?;
    let candidate = Candidate {
        project: project.clone(),
        name: name.clone(),
        id: app.store().environment_to_be(&project, &name).await?,
        settings,
        application: effective.application.clone(),
        deployment: effective.deployment.clone(),
        fresh: Arc::clone(&fresh),
        actor: caller.actor.clone(),
    };
    let said = environments::judged(app, &candidate).await?;
    if dry {
        return Ok(Json(environments::tried(effective, said)).into_response());
    }
    environments::approved(said)?;
    let mut tries = 0;
    loop {
        let id = app.store().environment_to_be(&project, &name).await?;
        let draft = EnvironmentDraft {
            project: project.clone(),
            name: name.clone(),
            id,
            about: about.clone(),
            edits: edits.clone(),
            sealed: environments::sealed(app, &project, id, &fresh).await?,
            effective: effective.clone(),
            actor: caller.actor.clone(),
            origin: origin.clone(),
            step: None,
        };
        let ask = Ask::Create(Box::new(draft));
        match environments::once(app, &project, ask, repeat.as_ref()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => once_more(app, &name, error, &mut tries).await?,
        }
    }
}

/// Has something tried again where others were quicker; tells what is in its way otherwise.
async fn once_more(
    app: &App,
    name: &EnvironmentName,
    error: EnvironmentError,
    tries: &mut u32,
) -> Result<(), Problem> {
    *tries += 1;
    let again = *tries < TRIES_MAX;
    if again && matches!(error, EnvironmentError::KeyGone { .. }) {
        return Ok(app.vault().refresh().await?);
    }
    let quicker = matches!(
        error,
        EnvironmentError::Elsewhere | EnvironmentError::Edited
    );
    if again && quicker {
        return Ok(());
    }
    Err(Problem::environment(name, error))
}

/// What is to become of an environment that is there.
struct Becoming {
    project: Name,
    name: EnvironmentName,
    /// The generation that it has to have.
    expected: Option<u64>,
    settings: Settings,
    wanted: Wanted,
    amendment: Amendment,
    extent: Extent,
    repeat: Option<Repeat>,
}

/// How much of an environment is asked to become another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// What is said of it.
    About,
    /// Settings that are named.
    Named,
    /// All of them: edits that are not named are forgotten.
    Whole,
}

/// Changes an environment: settings are set, sealed, left out or forgotten, all of it or nothing.
///
/// What says nothing of settings has nothing done to it. With `dryRun`, nothing is changed: the
/// answer is what it would be configured with, and what the project's check says to that.
#[utoipa::path(
    patch, path = "/environments/{name}", operation_id = "changeEnvironment", tag = "environments",
    params(TryQuery, KeyHeader, MatchHeader),
    request_body = EnvironmentChangeRequest,
    responses(
        (status = 200, description = "what would come of it", body = TrialView),
        (status = 202, description = "noted, or begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<TryQuery>,
    head: Head,
    Whispered(mut request): Whispered<EnvironmentChangeRequest>,
) -> Result<Response, Problem> {
    let expected = head.expected;
    let dry = query.dry_run.unwrap_or(false);
    let repeat = head.repeat(&request.to_public_json()).filter(|_| !dry);
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let extent = if request.edits() {
        Extent::Named
    } else {
        Extent::About
    };
    environments::find(&app, &project, &name).await?;
    let settings = environments::settings(&app, &project).await?;
    let becoming = Becoming {
        wanted: Wanted::change(&project, &settings, &mut request)?,
        amendment: amendment(request)?,
        project,
        name,
        expected,
        settings,
        extent,
        repeat,
    };
    match dry {
        true => try_another(&app, &caller, &becoming).await,
        false if extent == Extent::About => amend(&app, &caller, &becoming).await,
        false => become_another(&app, &caller, &becoming).await,
    }
}

/// What a change says of an environment besides its settings.
fn amendment(request: EnvironmentChangeRequest) -> Result<Amendment, Problem> {
    let amendment = Amendment::Partly {
        owner: request.owner,
        labels: request.labels,
        notes: request.notes,
        protected: request.protected,
    };
    environments::about(amendment.applied(&About::default()))?;
    Ok(amendment)
}

/// Puts all that is said in place of what there is: edits that are not named are forgotten.
///
/// With `dryRun`, nothing is changed: the answer is what it would be configured with, and what the
/// project's check says to that.
#[utoipa::path(
    put, path = "/environments/{name}", operation_id = "putEnvironment", tag = "environments",
    params(TryQuery, KeyHeader, MatchHeader),
    request_body = EnvironmentRequest,
    responses(
        (status = 200, description = "what would come of it", body = TrialView),
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<TryQuery>,
    head: Head,
    Whispered(mut request): Whispered<EnvironmentRequest>,
) -> Result<Response, Problem> {
    let expected = head.expected;
    let dry = query.dry_run.unwrap_or(false);
    let repeat = head.repeat(&request.to_public_json()).filter(|_| !dry);
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    if request
        .name
        .as_ref()
        .is_some_and(|said| said != name.as_str())
    {
        let detail = "allowed: nothing, or the name in the path; names do not change";
        return Err(Problem::parameter("name", detail));
    }
    environments::find(&app, &project, &name).await?;
    let settings = environments::settings(&app, &project).await?;
    let wanted = Wanted::whole(&project, &settings, &mut request)?;
    let becoming = Becoming {
        wanted,
        amendment: said(&app, request)?.into(),
        project,
        name,
        expected,
        settings,
        extent: Extent::Whole,
        repeat,
    };
    if dry {
        try_another(&app, &caller, &becoming).await
    } else {
        become_another(&app, &caller, &becoming).await
    }
}

/// What an environment would become, and what its project's check says to that.
struct Become {
    row: EnvironmentRow,
    edits: Edits,
    effective: Effective,
    said: Option<String>,
}

/// Works out what an environment would become, if that is possible now.
async fn worked_out(app: &App, caller: &Caller, becoming: &Becoming) -> Result<Become, Problem> {
    let Becoming {
        settings, wanted, ..
    } = becoming;
    let row = environments::find(app, &becoming.project, &becoming.name).await?;
    environments::current(&row, becoming.expected)?;
    environments::about(becoming.amendment.applied(&row.about))?;
    if becoming.extent != Extent::About {
        environments::permitted(&row, Deed::Update, false)?;
    }
    let edits = match becoming.extent {
        Extent::About | Extent::Named => wanted.applied(&row.edits, &row.edits)?,
        Extent::Whole => wanted.applied(&Edits::default(), &row.edits)?,
    };
    environments::lent(&row.name, row.origin.as_ref(), &edits)?;
    let effective = environments::worked_out(app, settings, &edits).await?;
    let candidate = environments::subject(&row, settings, &effective, &wanted.fresh, &caller.actor);
    let said = environments::judged(app, &candidate).await?;
    Ok(Become {
        row,
        edits,
        effective,
        said,
    })
}

async fn try_another(app: &App, caller: &Caller, becoming: &Becoming) -> Result<Response, Problem> {
    let Become {
        effective, said, ..
    } = worked_out(app, caller, becoming).await?;
    Ok(Json(environments::tried(effective, said)).into_response())
}

/// Has an environment become another that the project's check takes.
async fn become_another(
    app: &App,
    caller: &Caller,
    becoming: &Becoming,
) -> Result<Response, Problem> {
    let mut tries = 0;
    loop {
        let Become {
            row,
            edits,
            effective,
            said,
        } = worked_out(app, caller, becoming).await?;
        environments::approved(said)?;
        let fresh = &becoming.wanted.fresh;
        let draft = ActionDraft {
            deed: Deed::Update,
            force: false,
            generation: becoming.expected,
            edits: Some(edits),
            sealed: environments::sealed(app, &row.project, row.id, fresh).await?,
            sealed_until: None,
            effective,
            actor: caller.actor.clone(),
            cause: None,
            origin: None,
            step: None,
            project: row.project,
            name: row.name,
            seen: Some((row.id, row.edits)),
        };
        let ask = Ask::Change(Box::new(draft), becoming.amendment.clone());
        let repeat = becoming.repeat.as_ref();
        match environments::once(app, &becoming.project, ask, repeat).await {
            Ok(answer) => return Ok(answer),
            Err(error) => once_more(app, &becoming.name, error, &mut tries).await?,
        }
    }
}

/// Notes what is said of an environment; nothing is done to it.
async fn amend(app: &App, caller: &Caller, becoming: &Becoming) -> Result<Response, Problem> {
    let ask = Ask::Amend {
        name: becoming.name.clone(),
        generation: becoming.expected,
        amendment: becoming.amendment.clone(),
        actor: caller.actor.clone(),
    };
    let repeat = becoming.repeat.as_ref();
    let amended = environments::once(app, &becoming.project, ask, repeat).await;
    amended.map_err(|error| Problem::environment(&becoming.name, error))
}

/// Creates another environment with the same edits, secret ones included.
#[utoipa::path(
    post, path = "/environments/{name}/clone", operation_id = "cloneEnvironment", tag = "environments", params(KeyHeader, MatchHeader), request_body = CloneRequest,
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "there is one of that name", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn clone(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    head: Head,
    _: NoQuery,
    extract::Json(request): extract::Json<CloneRequest>,
) -> Result<Response, Problem> {
    let expected = head.expected;
    let repeat = head.repeat(&request.name);
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let row = environments::find(&app, &project, &name).await?;
    environments::current(&row, expected)?;
    let copy = named(&request.name)?;
    free(&app, &project, &copy).await?;
    let settings = environments::settings(&app, &project).await?;
    let fresh = environments::copied(&app, &row, &caller.actor).await?;
    let coming = Coming {
        project,
        name: copy,
        settings,
        edits: row.edits,
        fresh: Arc::new(fresh),
        about: copied(row.about),
        // A copy of what a fork deploys is no more to be trusted.
        origin: row.origin.filter(|origin| origin.fork),
        repeat,
    };
    come(&app, &caller, coming, false).await
}

/// What is said of a copy: it follows no request, and has its own time.
fn copied(about: About) -> About {
    let labels = about.labels.into_iter();
    About {
        labels: labels
            .filter(|(label, _)| !label.starts_with(git::LABELS))
            .collect(),
        protected: false,
        expires_at: None,
        ..about
    }
}

/// Says how long an environment may be up, from now on.
#[utoipa::path(
    post, path = "/environments/{name}/extend", operation_id = "extendEnvironment", tag = "environments", params(KeyHeader, MatchHeader), request_body = ExtendRequest,
    responses(
        (status = 202, description = "noted", body = EnvironmentAccepted, headers(("Location" = String, description = "the environment"))),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn extend(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    head: Head,
    _: NoQuery,
    extract::Json(request): extract::Json<ExtendRequest>,
) -> Result<Response, Problem> {
    let expected = head.expected;
    let seconds = request.seconds;
    let repeat = head.repeat(&seconds.map_or(String::new(), |seconds| seconds.to_string()));
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let ask = Ask::Amend {
        amendment: Amendment::Until(environments::expiry("seconds", seconds, app.now())?),
        name: name.clone(),
        generation: expected,
        actor: caller.actor,
    };
    let amended = environments::once(&app, &project, ask, repeat.as_ref()).await;
    amended.map_err(|error| Problem::environment(&name, error))
}
