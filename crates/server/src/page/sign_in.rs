//! Signing in and out, without scripts.

use askama::Template;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{Frame, Wrong, render};
use crate::app::App;
use crate::auth;
use crate::extract::Query;
use crate::problem::Problem;

/// The form.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct Form<'a> {
    frame: Frame,
    wrong: bool,
    next: &'a str,
}

/// Where to go afterwards.
#[derive(Debug, Deserialize)]
pub(super) struct FormQuery {
    next: Option<String>,
}

/// What the form sends.
#[derive(Debug, Deserialize)]
pub(super) struct Filled {
    token: String,
    next: Option<String>,
}

/// Shows the form.
pub(super) async fn form(
    State(app): State<App>,
    query: Result<Query<FormQuery>, Problem>,
) -> Result<Response, Wrong> {
    let Query(query) = query?;
    show(&app, false, query.next.as_deref())
}

/// Takes the token and gives the cookie.
pub(super) async fn sign_in(
    State(app): State<App>,
    filled: Result<axum::Form<Filled>, FormRejection>,
) -> Result<Response, Wrong> {
    let axum::Form(Filled { token, next }) =
        filled.map_err(|_| Problem::body("not the form of this page"))?;
    let token = token.trim();
    if !app.admin().knows(token) {
        let shown = show(&app, true, next.as_deref())?;
        return Ok((StatusCode::UNAUTHORIZED, shown).into_response());
    }
    Ok((
        [(header::SET_COOKIE, auth::cookie(token))],
        Redirect::to(local(next.as_deref())),
    )
        .into_response())
}

/// Takes the cookie away.
pub(super) async fn sign_out() -> Response {
    (
        [(header::SET_COOKIE, auth::no_cookie())],
        Redirect::to("/sign-in"),
    )
        .into_response()
}

fn show(app: &App, wrong: bool, next: Option<&str>) -> Result<Response, Wrong> {
    let form = Form {
        frame: Frame::new(app, app.now()),
        wrong,
        next: local(next),
    };
    render(&form)
}

/// A path of ours, whatever was asked for: signing in must lead nobody to a stranger.
fn local(next: Option<&str>) -> &str {
    let ours = |next: &&str| {
        next.starts_with('/')
            && !next.starts_with("//")
            && next
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte))
    };
    next.filter(ours).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn signing_in_leads_to_no_stranger() {
        assert_eq!(local(Some("/clusters/edge-1")), "/clusters/edge-1");
        for stranger in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb",
            "javascript:1",
        ] {
            assert_eq!(local(Some(stranger)), "/", "{stranger:?}");
        }
    }
}
