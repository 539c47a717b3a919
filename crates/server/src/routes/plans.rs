//! Journeys: all that would follow, shown before anything is touched, and agreed to later.

use std::fmt;

use api::{JourneyBlock, JourneyCluster, JourneyStep, JourneyView};
use axum::Json;
use axum::extract::State;
use model::cluster::Generation;
use model::id::{JourneyId, Origin};
use model::manifest::Manifest;
use model::name::Name;
use model::task::Kind;
use model::time::Timestamp;
use plan::{Block, Change, Journey, Step};
use serde::Deserialize;
use store::{Preview, ProjectRow, SubmitError};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Text, Within};
use crate::problem::Problem;
use crate::view;

/// Clusters whose journeys are told in full; the rest are only counted. More is scrolled
/// past unread, and the answer for programs has them all.
const TOLD_MAX: usize = 50;

/// What a plan allows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanQuery {
    /// The share of machines, in per cent, that may be removed at once.
    #[param(minimum = 0, maximum = 100)]
    allow_blast: Option<u8>,
}

/// Shows all that would follow if a manifest were applied and nothing went wrong.
///
/// Nothing is stored but the journey itself, for a day; when that is not possible, it is
/// shown all the same, and says so.
#[utoipa::path(
    post, path = "/plans", operation_id = "planManifest", tag = "plans", params(PlanQuery),
    request_body(description = "the manifest, as YAML or JSON", content = String, content_type = "application/yaml"),
    responses(
        (status = 200, description = "the journey", body = JourneyView),
        (status = 409, description = "a name is taken", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "the manifest has faults", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn plan(
    State(app): State<App>,
    Project(project): Project,
    Query(query): Query<PlanQuery>,
    text: Text,
) -> Result<Json<JourneyView>, Problem> {
    let allow_blast = extract::percent(query.allow_blast)?;
    let (manifest, text) = text.admitted().await?;
    let now = app.now();
    let (previews, refused) = match app
        .store()
        .preview(&project, &manifest, allow_blast, now)
        .await
    {
        Ok(previews) => (previews, None),
        Err(refused @ SubmitError::Blast { .. }) => {
            let previews = app
                .store()
                .preview(&project, &manifest, Some(100), now)
                .await?;
            (previews, Some(Problem::from(refused)))
        }
        Err(other) => return Err(other.into()),
    };
    let row = app.store().project(&project).await?;
    let of = project.clone();
    let (id, mut view) = crate::aside(move || {
        let journeys = journeys(&previews, now);
        let notes = row.and_then(|row| over_quota(&row, &previews, &journeys));
        let mut view = show(&journeys, notes.into_iter().collect(), refused);
        let id = JourneyId::derive(Origin {
            parent: of.as_str(),
            name: &format!("{}\0{text}", view.text),
            ordinal: u64::try_from(now.as_millis()).unwrap_or(0),
            incarnation: 0,
        });
        view.id = id.to_string();
        Ok((id, view))
    })
    .await?;
    let body = serde_json::to_string(&view).map_err(|error| Problem::body(error.to_string()))?;
    if let Err(error) = app.store().save_journey(id, &project, body, now).await {
        // What would happen is worth knowing, above all when the server cannot write.
        tracing::warn!(
            error.code = error.code(),
            "a plan was shown and could not be kept"
        );
        view.kept = false;
    }
    Ok(Json(view))
}

/// A journey that was shown within the last day.
#[utoipa::path(
    get, path = "/plans/{id}", operation_id = "getPlan", tag = "plans",
    responses((status = 200, description = "the journey as it was shown", body = JourneyView)),
)]
pub(crate) async fn show_again(
    State(app): State<App>,
    Within(project, id): Within<JourneyId>,
) -> Result<Json<JourneyView>, Problem> {
    Ok(Json(shown(&app, &project, id).await?))
}

/// Whether applying the manifest now does no more to any machine than the journey showed.
///
/// Answers with the generation that this was found for: only a manifest that is still
/// there may be changed in the name of the plan.
pub(crate) async fn covers(
    app: &App,
    project: &Name,
    manifest: &Manifest,
    id: JourneyId,
) -> Result<Generation, Problem> {
    let shown = shown(app, project, id).await?;
    let now = app.now();
    let before = app.store().manifest(project, &manifest.name).await?;
    let previews = app
        .store()
        .preview(project, manifest, Some(100), now)
        .await?;
    let beyond = crate::aside(move || Ok(beyond(&shown, &journeys(&previews, now)))).await?;
    match beyond {
        Some(beyond) => Err(Problem::exceeds(beyond)),
        None => Ok(before.map_or(Generation(0), |row| row.generation)),
    }
}

/// The first thing that would be done and was not shown.
fn beyond(shown: &JourneyView, journeys: &[Journey]) -> Option<String> {
    journeys.iter().find_map(|journey| {
        let allowed = shown
            .clusters
            .iter()
            .find(|cluster| cluster.name == journey.cluster.as_str());
        journey.effects.iter().find_map(|(name, effects)| {
            let allowed = allowed.and_then(|cluster| cluster.effects.get(name.as_str()));
            let within =
                |effect: api::Effect| allowed.is_some_and(|allowed| allowed.contains(&effect));
            let effect = effects.iter().find(|effect| !within((**effect).into()))?;
            Some(format!("{name}: {} is not in the plan", effect.as_str()))
        })
    })
}

async fn shown(app: &App, project: &Name, id: JourneyId) -> Result<JourneyView, Problem> {
    let body = app
        .store()
        .journey(project, id)
        .await?
        .ok_or_else(|| Problem::missing("plan", id))?;
    // What another version of the program kept is as good as expired.
    serde_json::from_str(&body).map_err(|_| Problem::missing("plan", id))
}

/// The journeys of all clusters of a manifest, in its order.
fn journeys(previews: &[Preview], now: Timestamp) -> Vec<Journey> {
    previews
        .iter()
        .map(|preview| plan::journey(&preview.view(now)))
        .collect()
}

/// That the project may not have all the machines that would be made; the planner, which sees
/// one cluster, does not know it.
fn over_quota(row: &ProjectRow, previews: &[Preview], journeys: &[Journey]) -> Option<String> {
    let limit = row.quota.machines?;
    let count = |machines: usize| u32::try_from(machines).unwrap_or(u32::MAX);
    let mut needed = row.machines;
    for Preview {
        desired,
        known,
        change,
    } in previews
    {
        let before = match change {
            Change::New => 0,
            Change::Changed | Change::Unchanged | Change::Removed => {
                count(known.desired.machines.len())
            }
        };
        needed = needed.saturating_sub(before) + count(desired.machines.len());
    }
    let made = journeys.iter().flat_map(|journey| &journey.blocks);
    let made: u32 = made
        .map(|block| {
            let steps = block.rounds.iter().flatten();
            let begun = steps.filter(|step| matches!(step.kind, Kind::Create | Kind::Prepare));
            begun.map(|step| step.machines).sum::<u32>() * block.repeats
        })
        .sum();
    let waiting = needed.saturating_sub(limit).min(made);
    let last = match waiting {
        0 => return None,
        1 => "the last one waits".to_owned(),
        many => format!("the last {many} wait"),
    };
    Some(format!(
        "the project may have {limit} machines, and would need {needed}: {last}"
    ))
}

/// The journeys in the words of the contract; the id follows.
fn show(journeys: &[Journey], notes: Vec<String>, refused: Option<Problem>) -> JourneyView {
    let (moving, still): (Vec<&Journey>, Vec<&Journey>) =
        journeys.iter().partition(|journey| moves(journey));
    let refused = refused.map(Problem::into_wire);
    JourneyView {
        id: String::new(),
        kept: true,
        text: Told {
            moving: &moving,
            still: still.len(),
            notes: &notes,
            refused: refused.as_ref(),
        }
        .to_string(),
        empty: moving.is_empty(),
        minutes: moving
            .iter()
            .map(|journey| journey.minutes)
            .max()
            .unwrap_or(0),
        clusters: moving.into_iter().map(cluster).collect(),
        notes,
        refused: refused.map(Box::new),
    }
}

/// Whether there is anything to tell.
fn moves(journey: &Journey) -> bool {
    !journey.blocks.is_empty() || !journey.held.is_empty()
}

/// The journeys as people read them.
struct Told<'a> {
    moving: &'a [&'a Journey],
    still: usize,
    notes: &'a [String],
    refused: Option<&'a api::Problem>,
}

/// Clusters that follow one another and whose journeys differ in nothing but the name.
struct Alike<'a> {
    /// The journey without the name.
    shape: String,
    first: &'a Journey,
    others: usize,
    last: &'a Name,
}

impl<'a> Told<'a> {
    fn groups(&self) -> Vec<Alike<'a>> {
        let mut groups: Vec<Alike<'a>> = Vec::new();
        for journey in self.moving {
            let shape = journey.to_string().replace(journey.cluster.as_str(), "");
            match groups.last_mut() {
                Some(group) if group.shape == shape => {
                    group.others += 1;
                    group.last = &journey.cluster;
                }
                Some(_) | None => {
                    groups.push(Alike {
                        shape,
                        first: journey,
                        others: 0,
                        last: &journey.cluster,
                    });
                }
            }
        }
        groups
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups();
        for group in groups.iter().take(TOLD_MAX) {
            write!(f, "{}", group.first)?;
            match group.others {
                0 => {}
                1 => writeln!(f, "  the same for {}", group.last)?,
                others => writeln!(
                    f,
                    "  the same for {others} more clusters, up to {}",
                    group.last
                )?,
            }
        }
        let untold: usize = groups
            .iter()
            .skip(TOLD_MAX)
            .map(|group| group.others + 1)
            .sum();
        if untold > 0 {
            writeln!(f, "and {untold} more clusters")?;
        }
        match (self.moving.is_empty(), self.still) {
            (true, _) => writeln!(f, "nothing to do: every cluster is as declared")?,
            (false, 0) => {}
            (false, 1) => writeln!(f, "1 cluster stays as it is")?,
            (false, still) => writeln!(f, "{still} clusters stay as they are")?,
        }
        if !self.moving.is_empty() {
            writeln!(
                f,
                "this is the happy path; `slipway simulate` shows the others"
            )?;
        }
        for note in self.notes {
            writeln!(f, "note: {note}")?;
        }
        if let Some(problem) = self.refused {
            writeln!(f, "refused: {} ({})", problem.detail, problem.code)?;
            writeln!(
                f,
                "         {}",
                problem.hint.as_deref().unwrap_or_default()
            )?;
        }
        Ok(())
    }
}

fn cluster(journey: &Journey) -> JourneyCluster {
    let effects = journey.effects.iter();
    JourneyCluster {
        name: journey.cluster.to_string(),
        minutes: journey.minutes,
        blocks: journey.blocks.iter().map(block).collect(),
        held: journey.held.iter().map(view::held).collect(),
        ends_in: view::state(journey.ends),
        effects: effects
            .map(|(name, all)| {
                (
                    name.to_string(),
                    all.iter().map(|effect| (*effect).into()).collect(),
                )
            })
            .collect(),
    }
}

fn block(block: &Block) -> JourneyBlock {
    let step = |step: &Step| JourneyStep {
        kind: step.kind.into(),
        effect: step.kind.effect().into(),
        pool: step.pool.to_string(),
        machine: step.first.to_string(),
        machines: step.machines,
    };
    JourneyBlock {
        rounds: block
            .rounds
            .iter()
            .map(|round| round.iter().map(step).collect())
            .collect(),
        repeats: block.repeats,
        minutes: block.minutes(),
        toward: block.toward.map(|version| version.to_string()),
    }
}
