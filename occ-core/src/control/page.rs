//! Lists in pages. What the caller may not read is left out before the page is cut (spec/engine 19.6).

use std::{fmt, str::FromStr};

use super::{Answer, operation::Operation};
use crate::driver::ResourceRef;

/// Largest page.
pub const PAGE_MAX: usize = 1000;
/// How large a page is when the caller does not say.
pub const PAGE_DEFAULT: usize = 200;

/// Which page is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageQuery {
    /// At most so many items.
    pub limit: usize,
    /// What follows this item.
    pub after: Option<Cursor>,
}

impl Default for PageQuery {
    fn default() -> Self {
        Self {
            limit: PAGE_DEFAULT,
            after: None,
        }
    }
}

impl PageQuery {
    /// Everything.
    pub const ALL: Self = Self {
        limit: usize::MAX,
        after: None,
    };
}

/// The place of an item in its list; opaque to callers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// What the list is sorted by.
    pub(super) order: i64,
    /// The item's id, which decides between equals.
    pub(super) id: String,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.order, self.id)
    }
}

/// A text is not a cursor that a list gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a list")]
pub struct InvalidCursor;

impl FromStr for Cursor {
    type Err = InvalidCursor;
    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (order, id) = text.split_once('.').ok_or(InvalidCursor)?;
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if id.is_empty() || id.len() > 64 || !id.bytes().all(known) {
            return Err(InvalidCursor);
        }
        Ok(Self {
            order: order.parse().map_err(|_| InvalidCursor)?,
            id: id.to_owned(),
        })
    }
}

/// Some items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; none after the last.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The same items, seen otherwise.
    pub(super) fn map<U>(self, view: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(view).collect(),
            next: self.next,
        }
    }
}

impl Operation<'_> {
    /// The page of what the caller may read. `items` are sorted by `place`.
    pub(super) async fn page<T>(
        &self,
        items: Vec<T>,
        query: &PageQuery,
        place: impl Fn(&T) -> Cursor,
        resource: impl Fn(&T) -> ResourceRef,
    ) -> Answer<Page<T>> {
        let mut rest = items
            .into_iter()
            .filter(|item| query.after.as_ref().is_none_or(|after| place(item) > *after));
        let mut page = Vec::new();
        // One more than is wanted says whether there is a next page.
        let wanted = query.limit.saturating_add(1);
        while page.len() < wanted {
            let some: Vec<_> = rest.by_ref().take((wanted - page.len()).min(PAGE_MAX)).collect();
            if some.is_empty() {
                break;
            }
            page.extend(self.readable(some, &resource).await?);
        }
        let more = page.len() > query.limit;
        page.truncate(query.limit);
        Ok(Page {
            next: page.last().filter(|_| more).map(place),
            items: page,
        })
    }
}
