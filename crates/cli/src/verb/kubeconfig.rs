//! `slipway kubeconfig`: what opens the API of a cluster.

use super::audit::{beside, unwritten};
use crate::context::Context;
use crate::error::Error;
use crate::global::Format;
use api::Exit;
use api::secret::Secret;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `slipway kubeconfig`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway kubeconfig edge --to edge.conf
  kubectl --kubeconfig edge.conf get nodes

Whoever has it is an administrator of the cluster: a file is readable by you alone. It asks at the
address that the API has now; take it again when the API has moved.")]
pub struct Arguments {
    /// The cluster
    #[arg(value_parser = api::argument::name)]
    cluster: String,

    /// Write it to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments { cluster, to } = arguments;
    let client = context.client()?;
    // First of all: a file that cannot be written is known before anything was opened.
    let file = to.as_deref().map(beside).transpose()?;
    let kubeconfig = shown(
        client.kubeconfig(&cluster).await?,
        context.global().output(),
    )?;
    let Some((mut file, to)) = file else {
        context.out().bytes(kubeconfig.expose())?;
        return Ok(Exit::Done);
    };
    file.write_all(kubeconfig.expose()).map_err(unwritten(to))?;
    file.as_file().sync_all().map_err(unwritten(to))?;
    let kept = file.persist(to).map_err(|unkept| unkept.error);
    kept.map(drop).map_err(unwritten(to))?;
    context.out().say(&told(&cluster, to));
    Ok(Exit::Done)
}

fn told(cluster: &str, to: &Path) -> String {
    let to = to.display();
    format!("wrote the kubeconfig of {cluster} to {to}; try `kubectl --kubeconfig {to} get nodes`")
}

/// The kubeconfig as it came, or as JSON, which is a kubeconfig too.
fn shown(kubeconfig: Secret, format: Format) -> Result<Secret, Error> {
    match format {
        Format::Table | Format::Yaml => Ok(kubeconfig),
        Format::Json => {
            let text = kubeconfig.expose_text().unwrap_or_default();
            // What is wrong is told without the text, which nobody shall see by chance.
            let read = serde_saphyr::from_str(text).map_err(|_secret| Error::Usage {
                what: "the kubeconfig is no YAML that could be shown as JSON".to_owned(),
                hint: "take it as it is, without `-o json`".to_owned(),
            });
            let read: serde_json::Value = read?;
            Ok(Secret::from_text(crate::context::json(&read)?))
        }
    }
}
