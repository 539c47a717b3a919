//! What went wrong, as an answer: every refusal of the server leaves through here.
//!
//! A problem has a status for programs, a stable code with a page in `docs/errors`, a
//! sentence on what happened and one on what to do. Nothing else is ever answered to a
//! request that failed, neither by us nor by the libraries below us.

mod access;
mod backup;
mod cluster;
mod environment;
mod git;
mod machine;
mod secret;

use api::{FaultView, problem::MEDIA_TYPE};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::fault::{self, Code, Fault};
use model::name::Name;
use store::{Clash, SubmitError, WishError};

/// After how many seconds a busy or locked server is worth another try.
const RETRY_AFTER_SECONDS: u64 = 2;

/// Why a request was not carried out, ready to be answered.
///
/// Boxed, because it travels in every `Result` of every handler. Beside it, after how many
/// seconds it is worth another try, where that is known.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<api::Problem>, Option<u64>);

impl Problem {
    fn new(
        status: StatusCode,
        code: &'static str,
        title: &str,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let problem = api::Problem {
            title: title.to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            hint: Some(hint.into()),
            faults: Vec::new(),
        };
        let passes = status == StatusCode::SERVICE_UNAVAILABLE;
        Self(Box::new(problem), passes.then_some(RETRY_AFTER_SECONDS))
    }

    /// The body is not what the route reads.
    pub(crate) fn body(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "API-001",
            "body cannot be read",
            detail,
            "compare the body with /openapi.json",
        )
    }

    /// The body is JSON of another shape: every fault, each with its place.
    pub(crate) fn shape(faults: Vec<Fault>) -> Self {
        let faults: Vec<FaultView> = faults.into_iter().map(Into::into).collect();
        let mut problem = Self::body(match faults.as_slice() {
            [only] => only.to_string(),
            many => format!("the body has {} faults", many.len()),
        });
        problem.0.faults = faults;
        problem
    }

    /// There is no such thing.
    pub(crate) fn missing(what: &str, name: impl std::fmt::Display) -> Self {
        let hint = match what {
            "plan" => {
                "plans are kept for a day; show it again with `slipway plan -f FILE`".to_owned()
            }
            "pool" => "the pools of a cluster are in its manifest".to_owned(),
            "generation of the manifest" | "generation of the cluster" => {
                "list its generations with `slipway history`".to_owned()
            }
            "token" => "list them with `slipway token list`".to_owned(),
            "snapshot" => "list them with `slipway backup etcd list CLUSTER`".to_owned(),
            "secret" => "list them with `slipway secret list`".to_owned(),
            what => format!("list what there is with `slipway get {what}`"),
        };
        Self::new(
            StatusCode::NOT_FOUND,
            "API-002",
            "not found",
            format!("there is no {what} `{name}`"),
            hint,
        )
    }

    /// There is no such route.
    pub(crate) fn no_route(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "API-002",
            "not found",
            format!("there is no route `{path}`"),
            "every route is listed in /openapi.json",
        )
    }

    /// Somebody else was quicker.
    fn stale(detail: String) -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "API-004",
            "not the current generation",
            detail,
            "read the manifest again, merge, and send the change with the current generation in If-Match",
        )
    }

    /// The wish makes no sense for what there is.
    fn refused(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-005",
            "refused",
            detail,
            "look at the cluster with `slipway describe cluster` and wish for something it has",
        )
    }

    /// The same with the name of the cluster in what to do.
    pub(crate) fn about_cluster(mut self, cluster: &Name) -> Self {
        if let Some(hint) = &mut self.0.hint {
            let verb = "`slipway describe cluster`";
            *hint = hint.replace(verb, &format!("`slipway describe cluster {cluster}`"));
        }
        self
    }

    /// A kind of body that the route does not read.
    pub(crate) fn media_type(found: &str, allowed: &str) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "API-006",
            "unsupported media type",
            format!("found `{}`, allowed: {allowed}", found.escape_debug()),
            "set the Content-Type of the request",
        )
    }

    /// A route that knows other methods.
    pub(crate) fn method(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "API-007",
            "method not allowed",
            format!("`{path}` does not know {method}"),
            "the Allow header lists the methods it knows",
        )
    }

    /// A piece of the path, the query or a header is not of its form.
    pub(crate) fn parameter(place: &str, detail: impl std::fmt::Display) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "API-008",
            "parameter cannot be read",
            format!("{place}: {detail}"),
            "compare the request with /openapi.json",
        );
        problem.0.faults.push(FaultView {
            path: place.to_owned(),
            code: "format".to_owned(),
            message: detail.to_string(),
        });
        problem
    }

    /// Our own mistake; the id finds it in the log.
    pub(crate) fn bug(request: &str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "API-009",
            "internal error",
            format!("the server made a mistake of its own while it answered request {request}"),
            "nothing is half done; report it with what the server's log says about this request",
        )
    }

    /// It took longer than anybody should wait.
    pub(crate) fn slow(seconds: u64) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "API-010",
            "took too long",
            format!("there was no answer within {seconds} s"),
            "try again; with an Idempotency-Key a repeat does no harm",
        )
    }

    /// There is more to do than may be done at once.
    pub(crate) fn busy(detail: &str) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "API-010",
            "busy",
            detail,
            "try again in a moment",
        )
    }

    /// As many clients as may follow something do.
    pub(crate) fn too_many_streams(max: u32) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "STREAM-001",
            "too many streams",
            format!("{max} clients follow events or logs, and no more may"),
            "end streams that nobody reads, or ask for lists with `after` until there is room",
        )
    }

    /// Not a place in a stream or a log, or one that it has not reached.
    pub(crate) fn place(parameter: &str, detail: impl std::fmt::Display) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "STREAM-002",
            "not a place to go on from",
            format!("{parameter}: {detail}"),
            "give the id of the last event or the place of the last line you have seen, or nothing to begin anew",
        );
        problem.0.faults.push(FaultView {
            path: parameter.to_owned(),
            code: "place".to_owned(),
            message: detail.to_string(),
        });
        problem
    }

    /// A page of another site tries to read along with this site's cookie.
    pub(crate) fn other_site(origin: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "STREAM-003",
            "from another site",
            format!(
                "a cookie opens a WebSocket to this site's own pages alone; the request comes from {origin}"
            ),
            "send `Authorization: Bearer TOKEN`; a proxy in between must pass on Host as it was",
        )
    }

    /// Names belong to other manifests: all of them.
    fn names_taken(clashes: &[Clash]) -> Self {
        let detail = match clashes {
            [only] => only.to_string(),
            many => format!("{} names belong to other manifests", many.len()),
        };
        let mut problem = Self::new(
            StatusCode::CONFLICT,
            "API-011",
            "name taken",
            detail,
            "choose another name for the cluster, the load balancer or the pool, or remove it from the other manifest first",
        );
        let faults = clashes.iter().map(|clash| FaultView {
            path: match clash {
                Clash::Cluster { .. } => "spec.kubernetes.clusters".to_owned(),
                Clash::Machines { .. } => "spec.nodePools".to_owned(),
            },
            code: Code::Duplicate.as_str().to_owned(),
            message: clash.to_string(),
        });
        if clashes.len() > 1 {
            problem.0.faults = faults.collect();
        }
        problem
    }

    /// Clusters that are kept, whoever removes them.
    fn protected(detail: String) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-021",
            "protected from deletion",
            detail,
            "apply the manifest once with `deletionProtection: false` for it, then delete",
        )
    }

    /// The key was used for another request.
    pub(crate) fn key_reused() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-012",
            "idempotency key used before",
            "the Idempotency-Key was used for another request",
            "draw a new key for every new request and repeat it only with the same body",
        )
    }

    /// The rehearsal could not be carried out.
    pub(crate) fn rehearsal(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "API-013",
            "cannot be rehearsed",
            detail,
            "use a fault profile that `slipway simulate --help` lists, and pools that can be simulated",
        )
    }

    /// The manifest has faults: all of them, each with its place.
    pub(crate) fn faults(faults: Vec<Fault>) -> Self {
        let many = fault::counted(&faults);
        let mut problem = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "INPUT-001",
            "manifest has faults",
            if many == 1 {
                "the manifest has 1 fault".to_owned()
            } else {
                format!("the manifest has {many} faults")
            },
            "correct every place that is listed; nothing was stored",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// The same with its faults in another order; those of one place stay as they are.
    pub(crate) fn sorted_by<K: Ord>(mut self, place: impl Fn(&str) -> K) -> Self {
        let faults = &mut self.0.faults;
        faults.sort_by_cached_key(|fault| place(&fault.path));
        self
    }

    /// Values with which manifests could not open their accounts any more.
    pub(crate) fn opens_nothing(secret: &Name, faults: Vec<Fault>) -> Self {
        let mut problem = Self::new(
            StatusCode::CONFLICT,
            "SEAL-014",
            "secret would open nothing",
            format!("secret {secret} is in use, and what uses it could not work with these values"),
            "nothing was changed; set the right values, or repeat it with `--force`",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// The manifest is not YAML, or beyond the limits of reading it.
    pub(crate) fn not_yaml(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "INPUT-002",
            "manifest cannot be read",
            detail,
            "correct the text at the place that is named; nothing was stored",
        )
    }

    /// The body is larger than anything honest.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "INPUT-003",
            "body too large",
            format!("the body has more than {limit} bytes"),
            "send less; a manifest can be split, because clusters that share nothing may live in manifests of their own, and of an environment a part can be set at a time",
        )
    }

    /// The values of a secret are more than is read at once.
    pub(crate) fn values_too_large(limit: usize, value: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "INPUT-003",
            "body too large",
            format!("the body with the values has more than {limit} bytes"),
            format!("one value may have {value} bytes; set what there is one by one"),
        )
    }

    /// The change would remove too much at once.
    fn blast(detail: String, hint: String) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            api::problem::BLAST,
            "removes too much at once",
            detail,
            hint,
        )
    }

    /// Machines would go together with data that their cluster keeps on them.
    fn data_loss(detail: String, hint: impl Into<String>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            api::problem::DATA_LOSS,
            "data would be lost",
            detail,
            hint,
        )
    }

    /// What would be done is more than what was shown.
    pub(crate) fn exceeds(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "PLAN-002",
            "more than the plan shows",
            detail,
            "look again with `slipway plan`, and apply the plan that it shows then",
        )
    }

    /// A wish could not be taken back; unlike a wish, that can be allowed to remove more.
    pub(crate) fn unallowed(error: WishError) -> Self {
        match error {
            WishError::Blast { percent_needed, .. } => {
                Self::blast(error.to_string(), repeat_allowing(percent_needed))
            }
            WishError::DataLoss(_) => Self::data_loss(error.to_string(), REPEAT_LOSING),
            WishError::NotFound { .. } | WishError::Refused { .. } | WishError::Store(_) => {
                error.into()
            }
        }
    }

    /// A cluster could not be recovered; what is in the way says what would help.
    pub(crate) fn unrecovered(error: WishError, cluster: &Name) -> Self {
        match error {
            WishError::Refused { reason } => Self::new(
                StatusCode::CONFLICT,
                "API-005",
                "refused",
                reason,
                format!(
                    "`slipway get cluster {cluster}` says what cannot be read of it; nothing was changed"
                ),
            ),
            WishError::NotFound { .. }
            | WishError::Blast { .. }
            | WishError::DataLoss(_)
            | WishError::Store(_) => Self::unallowed(error),
        }
    }

    /// The status it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What happened, in the words of the contract.
    pub(crate) fn into_wire(self) -> api::Problem {
        *self.0
    }

    /// What happened, to be read.
    pub(crate) fn wire(&self) -> &api::Problem {
        &self.0
    }
}

/// How somebody says that data may go.
const REPEAT_LOSING: &str = "move what is on them first; then, or if this is what you want, repeat it with \
                             `--allow-data-loss` (`allowDataLoss=true` of the API)";

fn repeat_allowing(percent: u32) -> String {
    format!(
        "if this is what you want, repeat it with `--allow-blast {percent}` (`allowBlast={percent}` of the API)"
    )
}

impl From<store::Error> for Problem {
    /// The store's own code and hint; its cause goes to the log, where it is handled.
    fn from(error: store::Error) -> Self {
        let out_of_reach = (StatusCode::SERVICE_UNAVAILABLE, "store out of reach");
        let (status, title) = match &error {
            store::Error::Full => (StatusCode::INSUFFICIENT_STORAGE, "disk full"),
            store::Error::Cursor { .. } => (StatusCode::BAD_REQUEST, "not a cursor"),
            store::Error::Unsure { .. } => (StatusCode::SERVICE_UNAVAILABLE, "outcome unknown"),
            store::Error::Document { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "stored otherwise")
            }
            store::Error::Contended { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "others in the way")
            }
            store::Error::Locked { .. }
            | store::Error::Missing { .. }
            | store::Error::Unopenable { .. }
            | store::Error::ReadOnly
            | store::Error::Corrupt { .. }
            | store::Error::Newer { .. }
            | store::Error::Older { .. }
            | store::Error::Unreachable { .. }
            | store::Error::Address { .. }
            | store::Error::Denied { .. }
            | store::Error::Other { .. } => out_of_reach,
        };
        if status.is_server_error() {
            let cause = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            tracing::error!(
                code = error.code(),
                cause,
                "the store could not answer: {error}"
            );
        }
        let mut problem = Self::new(status, error.code(), title, error.to_string(), error.hint());
        if matches!(error, store::Error::Unsure { .. }) {
            // Whoever repeats it unasked may do it twice.
            problem.1 = None;
        }
        problem
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        let detail = error.to_string();
        match error {
            SubmitError::Faults(faults) => Self::faults(faults),
            SubmitError::Blast { percent_needed, .. } => {
                Self::blast(detail, repeat_allowing(percent_needed))
            }
            SubmitError::DataLoss(_) => Self::data_loss(detail, REPEAT_LOSING),
            SubmitError::Conflict { .. } => Self::stale(detail),
            SubmitError::Taken { clashes } => Self::names_taken(&clashes),
            SubmitError::KeyReused { .. } => Self::key_reused(),
            SubmitError::Protected { .. } => Self::protected(detail),
            SubmitError::NotFound { manifest } => Self::missing("manifest", manifest),
            SubmitError::NoProject { project } => Self::no_project(&project),
            SubmitError::Quota { .. } => Self::quota(detail),
            SubmitError::Store(error) => error.into(),
        }
    }
}

impl From<WishError> for Problem {
    fn from(error: WishError) -> Self {
        let detail = error.to_string();
        match error {
            WishError::NotFound { what, name } => Self::missing(what, name),
            WishError::Refused { .. } => Self::refused(detail),
            WishError::Blast { percent_needed, .. } => Self::blast(
                detail,
                format!(
                    "change the manifest instead, and apply it with `--allow-blast {percent_needed}`"
                ),
            ),
            WishError::DataLoss(_) => Self::data_loss(
                detail,
                "move what is on them; then change the manifest instead, and apply it with `--allow-data-loss`",
            ),
            WishError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"slipway\""),
            );
        }
        if let Some(seconds) = self.1 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::sync::Arc;

    #[test]
    fn the_store_speaks_with_its_own_code() {
        let path = || "/data".into();
        let lost = || Arc::new(std::io::Error::other("connection reset"));
        let errors = [
            store::Error::Full,
            store::Error::Locked { path: path() },
            store::Error::Missing { path: path() },
            store::Error::ReadOnly,
            store::Error::Corrupt {
                what: "a page is torn",
                cause: None,
            },
            store::Error::Newer { found: 9, known: 1 },
            store::Error::Cursor {
                found: "x".to_owned(),
            },
            store::Error::Other {
                attempted: "read",
                cause: None,
            },
            store::Error::Unreachable { cause: lost() },
            store::Error::Unsure { cause: lost() },
            store::Error::Older {
                found: 1,
                needed: 2,
            },
            store::Error::Document {
                what: "a task",
                why: "it is odd".to_owned(),
                newer: false,
                cause: None,
            },
            store::Error::Contended { cause: lost() },
        ];
        let told: Vec<_> = errors
            .into_iter()
            .map(|error| {
                let problem = Problem::from(error);
                let wire = problem.wire();
                format!(
                    "{} {} {}: {}\n",
                    wire.status, wire.code, wire.title, wire.detail
                )
            })
            .collect();
        expect![[r#"
            507 STORE-001 disk full: could not write to the database, its disk is full
            503 STORE-002 store out of reach: could not open /data, another process uses it
            503 STORE-003 store out of reach: cannot open /data, there is no such directory
            503 STORE-005 store out of reach: cannot write to the database, it is read-only
            503 STORE-006 store out of reach: cannot read the database, a page is torn
            503 STORE-007 store out of reach: cannot read the database, its format is 9 and this program knows up to 1
            400 STORE-008 not a cursor: `x` is not a cursor of this list
            503 STORE-009 store out of reach: could not read
            503 STORE-010 store out of reach: could not reach the database server
            503 STORE-011 outcome unknown: lost the database server while writing, it is not known whether the change was kept
            503 STORE-014 store out of reach: cannot use the database yet, its format is 1 and this program needs 2
            500 STORE-006 stored otherwise: cannot read a task that is stored, it is odd
            503 STORE-015 others in the way: could not write, others kept what it needs
        "#]].assert_eq(&told.concat());
    }

    #[test]
    fn what_may_have_been_kept_is_not_to_be_repeated_unseen() {
        let cause = Arc::new(std::io::Error::other("connection reset"));
        let problem = Problem::from(store::Error::Unsure { cause });
        let hint = problem.wire().hint.clone().unwrap_or_default();
        assert!(hint.starts_with("look whether it was kept"), "{hint}");
        let answer = problem.into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(!answer.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn what_passes_says_when_to_come_back() {
        let answer = Problem::from(store::Error::Locked {
            path: "/data".into(),
        })
        .into_response();
        assert_eq!(answer.headers()[header::RETRY_AFTER], "2");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
    }
}
