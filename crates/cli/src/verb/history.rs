//! `slipway history`: the accepted changes of a manifest or a cluster.

use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::pages::all;
use crate::view;
use api::Exit;

/// Arguments of `slipway history`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway history manifest hello")]
pub struct Arguments {
    /// The kind of thing
    #[arg(value_parser = Kind::among(&[Kind::Manifest, Kind::Cluster]))]
    kind: Kind,

    /// Its name
    name: String,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments { kind, name } = arguments;
    kind.check(&name)?;
    let client = context.client()?;
    let listed = match kind {
        Kind::Manifest => all(async |page| client.manifest_generations(&name, page).await).await?,
        Kind::Cluster => all(async |page| client.cluster_generations(&name, page).await).await?,
        Kind::Machine | Kind::Task | Kind::Intent | Kind::Event | Kind::Project => {
            return Err(kind.unfit("history", "manifests and clusters"));
        }
    };
    super::get::list(&listed, "generations", view::generations, context)?;
    Ok(Exit::Done)
}
