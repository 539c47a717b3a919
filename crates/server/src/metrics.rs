//! What Prometheus is told: how long requests take, and how much there is of everything.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
use model::task::State;
use plan::Phase;

use crate::access::Refusal;

/// How long requests take, by route, method and status.
const REQUEST_SECONDS: &str = "slipway_http_request_seconds";

/// From half a millisecond, which a read should take, to the limit of a request.
const SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

/// How many tasks there are in each state.
const TASKS: &str = "slipway_tasks";

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
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
}

/// Notes one answered request.
pub(crate) fn request(method: &Method, path: String, status: StatusCode, took: Duration) {
    metrics::histogram!(
        REQUEST_SECONDS,
        "method" => method.as_str().to_owned(),
        "path" => path,
        "status" => status.as_u16().to_string(),
    )
    .record(took);
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
