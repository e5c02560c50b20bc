//! Rows as the store asks for them: what they are, their columns as JSON, and bytes beside them.
//!
//! So one statement, and with it one moment, can give rows of several sorts.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sqlx::{Row as _, postgres::PgRow, types::Json};

use super::fault::Fault;
use crate::store::row::{Corrupt, Row, Undecodable};

pub(super) struct Record {
    pub kind: String,
    columns: Map<String, Value>,
    bytes: Option<Vec<u8>>,
}

/// A statement that gives the rows of `$query` as records of one kind.
macro_rules! records {
    ($kind:literal, $($query:expr),+) => {
        concat!("SELECT '", $kind, "' AS kind, row_to_json(r) AS columns, NULL::bytea AS bytes FROM (", $($query,)+ ") r")
    };
}
pub(super) use records;

/// The same for versions, whose snapshots are bytes.
macro_rules! versions {
    ($kind:literal, $where:expr) => {
        concat!(
            "SELECT '", $kind, "' AS kind, json_build_object('id', id, 'namespace_id', namespace_id, 'agent_id', agent_id,
                'number', number, 'digest', digest, 'live', live, 'created_at', created_at) AS columns, snapshot AS bytes
            FROM revisions WHERE ",
            $where
        )
    };
}
pub(super) use versions;

impl Record {
    pub(super) fn of(row: &PgRow) -> Result<Self, Fault> {
        let Json(columns) = row.try_get("columns")?;
        Ok(Self {
            kind: row.try_get("kind")?,
            columns,
            bytes: row.try_get("bytes")?,
        })
    }

    /// Those of each of so many questions, by the number `n` of the question, and those that are of all.
    pub(super) fn by_question(rows: &[PgRow], questions: usize) -> Result<(Vec<Vec<Self>>, Vec<Self>), Fault> {
        let mut own: Vec<_> = std::iter::repeat_with(Vec::new).take(questions).collect();
        let mut shared = Vec::new();
        for record in Self::all(rows)? {
            // Counted from one.
            let of = record.columns.get("n").and_then(Value::as_u64);
            let of = of.and_then(|n| usize::try_from(n).ok()?.checked_sub(1));
            match of.and_then(|n| own.get_mut(n)) {
                Some(own) => own.push(record),
                None => shared.push(record),
            }
        }
        Ok((own, shared))
    }

    /// From columns alone.
    pub(super) const fn from_columns(columns: Map<String, Value>) -> Self {
        Self {
            kind: String::new(),
            columns,
            bytes: None,
        }
    }

    pub(super) fn all(rows: &[PgRow]) -> Result<Vec<Self>, Fault> {
        rows.iter().map(Self::of).collect()
    }
}

/// Every row, decoded.
pub(super) fn collected<T>(rows: &[PgRow], decode: impl Fn(&Record) -> Result<T, Corrupt>) -> Result<Vec<T>, Fault> {
    rows.iter().map(|row| Ok(decode(&Record::of(row)?)?)).collect()
}

/// The first row, decoded.
pub(super) fn first<T>(rows: &[PgRow], decode: impl Fn(&Record) -> Result<T, Corrupt>) -> Result<Option<T>, Fault> {
    rows.first().map(|row| Ok(decode(&Record::of(row)?)?)).transpose()
}

/// The first of a kind, decoded.
pub(super) fn one<T>(
    records: &[Record],
    kind: &str,
    decode: impl Fn(&Record) -> Result<T, Corrupt>,
) -> Result<Option<T>, Fault> {
    let found = records.iter().find(|record| record.kind == kind);
    Ok(found.map(decode).transpose()?)
}

/// All of a kind, decoded.
pub(super) fn each<T>(
    records: &[Record],
    kind: &str,
    decode: impl Fn(&Record) -> Result<T, Corrupt>,
) -> Result<Vec<T>, Fault> {
    let found = records.iter().filter(|record| record.kind == kind);
    Ok(found.map(decode).collect::<Result<_, _>>()?)
}

/// What there is once.
pub(super) fn facts(records: &[Record]) -> Result<&Record, Fault> {
    let found = records.iter().find(|record| record.kind == "facts");
    found.ok_or(Fault::Corrupt("row"))
}

impl Record {
    /// A row that is a column of this one, decoded; `None` when there is none.
    pub(super) fn part<T>(
        &self,
        column: &str,
        decode: impl Fn(&Self) -> Result<T, Corrupt>,
    ) -> Result<Option<T>, Fault> {
        match self.columns.get(column) {
            Some(Value::Object(columns)) => Ok(Some(decode(&Self::from_columns(columns.clone()))?)),
            Some(Value::Null) => Ok(None),
            _ => Err(Fault::Corrupt("row")),
        }
    }

    fn column(&self, column: &str) -> Result<&Value, Undecodable> {
        self.columns.get(column).ok_or(Undecodable)
    }
}

impl Row for Record {
    fn text(&self, column: &str) -> Result<Option<String>, Undecodable> {
        match self.column(column)? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(Undecodable),
        }
    }

    fn number(&self, column: &str) -> Result<Option<i64>, Undecodable> {
        match self.column(column)? {
            Value::Null => Ok(None),
            number => number.as_i64().map(Some).ok_or(Undecodable),
        }
    }

    fn flag(&self, column: &str) -> Result<bool, Undecodable> {
        self.column(column)?.as_bool().ok_or(Undecodable)
    }

    fn bytes(&self, _: &str) -> Result<Vec<u8>, Undecodable> {
        self.bytes.clone().ok_or(Undecodable)
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, Undecodable> {
        match self.column(column)? {
            Value::Null => Ok(None),
            value => T::deserialize(value).map(Some).map_err(|_| Undecodable),
        }
    }
}
