//! How much a change would take away at once, judged against all that there is.

use crate::body::{Tx, first};
use crate::error::Error;
use model::cluster::Desired;
use plan::{Blast, Limits};

/// A change that would remove more machines at once than somebody agreed to.
#[derive(Debug)]
pub(crate) struct TooMuch {
    pub(crate) what: String,
    pub(crate) removed: u32,
    pub(crate) of: u32,
    pub(crate) percent_needed: u32,
}

/// Whether changes, each from one desired state to the next, stay within the limits.
pub(crate) fn judge<'a>(
    tx: &mut dyn Tx,
    changes: impl Iterator<Item = (&'a Desired, &'a Desired)>,
    limits: Limits,
) -> Result<Result<(), TooMuch>, Error> {
    let mut worst: Option<TooMuch> = None;
    let mut exceed = |what: String, blast: Blast| {
        let percent_needed = worst
            .as_ref()
            .map_or(0, |worst| worst.percent_needed)
            .max(blast.percent());
        let (what, removed, of) = match worst.take() {
            Some(worst) if worst.percent_needed >= blast.percent() => {
                (worst.what, worst.removed, worst.of)
            }
            Some(_) | None => (what, blast.removed, blast.of),
        };
        worst = Some(TooMuch {
            what,
            removed,
            of,
            percent_needed,
        });
    };
    let mut removed = 0_u32;
    for (before, next) in changes {
        let blast = Blast::between(before, next);
        removed = removed.saturating_add(blast.removed);
        if !limits.allow_cluster(blast) {
            exceed(format!("cluster {}", next.name), blast);
        }
    }
    if removed > 0 {
        let row = first(tx, "SELECT COUNT(*) FROM machines WHERE leaving = 0", &[])?;
        let of = row.map_or(Ok(0), |mut row| row.take())?;
        let blast = Blast { removed, of };
        if !limits.allow_fleet(blast) {
            exceed("the fleet".to_owned(), blast);
        }
    }
    Ok(worst.map_or(Ok(()), Err))
}
