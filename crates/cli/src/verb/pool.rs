//! `slipway pool`: another size for a pool, without touching the manifest.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use api::{Exit, WishRequest};

/// Verbs about pools.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Give a dynamic pool another size, until its manifest names another count, or another is wished
    Scale(Scale),
}

/// Arguments of `slipway pool scale`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway pool scale edge/compute 5 --reason 'sale on Friday'")]
pub struct Scale {
    /// The pool, of which cluster
    #[arg(value_name = "CLUSTER/POOL")]
    pool: Pool,

    /// How many machines
    count: u32,

    #[command(flatten)]
    reason: Reason,
}

/// A pool in its cluster.
#[derive(Debug, Clone)]
struct Pool {
    cluster: String,
    name: String,
}

impl std::str::FromStr for Pool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((cluster, name)) if !cluster.is_empty() && !name.is_empty() => Ok(Self {
                cluster: api::argument::name(cluster)?,
                name: api::argument::name(name)?,
            }),
            Some(_) | None => {
                Err("write the cluster, a slash and the pool, e.g. edge/compute".to_owned())
            }
        }
    }
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Verb::Scale(Scale {
        pool,
        count,
        reason,
    }) = verb;
    let client = context.client()?;
    let Pool { cluster, name } = pool;
    wish(
        &client,
        cluster,
        WishRequest::Scale { pool: name, count },
        reason,
        context,
    )
    .await
}
