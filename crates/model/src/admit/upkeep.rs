//! What happens to machines while a cluster lives: `replace` and `surge` of a pool, `repair` of a
//! cluster.

use super::fields::{Fields, span};
use super::kubernetes::word;
use crate::fault::{Code, Faults};
use crate::manifest::Replace;
use crate::upkeep::{Repair, SURGE_DEFAULT};
use std::str::FromStr;
use std::time::Duration;

/// The most machines of a pool that come at once before others go.
pub(crate) const SURGE_MAX: u32 = 100;

/// How the machines of a pool are replaced when they are to be made in another way.
pub(super) fn of_pool(pool: &mut Fields<'_>, faults: &mut Faults) -> Option<Replace> {
    let replace = pool.optional_flag("replace", faults);
    let surge = pool.optional_number("surge", 1..=SURGE_MAX, faults);
    let written = pool.has("surge") && !pool.has("replace");
    if written || replace == Some(false) && surge.is_some() {
        let message = "found a surge, allowed: nothing, unless the pool says replace: true";
        faults.note(pool.path("surge"), Code::Unsupported, message);
    }
    let surge = surge.unwrap_or(SURGE_DEFAULT);
    replace
        .filter(|replace| *replace)
        .map(|_| Replace { surge })
}

/// What is done about machines of a cluster that do not serve.
pub(super) fn of_cluster(cluster: &mut Fields<'_>, faults: &mut Faults) -> Repair {
    let usual = Repair::default();
    let Some(mut fields) = cluster.mapping("repair", faults) else {
        return usual;
    };
    let on = word(&mut fields, "mode", &[("on", true), ("off", false)], faults);
    let after: Option<After> = fields.optional_parsed("after", faults);
    fields.finish(faults);
    let after = after.map(|after| after.0).or(usual.after);
    Repair {
        after: after.filter(|_| on.unwrap_or(true)),
    }
}

/// How long a machine may not serve.
struct After(Duration);

/// Why a text is none.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("a time is a whole number of minutes, hours or days, such as 10m, 2h or 1d")]
    Form,
    #[error("a machine is replaced when it has not served for 1m to 7d")]
    Span,
}

impl FromStr for After {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let allowed = Duration::from_mins(1)..=Duration::from_hours(7 * 24);
        let span = span(text).ok_or(Error::Form)?;
        let span = Some(span).filter(|span| allowed.contains(span));
        span.map(Self).ok_or(Error::Span)
    }
}
