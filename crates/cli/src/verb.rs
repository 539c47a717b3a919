//! The verbs, one file each.

mod apply;
mod audit;
pub(crate) mod backup;
mod cluster;
mod completion;
mod delete;
mod describe;
mod diff;
pub(crate) mod env;
pub(crate) mod etcd;
mod explain;
mod get;
mod history;
mod intent;
mod kubeconfig;
mod machine;
mod plan;
mod pool;
mod project;
mod secret;
mod simulate;
mod ssh;
mod task;
mod token;
mod watch;
mod why;

use crate::context::Context;
use crate::error::Error;
use api::Exit;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show all that would follow if a manifest were applied; touch nothing
    Plan(plan::Arguments),
    /// Declare a manifest; the server does what it takes
    Apply(apply::Arguments),
    /// Remove a manifest with all its clusters
    Delete(delete::Arguments),
    /// List things, or show one
    Get(get::Arguments),
    /// Show all that is known of one thing
    Describe(describe::Arguments),
    /// Show why something is as it is, and what would change it
    Why(why::Arguments),
    /// Show what happens, as it happens
    Watch(watch::Arguments),
    /// List the accepted changes of a manifest or a cluster
    History(history::Arguments),
    /// Compare two accepted changes of a manifest or a cluster
    Diff(diff::Arguments),
    /// Say what a field of a manifest is for
    Explain(explain::Arguments),
    /// Print what opens the API of a cluster, for kubectl
    Kubeconfig(kubeconfig::Arguments),
    /// Enter a machine, or run a command on it
    Ssh(ssh::Arguments),
    /// Rehearse a manifest in a simulated world
    Simulate(simulate::Arguments),
    /// Read the log of a task, retry it, cancel it
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway get tasks\n  slipway task log task-0c5w3k9qj2m4x --follow"
    )]
    Task(task::Verb),
    /// Scale a pool, or make its machines from newer modules
    #[command(
        subcommand,
        after_help = "Example:\n  slipway pool scale edge/compute 5 --reason 'sale on Friday'"
    )]
    Pool(pool::Verb),
    /// Replace a machine, or have its pool do without it
    #[command(
        subcommand,
        after_help = "Example:\n  slipway machine replace edge-compute-02 --reason 'disk is failing'"
    )]
    Machine(machine::Verb),
    /// Pause a cluster, let it go on
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway cluster pause edge --reason 'audit until noon'\n  slipway cluster resume edge"
    )]
    Cluster(cluster::Verb),
    /// List and withdraw wishes outside the manifest
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway intent list\n  slipway intent withdraw intent-0c5w3k9qj2m4x"
    )]
    Intent(intent::Verb),
    /// Set secrets, list them, change the keys they are sealed with
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway secret set cloud token < token.txt\n  slipway secret list"
    )]
    Secret(secret::Verb),
    /// Make and remove projects, and say how much they may have
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway project create lab --clusters 5\n  slipway project list"
    )]
    Project(project::Verb),
    /// Make, list and revoke tokens
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway token create ci --role user --expires 30d > ci.token\n  slipway token list"
    )]
    Token(token::Verb),
    /// List, verify and export what was done
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway audit list --limit 20\n  slipway audit verify"
    )]
    Audit(audit::Verb),
    /// Write a completion script for a shell
    Completion(completion::Arguments),
    /// Write a backup; the program has it in a group with those verbs that need no server
    #[command(skip)]
    Backup(backup::Arguments),
    /// Snapshots of a cluster's etcd; the program has them in the same group
    #[command(skip)]
    Etcd(etcd::Verb),
    /// Environments; the program has them in a group with those verbs that need no server
    #[command(skip)]
    Env(Box<env::Verb>),
}

impl Verb {
    pub(crate) async fn run(
        self,
        context: &mut Context<'_>,
        program: fn() -> clap::Command,
    ) -> Result<Exit, Error> {
        match self {
            Self::Plan(arguments) => plan::run(arguments, context).await,
            Self::Apply(arguments) => apply::run(arguments, context).await,
            Self::Delete(arguments) => delete::run(arguments, context).await,
            Self::Get(arguments) => get::run(arguments, context).await,
            Self::Describe(arguments) => describe::run(arguments, context).await,
            Self::Why(arguments) => why::run(arguments, context).await,
            Self::Watch(arguments) => watch::run(arguments, context).await,
            Self::History(arguments) => history::run(arguments, context).await,
            Self::Diff(arguments) => diff::run(arguments, context).await,
            Self::Explain(arguments) => explain::run(&arguments, context),
            Self::Kubeconfig(arguments) => kubeconfig::run(arguments, context).await,
            Self::Ssh(arguments) => ssh::run(arguments, context).await,
            Self::Simulate(arguments) => simulate::run(arguments, context).await,
            Self::Task(verb) => task::run(verb, context).await,
            Self::Pool(verb) => pool::run(verb, context).await,
            Self::Machine(verb) => machine::run(verb, context).await,
            Self::Cluster(verb) => cluster::run(verb, context).await,
            Self::Intent(verb) => intent::run(verb, context).await,
            Self::Secret(verb) => secret::run(verb, context).await,
            Self::Project(verb) => project::run(verb, context).await,
            Self::Token(verb) => token::run(verb, context).await,
            Self::Audit(verb) => audit::run(verb, context).await,
            Self::Completion(arguments) => completion::run(&arguments, context, program),
            Self::Backup(arguments) => backup::run(arguments, context).await,
            Self::Etcd(verb) => etcd::run(verb, context).await,
            Self::Env(verb) => env::run(*verb, context).await,
        }
    }
}
