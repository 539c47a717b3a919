//! `slipway env`: copies of a product, for everyone who needs one.

mod acting;
mod changing;
mod deliveries;
mod follow;
pub(crate) mod import;
mod looking;
mod notify;
mod settings;
mod source;
mod values;

use crate::context::Context;
use crate::error::Error;
use api::Exit;

/// Verbs about environments.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create an environment
    Create(changing::Create),
    /// Change an environment: settings, labels, owner, notes
    Update(changing::Update),
    /// List environments
    List(looking::List),
    /// Show all that is known of one environment
    Info(looking::Info),
    /// List the settings that can be edited, and what each may be
    Keys(looking::Keys),
    /// Show how an environment is
    Status(looking::Status),
    /// Show what the scripts of an action printed
    Logs(looking::Logs),
    /// Have an environment rest: nothing runs, and what it has stored is kept
    Archive(acting::Archive),
    /// Bring an environment back from the archive
    #[command(visible_alias = "wake")]
    Restore(acting::Restore),
    /// Remove an environment with all that it has stored
    Cleanup(acting::Cleanup),
    /// Forget an environment, and touch nothing of it
    Delete(acting::Delete),
    /// End what is being done to an environment
    Cancel(acting::Cancel),
    /// Have the configuration of an earlier action count again
    Redeploy(acting::Redeploy),
    /// Create another environment with the same edits
    Clone(acting::Clone),
    /// Say how long an environment may be up, from now on
    Extend(acting::Extend),
    /// Wait until nothing is under way with an environment
    Wait(acting::Wait),
    /// See which messages to others have arrived, and send them again
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway env deliveries list --state given-up\n  slipway env deliveries retry delivery-0c5w3k9qj2m4x"
    )]
    Deliveries(deliveries::Verb),
    /// Say how environments of the project are made
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway env settings show\n  slipway env settings set --scripts /srv/scripts --secret-delivery file"
    )]
    Settings(settings::Verb),
}

/// Which environment.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The name of the environment
    #[arg(value_name = "NAME", value_parser = api::argument::environment, required_unless_present = "named")]
    name: Option<String>,

    /// The same, as an option
    #[arg(
        id = "named",
        short = 'n',
        long = "name",
        value_name = "NAME",
        conflicts_with = "name",
        value_parser = api::argument::environment
    )]
    named: Option<String>,
}

impl Named {
    /// The name, in whichever way it was given.
    fn get(self) -> String {
        self.name.or(self.named).unwrap_or_default()
    }
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::Create(arguments) => changing::create(arguments, context).await,
        Verb::Update(arguments) => changing::update(arguments, context).await,
        Verb::List(arguments) => looking::list(arguments, context).await,
        Verb::Info(arguments) => looking::info(arguments, context).await,
        Verb::Keys(arguments) => looking::keys(arguments, context).await,
        Verb::Status(arguments) => looking::status(arguments, context).await,
        Verb::Logs(arguments) => looking::logs(arguments, context).await,
        Verb::Archive(arguments) => acting::archive(arguments, context).await,
        Verb::Restore(arguments) => acting::restore(arguments, context).await,
        Verb::Cleanup(arguments) => acting::cleanup(arguments, context).await,
        Verb::Delete(arguments) => acting::delete(arguments, context).await,
        Verb::Cancel(arguments) => acting::cancel(arguments, context).await,
        Verb::Redeploy(arguments) => acting::redeploy(arguments, context).await,
        Verb::Clone(arguments) => acting::clone(arguments, context).await,
        Verb::Extend(arguments) => acting::extend(arguments, context).await,
        Verb::Wait(arguments) => acting::wait(arguments, context).await,
        Verb::Deliveries(verb) => deliveries::run(verb, context).await,
        Verb::Settings(verb) => settings::run(verb, context).await,
    }
}
