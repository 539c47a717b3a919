//! What Prometheus is told: how long requests take, and how much there is of everything.

mod table;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use model::task::State;
use plan::Phase;

use crate::access::Refusal;

pub use table::{Kind, METRICS, Metric, Scope, page};

/// The content type of the text format of Prometheus.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How often samples are folded.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

/// How long requests take, by route, method and status.
const REQUEST_SECONDS: &str = "slipway_http_request_seconds";

/// From half a millisecond, which a read should take, to the limit of a request.
const SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

/// From a blink to the longest that an attempt may take.
const TASK_SECONDS: [f64; 13] = [
    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

/// How many tasks there are in each state.
const TASKS: &str = "slipway_tasks";

/// How many tasks are due and not claimed.
const TASKS_DUE: &str = "slipway_tasks_due";

/// How many machines are held, by reason.
const HELD: &str = "slipway_held";

/// Which program runs.
const BUILD_INFO: &str = "slipway_build_info";

/// How many clusters there are in each phase.
const CLUSTERS: &str = "slipway_clusters";

/// How many machines should be.
const MACHINES: &str = "slipway_machines";

/// How many clients follow something, by what they follow.
const STREAMS: &str = "slipway_streams";

/// How often events were read from the store to be told: by the hub for all, or by a stream
/// that was behind.
const EVENT_READS: &str = "slipway_event_reads_total";

/// How often a token was shown that opens nothing, by why.
const TOKENS_REFUSED: &str = "slipway_tokens_refused_total";

/// Prepares the recorder of the whole program, with buckets for spans of time.
pub fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(
            Matcher::Full("slipway_task_seconds".to_owned()),
            &TASK_SECONDS,
        )
}

/// Starts the recorder of the whole program.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    begin();
    Ok(handle)
}

/// Folds samples now and then, so that they do not pile up while nobody reads them.
pub(crate) async fn upkeep(handle: PrometheusHandle) -> Infallible {
    loop {
        tokio::time::sleep(UPKEEP_EVERY).await;
        handle.run_upkeep();
    }
}

/// Says what each metric means, and begins those at zero that may not move for long: a curve
/// that was never drawn cannot be told from one that is lost.
pub fn begin() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.meaning),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.meaning),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.meaning),
        }
        if metric.kind == Kind::Counter && metric.labels.is_empty() {
            metrics::counter!(metric.name).increment(0);
        }
    }
    for why in ["contended", "unreachable"] {
        metrics::counter!("slipway_store_retries_total", "why" => why).increment(0);
    }
    metrics::gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
}

/// Notes one answered request.
pub(crate) fn request(method: &Method, path: String, status: StatusCode, took: Duration) {
    metrics::histogram!(
        REQUEST_SECONDS,
        "method" => word(method),
        "path" => path,
        "status" => status.as_u16().to_string(),
    )
    .record(took);
}

/// The method, where it is one that routes have: anybody may send any word.
fn word(method: &Method) -> &'static str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    let words = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    let mut pairs = known.iter().zip(words);
    let found = pairs.find(|(known, _)| *known == method);
    found.map_or("other", |(_, word)| word)
}

/// Notes what waits; a reason that holds nothing any more is noted too, or the last number
/// would stay for ever.
pub(crate) fn backlog(backlog: &store::Backlog) {
    static TOLD: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    metrics::gauge!(TASKS_DUE).set(number(backlog.due));
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.extend(backlog.held.keys());
    for reason in told.iter() {
        let machines = backlog.held.get(reason).copied().unwrap_or(0);
        metrics::gauge!(HELD, "reason" => *reason).set(number(machines));
    }
}

/// Notes how much there is of everything, as the store counts it now; what there is none
/// of is noted too, or the last number would stay for ever.
pub(crate) fn count(counts: &store::Counts) {
    for state in [
        State::Waiting,
        State::Running,
        State::Stuck,
        State::Done,
        State::Withdrawn,
    ] {
        let tasks = counts.tasks.get(&state).copied().unwrap_or(0);
        metrics::gauge!(TASKS, "state" => state.as_str()).set(number(tasks));
    }
    for phase in [
        Phase::Pending,
        Phase::Scheduled,
        Phase::Done,
        Phase::Error,
        Phase::Deleting,
    ] {
        let clusters = counts.clusters.get(&phase).copied().unwrap_or(0);
        metrics::gauge!(CLUSTERS, "phase" => phase.as_str()).set(number(clusters));
    }
    metrics::gauge!(MACHINES).set(number(counts.machines));
}

/// Notes that a client began to follow something.
pub(crate) fn stream_began(kind: &'static str) {
    metrics::gauge!(STREAMS, "kind" => kind).increment(1);
}

/// Notes that a client follows it no longer.
pub(crate) fn stream_ended(kind: &'static str) {
    metrics::gauge!(STREAMS, "kind" => kind).decrement(1);
}

/// Notes that events were read, by whom.
pub(crate) fn events_read(by: &'static str) {
    metrics::counter!(EVENT_READS, "by" => by).increment(1);
}

/// Notes that a token was shown that opens nothing.
pub(crate) fn token_refused(refusal: Refusal) {
    let why = match refusal {
        Refusal::Unknown => "unknown",
        Refusal::Expired => "expired",
        Refusal::Revoked => "revoked",
    };
    metrics::counter!(TOKENS_REFUSED, "why" => why).increment(1);
}

/// A count as metrics have it; beyond four thousand million nobody counts any more.
fn number(count: u64) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}
