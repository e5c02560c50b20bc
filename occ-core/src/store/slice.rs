//! A part of a list.

/// A part of a list that is sorted by a number, and by id among equals: what follows a place, and at most so much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The place that it follows; the beginning when there is none.
    pub after: Option<(i64, String)>,
    /// At most so many items.
    pub limit: u32,
}

impl Slice {
    /// The whole list.
    pub const ALL: Self = Self {
        after: None,
        limit: u32::MAX,
    };

    /// The place as a query takes it: what a list is sorted by is never below zero.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(in crate::store) fn place(&self) -> (i64, String) {
        self.after.clone().unwrap_or((-1, String::new()))
    }

    /// This part of a sorted list that is at hand.
    pub fn of<T>(&self, items: Vec<T>, place: impl Fn(&T) -> (i64, String)) -> Vec<T> {
        let follows = |item: &T| self.after.as_ref().is_none_or(|after| place(item) > *after);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        items.into_iter().filter(follows).take(limit).collect()
    }
}
