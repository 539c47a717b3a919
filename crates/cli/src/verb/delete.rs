//! `slipway delete`: removes a manifest with all its clusters, after asking.

use super::apply::{named, span};
use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::progress::Goal;
use crate::source;
use crate::table::count;
use crate::wait::{Wait, wait};
use api::{Accepted, Exit, ManifestView};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `slipway delete`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway delete manifest hello --yes --wait\n  slipway delete -f examples/hello.yaml",
    override_usage = "slipway delete [OPTIONS] <-f FILE | KIND NAME>"
)]
pub struct Arguments {
    /// The kind of thing
    #[arg(
        value_parser = Kind::among(&[Kind::Manifest]),
        requires = "name",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    kind: Option<Kind>,

    /// Its name
    name: Option<String>,

    /// The manifest; `-` reads standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Wait until everything is gone
    #[arg(long)]
    wait: bool,

    /// Wait no longer than this, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = span)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments {
        kind,
        name,
        file,
        yes,
        wait: waits,
        timeout,
    } = arguments;
    let name = match (kind, name, file) {
        (_, _, Some(file)) => source::name(&source::read(&file)?, &file)?,
        (Some(kind), Some(name), None) => {
            deletable(kind)?;
            kind.check(&name)?;
            name
        }
        (_, _, None) => {
            return Err(Error::Usage {
                what: "nothing to delete was named".to_owned(),
                hint: "write `slipway delete manifest NAME`, or -f FILE".to_owned(),
            });
        }
    };
    let client = context.client()?;
    if !yes {
        let manifest = client.manifest(&name).await?;
        match context.out().ask(&question(&manifest)) {
            Some(true) => {}
            Some(false) => {
                context.out().say("nothing was deleted");
                return Ok(Exit::Failed);
            }
            None => {
                return Err(Error::Usage {
                    what: "deleting needs a yes, and nobody is here to give it".to_owned(),
                    hint: "say it with --yes".to_owned(),
                });
            }
        }
    }
    let accepted = client.delete_manifest(&name).await?;
    for note in &accepted.notes {
        context.out().complain(&format!("note: {note}\n"));
    }
    if !waits {
        context.show(&accepted, |_| told(&accepted))?;
        if !accepted.changed.is_empty() {
            context.out().say(&format!(
                "follow it with `slipway describe manifest {name}`"
            ));
        }
        return Ok(Exit::Done);
    }
    context.out().complain(&told(&accepted));
    let again = format!("slipway delete manifest {name} --yes --wait");
    let goal = Goal::new(accepted.generation, true);
    wait(
        context,
        &client,
        Wait {
            manifest: &name,
            goal,
            timeout,
            again,
        },
    )
    .await
}

/// What goes, in one line.
fn told(accepted: &Accepted) -> String {
    let name = &accepted.manifest;
    match accepted.changed.as_slice() {
        [] => format!("manifest {name} was deleted before\n"),
        changed => format!("manifest {name} goes, with {}\n", named(changed)),
    }
}

/// What would go, put as a question.
fn question(manifest: &ManifestView) -> String {
    let machines: u32 = manifest
        .clusters
        .iter()
        .map(|cluster| cluster.control.wanted + cluster.compute.wanted)
        .sum();
    format!(
        "delete manifest {} with {} and {} for good?",
        manifest.name,
        count(manifest.clusters.len(), "cluster"),
        count(usize::try_from(machines).unwrap_or(usize::MAX), "machine"),
    )
}

/// Only manifests are deleted; for the rest there is another way.
fn deletable(kind: Kind) -> Result<(), Error> {
    let hint = match kind {
        Kind::Manifest => return Ok(()),
        Kind::Cluster => "take it out of its manifest and apply that",
        Kind::Machine => {
            "scale its pool with `slipway pool scale`, or `slipway machine replace` it"
        }
        Kind::Task => "stop it with `slipway task cancel`",
        Kind::Intent => "take it back with `slipway intent withdraw`",
        Kind::Event => "events go by themselves after a while",
        Kind::Project => "remove it with `slipway project delete`",
    };
    Err(Error::Usage {
        what: format!("a {} cannot be deleted by itself", kind.as_str()),
        hint: hint.to_owned(),
    })
}
