//! What a database error means. Its text stays here: it may quote what was written.

use crate::store::{CommitError, Expect, StoreError, Taken, row::Corrupt};

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database said no, or did not answer.
    Database(sqlx::Error),
    /// A stored row does not decode.
    Corrupt(&'static str),
    /// The store was closed.
    Closed,
}

impl From<Corrupt> for Fault {
    fn from(Corrupt(what): Corrupt) -> Self {
        Self::Corrupt(what)
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::TypeNotFound { .. } => {
                Self::Corrupt("column")
            }
            other => Self::Database(other),
        }
    }
}

/// `SQLite`'s primary result codes that mean something to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// Another connection holds the lock.
    Busy,
    /// No permission, or a read-only file or file system.
    Denied,
    /// The file cannot be opened.
    CannotOpen,
    /// The device has no space.
    Full,
    /// Pages are damaged.
    Corrupt,
    /// Not a database file.
    NotADatabase,
    /// A rule of the schema was broken.
    Constraint,
    /// A statement that does not fit the schema.
    Statement,
    /// Anything else, reading and writing among it.
    Other,
}

/// The result code of an error of the database; `None` when it is not the database's.
pub(super) fn code(error: &sqlx::Error) -> Option<Code> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    // https://www.sqlite.org/rescode.html: the low byte is the primary code.
    Some(match extended & 0xff {
        1 => Code::Statement,
        5 | 6 => Code::Busy,
        3 | 8 | 23 => Code::Denied,
        11 => Code::Corrupt,
        13 => Code::Full,
        // SQLITE_IOERR_SHMSIZE: the file behind the shared memory cannot grow.
        10 if extended == 4874 => Code::Full,
        14 => Code::CannotOpen,
        19 => Code::Constraint,
        26 => Code::NotADatabase,
        _ => Code::Other,
    })
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(what) => Self::Corrupt(what),
            Fault::Closed => Self::Unavailable,
            Fault::Database(error) if matches!(code(&error), Some(Code::Corrupt | Code::NotADatabase)) => {
                Self::Corrupt("database page")
            }
            Fault::Database(error) if code(&error) == Some(Code::Full) => {
                tracing::warn!("the database has no space left");
                Self::NoSpace
            }
            Fault::Database(error) => {
                tracing::warn!(code = number(&error), "the database did not answer");
                Self::Unavailable
            }
        }
    }
}

/// Why a change was not committed.
#[derive(Debug)]
pub(super) enum Refused {
    /// A statement failed.
    Fault(Fault),
    /// The answer to the caller is decided.
    Answer(CommitError),
}

impl<E: Into<Fault>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

impl Refused {
    /// This does not hold.
    pub(super) const fn conflict(expect: Expect) -> Self {
        Self::Answer(CommitError::Conflict(expect))
    }

    /// A write found nothing to change: the caller expected too little.
    pub(super) fn missing(what: &'static str) -> Self {
        tracing::error!(what, "a change names something that does not exist");
        Self::Answer(CommitError::Refused)
    }
}

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> Self {
        let error = match refused {
            Refused::Answer(answer) => return answer,
            Refused::Fault(Fault::Closed) => return Self::Unavailable,
            Refused::Fault(Fault::Corrupt(what)) => {
                tracing::error!(what, "a stored row does not decode");
                return Self::Refused;
            }
            Refused::Fault(Fault::Database(error)) => error,
        };
        match code(&error) {
            Some(Code::Constraint) => {}
            Some(Code::Full) => {
                tracing::warn!("the database has no space left");
                return Self::NoSpace;
            }
            _ => {
                tracing::warn!(code = number(&error), "the database took no change");
                return Self::Unavailable;
            }
        }
        taken(&error).map_or_else(
            || {
                // Names the constraint, or is our own trigger's text; never a value.
                let rule = error.as_database_error().map(|error| error.message().to_owned());
                tracing::error!(rule, "a change breaks a rule of the schema");
                Self::Refused
            },
            Self::NameTaken,
        )
    }
}

/// Which name's uniqueness was broken; `SQLite` names the columns of the index.
fn taken(error: &sqlx::Error) -> Option<Taken> {
    let message = error.as_database_error()?.message();
    let columns = message.strip_prefix("UNIQUE constraint failed: ")?;
    match columns {
        "namespaces.name" | "namespaces.existing_namespace" => Some(Taken::Namespace),
        "agents.namespace_id, agents.name" => Some(Taken::Agent),
        "secrets.namespace_id, secrets.name" => Some(Taken::Secret),
        "owned.namespace_id, owned.kind, owned.name" => Some(Taken::Owned),
        "accounts.email"
        | "accounts.principal_id"
        | "federated_identities.issuer, federated_identities.subject"
        | "federated_identities.principal_id, federated_identities.issuer" => Some(Taken::Account),
        _ => None,
    }
}

fn number(error: &sqlx::Error) -> Option<String> {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .map(std::borrow::Cow::into_owned)
}
