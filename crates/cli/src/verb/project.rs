//! `slipway project`: who owns things, and how much of each kind they may have.

use super::get::list;
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::view;
use api::{Exit, ProjectRequest, ProjectView, Quota};

/// Verbs about projects.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List the projects, as `slipway get projects` does
    #[command(after_help = "Example:\n  slipway project list")]
    List,
    /// Make a project
    Create(Create),
    /// Change how much a project may have
    Quota(Change),
    /// Remove a project that has nothing left
    Delete(Delete),
}

/// Arguments of `slipway project create`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway project create lab\n  slipway project create lab --clusters 5 --machines 50"
)]
pub struct Create {
    /// What people call it
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    limits: Limits,
}

/// Arguments of `slipway project quota`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway project quota lab --machines 100\n  slipway project quota lab --clusters none"
)]
pub struct Change {
    /// The name of the project
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    limits: Limits,
}

/// Arguments of `slipway project delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway project delete lab")]
pub struct Delete {
    /// The name of the project
    #[arg(value_parser = api::argument::name)]
    name: String,
}

/// How much there may be.
#[derive(Debug, clap::Args)]
struct Limits {
    /// So many clusters, or `none` for no limit
    #[arg(long, value_name = "N")]
    clusters: Option<Limit>,

    /// So many machines, of all clusters together, or `none`
    #[arg(long, value_name = "N")]
    machines: Option<Limit>,

    /// So many environments, or `none`
    #[arg(long, value_name = "N")]
    environments: Option<Limit>,
}

/// A number, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<u32>);

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = text.parse().map(Some).map(Self);
        number.map_err(|_| "write a whole number, or `none`".to_owned())
    }
}

impl Limits {
    /// Whether any was named.
    const fn named(&self) -> bool {
        self.clusters.is_some() || self.machines.is_some() || self.environments.is_some()
    }

    /// The limits with those that were named in place of what there was.
    fn over(&self, known: Quota) -> Quota {
        let limit = |named: Option<Limit>, known| named.map_or(known, |Limit(limit)| limit);
        Quota {
            clusters: limit(self.clusters, known.clusters),
            machines: limit(self.machines, known.machines),
            environments: limit(self.environments, known.environments),
        }
    }
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::List => {
            let client = context.client()?;
            let listed = all(async |page| client.projects(page).await).await?;
            list(&listed, "projects", view::projects, context)?;
        }
        Verb::Create(Create { name, limits }) => {
            let quota = limits.over(Quota::default());
            let client = context.client()?;
            let made = client
                .create_project(&name, &ProjectRequest { quota })
                .await?;
            show(&made, context)?;
            context.out().say(&format!(
                "use it with --project {name}; `slipway token create NAME --project-scope {name}` lets somebody in"
            ));
        }
        Verb::Quota(Change { name, limits }) => {
            if !limits.named() {
                return Err(Error::Usage {
                    what: "no limit was named".to_owned(),
                    hint: "name --clusters, --machines or --environments, each with a number or `none`"
                        .to_owned(),
                });
            }
            let client = context.client()?;
            let known = client.one_project(&name).await?;
            let quota = limits.over(known.quota);
            let put = client.put_project(&name, &ProjectRequest { quota }).await?;
            show(&put, context)?;
        }
        Verb::Delete(Delete { name }) => {
            let client = context.client()?;
            client.delete_project(&name).await?;
            context.out().say(&format!("project {name} is gone"));
        }
    }
    Ok(Exit::Done)
}

fn show(view: &ProjectView, context: &mut Context<'_>) -> Result<(), Error> {
    context.show(view, |now| view::projects(std::slice::from_ref(view), now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays() {
        let limits = Limits {
            clusters: Some(Limit(None)),
            machines: Some(Limit(Some(7))),
            environments: None,
        };
        let known = Quota {
            clusters: Some(1),
            machines: None,
            environments: Some(3),
        };
        let quota = limits.over(known);
        assert_eq!(
            (quota.clusters, quota.machines, quota.environments),
            (None, Some(7), Some(3))
        );
        assert_eq!("none".parse(), Ok(Limit(None)));
        assert!("-1".parse::<Limit>().is_err() && "".parse::<Limit>().is_err());
    }
}
