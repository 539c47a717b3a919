//! Machines taken from those that were discovered: `nodePools.metal`.

use super::disruption;
use super::fields::Fields;
use super::manifest::{POOL_NAME_MAX, Read};
use super::marks::{self, Source};
use crate::fault::{Code, Faults};
use crate::manifest::{Metal, POOL_COUNT_MAX};
use crate::name::Name;
use crate::source::Value;

pub(super) fn metal_of(
    value: &Value,
    path: &str,
    groups: &[Read<u32>],
    faults: &mut Faults,
) -> (Option<Name>, Option<Metal>) {
    let Some(mut fields) = Fields::open(value, path, faults) else {
        return (None, None);
    };
    let name = fields.name("name", POOL_NAME_MAX, faults);
    let count = fields.number("count", 1..=POOL_COUNT_MAX, faults);
    let selector = marks::selector_of(&mut fields, faults);
    if !fields.has("selector") || fields.empty_map("selector") {
        let message = "found nothing, allowed: at least one label that machines of the pool have";
        faults.note(fields.path("selector"), Code::Required, message);
    }
    let budget = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Given, faults);
    fields.finish(faults);
    let pool = count.map(|count| Metal {
        selector,
        count,
        budget,
        marks,
    });
    (name, pool)
}
