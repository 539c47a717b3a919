//! Why a submission is refused.

use crate::blast::TooMuch;
use crate::error::Error;
use crate::keys::Reused;
use model::cluster::Generation;
use model::fault::Fault;
use model::name::Name;
use plan::Loss;

/// Why a submission was refused; nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The manifest asks of living clusters what cannot be.
    #[error("the manifest cannot be applied to what there is")]
    Faults(Vec<Fault>),
    /// It would remove more machines at once than somebody agreed to.
    #[error("{removed} of the {of} machines of {what} would be removed at once")]
    Blast {
        /// Whose machines: `cluster NAME` or `the fleet`.
        what: String,
        /// How many would go.
        removed: u32,
        /// Of how many.
        of: u32,
        /// The per cent that must be allowed for all of the change.
        percent_needed: u32,
    },
    /// Machines would go together with data that their cluster keeps on them.
    #[error("{0}")]
    DataLoss(Loss),
    /// It was made for another generation than the current one.
    #[error("the manifest is at generation {current}, not at the one this was made for")]
    Conflict {
        /// The current generation; zero when there is no such manifest.
        current: Generation,
    },
    /// Names that other manifests have.
    #[error("{}", all(clashes))]
    Taken {
        /// Each of them.
        clashes: Vec<Clash>,
    },
    /// The key came with another manifest before.
    #[error("idempotency key `{key}` was used for another request")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// It would remove clusters that somebody protected.
    #[error("{} protected from deletion", are(clusters))]
    Protected {
        /// Which.
        clusters: Vec<Name>,
    },
    /// There is no such project.
    #[error("there is no project {project}")]
    NoProject {
        /// What was asked for.
        project: Name,
    },
    /// The project would have more clusters than it may.
    #[error("project {project} has {used} clusters and would get {new} more, it may have {limit}")]
    Quota {
        /// Which project.
        project: Name,
        /// How many clusters it has.
        used: u32,
        /// How many the manifest adds.
        new: u32,
        /// How many it may have.
        limit: u32,
    },
    /// There is no such manifest.
    #[error("there is no manifest {manifest}")]
    NotFound {
        /// What was asked for.
        manifest: Name,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A name that another manifest has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// Another manifest has a cluster of that name.
    #[error("cluster {cluster} belongs to manifest {manifest}")]
    Cluster {
        /// The cluster.
        cluster: Name,
        /// The manifest that declares it.
        manifest: Name,
    },
    /// Machines of another manifest have the names that its machines would get.
    #[error(
        "machines of {owner} and its pool {pool} would be called as those of {other} and its pool \
         {other_pool}, which belong to manifest {manifest}"
    )]
    Machines {
        /// The cluster or the load balancer.
        owner: Name,
        /// Its pool.
        pool: Name,
        /// The other cluster or load balancer.
        other: Name,
        /// Its pool.
        other_pool: Name,
        /// The manifest that declares the other.
        manifest: Name,
    },
}

/// Every name that is taken, in one sentence.
fn all(clashes: &[Clash]) -> String {
    let told: Vec<_> = clashes.iter().map(ToString::to_string).collect();
    told.join("; ")
}

/// Clusters as the subject of a sentence.
fn are(clusters: &[Name]) -> String {
    let names: Vec<_> = clusters.iter().map(Name::as_str).collect();
    match names.as_slice() {
        [one] => format!("cluster {one} is"),
        several => format!("clusters {} are", several.join(", ")),
    }
}

impl From<Reused> for SubmitError {
    fn from(Reused { key }: Reused) -> Self {
        Self::KeyReused { key }
    }
}

impl From<TooMuch> for SubmitError {
    fn from(
        TooMuch {
            what,
            removed,
            of,
            percent_needed,
        }: TooMuch,
    ) -> Self {
        Self::Blast {
            what,
            removed,
            of,
            percent_needed,
        }
    }
}
