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
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use model::access::Role::{self, Viewer};
use model::name::Name;

use crate::access::{self, Caller, Need};
use crate::app::App;
use crate::auth;
use crate::extract;
use crate::problem::Problem;

/// A page, or something that belongs to one, with what it needs.
struct Page {
    method: Method,
    path: &'static str,
    need: Need,
    handlers: fn() -> MethodRouter<App>,
}

const fn page(path: &'static str, need: Need, handlers: fn() -> MethodRouter<App>) -> Page {
    Page {
        method: Method::GET,
        path,
        need,
        handlers,
    }
}

const fn form(path: &'static str, need: Need, handlers: fn() -> MethodRouter<App>) -> Page {
    Page {
        method: Method::POST,
        path,
        need,
        handlers,
    }
}

/// Everything that browsers get: there is no other way to add a page than here.
const PAGES: [Page; 9] = [
    page("/", Need::Narrowed(Viewer), || get(fleet::home)),
    page("/projects/{project}", Need::Within(Viewer), || {
        get(fleet::show)
    }),
    page(
        "/projects/{project}/clusters/{name}",
        Need::Within(Viewer),
        || get(cluster::show),
    ),
    page(
        "/projects/{project}/manifests/{name}",
        Need::Within(Viewer),
        || get(manifest::show),
    ),
    page(
        "/projects/{project}/tasks/{id}",
        Need::Within(Viewer),
        || get(task::show),
    ),
    page("/sign-in", Need::Nothing, || get(sign_in::form)),
    form("/sign-in", Need::Nothing, || post(sign_in::sign_in)),
    form("/sign-out", Need::Nothing, || post(sign_in::sign_out)),
    page("/assets/{name}", Need::Nothing, || get(assets::serve)),
];

/// Every page, by method and path, with what it needs.
pub fn pages() -> impl Iterator<Item = (Method, &'static str, Need)> {
    let told = |page: Page| (page.method, page.path, page.need);
    PAGES.into_iter().map(told)
}

/// The routes of the page.
pub(crate) fn router(app: &App) -> Router<App> {
    PAGES.into_iter().fold(Router::new(), |router, page| {
        let handlers = (page.handlers)();
        let handlers = match page.need {
            Need::Nothing => handlers,
            Need::Within(_) | Need::Narrowed(_) | Need::Everywhere(_) => handlers
                .route_layer(from_fn_with_state(page.need, check))
                .route_layer(from_fn_with_state(app.clone(), only_signed_in)),
        };
        router.route(page.path, handlers)
    })
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
    /// Where the pages of the project begin.
    base: String,
    /// Where its events are told.
    events: String,
    top: Option<Top>,
}

/// Who looks at what.
struct Top {
    name: String,
    role: Role,
    project: Name,
    /// Where else they may look, and whether they do.
    projects: Vec<(Name, bool)>,
    more: bool,
}

impl Frame {
    /// A frame around nothing that changes.
    fn bare() -> Self {
        Self {
            style: assets::style(),
            script: assets::script(),
            icon: assets::icon(),
            after: 0,
            now: String::new(),
            base: String::new(),
            events: String::new(),
            top: None,
        }
    }

    /// Taken before anything is read: what happens while the page is made is seen as new.
    /// A part of a page needs no top.
    async fn new(app: &App, caller: Caller, project: &Name, part: bool) -> Result<Self, Problem> {
        let after = *app.store().subscribe().borrow();
        let top = if part {
            None
        } else {
            let all = extract::page(None, None)?;
            let listed = app.store().projects(caller.project.as_ref(), all).await?;
            let names = listed.items.into_iter().map(|row| row.name);
            Some(Top {
                name: caller.name,
                role: caller.role,
                project: project.clone(),
                projects: names.map(|name| (name.clone(), name == *project)).collect(),
                more: listed.next.is_some(),
            })
        };
        Ok(Self {
            after,
            now: signs::to_the_second(app.now()),
            base: format!("/projects/{project}"),
            events: format!("/api/v1/projects/{project}/events?stream=true"),
            top,
            ..Self::bare()
        })
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
        let page = WrongPage {
            frame: Frame::bare(),
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
    let token = access::shown(request.headers(), true).map(str::to_owned);
    let Some(token) = token else {
        return to_the_form(request.uri().path(), None);
    };
    match access::identify(&app, &token, access::peer(request.extensions())).await {
        Ok(caller) => access::pass(app, caller, request, next).await,
        Err(problem) => match problem.status() {
            StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS => {
                to_the_form(request.uri().path(), Some(&problem))
            }
            _ => Wrong(problem).into_response(),
        },
    }
}

/// The way to the form; a cookie that opens nothing is taken away, and the form says why.
fn to_the_form(from: &str, problem: Option<&Problem>) -> Response {
    let mut query = Vec::new();
    if from != "/" {
        query.push(format!("next={from}"));
    }
    let Some(problem) = problem else {
        return Redirect::to(&to_sign_in(&query)).into_response();
    };
    query.push(format!("why={}", problem.wire().code));
    let cookie = [(header::SET_COOKIE, auth::no_cookie())];
    (cookie, Redirect::to(&to_sign_in(&query))).into_response()
}

fn to_sign_in(query: &[String]) -> String {
    if query.is_empty() {
        "/sign-in".to_owned()
    } else {
        format!("/sign-in?{}", query.join("&"))
    }
}

/// The second gate, whose answers people read.
async fn check(
    State(need): State<Need>,
    segments: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    match access::may(need, segments, request.extensions().get()) {
        Ok(()) => next.run(request).await,
        Err(problem) => Wrong(problem).into_response(),
    }
}
