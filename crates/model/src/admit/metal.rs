//! Machines taken from those that were discovered: `nodePools.metal`.

use super::disruption;
use super::fields::Fields;
use super::manifest::POOL_NAME_MAX;
use super::marks::{self, Source};
use super::parts::{Parts, Title};
use super::pools::{Kind, Stock};
use crate::fault::{Code, Faults};
use crate::manifest::{Metal, POOL_COUNT_MAX, Pool};

pub(super) fn metal_of(
    mut fields: Fields<'_>,
    groups: &Parts<Option<u32>>,
    faults: &mut Faults,
) -> (Title, Stock) {
    let title = Title::of(&mut fields, "name", POOL_NAME_MAX, faults);
    let count = fields.number("count", 1..=POOL_COUNT_MAX, faults);
    let selector = marks::selector_of(&mut fields, faults);
    if !fields.has("selector") || fields.empty_map("selector") {
        let message = "found nothing, allowed: at least one label that machines of the pool have";
        faults.note(fields.path("selector"), Code::Required, message);
    }
    let (budget, group) = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Given, faults);
    fields.finish(faults);
    let whole = count.map(|count| {
        Pool::Metal(Metal {
            selector,
            count,
            budget,
            marks,
        })
    });
    let stock = Stock {
        kind: Kind::Metal,
        size: count.map(|count| (count, count)),
        group,
        whole,
    };
    (title, stock)
}
