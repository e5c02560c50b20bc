//! What a failed statement means. The text of the database stays here: it may quote what was written.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::store::{CommitError, StoreError, Taken, row::Corrupt};

/// Why a statement failed.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The database said no; nothing of the statement happened.
    Refused(Refusal),
    /// The connection broke or fell silent after the statement was sent: it may or may not have happened.
    Lost,
    /// There was no connection to send it on.
    Unreachable,
    /// A stored row does not decode.
    Corrupt(&'static str),
    /// The store was closed.
    Closed,
}

/// What the database said.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// `SQLSTATE`.
    pub code: String,
    /// The constraint that was broken.
    constraint: Option<String>,
    /// What `apply` adds: the index of the write.
    detail: Option<String>,
}

/// `apply`: a write found nothing to change.
pub(super) const MISSING: &str = "OCC01";
/// `apply`: a driver's record has another version.
pub(super) const STATE_CHANGED: &str = "OCC02";
pub(super) const UNIQUE: &str = "23505";

impl From<Corrupt> for Fault {
    fn from(Corrupt(what): Corrupt) -> Self {
        Self::Corrupt(what)
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::Decode(_) => {
                return Self::Corrupt("column");
            }
            _ => {}
        }
        let Some(said) = error
            .as_database_error()
            .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        else {
            tracing::warn!("a connection to the database was lost");
            return Self::Lost;
        };
        // FATAL ends the session, perhaps after the commit; only an ERROR is known to have undone the statement.
        if said.severity() != PgSeverity::Error {
            tracing::warn!(code = said.code(), "the database ended a connection");
            return Self::Lost;
        }
        Self::Refused(Refusal {
            code: said.code().to_owned(),
            constraint: said.constraint().map(str::to_owned),
            detail: said.detail().map(str::to_owned),
        })
    }
}

impl Refusal {
    /// Whether the same statement may succeed when it is sent again: it met another transaction.
    pub(super) fn passes(&self) -> bool {
        // serialization_failure, deadlock_detected.
        matches!(self.code.as_str(), "40001" | "40P01")
    }

    /// Which write found nothing to change.
    pub(super) fn write(&self) -> Option<usize> {
        self.detail.as_deref()?.parse().ok()
    }

    fn taken(&self) -> Option<Taken> {
        if self.code != UNIQUE {
            return None;
        }
        match self.constraint.as_deref()? {
            "namespaces_name" | "namespaces_existing" => Some(Taken::Namespace),
            "agents_name" => Some(Taken::Agent),
            "secrets_name" => Some(Taken::Secret),
            "owned_name" => Some(Taken::Owned),
            "accounts_email" | "accounts_pkey" | "federated_identities_subject" | "federated_identities_principal" => {
                Some(Taken::Account)
            }
            _ => None,
        }
    }

    /// Whether the server's disk is full.
    fn no_space(&self) -> bool {
        // disk_full.
        self.code == "53100"
    }

    /// Whether it breaks a rule of what is stored, which repeating does not mend.
    fn breaks_a_rule(&self) -> bool {
        // Invalid data, a broken constraint, a case that a function does not have, an exception that it raises.
        ["22", "23", "20", "P0", "OC"]
            .iter()
            .any(|class| self.code.starts_with(class))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(what) => Self::Corrupt(what),
            // data_corrupted, index_corrupted.
            Fault::Refused(refusal) if matches!(refusal.code.as_str(), "XX001" | "XX002") => {
                Self::Corrupt("database page")
            }
            Fault::Refused(refusal) if refusal.no_space() => {
                tracing::warn!("the database has no space left");
                Self::NoSpace
            }
            // insufficient_privilege.
            Fault::Refused(refusal) if refusal.code == "42501" => Self::NotAllowed,
            Fault::Refused(refusal) => {
                tracing::warn!(code = refusal.code, "the database did not answer");
                Self::Unavailable
            }
            Fault::Lost | Fault::Unreachable | Fault::Closed => Self::Unavailable,
        }
    }
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        let refusal = match fault {
            Fault::Lost => return Self::UnknownOutcome,
            Fault::Unreachable | Fault::Closed => return Self::Unavailable,
            Fault::Corrupt(what) => {
                tracing::error!(what, "a stored row does not decode");
                return Self::Refused;
            }
            Fault::Refused(refusal) => refusal,
        };
        if let Some(taken) = refusal.taken() {
            return Self::NameTaken(taken);
        }
        if refusal.code == STATE_CHANGED {
            return Self::StateConflict;
        }
        if refusal.breaks_a_rule() {
            tracing::error!(
                code = refusal.code,
                rule = refusal.constraint,
                "a change breaks a rule of the schema"
            );
            return Self::Refused;
        }
        if refusal.no_space() {
            tracing::warn!("the database has no space left");
            return Self::NoSpace;
        }
        tracing::warn!(code = refusal.code, "the database took no change");
        Self::Unavailable
    }
}
