//! Signing in and out, without scripts.

use askama::Template;
use axum::extract::{RawForm, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{Frame, Wrong};
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
struct Filled {
    token: String,
    next: Option<String>,
}

/// Shows the form.
pub(super) async fn form(State(app): State<App>, Query(query): Query<FormQuery>) -> Result<Response, Wrong> {
    show(&app, false, query.next.as_deref())
}

/// Takes the token and gives the cookie.
pub(super) async fn sign_in(State(app): State<App>, RawForm(body): RawForm) -> Result<Response, Wrong> {
    let Filled { token, next } = read(&body).ok_or_else(|| Problem::body("not the form of this page"))?;
    let token = token.trim();
    if !app.admin().knows(token) {
        let shown = show(&app, true, next.as_deref())?;
        return Ok((StatusCode::UNAUTHORIZED, shown).into_response());
    }
    let next = local(next.as_deref()).to_owned();
    Ok(([(header::SET_COOKIE, auth::cookie(token))], Redirect::to(&next)).into_response())
}

/// Takes the cookie away.
pub(super) async fn sign_out() -> Response {
    ([(header::SET_COOKIE, auth::no_cookie())], Redirect::to("/sign-in")).into_response()
}
