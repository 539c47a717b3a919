//! Signing in and out, without scripts.

use askama::Template;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{Extensions, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{Frame, Wrong, render};
use crate::access;
use crate::app::App;
use crate::auth;
use crate::extract::Query;
use crate::problem::Problem;

/// What the form is.
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The form.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct Form<'a> {
    frame: Frame,
    wrong: Option<&'static str>,
    next: &'a str,
}

/// Where to go afterwards.
#[derive(Debug, Deserialize)]
pub(super) struct FormQuery {
    next: Option<String>,
    why: Option<String>,
}

/// What the form sends.
#[derive(Debug, Deserialize)]
pub(super) struct Filled {
    token: String,
    next: Option<String>,
}

/// Shows the form.
pub(super) async fn form(query: Result<Query<FormQuery>, Problem>) -> Result<Response, Wrong> {
    let Query(query) = query?;
    let wrong = query.why.as_deref().and_then(wrong);
    show(wrong, query.next.as_deref())
}

/// Takes the token and gives the cookie.
pub(super) async fn sign_in(
    State(app): State<App>,
    extensions: Extensions,
    filled: Result<axum::Form<Filled>, FormRejection>,
) -> Result<Response, Wrong> {
    let axum::Form(Filled { token, next }) =
        filled.map_err(|_| Problem::body("not the form of this page"))?;
    let token = token.trim();
    if let Err(problem) = access::identify(&app, token, access::peer(&extensions)).await {
        let Some(wrong) = wrong(&problem.wire().code) else {
            return Err(Wrong(problem));
        };
        let shown = show(Some(wrong), next.as_deref())?;
        // The headers of the problem, such as when to try again, are worth as much here.
        let mut answer = problem.into_response();
        answer.headers_mut().remove(header::CONTENT_LENGTH);
        answer.headers_mut().insert(header::CONTENT_TYPE, HTML);
        *answer.body_mut() = shown.into_body();
        return Ok(answer);
    }
    Ok((
        [(header::SET_COOKIE, auth::cookie(token))],
        Redirect::to(local(next.as_deref())),
    )
        .into_response())
}

/// Why nobody was let in, where a person can do something about it here.
fn wrong(code: &str) -> Option<&'static str> {
    match code {
        "AUTH-001" => Some("Nobody ever made this token. Copy the whole line, from slipway_ on."),
        "AUTH-002" => Some("The time of this token is over. Ask an administrator for another one."),
        "AUTH-003" => Some("This token was revoked. Ask an administrator for another one."),
        "AUTH-004" => Some("Too many wrong tokens came from your address. Try again in a minute."),
        _ => None,
    }
}

/// Takes the cookie away.
pub(super) async fn sign_out() -> Response {
    (
        [(header::SET_COOKIE, auth::no_cookie())],
        Redirect::to("/sign-in"),
    )
        .into_response()
}

fn show(wrong: Option<&'static str>, next: Option<&str>) -> Result<Response, Wrong> {
    let form = Form {
        frame: Frame::bare(),
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
        let page = "/projects/default/clusters/edge-1";
        assert_eq!(local(Some(page)), page);
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
