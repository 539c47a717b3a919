//! Lists in pages: each page says where the next one begins.
//!
//! A cursor names the last row that was seen, never a count of rows, so rows that come
//! or go between two pages move nothing: each row that stays is visited exactly once.

use crate::error::Error;
use std::fmt::Display;

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// How many rows at most; held to 1..=500.
    pub limit: u32,
    /// Where the page before this one ended, in the words of its [`Listed::next`].
    pub after: Option<String>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins; absent when this was the last.
    pub next: Option<String>,
}

/// Rows per page at most: more is slow to read and slower to show.
const LIMIT_MAX: u32 = 500;

/// Between the parts of a cursor; in no name, id or number, and plain in a URL.
const SEPARATOR: char = '.';

impl Default for Page {
    fn default() -> Self {
        Self {
            limit: 100,
            after: None,
        }
    }
}

impl Page {
    /// One row more than the page holds: its presence says that there is a next page.
    pub(crate) fn rows(&self) -> u32 {
        self.limit.clamp(1, LIMIT_MAX) + 1
    }

    /// The parts of the cursor, or `start`.
    pub(crate) fn after<'a, const N: usize>(
        &'a self,
        list: &str,
        start: [&'a str; N],
    ) -> Result<[&'a str; N], Error> {
        let Some(after) = &self.after else {
            return Ok(start);
        };
        let mut parts = after.split(SEPARATOR);
        let named = parts.next() == Some(list);
        let parts: Vec<_> = parts.collect();
        parts
            .try_into()
            .ok()
            .filter(|_| named)
            .ok_or_else(|| self.malformed())
    }

    /// The single number of the cursor, or `start`.
    pub(crate) fn after_number(&self, list: &str, start: u64) -> Result<u64, Error> {
        if self.after.is_none() {
            return Ok(start);
        }
        let [number] = self.after(list, [""])?;
        self.number(number)
    }

    /// A part of the cursor that is a number.
    pub(crate) fn number(&self, part: &str) -> Result<u64, Error> {
        part.parse().map_err(|_| self.malformed())
    }

    /// Cuts what was read for the page to its size.
    pub(crate) fn cut<T>(&self, mut items: Vec<T>, cursor: impl FnOnce(&T) -> String) -> Listed<T> {
        let limit = usize::try_from(self.rows() - 1).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Listed { items, next }
    }

    fn malformed(&self) -> Error {
        Error::Cursor {
            found: self.after.clone().unwrap_or_default(),
        }
    }
}

/// Where a list goes on after the row with these values.
pub(crate) fn cursor(list: &str, parts: &[&dyn Display]) -> String {
    parts.iter().fold(list.to_owned(), |text, part| {
        format!("{text}{SEPARATOR}{part}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_in_its_parts() {
        let after = Some(cursor("clusters", &[&"hello", &7]));
        let page = Page {
            after,
            ..Page::default()
        };
        assert_eq!(page.after("clusters", ["", ""]).unwrap(), ["hello", "7"]);
    }

    #[test]
    fn a_cursor_of_another_list_or_none_at_all_is_refused() {
        for found in [
            "",
            ".",
            "clusters",
            "clusters.a",
            "clusters.a.b.c",
            "machines.a.1",
            "☃",
        ] {
            let page = Page {
                after: Some(found.to_owned()),
                ..Page::default()
            };
            let refused = page.after("clusters", ["", ""]).expect_err(found);
            assert_eq!(refused.code(), "STORE-008");
        }
        let page = Page {
            after: Some("tasks.x".to_owned()),
            ..Page::default()
        };
        assert!(page.after_number("tasks", 0).is_err());
    }
}
