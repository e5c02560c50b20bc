//! Columns as `SQLite` has them.

use serde::de::DeserializeOwned;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::fault::Fault;
use crate::store::row::{Row, Undecodable};

impl From<sqlx::Error> for Undecodable {
    fn from(_: sqlx::Error) -> Self {
        Self
    }
}

impl Row for SqliteRow {
    fn text(&self, column: &str) -> Result<Option<String>, Undecodable> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, Undecodable> {
        Ok(self.try_get(column)?)
    }

    fn flag(&self, column: &str) -> Result<bool, Undecodable> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, Undecodable> {
        Ok(self.try_get(column)?)
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Undecodable> {
        let text = self.text(column)?;
        let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
        parsed.map_err(|_| Undecodable)
    }
}

/// A value as JSON text.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|_| Fault::Corrupt("value"))
}

/// An enum's word.
pub(super) fn word<T: serde::Serialize>(value: &T) -> Result<String, Fault> {
    Ok(crate::store::row::word(value)?)
}

/// A number as the database keeps it.
pub(super) fn number(value: u64) -> Result<i64, Fault> {
    Ok(crate::store::row::number(value)?)
}
