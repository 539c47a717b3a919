//! `slipway pool`: another size for a pool, or newer modules, without touching the manifest.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use api::{Exit, WishRequest};

/// Verbs about pools.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Give a dynamic pool another size, until its manifest names another count, or another is wished
    Scale(Scale),
    /// Make the machines of a pool from the newer modules that its branch leads to, one after the other
    Update(Update),
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

/// Arguments of `slipway pool update`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway pool update edge/compute --reason 'modules with a firewall'

`slipway describe cluster` says for which pools there are newer modules."
)]
pub struct Update {
    /// The pool, of which cluster
    #[arg(value_name = "CLUSTER/POOL")]
    pool: Pool,

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
    let (
        Pool {
            cluster,
            name: pool,
        },
        asked,
        reason,
    ) = match verb {
        Verb::Scale(Scale {
            pool,
            count,
            reason,
        }) => (pool, Some(count), reason),
        Verb::Update(Update { pool, reason }) => (pool, None, reason),
    };
    let asked = match asked {
        Some(count) => WishRequest::Scale { pool, count },
        None => WishRequest::Update { pool },
    };
    let client = context.client()?;
    wish(&client, cluster, asked, reason, context).await
}
