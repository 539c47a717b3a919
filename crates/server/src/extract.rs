//! Reads requests: whatever is malformed becomes a problem, never a plain text or a 5xx.

use api::page::{LIMIT_DEFAULT, LIMIT_MAX};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::{HeaderMap, header, request::Parts};
use futures_util::StreamExt as _;
use model::admit::{place, read_all};
use model::cluster::Generation;
use model::environment::EnvironmentName;
use model::id::{ActionId, DeliveryId, IntentId, JourneyId, TaskId, TokenId};
use model::manifest::Manifest;
use model::name::Name;
use model::source;
use serde::de::DeserializeOwned;
use store::{Actor, Allowed};

use crate::app::App;
use crate::body::{Body, twice};
use crate::credentials::{self, Shut};
use crate::problem::Problem;

/// How much of a body that is too large is read and thrown away, so that the client comes
/// to read the answer instead of a broken connection.
pub(crate) const DISCARDED_BYTES_MAX: usize = 32 << 20;

/// The kinds of body in which manifests come.
const MANIFEST_TYPES: [&str; 5] = [
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "application/json",
    "text/plain",
];

/// The longest key that makes a repeat harmless; longer ones are no keys.
const KEY_LEN_MAX: usize = 255;

/// A piece of a path that is read into a checked type.
pub(crate) trait Segment: Sized + Send {
    /// What the piece is called in the path.
    const PLACE: &'static str;

    /// Reads it.
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! segment {
    ($type:ty, $place:literal) => {
        impl Segment for $type {
            const PLACE: &'static str = $place;

            fn read(text: &str) -> Result<Self, String> {
                text.parse()
                    .map_err(|error: <Self as std::str::FromStr>::Err| error.to_string())
            }
        }
    };
}

segment!(Name, "name");
segment!(EnvironmentName, "name");
segment!(ActionId, "id");
segment!(DeliveryId, "id");
segment!(TaskId, "id");
segment!(IntentId, "id");
segment!(JourneyId, "id");
segment!(TokenId, "id");

/// What a source of a project is called.
pub(crate) struct SourceName(pub(crate) Name);

impl Segment for SourceName {
    const PLACE: &'static str = "source";

    fn read(text: &str) -> Result<Self, String> {
        Name::read(text).map(Self)
    }
}

impl Segment for Generation {
    const PLACE: &'static str = "generation";

    fn read(text: &str) -> Result<Self, String> {
        number(text).map(Self).ok_or_else(|| {
            format!(
                "`{}` is not a generation, which counts from 1",
                text.escape_debug()
            )
        })
    }
}

/// The project of a path, which exists.
pub(crate) struct Project(pub(crate) Name);

/// The project of a path, and the thing within it that the path names.
pub(crate) struct Within<T>(pub(crate) Name, pub(crate) T);

impl FromRequestParts<App> for Project {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let segments = segments(parts, app).await?;
        project(app, &segments).await.map(Self)
    }
}

impl<T: Segment> FromRequestParts<App> for Within<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let segments = segments(parts, app).await?;
        let thing = segment(&segments)?;
        Ok(Self(project(app, &segments).await?, thing))
    }
}

impl<A: Segment, B: Segment> FromRequestParts<App> for Within<(A, B)> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let segments = segments(parts, app).await?;
        let things = (segment(&segments)?, segment(&segments)?);
        Ok(Self(project(app, &segments).await?, things))
    }
}

/// The project that a path names, whether it exists or not.
pub(crate) struct Named(pub(crate) Name);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        named(&segments(parts, state).await?).map(Self)
    }
}

/// The thing that a path names which has no project.
pub(crate) struct One<T>(pub(crate) T);

impl<S: Send + Sync, T: Segment> FromRequestParts<S> for One<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(&segments(parts, state).await?).map(Self)
    }
}

async fn segments<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<RawPathParams, Problem> {
    RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|rejection: RawPathParamsRejection| {
            Problem::parameter("path", rejection.body_text())
        })
}

fn segment<T: Segment>(segments: &RawPathParams) -> Result<T, Problem> {
    let (_, text) = segments
        .iter()
        .find(|(name, _)| *name == T::PLACE)
        .ok_or_else(|| Problem::parameter(T::PLACE, "the path has no such piece"))?;
    T::read(text).map_err(|error| Problem::parameter(T::PLACE, error))
}

fn named(segments: &RawPathParams) -> Result<Name, Problem> {
    let text = segments
        .iter()
        .find(|(name, _)| *name == "project")
        .map_or("", |(_, text)| text);
    Name::read(text).map_err(|error| Problem::parameter("project", error))
}

/// The project of the path; that there is none is told only to those who passed the gate.
async fn project(app: &App, segments: &RawPathParams) -> Result<Name, Problem> {
    let name = named(segments)?;
    if app.known().has_project(app.store(), &name).await? {
        Ok(name)
    } else {
        Err(Problem::no_project(&name))
    }
}

/// The query of a request.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // No text that is stored has one, and not every database can be asked for it.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            let why = "found NUL, allowed: any text without it";
            return Err(Problem::parameter("query", why));
        }
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|rejection| {
                let text = rejection.body_text();
                Problem::parameter(
                    "query",
                    text.rsplit_once("query string: ")
                        .map_or(text.as_str(), |(_, why)| why),
                )
            })
    }
}

/// That a request has no query: what is asked for in one would not be heeded.
pub(crate) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        match parts.uri.query() {
            None | Some("") => Ok(Self),
            Some(_) => Err(Problem::parameter("query", "nothing can be asked for here")),
        }
    }
}

/// That a request has no body, or one that says nothing.
pub(crate) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        match bytes(request).await?.trim_ascii() {
            b"" | b"{}" | b"null" => Ok(Self),
            _ => Err(Problem::body(
                "found a body, and nothing is said in one here",
            )),
        }
    }
}

/// Which page of a list is asked for.
pub(crate) fn page(limit: Option<u32>, cursor: Option<String>) -> Result<store::Page, Problem> {
    Ok(store::Page {
        limit: self::limit(limit)?,
        after: cursor,
    })
}

/// How many items are asked for.
pub(crate) fn limit(limit: Option<u32>) -> Result<u32, Problem> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if (1..=LIMIT_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Problem::parameter(
            "limit",
            format!("found {limit}, allowed: 1 to {LIMIT_MAX}"),
        ))
    }
}

/// A share of machines that may be removed.
fn percent(percent: Option<u8>) -> Result<Option<u8>, Problem> {
    match percent {
        Some(percent @ 101..) => Err(Problem::parameter(
            "allowBlast",
            format!("found {percent}, allowed: 0 to 100"),
        )),
        Some(0..=100) | None => Ok(percent),
    }
}

/// What somebody agrees to.
pub(crate) fn allowed(blast: Option<u8>, data_loss: Option<bool>) -> Result<Allowed, Problem> {
    Ok(Allowed {
        blast: percent(blast)?,
        data_loss: data_loss.unwrap_or(false),
    })
}

/// A name in a query or a body.
pub(crate) fn name(place: &str, text: &str) -> Result<Name, Problem> {
    text.parse()
        .map_err(|error| Problem::parameter(place, error))
}

/// An optional name in a query.
pub(crate) fn name_of(place: &str, text: Option<&str>) -> Result<Option<Name>, Problem> {
    text.map(|text| name(place, text)).transpose()
}

/// The generation that the request was made for.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<Generation>, Problem> {
    let Some(text) = text_of(headers, &header::IF_MATCH, "If-Match")? else {
        return Ok(None);
    };
    let bare = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(text);
    number(bare)
        .map(|generation| Some(Generation(generation)))
        .ok_or_else(|| Problem::parameter("If-Match", "not the number of a generation"))
}

/// The key that makes a repeat of the request harmless.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let name = header::HeaderName::from_static("idempotency-key");
    let Some(text) = text_of(headers, &name, "Idempotency-Key")? else {
        return Ok(None);
    };
    if text.is_empty() || text.len() > KEY_LEN_MAX {
        return Err(Problem::parameter(
            "Idempotency-Key",
            format!("allowed are 1 to {KEY_LEN_MAX} characters"),
        ));
    }
    Ok(Some(text.to_owned()))
}

/// A header that may appear once and holds printable characters.
pub(crate) fn text_of<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
    place: &str,
) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (first, None) = (values.next(), values.next()) else {
        return Err(Problem::parameter(place, "given more than once"));
    };
    first
        .map(|value| value.to_str().map(str::trim))
        .transpose()
        .map_err(|_| Problem::parameter(place, "has characters that are not printable"))
}

/// A whole number in its plainest form.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The text of a manifest, not yet read.
pub(crate) struct Text(pub(crate) String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        media_type(request.headers(), &MANIFEST_TYPES)?;
        let bytes = bytes(request).await?;
        String::from_utf8(bytes)
            .map(Self)
            .map_err(|_| Problem::not_yaml("document cannot be read as YAML: it is not UTF-8"))
    }
}

impl Text {
    /// Reads and admits the manifest, away from the threads that serve requests: a large
    /// one takes long enough for others to notice. Of one that is refused all is told that is wrong, also
    /// what only the project knows.
    pub(crate) async fn admitted(
        self,
        app: &App,
        project: &Name,
        actor: &Actor,
    ) -> Result<Admitted, Problem> {
        let read = crate::aside(move || {
            let documents = source::parse_all(&self.0).map_err(|error| match error {
                source::Error::TooLong { .. } => Problem::too_large(source::BYTES_MAX),
                source::Error::Syntax { .. } => Problem::not_yaml(error.to_string()),
            })?;
            let read = read_all(&documents);
            Ok((read, documents, self.0))
        });
        let (read, documents, text) = read.await?;
        let refused = match read {
            Ok(manifest) => {
                let places = Places(documents);
                return Ok(Admitted {
                    manifest,
                    text,
                    places,
                });
            }
            Err(refused) => refused,
        };
        let of = &refused.partial;
        let mut judged = app.store().judge(project, of, app.now()).await?;
        // What is wrong by itself is worth knowing, also when secrets stay closed.
        if let Ok(shut) = credentials::shut(app, project, &of.providers, actor).await {
            judged.extend(shut.into_iter().map(Shut::into_fault));
        }
        Err(Problem::faults(refused.with(judged, &documents)))
    }
}

/// A manifest as it was written and read.
pub(crate) struct Admitted {
    pub(crate) manifest: Manifest,
    pub(crate) text: String,
    pub(crate) places: Places,
}

/// Where everything stands in a file.
pub(crate) struct Places(Vec<source::Value>);

impl Places {
    /// Puts what is wrong with a manifest into the order of its file. What stands for the rest stays last.
    pub(crate) fn order(&self, problem: Problem) -> Problem {
        problem.sorted_by(|path| (path.is_empty(), place(&self.0, path)))
    }
}

/// A JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: Body> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        media_type(request.headers(), &["application/json"])?;
        let bytes = bytes(request).await?;
        let tree = serde_json::from_slice(&bytes).map_err(|error| not_json(&error))?;
        let mut faults = T::faults(&tree);
        faults.extend(twice(&bytes));
        if !faults.is_empty() {
            return Err(Problem::shape(faults));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::body(error.to_string()))
    }
}

pub(crate) fn not_json(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    Problem::body(if error.is_eof() {
        format!("the body ends in the middle of its JSON, at line {line} column {column}")
    } else {
        format!("the body is not JSON, see line {line} column {column}")
    })
}

/// Refuses a body of another kind; one of no kind is taken as what the route reads.
pub(crate) fn media_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), Problem> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let given = String::from_utf8_lossy(given.as_bytes());
    let essence = given.split(';').next().unwrap_or_default().trim();
    if allowed
        .iter()
        .any(|allowed| essence.eq_ignore_ascii_case(allowed))
    {
        Ok(())
    } else {
        Err(Problem::media_type(essence, &allowed.join(", ")))
    }
}

/// The whole body, within bounds.
pub(crate) async fn bytes(request: Request) -> Result<Vec<u8>, Problem> {
    let mut kept = Vec::new();
    let mut seen = 0_usize;
    let mut pieces = request.into_body().into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::body("the body ended before its end"))?;
        seen = seen.saturating_add(piece.len());
        if seen <= source::BYTES_MAX {
            kept.extend_from_slice(&piece);
        } else if seen > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if seen <= source::BYTES_MAX {
        Ok(kept)
    } else {
        Err(Problem::too_large(source::BYTES_MAX))
    }
}
