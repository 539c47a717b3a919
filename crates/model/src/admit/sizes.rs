//! How many machines a dynamic pool has: `count`, or `autoscaler`.

use super::fields::Fields;
use crate::fault::{Code, Faults};
use crate::manifest::POOL_COUNT_MAX;
use crate::scaling::Autoscaler;

/// The size of a pool.
pub(super) struct Size {
    /// How many machines it has, or begins with.
    pub(super) count: u32,
    /// Between which sizes it is scaled.
    pub(super) autoscaler: Option<Autoscaler>,
}

/// The size that a pool declares: a number, or from where to where it may be scaled.
pub(super) fn of_pool(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Size> {
    if !fields.has("autoscaler") {
        let absent = !fields.has("count");
        let count = fields.optional_number("count", 1..=POOL_COUNT_MAX, faults);
        if absent {
            let message = "found nothing, allowed: a number, or autoscaler with min and max";
            faults.note(fields.path("count"), Code::Required, message);
        }
        fields.optional("autoscaler");
        return count.map(|count| Size {
            count,
            autoscaler: None,
        });
    }
    // Files from before say 0 where they mean that there is no number.
    let count = fields.optional_number("count", 0..=POOL_COUNT_MAX, faults);
    if count.is_some_and(|count| count > 0) {
        let message = "found autoscaler beside count, allowed: one of them";
        faults.note(fields.path("autoscaler"), Code::Duplicate, message);
    }
    let mut range = fields.mapping("autoscaler", faults)?;
    let min = range.number("min", 0..=POOL_COUNT_MAX, faults);
    let max = range.number("max", 1..=POOL_COUNT_MAX, faults);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let message = format!("found `{min}`, allowed: at most {max}, which is max");
        faults.note(range.path("min"), Code::Range, message);
    }
    range.finish(faults);
    let (min, max) = (min?, max?);
    Some(Size {
        count: min,
        autoscaler: Some(Autoscaler { min, max }),
    })
}
