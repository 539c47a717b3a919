//! Journeys: all that would follow, shown before anything is touched, and agreed to later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use api::{JourneyCluster, JourneyRound, JourneyStep, JourneyView};
use axum::Json;
use axum::extract::State;
use model::cluster::Generation;
use model::id::{JourneyId, Origin};
use model::manifest::Manifest;
use model::name::Name;
use model::task::Effect;
use model::time::Timestamp;
use plan::{Journey, Phase, Step};
use serde::{Deserialize, Serialize};
use store::{Preview, SubmitError};
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{self, Project, Query, Text, Within};
use crate::problem::Problem;
use crate::view;

/// Clusters whose journeys are told in full; the rest are only counted. More is scrolled
/// past unread, and the answer for programs has them all.
const TOLD_MAX: usize = 50;

/// What happens to each machine, by cluster and name.
type Effects = BTreeMap<Name, BTreeSet<Effect>>;

/// A journey as it is kept: what was shown, and what it allows.
#[derive(Serialize, Deserialize)]
struct Shown {
    view: JourneyView,
    effects: Effects,
}

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
/// Nothing is stored but the journey itself, for a day.
#[utoipa::path(
    post, path = "/plans", operation_id = "planManifest", tag = "plans", params(PlanQuery),
    request_body(description = "the manifest, as YAML or JSON", content(
        (String = "application/yaml"),
        (String = "text/yaml"),
        (String = "text/plain"),
        (serde_json::Value = "application/json"),
    )),
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
    let (previews, refused) = match app.store().preview(&project, &manifest, allow_blast, now).await {
        Ok(previews) => (previews, None),
        Err(refused @ SubmitError::Blast { .. }) => {
            let previews = app.store().preview(&project, &manifest, Some(100), now).await?;
            (previews, Some(Problem::from(refused)))
        }
        Err(other) => return Err(other.into()),
    };
    let of = project.clone();
    let (id, shown) = crate::aside(move || {
        let journeys = journeys(&previews, now);
        let mut view = show(&journeys, refused);
        let id = JourneyId::derive(Origin {
            parent: of.as_str(),
            name: &format!("{}\0{text}", view.text),
            ordinal: u64::try_from(now.as_millis()).unwrap_or(0),
            incarnation: 0,
        });
        view.id = id.to_string();
        Ok((id, Shown { view, effects: effects(journeys) }))
    })
    .await?;
    let body = serde_json::to_string(&shown).map_err(|error| Problem::body(error.to_string()))?;
    app.store().save_journey(id, &project, body, now).await?;
    Ok(Json(shown.view))
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
    Ok(Json(shown(&app, &project, id).await?.view))
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
    let previews = app.store().preview(project, manifest, Some(100), now).await?;
    let beyond = crate::aside(move || {
        let allowed = |name: &Name, effect: &Effect| shown.effects.get(name).is_some_and(|all| all.contains(effect));
        let beyond = effects(journeys(&previews, now)).into_iter().find_map(|(name, effects)| {
            let effect = effects.into_iter().find(|effect| !allowed(&name, effect))?;
            Some(format!("{name}: {} is not in the plan", effect.as_str()))
        });
        Ok(beyond)
    })
    .await?;
    match beyond {
        Some(beyond) => Err(Problem::exceeds(beyond)),
        None => Ok(before.map_or(Generation(0), |row| row.generation)),
    }
}

async fn shown(app: &App, project: &Name, id: JourneyId) -> Result<Shown, Problem> {
    let body = app.store().journey(project, id).await?.ok_or_else(|| Problem::missing("plan", id))?;
    // What another version of the program kept is as good as expired.
    serde_json::from_str(&body).map_err(|_| Problem::missing("plan", id))
}

/// The journeys of all clusters of a manifest, in its order.
fn journeys(previews: &[Preview], now: Timestamp) -> Vec<Journey> {
    previews
        .iter()
        .map(|preview| {
            let seen = preview.known.view(now);
            plan::journey(&plan::View { desired: &preview.desired, ..seen })
        })
        .collect()
}

fn effects(journeys: Vec<Journey>) -> Effects {
    journeys.into_iter().flat_map(|journey| journey.effects).collect()
}

/// The journeys in the words of the contract; the id follows.
fn show(journeys: &[Journey], refused: Option<Problem>) -> JourneyView {
    let (moving, still): (Vec<&Journey>, Vec<&Journey>) = journeys.iter().partition(|journey| moves(journey));
    let mut text = told(&moving, still.len());
    if let Some(problem) = &refused {
        let wire = problem.wire();
        // Writing to a string cannot fail.
        drop(writeln!(text, "refused: {} ({})", wire.detail, wire.code));
        if let Some(hint) = &wire.hint {
            drop(writeln!(text, "         {hint}"));
        }
    }
    JourneyView {
        id: String::new(),
        text,
        empty: moving.is_empty(),
        minutes: moving.iter().map(|journey| journey.minutes).max().unwrap_or(0),
        clusters: moving.into_iter().map(cluster).collect(),
        refused: refused.map(Problem::into_wire),
        effects: BTreeMap::new(),
    }
}

/// Whether there is anything to tell.
fn moves(journey: &Journey) -> bool {
    !journey.blocks.is_empty() || !journey.held.is_empty()
}

/// The journeys as people read them: clusters alike are told once.
fn told(moving: &[&Journey], still: usize) -> String {
    let mut text = String::new();
    let mut groups: Vec<(String, String, Vec<&str>)> = Vec::new();
    for journey in moving {
        let said = journey.to_string();
        let shape = said.replace(journey.cluster.as_str(), "\0");
        match groups.last_mut() {
            Some((alike, _, names)) if *alike == shape => names.push(journey.cluster.as_str()),
            Some(_) | None => groups.push((shape, said, vec![journey.cluster.as_str()])),
        }
    }
    // Writing to a string cannot fail.
    for (_, said, names) in groups.iter().take(TOLD_MAX) {
        text.push_str(said);
        if let [_, others @ ..] = names.as_slice()
            && let Some(last) = others.last()
        {
            drop(writeln!(text, "  and {} clusters alike, up to {last}", others.len()));
        }
    }
    let untold: usize = groups.iter().skip(TOLD_MAX).map(|(_, _, names)| names.len()).sum();
    if untold > 0 {
        drop(writeln!(text, "and {untold} more clusters"));
    }
    match (moving.is_empty(), still) {
        (true, _) => text.push_str("nothing to do: every cluster is as declared\n"),
        (false, 0) => {}
        (false, 1) => text.push_str("1 cluster stays as it is\n"),
        (false, still) => drop(writeln!(text, "{still} clusters stay as they are")),
    }
    if !moving.is_empty() {
        text.push_str("this is the happy path; `slipway simulate` shows the others\n");
    }
    text
}

fn cluster(journey: &Journey) -> JourneyCluster {
    let rounds = journey
        .blocks
        .iter()
        .flat_map(|block| block.rounds.iter().map(|steps| round(steps, block.repeats)))
        .collect();
    JourneyCluster {
        name: journey.cluster.to_string(),
        minutes: journey.minutes,
        rounds,
        held: journey.held.iter().map(view::held).collect(),
        ends_in: match journey.ends {
            Phase::Done => "ready",
            Phase::Gone => "gone",
            Phase::Pending | Phase::Scheduled | Phase::Error | Phase::Deleting => "waiting",
        }
        .to_owned(),
    }
}

fn round(steps: &[Step], repeats: u32) -> JourneyRound {
    let title = |step: &Step| match step.machines {
        1 => format!("{} {}", step.kind, step.first),
        many => format!("{} {many} of {}", step.kind, step.pool),
    };
    JourneyRound {
        title: steps.iter().map(title).collect::<Vec<_>>().join(" + "),
        steps: steps
            .iter()
            .map(|step| JourneyStep {
                kind: step.kind.into(),
                effect: step.kind.effect().into(),
                machine: step.first.to_string(),
                machines: step.machines,
                minutes: plan::minutes(step.kind),
            })
            .collect(),
        repeats,
        minutes: steps.iter().map(|step| plan::minutes(step.kind)).max().unwrap_or(0),
    }
}
