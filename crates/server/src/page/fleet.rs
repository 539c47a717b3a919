//! The fleet: every cluster in one line, and how many stand how.

use askama::Template;
use axum::extract::State;
use axum::response::Redirect;
use model::name::Name;
use model::time::Timestamp;
use plan::Phase;
use serde::Deserialize;
use store::{ClusterFilter, ClusterRow};

use super::signs::{Bar, Sign, Stamp};
use super::{Frame, Shown, render};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Project, Query};
use crate::problem::Problem;

/// The order in which states are counted: what needs somebody first.
const PHASES: [Phase; 5] = [
    Phase::Error,
    Phase::Scheduled,
    Phase::Pending,
    Phase::Deleting,
    Phase::Done,
];

/// What is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct FleetQuery {
    state: Option<String>,
    cursor: Option<String>,
    fragment: Option<String>,
}

#[derive(Template)]
#[template(path = "fleet.html", blocks = ["main"])]
struct Fleet {
    frame: Frame,
    machines: u32,
    total: u64,
    chosen: Option<Phase>,
    counts: Vec<Count>,
    clusters: Vec<Line>,
    next: Option<String>,
}

/// How many clusters stand so.
struct Count {
    state: Sign,
    clusters: u64,
    chosen: bool,
}

/// One cluster in one line.
pub(super) struct Line {
    pub(super) name: Name,
    pub(super) state: Sign,
    pub(super) control: Bar,
    pub(super) compute: Bar,
    pub(super) version: String,
    pub(super) manifest: Name,
    pub(super) message: String,
    pub(super) seen: Option<Stamp>,
}

impl Line {
    pub(super) fn new(row: ClusterRow, now: Timestamp) -> Self {
        Self {
            name: row.name,
            state: row.summary.phase.into(),
            control: row.summary.control.into(),
            compute: row.summary.compute.into(),
            version: row.version.to_string(),
            manifest: row.manifest,
            message: row.summary.message,
            seen: row.probed_at.map(|at| Stamp::new(at, now)),
        }
    }
}

/// Leads to the fleet of the caller's own project, or of the one that is always there.
pub(super) async fn home(caller: Caller) -> Redirect {
    let project = caller.project.unwrap_or_else(Name::default_project);
    Redirect::to(&format!("/projects/{project}"))
}

/// Shows the fleet of a project.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    of: Result<Project, Problem>,
    query: Result<Query<FleetQuery>, Problem>,
) -> Shown {
    let (Project(project), Query(query)) = (of?, query?);
    let now = app.now();
    let frame = Frame::new(&app, caller, &project, query.fragment.is_some()).await?;
    let chosen = query.state.as_deref().map(phase).transpose()?;
    let page = extract::page(None, query.cursor)?;
    let filter = ClusterFilter {
        manifest: None,
        phase: chosen,
    };
    let listed = app.store().clusters(&project, filter, page).await?;
    let phases = app.store().phases(&project).await?;
    let known = app.store().project(&project).await?;
    let known = known.ok_or_else(|| Problem::no_project(&project))?;
    let base = &frame.base;
    let next = listed.next.map(|cursor| match chosen {
        Some(phase) => format!("{base}?state={}&cursor={cursor}", phase.as_str()),
        None => format!("{base}?cursor={cursor}"),
    });
    let count = |phase: Phase| {
        let clusters = phases.get(&phase).copied().unwrap_or(0);
        let chosen = chosen == Some(phase);
        (clusters > 0 || chosen).then(|| Count {
            state: phase.into(),
            clusters,
            chosen,
        })
    };
    let fleet = Fleet {
        frame,
        machines: known.machines,
        total: phases.values().sum(),
        chosen,
        counts: PHASES.into_iter().filter_map(count).collect(),
        clusters: listed
            .items
            .into_iter()
            .map(|row| Line::new(row, now))
            .collect(),
        next,
    };
    if query.fragment.is_some() {
        render(&fleet.as_main())
    } else {
        render(&fleet)
    }
}

fn phase(text: &str) -> Result<Phase, Problem> {
    text.parse().map_err(|()| {
        Problem::parameter(
            "state",
            "allowed are pending, scheduled, done, error, deleting and gone",
        )
    })
}
