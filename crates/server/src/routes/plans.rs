//! Journeys: all that would follow, shown before anything is touched, and agreed to later.

mod beyond;
pub(crate) mod notes;
mod told;
mod wire;

use std::sync::Arc;

use api::JourneyView;
use axum::Json;
use axum::extract::State;
use model::cluster::{Generation, Machine};
use model::id::{JourneyId, Origin};
use model::manifest::Manifest;
use model::name::Name;
use model::task::Kind;
use model::time::Timestamp;
use plan::{Basis, Journey, Paces, Prices, Unable};
use serde::Deserialize;
use store::{Allowed, Preview, Previews, SubmitError};
use utoipa::IntoParams;

use self::told::Told;
use crate::access::Caller;
use crate::app::App;
use crate::credentials::{self, Shut};
use crate::extract::{self, Admitted, Project, Query, Text, Within};
use crate::problem::Problem;

/// What a plan allows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanQuery {
    /// The share of machines, in per cent, that may be removed at once.
    #[param(minimum = 0, maximum = 100)]
    allow_blast: Option<u8>,
    /// Whether machines may go together with data that their cluster keeps on them.
    allow_data_loss: Option<bool>,
}

/// Shows all that would follow if a manifest were applied and nothing went wrong.
///
/// Nothing is stored but the journey itself, for a day, and that secrets were judged; when that is
/// not possible, it is shown all the same, and says so.
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
    caller: Caller,
    Project(project): Project,
    Query(query): Query<PlanQuery>,
    text: Text,
) -> Result<Json<JourneyView>, Problem> {
    let allow = extract::allowed(query.allow_blast, query.allow_data_loss)?;
    let admitted = text.admitted(&app, &project, &caller.actor).await?;
    let Admitted {
        manifest,
        text,
        places,
    } = admitted;
    let (shut, mut notes) = judged(&app, &project, &manifest, &caller).await;
    let now = app.now();
    let (previews, refused) = match app.store().preview(&project, &manifest, allow, now).await {
        Ok(previews) => (previews, None),
        Err(refused @ (SubmitError::Blast { .. } | SubmitError::DataLoss(_))) => {
            let previews = app
                .store()
                .preview(&project, &manifest, Allowed::EVERYTHING, now)
                .await?;
            (previews, Some(Problem::from(refused)))
        }
        Err(other) => return Err(places.order(refused(other, shut))),
    };
    let Previews {
        clusters: previews,
        unread,
        notes: told,
    } = previews;
    let unread: Vec<_> = unread.iter().map(ToString::to_string).collect();
    notes.extend(told);
    let told = credentials::refuse_begun(shut, &previews);
    notes.extend(told.map_err(|problem| places.order(problem))?);
    let row = app.store().project(&project).await?;
    let of = project.clone();
    let measures = Measures::of(&app, &previews).await?;
    let (id, mut view) = crate::aside(move || {
        let journeys = measures.journeys(&previews, now);
        notes.extend(notes::let_pass(&manifest));
        notes.extend(row.and_then(|row| notes::over_quota(&row, &previews, &journeys)));
        let wished = |preview: &Preview| {
            let intents = &preview.known.intents;
            !plan::wished(&preview.desired, intents, now).is_empty()
        };
        let wished = previews.iter().any(wished);
        let mut view = show(&journeys, (unread, notes), refused, wished);
        let id = JourneyId::derive(Origin {
            parent: of.as_str(),
            name: &format!("{}\0{text}", view.text),
            ordinal: u64::try_from(now.as_millis()).unwrap_or(0),
            incarnation: 0,
        });
        view.id = id.to_string();
        view.of = manifest.fingerprint().to_string();
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

/// Accounts of a manifest that cannot be opened; what would happen is worth knowing, also when secrets stay closed.
async fn judged(
    app: &App,
    project: &Name,
    manifest: &Manifest,
    caller: &Caller,
) -> (Vec<Shut>, Vec<String>) {
    match credentials::shut(app, project, &manifest.providers, &caller.actor).await {
        Ok(shut) => (shut, Vec::new()),
        Err(closed) => {
            let note = format!("secrets were not judged: {}", closed.wire().detail);
            (Vec::new(), vec![note])
        }
    }
}

/// Why a manifest cannot be, with all that is wrong with the secrets it names.
pub(crate) fn refused(error: SubmitError, shut: Vec<Shut>) -> Problem {
    if let SubmitError::Faults(faults) = error {
        let of_secrets = shut.into_iter().map(Shut::into_fault);
        Problem::faults(of_secrets.chain(faults).collect())
    } else {
        error.into()
    }
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

/// Whether applying the manifest now does no more than the journey showed.
///
/// Answers with the generation that this was found for: only a manifest that is still
/// there may be changed in the name of the plan.
pub(crate) async fn covers(
    app: &App,
    (project, manifest): (&Name, &Manifest),
    id: JourneyId,
) -> Result<Generation, Problem> {
    let shown = shown(app, project, id).await?;
    let now = app.now();
    let before = app.store().manifest(project, &manifest.name).await?;
    let previews = app
        .store()
        .preview(project, manifest, Allowed::EVERYTHING, now)
        .await?
        .clusters;
    let measures = Measures::of(app, &previews).await?;
    let said = manifest.fingerprint();
    let beyond = crate::aside(move || {
        let journeys = measures.journeys(&previews, now);
        let beyond = beyond::first(&shown, &previews, &journeys);
        Ok(beyond.or_else(|| beyond::other_manifest(&shown, &said)))
    })
    .await?;
    match beyond {
        Some(beyond) => Err(Problem::exceeds(beyond)),
        None => Ok(before.map_or(Generation(0), |row| row.generation)),
    }
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

/// What journeys are told by.
struct Measures {
    prices: Arc<Prices>,
    paces: Paces,
    unable: fn(&Machine, Kind) -> Option<Unable>,
}

impl Measures {
    /// The prices that the server was given, what was learnt of such machines, and what hands can do.
    async fn of(app: &App, previews: &[Preview]) -> Result<Self, Problem> {
        let machines = previews.iter().flat_map(|preview| preview.desired.all());
        Ok(Self {
            prices: Arc::clone(app.prices()),
            paces: app.store().paces(Paces::asked(machines)).await?,
            unable: app.unable(),
        })
    }

    /// The journeys of all clusters of a manifest, in its order.
    fn journeys(&self, previews: &[Preview], now: Timestamp) -> Vec<Journey> {
        let of = |preview: &Preview| {
            plan::journey_by(&preview.view(now), &self.prices, &self.paces, &self.unable)
        };
        previews.iter().map(of).collect()
    }
}

/// The journeys in the words of the contract; which journey it is, and of what, follows.
fn show(
    journeys: &[Journey],
    (unread, notes): (Vec<String>, Vec<String>),
    refused: Option<Problem>,
    wished: bool,
) -> JourneyView {
    let (moving, still): (Vec<&Journey>, Vec<&Journey>) =
        journeys.iter().partition(|journey| moves(journey));
    let refused = refused.map(Problem::into_wire);
    let mut basis = Basis::default();
    for journey in &moving {
        basis.extend(&journey.basis);
    }
    JourneyView {
        id: String::new(),
        of: String::new(),
        kept: true,
        text: Told {
            moving: &moving,
            still: still.len(),
            wished,
            basis: &basis,
            unread: &unread,
            notes: &notes,
            refused: refused.as_ref(),
        }
        .to_string(),
        empty: moving.is_empty() && unread.is_empty(),
        unread,
        minutes: moving
            .iter()
            .map(|journey| journey.minutes)
            .max()
            .unwrap_or(0),
        pace: (!moving.is_empty()).then(|| wire::pace(&basis)),
        clusters: moving.into_iter().map(wire::cluster).collect(),
        notes,
        refused: refused.map(Box::new),
    }
}

/// Whether there is anything to tell.
fn moves(journey: &Journey) -> bool {
    !journey.blocks.is_empty() || !journey.held.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_cannot_be_read_is_not_as_declared() {
        let still = show(&[], (Vec::new(), Vec::new()), None, false);
        assert!(still.empty);
        assert_eq!(still.text, "nothing to do: every cluster is as declared\n");
        let unread = vec!["cluster east stays as it is".to_owned()];
        let view = show(&[], (unread.clone(), Vec::new()), None, false);
        assert!(!view.empty);
        assert_eq!(view.unread, unread);
        assert_eq!(view.text, "cluster east stays as it is\n");
    }
}
