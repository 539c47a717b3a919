//! How many machines a dynamic pool has: `count`, or `autoscaler`.

use super::fields::Fields;
use crate::fault::{Code, Faults};
use crate::manifest::POOL_COUNT_MAX;
use crate::scaling::Autoscaler;

/// What a pool says of its size.
pub(super) struct Sizes {
    /// Whether it is to be scaled, and has no number.
    pub(super) scaled: bool,
    /// The size, where that is clear.
    pub(super) size: Option<Size>,
}

/// The size of a pool.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// How many machines it has, or begins with.
    pub(super) count: u32,
    /// Between which sizes it is scaled.
    pub(super) autoscaler: Option<Autoscaler>,
}

impl Size {
    /// The fewest and the most machines that the pool may have.
    pub(super) fn bounds(self) -> (u32, u32) {
        let number = (self.count, self.count);
        self.autoscaler.map_or(number, |of| (of.min, of.max))
    }
}

/// The size that a pool declares: a number, or from where to where it may be scaled.
pub(super) fn of_pool(fields: &mut Fields<'_>, faults: &mut Faults) -> Sizes {
    if !fields.has("autoscaler") {
        let absent = !fields.has("count");
        let count = fields.optional_number("count", 1..=POOL_COUNT_MAX, faults);
        if absent {
            let message = "found nothing, allowed: a number, or autoscaler with min and max";
            faults.note(fields.path("count"), Code::Required, message);
        }
        fields.optional("autoscaler");
        let size = count.map(|count| Size {
            count,
            autoscaler: None,
        });
        return Sizes {
            scaled: false,
            size,
        };
    }
    // Files from before say 0 where they mean that there is no number.
    let count = fields.optional_number("count", 0..=POOL_COUNT_MAX, faults);
    let both = count.is_some_and(|count| count > 0);
    if both {
        let message = "found autoscaler beside count, allowed: one of them";
        faults.note(fields.path("autoscaler"), Code::Duplicate, message);
    }
    let range = range_of(fields, faults);
    Sizes {
        scaled: !both,
        // Nobody knows which of the two is meant.
        size: range.filter(|_| !both).map(|range| Size {
            count: range.min,
            autoscaler: Some(range),
        }),
    }
}

fn range_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Autoscaler> {
    let mut range = fields.mapping("autoscaler", faults)?;
    let min = range.number("min", 0..=POOL_COUNT_MAX, faults);
    let max = range.number("max", 1..=POOL_COUNT_MAX, faults);
    let path = range.path("min");
    range.finish(faults);
    let (min, max) = (min?, max?);
    if min > max {
        let message = format!("found `{min}`, allowed: at most {max}, which is max");
        faults.note(path, Code::Range, message);
        return None;
    }
    Some(Autoscaler { min, max })
}
