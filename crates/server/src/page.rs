//! The page: fleet, cluster, manifest and task as people look at them.
//!
//! Everything is rendered here, on the server; a browser without scripts sees the same.
//! With them, an event makes the page fetch its `main` part again (`?fragment=1`).
//!
//! **Invariant:** whatever a person or a program wrote is escaped by the templates; no
//! template marks a value as safe, and the security policy forbids inline scripts.

mod assets;
mod cluster;
mod fleet;
mod manifest;
mod sign_in;
mod signs;
mod task;

use askama::Template;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use model::time::Timestamp;

use crate::app::App;
use crate::problem::Problem;

/// The routes of the page.
pub(crate) fn router(app: &App) -> Router<App> {
    let closed = Router::new()
        .route("/", get(fleet::show))
        .route("/clusters/{name}", get(cluster::show))
        .route("/manifests/{name}", get(manifest::show))
        .route("/tasks/{id}", get(task::show))
        .route_layer(from_fn_with_state(app.clone(), only_signed_in));
    Router::new()
        .route("/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/assets/{name}", get(assets::serve))
        .merge(closed)
}

/// What surrounds every page.
struct Frame {
    style: &'static str,
    script: &'static str,
    icon: &'static str,
    /// The newest event that the page has taken in.
    after: u64,
    /// When the page was made, for people.
    now: String,
}

impl Frame {
    /// Taken before anything is read: what happens while the page is made is seen as new.
    fn new(app: &App, now: Timestamp) -> Self {
        Self {
            style: assets::style(),
            script: assets::script(),
            icon: assets::icon(),
            after: *app.store().subscribe().borrow(),
            now: signs::to_the_second(now),
        }
    }
}

/// A page, or the sentence that says why there is none.
type Shown = Result<Response, Wrong>;

/// Renders a page, or the part of one.
fn render(page: &impl Template) -> Shown {
    match page.render() {
        Ok(text) => Ok(Html(text).into_response()),
        Err(error) => {
            tracing::error!(%error, "could not render a page");
            Err(Wrong(Problem::bug("of this page")))
        }
    }
}

/// A problem as a person sees it in a browser.
struct Wrong(Problem);

#[derive(Template)]
#[template(path = "wrong.html")]
struct WrongPage<'a> {
    frame: Frame,
    title: &'a str,
    detail: &'a str,
    hint: &'a str,
    code: &'a str,
}

impl<E: Into<Problem>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let wire = self.0.wire();
        let frame = Frame {
            style: assets::style(),
            script: assets::script(),
            icon: assets::icon(),
            after: 0,
            now: String::new(),
        };
        let page = WrongPage {
            frame,
            title: &wire.title,
            detail: &wire.detail,
            hint: wire.hint.as_deref().unwrap_or_default(),
            code: &wire.code,
        };
        match page.render() {
            Ok(text) => (self.0.status(), Html(text)).into_response(),
            Err(_) => self.0.into_response(),
        }
    }
}

/// Sends whoever is not signed in to where one can be, and remembers where they wanted to go.
async fn only_signed_in(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.admin().knows_cookie(request.headers()) || app.admin().knows_bearer(request.headers()) {
        return next.run(request).await;
    }
    match request.uri().path() {
        "/" => Redirect::to("/sign-in").into_response(),
        path => Redirect::to(&format!("/sign-in?next={path}")).into_response(),
    }
}
