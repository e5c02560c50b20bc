//! Strict decoding of columns. What does not decode names its resource, never its text.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::fault::Fault;
use crate::time::Timestamp;

/// A row of one sort of resource, which errors name.
#[derive(Clone, Copy)]
pub(super) struct Columns<'r> {
    pub row: &'r SqliteRow,
    pub of: &'static str,
}

impl Columns<'_> {
    pub(super) const fn corrupt(&self) -> Fault {
        Fault::Corrupt(self.of)
    }

    pub(super) fn text(&self, column: &str) -> Result<String, Fault> {
        self.row.try_get(column).map_err(|_| self.corrupt())
    }

    pub(super) fn optional_text(&self, column: &str) -> Result<Option<String>, Fault> {
        self.row.try_get(column).map_err(|_| self.corrupt())
    }

    pub(super) fn bytes(&self, column: &str) -> Result<Vec<u8>, Fault> {
        self.row.try_get(column).map_err(|_| self.corrupt())
    }

    /// A text with a rule: an id, a name.
    pub(super) fn parsed<T: FromStr>(&self, column: &str) -> Result<T, Fault> {
        self.text(column)?.parse().map_err(|_| self.corrupt())
    }

    pub(super) fn optional_parsed<T: FromStr>(&self, column: &str) -> Result<Option<T>, Fault> {
        self.optional_text(column)?
            .map(|text| text.parse().map_err(|_| self.corrupt()))
            .transpose()
    }

    /// One of the words of an enum.
    pub(super) fn word<T: DeserializeOwned>(&self, column: &str) -> Result<T, Fault> {
        serde_json::from_value(self.text(column)?.into()).map_err(|_| self.corrupt())
    }

    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, Fault> {
        serde_json::from_str(&self.text(column)?).map_err(|_| self.corrupt())
    }

    pub(super) fn optional_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Fault> {
        self.optional_text(column)?
            .map(|text| serde_json::from_str(&text).map_err(|_| self.corrupt()))
            .transpose()
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, column: &str) -> Result<T, Fault> {
        let number: i64 = self.row.try_get(column).map_err(|_| self.corrupt())?;
        number.try_into().map_err(|_| self.corrupt())
    }

    pub(super) fn optional_number<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, Fault> {
        let number: Option<i64> = self.row.try_get(column).map_err(|_| self.corrupt())?;
        number
            .map(|number| number.try_into().map_err(|_| self.corrupt()))
            .transpose()
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, Fault> {
        self.row.try_get(column).map_err(|_| self.corrupt())
    }

    pub(super) fn moment(&self, column: &str) -> Result<Timestamp, Fault> {
        Ok(Timestamp::from_millis(self.number(column)?))
    }
}

/// An enum's word, as it is stored and as it goes over the wire.
pub(super) fn word<T: serde::Serialize>(value: &T) -> Result<String, Fault> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(Fault::Corrupt("word")),
    }
}

/// A value as JSON text.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|_| Fault::Corrupt("value"))
}

/// A number as the database keeps it. Counters never come near the bound.
pub(super) fn number(value: u64) -> Result<i64, Fault> {
    value.try_into().map_err(|_| Fault::Corrupt("number"))
}
