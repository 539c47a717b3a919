//! Lists in pages, so that no answer grows with the fleet.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many items a page has when nobody says.
pub const LIMIT_DEFAULT: u32 = 100;

/// How many items a page has at most: enough to page through 100,000 in a blink, and little
/// enough to hold in memory without thought.
pub const LIMIT_MAX: u32 = 500;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed<T> {
    /// The items of this page, in the order of the list.
    pub items: Vec<T>,
    /// Where the next page begins (`?cursor=`); null on the last one. For events it is the id
    /// to give as `?after=`.
    pub next: Option<String>,
}

impl<T> Listed<T> {
    /// The same page with every item converted.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Listed<U> {
        Listed {
            items: self.items.into_iter().map(convert).collect(),
            next: self.next,
        }
    }
}
