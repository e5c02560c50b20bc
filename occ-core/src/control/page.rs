//! Lists in pages. What the caller may not read is left out before the page is cut (spec/engine 19.6).

use std::{
    fmt,
    future::{Future, ready},
    str::FromStr,
};

use super::{Answer, operation::Operation};
use crate::{
    driver::ResourceRef,
    store::{OwnedRow, Slice, StoreResult},
};

/// Largest page.
pub const PAGE_MAX: usize = 1000;
/// At least so many items are read at once: few of them may be readable.
const READ_MIN: usize = 50;
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

impl Cursor {
    /// The place of a small resource.
    pub(super) fn of(row: &OwnedRow) -> Self {
        Self {
            order: row.created_at.as_millis(),
            id: row.id.clone(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.order)?;
        // It stands in a query as it is, whatever the id of a principal is made of.
        for byte in self.id.bytes() {
            if is_plain(byte) {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "~{byte:02x}")?;
            }
        }
        Ok(())
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// An id as [`Cursor`] shows it.
fn unescaped(text: &str) -> Option<String> {
    let (mut id, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, more)) = rest.split_first() {
        rest = match first {
            b'~' => {
                let (digits, more) = more.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                id.push(u8::from_str_radix(digits, 16).ok()?);
                more
            }
            plain if is_plain(plain) => {
                id.push(plain);
                more
            }
            _ => return None,
        };
    }
    let id = String::from_utf8(id).ok()?;
    let fits = (1..=200).contains(&id.chars().count()) && !id.chars().any(char::is_control);
    fits.then_some(id)
}

/// A text is not a cursor that a list gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a list")]
pub struct InvalidCursor;

impl FromStr for Cursor {
    type Err = InvalidCursor;
    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (order, id) = text.split_once('.').ok_or(InvalidCursor)?;
        Ok(Self {
            order: order.parse().map_err(|_| InvalidCursor)?,
            id: unescaped(id).ok_or(InvalidCursor)?,
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

    /// The same items, decoded.
    pub(super) fn decoded<U, E>(self, decode: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        Ok(Page {
            items: self.items.into_iter().map(decode).collect::<Result<_, _>>()?,
            next: self.next,
        })
    }
}

impl Operation<'_> {
    /// The page of what the caller may read. `read` gives a part of the list, whose items are sorted by `place`; it is asked for more
    /// until the page is full, so that a page does not tell how much was left out of it.
    pub(super) async fn page<T, F: Future<Output = StoreResult<Vec<T>>>>(
        &self,
        query: &PageQuery,
        read: impl Fn(Slice) -> F,
        place: impl Fn(&T) -> Cursor,
        resource: impl Fn(&T) -> ResourceRef,
    ) -> Answer<Page<T>> {
        Page::cut(query, read, place, |items| self.readable(items, &resource)).await
    }
}

impl<T> Page<T> {
    /// The page of a list whose caller may read all of it.
    pub(super) async fn of_all<F: Future<Output = StoreResult<Vec<T>>>>(
        query: &PageQuery,
        read: impl Fn(Slice) -> F,
        place: impl Fn(&T) -> Cursor,
    ) -> Answer<Self> {
        Self::cut(query, read, place, |items| ready(Ok(items))).await
    }

    async fn cut<F: Future<Output = StoreResult<Vec<T>>>, G: Future<Output = Answer<Vec<T>>>>(
        query: &PageQuery,
        read: impl Fn(Slice) -> F,
        place: impl Fn(&T) -> Cursor,
        keep: impl Fn(Vec<T>) -> G,
    ) -> Answer<Self> {
        let mut after = query.after.clone().map(|cursor| (cursor.order, cursor.id));
        let mut page = Vec::new();
        // One more than is wanted says whether there is a next page.
        let wanted = query.limit.saturating_add(1);
        while page.len() < wanted {
            let limit = (wanted - page.len()).clamp(READ_MIN, PAGE_MAX + 1);
            let slice = Slice {
                after,
                limit: u32::try_from(limit).unwrap_or(u32::MAX),
            };
            let some = read(slice).await?;
            let last = some.len() < limit;
            after = some.last().map(|item| {
                let Cursor { order, id } = place(item);
                (order, id)
            });
            page.extend(keep(some).await?);
            if last {
                break;
            }
        }
        let more = page.len() > query.limit;
        page.truncate(query.limit);
        Ok(Self {
            next: page.last().filter(|_| more).map(place),
            items: page,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_whatever_an_id_is_made_of() {
        for id in ["agt_6017458d-f00c", "ada@example.com", "a.b~c d", "Ådä", "~"] {
            let cursor = Cursor {
                order: 7,
                id: id.to_owned(),
            };
            let text = cursor.to_string();
            assert_eq!(text.parse(), Ok(cursor));
            assert!(text.bytes().all(|b| is_plain(b) || matches!(b, b'.' | b'~')), "{text}");
        }
        for text in [
            "", "7", "7.", "x.a", "7.a.b", "7.~", "7.~4", "7.~+1", "7.~zz", "7.~00", "7.~ff", "7.~é",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
