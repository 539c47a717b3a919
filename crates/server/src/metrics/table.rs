//! Every metric by name: what it counts, by what, and who tells it.
//!
//! The list is the contract with whoever draws curves. `docs/metrics.md` is written from it,
//! Prometheus gets its sentences from it, and a test compares it with the names in the sources
//! and another one with what a running server tells.

/// How a metric moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, and begins anew with the process.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Counts how often something took how long.
    Histogram,
}

impl Kind {
    /// The word of Prometheus.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Whose number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of the process that tells it; sum it over servers and workers.
    Process,
    /// Of the process that tells it, and only servers do.
    Server,
    /// Of the whole installation: every server tells the same; do not sum it.
    Installation,
}

impl Scope {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Server => "server",
            Self::Installation => "installation",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// Whose number it is.
    pub scope: Scope,
    /// By what it is told apart: each label, and the values it can have.
    pub labels: &'static [(&'static str, &'static str)],
    /// What it says.
    pub meaning: &'static str,
}

const fn metric(
    name: &'static str,
    (kind, scope): (Kind, Scope),
    labels: &'static [(&'static str, &'static str)],
    meaning: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        scope,
        labels,
        meaning,
    }
}

use Kind::{Counter, Gauge, Histogram};
use Scope::{Installation, Process, Server};

const ACCESS: (&str, &str) = ("access", "`read`, `write`");

/// All of them, in the order of their names.
pub const METRICS: &[Metric] = &[
    metric(
        "slipway_attempts_running",
        (Gauge, Process),
        &[],
        "Attempts at tasks that are under way in this process.",
    ),
    metric(
        "slipway_build_info",
        (Gauge, Process),
        &[("version", "the version of the program")],
        "Always 1; its label says which program runs.",
    ),
    metric(
        "slipway_clusters",
        (Gauge, Installation),
        &[(
            "phase",
            "`pending`, `scheduled`, `done`, `error`, `deleting`",
        )],
        "Clusters that are not gone.",
    ),
    metric(
        "slipway_event_reads_total",
        (Counter, Server),
        &[(
            "by",
            "`hub` for all who follow, `stream` for one that was behind",
        )],
        "How often events were read from the store to be told.",
    ),
    metric(
        "slipway_held",
        (Gauge, Installation),
        &[(
            "reason",
            "`budget`, `window`, `stuck`, … as `slipway why` tells them",
        )],
        "Machines whose next step waits for something.",
    ),
    metric(
        "slipway_http_request_seconds",
        (Histogram, Process),
        &[
            ("method", "`GET`, `HEAD`, `POST`, `PUT`, `DELETE`, `other`"),
            ("path", "the route as openapi.json has it, or `unknown`"),
            ("status", "the status of the answer"),
        ],
        "How long requests took until their answer began.",
    ),
    metric(
        "slipway_leases_expired_total",
        (Counter, Process),
        &[],
        "Leases of others that this process found run out, and whose tasks it made due again.",
    ),
    metric(
        "slipway_leases_lost_total",
        (Counter, Process),
        &[],
        "Attempts of this process that ended because their lease was lost.",
    ),
    metric(
        "slipway_machines",
        (Gauge, Installation),
        &[],
        "Machines of all clusters, those to leave included until they are gone.",
    ),
    metric(
        "slipway_plan_seconds",
        (Histogram, Process),
        &[],
        "How long it took to plan one cluster once.",
    ),
    metric(
        "slipway_store_commit_seconds",
        (Histogram, Process),
        &[],
        "How long transactions that write took, with all questions that shared them.",
    ),
    metric(
        "slipway_store_question_seconds",
        (Histogram, Process),
        &[ACCESS],
        "How long questions to the store took, waiting for their turn included.",
    ),
    metric(
        "slipway_store_questions",
        (Gauge, Process),
        &[ACCESS],
        "Questions to the store that are not answered yet.",
    ),
    metric(
        "slipway_store_retries_total",
        (Counter, Process),
        &[(
            "why",
            "`contended` (others were in the way), `unreachable` (the database server did not answer)",
        )],
        "How often a transaction was run again.",
    ),
    metric(
        "slipway_store_writes_total",
        (Counter, Process),
        &[],
        "Questions that wrote.",
    ),
    metric(
        "slipway_streams",
        (Gauge, Server),
        &[("kind", "`events`, `websocket`, `log`, `relay`")],
        "Clients that follow something, or whose bytes are carried to a machine.",
    ),
    metric(
        "slipway_task_seconds",
        (Histogram, Process),
        &[
            (
                "kind",
                "`create`, `join`, `upgrade`, … as `slipway get tasks` shows them",
            ),
            ("ended", "`done`, `retry`, `stuck`, `yield`"),
        ],
        "How long attempts at tasks took.",
    ),
    metric(
        "slipway_tasks",
        (Gauge, Installation),
        &[(
            "state",
            "`waiting`, `running`, `stuck`, `done`, `withdrawn`",
        )],
        "Tasks that are kept. What is finished is kept for a month.",
    ),
    metric(
        "slipway_tasks_due",
        (Gauge, Installation),
        &[],
        "Tasks that could be under way and that no worker has claimed.",
    ),
    metric(
        "slipway_tokens_refused_total",
        (Counter, Server),
        &[("why", "`unknown`, `expired`, `revoked`")],
        "How often a token was shown that opens nothing.",
    ),
    metric(
        "slipway_unforeseen_total",
        (Counter, Process),
        &[],
        "What came of a task otherwise than plans say, where `--second-look` is set.",
    ),
];

/// What stands before the table.
const HEAD: &str = "\
# Metrics

<!-- Written by a test from crates/server/src/metrics/table.rs; `make bless` rewrites it. -->

`slipway serve` tells them at `/metrics`, without a token, in the text format of Prometheus; `slipway worker` does when
it has `--listen`. Names and labels are a contract: they are added to, and not renamed.

Labels have few values: none is the name of a project, a cluster, a machine or a person. Histograms have the series
`_bucket`, `_sum` and `_count`; times are in seconds.

*Of* says whose number it is. *process*: of the process that tells it, server or worker; sum it. *server*: the same, and
only servers tell it. *installation*: counted in the database, so that every server tells the same; take the maximum.

| Metric | Type | Of | Labels | Meaning |
|---|---|---|---|---|
";

/// What stands behind it.
const FOOT: &str = "
## What to watch

| Question | Look at |
|---|---|
| Does work wait for workers? | `slipway_tasks_due` stays above zero |
| Does a person have to act? | `slipway_tasks{state=\"stuck\"}`, and `slipway_held` by reason |
| Do workers die or stall? | `increase(slipway_leases_expired_total[10m])`, `increase(slipway_leases_lost_total[10m])` |
| Is the database slow? | `slipway_store_commit_seconds`, and `slipway_store_questions` that grows |
| Is the database away or fought over? | `increase(slipway_store_retries_total[5m])` by `why` |
| Is the API slow or failing? | `slipway_http_request_seconds` by `path` and `status` |
| Does somebody guess tokens? | `increase(slipway_tokens_refused_total[5m])` |
";

/// The whole page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for metric in METRICS {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|(label, values)| format!("`{label}`: {values}"))
            .collect();
        let labels = if labels.is_empty() {
            "–".to_owned()
        } else {
            labels.join("; ")
        };
        page.push_str(&format!(
            "| `{}` | {} | {} | {labels} | {} |\n",
            metric.name,
            metric.kind.as_str(),
            metric.scope.as_str(),
            metric.meaning
        ));
    }
    page + FOOT
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn the_page_is_the_list() {
        expect_file!["../../../../docs/metrics.md"].assert_eq(&page());
    }

    /// The Rust files of all crates, without their tests and this one.
    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !matches!(name, "tests" | "examples") {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") && name != "table.rs" {
                found.push(path);
            }
        }
    }

    #[test]
    fn the_list_is_what_the_sources_name() {
        let mut files = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        sources(crates, &mut files);
        let mut named = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            for (at, _) in text.match_indices("\"slipway_") {
                let name: String = text[at + 1..].chars().take_while(|c| *c != '"').collect();
                // Tokens and the name of a channel begin alike.
                if METRICS.iter().any(|metric| metric.name == name)
                    || ["_total", "_seconds"].iter().any(|end| name.ends_with(end))
                {
                    named.insert(name);
                }
            }
        }
        let listed: BTreeSet<String> = METRICS.iter().map(|one| one.name.to_owned()).collect();
        assert_eq!(named, listed);
        let names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
