//! `slipway token`: who may speak, as what, where and until when.

use super::apply::lifetime;
use super::get::list;
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::view;
use api::{Exit, TokenRequest, TokenRole};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::time::Duration;

/// Verbs about tokens.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Make a token; it is printed once and never again
    Create(Create),
    /// List the tokens that were made, with what became of them
    #[command(
        after_help = "Examples:\n  slipway token list\n  slipway token list --project lab -o json"
    )]
    List,
    /// End a token for good
    Revoke(Revoke),
}

/// Arguments of `slipway token create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway token create ci --role user --expires 30d > ci.token
  slipway token create ada --role operator --project-scope lab
  slipway token create root --role admin --all-projects

Each role may all that the one before it may: a viewer reads; a user declares, plans, rehearses
and sets secrets; an operator scales, replaces, retries, cancels, pauses, deletes, takes
kubeconfigs, enters machines, saves and restores etcd; an admin decides about projects, tokens,
keys, audit and backups.")]
pub struct Create {
    /// What its holder is called, in audit and history
    name: String,

    /// What its holder may do
    #[arg(long, value_name = "ROLE", default_value = "viewer", value_parser = role())]
    role: TokenRole,

    /// The project it is good for [default: that of --project]
    #[arg(long, value_name = "NAME", value_parser = api::argument::name)]
    project_scope: Option<String>,

    /// Good for all projects, also for those to come
    #[arg(long, conflicts_with = "project_scope")]
    all_projects: bool,

    /// End it after this time, e.g. 12h, 30d [default: never]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
}

/// Arguments of `slipway token revoke`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway token revoke token-0c5w3k9qj2m4x")]
pub struct Revoke {
    /// The id of the token
    #[arg(value_parser = api::argument::token)]
    id: String,
}

/// Reads a role by the word of the contract.
fn role() -> impl TypedValueParser<Value = TokenRole> {
    let words = TokenRole::ALL.map(TokenRole::as_str);
    PossibleValuesParser::new(words).map(|word| {
        let found = TokenRole::ALL
            .into_iter()
            .find(|role| role.as_str() == word);
        // Only the words above are let through; the least of them is the safest to fall back on.
        found.unwrap_or(TokenRole::Viewer)
    })
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::Create(arguments) => create(arguments, context).await,
        Verb::List => {
            let project = context.global().project.clone();
            let client = context.client()?;
            let listed = all(async |page| client.tokens(project.as_deref(), page).await).await?;
            list(&listed, "tokens", view::tokens, context)?;
            Ok(Exit::Done)
        }
        Verb::Revoke(Revoke { id }) => {
            let client = context.client()?;
            let view = client.revoke_token(&id).await?;
            context.show(&view, |_| format!("revoked {id}: {}\n", view.name))?;
            Ok(Exit::Done)
        }
    }
}

async fn create(arguments: Create, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Create {
        name,
        role,
        project_scope,
        all_projects,
        expires,
    } = arguments;
    let named = project_scope.unwrap_or_else(|| context.global().project().to_owned());
    let seconds = expires.map(|expires| u32::try_from(expires.as_secs()).unwrap_or(u32::MAX));
    let request = TokenRequest {
        name,
        role,
        project: (!all_projects).then_some(named),
        expires_in_seconds: seconds,
    };
    let client = context.client()?;
    let made = client.create_token(&request).await?;
    context.show(&made, |_| format!("{}\n", made.token))?;
    let place = match &made.view.project {
        Some(project) => format!("in project {project}"),
        None => "in all projects".to_owned(),
    };
    context.out().say(&format!(
        "{} is {} {place}; the token is not told again, and `slipway token revoke {}` ends it",
        made.view.name, made.view.role, made.view.id
    ));
    Ok(Exit::Done)
}
