//! Reads a list to its end, page by page.

use api::Listed;
use api::client::{Error, Page};
use api::page::LIMIT_MAX;

/// Asks for page after page until there is none.
pub(crate) async fn all<T>(
    mut fetch: impl AsyncFnMut(&Page) -> Result<Listed<T>, Error>,
) -> Result<Listed<T>, Error> {
    let mut page = Page {
        limit: Some(LIMIT_MAX),
        cursor: None,
    };
    let mut items = Vec::new();
    loop {
        let listed = fetch(&page).await?;
        let stands_still = listed.items.is_empty();
        items.extend(listed.items);
        // An empty page that promises another would promise for ever.
        if listed.next.is_none() || stands_still {
            return Ok(Listed { items, next: None });
        }
        page.cursor = listed.next;
    }
}
