//! What the stores share: how rows become values, and values rows.
//!
//! A store names its columns alike and gives a [`Row`]; what does not decode names its resource, never its text.

pub(super) mod account;
pub(super) mod audit;
pub(super) mod policy;
pub(super) mod resource;
pub(super) mod settlement;
pub(super) mod work;

use std::str::FromStr;

use serde::de::DeserializeOwned;

use crate::time::Timestamp;

/// A stored row of this sort of resource does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corrupt(pub &'static str);

/// A column is absent, or holds a value of another type.
pub(super) struct Undecodable;

/// A row as its database gives it. `None` is NULL.
pub(super) trait Row {
    fn text(&self, column: &str) -> Result<Option<String>, Undecodable>;
    fn number(&self, column: &str) -> Result<Option<i64>, Undecodable>;
    fn flag(&self, column: &str) -> Result<bool, Undecodable>;
    fn bytes(&self, column: &str) -> Result<Vec<u8>, Undecodable>;
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Undecodable>;
}

/// A row of one sort of resource, which errors name.
pub(super) struct Columns<'r, R> {
    pub row: &'r R,
    pub of: &'static str,
}

impl<R: Row> Columns<'_, R> {
    pub(super) const fn corrupt(&self) -> Corrupt {
        Corrupt(self.of)
    }

    fn given<T>(&self, value: Result<Option<T>, Undecodable>) -> Result<T, Corrupt> {
        value.ok().flatten().ok_or(self.corrupt())
    }

    pub(super) fn text(&self, column: &str) -> Result<String, Corrupt> {
        self.given(self.row.text(column))
    }

    pub(super) fn optional_text(&self, column: &str) -> Result<Option<String>, Corrupt> {
        self.row.text(column).map_err(|_| self.corrupt())
    }

    pub(super) fn bytes(&self, column: &str) -> Result<Vec<u8>, Corrupt> {
        self.row.bytes(column).map_err(|_| self.corrupt())
    }

    /// A text with a rule: an id, a name.
    pub(super) fn parsed<T: FromStr>(&self, column: &str) -> Result<T, Corrupt> {
        self.text(column)?.parse().map_err(|_| self.corrupt())
    }

    pub(super) fn optional_parsed<T: FromStr>(&self, column: &str) -> Result<Option<T>, Corrupt> {
        self.optional_text(column)?
            .map(|text| text.parse().map_err(|_| self.corrupt()))
            .transpose()
    }

    /// One of the words of an enum.
    pub(super) fn word<T: DeserializeOwned>(&self, column: &str) -> Result<T, Corrupt> {
        serde_json::from_value(self.text(column)?.into()).map_err(|_| self.corrupt())
    }

    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, Corrupt> {
        self.given(self.row.json(column))
    }

    pub(super) fn optional_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Corrupt> {
        self.row.json(column).map_err(|_| self.corrupt())
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, column: &str) -> Result<T, Corrupt> {
        let number = self.given(self.row.number(column))?;
        number.try_into().map_err(|_| self.corrupt())
    }

    pub(super) fn optional_number<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, Corrupt> {
        let number = self.row.number(column).map_err(|_| self.corrupt())?;
        number
            .map(|number| number.try_into().map_err(|_| self.corrupt()))
            .transpose()
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, Corrupt> {
        self.row.flag(column).map_err(|_| self.corrupt())
    }

    pub(super) fn moment(&self, column: &str) -> Result<Timestamp, Corrupt> {
        Ok(Timestamp::from_millis(self.number(column)?))
    }

    pub(super) fn optional_moment(&self, column: &str) -> Result<Option<Timestamp>, Corrupt> {
        Ok(self.optional_number(column)?.map(Timestamp::from_millis))
    }
}

/// An enum's word, as it is stored and as it goes over the wire.
pub(super) fn word<T: serde::Serialize>(value: &T) -> Result<String, Corrupt> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(Corrupt("word")),
    }
}

/// A number as the database keeps it. Counters never come near the bound.
pub(super) fn number(value: u64) -> Result<i64, Corrupt> {
    value.try_into().map_err(|_| Corrupt("number"))
}
