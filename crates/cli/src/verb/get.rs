//! `slipway get`: lists things, or shows one.

use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::pages::all;
use crate::view;
use api::client::{ClusterFilter, TaskFilter};
use api::{Client, ClusterState, EventView, Exit, IntentView, Listed, TaskState, Time};
use clap::builder::PossibleValuesParser;
use serde::Serialize;

/// Arguments of `slipway get`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway get clusters --state error\n  slipway get machines --cluster edge -o json"
)]
pub struct Arguments {
    /// The kind of thing
    #[arg(value_enum)]
    kind: Kind,

    /// Only this one, by name or id
    name: Option<String>,

    /// Only clusters of this manifest
    #[arg(long, value_name = "NAME", conflicts_with = "name", value_parser = api::argument::name)]
    manifest: Option<String>,

    /// Only machines or tasks of this cluster
    #[arg(long, value_name = "NAME", conflicts_with = "name", value_parser = api::argument::name)]
    cluster: Option<String>,

    /// Only clusters or tasks that stand so
    #[arg(long, value_name = "STATE", conflicts_with = "name", value_parser = PossibleValuesParser::new(STATES), hide_possible_values = true)]
    state: Option<String>,
}

const STATES: [&str; 10] = [
    "pending",
    "scheduled",
    "done",
    "error",
    "deleting",
    "gone",
    "waiting",
    "running",
    "stuck",
    "withdrawn",
];

const CLUSTER_STATES: [ClusterState; 6] = ClusterState::ALL;

const TASK_STATES: [TaskState; 5] = [
    TaskState::Waiting,
    TaskState::Running,
    TaskState::Stuck,
    TaskState::Done,
    TaskState::Withdrawn,
];

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    arguments.check_filters()?;
    if let Some(name) = &arguments.name {
        arguments.kind.check(name)?;
    }
    let client = context.client()?;
    match &arguments.name {
        Some(name) => one(arguments.kind, name, &client, context).await?,
        None => many(&arguments, &client, context).await?,
    }
    Ok(Exit::Done)
}

impl Arguments {
    /// A filter that filters nothing is a mistake.
    fn check_filters(&self) -> Result<(), Error> {
        let Self {
            kind,
            name: _,
            manifest,
            cluster,
            state,
        } = self;
        let (by_manifest, by_cluster, by_state) = match kind {
            Kind::Cluster => (true, false, true),
            Kind::Machine => (false, true, false),
            Kind::Task => (false, true, true),
            Kind::Manifest | Kind::Intent | Kind::Event | Kind::Project => (false, false, false),
        };
        let wrong = [
            ("--manifest", manifest.is_some() && !by_manifest),
            ("--cluster", cluster.is_some() && !by_cluster),
            ("--state", state.is_some() && !by_state),
        ];
        match wrong.iter().find(|(_, wrong)| *wrong) {
            None => Ok(()),
            Some((filter, _)) => Err(Error::Usage {
                what: format!("{filter} does not apply to {}s", kind.as_str()),
                hint: "`slipway get --help` tells which filter is for what".to_owned(),
            }),
        }
    }

    fn state_of<T: Copy>(
        &self,
        states: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<Option<T>, Error> {
        let Some(wanted) = &self.state else {
            return Ok(None);
        };
        let found = states.iter().copied().find(|state| word(*state) == wanted);
        let words: Vec<_> = states.iter().map(|state| word(*state)).collect();
        found.map(Some).ok_or_else(|| Error::Usage {
            what: format!("no {} is ever `{wanted}`", self.kind.as_str()),
            hint: format!("they are {}", words.join(", ")),
        })
    }
}

async fn one(
    kind: Kind,
    name: &str,
    client: &Client,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    match kind {
        Kind::Manifest => {
            let view = client.manifest(name).await?;
            context.show(&view, |now| {
                view::manifests(std::slice::from_ref(&view), now)
            })
        }
        Kind::Cluster => {
            let view = client.cluster(name).await?;
            context.show(&view, |now| {
                view::clusters(std::slice::from_ref(&view.head), now)
            })
        }
        Kind::Machine => {
            let view = client.machine(name).await?;
            context.show(&view, |now| {
                view::machines(std::slice::from_ref(&view), now)
            })
        }
        Kind::Task => {
            let view = client.task(name).await?;
            context.show(&view, |now| view::tasks(std::slice::from_ref(&view), now))
        }
        Kind::Intent => {
            let view = find_intent(client, name).await?;
            context.show(&view, |now| view::intents(std::slice::from_ref(&view), now))
        }
        Kind::Event => {
            let view = find_event(client, name).await?;
            context.show(&view, |now| view::events(std::slice::from_ref(&view), now))
        }
        Kind::Project => {
            let view = client.one_project(name).await?;
            context.show(&view, |now| {
                view::projects(std::slice::from_ref(&view), now)
            })
        }
    }
}

async fn many(
    arguments: &Arguments,
    client: &Client,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    match arguments.kind {
        Kind::Manifest => {
            let listed = all(async |page| client.manifests(page).await).await?;
            list(&listed, "manifests", view::manifests, context)
        }
        Kind::Cluster => {
            let state = arguments.state_of(&CLUSTER_STATES, ClusterState::as_str)?;
            let filter = ClusterFilter {
                manifest: arguments.manifest.clone(),
                state,
            };
            let listed = all(async |page| client.clusters(&filter, page).await).await?;
            list(&listed, "clusters", view::clusters, context)
        }
        Kind::Machine => {
            let cluster = arguments.cluster.as_deref();
            let listed = all(async |page| client.machines(cluster, page).await).await?;
            list(&listed, "machines", view::machines, context)
        }
        Kind::Task => {
            let state = arguments.state_of(&TASK_STATES, TaskState::as_str)?;
            let filter = TaskFilter {
                cluster: arguments.cluster.clone(),
                state,
            };
            let listed = all(async |page| client.tasks(&filter, page).await).await?;
            list(&listed, "tasks", view::tasks, context)
        }
        Kind::Intent => {
            let listed = all(async |page| client.intents(page).await).await?;
            list(&listed, "intents", view::intents, context)
        }
        Kind::Event => {
            let listed = all(async |page| {
                let after = page.cursor.as_deref().and_then(|after| after.parse().ok());
                client
                    .events_after(after.unwrap_or(0), page.limit.unwrap_or(0))
                    .await
            })
            .await?;
            list(&listed, "events", view::events, context)
        }
        Kind::Project => {
            let listed = all(async |page| client.projects(page).await).await?;
            list(&listed, "projects", view::projects, context)
        }
    }
}

/// Shows a list; an empty one is said to be so, beside the data.
pub(super) fn list<T: Serialize>(
    listed: &Listed<T>,
    noun: &str,
    picture: fn(&[T], Time) -> String,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    if listed.items.is_empty() {
        context.out().say(&format!("no {noun}"));
    }
    context.show(listed, |now| picture(&listed.items, now))
}

/// The wish of that id; wishes are few and have no route of their own.
pub(super) async fn find_intent(client: &Client, id: &str) -> Result<IntentView, Error> {
    let listed = all(async |page| client.intents(page).await).await?;
    let found = listed.items.into_iter().find(|intent| intent.id == id);
    found.ok_or_else(|| Error::NotFound {
        kind: "intent",
        name: id.to_owned(),
    })
}

async fn find_event(client: &Client, id: &str) -> Result<EventView, Error> {
    let missing = || Error::NotFound {
        kind: "event",
        name: id.to_owned(),
    };
    let number: u64 = id.parse().map_err(|_| missing())?;
    let before = number.checked_sub(1).ok_or_else(missing)?;
    let listed = client.events_after(before, 1).await?;
    listed
        .items
        .into_iter()
        .find(|event| event.id == number)
        .ok_or_else(missing)
}
